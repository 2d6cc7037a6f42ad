//! A ledger that cannot or must not be written: locked by another process, on a full disk, with
//! missing, readable or replaced keys, damaged, or in use by another gate.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::client::code;
use testkit::gate::Gate;
use testkit::program::{run, stderr, stdio_client};
use testkit::upstream::scripted;
use testkit::wait::eventually;

use crate::ledger::{count, health, journals, record, records, records_when, whole_chains};

fn tools(dir: &Path) -> Value {
    json!([
        {"name": "first"},
        {"name": "read", "annotations": {"readOnlyHint": true}},
        {"name": "write", "x-do": {"work": {"log": dir.join("write.log")}}},
        {"name": "delete", "annotations": {"destructiveHint": true}},
        {"name": "last"},
    ])
}

async fn gate(config: Value) -> Gate {
    let gate = Gate::start(|dir| json!({"s": scripted(dir, "s", &tools(dir))}), config).await;
    gate.ready("s").await;
    gate
}

async fn state(gate: &Gate, wanted: &str) {
    eventually(|| async { (health(gate).await["state"] == wanted).then_some(()) }).await;
}

/// Holds the write lock from another connection.
fn hold(gate: &Gate) -> Connection {
    let holder = Connection::open(gate.home().join("ledger.db")).unwrap();
    holder.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    holder
}

#[tokio::test]
async fn while_the_ledger_is_held_changes_are_refused_and_reads_wait_for_it() {
    let gate = gate(json!({})).await;
    let client = gate.http().await;
    assert_eq!(client.code_of("write", "s:first").await, "ok");
    record(&gate.home(), "first").await;
    let holder = hold(&gate);
    let refused = client.two_key_call("write", "s:write", json!({})).await;
    assert_eq!(code(&refused), "LEDGER_UNAVAILABLE", "{refused}");
    assert!(!gate.dir.path().join("write.log").exists(), "it reached the server");
    let answer = client.two_key_call("read", "s:read", json!({})).await;
    assert_eq!(answer["_meta"]["countersign/ledger"], "queued", "{answer}");
    assert_eq!(answer["_meta"]["x-meta"], json!({"kept": 1.0}), "the server's own _meta stays");
    // Refused for another reason, which is the one reported.
    assert_eq!(client.code_of("read", "s:delete").await, "SERVER_MISMATCH");
    let failing = health(&gate).await;
    assert_eq!(failing["state"], "failing", "{failing}");
    assert!(failing["queue"].as_u64().unwrap() >= 2, "{failing}");
    assert!(failing["last_error"].as_str().unwrap().contains("another process has locked it"));
    holder.execute_batch("COMMIT").unwrap();
    state(&gate, "ok").await;
    let again = client.two_key_call("write", "s:last", json!({})).await;
    assert_eq!((code(&again), &again["_meta"]["countersign/ledger"]), ("ok", &Value::Null));
    let status = |tool: &str| {
        let records = records(&gate.home());
        records.iter().find(|record| record["tool"] == tool).map(|record| record["status"].clone())
    };
    record(&gate.home(), "last").await;
    assert_eq!(status("read"), Some(json!("success")));
    assert_eq!(status("delete"), Some(json!("blocked")));
    assert_eq!(status("write"), None, "a call that was not made");
    whole_chains(&gate.home());
}

#[tokio::test]
async fn with_on_failure_refuse_reads_are_refused_as_well() {
    let gate = gate(json!({"ledger": {"on_failure": "refuse"}})).await;
    let client = gate.http().await;
    client.two_key_call("write", "s:first", json!({})).await;
    record(&gate.home(), "first").await;
    let holder = hold(&gate);
    assert_eq!(client.code_of("write", "s:write").await, "LEDGER_UNAVAILABLE");
    assert_eq!(client.code_of("read", "s:read").await, "LEDGER_UNAVAILABLE");
    assert!(!gate.dir.path().join("write.log").exists());
    holder.execute_batch("COMMIT").unwrap();
    state(&gate, "ok").await;
    assert_eq!(client.code_of("read", "s:read").await, "ok");
    records_when(&gate.home(), |records| records.iter().any(|r| r["status"] == "success")).await;
    whole_chains(&gate.home());
}

/// A file system of a few megabytes, unmounted on drop.
struct Small(PathBuf);

impl Small {
    fn mount(path: PathBuf) -> Option<Small> {
        std::fs::create_dir(&path).unwrap();
        let options = ["-t", "tmpfs", "-o", "size=4m", "tmpfs"];
        let mounted = Command::new("mount").args(options).arg(&path).output();
        let mounted = mounted.is_ok_and(|output| output.status.success());
        mounted.then_some(Small(path))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Fills the remaining space.
fn fill(path: &Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(path).unwrap();
    for size in [64 * 1024, 1024, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

#[tokio::test]
async fn on_a_full_disk_changes_are_refused_until_there_is_room() {
    let dir = TempDir::new().unwrap();
    let Some(small) = Small::mount(dir.path().join("home")) else {
        println!("NOT TESTED: a full disk, since no file system may be mounted here");
        return;
    };
    let config = json!({"mcpServers": {"s": scripted(dir.path(), "s", &tools(dir.path()))}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let mut gate = Gate::open(dir).await;
    let client = gate.http().await;
    assert_eq!(client.code_of("write", "s:first").await, "ok");
    record(&gate.home(), "first").await;
    let filler = gate.home().join("filler");
    fill(&filler);
    let read = AtomicUsize::new(0);
    // Writes that fit into existing pages succeed; soon nothing does.
    eventually(|| async {
        let answer = client.two_key_call("read", "s:read", json!({})).await;
        assert_eq!(code(&answer), "ok", "{answer}");
        read.fetch_add(1, Ordering::Relaxed);
        (answer["_meta"]["countersign/ledger"] == "queued").then_some(())
    })
    .await;
    assert_eq!(client.code_of("write", "s:write").await, "LEDGER_UNAVAILABLE");
    assert!(!gate.dir.path().join("write.log").exists(), "it reached the server");
    let failing = health(&gate).await;
    assert_eq!(failing["state"], "failing", "{failing}");
    std::fs::remove_file(filler).unwrap();
    state(&gate, "ok").await;
    assert_eq!(client.code_of("write", "s:last").await, "ok");
    record(&gate.home(), "last").await;
    let reads = records(&gate.home()).into_iter().filter(|record| record["tool"] == "read");
    assert_eq!(reads.count(), read.load(Ordering::Relaxed), "every read that was answered");
    assert_eq!(gate.end().await, Some(0));
    whole_chains(&gate.home());
    assert_eq!(journals(&gate.home()), 0);
    drop(small);
}

/// Returns a home whose gate has made a call and stopped.
async fn used_home() -> Gate {
    let mut gate = gate(json!({})).await;
    gate.http().await.two_key_call("write", "s:first", json!({})).await;
    assert_eq!(gate.end().await, Some(0));
    gate
}

fn secret_key(gate: &Gate) -> PathBuf {
    let files = std::fs::read_dir(gate.home().join("keys")).unwrap();
    let mut paths = files.map(|file| file.unwrap().path());
    paths.find(|path| path.to_string_lossy().ends_with(".secret.pem")).unwrap()
}

/// Checks that `serve` does not start, and reports the reason.
async fn does_not_start(gate: &Gate, words: &[&str]) {
    let config = gate.config_file();
    let args = ["serve", "--listen", "127.0.0.1:0", "--config", config.to_str().unwrap()];
    let output = run(gate.dir.path(), args).await;
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    for words in words {
        assert!(said.contains(words), "'{words}' is missing: {said}");
    }
}

#[tokio::test]
async fn a_signing_key_that_cannot_be_trusted_stops_the_start() {
    let mut gate = used_home().await;
    let key = secret_key(&gate);
    let name = key.display().to_string();
    let right = std::fs::read(&key).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    does_not_start(&gate, &["LEDGER_UNAVAILABLE", &name, "mode 644", "chmod 600"]).await;
    std::fs::remove_file(&key).unwrap();
    does_not_start(&gate, &[&name, "is missing", "backup", "ledger repair"]).await;
    let other = used_home().await;
    std::fs::copy(secret_key(&other), &key).unwrap();
    does_not_start(&gate, &[&name, "was replaced", "backup"]).await;
    std::fs::write(&key, "no key").unwrap();
    does_not_start(&gate, &[&name]).await;
    std::fs::write(&key, right).unwrap();
    gate.restart().await;
    gate.http().await.two_key_call("write", "s:last", json!({})).await;
    record(&gate.home(), "last").await;
    assert_eq!(whole_chains(&gate.home()).len(), 2);
}

#[tokio::test]
async fn smoke_a_damaged_ledger_stops_the_start() {
    let gate = used_home().await;
    let file = gate.home().join("ledger.db");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[..64].fill(b'?');
    std::fs::write(&file, bytes).unwrap();
    does_not_start(&gate, &["LEDGER_UNAVAILABLE", "the ledger is damaged", "ledger repair"]).await;
    std::fs::write(&file, b"").unwrap();
    for companion in ["ledger.db-wal", "ledger.db-shm"] {
        let _ = std::fs::remove_file(gate.home().join(companion));
    }
    does_not_start(&gate, &["LEDGER_INCOMPLETE", "is empty", "1 signing key"]).await;
    let repaired = run(gate.dir.path(), ["ledger", "repair", "--yes"]).await;
    assert_eq!(repaired.status.code(), Some(1), "no file has the calls: {}", stderr(&repaired));
    let mut gate = gate;
    gate.restart().await;
    gate.http().await.two_key_call("write", "s:last", json!({})).await;
    record(&gate.home(), "last").await;
}

#[tokio::test]
async fn one_home_has_one_gate_and_says_which() {
    let gate = gate(json!({})).await;
    let pid = gate.pid().as_raw_nonzero().to_string();
    does_not_start(&gate, &["another 'serve'", &format!("(pid {pid})")]).await;
    // Others forward their calls to it: one chain.
    let client = stdio_client(gate.dir.path(), &[], json!({}), vec![]).await;
    assert_eq!(client.code_of("write", "s:first").await, "ok");
    record(&gate.home(), "first").await;
    assert_eq!(count(&gate.home(), "SELECT count(*) FROM chains"), 1);
}
