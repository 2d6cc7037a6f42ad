//! Secrets in the definitions of servers that are added at run time: the server gets them, and no
//! copy of the ledger, no answer and no record has them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::gate::Gate;
use testkit::program::{stderr, stdout};
use testkit::wait::eventually;

/// Values that only their names mark as secrets.
const SECRETS: [&str; 3] = ["tuesday-lunch", "wednesday-lunch", "thursday-lunch"];

/// A server that writes what it was given into a file.
async fn add(gate: &Gate) {
    let told = gate.dir.path().join("told");
    let note = r#"echo "$API_TOKEN $NAME $*" > "$0"; exec cat > /dev/null"#;
    let output = gate
        .cli(&[
            "upstream",
            "add",
            "n",
            "--env",
            "API_TOKEN=tuesday-lunch",
            "--env",
            "NAME=wednesday-lunch",
            "--",
            "sh",
            "-c",
            note,
            told.to_str().unwrap(),
            "--token=thursday-lunch",
            "plain",
        ])
        .await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

async fn approve(gate: &Gate) {
    let output = gate.cli(&["upstream", "approve", "n", "--yes"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

async fn told(gate: &Gate) -> String {
    let file = gate.dir.path().join("told");
    eventually(|| async { std::fs::read_to_string(&file).ok().filter(|text| text.contains('\n')) })
        .await
}

/// Fails if a file of the home other than `secrets.json` holds a secret.
fn assert_kept_apart(home: &Path) {
    for file in std::fs::read_dir(home).unwrap().map(|entry| entry.unwrap().path()) {
        let text = std::fs::read(&file).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let holds = SECRETS.iter().any(|secret| text.contains(secret));
        assert_eq!(holds, file.ends_with("secrets.json"), "{}", file.display());
    }
}

async fn empty_gate() -> Gate {
    Gate::start(|_| json!({}), json!({})).await
}

#[tokio::test]
async fn smoke_a_server_gets_its_secrets_and_nothing_else_shows_them() {
    let mut gate = empty_gate().await;
    add(&gate).await;
    approve(&gate).await;
    assert_eq!(told(&gate).await, "tuesday-lunch wednesday-lunch --token=thursday-lunch plain\n");
    let mode = std::fs::metadata(gate.home().join("secrets.json")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600);
    for args in [
        &["upstream", "list", "-o", "json"][..],
        &["upstream", "get", "n", "-o", "json"],
        &["upstream", "get", "n"],
        &["activity", "export"],
        &["receipt", "export"],
    ] {
        let output = gate.cli(args).await;
        let shown = stdout(&output) + &stderr(&output);
        assert!(!SECRETS.iter().any(|secret| shown.contains(secret)), "{args:?}: {shown}");
    }
    // A reviewer sees values, except under names of secrets.
    let review = stdout(&gate.cli(&["upstream", "review", "n", "-o", "json"]).await);
    assert!(!review.contains("tuesday-lunch") && !review.contains("thursday-lunch"), "{review}");
    let (_, server) = gate.rest(Method::GET, "/api/v1/servers/n", None).await;
    assert_eq!(server["args"].as_array().unwrap().last(), Some(&json!("plain")), "{server}");
    assert!(server.to_string().contains("--token=…"), "{server}");
    gate.end().await;
    assert_kept_apart(&gate.home());
    // The approval still holds, and the server still gets them.
    std::fs::remove_file(gate.dir.path().join("told")).unwrap();
    gate.restart().await;
    assert!(told(&gate).await.starts_with("tuesday-lunch wednesday-lunch"));
    let output = gate.cli(&["upstream", "remove", "n"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(gate.home().join("secrets.json")).unwrap(), "{}");
}

#[tokio::test]
async fn a_changed_secret_ends_the_approval() {
    let mut gate = empty_gate().await;
    add(&gate).await;
    approve(&gate).await;
    told(&gate).await;
    gate.end().await;
    std::fs::remove_file(gate.dir.path().join("told")).unwrap();
    let file = gate.home().join("secrets.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("tuesday", "someday")).unwrap();
    gate.restart().await;
    gate.server_when("n", |server| server["quarantined"] == true).await;
    assert!(!gate.dir.path().join("told").exists());
}

#[tokio::test]
async fn a_server_whose_secrets_are_lost_is_not_started_and_says_why() {
    let mut gate = empty_gate().await;
    add(&gate).await;
    approve(&gate).await;
    told(&gate).await;
    gate.end().await;
    std::fs::remove_file(gate.dir.path().join("told")).unwrap();
    let file = gate.home().join("secrets.json");
    let text = std::fs::read_to_string(&file).unwrap();
    for broken in [None, Some("{"), Some("{\"n\": []}")] {
        let _ = std::fs::remove_file(&file);
        if let Some(broken) = broken {
            std::fs::write(&file, broken).unwrap();
        }
        gate.restart().await;
        let says = |server: &Value| server["error"].to_string().contains("secrets.json");
        let server = gate.server_when("n", says).await;
        assert_eq!(server["transport"], "stdio", "{server}");
        assert!(!gate.dir.path().join("told").exists());
        gate.end().await;
    }
    std::fs::write(&file, text).unwrap();
    gate.restart().await;
    assert!(told(&gate).await.starts_with("tuesday-lunch"));
}
