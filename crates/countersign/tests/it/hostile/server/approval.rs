//! Servers that change what a person is about to approve.

use std::process::{Output, Stdio};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::gate::Gate;
use testkit::program::{first_lines, program, stderr, stdout};
use testkit::wait::eventually;
use tokio::io::AsyncWriteExt;

use crate::locks::{live, replace_script};

fn tools(says: &str) -> Value {
    let other = format!("other: {says}");
    json!([{"name": "say", "description": says}, {"name": "other", "description": other}])
}

/// Starts a server whose two tools have changed since they were approved.
async fn changed() -> Gate {
    let servers = |dir: &std::path::Path| json!({"s": live(dir, "s", &tools("harmless"))});
    let gate = Gate::start(servers, json!({"refresh_interval": "1s"})).await;
    gate.ready("s").await;
    change(&gate, "shown").await;
    gate
}

/// Changes the tools, and waits until the gate has seen that.
async fn change(gate: &Gate, says: &str) {
    replace_script(gate, "s", &tools(says));
    eventually(|| async {
        let (_, review) = gate.rest(Method::GET, "/api/v1/servers/s/review", None).await;
        let items = review["items"].as_array()?;
        let is_new = |item: &Value| item["text"].as_str().is_some_and(|text| text.contains(says));
        (items.len() == 2 && items.iter().all(is_new)).then_some(())
    })
    .await;
}

async fn callable(gate: &Gate, tool: &str) -> bool {
    let (_, tool) = gate.rest(Method::GET, &format!("/api/v1/tools/s/{tool}"), None).await;
    tool["status"] == "callable"
}

/// Runs a command with these answers on stdin.
async fn answered(gate: &Gate, args: &[&str], answers: &str) -> Output {
    let mut command = program(gate.dir.path());
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(answers.as_bytes()).await.unwrap();
    child.wait_with_output().await.unwrap()
}

#[tokio::test]
async fn a_tool_that_changes_after_it_was_shown_is_not_approved() {
    let gate = changed().await;
    let (_, shown) = gate.rest(Method::GET, "/api/v1/tools/s/say", None).await;
    let mut command = program(gate.dir.path());
    command.args(["tools", "approve", "s:say"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut reviewing = command.spawn().unwrap();
    let first = first_lines(&mut reviewing, 2).await;
    assert!(first.contains("tool 's:say'"), "{first}");

    change(&gate, "exfiltrate").await;
    reviewing.stdin.take().unwrap().write_all(b"y\n").await.unwrap();
    let output = reviewing.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.contains("REVIEW_CHANGED") && told.contains("\"exfiltrate\""), "{told}");
    assert!(!callable(&gate, "say").await);

    let body = json!({"fingerprint": shown["fingerprint"]});
    let (status, answer) =
        gate.rest(Method::POST, "/api/v1/tools/s/say/approve", Some(body.clone())).await;
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("REVIEW_CHANGED")), "{answer}");
    let items = answer["error"]["details"]["review"]["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["name"]), (1, &json!("say")), "{answer}");
    assert!(items[0]["diff"].to_string().contains("exfiltrate"), "{answer}");
    let item = json!({"name": "say", "fingerprint": shown["fingerprint"]});
    let body = json!({"items": [item]});
    let (status, _) = gate.rest(Method::POST, "/api/v1/servers/s/approve-items", Some(body)).await;
    assert_eq!(status, 409);
    assert!(!callable(&gate, "say").await);
    let output = gate.cli(&["tools", "approve", "s:say", "--yes"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(callable(&gate, "say").await && !callable(&gate, "other").await);
}

#[tokio::test]
async fn a_reviewer_decides_once_about_the_same_change() {
    let both = |says: &str| json!([{"name": "say", "description": says}, {"name": "other", "description": says}]);
    let servers = |dir: &std::path::Path| json!({"s": live(dir, "s", &both("harmless"))});
    let gate = Gate::start(servers, json!({"refresh_interval": "1s"})).await;
    gate.ready("s").await;
    replace_script(&gate, "s", &both("shown"));
    gate.server_when("s", |entry| entry["pending"] == 2).await;
    let output = answered(&gate, &["upstream", "review", "s"], "a\n").await;
    assert!(stdout(&output).contains("the same change in"), "{}", stdout(&output));
    assert!(callable(&gate, "say").await && callable(&gate, "other").await);
}

#[tokio::test]
async fn nothing_is_approved_without_an_answer() {
    let gate = changed().await;
    for answers in ["", "n\n", "\n"] {
        let output = answered(&gate, &["tools", "approve", "s:say"], answers).await;
        assert_eq!(output.status.code(), Some(1), "{answers:?}");
        assert!(stdout(&output).contains("+   \"description\": \"shown\""), "{}", stdout(&output));
        assert!(stderr(&output).contains("nothing was approved"), "{}", stderr(&output));
    }
    assert!(!callable(&gate, "say").await);
    let output = answered(&gate, &["tools", "approve", "s:say"], "y\n").await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(callable(&gate, "say").await);
}

#[tokio::test]
async fn a_reviewer_walks_through_what_waits_one_by_one() {
    let gate = changed().await;
    let review = ["upstream", "review", "s"];
    let output = answered(&gate, &review, "q\n").await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("'s:other'") && !stdout(&output).contains("'s:say'"));
    let output = answered(&gate, &review, "what?\ns\na\n").await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("approved tool 's:say' sha256:"), "{}", stdout(&output));
    assert!(callable(&gate, "say").await && !callable(&gate, "other").await);

    // What was skipped stays locked, also when the server itself is approved.
    let output = gate.cli(&["upstream", "quarantine", "s"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = answered(&gate, &review, "s\na\n").await;
    assert!(stdout(&output).contains("\"command\""), "{}", stdout(&output));
    assert!(stdout(&output).ends_with("approved server 's'\n"), "{}", stdout(&output));
    assert!(callable(&gate, "say").await && !callable(&gate, "other").await);
    let output = answered(&gate, &review, "a\n").await;
    assert!(callable(&gate, "other").await, "{}", stderr(&output));
    let output = answered(&gate, &review, "").await;
    assert_eq!(stdout(&output), "nothing of server 's' waits for approval\n");
    let output = gate.cli(&["upstream", "review", "s", "-o", "json"]).await;
    let review: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(review["items"], json!([]));
}
