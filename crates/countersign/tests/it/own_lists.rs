//! A client with its own connection sees the tools that the server lists on that connection, and
//! can call them; other clients see the list for all.

use std::path::Path;

use serde_json::{Value, json};
use testkit::client::{Client, able, answers, text};
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::stdio_client;
use testkit::upstream::{accepting_new, counted, ended, pids, scripted};
use testkit::wait::eventually;

use crate::foreign::servers;
use crate::passthrough::{LIST_CHANGED, heard};

/// Returns one tool for every client, and two for clients that accept requests.
fn tools() -> Value {
    json!([
        {"name": "pid", "x-do": {"work": {}}},
        {"name": "sample", "description": "Samples a model", "x-needs": "sampling",
         "x-do": {"ask": "sampling/createMessage"}},
        {"name": "rename", "x-needs": "roots", "x-do": {"become": [{"name": "renamed"}]}},
    ])
}

async fn gate() -> Gate {
    let servers = |dir: &Path| json!({"s": accepting_new(counted(dir, "s", &tools()))});
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    gate
}

async fn able_at(gate: &Gate, view: &str) -> Client {
    gate.http_at_with(view, able(), answers("me")).await
}

async fn able_stdio(gate: &Gate) -> Client {
    stdio_client(gate.dir.path(), &["--server", "s"], able(), answers("me")).await
}

async fn names(client: &Client) -> Vec<String> {
    let list = client.request("tools/list", json!({})).await.unwrap();
    let names = list["tools"].as_array().unwrap().iter();
    names.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn has_heard_nothing(client: &Client) -> bool {
    client.request("ping", json!({})).await.unwrap();
    client.heard.lock().await.try_recv().is_err()
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
async fn each_client_lists_and_calls_what_its_own_connection_offers() {
    let gate = gate().await;
    for client in [able_at(&gate, "/mcp/s/s").await, able_stdio(&gate).await] {
        assert_eq!(names(&client).await, ["pid", "sample", "rename"]);
        assert!(has_heard_nothing(&client).await, "what it was shown is no news");
        let sampled = client.call("sample", json!({})).await;
        assert!(text(&sampled).contains(r#""model":"me""#), "{sampled}");
    }
    let unlisted = able_at(&gate, "/mcp/s/s").await.call("sample", json!({})).await;
    assert!(text(&unlisted).contains(r#""model":"me""#), "a call needs no list before: {unlisted}");
    for client in [gate.http_at("/mcp/s/s").await, gate.stdio_server("s").await] {
        assert_eq!(names(&client).await, ["pid"]);
        let params = json!({"name": "sample", "arguments": {}});
        let unknown = client.request("tools/call", params).await.unwrap_err();
        assert!(unknown.to_string().contains("unknown tool: sample"), "{unknown}");
    }
    let entry = gate.ready("s").await;
    assert_eq!(entry["tool_count"], 1, "the operator sees what is there for all");
}

#[tokio::test]
async fn a_search_finds_what_the_agents_own_connection_offers() {
    let gate = gate().await;
    let agent = able_at(&gate, "/mcp").await;
    let found = async || {
        let found = agent.document("retrieve_tools", json!({"query": "sample a model"})).await;
        found["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "s:sample")
    };
    assert!(!found().await);
    let pid = json!({"name": "s:pid", "intent": {"operation_type": "write"}});
    agent.call("call_tool_write", pid).await;
    assert!(found().await);
    let described = agent.document("describe_tool", json!({"tool_ids": ["s:sample"]})).await;
    assert_eq!(described["tools"][0]["name"], "s:sample", "{described}");
    let sample = json!({"name": "s:sample", "intent": {"operation_type": "write"}});
    assert_eq!(agent.document("call_tool_write", sample).await["model"], "me");
}

#[tokio::test]
async fn a_change_of_an_own_list_is_announced_to_its_client_alone() {
    let gate = gate().await;
    for client in [able_at(&gate, "/mcp/s/s").await, able_stdio(&gate).await] {
        let other = able_at(&gate, "/mcp/s/s").await;
        assert_eq!(names(&other).await.len(), 3);
        assert_eq!(names(&client).await.len(), 3);
        client.call("rename", json!({})).await;
        assert_eq!(heard(&client).await, LIST_CHANGED);
        assert_eq!(names(&client).await, ["renamed"]);
        assert_ne!(client.call("renamed", json!({})).await["isError"], true);
        assert!(has_heard_nothing(&client).await);
        assert_eq!(names(&other).await.len(), 3);
        assert!(has_heard_nothing(&other).await);
    }
}

#[tokio::test]
async fn locks_hold_for_a_clients_own_list_too() {
    let servers = |dir: &Path| {
        let mut some = accepting_new(counted(dir, "some", &tools()));
        some["disabled_tools"] = json!(["sample"]);
        let mut quarantined = counted(dir, "quarantined", &tools());
        quarantined["quarantined"] = true.into();
        json!({"some": some, "quarantined": quarantined})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("some").await;
    let client = able_at(&gate, "/mcp/s/some").await;
    assert_eq!(names(&client).await, ["pid", "rename"]);
    let refused = client.call("sample", json!({})).await;
    assert_eq!(testkit::client::refusal(&refused)["code"], "TOOL_BLOCKED", "{refused}");
    let client = able_at(&gate, "/mcp/s/quarantined").await;
    assert!(names(&client).await.is_empty());
    let refused = client.call("sample", json!({})).await;
    assert_eq!(testkit::client::refusal(&refused)["code"], "TOOL_BLOCKED", "{refused}");
    assert_eq!(pids(gate.dir.path(), "quarantined").len(), 1, "nobody gets a process of its own");
    // A later rule applies as well.
    let client = able_at(&gate, "/mcp/s/some").await;
    assert_eq!(names(&client).await, ["pid", "rename"]);
    gate.rewrite(|config| config["mcpServers"]["some"]["disabled_tools"] = json!(["rename"]));
    assert_eq!(heard(&client).await, LIST_CHANGED);
    assert_eq!(names(&client).await, ["pid", "sample"]);
}

#[tokio::test]
async fn an_own_list_survives_its_process_until_the_next_one_lists() {
    let gate = gate().await;
    let client = able_at(&gate, "/mcp/s/s").await;
    assert_eq!(names(&client).await.len(), 3);
    let own = *pids(gate.dir.path(), "s").last().unwrap();
    let pid = rustix::process::Pid::from_raw(own).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    ended(own).await;
    let next = eventually(|| async {
        assert_eq!(names(&client).await.len(), 3);
        pids(gate.dir.path(), "s").last().copied().filter(|pid| *pid != own)
    })
    .await;
    let sampled = client.call("sample", json!({})).await;
    assert!(text(&sampled).contains(r#""model":"me""#), "{sampled}");
    assert_eq!(*pids(gate.dir.path(), "s").last().unwrap(), next, "the list has opened it");
}

#[tokio::test]
async fn a_replaced_servers_lists_are_forgotten() {
    let gate = gate().await;
    let client = able_at(&gate, "/mcp/s/s").await;
    assert_eq!(names(&client).await.len(), 3);
    let after = json!([{"name": "after"}, {"name": "asks", "x-needs": "elicitation"}]);
    let new = accepting_new(scripted(gate.dir.path(), "new", &after));
    gate.rewrite(|config| config["mcpServers"]["s"] = new);
    assert_eq!(heard(&client).await, LIST_CHANGED);
    eventually(|| async { (names(&client).await == ["after", "asks"]).then_some(()) }).await;
}

#[tokio::test]
async fn a_call_tries_once_to_open_a_connection_and_says_why_it_cannot() {
    let servers = |dir: &Path| {
        // Only the first process serves.
        let once = r#"echo $$ >> "$0/s.pids"; [ -e "$0/s" ] && { echo busy >&2; exit 3; }
            : > "$0/s"; exec "$@""#;
        let server = scripted(dir, "s", &tools());
        json!({"s": {"command": "sh", "args": ["-c", once, dir, server["command"], server["args"][0]]}})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    let refused = able_at(&gate, "/mcp/s/s").await.call("pid", json!({})).await;
    assert_eq!(testkit::client::refusal(&refused)["code"], "UPSTREAM_UNAVAILABLE", "{refused}");
    assert!(text(&refused).contains("exit status: 3)"), "{refused}");
    gate.log_line("exit status: 3); last output: busy").await;
    assert_eq!(pids(gate.dir.path(), "s").len(), 2, "the shared one, and one attempt");
    let listed = names(&able_at(&gate, "/mcp/s/s").await).await;
    assert_eq!(listed, ["pid"], "what is there for all is there for a client without its own");
}
