//! `oauth` of a server. Its secrets never appear in messages.

use super::super::members::{Section, give, set};
use super::super::report::Report;
use super::super::transport::{is_http_url, template};
use super::super::{OAuth, OAuthGrant, TokenAuth};

pub(super) fn read(server: &Section<'_>, report: &mut Report) -> Option<OAuth> {
    let members = server.section("oauth", report)?;
    let mut oauth = OAuth {
        client_id: members.text("client_id", report),
        client_secret: members.read("client_secret", report, template),
        private_key: members.read("private_key", report, template),
        auth_method: members.choice("auth_method", TokenAuth::named, report),
        scopes: members.texts("scopes", report).unwrap_or_default(),
        ..OAuth::default()
    };
    set(&mut oauth.grant, members.choice("grant", OAuthGrant::named, report));
    set(&mut oauth.resource, members.flag("resource", report));
    set(&mut oauth.assume_pkce, members.flag("assume_pkce", report));
    give(&mut oauth.metadata_url, members.text("metadata_url", report));
    check(&members, &oauth, report);
    Some(oauth)
}

fn check(members: &Section<'_>, oauth: &OAuth, report: &mut Report) {
    let fault = |name: &str, words: &str, report: &mut Report| {
        if let Some(entry) = members.get(name) {
            report.fault(&entry.key, words);
        }
    };
    if oauth.client_id.is_none() {
        for name in ["client_secret", "private_key"] {
            fault(name, "needs 'client_id'", report);
        }
        fault(
            "auth_method",
            "needs 'client_id': a client that the gate registers has its own",
            report,
        );
    }
    if oauth.client_secret.is_some() {
        fault("private_key", "cannot be combined with 'client_secret'; keep one of them", report);
    }
    let has_secret = oauth.client_secret.is_some() || oauth.private_key.is_some();
    if oauth.grant == OAuthGrant::Machine && (oauth.client_id.is_none() || !has_secret) {
        let words =
            "\"client_credentials\" needs 'client_id' with 'client_secret' or 'private_key'";
        fault("grant", words, report);
    }
    if oauth.metadata_url.as_deref().is_some_and(|url| !is_http_url(url)) {
        fault("metadata_url", "expected an https URL", report);
    }
    let is_scope = |scope: &String| {
        let is_token = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        !scope.is_empty() && scope.bytes().all(is_token)
    };
    if !oauth.scopes.iter().all(is_scope) {
        fault("scopes", "a scope is one word: list several as several strings", report);
    }
}
