//! Attacks by an agent that holds a valid token.

mod claims;
pub(super) mod display;
mod share;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::gate::Gate;
use testkit::program::program;
use testkit::wire::Wire;

/// Opens a session of a client with this name, and calls a tool.
pub(super) async fn call_as(gate: &Gate, client: &str, tool: &str) -> Value {
    let mut command = program(gate.dir.path());
    command.args(["mcp", "--server", "s"]);
    let mut wire = Wire::open(command);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                       "clientInfo": {"name": client, "version": "1"}});
    wire.ask("hello", "initialize", hello).await;
    wire.call("call", tool, json!({})).await
}

#[tokio::test]
async fn oversized_client_names_push_no_record_out_of_the_ledger() {
    let config = json!({"ledger": {"max_size_mb": 16}});
    let tools = json!([{"name": "t"}]);
    let servers =
        |dir: &std::path::Path| json!({"s": testkit::upstream::scripted(dir, "s", &tools)});
    let mut gate = Gate::start(servers, config).await;
    for _ in 0..20 {
        assert!(call_as(&gate, "honest", "t").await["result"].is_object());
    }
    let long = "x".repeat(5_000_000);
    for _ in 0..6 {
        assert!(call_as(&gate, &long, "t").await["result"].is_object());
    }
    // The next start applies retention.
    gate.end().await;
    gate.restart().await;
    let (_, records) = gate.rest(Method::GET, "/api/v1/activity?tool=t&limit=100", None).await;
    let records = records["activities"].as_array().unwrap();
    let clients = records.iter().map(|record| record["agent"]["client"].as_str().unwrap());
    assert_eq!(clients.clone().filter(|client| *client == "honest").count(), 20);
    assert_eq!(clients.map(str::len).max(), Some(256));
}

#[tokio::test]
async fn an_oversized_tool_name_is_refused_and_not_repeated() {
    let gate = Gate::scripted(json!([{"name": "t"}])).await;
    let refused = call_as(&gate, "honest", &"x".repeat(5_000_000)).await.to_string();
    assert!(refused.contains("name of 5000000 bytes") && refused.len() < 300, "{refused:.300}");
}
