//! Events from outside: frames on the socket, valid and invalid, and `countersign hook` with and
//! without a gate.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::client::PATIENCE;
use testkit::gate::Gate;
use testkit::program::{program, stderr};
use testkit::wait::eventually;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use crate::ledger::{health, record, records, records_when, whole_chains};

/// The published cap on a frame.
const FRAME_BYTES_MAX: usize = 1 << 20;

pub(crate) fn frame(tool: &str, members: Value) -> Value {
    let mut frame = json!({
        "v": "1", "ts_emit": jiff::Timestamp::now().to_string(), "session_id": "session-1", "channel": "sdk",
        "tool": {"name": tool}, "decision": "allowed",
    });
    for (name, value) in members.as_object().unwrap() {
        frame[name] = value.clone();
    }
    frame
}

pub(crate) async fn connect(gate: &Gate) -> UnixStream {
    UnixStream::connect(gate.home().join("events.sock")).await.unwrap()
}

async fn send(stream: &mut UnixStream, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap();
    stream.write_all(&length.to_be_bytes()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
}

pub(crate) async fn send_frame(stream: &mut UnixStream, frame: &Value) {
    send(stream, frame.to_string().as_bytes()).await;
}

fn tools(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["tool"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_bad_frame_is_dropped_and_the_connection_stays() {
    let gate = Gate::scripted(json!([])).await;
    let mut stream = connect(&gate).await;
    let long = "x".repeat(257);
    let doubled = frame("bad", json!({})).to_string().replace(r#""v":"1""#, r#""v":"1","v":"1""#);
    for bad in [
        b"".to_vec(),
        b"{".to_vec(),
        b"[]".to_vec(),
        b"\xff\xfe".to_vec(),
        doubled.into_bytes(),
        vec![b' '; FRAME_BYTES_MAX + 1],
        frame("bad", json!({"error": "x".repeat(FRAME_BYTES_MAX)})).to_string().into_bytes(),
    ] {
        send(&mut stream, &bad).await;
    }
    for bad in [
        json!({"v": "2"}),
        json!({"v": 1}),
        json!({"target_system": "fs"}),
        json!({"target_resource": "/x"}),
        json!({"target_system": "fs", "target_resource": "x".repeat(4097)}),
        json!({"target_system": long, "target_resource": "/x"}),
        json!({"agent_id": long}),
        json!({"issuer_name": long}),
        json!({"session_id": ""}),
        json!({"decision": "perhaps"}),
        json!({"ts_emit": "now"}),
        json!({"tool": {}}),
    ] {
        send_frame(&mut stream, &frame("bad", bad)).await;
    }
    let full = json!({"target_system": "x".repeat(256), "target_resource": "y".repeat(4096),
        "agent_id": "z".repeat(256)});
    send_frame(&mut stream, &frame("good", full)).await;
    let record = record(&gate.home(), "good").await;
    assert_eq!(record["resource"], "y".repeat(4096));
    assert_eq!(tools(&records(&gate.home())), ["good"]);
}

#[tokio::test]
async fn a_frame_may_come_in_pieces_and_half_a_frame_harms_nobody() {
    let gate = Gate::scripted(json!([])).await;
    let mut half = connect(&gate).await;
    half.write_all(&[0, 0, 1, 0, b'{', b'"']).await.unwrap();
    let mut slow = connect(&gate).await;
    let bytes = frame("slow", json!({})).to_string().into_bytes();
    slow.write_all(&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..2]).await.unwrap();
    let mut other = connect(&gate).await;
    send_frame(&mut other, &frame("other", json!({}))).await;
    record(&gate.home(), "other").await;
    slow.write_all(&u32::try_from(bytes.len()).unwrap().to_be_bytes()[2..]).await.unwrap();
    slow.write_all(&bytes[..10]).await.unwrap();
    slow.write_all(&bytes[10..]).await.unwrap();
    record(&gate.home(), "slow").await;
    drop(half);
    send_frame(&mut other, &frame("after", json!({}))).await;
    record(&gate.home(), "after").await;
    assert_eq!(tools(&records(&gate.home())), ["other", "slow", "after"]);
}

#[tokio::test]
async fn smoke_a_frames_fields_appear_in_its_record_and_receipt() {
    let gate = Gate::scripted(json!([])).await;
    let mut stream = connect(&gate).await;
    let members = json!({"tool": {"server": "db", "name": "query"}, "input": {"table": "t", "database": "d"},
        "output": {"rows": 1}, "issuer_name": "codex", "issuer_model": "m-1", "operator_id": "op-1",
        "operator_name": "Ops", "idempotency_key": "key-1", "correlation_id": "corr-1",
        "agent_id": "agent-7", "agent_type": "worker", "capture_method": "sdk", "drop_count": 3,
        "usage": {"input_tokens": 5}});
    send_frame(&mut stream, &frame("query", members)).await;
    let pending = json!({"decision": "pending", "action_type": "filesystem.file.delete"});
    send_frame(&mut stream, &frame("unlink", pending)).await;
    let query = record(&gate.home(), "query").await;
    assert_eq!((&query["system"], &query["resource"]), (&json!("db"), &json!("d.t")));
    assert_eq!(
        (&query["agent_name"], &query["request_id"]),
        (&json!("codex#agent-7"), &json!("key-1"))
    );
    let (action, issuer) = (&query["action"], &query["receipt"]["issuer"]);
    assert_eq!(action["idempotency_key"], "key-1");
    assert_eq!(query["receipt"]["credentialSubject"]["correlation_id"], "corr-1");
    assert_eq!((&issuer["name"], &issuer["model"]), (&json!("codex"), &json!("m-1")));
    assert_eq!(issuer["operator"], json!({"id": "op-1", "name": "Ops"}));
    assert_eq!(query["runtime"]["agent_id"], "agent-7");
    assert_eq!(action["peer_credential"]["pid"], std::process::id());
    assert!(action.to_string().contains(r#""drop_count":3"#), "{action}");
    let unlink = records_when(&gate.home(), |records| records.len() == 2).await.remove(1);
    assert_eq!(
        (&unlink["status"], &unlink["outcome"]["status"]),
        (&json!("pending"), &json!("pending"))
    );
    assert_eq!(unlink["action"]["type"], "filesystem.file.delete");
    assert_eq!(unlink["action"]["risk_level"], "high");
    whole_chains(&gate.home());
}

#[tokio::test]
async fn events_that_cannot_be_written_are_counted_as_dropped() {
    let mut gate = Gate::scripted(json!([])).await;
    let mut stream = connect(&gate).await;
    send_frame(&mut stream, &frame("first", json!({}))).await;
    record(&gate.home(), "first").await;
    let holder = Connection::open(gate.home().join("ledger.db")).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    for n in 0..3 {
        send_frame(&mut stream, &frame(&format!("lost-{n}"), json!({}))).await;
    }
    eventually(|| async { (health(&gate).await["state"] == "failing").then_some(()) }).await;
    holder.execute_batch("COMMIT").unwrap();
    eventually(|| async { (health(&gate).await["state"] == "ok").then_some(()) }).await;
    send_frame(&mut stream, &frame("last", json!({}))).await;
    // Lost events are counted, and the rest are recorded: no event is both.
    let known = |records: &[Value]| -> u64 {
        let dropped = records.iter().filter(|record| record["tool"] == "events_dropped");
        let counted = dropped.map(|record| {
            assert_eq!(record["action"]["type"], "agent_receipts.events_dropped", "{record}");
            drop_count(&record["action"])
        });
        let kept =
            records.iter().filter(|record| record["tool"].as_str().unwrap().starts_with("lost-"));
        counted.sum::<u64>() + kept.count() as u64
    };
    let told = |records: &[Value]| known(records) >= 3 && tools(records).contains(&"last");
    records_when(&gate.home(), told).await;
    // Losses are reported within a second; when the gate has ended, all have been.
    assert_eq!(gate.end().await, Some(0));
    assert_eq!(known(&records(&gate.home())), 3, "{:?}", tools(&records(&gate.home())));
    whole_chains(&gate.home());
}

fn drop_count(action: &Value) -> u64 {
    let text = action.to_string();
    let (_, count) = text.split_once(r#""drop_count":"#).expect("it counts");
    count.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// Runs `countersign hook` with this on stdin.
pub(crate) async fn hook(dir: &Path, event: &[u8]) -> Output {
    let mut child = program(dir)
        .arg("hook")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(event).await.unwrap();
    drop(stdin);
    tokio::time::timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap()
}

fn event(name: &str, tool: &str, members: Value) -> Vec<u8> {
    let mut event = json!({"hook_event_name": name, "session_id": "session-1", "cwd": "/srv/tree",
        "tool_name": tool, "tool_input": {"file_path": "src/../a.rs"}, "tool_use_id": "toolu_1"});
    for (name, value) in members.as_object().unwrap() {
        event[name] = value.clone();
    }
    event.to_string().into_bytes()
}

async fn hooked(dir: &Path, name: &str, tool: &str, members: Value) {
    let output = hook(dir, &event(name, tool, members)).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!((&*output.stdout, &*output.stderr), (&b""[..], &b""[..]), "a hook says nothing");
}

#[tokio::test]
async fn a_hook_records_the_agents_own_tool_calls() {
    let gate = Gate::scripted(json!([])).await;
    let dir = gate.dir.path();
    hooked(dir, "PreToolUse", "Edit", json!({})).await;
    hooked(dir, "PostToolUse", "Write", json!({"tool_response": {"ok": true}})).await;
    hooked(dir, "PostToolUseFailure", "Read", json!({"error": "no such file"})).await;
    hooked(dir, "PostToolUse", "Bash", json!({"tool_input": {"command": "rm old.txt"}})).await;
    for (name, members) in [("SessionStart", json!({})), ("Stop", json!({"tool_name": null}))] {
        hooked(dir, name, "None", members).await;
    }
    let found = records_when(&gate.home(), |records| records.len() == 4).await;
    for (record, (tool, status, resource, kind)) in found.iter().zip([
        ("Edit", "pending", "/srv/tree/a.rs", "filesystem.file.modify"),
        ("Write", "success", "/srv/tree/a.rs", "filesystem.file."),
        ("Read", "error", "/srv/tree/a.rs", "filesystem.file.read"),
        ("Bash", "success", "/srv/tree/old.txt", "system.command.execute"),
    ]) {
        assert_eq!((&record["tool"], &record["status"]), (&json!(tool), &json!(status)));
        assert_eq!(
            record["action"]["target"],
            json!({"system": "filesystem", "resource": resource})
        );
        assert!(record["action"]["type"].as_str().unwrap().starts_with(kind), "{record}");
        assert_eq!(record["receipt"]["credentialSubject"]["correlation_id"], "toolu_1");
        assert_eq!(
            (&record["source"], &record["session_id"]),
            (&json!("hook"), &json!("session-1"))
        );
    }
    assert_eq!(found[2]["outcome"]["error"], "no such file");
}

#[tokio::test]
async fn invalid_hook_input_fails_without_stopping_the_agent() {
    let dir = TempDir::new().unwrap();
    for bad in [&b""[..], b"{", b"\xff", br#"{"tool_name":1}"#, br#"{"a":1,"a":2}"#] {
        let output = hook(dir.path(), bad).await;
        // An exit code of two would make the agent stop.
        assert_eq!(output.status.code(), Some(1), "{bad:?}: {}", stderr(&output));
        assert!(stderr(&output).starts_with("countersign: "), "{}", stderr(&output));
    }
    assert!(!dir.path().join("home/spool").exists());
}

/// Returns the files of waiting events, oldest first.
fn spool(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir.join("home/spool")) else { return Vec::new() };
    let files = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    files
}

fn empty_config(dir: &Path) {
    std::fs::write(dir.join("config.json"), r#"{"mcpServers": {}}"#).unwrap();
}

#[tokio::test]
async fn events_wait_in_the_spool_for_the_next_gate() {
    let dir = TempDir::new().unwrap();
    empty_config(dir.path());
    for tool in ["Edit", "Write"] {
        hooked(dir.path(), "PostToolUse", tool, json!({})).await;
    }
    let waiting = spool(dir.path());
    assert_eq!(waiting.len(), 2);
    for file in &waiting {
        assert_eq!(std::fs::metadata(file).unwrap().mode() & 0o777, 0o600);
    }
    let half = waiting[0].with_file_name("0190f3e2-7a51-7c3e-9f5e-2a4b6c8d0e1f-9.json");
    std::fs::write(&half, "half a ev").unwrap();
    let gate = Gate::open(dir).await;
    let found = records_when(&gate.home(), |records| records.len() == 3).await;
    assert_eq!(tools(&found), ["Edit", "Write", "events_dropped"]);
    for record in &found[..2] {
        assert_eq!(record["resource"], "/srv/tree/a.rs");
        assert_eq!(record["source"], "hook");
        assert_eq!(record["action"]["peer_credential"], Value::Null, "nobody saw who sent it");
    }
    hooked(gate.dir.path(), "PostToolUse", "Read", json!({})).await;
    records_when(&gate.home(), |records| records.len() == 4).await;
    eventually(|| async { spool(gate.dir.path()).is_empty().then_some(()) }).await;
}

#[tokio::test]
async fn a_full_spool_takes_no_more_and_counts_what_it_did_not_take() {
    let dir = TempDir::new().unwrap();
    empty_config(dir.path());
    hooked(dir.path(), "PostToolUse", "Edit", json!({})).await;
    // The size of an event is in the name of its file.
    let filler = dir.path().join("home/spool/0190f3e2-7a51-7c3e-9f5e-2a4b6c8d0e1f-33550336.json");
    std::fs::write(&filler, "#").unwrap();
    for _ in 0..3 {
        hooked(dir.path(), "PostToolUse", "Write", json!({})).await;
    }
    assert_eq!(spool(dir.path()).len(), 2);
    std::fs::remove_file(&filler).unwrap();
    let mut gate = Gate::open(dir).await;
    let found = records_when(&gate.home(), |records| records.len() == 2).await;
    assert_eq!(tools(&found), ["Edit", "events_dropped"]);
    assert_eq!(drop_count(&found[1]["action"]), 3);
    gate.end().await;
    gate.restart().await;
    hooked(gate.dir.path(), "PostToolUse", "Read", json!({})).await;
    let found = records_when(&gate.home(), |records| records.len() >= 3).await;
    assert_eq!(tools(&found), ["Edit", "events_dropped", "Read"], "drops are counted once");
}

#[tokio::test]
async fn an_event_that_a_killed_gate_was_recording_is_recorded_once() {
    let dir = TempDir::new().unwrap();
    empty_config(dir.path());
    for tool in ["Edit", "Write"] {
        hooked(dir.path(), "PostToolUse", tool, json!({})).await;
    }
    let waiting = spool(dir.path());
    let texts: Vec<Vec<u8>> = waiting.iter().map(|file| std::fs::read(file).unwrap()).collect();
    std::fs::remove_file(&waiting[1]).unwrap();
    let mut gate = Gate::open(dir).await;
    records_when(&gate.home(), |records| records.len() == 1).await;
    gate.kill().await;
    // Both as a gate leaves them that is killed after the first, and before the second is recorded.
    for (file, text) in waiting.iter().zip(&texts) {
        std::fs::write(file.with_extension("taken"), text).unwrap();
    }
    gate.restart().await;
    let found = records_when(&gate.home(), |records| records.len() >= 2).await;
    assert_eq!(tools(&found), ["Edit", "Write"]);
    hooked(gate.dir.path(), "PostToolUse", "Read", json!({})).await;
    let found = records_when(&gate.home(), |records| records.len() >= 3).await;
    assert_eq!(tools(&found), ["Edit", "Write", "Read"]);
}

#[tokio::test]
async fn a_gate_of_mcp_takes_the_spool_in_too() {
    let dir = TempDir::new().unwrap();
    empty_config(dir.path());
    hooked(dir.path(), "PostToolUse", "Edit", json!({})).await;
    let mut command = program(dir.path());
    command.arg("--config").arg(dir.path().join("config.json")).arg("mcp");
    let wire = testkit::wire::Wire::open(command);
    let home = dir.path().join("home");
    // The event leaves the spool once the ledger has it.
    eventually(|| async { spool(dir.path()).is_empty().then_some(()) }).await;
    records_when(&home, |records| records.len() == 1).await;
    hooked(dir.path(), "PostToolUse", "Write", json!({})).await;
    let found = records_when(&home, |records| records.len() == 2).await;
    assert_eq!(tools(&found), ["Edit", "Write"]);
    drop(wire);
}

/// Sends events from many hooks at once while gates start, stop and are killed; each must be
/// recorded exactly once.
async fn hooks_against_gates(hooks: usize, rounds: usize) {
    let dir = TempDir::new().unwrap();
    empty_config(dir.path());
    let place = dir.path().to_owned();
    let sending = tokio::spawn(async move {
        let mut sent = 0;
        while sent < hooks {
            let batch = (sent..hooks.min(sent + 8)).map(|n| {
                let place = place.clone();
                async move {
                    hooked(&place, "PostToolUse", &format!("Tool{n}"), json!({})).await;
                }
            });
            sent += futures_util::future::join_all(batch).await.len();
        }
    });
    let mut gate = Gate::open(dir).await;
    for round in 0..rounds {
        let seen = records(&gate.home()).len();
        let moves = |records: &[Value]| records.len() > seen || sending.is_finished();
        records_when(&gate.home(), moves).await;
        if round % 2 == 0 {
            gate.kill().await;
        } else {
            gate.end().await;
        }
        gate.restart().await;
    }
    sending.await.unwrap();
    let found = records_when(&gate.home(), |records| records.len() >= hooks).await;
    eventually(|| async { spool(gate.dir.path()).is_empty().then_some(()) }).await;
    let mut found: Vec<&str> = tools(&found);
    let count = found.len();
    found.sort_unstable();
    found.dedup();
    assert_eq!((count, found.len()), (hooks, hooks), "none is lost and none is there twice");
    gate.end().await;
    whole_chains(&gate.home());
}

#[tokio::test]
async fn no_hook_event_is_lost_or_recorded_twice_while_gates_come_and_go() {
    hooks_against_gates(80, 4).await;
}

#[tokio::test]
async fn long_no_hook_event_is_lost_or_recorded_twice_over_many_gates() {
    if !testkit::run::is_long_or_skipped() {
        return;
    }
    let (hooks, rounds) = (3_000, 60);
    hooks_against_gates(hooks, rounds).await;
    println!("{hooks} hook events over {rounds} gates, every other one killed: none lost or twice");
}

#[tokio::test]
async fn a_secret_in_an_event_is_hidden_in_its_target() {
    let gate = Gate::scripted(json!([])).await;
    let mut stream = connect(&gate).await;
    let secret = "sk-ant-api03-0123456789abcdef";
    let tool = json!({"server": "vault", "name": "get"});
    for members in [
        json!({"tool": tool, "input": {"key": secret}}),
        json!({"target_system": "vault", "target_resource": secret}),
    ] {
        send_frame(&mut stream, &frame("get", members)).await;
    }
    let records = records_when(&gate.home(), |records| records.len() == 2).await;
    for record in &records {
        assert_eq!(record["resource"], "[redacted]", "{record}");
        assert!(record["warnings"].as_str().unwrap().contains("target redacted"), "{record}");
        assert!(!record.to_string().contains(secret), "{record}");
    }
}
