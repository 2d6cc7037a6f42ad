//! `oauth` of a server: how the gate signs in to it. Its secrets never appear in messages.

use super::declare::section;
use super::kind::{Choice, FLAG, Optional, TEXT, TEXTS};
use super::members::Members;
use super::report::Report;
use super::template::ConfigTemplate;
use super::transport::is_http_url;
use super::values::TEMPLATE;
use crate::choice;

section! {
    /// The settings of the sign-in to a server. Without any, the gate finds everything out itself.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OAuth at "mcpServers.<name>.oauth", then(check) {
        Reconnect client_id: Option<String> = None, Optional(TEXT),
            "ID of a registered client, or the https URL of its metadata document; if absent, the gate \
             registers one.";
        Reconnect client_secret: Option<ConfigTemplate> = None, Optional(TEMPLATE),
            "The secret of that client.";
        Reconnect private_key: Option<ConfigTemplate> = None, Optional(TEMPLATE),
            "A private key of that client (PKCS#8 in PEM, P-256 or RSA), for `private_key_jwt`.";
        Reconnect auth_method: Option<TokenAuth> = None, Optional(Choice),
            "How that client authenticates; if absent, as the authorization server supports it.";
        Reconnect scopes: Vec<String> = Vec::new(), TEXTS,
            "Scopes to request; if absent, those that the server advertises.";
        Reconnect grant: OAuthGrant = OAuthGrant::Person, Choice,
            "Whether a person signs in, or the gate itself with the secret or key of the client.";
        Reconnect metadata_url: Option<String> = None, Optional(TEXT),
            "Metadata of the authorization server, where the server does not name it.";
        // As RFC 8707 has it.
        Reconnect resource: bool = true, FLAG,
            "Names the server in requests for tokens; some authorization servers reject that.";
        Reconnect assume_pkce: bool = false, FLAG,
            "The authorization server supports PKCE though its metadata does not say so.";
    }
}

choice! {
    /// The party that a token is issued to.
    OAuthGrant {
        /// A person, who signs in.
        Person = "authorization_code",
        /// The gate itself.
        Machine = "client_credentials",
    }
}

choice! {
    /// The way to send a client's secret.
    TokenAuth {
        None = "none",
        Basic = "client_secret_basic",
        Post = "client_secret_post",
    }
}

impl OAuth {
    /// Returns every text that may have placeholders.
    pub fn templates(&self) -> impl Iterator<Item = &ConfigTemplate> {
        self.client_secret.iter().chain(&self.private_key)
    }

    /// Makes text of all placeholders. Reports if there were any.
    pub(super) fn take_literally(&mut self) -> bool {
        let templates = self.client_secret.iter_mut().chain(&mut self.private_key);
        templates.fold(false, |any, template| template.take_literally() | any)
    }
}

fn check(oauth: &OAuth, members: &Members<'_>, report: &mut Report) {
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
