//! A client with its own process sees the tools that the server lists there, and learns why it could
//! not be started.

use std::path::Path;

use serde_json::json;
use testkit::client::{Client, able, answers, code, text};
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::stdio_client;
use testkit::upstream::{accepting_new, pids, scripted};

use crate::foreign::servers;

async fn names(client: &Client) -> Vec<String> {
    client.listed("tools/list").await
}

#[tokio::test]
async fn a_real_server_asks_the_client_that_called() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = servers::gate(|_| json!({"s": accepting_new(servers::everything())})).await;
    let stdio = stdio_client(gate.dir.path(), &["--server", "s"], able(), answers("first")).await;
    let http = gate.http_at_with("/mcp/s/s", able(), answers("second")).await;
    let plain = names(&gate.http_at("/mcp/s/s").await).await;
    for (who, client) in [("first", stdio), ("second", http)] {
        let sampled = client.call("trigger-sampling-request", json!({"prompt": "say"})).await;
        assert!(text(&sampled).contains(who), "{sampled}");
        let elicited = client.call("trigger-elicitation-request", json!({})).await;
        assert!(elicited.to_string().contains(who), "{elicited}");
        let own = names(&client).await;
        for asks in ["trigger-sampling-request", "trigger-elicitation-request", "get-roots-list"] {
            assert!(own.iter().any(|name| name == asks), "{who}: {own:?}");
            assert!(!plain.iter().any(|name| name == asks), "{plain:?}");
        }
    }
}

#[tokio::test]
async fn a_call_tries_once_to_open_a_connection_and_says_why_it_cannot() {
    let servers = |dir: &Path| {
        // Only the first process serves.
        let once = r#"echo $$ >> "$0/s.pids"; [ -e "$0/s" ] && { echo busy >&2; exit 3; }
            : > "$0/s"; exec "$@""#;
        let server = scripted(dir, "s", &json!([{"name": "pid", "x-do": {"work": {}}}]));
        json!({"s": {"command": "sh", "args": ["-c", once, dir, server["command"], server["args"][0]]}})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    let refused =
        gate.http_at_with("/mcp/s/s", able(), answers("me")).await.call("pid", json!({})).await;
    assert_eq!(code(&refused), "UPSTREAM_UNAVAILABLE", "{refused}");
    assert!(text(&refused).contains("exit status: 3)"), "{refused}");
    gate.log_line("exit status: 3); last output: busy").await;
    assert_eq!(pids(gate.dir.path(), "s").len(), 2, "the shared one, and one attempt");
    let listed = names(&gate.http_at_with("/mcp/s/s", able(), answers("me")).await).await;
    assert_eq!(listed, ["pid"], "what is there for all is there for a client without its own");
}
