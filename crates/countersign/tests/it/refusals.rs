//! Every error that a model can see on `/mcp`, as one golden file: each refusal names the parameter,
//! says what is expected and shows a correct call. Also the small mistakes in a call that the gate
//! accepts.

use std::path::Path;

use domain::Code;
use serde_json::{Value, json};
use testkit::client::{Client, code, text, two_keys};
use testkit::gate::{Gate, both};
use testkit::upstream::scripted;
use testkit::wait::eventually;

use crate::discovery::{STATUSES, gate_of_locks};
use crate::locks::{client_with, decisions, make_token};

/// The errors as they are. `UPDATE_GOLDEN=1` rewrites it.
const GOLDEN: &str = "tests/it/golden/refusals.txt";

fn tools(dir: &Path) -> Value {
    json!([
        {"name": "read_file", "description": "Reads a file", "annotations": {"readOnlyHint": true},
         "inputSchema": {"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "lines": {"type": "integer", "minimum": 1},
            "mode": {"enum": ["text", "binary"]}}, "additionalProperties": false}},
        {"name": "plain", "description": "Says nothing of itself"},
        {"name": "delete", "description": "Deletes", "annotations": {"destructiveHint": true}},
        {"name": "fails", "description": "Fails", "x-do": "error"},
        {"name": "hangs", "description": "Never ends", "x-do": {"hang": dir.join("never")}},
        {"name": "long", "description": "Says a lot", "x-do": {"text": 2500}},
        {"name": "locked", "description": "Is off"},
    ])
}

async fn gate() -> Gate {
    gate_with_limit(1000).await
}

/// Starts the same gate with another `tool_response_limit`.
async fn gate_with_limit(limit: u32) -> Gate {
    let servers = |dir: &Path| {
        let mut files = scripted(dir, "files", &tools(dir));
        files["disabled_tools"] = json!(["locked"]);
        files["call_timeout"] = "2s".into();
        json!({"files": files, "gone": {"command": "nothing-of-that-name"}})
    };
    let config = json!({"tool_response_limit": limit, "ledger": {"max_records": 1_000}});
    let gate = Gate::start(servers, config).await;
    gate.ready("files").await;
    gate.server_when("gone", |entry| entry["state"] == "error").await;
    gate
}

/// The calls of the gate's own tools, except the three that call a server's tool.
fn own_calls() -> Vec<(&'static str, Value)> {
    vec![
        ("retrieve_tools", json!({})),
        ("retrieve_tools", json!({"query": null})),
        ("retrieve_tools", json!({"query": ["read", "file"]})),
        ("retrieve_tools", json!({"qeury": "read a file"})),
        ("retrieve_tools", json!({"query": "x", "verbosity": 3})),
        ("retrieve_tools", json!({"query": "x", "limit": 0})),
        ("retrieve_tools", json!({"query": "x", "limit": 2.5})),
        ("retrieve_tools", json!({"query": "x", "limit": "many"})),
        ("retrieve_tools", json!({"query": "x", "detail": "some"})),
        ("retrieve_tools", json!({"query": "x", "read_only_only": "maybe"})),
        ("describe_tool", json!({})),
        ("describe_tool", json!({"tool_id": "files:plain"})),
        ("describe_tool", json!({"tool_ids": []})),
        ("describe_tool", json!({"tool_ids": ["a:b", "a:c", "a:d", "a:e", "a:f", "a:g"]})),
        ("describe_tool", json!({"tool_ids": {"name": "files:plain"}})),
        ("describe_tool", json!({"tool_ids": ["read_file"]})),
        ("describe_tool", json!({"tool_ids": ["files:raed_file", "files:locked"]})),
        ("describe_tool", json!({"tool_ids": ["files:plain", "files:nothing"]})),
        ("read_cache", json!({})),
        ("read_cache", json!({"key": "unknown"})),
        ("read_cache", json!({"key": "unknown", "offset": -1})),
        ("read_cache", json!({"key": "unknown", "limit": 0})),
        ("upstream_servers", json!({"operation": "restart", "name": "files"})),
        ("upstream_servers", json!({"operation": "get"})),
        ("upstream_servers", json!({"operation": "get", "name": "fils"})),
        ("call_tool", json!({"name": "files:plain"})),
        ("retrieve_tool", json!({"query": "x"})),
        ("read_file", json!({"path": "x"})),
    ]
}

/// The calls of a server's tool, through the variant.
fn calls() -> Vec<(&'static str, Value)> {
    let read = json!({"operation_type": "read"});
    let with = |args: Value| json!({"name": "files:read_file", "args": args, "intent": read});
    vec![
        ("call_tool_read", json!({})),
        ("call_tool_read", json!({"name": 7, "intent": read})),
        ("call_tool_read", json!({"name": "read_file", "intent": read})),
        ("call_tool_read", json!({"name": "files:raed_file", "intent": read})),
        ("call_tool_read", json!({"name": "nothing:nothing", "intent": read})),
        ("call_tool_read", json!({"name": "files:read_file", "path": "x", "intent": read})),
        ("call_tool_read", json!({"name": "files:read_file", "arguments": {}, "intent": read})),
        ("call_tool_read", json!({"name": "files:read_file", "args": {"path": "x"}})),
        ("call_tool_read", json!({"name": "files:read_file", "intent": "read"})),
        ("call_tool_read", json!({"name": "files:read_file", "intent": {}})),
        ("call_tool_read", json!({"name": "files:read_file", "intent_operation_type": "look"})),
        ("call_tool_read", json!({"name": "files:plain", "intent": {"operation_type": "write"}})),
        (
            "call_tool_read",
            json!({"name": "files:plain", "intent": read, "intent_operation_type": "write"}),
        ),
        (
            "call_tool_read",
            json!({"name": "files:plain", "intent": {"operation_type": "read", "data_sensitivity": "secret"}}),
        ),
        (
            "call_tool_read",
            json!({"name": "files:plain", "intent": {"operation_type": "read", "reason": ["a"]}}),
        ),
        (
            "call_tool_read",
            json!({"name": "files:plain", "intent": {"operation_type": "read", "reason": "x".repeat(1001)}}),
        ),
        ("call_tool_read", with(json!([1]))),
        ("call_tool_read", with(json!("{\"path\": \"x\""))),
        ("call_tool_read", with(json!({}))),
        ("call_tool_read", with(json!({"path": 7}))),
        ("call_tool_read", with(json!({"path": "x", "lines": 0, "mode": "hex", "depth": 1}))),
        ("call_tool_read", json!({"name": "files:delete", "intent": read})),
        ("call_tool_read", json!({"name": "files:locked", "intent": read})),
        ("call_tool_read", json!({"name": "files:fails", "intent": read})),
        ("call_tool_read", json!({"name": "files:hangs", "intent": read})),
        ("call_tool_read", json!({"name": "gone:tool", "intent": read})),
    ]
}

/// Makes a call, and formats it with its answer.
async fn shown(client: &Client, tool: &str, arguments: &Value) -> String {
    formatted(tool, arguments, &client.call(tool, arguments.clone()).await)
}

/// Formats a call and its answer; the structured content follows the text where there is some.
fn formatted(tool: &str, arguments: &Value, result: &Value) -> String {
    let mut words = arguments.to_string();
    if words.len() > 300 {
        words = words.replace(&"x".repeat(1001), "x…");
    }
    let mut shown = format!("$ {tool} {words}\n{}\n", text(result));
    if result["isError"] == true {
        let error = testkit::client::refusal(result);
        let mut details = error["details"].clone();
        if details.get("timeout_ms").is_some() {
            // The time that was left when the call was sent.
            details["timeout_ms"] = 2000.into();
        }
        shown += &format!("[{}] {details}\n", error["code"].as_str().unwrap());
    }
    shown + "\n"
}

/// Reports whether a code belongs to HTTP, people's decisions or workflows, and so never is the
/// answer to a call on `/mcp`.
fn is_elsewhere(code: Code) -> bool {
    use Code::*;
    let elsewhere = [
        Unauthorized,
        Forbidden,
        Conflict,
        LedgerIncomplete,
        SecretsUnavailable,
        SignInFailed,
        ReviewChanged,
        InvalidRequest,
        PayloadTooLarge,
        RequestTimeout,
        UnsupportedMediaType,
        MethodNotAllowed,
        AgentFailed,
        CommandFailed,
        OperationFailed,
        AgentBypassed,
        AgentLimit,
        RunNotResumable,
        AgentNotIsolated,
    ];
    elsewhere.contains(&code) || code.as_str().starts_with("USER.")
}

/// The refusal of a tool for each reason that it may be locked.
async fn locks() -> String {
    let gate = gate_of_locks().await;
    let client = gate.http().await;
    let mut seen = String::new();
    for (server, _) in STATUSES {
        let call = json!({"name": format!("{server}:{server}_pick"),
            "intent": {"operation_type": "write"}});
        seen += &shown(&client, "call_tool_write", &call).await;
    }
    seen
}

/// The refusal of a change while another process holds the ledger.
async fn unrecorded() -> String {
    let gate = Gate::scripted(json!([{"name": "plain"}])).await;
    gate.ready("s").await;
    let client = gate.http().await;
    let ledger = rusqlite::Connection::open(gate.home().join("ledger.db")).unwrap();
    ledger.busy_timeout(testkit::client::PATIENCE).unwrap();
    ledger.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let write = json!({"name": "s:plain", "intent": {"operation_type": "write"}});
    shown(&client, "call_tool_write", &write).await
}

/// The refusal of a token whose running calls take up its share.
async fn too_fast() -> String {
    let gate =
        Gate::start(|dir| json!({"files": scripted(dir, "files", &tools(dir))}), json!({})).await;
    gate.ready("files").await;
    let client = gate.http().await;
    let large = json!({"text": "x".repeat(8 << 20)});
    let calls = (0..4).map(|_| {
        Box::pin(client.request("tools/call", two_keys("read", "files:hangs", large.clone())))
    });
    let (answer, ..) = futures_util::future::select_all(calls).await;
    let short = json!({"name": "files:hangs", "args": {"text": "x…"}});
    formatted("call_tool_read", &short, &answer.unwrap())
}

/// The failures of calls whose answers are too large, or none.
async fn unusable() -> String {
    let gate = Gate::scripted(json!([
        {"name": "vast", "x-do": {"text": 17 << 20}},
        {"name": "nothing", "x-do": {"return": "null"}},
        {"name": "look", "x-do": {"return": "null"}, "annotations": {"readOnlyHint": true}},
    ]))
    .await;
    gate.ready("s").await;
    let client = gate.http().await;
    let mut seen = String::new();
    for tool in ["s:vast", "s:nothing", "s:look"] {
        let read = json!({"name": tool, "intent": {"operation_type": "read"}});
        seen += &shown(&client, "call_tool_read", &read).await;
    }
    seen
}

/// The answers to a call that the end of the gate interrupts, and to one that comes later.
async fn shutdown() -> String {
    let servers = |dir: &Path| {
        let work = json!({"work": {"log": dir.join("log"), "until": dir.join("never")}});
        json!({"s": scripted(dir, "s", &json!([{"name": "works", "x-do": work}]))})
    };
    let gate = Gate::start(servers, json!({"shutdown_timeout": "2s"})).await;
    gate.ready("s").await;
    let (client, log) = (gate.http().await, gate.dir.path().join("log"));
    let call = json!({"name": "s:works", "intent": {"operation_type": "write"}});
    let later = async {
        eventually(|| async { log.exists().then_some(()) }).await;
        let ending = tokio::spawn(gate.stop());
        let refused = eventually(|| async {
            let answer = client.two_key_call("write", "s:none", json!({})).await;
            (code(&answer) == "SHUTTING_DOWN").then_some(answer)
        })
        .await;
        ending.await.unwrap();
        refused
    };
    let (interrupted, later) = tokio::join!(client.call("call_tool_write", call.clone()), later);
    formatted("call_tool_write", &call, &interrupted) + &formatted("call_tool_write", &call, &later)
}

#[tokio::test]
async fn every_error_that_a_model_can_see_matches_the_golden_file() {
    let mut gate = gate().await;
    let client = gate.http().await;
    let mut seen = String::new();
    for (tool, arguments) in own_calls().into_iter().chain(calls()) {
        seen += &shown(&client, tool, &arguments).await;
    }
    make_token(&decisions(&gate), "reader", &json!({"operations": ["read"]}));
    let reader = client_with(&gate, "reader", "/mcp").await;
    let write = json!({"name": "files:plain", "intent": {"operation_type": "write"}});
    seen += &shown(&reader, "call_tool_write", &write).await;
    seen += &over_its_share(&mut gate).await;
    seen += &locks().await;
    seen += &unrecorded().await;
    seen += &too_fast().await;
    seen += &unusable().await;
    seen += &shutdown().await;
    for word in ["serde", " at line ", "column", "invalid type", "missing field", "EOF"] {
        assert!(!seen.contains(word), "{word}: {seen}");
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(GOLDEN, &seen).unwrap();
    }
    for code in Code::ALL.iter().filter(|code| !is_elsewhere(**code)) {
        assert!(seen.contains(&format!("\n[{code}] ")), "{code} is missing");
    }
    let known = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    for (seen, known) in seen.split("\n\n$ ").zip(known.split("\n\n$ ")) {
        assert_eq!(seen, known, "if it is meant, run with UPDATE_GOLDEN=1");
    }
    assert_eq!(seen, known, "if it is meant, run with UPDATE_GOLDEN=1");
}

/// Returns the refusal of a token that has filled the ledger within a day.
async fn over_its_share(gate: &mut Gate) -> String {
    gate.end().await;
    crate::retention::fill(&gate.home(), "agent-token", 1_100);
    gate.restart().await;
    let client = gate.http().await;
    let call = json!({"name": "files:plain", "intent": {"operation_type": "write"}});
    crate::retention::refused(&client, "call_tool_write", call.clone()).await;
    shown(&client, "call_tool_write", &call).await
}

#[tokio::test]
async fn values_with_one_meaning_are_accepted() {
    let gate = gate().await;
    let file = json!({"path": "x"});
    let intent = json!({"operation_type": "read"});
    let cases = [
        ("retrieve_tools", json!({"query": "file", "limit": 5.0, "detail": null})),
        ("retrieve_tools", json!({"query": "file", "limit": "5", "include_disabled": "true"})),
        ("retrieve_tools", json!({"query": "file", "limit": null, "read_only_only": null})),
        ("describe_tool", json!({"tool_ids": "files:plain"})),
        ("describe_tool", json!({"tool_ids": "[\"files:plain\"]"})),
        ("upstream_servers", json!({"operation": null, "name": null})),
        ("call_tool_read", json!({"name": "files:read_file", "args": file, "intent": intent})),
        (
            "call_tool_read",
            json!({"name": "files:read_file", "args": file.to_string(), "intent": intent}),
        ),
        (
            "call_tool_read",
            json!({"name": "files:read_file", "args": file, "intent": intent.to_string()}),
        ),
        (
            "call_tool_read",
            json!({"name": "files:read_file", "args": file, "args_json": null, "intent": null,
                   "intent_operation_type": "read", "intent_reason": null}),
        ),
    ];
    for (door, client) in both(&gate).await {
        for (tool, arguments) in &cases {
            let result = client.call(tool, arguments.clone()).await;
            assert_ne!(result["isError"], true, "{door} {tool} {arguments}: {result}");
        }
    }
}

#[tokio::test]
async fn smoke_describe_tool_answers_each_id_for_itself() {
    let gate = gate_with_limit(20_000).await;
    let client = gate.http().await;
    let ids = ["files:plain", "files:nothing", "files:locked", "plain", "files:delete"];
    let result = client.call("describe_tool", json!({"tool_ids": ids})).await;
    assert_ne!(result["isError"], true, "{result}");
    let answer: Value = serde_json::from_str(text(&result)).unwrap();
    let entries = answer["tools"].as_array().unwrap();
    let names: Vec<&str> = entries.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names, ids);
    let codes: Vec<Option<&str>> =
        entries.iter().map(|entry| entry["error"]["code"].as_str()).collect();
    let expected =
        [None, Some("TOOL_NOT_FOUND"), Some("TOOL_BLOCKED"), Some("INVALID_ARGUMENTS"), None];
    assert_eq!(codes, expected, "{answer}");
    assert!(entries[1].get("inputSchema").is_none() && entries[2].get("description").is_none());
    let failed = client.call("describe_tool", json!({"tool_ids": ids[1..4]})).await;
    assert_eq!(failed["isError"], true, "{failed}");
    assert_eq!(testkit::client::refusal(&failed)["code"], "TOOL_NOT_FOUND");
    let answer: Value = serde_json::from_str(text(&failed)).unwrap();
    assert_eq!(answer["tools"].as_array().unwrap(), &entries[1..4]);
}
