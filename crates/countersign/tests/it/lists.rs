//! Lists of tools that no server should send: enormous, ambiguous, costly to check. They are bounded,
//! omissions are reported, and other servers are unaffected.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::client::Client;
use testkit::gate::Gate;
use testkit::program::{run, stderr, stdout};
use testkit::upstream::scripted;
use testkit::wait::{eventually, eventually_within};

use crate::misbehaving::{in_state, memory_kb, server};

/// The maximum number of tools taken from one server.
const TOOLS_MAX: u64 = 100_000;

/// The list of maximum length takes seconds in a debug build.
const LONG_LIST_PATIENCE: Duration = Duration::from_secs(60);

async fn found(client: &Client, query: &str) -> Vec<String> {
    let found = client.document("retrieve_tools", json!({"query": query})).await;
    let tools = found["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn result(client: &Client, name: &str, args: &str) -> Value {
    let args: Value = serde_json::from_str(args).unwrap();
    client.two_key_call("write", name, args).await
}

#[tokio::test]
async fn a_server_may_list_as_many_tools_as_the_bound_and_no_more() {
    let servers = |dir: &Path| {
        let made = |count: u64| json!({"list": {"made": count, "page": 10_000}});
        json!({"most": scripted(dir, "most", &made(TOOLS_MAX)),
               "more": scripted(dir, "more", &made(TOOLS_MAX + 1)),
               "good": scripted(dir, "good", &json!([{"name": "t"}]))})
    };
    let gate = Gate::start(servers, json!({"connect_timeout": "60s"})).await;
    let client = gate.http().await;
    assert_eq!(client.code_of("write", "good:t").await, "ok", "while the others are still listing");
    let most = eventually_within(LONG_LIST_PATIENCE, || async {
        let entry = server(&client, "most").await;
        (entry["state"] == "ready").then_some(entry)
    })
    .await;
    assert_eq!(most["tool_count"], TOOLS_MAX);
    assert_eq!(found(&client, "made 99999").await[0], "most:made_99999");
    assert_eq!(client.code_of("write", "most:made_99999").await, "ok");
    let more = in_state(&client, "more", "error").await;
    let reason = "tools/list: more than 1000 pages or 100000 tools";
    assert!(more["error"].as_str().unwrap().contains(reason), "{more}");
    assert_eq!(client.code_of("write", "more:made_0").await, "UPSTREAM_UNAVAILABLE");
    let megabytes = memory_kb(gate.pid()) / 1024;
    assert!(megabytes < 400, "{megabytes} MB");
}

#[tokio::test]
async fn smoke_omitted_tools_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut tools = vec![
        json!({"name": "dele\u{200b}te"}),
        json!({"name": "twice", "description": "the first"}),
        json!({"name": "twice", "description": "the second"}),
        json!({"name": "slow", "execution": {"taskSupport": "required"}}),
        json!({"title": "no name"}),
        json!({"name": ["no text"]}),
        json!("no object"),
    ];
    for name in ["", " blank", "esc\u{1b}[31m", "line\nbreak", &"x".repeat(257)] {
        tools.push(json!({"name": name}));
    }
    let config = json!({"mcpServers": {"s": scripted(dir.path(), "s", &json!(tools))}});
    std::fs::write(dir.path().join("c.json"), config.to_string()).unwrap();
    let output = run(dir.path(), ["tools", "list", "-o", "json", "--config", "c.json"]).await;
    let list: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(list["total"], 2);
    let log = stderr(&output);
    for reason in [
        "tool 'twice' is listed twice; only the first entry is used",
        "tool 'slow' is left out: it can be called only as a task",
        "tool name is empty",
        "tool name ' blank' has leading or trailing spaces",
        r"tool name 'esc\u{1b}[31m' contains a control character",
        r"tool name 'line\nbreak' contains a control character",
        "tool name of 257 bytes is too long",
        "not a tool object: 'name' is missing",
        "not a tool object: name: ",
        "not a tool object: expected an object",
    ] {
        assert_eq!(log.matches(reason).count(), 1, "{reason}: {log}");
    }
    // For people, invisible characters are made visible.
    let table = stdout(&run(dir.path(), ["tools", "list", "--config", "c.json"]).await);
    assert!(!table.contains('\u{200b}') && table.contains("s:dele⟨U+200B⟩te"), "{table}");
}

/// A server whose schemas take long to check delays only its own callers, both while it waits for
/// approval and afterwards.
#[tokio::test]
async fn a_costly_schema_delays_only_its_own_callers() {
    let looking = |count: usize| {
        let patterns = vec![json!({"pattern": "(?=.*x)a"}); count];
        json!({"type": "object", "properties": {"a": {"allOf": patterns}}})
    };
    let annotations = json!({"destructiveHint": true});
    let tools = json!([
        {"name": "hang", "inputSchema": looking(400)},
        {"name": "slow", "inputSchema": looking(2)},
        {"name": "hinted", "inputSchema": looking(400), "annotations": annotations},
    ]);
    let servers = |dir: &Path| {
        let mut waiting = scripted(dir, "waiting", &tools);
        waiting["quarantined"] = true.into();
        json!({"waiting": waiting, "s": scripted(dir, "s", &tools),
               "quick": scripted(dir, "quick", &json!([{"name": "ok"}]))})
    };
    let mut gate = Gate::start(servers, json!({})).await;
    let client = gate.http().await;
    gate.server_when("waiting", |entry| entry["tool_count"] == 3).await;
    for server in ["s", "quick"] {
        gate.ready(server).await;
    }
    let arguments = json!({"a": "a".repeat(20_000)}).to_string();
    for (tool, status) in [
        ("waiting:hang", "server_quarantined"),
        ("waiting:slow", "server_quarantined"),
        ("waiting:hinted", "server_quarantined"),
        ("s:hang", "schema_too_costly"),
        ("s:hinted", "schema_too_costly"),
    ] {
        let calls = (0..4).map(|_| result(&client, tool, &arguments));
        for answer in futures_util::future::join_all(calls).await {
            let error = testkit::client::refusal(&answer);
            let found = (&error["code"], &error["details"]["status"]);
            assert_eq!(found, (&json!("TOOL_BLOCKED"), &json!(status)), "{tool}: {answer}");
        }
    }
    let slow = (0..4).map(|_| result(&client, "s:slow", &arguments));
    let slow = futures_util::future::join_all(slow);
    let others = async {
        for _ in 0..20 {
            assert_eq!(result(&client, "quick:ok", "{}").await["isError"], json!(null));
            let health = gate.rest(reqwest::Method::GET, "/healthz", None).await;
            assert_eq!(health.0, 200);
        }
    };
    let (answers, ()) = tokio::join!(slow, others);
    for answer in answers {
        let code = testkit::client::refusal(&answer)["code"].as_str().unwrap_or("ok");
        assert!(matches!(code, "ok" | "INVALID_ARGUMENTS"), "{answer}");
    }
    let (other, pid) = (gate.http().await, gate.pid().as_raw_nonzero());
    let under_way = tokio::spawn(async move { result(&other, "s:slow", &arguments).await });
    eventually(|| async { has_thread(pid.get(), "schema").then_some(()) }).await;
    assert_eq!(gate.end().await, Some(0));
    under_way.abort();
}

fn has_thread(pid: i32, name: &str) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.into_iter().any(|found| found.trim_end() == name)
}
