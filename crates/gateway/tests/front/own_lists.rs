//! A client with its own connection sees the tools that the server lists on that connection, and can
//! call them; other clients see the list for all.

use serde_json::{Value, json};
use testkit::client::{Client, code, text};
use testkit::wait::eventually;

use crate::gate::{DOORS, Gate};
use crate::offer::TOOLS_CHANGED;
use crate::server::Server;

/// Returns one tool for every client, and two for clients that accept requests.
fn tools() -> Value {
    json!([
        {"name": "pid", "x-do": {"work": {}}},
        {"name": "sample", "description": "Samples a model", "x-needs": "sampling",
         "x-do": {"ask": "sampling/createMessage"}},
        {"name": "rename", "x-needs": "roots", "x-do": {"become": [{"name": "renamed"}]}},
    ])
}

async fn gate() -> (Gate, Server) {
    let server = Server::scripted(tools()).accepting_new();
    (Gate::of(&server).await, server)
}

async fn names(client: &Client) -> Vec<String> {
    client.listed("tools/list").await
}

/// Returns how often a client has been told of changed tools, after all that was sent so far.
async fn changes(client: &Client) -> usize {
    client.request("ping", json!({})).await.unwrap();
    client.told(TOOLS_CHANGED).len()
}

#[tokio::test]
async fn each_client_lists_and_calls_what_its_own_connection_offers() {
    let (gate, _) = gate().await;
    for door in DOORS {
        let client = gate.able_at(door, "/mcp/s/s", "me").await;
        assert_eq!(names(&client).await, ["pid", "sample", "rename"], "{door:?}");
        assert_eq!(changes(&client).await, 0, "what it was shown is no news");
        let sampled = client.call("sample", json!({})).await;
        assert!(text(&sampled).contains(r#""model":"me""#), "{sampled}");
    }
    let unlisted = gate.able("/mcp/s/s", "me").await.call("sample", json!({})).await;
    assert!(text(&unlisted).contains(r#""model":"me""#), "a call needs no list before: {unlisted}");
    for (door, client) in gate.doors("/mcp/s/s").await {
        assert_eq!(names(&client).await, ["pid"], "{door:?}");
        let unknown = client.refused("tools/call", json!({"name": "sample"})).await;
        assert!(unknown.message.contains("unknown tool: sample"), "{unknown:?}");
    }
    let listed = gate.server("s").listing.tools().len();
    assert_eq!(listed, 1, "the operator sees what is there for all");
}

#[tokio::test]
async fn a_client_of_all_servers_lists_what_is_there_for_its_capabilities_from_the_start() {
    let [s, t] = [(); 2].map(|()| {
        let tools = json!([
            {"name": "pid", "x-do": {"work": {}}},
            {"name": "sample", "x-needs": "sampling", "x-do": {"ask": "sampling/createMessage"}},
        ]);
        Server::scripted(tools).accepting_new()
    });
    let gate = Gate::start(&[("s", &s), ("t", &t)], json!({})).await;
    let (able, plain) = (gate.able("/mcp/all", "me").await, gate.client("/mcp/all").await);
    let expected = ["s__pid", "s__sample", "t__pid", "t__sample"];
    assert_eq!(names(&able).await, expected);
    assert_eq!(names(&plain).await, ["s__pid", "t__pid"]);
    assert_eq!(names(&able).await, expected);
    able.request("ping", json!({})).await.unwrap();
    assert!(able.notices.lock().unwrap().is_empty(), "what it was shown is no news");
    assert_eq!(s.opened(), 2, "the shared one, and its own");
    let called = gate.able("/mcp/all", "me").await.call("t__sample", json!({})).await;
    assert!(text(&called).contains(r#""model":"me""#), "a call needs no list before: {called}");
}

#[tokio::test]
async fn extensions_of_a_client_reach_the_server() {
    let server = Server::scripted(json!([{"name": "plain"},
        {"name": "app", "x-needs": "extensions"}, {"name": "lab", "x-needs": "experimental"}]));
    let gate = Gate::of(&server.accepting_new()).await;
    for (capabilities, expected) in [
        (json!({}), ["plain"].as_slice()),
        (json!({"extensions": {}, "experimental": {}}), &["plain"]),
        (json!({"extensions": {"ui": {"n": 1}}}), &["plain", "app"]),
        (json!({"experimental": {"x": {}}}), &["plain", "lab"]),
    ] {
        for door in DOORS {
            let client = gate.client_at(door, "/mcp/s/s", capabilities.clone(), vec![]).await;
            assert_eq!(names(&client).await, expected, "{door:?} {capabilities}");
        }
    }
}

#[tokio::test]
async fn a_search_finds_what_the_agents_own_connection_offers() {
    let (gate, _) = gate().await;
    let agent = gate.able("/mcp", "me").await;
    let found = async || {
        let found = agent.document("retrieve_tools", json!({"query": "sample a model"})).await;
        found["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "s:sample")
    };
    assert!(!found().await);
    agent.two_key_call("write", "s:pid", json!({})).await;
    assert!(found().await);
    let described = agent.document("describe_tool", json!({"tool_ids": ["s:sample"]})).await;
    assert_eq!(described["tools"][0]["name"], "s:sample", "{described}");
    let sampled = agent.two_key_call("write", "s:sample", json!({})).await;
    assert!(text(&sampled).contains(r#""model":"me""#), "{sampled}");
}

#[tokio::test]
async fn a_change_of_an_own_list_is_announced_to_its_client_alone() {
    let (gate, _) = gate().await;
    for door in DOORS {
        let client = gate.able_at(door, "/mcp/s/s", "me").await;
        let other = gate.able_at(door, "/mcp/s/s", "other").await;
        assert_eq!(names(&other).await.len(), 3);
        assert_eq!(names(&client).await.len(), 3);
        client.call("rename", json!({})).await;
        client.told_when(TOOLS_CHANGED, 1).await;
        assert_eq!(names(&client).await, ["renamed"], "{door:?}");
        assert_ne!(client.call("renamed", json!({})).await["isError"], true);
        assert_eq!(changes(&client).await, 1, "{door:?}");
        assert_eq!(names(&other).await.len(), 3, "{door:?}");
        assert_eq!(changes(&other).await, 0, "{door:?}");
    }
}

#[tokio::test]
async fn locks_hold_for_a_clients_own_list_too() {
    let some = Server::scripted(tools()).accepting_new();
    let some = some.with("disabled_tools", json!(["sample"]));
    let quarantined = Server::scripted(tools()).with("quarantined", true);
    let servers = [("some", &some), ("quarantined", &quarantined)];
    let gate = Gate::start(&servers, json!({})).await;
    let client = gate.able("/mcp/s/some", "me").await;
    assert_eq!(names(&client).await, ["pid", "rename"]);
    assert_eq!(code(&client.call("sample", json!({})).await), "TOOL_BLOCKED");
    let client = gate.able("/mcp/s/quarantined", "me").await;
    assert_eq!(names(&client).await, [""; 0]);
    assert_eq!(code(&client.call("sample", json!({})).await), "TOOL_BLOCKED");
    assert_eq!(quarantined.opened(), 1, "no client gets its own connection");
    // A later rule applies as well.
    let client = gate.able("/mcp/s/some", "me").await;
    assert_eq!(names(&client).await, ["pid", "rename"]);
    let some = some.with("disabled_tools", json!(["rename"]));
    gate.reconfigure(&[("some", &some), ("quarantined", &quarantined)], json!({})).await;
    client.told_when(TOOLS_CHANGED, 1).await;
    assert_eq!(names(&client).await, ["pid", "sample"]);
}

#[tokio::test]
async fn an_own_list_survives_its_connection_until_the_next_one_lists() {
    let (gate, server) = gate().await;
    let client = gate.able("/mcp/s/s", "me").await;
    assert_eq!(names(&client).await.len(), 3);
    let own = server.opened();
    server.peer(own).close("the server is gone");
    eventually(|| async {
        assert_eq!(names(&client).await.len(), 3);
        (server.opened() > own).then_some(())
    })
    .await;
    let sampled = client.call("sample", json!({})).await;
    assert!(text(&sampled).contains(r#""model":"me""#), "{sampled}");
    assert_eq!(server.opened(), own + 1, "the list has opened it");
}

#[tokio::test]
async fn a_replaced_servers_lists_are_forgotten() {
    let (gate, _) = gate().await;
    let client = gate.able("/mcp/s/s", "me").await;
    assert_eq!(names(&client).await.len(), 3);
    let after = json!([{"name": "after"}, {"name": "asks", "x-needs": "elicitation"}]);
    let new = Server::scripted(after).accepting_new();
    gate.reconfigure(&[("s", &new)], json!({})).await;
    client.told_when(TOOLS_CHANGED, 1).await;
    eventually(|| async { (names(&client).await == ["after", "asks"]).then_some(()) }).await;
}
