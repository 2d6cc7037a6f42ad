//! The identity to which a server's approval is bound: everything that decides what is started or
//! reached. Values of environment variables and headers count as written, because a variable can
//! run code and a header can send a secret out.

use serde_json::{Value, json};

use super::fingerprint::Fingerprint;
use crate::config::{ConfigTemplate, LoginScope, OAuth, ServerConfig, TokenAuth, TransportPart};
use receipt::canonical;

const MARK: &str = "countersign: a server\n";

const REVIEWED_MARK: &str = "countersign: a reviewed server\n";

/// The reason a server waits for approval, other than a person's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerChange {
    New,
    Changed,
    /// The pinned program is not the approved file.
    Program,
}

impl ServerChange {
    pub const ALL: [ServerChange; 3] =
        [ServerChange::New, ServerChange::Changed, ServerChange::Program];

    pub fn as_str(self) -> &'static str {
        match self {
            ServerChange::New => "new",
            ServerChange::Changed => "changed",
            ServerChange::Program => "program_changed",
        }
    }

    pub fn meaning(self) -> &'static str {
        match self {
            ServerChange::New => "nobody has approved this server yet",
            ServerChange::Changed => "its definition has changed since it was approved",
            ServerChange::Program => {
                "it is pinned, and its program is not the file that was approved"
            }
        }
    }
}

/// Returns a server's identity. Templates count as written, so the same config gives the same
/// identity on a machine with other variables. Settings at their defaults are left out, so that a
/// new setting leaves approvals valid.
pub fn identity(server: &ServerConfig) -> Fingerprint {
    let parts = server.transport.parts().into_iter();
    let mut bound: Value =
        parts.filter_map(|(name, part)| Some((name.to_owned(), written(part)?))).collect();
    if server.pin {
        bound["pin"] = true.into();
    }
    if let Some(oauth) = &server.oauth {
        bound["oauth"] = sign_in(oauth);
    }
    if server.login != LoginScope::Shared {
        bound["login"] = server.login.name().into();
    }
    Fingerprint::marked(MARK, &canonical::value(&bound))
}

/// Returns the fingerprint of everything about a server that a reviewer is shown: its identity, and
/// the file that its command starts.
pub fn reviewed(identity: &str, program: Option<&str>) -> Fingerprint {
    Fingerprint::marked(REVIEWED_MARK, &canonical::value(&json!([identity, program])))
}

/// Returns a part of a transport as written; `None` for a setting at its default.
fn written(part: TransportPart<'_>) -> Option<Value> {
    Some(match part {
        TransportPart::Text(text) => text.into(),
        TransportPart::OptionalText(text) => text.into(),
        TransportPart::Flag(false) => return None,
        TransportPart::Flag(true) => true.into(),
        TransportPart::Url(url) => url.text().into(),
        TransportPart::Arguments(args) => args.iter().map(ConfigTemplate::text).collect(),
        TransportPart::Variables(values) => json!(pairs(values, str::to_owned)),
        // Header names are case-insensitive.
        TransportPart::Headers(values) => json!(pairs(values, str::to_ascii_lowercase)),
    })
}

/// The values as written: they decide who gets the client's secret.
fn sign_in(oauth: &OAuth) -> Value {
    json!({
        "client_id": oauth.client_id,
        "client_secret": oauth.client_secret.as_ref().map(ConfigTemplate::text),
        "private_key": oauth.private_key.as_ref().map(ConfigTemplate::text),
        "auth_method": oauth.auth_method.map(TokenAuth::name),
        "scopes": oauth.scopes,
        "grant": oauth.grant.name(),
        "metadata_url": oauth.metadata_url,
        "resource": oauth.resource,
        "assume_pkce": oauth.assume_pkce,
    })
}

fn pairs(values: &[(String, ConfigTemplate)], spelt: fn(&str) -> String) -> Vec<(String, &str)> {
    let mut pairs: Vec<(String, &str)> =
        values.iter().map(|(name, value)| (spelt(name), value.text())).collect();
    pairs.sort_unstable();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{RemoteProtocol, RemoteTransport, StdioTransport, Transport};

    fn template(text: &str) -> ConfigTemplate {
        ConfigTemplate::parse(text).unwrap()
    }

    fn values(pairs: &[(&str, &str)]) -> Vec<(String, ConfigTemplate)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), template(value))).collect()
    }

    fn of(transport: Transport) -> Fingerprint {
        identity(&ServerConfig::new("s", transport))
    }

    fn stdio(command: &str, args: &[&str], env: &[(&str, &str)], cwd: Option<&str>) -> Fingerprint {
        of(Transport::Stdio(StdioTransport {
            command: command.to_owned(),
            args: args.iter().map(|arg| template(arg)).collect(),
            env: values(env),
            cwd: cwd.map(str::to_owned),
            inherit_env: false,
        }))
    }

    fn remote(protocol: RemoteProtocol, url: &str, headers: &[(&str, &str)]) -> Transport {
        let (url, headers) = (template(url), values(headers));
        Transport::Remote(RemoteTransport { protocol, url, headers })
    }

    fn http(url: &str, headers: &[(&str, &str)]) -> Fingerprint {
        of(remote(RemoteProtocol::Http, url, headers))
    }

    #[test]
    fn each_part_of_how_a_server_is_reached_counts() {
        let inheriting = Transport::Stdio(StdioTransport {
            command: "npx".to_owned(),
            args: vec![template("a"), template("b")],
            inherit_env: true,
            ..StdioTransport::default()
        });
        let sse = remote(RemoteProtocol::Sse, "https://a/mcp", &[]);
        let pinned = ServerConfig { pin: true, ..ServerConfig::new("s", Transport::stdio("npx")) };
        let signing_in = |client_secret: &str| {
            let https = remote(RemoteProtocol::Http, "https://a/mcp", &[]);
            let client_secret = Some(template(client_secret));
            let oauth = Some(OAuth { client_secret, ..OAuth::default() });
            identity(&ServerConfig { oauth, ..ServerConfig::new("s", https) })
        };
        let https = remote(RemoteProtocol::Http, "https://a/mcp", &[]);
        let per_token =
            ServerConfig { login: LoginScope::PerToken, ..ServerConfig::new("s", https) };
        let all = [
            identity(&per_token),
            signing_in("x"),
            signing_in("${env:AWS_SECRET_ACCESS_KEY}"),
            stdio("npx", &["a", "b"], &[], None),
            stdio("npx", &["a b"], &[], None),
            stdio("npx", &["b", "a"], &[], None),
            stdio("npx", &["a", "${env:B}"], &[], None),
            stdio("node", &["a", "b"], &[], None),
            stdio("npx", &["a", "b"], &[], Some("")),
            stdio("npx", &["a", "b"], &[], Some("/srv")),
            stdio("npx", &["a", "b"], &[("TOKEN", "x")], None),
            stdio("npx", &["a", "b"], &[("TOKEN", "y")], None),
            stdio("npx", &["a", "b"], &[("TOKEN", "${env:TOKEN}")], None),
            stdio("npx", &["a", "b"], &[("token", "x")], None),
            stdio("npx", &["a", "b"], &[("TOKEN", "x"), ("MODE", "y")], None),
            stdio("npx", &["a", "b"], &[("TOKEN", "y"), ("MODE", "x")], None),
            stdio("npx", &[], &[], None),
            identity(&pinned),
            http("https://a/mcp", &[]),
            http("https://b/mcp", &[]),
            http("https://${env:HOST}/mcp", &[]),
            http("https://a/mcp", &[("Authorization", "x")]),
            http("https://a/mcp", &[("Authorization", "${env:AWS_SECRET_ACCESS_KEY}")]),
            of(sse),
            of(inheriting),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "{at}");
        }
    }

    #[test]
    fn the_hashed_form_of_an_identity_is_stable() {
        for (form, got) in [
            (
                r#"{"args":["-y","${env:P}"],"command":"npx","cwd":null,"env":[["A","2"],["B","1"]],"transport":"stdio"}"#,
                stdio("npx", &["-y", "${env:P}"], &[("B", "1"), ("A", "2")], None),
            ),
            (
                r#"{"args":[],"command":"npx","cwd":null,"env":[],"transport":"stdio"}"#,
                stdio("npx", &[], &[], None),
            ),
            (
                r#"{"headers":[["x-a","1"]],"transport":"http","url":"https://a"}"#,
                http("https://a", &[("X-A", "1")]),
            ),
        ] {
            assert_eq!(got, Fingerprint::marked("countersign: a server\n", form), "{form}");
        }
    }

    #[test]
    fn the_order_of_values_does_not_count() {
        assert_eq!(
            stdio("npx", &[], &[("A", "1"), ("B", "2")], None),
            stdio("npx", &[], &[("B", "2"), ("A", "1")], None)
        );
        assert_eq!(
            http("https://a", &[("Authorization", "Bearer 1"), ("X-Team", "a")]),
            http("https://a", &[("x-team", "a"), ("authorization", "Bearer 1")])
        );
    }
}
