//! Other processes of a home while its gate runs: each records its calls in its own chain, and
//! neither needs the other.

use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::client::{PATIENCE, text};
use testkit::gate::Gate;
use testkit::program::{program, stderr};
use testkit::wait::eventually;
use testkit::wire::Wire;

use crate::runs::Events;

async fn gate() -> Gate {
    Gate::start(|_| json!({}), json!({})).await
}

/// Starts a gate of a step in the same home, which has the built-in tools.
async fn step(gate: &Gate) -> Wire {
    let dir = gate.dir.path().canonicalize().unwrap();
    let folder = dir.join("project");
    std::fs::create_dir_all(&folder).unwrap();
    let file = dir.join("step.json");
    std::fs::write(&file, json!({"root_dir": folder, "agent": "me"}).to_string()).unwrap();
    let mut command = program(&dir);
    command.arg("mcp-serve").arg(format!("--config={}", file.display()));
    let mut wire = Wire::open(command);
    wire.greet().await;
    wire
}

/// Begins a command that ends when the file `go` appears, and waits until it runs.
async fn begin(gate: &Gate, wire: &mut Wire, id: i64) {
    let command = "touch begun; while ! test -e go; do sleep 0.05; done; echo done";
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                      "params": {"name": "Bash", "arguments": {"command": command}}});
    wire.say(&call.to_string()).await;
    let begun = gate.dir.path().join("project/begun");
    eventually(|| async { begun.exists().then_some(()) }).await;
}

fn go(gate: &Gate) {
    std::fs::write(gate.dir.path().join("project/go"), "").unwrap();
}

async fn answer(wire: &mut Wire, id: i64) -> Value {
    serde_json::from_str(&wire.answer(id).await).unwrap()
}

fn assert_output(answer: &Value, output: &str) {
    assert!(text(&answer["result"]).starts_with(output), "{answer}");
}

/// Returns the statuses of the calls of `me`, the newest first.
async fn statuses(gate: &Gate) -> Vec<String> {
    let (_, answer) = gate.rest(Method::GET, "/api/v1/activity?agent=me", None).await;
    let records = answer["activities"].as_array().unwrap().iter();
    records.map(|record| record["status"].as_str().unwrap().to_owned()).collect()
}

async fn has_statuses(gate: &Gate, expected: &[&str]) {
    eventually(|| async { (statuses(gate).await == expected).then_some(()) }).await;
}

async fn check(gate: &Gate) {
    let checked = gate.cli(&["ledger", "check"]).await;
    assert!(checked.status.success(), "{}", stderr(&checked));
}

/// Waits for the event of a call of `me` in a phase.
async fn told(events: &mut Events, phase: &str) {
    let waiting = async {
        loop {
            let (name, _, data) = events.next().await;
            let agent = data["record"]["agent"]["name"].as_str().unwrap_or_default();
            if name == "activity" && data["phase"] == phase && agent.starts_with("me#") {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("the event comes");
}

#[tokio::test]
async fn a_running_gate_shows_the_calls_of_another_process_as_they_are_made() {
    let mut gate = gate().await;
    let mut events = Events::listen(&gate, None).await;
    let mut wire = step(&gate).await;
    begin(&gate, &mut wire, 1).await;
    told(&mut events, "start").await;
    go(&gate);
    assert_output(&answer(&mut wire, 1).await, "done\n");
    told(&mut events, "end").await;
    wire.close();
    assert_eq!(wire.ended().await.code(), Some(0));
    assert_eq!(gate.end().await, Some(0));
    gate.restart().await;
    has_statuses(&gate, &["success"]).await;
    check(&gate).await;
}

#[tokio::test]
async fn smoke_a_killed_gate_harms_no_call_of_another_process() {
    let mut gate = gate().await;
    let mut wire = step(&gate).await;
    begin(&gate, &mut wire, 1).await;
    gate.kill().await;
    go(&gate);
    assert_output(&answer(&mut wire, 1).await, "done\n");
    let next = wire.call(2, "Bash", json!({"command": "echo alone"})).await;
    assert_output(&next, "alone\n");
    gate.restart().await;
    has_statuses(&gate, &["success", "success"]).await;
    check(&gate).await;
}

#[tokio::test]
async fn a_killed_process_leaves_its_calls_to_the_next_gate() {
    let mut gate = gate().await;
    let mut wire = step(&gate).await;
    begin(&gate, &mut wire, 1).await;
    has_statuses(&gate, &["pending"]).await;
    kill_process(Pid::from_raw(wire.pid()).unwrap(), Signal::KILL).unwrap();
    wire.ended().await;
    gate.end().await;
    gate.restart().await;
    has_statuses(&gate, &["interrupted"]).await;
    check(&gate).await;
}
