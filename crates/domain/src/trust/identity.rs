//! The identity to which a server's approval is bound: how it is started or reached. Values of
//! environment variables and headers are excluded: a new token does not make a new server.

use serde_json::json;

use super::fingerprint::Fingerprint;
use crate::config::{ConfigTemplate, Transport};
use receipt::canonical;

const MARK: &str = "countersign: a server\n";

/// Returns a server's identity. Templates count as written, so the same config gives the same
/// identity on a machine with other variables.
pub fn identity(transport: &Transport) -> Fingerprint {
    let bound = match transport {
        Transport::Stdio { command, args, env, cwd, inherit_env } => {
            let mut bound = json!({
                "transport": "stdio",
                "command": command,
                "args": args.iter().map(ConfigTemplate::text).collect::<Vec<_>>(),
                "cwd": cwd,
                "env": names(env, str::to_owned),
            });
            // Left out where it is off, so that earlier approvals still hold.
            if *inherit_env {
                bound["inherit_env"] = true.into();
            }
            bound
        }
        Transport::Http { url, headers } => remote("http", url, headers),
        Transport::Sse { url, headers } => remote("sse", url, headers),
    };
    Fingerprint::marked(MARK, &canonical::value(&bound))
}

fn remote(
    transport: &str,
    url: &ConfigTemplate,
    headers: &[(String, ConfigTemplate)],
) -> serde_json::Value {
    // Header names are case-insensitive.
    let headers = names(headers, str::to_ascii_lowercase);
    json!({"transport": transport, "url": url.text(), "headers": headers})
}

fn names(pairs: &[(String, ConfigTemplate)], spelt: fn(&str) -> String) -> Vec<String> {
    let mut names: Vec<String> = pairs.iter().map(|(name, _)| spelt(name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> ConfigTemplate {
        ConfigTemplate::parse(text).unwrap()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, ConfigTemplate)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), template(value))).collect()
    }

    fn stdio(command: &str, args: &[&str], env: &[(&str, &str)], cwd: Option<&str>) -> Fingerprint {
        identity(&Transport::Stdio {
            command: command.to_owned(),
            args: args.iter().map(|arg| template(arg)).collect(),
            env: pairs(env),
            cwd: cwd.map(str::to_owned),
            inherit_env: false,
        })
    }

    fn http(url: &str, headers: &[(&str, &str)]) -> Fingerprint {
        identity(&Transport::Http { url: template(url), headers: pairs(headers) })
    }

    #[test]
    fn each_part_of_how_a_server_is_reached_counts() {
        let inheriting = Transport::Stdio {
            command: "npx".to_owned(),
            args: vec![template("a"), template("b")],
            env: Vec::new(),
            cwd: None,
            inherit_env: true,
        };
        let sse = Transport::Sse { url: template("https://a/mcp"), headers: Vec::new() };
        let all = [
            stdio("npx", &["a", "b"], &[], None),
            stdio("npx", &["a b"], &[], None),
            stdio("npx", &["b", "a"], &[], None),
            stdio("npx", &["a", "${env:B}"], &[], None),
            stdio("node", &["a", "b"], &[], None),
            stdio("npx", &["a", "b"], &[], Some("")),
            stdio("npx", &["a", "b"], &[], Some("/srv")),
            stdio("npx", &["a", "b"], &[("TOKEN", "x")], None),
            stdio("npx", &["a", "b"], &[("token", "x")], None),
            stdio("npx", &["a", "b"], &[("TOKEN", "x"), ("MODE", "y")], None),
            http("https://a/mcp", &[]),
            http("https://b/mcp", &[]),
            http("https://${env:HOST}/mcp", &[]),
            http("https://a/mcp", &[("Authorization", "x")]),
            identity(&sse),
            identity(&inheriting),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "{at}");
        }
    }

    #[test]
    fn the_form_stays_since_approvals_are_kept() {
        let form = r#"{"args":["-y","${env:P}"],"command":"npx","cwd":null,"env":["A","B"],"transport":"stdio"}"#;
        let got = stdio("npx", &["-y", "${env:P}"], &[("B", "1"), ("A", "2")], None);
        assert_eq!(got, Fingerprint::marked("countersign: a server\n", form));
        let form = r#"{"headers":["x-a"],"transport":"http","url":"https://a"}"#;
        let got = http("https://a", &[("X-A", "1")]);
        assert_eq!(got, Fingerprint::marked("countersign: a server\n", form));
    }

    #[test]
    fn values_and_their_order_do_not_count() {
        assert_eq!(
            stdio("npx", &[], &[("A", "1"), ("B", "2")], None),
            stdio("npx", &[], &[("B", "${env:C}"), ("A", "3")], None)
        );
        assert_eq!(
            http("https://a", &[("Authorization", "Bearer 1"), ("X-Team", "a")]),
            http("https://a", &[("x-team", "b"), ("authorization", "Bearer 2")])
        );
    }
}
