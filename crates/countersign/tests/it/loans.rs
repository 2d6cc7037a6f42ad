//! Other processes of a home while its gate runs: the gate keeps their records, and they go on
//! without it.

use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::client::text;
use testkit::gate::{Gate, Serving};
use testkit::program::{program, stderr};
use testkit::wait::eventually;
use testkit::wire::Wire;

use crate::agents::stage::Stage;
use crate::agents::{ours, say};
use crate::ledger::records_when;

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

async fn chains(gate: &Gate) -> usize {
    let (_, answer) = gate.rest(Method::GET, "/api/v1/chains", None).await;
    answer["chains"].as_array().unwrap().len()
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

#[tokio::test]
async fn the_running_gate_keeps_the_records_of_other_processes() {
    let mut gate = gate().await;
    let mut wire = step(&gate).await;
    begin(&gate, &mut wire, 1).await;
    has_statuses(&gate, &["pending"]).await;
    go(&gate);
    assert_output(&answer(&mut wire, 1).await, "done\n");
    has_statuses(&gate, &["success"]).await;
    assert_eq!(chains(&gate).await, 1);
    std::fs::remove_file(gate.dir.path().join("project/go")).unwrap();
    std::fs::remove_file(gate.dir.path().join("project/begun")).unwrap();
    begin(&gate, &mut wire, 2).await;
    kill_process(Pid::from_raw(wire.pid()).unwrap(), Signal::KILL).unwrap();
    has_statuses(&gate, &["interrupted", "success"]).await;
    check(&gate).await;
    assert_eq!(gate.end().await, Some(0));
}

#[tokio::test]
async fn a_run_is_in_the_chain_of_the_running_gate() {
    let turns = [ours("Read", json!({"path": "a.txt"})), say("done")];
    let stage = Stage::new("openai_compatible", turns).await;
    let mut serving = Serving::start(program(stage.dir())).await;
    let (ran, words) = stage.run_json(&stage.flow(&json!({"enable": true})), &[]).await;
    assert_eq!(ran["steps"][0]["status"], "success", "{words}");
    records_when(&stage.home(), |records| records.len() == 1).await;
    let db = rusqlite::Connection::open(stage.home().join("ledger.db")).unwrap();
    let chains: i64 = db.query_row("SELECT count(*) FROM chains", [], |row| row.get(0)).unwrap();
    assert_eq!(chains, 1);
    serving.child.kill().await.unwrap();
}

#[tokio::test]
async fn a_gate_that_stops_lets_the_calls_of_others_end() {
    let mut gate = gate().await;
    let mut wire = step(&gate).await;
    begin(&gate, &mut wire, 1).await;
    kill_process(gate.pid(), Signal::TERM).unwrap();
    gate.log_line("stopping").await;
    go(&gate);
    assert_output(&answer(&mut wire, 1).await, "done\n");
    assert_eq!(gate.end().await, Some(0));
    let next = wire.call(2, "Bash", json!({"command": "echo alone"})).await;
    assert_output(&next, "alone\n");
    gate.restart().await;
    has_statuses(&gate, &["success", "success"]).await;
    check(&gate).await;
}

#[tokio::test]
async fn a_process_goes_on_when_the_gate_that_kept_its_records_is_killed() {
    let mut gate = gate().await;
    let mut wire = step(&gate).await;
    begin(&gate, &mut wire, 1).await;
    gate.kill().await;
    go(&gate);
    // The outcome is not recorded, so it does not leave.
    let withheld = answer(&mut wire, 1).await;
    let words = text(&withheld["result"]);
    assert!(withheld["result"]["isError"] == true && words.contains("withheld"), "{withheld}");
    let next = wire.call(2, "Bash", json!({"command": "echo alone"})).await;
    assert_output(&next, "alone\n");
    gate.restart().await;
    has_statuses(&gate, &["success", "interrupted"]).await;
    check(&gate).await;
}

#[tokio::test]
async fn a_loan_is_for_the_operator() {
    let gate = gate().await;
    let socket = gate.home().join("control.sock");
    for (token, status) in [("agent-token", 403), ("api-key", 101)] {
        let stream = tokio::net::UnixStream::connect(&socket).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream))
                .await
                .unwrap();
        tokio::spawn(connection.with_upgrades());
        let request = hyper::Request::get("/ledger/loan")
            .header("host", "localhost")
            .header("authorization", format!("Bearer {}", gate.secret(token)))
            .header("connection", "upgrade")
            .header("upgrade", "ledger-loan")
            .body(http_body_util::Empty::<&[u8]>::new())
            .unwrap();
        assert_eq!(sender.send_request(request).await.unwrap().status(), status, "{token}");
    }
}
