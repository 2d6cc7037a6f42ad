//! Agents that touch the same resource, from their calls to the response of `/contention`.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::Client;
use testkit::gate::Gate;
use testkit::upstream::scripted;

use crate::ledger::records_when;

fn tools() -> Value {
    json!([
        {"name": "get", "annotations": {"readOnlyHint": true}},
        {"name": "put", "annotations": {"destructiveHint": false}},
    ])
}

/// Starts a gate in front of two servers with the same tools.
async fn gate() -> Gate {
    let servers = |dir: &std::path::Path| json!({"one": scripted(dir, "one", &tools()), "two": scripted(dir, "two", &tools())});
    Gate::start(servers, json!({})).await
}

async fn get(client: &Client, server: &str, args: Value) {
    let answer = client.two_key_call("read", &format!("{server}:get"), args).await;
    assert_ne!(answer["isError"], true, "{answer}");
}

async fn put(client: &Client, server: &str, args: Value) {
    let answer = client.two_key_call("write", &format!("{server}:put"), args).await;
    assert_ne!(answer["isError"], true, "{answer}");
}

/// Returns `(kind, system, resource, from, to)` of every edge.
async fn edges(gate: &Gate, query: &str) -> Vec<(String, String, String, String, String)> {
    let path = format!("/api/v1/contention{query}");
    let (status, graph) = gate.rest(Method::GET, &path, None).await;
    assert_eq!(status, 200, "{graph}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let edges = graph["edges"].as_array().unwrap().iter();
    let mut edges: Vec<_> = edges
        .flat_map(|edge| {
            let resources = edge["resources"].as_array().unwrap().iter();
            resources.map(|resource| {
                (
                    text(&edge["kind"]),
                    text(&edge["system"]),
                    text(resource),
                    text(&edge["from"]),
                    text(&edge["to"]),
                )
            })
        })
        .collect();
    edges.sort();
    edges
}

#[tokio::test]
async fn agents_sharing_a_repository_table_or_url_are_in_contention() {
    let gate = gate().await;
    let (a, b) = (gate.http().await, gate.http().await);
    let repo = json!({"owner": "o", "repo": "r"});
    put(&a, "one", repo.clone()).await;
    put(&b, "one", repo).await;
    let table = json!({"table": "events", "database": "analytics"});
    get(&a, "one", table.clone()).await;
    put(&b, "one", table).await;
    get(&a, "one", json!({"url": "https://Example.com/x/"})).await;
    put(&b, "one", json!({"url": "https://me:pw@example.com:443/x?q=1"})).await;
    put(&a, "one", json!({"url": "https://example.com/x#f"})).await;
    // Two reads, or one agent alone, are not contention.
    get(&a, "one", json!({"path": "/read"})).await;
    get(&b, "one", json!({"path": "/read"})).await;
    put(&a, "one", json!({"path": "/mine"})).await;
    put(&a, "one", json!({"path": "/mine"})).await;
    let records = records_when(&gate.home(), |records| records.len() == 11).await;
    let agent = |n: usize| records[n]["agent_name"].as_str().unwrap().to_owned();
    let (a, b) = (agent(0), agent(1));
    assert_ne!(a, b);
    let found = edges(&gate, "").await;
    let has = |kind: &str, resource: &str, from: &str, to: &str| {
        let edge = (kind.into(), "one".into(), resource.into(), from.into(), to.into());
        assert!(found.contains(&edge), "{edge:?} is not among {found:#?}");
    };
    has("write-write", "o/r", &a, &b);
    has("read-write", "analytics.events", &a, &b);
    has("stale-read", "https://example.com/x", &a, &b);
    for (_, _, resource, ..) in &found {
        assert!(!matches!(resource.as_str(), "/read" | "/mine"), "{found:#?}");
    }
    let only = edges(&gate, "?kind=stale-read").await;
    assert!(only.iter().all(|edge| edge.0 == "stale-read") && !only.is_empty(), "{only:#?}");
}

#[tokio::test]
async fn tables_of_one_name_on_two_servers_are_two_tables() {
    let gate = gate().await;
    let (a, b) = (gate.http().await, gate.http().await);
    let table = json!({"table": "events"});
    put(&a, "one", table.clone()).await;
    put(&b, "two", table.clone()).await;
    records_when(&gate.home(), |records| records.len() == 2).await;
    assert_eq!(edges(&gate, "").await, []);
    put(&b, "one", table).await;
    records_when(&gate.home(), |records| records.len() == 3).await;
    let found = edges(&gate, "").await;
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((&*found[0].0, &*found[0].1, &*found[0].2), ("write-write", "one", "events"));
    assert_eq!(edges(&gate, "?system=two").await, []);
    let (status, answer) = gate.rest(Method::GET, "/api/v1/contention?kind=quarrel", None).await;
    assert_eq!(status, 400, "{answer}");
}
