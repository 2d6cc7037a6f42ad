//! Attacks through files: project configuration, programs on disk and names of files.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::gate::Gate;
use testkit::program::{stderr, stdout};
use testkit::upstream::{counted, pids, scripted};
use testkit::wait::eventually;

const SECRET: &str = "hunter2-in-the-project";

async fn review(gate: &Gate, server: &str) -> Value {
    let path = format!("/api/v1/servers/{server}/review");
    let (status, review) = gate.rest(Method::GET, &path, None).await;
    assert_eq!(status, 200, "{review}");
    review
}

/// Waits until a server waits for this reason, and returns its review.
async fn waiting(gate: &Gate, server: &str, change: &str) -> Value {
    eventually(|| async {
        let review = review(gate, server).await;
        (review["change"] == change).then_some(review)
    })
    .await
}

async fn approve(gate: &Gate, server: &str) {
    let output = gate.cli(&["upstream", "approve", server, "--yes"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

fn write_project(dir: &Path, servers: &Value) {
    let new = dir.join("countersign.json.new");
    std::fs::write(&new, json!({"mcpServers": servers}).to_string()).unwrap();
    std::fs::rename(new, dir.join("countersign.json")).unwrap();
}

fn lines(review: &Value, mark: &str) -> String {
    let lines = review["diff"].as_array().unwrap_or_else(|| panic!("{review}")).iter();
    let marked = lines.filter(|line| line["mark"] == mark);
    marked.map(|line| line["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn an_approved_server_whose_variables_or_headers_change_is_quarantined() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.json"), "{}").unwrap();
    let tools = json!([{"name": "look"}]);
    let project = |path: &str, header: &str| {
        let mut local = counted(dir.path(), "local", &tools);
        local["env"] = json!({"PYTHONPATH": path, "PROJECT_KEY": SECRET});
        let headers = json!({"X-Team": header});
        // Nothing listens there.
        json!({"local": local, "remote": {"url": "http://127.0.0.1:9/mcp", "headers": headers}})
    };
    let before = project("/usr/lib/tool", "blue");
    let after = project("/tmp/evil", "${env:AWS_SECRET_ACCESS_KEY}");
    write_project(dir.path(), &before);
    let gate = Gate::open(dir).await;
    let shown = review(&gate, "local").await;
    assert_eq!((&shown["change"], &shown["listed"]), (&json!("new"), &json!(false)), "{shown}");
    let text = shown["visible"].as_str().unwrap();
    for part in [r#""PYTHONPATH": "/usr/lib/tool""#, r#""PROJECT_KEY": "…""#, r#""sha256": ""#] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    approve(&gate, "local").await;
    approve(&gate, "remote").await;
    gate.ready("local").await;
    assert_eq!(pids(gate.dir.path(), "local").len(), 1);

    write_project(gate.dir.path(), &after);
    let local = waiting(&gate, "local", "changed").await;
    assert!(lines(&local, "added").contains("/tmp/evil"), "{local}");
    assert!(lines(&local, "removed").contains("PYTHONPATH"), "{local}");
    assert!(!lines(&local, "added").contains("PROJECT_KEY"), "it is the same: {local}");
    let remote = waiting(&gate, "remote", "changed").await;
    assert!(lines(&remote, "added").contains("${env:AWS_SECRET_ACCESS_KEY}"), "{remote}");
    gate.server_when("remote", |entry| entry["state"] == "quarantined").await;
    gate.server_when("local", |entry| entry["state"] == "quarantined").await;
    assert_eq!(pids(gate.dir.path(), "local").len(), 1, "the changed one was not started");

    // No literal value is written down or shown in clear.
    let mut texts = vec![local.to_string(), remote.to_string()];
    for file in ["ledger.db", "ledger.db-wal"] {
        let bytes = std::fs::read(gate.home().join(file)).unwrap_or_default();
        texts.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    assert!(texts.iter().all(|text| !text.contains(SECRET)));
    // The approval holds again for what it was given to.
    write_project(gate.dir.path(), &before);
    gate.ready("local").await;
}

/// Writes a program that adds `mark` to the file `ran` and then becomes the server.
fn write_program(dir: &Path, server: &Value, mark: &str) -> PathBuf {
    let (program, new) = (dir.join("tool"), dir.join("tool.new"));
    let (command, script) = (server["command"].as_str().unwrap(), server["args"][0].as_str());
    let ran = dir.join("ran");
    let text = format!(
        "#!/bin/sh\necho {mark} >> '{}'\nexec '{command}' '{}'\n",
        ran.display(),
        script.unwrap()
    );
    std::fs::write(&new, text).unwrap();
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(new, &program).unwrap();
    program
}

#[tokio::test]
async fn a_pinned_program_that_changes_does_not_run() {
    let mut server = Value::Null;
    let servers = |dir: &Path| {
        server = scripted(dir, "s", &json!([{"name": "look"}]));
        let program = write_program(dir, &server, "good");
        json!({"s": {"command": program, "pin": true}})
    };
    let mut gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    let dir = gate.dir.path().to_owned();
    let ran = || std::fs::read_to_string(dir.join("ran")).unwrap();
    assert_eq!(ran(), "good\n");
    let program = write_program(&dir, &server, "evil");
    let shown = waiting(&gate, "s", "program_changed").await;
    assert!(shown["visible"].as_str().unwrap().contains(program.to_str().unwrap()), "{shown}");
    gate.server_when("s", |entry| entry["state"] == "quarantined").await;
    let (status, _) = gate.rest(Method::POST, "/api/v1/servers/s/restart", None).await;
    assert_eq!(status, 200);
    let output = gate.cli(&["call", "tool-write", "--tool-name=s:look"]).await;
    assert!(stderr(&output).contains("server_quarantined"), "{}", stderr(&output));
    // Neither another process nor the next one starts it.
    assert_eq!(gate.end().await, Some(0));
    let config = gate.config_file();
    let listed = gate.cli(&["upstream", "list", "--config", config.to_str().unwrap()]).await;
    assert!(stdout(&listed).contains("quarantined"), "{}", stdout(&listed));
    gate.restart().await;
    assert_eq!(review(&gate, "s").await["change"], "program_changed");
    assert_eq!(ran(), "good\n");

    approve(&gate, "s").await;
    gate.ready("s").await;
    assert_eq!(ran(), "good\nevil\n", "a person has approved it");
    write_program(&dir, &server, "worse");
    let stale = json!({"fingerprint": shown["fingerprint"]});
    waiting(&gate, "s", "program_changed").await;
    let (status, answer) = gate.rest(Method::POST, "/api/v1/servers/s/approve", Some(stale)).await;
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("REVIEW_CHANGED")), "{answer}");
    assert!(lines(&answer["error"]["details"]["review"], "added").contains("sha256"), "{answer}");
    assert_eq!(ran(), "good\nevil\n");
}
