//! `status` and `doctor`: what a person sees of a gate that works, and of one that does not.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use testkit::client::two_keys;
use testkit::gate::Gate;
use testkit::program::{program, run, stderr, stdout};
use testkit::upstream::scripted;

fn tools() -> Value {
    json!([{"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}])
}

/// Runs `doctor` where no agent program is installed.
pub(crate) async fn doctor(dir: &Path, args: &[&str]) -> Output {
    let mut command = program(dir);
    command.arg("doctor").args(args).env("PATH", "/nonexistent");
    command.output().await.expect("the program runs")
}

fn findings(output: &Output) -> Vec<(String, String, String)> {
    let findings: Value = serde_json::from_str(&stdout(output)).expect("JSON");
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let findings = findings.as_array().expect("a list").iter();
    findings.map(|one| (text(one, "check"), text(one, "health"), text(one, "text"))).collect()
}

#[tokio::test]
async fn smoke_status_shows_the_servers_the_agents_and_the_ledger() {
    let gate = Gate::scripted(tools()).await;
    let client = gate.http().await;
    client.request("tools/call", two_keys("read", "s:look", json!({}))).await.unwrap();
    let output = gate.cli(&["status"]).await;
    assert!(output.status.success(), "{}", stderr(&output));
    let screen = stdout(&output);
    for line in ["gate     running for", "config   in effect", "servers  1 ready: s", "last seen"] {
        assert!(screen.contains(line), "{line}: {screen}");
    }
    let report: Value =
        serde_json::from_str(&stdout(&gate.cli(&["status", "-o", "json"]).await)).unwrap();
    assert_eq!(report["running"], true);
    assert_eq!(report["servers"]["servers"][0]["name"], "s");
    assert!(report["agents"]["agents"][0]["last_call"].is_string(), "{report}");
}

#[tokio::test]
async fn status_without_a_gate_says_how_to_start_one() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), ["status"]).await;
    assert_eq!(output.status.code(), Some(1), "there is no home yet");
    fs::create_dir(dir.path().join("home")).unwrap();
    let output = run(dir.path(), ["status"]).await;
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("not running: start it with 'countersign serve'"));
}

#[tokio::test]
async fn doctor_finds_no_fault_with_a_gate_that_works() {
    let gate = Gate::scripted(tools()).await;
    let client = gate.http().await;
    client.request("tools/call", two_keys("read", "s:look", json!({}))).await.unwrap();
    let config = gate.config_file();
    let output =
        doctor(gate.dir.path(), &["--config", config.to_str().unwrap(), "-o", "json"]).await;
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let findings = findings(&output);
    for check in ["config", "home", "gate", "server", "ledger"] {
        let found = findings.iter().find(|(name, ..)| name == check);
        assert_eq!(
            found.map(|(_, health, _)| health.as_str()),
            Some("ok"),
            "{check}: {findings:?}"
        );
    }
}

#[tokio::test]
async fn doctor_reports_the_servers_of_the_running_gate_that_cannot_be_used() {
    let servers = |dir: &Path| {
        let mut new = scripted(dir, "new", &tools());
        new["quarantined"] = true.into();
        json!({"new": new, "broken": {"command": "false"}})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.server_when("broken", |server| server["state"] == "error").await;
    gate.server_when("new", |server| server["state"] == "quarantined").await;
    let config = gate.config_file();
    let output = doctor(gate.dir.path(), &["--config", config.to_str().unwrap()]).await;
    let screen = stdout(&output);
    for words in ["countersign upstream logs broken", "countersign upstream review new"] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
}

#[tokio::test]
async fn doctor_names_each_fault_with_its_cure() {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({"mcpServers": {"x": {"command": "no-such-program"}}});
    fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("api-key"), "csk_x").unwrap();
    fs::set_permissions(&home, Permissions::from_mode(0o755)).unwrap();
    let output = doctor(dir.path(), &["--config", "config.json"]).await;
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let screen = stdout(&output);
    for words in [
        "the program 'no-such-program' is not on the PATH",
        "install no-such-program, or write its full path in the config",
        "is open to other users",
        "chmod go= ",
        "not running",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    fs::write(dir.path().join("config.json"), "{ \"listen\": 7 }").unwrap();
    let output = doctor(dir.path(), &["--config", "config.json"]).await;
    assert!(stdout(&output).contains("countersign config check"), "{}", stdout(&output));
}
