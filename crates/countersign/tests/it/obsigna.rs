//! Our receipts as foreign software sees them: the PyPI package `obsigna` verifies them, finds them
//! in a copy of the ledger and sends events; the published schema describes them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use reqwest::Method;
use rusqlite::Connection;
use serde_json::{Value, json};
use testkit::client::PATIENCE;
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::{command, program};
use testkit::upstream::scripted;
use testkit::wait::eventually;
use testkit::wire::Wire;
use tokio::io::AsyncWriteExt;

use crate::ledger::{self, key_of, receipts, record, records_when};

const SCHEMA: &str =
    include_str!("../../../receipt/tests/vectors/spec/schema/agent-receipt.schema.json");

/// Runs `obsigna.py` on this input and reads one JSON document a line.
async fn obsigna(dir: &Path, args: &[&str], input: &str) -> Vec<Value> {
    let python = foreign::program("python-obsigna/bin/python");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/peers/obsigna.py");
    let mut child = command(&python, dir)
        // Its folder must not come first: the script has the name of the package.
        .arg("-P")
        .arg(script)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("python starts: run ./test --setup");
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writing = tokio::spawn(async move { stdin.write_all(input.as_bytes()).await });
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
    writing.await.unwrap().unwrap();
    assert!(output.status.success(), "{args:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns its verdict on each of these receipts, given the key that each was signed with.
async fn verified(gate: &Gate, receipts: &[String], signed: &str) -> Vec<Value> {
    let pem = |receipt: &str| key_of(&gate.home(), receipt).to_pem();
    let line = |receipt: &String| {
        let pem = if signed.is_empty() { pem(receipt) } else { pem(signed) };
        json!({"receipt": receipt, "pem": pem}).to_string() + "\n"
    };
    let input: String = receipts.iter().map(line).collect();
    obsigna(gate.dir.path(), &["verify"], &input).await
}

fn tools(dir: &Path) -> Value {
    json!([
        {"name": "echo", "annotations": {"readOnlyHint": true}},
        {"name": "plain"},
        {"name": "delete", "annotations": {"destructiveHint": true}},
        {"name": "error", "x-do": "error"},
        {"name": "is_error", "x-do": "is_error"},
        {"name": "large", "x-do": {"text": 300_000}},
        {"name": "slow", "x-do": {"work": {"log": dir.join("slow.log"), "until": dir.join("never")}}},
        {"name": "strange", "description": "writes ünïcödé"},
    ])
}

/// Returns a gate that has seen calls of every kind, a key rotation and a restart, and has stopped.
async fn busy_gate() -> Gate {
    let mut gate =
        Gate::start(|dir| json!({"s": scripted(dir, "s", &tools(dir))}), json!({})).await;
    calls(&gate).await;
    let (status, head) = gate.rest(Method::POST, "/api/v1/checkpoints", None).await;
    assert_eq!(status, 200, "{head}");
    cancelled_call(&gate).await;
    let (status, key) = gate.rest(Method::POST, "/api/v1/keys/rotate", None).await;
    assert_eq!((status, &key["current"]), (200, &json!(true)), "{key}");
    calls(&gate).await;
    assert_eq!(gate.end().await, Some(0));
    gate.restart().await;
    calls(&gate).await;
    assert_eq!(gate.end().await, Some(0));
    gate
}

async fn calls(gate: &Gate) {
    let client = gate.http().await;
    let strange = json!({"é\u{1f600}\u{7f}": "\u{2028}\"\\\n", "a": [1e21, 1e-7, 0.1, -0.0, null],
        "url": "https://user:pw@Example.com:443/x/?q#f"});
    for (operation, tool, args) in [
        ("read", "echo", json!({"path": "/srv/x"})),
        ("write", "plain", json!({"owner": "o", "repo": "r"})),
        ("destructive", "delete", json!({"table": "t", "schema": "s"})),
        ("read", "delete", json!({"table": "t"})),
        ("read", "error", json!({})),
        ("read", "is_error", json!({})),
        ("read", "large", json!({})),
        ("write", "strange", strange),
        ("read", "none", json!({})),
    ] {
        client.two_key_call(operation, &format!("s:{tool}"), args).await;
    }
    let unfaithful = r#"{"name":"call_tool_read","arguments":{"name":"s:echo","args":{"n":12345678901234567890},"intent":{"operation_type":"read"}}}"#;
    client.request_text("tools/call", unfaithful).await.unwrap();
}

async fn cancelled_call(gate: &Gate) {
    let mut command = program(gate.dir.path());
    command.args(["mcp", "--server", "s"]);
    let mut wire = Wire::open(command);
    wire.greet().await;
    wire.say(r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"slow"}}"#).await;
    let log = gate.dir.path().join("slow.log");
    eventually(|| async { log.exists().then_some(()) }).await;
    wire.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}"#)
        .await;
    assert_eq!(record(&gate.home(), "slow").await["status"], "unknown");
}

/// Returns the receipts in one file with the published table, as a person would export them.
async fn copy(gate: &Gate) -> PathBuf {
    let copy = gate.dir.path().join("copy.db");
    let args = ["receipt", "export", "--format", "sqlite", "--output", copy.to_str().unwrap()];
    let output = gate.cli(&args).await;
    assert_eq!(output.status.code(), Some(0), "{}", testkit::program::stderr(&output));
    copy
}

#[tokio::test]
async fn receipts_and_chains_verify_elsewhere_and_match_the_schema() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = busy_gate().await;
    let rows = receipts(&gate.home());
    let texts: Vec<String> =
        rows.iter().map(|row| row["receipt_json"].as_str().unwrap().to_owned()).collect();
    // Ten receipts a round, a cancelled call, a rotation, a checkpoint, two ends.
    assert_eq!(rows.len(), 3 * 10 + 1 + 1 + 1 + 2);
    let checkpoints = texts.iter().filter(|text| text.contains("\"checkpoint\":{")).count();
    assert_eq!(checkpoints, 3, "the ends are checkpoints too");
    for (row, said) in rows.iter().zip(verified(&gate, &texts, "").await) {
        assert_eq!(said, json!({"valid": true, "hash": row["receipt_hash"]}), "{row}");
    }
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    for text in &texts {
        let receipt = serde_json::from_str(text).unwrap();
        let faults: Vec<String> =
            schema.iter_errors(&receipt).map(|fault| fault.to_string()).collect();
        assert_eq!(faults, [] as [&str; 0], "{text}");
    }
    let copy = copy(&gate).await;
    let exported = Connection::open(&copy).unwrap();
    let sql = "SELECT receipt_json FROM receipts ORDER BY chain_id, sequence";
    let mut statement = exported.prepare(sql).unwrap();
    let read = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(read.map(Result::unwrap).collect::<Vec<_>>(), texts, "byte for byte");
    drop(statement);
    let whole = ledger::whole_chains(&gate.home());
    assert_eq!(whole.len(), 2);
    for (chain, check) in &whole {
        let said = stored_chain(&gate, &copy, chain).await;
        let expected = json!({"valid": true, "length": check.length, "status": "complete",
            "broken_at": -1, "error": null});
        assert_eq!(normal(said), expected, "{chain}");
    }
    let changed = texts[3].replace("SERVER_MISMATCH", "SERVER_MISMATCh");
    assert_ne!(changed, texts[3]);
    let db = Connection::open(&copy).unwrap();
    db.execute(
        "UPDATE receipts SET receipt_json = ?1 WHERE receipt_json = ?2",
        [&changed, &texts[3]],
    )
    .unwrap();
    drop(db);
    let said = stored_chain(&gate, &copy, &whole[0].0).await;
    assert_eq!((&said["valid"], &said["broken_at"]), (&json!(false), &json!(3)), "{said}");
}

/// Normalizes a verdict: `-1` and absence both mean that nothing is broken, and an empty error is
/// none.
fn normal(mut said: Value) -> Value {
    if said["broken_at"].is_null() {
        said["broken_at"] = json!(-1);
    }
    if said["error"] == "" {
        said["error"] = Value::Null;
    }
    said
}

async fn stored_chain(gate: &Gate, copy: &Path, chain: &Value) -> Value {
    let id = chain["chain_id"].as_str().unwrap();
    let sql = format!("SELECT receipt_json FROM receipts WHERE chain_id = '{id}' AND sequence = 1");
    let first = &ledger::rows(&gate.home(), &sql)[0];
    let pem = gate.dir.path().join("first.pem");
    let key = key_of(&gate.home(), first["receipt_json"].as_str().unwrap());
    std::fs::write(&pem, key.to_pem()).unwrap();
    let args = ["chain", copy.to_str().unwrap(), pem.to_str().unwrap(), id];
    obsigna(gate.dir.path(), &args, "").await.remove(0)
}

#[tokio::test]
async fn a_receipt_with_one_byte_changed_is_rejected() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = Gate::scripted(json!([{"name": "first"}, {"name": "echo"}])).await;
    let client = gate.http().await;
    // A chain's second receipt: members that are null count as absent, whatever their name.
    for tool in ["s:first", "s:echo"] {
        let args = json!({"owner": "o", "repo": "r"});
        client.two_key_call("write", tool, args).await;
    }
    let text = record(&gate.home(), "echo").await["receipt_json"].as_str().unwrap().to_owned();
    // The proof's own members are outside the signed part.
    let signed = text.find(r#""proof":"#).unwrap();
    let changed: Vec<String> =
        (0..signed).step_by(23).map(|at| with_bit_flipped(&text, at)).collect();
    assert!(changed.len() > 20);
    for (changed, said) in changed.iter().zip(verified(&gate, &changed, &text).await) {
        assert_eq!(said["valid"], false, "{changed}");
    }
    assert_eq!(verified(&gate, &[text], "").await[0]["valid"], true);
}

fn with_bit_flipped(text: &str, at: usize) -> String {
    let mut bytes = text.as_bytes().to_vec();
    bytes[at] ^= 1;
    String::from_utf8(bytes).expect("the receipt is ASCII")
}

#[tokio::test]
async fn events_of_a_foreign_sender_arrive_with_target_and_sender() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = Gate::scripted(json!([])).await;
    let events = [
        json!({"session_id": "session-1", "channel": "sdk", "tool_name": "read_file",
            "decision": "allowed", "action_type": "filesystem.file.read",
            "target_system": "filesystem", "target_resource": "/etc/hosts",
            "input": r#"{"path": "/etc/hosts", "token": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}"#,
            "output": r#"{"lines": 3}"#}),
        json!({"session_id": "session-1", "channel": "sdk", "tool_name": "push",
            "tool_server": "git", "decision": "denied", "error": "no"}),
    ];
    let input: String = events.iter().map(|event| format!("{event}\n")).collect();
    let socket = gate.home().join("events.sock");
    let sender =
        obsigna(gate.dir.path(), &["emit", socket.to_str().unwrap()], &input).await.remove(0);
    let records = records_when(&gate.home(), |records| records.len() == 2).await;
    // Each came over its own connection, so either may be first.
    let of = |tool: &str| records.iter().find(|record| record["tool"] == tool).unwrap();
    let (read, push) = (of("read_file"), of("push"));
    assert_eq!(read["action"]["target"], json!({"system": "filesystem", "resource": "/etc/hosts"}));
    assert_eq!((&read["system"], &read["resource"]), (&json!("filesystem"), &json!("/etc/hosts")));
    assert_eq!((&read["status"], &read["session_id"]), (&json!("success"), &json!("session-1")));
    assert_eq!(read["action"]["type"], "filesystem.file.read");
    assert!(!read["arguments"].as_str().unwrap().contains("ghp_"), "{read}");
    for record in [read, push] {
        let peer = &record["action"]["peer_credential"];
        let expected = json!({"platform": "linux", "pid": sender["pid"], "uid": sender["uid"],
            "gid": sender["gid"]});
        assert_eq!(*peer, expected, "{record}");
    }
    assert_eq!((&push["status"], &push["server"]), (&json!("blocked"), &json!("git")));
    assert_eq!(push["outcome"]["error"], "no");
    ledger::whole_chains(&gate.home());
}
