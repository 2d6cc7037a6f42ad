//! The record of a call: agent, reason, target and outcome; and what it leaves out.

use std::path::Path;

use receipt::Hash;
use receipt::canonical::Digest;
use serde_json::{Value, json};
use testkit::client::{text, two_keys};
use testkit::gate::Gate;
use testkit::program::program;
use testkit::upstream::scripted;
use testkit::wire::Wire;

use crate::ledger::{record, records, records_when};
use crate::locks::{client_with, decisions, make_token};

const GITHUB_TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
const PASSWORD: &str = "correct-horse-battery";

fn tools() -> Value {
    // In two parts: definitions are stored, and the secret must not be in one.
    let (head, tail) = GITHUB_TOKEN.split_at(20);
    let leak = [
        format!(
            r#"{{"jsonrpc":"2.0","id":$id,"error":{{"code":-32000,"message":"bad token {head}"#
        ),
        format!(r#"{tail}"}}}}"#),
    ];
    json!([
        {"name": "read", "annotations": {"readOnlyHint": true}},
        {"name": "delete", "annotations": {"destructiveHint": true}},
        {"name": "plain"},
        {"name": "error", "x-do": "error"},
        {"name": "is_error", "x-do": "is_error"},
        {"name": "die", "x-do": "die"},
        {"name": "leak", "x-do": {"say": leak, "hang": true}},
        {"name": "long", "x-do": {"text": 70_000}},
        {"name": "huge", "x-do": {"text": 300_000}},
    ])
}

async fn gate(config: Value) -> Gate {
    Gate::start(|dir| json!({"s": scripted(dir, "s", &tools())}), config).await
}

/// Returns these members of a record.
fn part(record: &Value, names: &[&str]) -> Value {
    names.iter().map(|name| ((*name).to_owned(), record[*name].clone())).collect()
}

#[tokio::test]
async fn a_declared_intent_is_recorded_in_either_spelling() {
    let gate = gate(json!({})).await;
    let client = gate.http().await;
    let nested = json!({"name": "s:read", "intent": {"operation_type": "write",
        "data_sensitivity": "private", "reason": "to tidy up"}});
    client.call("call_tool_write", nested).await;
    let flat = json!({"name": "s:plain", "intent_operation_type": "write",
        "intent_data_sensitivity": "private", "intent_reason": "to tidy up"});
    client.call("call_tool_write", flat).await;
    for (tool, unverified) in [("read", 0), ("plain", 1)] {
        let record = record(&gate.home(), tool).await;
        let names = [
            "type",
            "tool_variant",
            "intent_type",
            "data_sensitivity",
            "reason",
            "effective_class",
            "unverified",
            "status",
            "error_code",
        ];
        let expected = json!({"type": "tool_call", "tool_variant": "call_tool_write",
            "intent_type": "write", "data_sensitivity": "private", "reason": "to tidy up",
            "effective_class": "write", "unverified": unverified, "status": "success",
            "error_code": null});
        assert_eq!(part(&record, &names), expected, "{tool}");
        let names = [
            "server",
            "tool",
            "tool_variant",
            "declared_class",
            "effective_class",
            "data_sensitivity",
            "reason",
        ];
        let expected = json!({"server": "s", "tool": tool, "tool_variant": "call_tool_write",
            "declared_class": "write", "effective_class": "write", "data_sensitivity": "private",
            "reason": "to tidy up"});
        assert_eq!(part(&record["runtime"], &names), expected, "{tool}");
    }
}

#[tokio::test]
async fn undeclared_sensitivity_is_unknown_and_plain_calls_have_no_intent() {
    let gate = gate(json!({})).await;
    let client = gate.http().await;
    client.two_key_call("read", "s:read", json!({})).await;
    let names = ["surface", "tool_variant", "intent_type", "data_sensitivity", "effective_class"];
    let expected = json!({"surface": "discovery", "tool_variant": "call_tool_read",
        "intent_type": "read", "data_sensitivity": "unknown", "effective_class": "read"});
    assert_eq!(part(&record(&gate.home(), "read").await, &names), expected);
    gate.http_at("/mcp/s/s").await.call("delete", json!({})).await;
    let expected = json!({"surface": "passthrough", "tool_variant": null, "intent_type": null,
        "data_sensitivity": null, "effective_class": "destructive"});
    assert_eq!(part(&record(&gate.home(), "delete").await, &names), expected);
}

#[tokio::test]
async fn warnings_and_the_stricter_class_are_recorded() {
    let gate = gate(json!({"intent_declaration": {"strict_server_validation": false}})).await;
    let client = gate.http().await;
    client.two_key_call("read", "s:delete", json!({})).await;
    let record = record(&gate.home(), "delete").await;
    assert_eq!(record["effective_class"], "destructive");
    assert_eq!(record["intent_type"], "read");
    let warnings: Value = serde_json::from_str(record["warnings"].as_str().unwrap()).unwrap();
    let expected =
        json!(["Tool 's:delete' is marked destructive by server, use call_tool_destructive"]);
    assert_eq!(warnings, expected);
    assert_eq!(record["action"]["risk_level"], "high");
}

#[tokio::test]
async fn smoke_caller_request_and_trace_are_recorded() {
    let gate = gate(json!({})).await;
    let mut command = program(gate.dir.path());
    command.arg("mcp");
    let mut wire = Wire::open(command);
    wire.greet().await;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let call = json!({"jsonrpc": "2.0", "id": "call-7", "method": "tools/call", "params": {
        "name": "call_tool_read",
        "arguments": {"name": "s:read", "intent": {"operation_type": "read"}},
        "_meta": {"claudecode/toolUseId": "toolu_01", "traceparent": format!("00-{trace}-b7ad6b7169203331-01")},
    }});
    wire.say(&call.to_string()).await;
    wire.answer("call-7").await;
    let record = record(&gate.home(), "read").await;
    assert_eq!(record["request_id"], "call-7");
    assert_eq!(record["action"]["idempotency_key"], "call-7");
    assert_eq!(record["receipt"]["credentialSubject"]["correlation_id"], "toolu_01");
    assert_eq!(record["trace_id"], trace);
    assert_eq!(record["runtime"]["trace_id"], trace);
    assert_eq!((&record["client"], &record["token"]), (&json!("wire"), &json!("agent-token")));
    let session = record["session_id"].as_str().unwrap();
    assert_eq!(record["receipt"]["issuer"]["session_id"], session);
    let tail = &session[session.len() - 8..];
    assert_eq!(record["agent_name"], format!("wire#{tail}"));
    assert_eq!(record["receipt"]["credentialSubject"]["principal"]["id"], "token:agent-token");
}

#[tokio::test]
async fn the_target_is_on_allowed_refused_and_failed_calls_alike() {
    let gate = gate(json!({})).await;
    let client = gate.http().await;
    let args = json!({"repo": "r", "owner": "o"});
    for (operation, tool) in [
        ("write", "plain"),
        ("read", "delete"),
        ("read", "error"),
        ("read", "is_error"),
        ("read", "die"),
    ] {
        client.two_key_call(operation, &format!("s:{tool}"), args.clone()).await;
    }
    for (tool, status, code, outcome) in [
        ("plain", "success", json!(null), "success"),
        ("delete", "blocked", json!("SERVER_MISMATCH"), "failure"),
        ("error", "error", json!("UPSTREAM_ERROR"), "failure"),
        ("is_error", "error", json!(null), "failure"),
        ("die", "unknown", json!("OUTCOME_UNKNOWN"), "failure"),
    ] {
        let record = record(&gate.home(), tool).await;
        assert_eq!((&record["status"], &record["error_code"]), (&json!(status), &code), "{record}");
        assert_eq!((&record["system"], &record["resource"]), (&json!("s"), &json!("o/r")));
        assert_eq!(record["action"]["target"], json!({"system": "s", "resource": "o/r"}));
        assert_eq!(record["outcome"]["status"], outcome, "{tool}");
        if let Some(code) = code.as_str() {
            let error = record["outcome"]["error"].as_str().unwrap();
            assert!(error.starts_with(&format!("{code}: ")), "{error}");
        }
    }
    let decision = record(&gate.home(), "delete").await;
    assert_eq!(decision["type"], "policy_decision");
    assert_eq!(decision["runtime"]["verdict"], "SERVER_MISMATCH");
}

/// A refused call has the class that it would have had, judged by trusted text.
#[tokio::test]
async fn refused_calls_are_recorded_with_their_effective_class() {
    let tools = json!([
        {"name": "mismatch", "annotations": {"destructiveHint": true}},
        {"name": "keys", "annotations": {"readOnlyHint": true}},
        {"name": "undeclared", "annotations": {"destructiveHint": true}},
        {"name": "locked", "annotations": {"destructiveHint": true}},
        {"name": "arguments", "inputSchema": {"type": "object", "required": ["id"]}},
        {"name": "changed", "annotations": {"readOnlyHint": true}},
        {"name": "grow", "x-do": {"become": [
            {"name": "changed", "description": "new", "annotations": {"destructiveHint": true}},
        ]}},
    ]);
    let servers = |dir: &Path| {
        let mut server = scripted(dir, "s", &tools);
        server["disabled_tools"] = json!(["locked"]);
        json!({"s": server})
    };
    let gate = Gate::start(servers, json!({})).await;
    let client = gate.http().await;
    let call = async |variant: &str, tool: &str, operation: Option<&str>| {
        let mut arguments = json!({"name": format!("s:{tool}")});
        if let Some(operation) = operation {
            arguments["intent"] = json!({"operation_type": operation});
        }
        client.call(&format!("call_tool_{variant}"), arguments).await;
    };
    for (variant, tool, operation) in [
        ("read", "mismatch", Some("read")),
        ("read", "keys", Some("write")),
        ("read", "undeclared", None),
        ("read", "locked", Some("read")),
        ("read", "arguments", Some("read")),
        ("write", "unknown", Some("write")),
        ("read", "contradictory", Some("write")),
        ("write", "grow", Some("write")),
    ] {
        call(variant, tool, operation).await;
    }
    gate.server_when("s", |entry| entry["pending"] == 1).await;
    call("write", "changed", Some("write")).await;
    for (tool, code, class, unverified) in [
        ("mismatch", "SERVER_MISMATCH", json!("destructive"), 0),
        ("keys", "INTENT_MISMATCH", json!("write"), 0),
        ("undeclared", "MISSING_INTENT", json!("destructive"), 0),
        ("locked", "TOOL_BLOCKED", json!("destructive"), 0),
        ("arguments", "INVALID_ARGUMENTS", json!("write"), 1),
        ("unknown", "TOOL_NOT_FOUND", json!("write"), 0),
        ("contradictory", "TOOL_NOT_FOUND", json!(null), 0),
        ("changed", "TOOL_BLOCKED", json!("write"), 0),
    ] {
        let record = record(&gate.home(), tool).await;
        let names = ["error_code", "effective_class", "unverified"];
        let expected =
            json!({"error_code": code, "effective_class": class, "unverified": unverified});
        assert_eq!(part(&record, &names), expected, "{tool}");
        let runtime = &record["runtime"];
        assert_eq!(runtime["effective_class"], class, "{tool}");
        assert_eq!(runtime["unverified"] == true, unverified == 1, "{tool}");
    }
    let path = "/api/v1/activity?status=blocked&effective_class=destructive";
    let (_, list) = gate.rest(reqwest::Method::GET, path, None).await;
    assert_eq!(list["total"], 3, "{list}");
}

/// Reports whether a text is in any file of the home, including the write-ahead log.
fn is_anywhere(home: &Path, text: &str) -> bool {
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.is_file() {
                let bytes = std::fs::read(entry).unwrap();
                if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                    return true;
                }
            }
        }
    }
    false
}

#[tokio::test]
async fn secrets_are_kept_only_where_the_operator_wants_them() {
    for payloads in ["redacted", "none", "full"] {
        let gate = gate(json!({"ledger": {"payloads": payloads}})).await;
        let client = gate.http().await;
        let args =
            json!({"password": PASSWORD, "note": format!("use {GITHUB_TOKEN}"), "path": "/x"});
        let answer = client.two_key_call("read", "s:read", args).await;
        assert!(text(&answer).contains(PASSWORD), "the agent gets what the server said");
        let record = record(&gate.home(), "read").await;
        for (side, kept) in [("arguments", "/x"), ("response", "x-block")] {
            match payloads {
                "none" => assert_eq!(record[side], Value::Null, "{record}"),
                _ => assert!(record[side].as_str().unwrap().contains(kept), "{record}"),
            }
        }
        assert!(record["arguments_bytes"].as_u64().unwrap() > 80, "{record}");
        for secret in [PASSWORD, GITHUB_TOKEN] {
            assert!(!record["receipt_json"].as_str().unwrap().contains(secret), "{payloads}");
            assert_eq!(
                is_anywhere(&gate.home(), secret),
                payloads == "full",
                "{payloads} {secret}"
            );
        }
    }
}

/// Receipts are signed for good: a part of a target cannot be removed from them later.
#[tokio::test]
async fn no_secret_becomes_a_target() {
    const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlc2lnbg";
    const ANTHROPIC: &str = "sk-ant-api03-0123456789abcdef";
    let gate = gate(json!({"redact": {"keys": ["resource"]}})).await;
    let client = gate.http().await;
    let hidden = json!("[redacted]");
    for (n, (args, secret, expected)) in [
        (json!({"key": ANTHROPIC}), ANTHROPIC, hidden.clone()),
        (
            json!({"path": format!("/d/r?access_token={GITHUB_TOKEN}")}),
            GITHUB_TOKEN,
            json!("/d/[redacted]"),
        ),
        (
            json!({"url": "https://hooks.slack.com/services/T01/B02/s3cr3tS3cr3tS3cr3t"}),
            "s3cr3tS3cr3tS3cr3t",
            json!("https://hooks.slack.com/[redacted]"),
        ),
        (json!({"database": "postgres://u:pw-hunter2@h/app", "table": "t"}), "hunter2", json!("t")),
        (json!({"path": "https://h/r?sig=hunter3"}), "sig=hunter3", json!("https://h/r")),
        (json!({"object": JWT}), JWT, hidden.clone()),
        // The operator says that all values of this key are secrets.
        (json!({"resource": "hunter4"}), "hunter4", hidden),
    ]
    .into_iter()
    .enumerate()
    {
        client.two_key_call("read", "s:read", args.clone()).await;
        let home = gate.home();
        let records = records_when(&home, |records| {
            records.len() == n + 1 && records.iter().all(|it| it["receipt"].is_object())
        });
        let record = records.await.pop().unwrap();
        assert_eq!(record["resource"], expected, "{args}: {record}");
        assert_eq!(record["action"]["target"]["resource"], expected, "{args}: {record}");
        let says_so = record["warnings"].as_str().unwrap_or_default().contains("target redacted");
        assert_eq!(says_so, expected.to_string().contains("[redacted]"), "{args}: {record}");
        let receipt = record["receipt_json"].as_str().unwrap();
        assert!(!receipt.contains(secret), "{args}: {receipt}");
    }
    // A share with a user, and a whole document.
    for (tool, args, expected) in [
        ("plain", json!({"path": "//user:pw@nas/share"}), json!("/[redacted]/share")),
        (
            "is_error",
            json!({"resource": "kind: Secret\ndata: {a: aHVudGVyMg==}"}),
            json!("[redacted]"),
        ),
    ] {
        client.two_key_call("read", &format!("s:{tool}"), args.clone()).await;
        let record = record(&gate.home(), tool).await;
        assert_eq!(record["action"]["target"]["resource"], expected, "{args}: {record}");
    }
    for secret in [ANTHROPIC, GITHUB_TOKEN, "s3cr3tS3cr3tS3cr3t", "pw-hunter2", JWT, "hunter4"] {
        assert!(!is_anywhere(&gate.home(), secret), "{secret}");
    }
}

#[tokio::test]
async fn no_secret_is_signed_in_a_name() {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({"mcpServers": {"s": scripted(dir.path(), "s", &tools())}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let mut command = program(dir.path());
    command.args(["mcp", "--config", "config.json"]);
    let mut wire = Wire::open(command);
    let greeting = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": format!("agent {GITHUB_TOKEN}"), "version": "1"}}});
    wire.say(&greeting.to_string()).await;
    wire.answer("hello").await;
    wire.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let meta = json!({"claudecode/toolUseId": format!("use {GITHUB_TOKEN}")});
    let mut params = two_keys("read", "s:read", json!({}));
    params["_meta"] = meta;
    let id = format!("id {GITHUB_TOKEN}");
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    wire.say(&call.to_string()).await;
    wire.answer(id).await;
    let missing = two_keys("read", &format!("s:{GITHUB_TOKEN}"), json!({}));
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": missing});
    wire.say(&call.to_string()).await;
    wire.answer(2).await;
    wire.close();
    wire.ended().await;
    let home = dir.path().join("home");
    let records = records(&home);
    assert_eq!(records.len(), 2, "{records:?}");
    assert!(records[0]["client"].as_str().unwrap().contains("agent [redacted"), "{}", records[0]);
    assert!(!is_anywhere(&home, GITHUB_TOKEN));
}

#[tokio::test]
async fn secrets_in_errors_and_reasons_are_redacted() {
    let gate = gate(json!({})).await;
    let client = gate.http().await;
    let call = json!({"name": "s:leak", "intent": {"operation_type": "read",
        "reason": format!("because of {GITHUB_TOKEN}")}});
    let answer = client.call("call_tool_read", call).await;
    assert!(text(&answer).contains(GITHUB_TOKEN), "{answer}");
    let record = record(&gate.home(), "leak").await;
    assert!(record["error_message"].as_str().unwrap().contains("bad token [redacted"), "{record}");
    assert!(record["outcome"]["error"].as_str().unwrap().contains("bad token [redacted"));
    assert!(record["reason"].as_str().unwrap().starts_with("because of [redacted"), "{record}");
    assert!(!is_anywhere(&gate.home(), GITHUB_TOKEN));
}

#[tokio::test]
async fn large_results_are_cut_and_hashed_as_they_are() {
    let gate = gate(json!({})).await;
    let client = gate.http_at("/mcp/s/s").await;
    let long = client.request_text("tools/call", r#"{"name":"long"}"#).await.unwrap();
    let huge = client.request_text("tools/call", r#"{"name":"huge"}"#).await.unwrap();
    for (tool, answer) in [("long", &long), ("huge", &huge)] {
        let record = record(&gate.home(), tool).await;
        assert_eq!(record["response_truncated"], 1, "{tool}");
        assert_eq!(record["response_bytes"], answer.len(), "{tool}");
        assert_eq!(record["response"].as_str().unwrap(), &answer[..64 * 1024], "{tool}");
    }
    let long_record = record(&gate.home(), "long").await;
    let hash = Digest::of_text(&long).hash().to_string();
    assert_eq!(long_record["outcome"]["response_hash"], hash);
    assert_eq!(long_record["runtime"]["response_exact_hash"], Value::Null);
    let huge_record = record(&gate.home(), "huge").await;
    assert_eq!(huge_record["outcome"]["response_hash"], Value::Null);
    let hash = Hash::of(huge.as_bytes()).to_string();
    assert_eq!(huge_record["runtime"]["response_exact_hash"], hash);
}

#[tokio::test]
async fn integers_that_cannot_be_written_canonically_are_hashed_as_sent() {
    let gate = gate(json!({})).await;
    let client = gate.http_at("/mcp/s/s").await;
    let big = r#"{ "n":9007199254740993, "m":1.0}"#;
    let small = r#"{ "n":9007199254740991, "m":1.0}"#;
    for (tool, args) in [("plain", big), ("is_error", small)] {
        let params = format!(r#"{{"name":"{tool}","arguments":{args}}}"#);
        client.request_text("tools/call", &params).await.unwrap();
    }
    let record_big = record(&gate.home(), "plain").await;
    assert_eq!(record_big["action"]["parameters_hash"], Value::Null);
    let hash = Hash::of(big.as_bytes()).to_string();
    assert_eq!(record_big["runtime"]["parameters_exact_hash"], hash);
    let record_small = record(&gate.home(), "is_error").await;
    let hash = Hash::of(br#"{"m":1,"n":9007199254740991}"#).to_string();
    assert_eq!(record_small["action"]["parameters_hash"], hash);
    assert_eq!(record_small["runtime"]["parameters_exact_hash"], Value::Null);
}

#[tokio::test]
async fn the_gates_own_tools_leave_no_record_and_an_unknown_tool_a_receipt_too() {
    let servers = |dir: &Path| {
        let tools = json!([{"name": "read", "annotations": {"readOnlyHint": true}}]);
        json!({"s": scripted(dir, "s", &tools), "hidden": scripted(dir, "hidden", &tools)})
    };
    let gate = Gate::start(servers, json!({})).await;
    make_token(
        &decisions(&gate),
        "narrow",
        &json!({"servers": ["s"], "operations": ["write"],
        "surfaces": ["discovery", "passthrough"]}),
    );
    let client = client_with(&gate, "narrow", "/mcp").await;
    client.document("retrieve_tools", json!({"query": "read"})).await;
    client.document("describe_tool", json!({"tool_ids": ["s:read"]})).await;
    client.document("upstream_servers", json!({})).await;
    client.call("read_cache", json!({"key": "none"})).await;
    let args = json!({"path": "/x"});
    for tool in ["s:none", "elsewhere:none2", "hidden:read"] {
        client.two_key_call("write", tool, args.clone()).await;
    }
    client.call("none3", args.clone()).await;
    let merged = client_with(&gate, "narrow", "/mcp/all").await;
    let call = json!({"name": "elsewhere__none4", "arguments": args});
    merged.request("tools/call", call).await.unwrap_err();
    let of_tool = ["none", "none2", "read", "none3", "elsewhere__none4"];
    let is_refusal = |record: &&Value| record["tool"].as_str().is_some_and(|it| !it.is_empty());
    let fits = |records: &[Value]| records.iter().filter(is_refusal).count() >= of_tool.len();
    let records = records_when(&gate.home(), fits).await;
    let records: Vec<&Value> = records.iter().filter(is_refusal).collect();
    let found: Vec<&str> = records.iter().map(|it| it["tool"].as_str().unwrap()).collect();
    assert_eq!(found, of_tool, "the gate's own tools leave none");
    let shown = |record: &Value| {
        let names = ["status", "error_code", "type"];
        let mut shown = part(record, &names);
        shown["action"] = record["action"]["type"].clone();
        shown["risk"] = record["action"]["risk_level"].clone();
        shown["outcome"] = record["outcome"]["status"].clone();
        shown["verdict"] = record["runtime"]["verdict"].clone();
        shown
    };
    for record in records.iter().copied() {
        assert!(record["receipt_id"].is_string(), "{record}");
        let expected = json!({"status": "blocked", "error_code": "TOOL_NOT_FOUND",
            "type": "policy_decision", "action": "unknown", "risk": "medium",
            "outcome": "failure", "verdict": "TOOL_NOT_FOUND"});
        assert_eq!(shown(record), expected, "{record}");
    }
    // A tool that the token may not see and one that does not exist leave the same, but for the
    // target, which the plan of a tool that exists may find.
    let same = |record: &Value| {
        let mut runtime = record["runtime"].clone();
        let members = runtime.as_object_mut().unwrap();
        for name in ["server", "tool", "preceding_chain", "target_basis", "target_access"] {
            members.remove(name);
        }
        runtime
    };
    assert_eq!(same(records[1]), same(records[2]));
    let verified = gate.cli(&["receipt", "verify"]).await;
    assert_eq!(verified.status.code(), Some(0), "{}", testkit::program::stderr(&verified));
}

#[tokio::test]
async fn a_refusal_that_was_added_without_a_receipt_is_found() {
    let mut gate = gate(json!({})).await;
    gate.http().await.two_key_call("write", "s:none", json!({})).await;
    gate.end().await;
    let db = rusqlite::Connection::open(gate.home().join("ledger.db")).unwrap();
    let lone = "INSERT INTO activity (id, changed, chain, type, source, surface, server, tool,
          agent, started_us, status, error_code)
        SELECT 'lone', changed + 1000, chain, type, source, surface, server, tool, agent,
          started_us, status, error_code FROM activity WHERE tool = 'none'";
    let verify = async || {
        let output = gate.cli(&["receipt", "verify"]).await;
        (output.status.code(), testkit::program::stdout(&output))
    };
    let (code, words) = verify().await;
    assert_eq!(code, Some(0), "{words}");
    db.execute(lone, []).unwrap();
    let (code, words) = verify().await;
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("record lone names no receipt"), "{words}");
}

#[tokio::test]
async fn an_answered_call_survives_a_kill_of_the_next_instant() {
    let mut gate = gate(json!({})).await;
    for (n, (operation, tool)) in
        [("read", "read"), ("write", "plain"), ("read", "delete")].iter().enumerate()
    {
        let client = gate.http().await;
        gate.ready("s").await;
        client
            .two_key_call(operation, &format!("s:{tool}"), json!({"path": format!("/{n}")}))
            .await;
        gate.kill().await;
        gate.restart().await;
        let resource = json!(format!("/{n}"));
        let records = records_when(&gate.home(), |records| records.len() == n + 1).await;
        assert_eq!(records[n]["resource"], resource, "{tool}");
        assert!(records[n]["receipt"].is_object(), "{tool}");
    }
    let chains = crate::ledger::whole_chains(&gate.home());
    let statuses: Vec<&Value> = chains.iter().map(|(chain, _)| &chain["status"]).collect();
    assert_eq!(statuses, ["interrupted", "interrupted", "interrupted"]);
}
