//! Checkpoints of a running gate: `ledger head`, the file next to the database, and the anchor.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::gate::Gate;
use testkit::program::{stderr, stdout};
use testkit::upstream::scripted;
use testkit::wait::eventually;

use crate::ledger::{self, receipts};

async fn gate(ledger: Value) -> Gate {
    let tools = json!([{"name": "say", "annotations": {"readOnlyHint": true}}]);
    Gate::start(|dir| json!({"s": scripted(dir, "s", &tools)}), json!({"ledger": ledger})).await
}

async fn head(gate: &Gate) -> String {
    let output = gate.cli(&["ledger", "head"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output).trim().to_owned()
}

async fn verified(gate: &Gate, head: &str) -> (Option<i32>, String) {
    let output = gate.cli(&["receipt", "verify", "--head", head]).await;
    (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
}

/// Returns the checkpoints that the ledger holds, oldest first.
fn checkpoints(home: &Path) -> Vec<Value> {
    let texts = receipts(home).into_iter();
    let texts = texts.map(|row| row["receipt_json"].as_str().unwrap().to_owned());
    let read = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let runtimes = texts.map(read).map(|receipt| receipt["issuer"]["runtime"].clone());
    runtimes.filter_map(|runtime| runtime.get("checkpoint").cloned()).collect()
}

#[tokio::test]
async fn smoke_a_running_gate_issues_a_checkpoint_for_the_head() {
    let mut gate = gate(json!({})).await;
    let client = gate.http().await;
    client.two_key_call("read", "s:say", json!({})).await;
    let first = head(&gate).await;
    client.two_key_call("read", "s:say", json!({})).await;
    let second = head(&gate).await;
    assert_ne!(first, second);
    for line in [&first, &second] {
        let (code, words) = verified(&gate, line).await;
        assert_eq!(code, Some(0), "{words}");
    }
    assert_eq!(gate.end().await, Some(0));
    // After the end the head is that of the last receipt, which is a checkpoint.
    let last = head(&gate).await;
    let found = checkpoints(&gate.home());
    assert_eq!(found.len(), 3);
    let kept = std::fs::read_to_string(gate.home().join("checkpoint.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["issuer"]["runtime"]["checkpoint"], found[2]);
    for (line, checkpoint) in [first, second, last].iter().zip(&found) {
        assert!(line.starts_with(checkpoint["digest"].as_str().unwrap()), "{line}");
        assert_eq!(checkpoint["count"], 1);
        let (code, words) = verified(&gate, line).await;
        assert_eq!(code, Some(0), "{words}");
    }
    let lengths: Vec<_> = found.iter().map(|found| found["chains"][0]["length"].clone()).collect();
    assert_eq!(lengths, [1, 3, 4]);
    assert_eq!(found[0]["previous"], Value::Null);
    assert_eq!(found[1]["previous"]["length"], 2);
}

#[tokio::test]
async fn a_closed_chain_is_named_once_more_and_then_covered_by_the_digest() {
    let mut gate = gate(json!({})).await;
    for round in 0..3 {
        if round > 0 {
            gate.restart().await;
        }
        let client = gate.http().await;
        client.two_key_call("read", "s:say", json!({})).await;
        assert_eq!(gate.end().await, Some(0));
    }
    let found = checkpoints(&gate.home());
    let named: Vec<usize> =
        found.iter().map(|found| found["chains"].as_array().unwrap().len()).collect();
    // Its own chain, and the one before with its end; older ones were named with theirs.
    assert_eq!(named, [1, 2, 2]);
    assert_eq!(found.iter().map(|found| found["count"].clone()).collect::<Vec<_>>(), [1, 2, 3]);
    let heads = ledger::rows(
        &gate.home(),
        "SELECT chain_id, MAX(sequence) AS length, receipt_hash FROM receipts
         WHERE action_type <> 'agent_receipts.chain_closed' OR chain_id <>
           (SELECT MAX(chain_id) FROM receipts)
         GROUP BY chain_id ORDER BY chain_id",
    );
    let line = |row: &Value| {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        format!("{} {} {}\n", text("chain_id"), row["length"], text("receipt_hash"))
    };
    let text: String = heads.iter().map(line).collect();
    assert_eq!(found[2]["digest"], receipt::Hash::of(text.as_bytes()).to_string(), "{text}");
}

#[tokio::test]
async fn the_anchor_receives_each_checkpoint() {
    let file = json!({"anchor": "anchored.jsonl"});
    let command = json!({"anchor": ["sh", "-c", "cat >> anchored.jsonl"]});
    for anchor in [file, command] {
        let mut gate = gate(anchor).await;
        gate.http().await.two_key_call("read", "s:say", json!({})).await;
        let line = head(&gate).await;
        let anchored = gate.home().join("anchored.jsonl");
        let kept = eventually(|| async {
            let kept = std::fs::read_to_string(&anchored).ok();
            kept.filter(|kept| kept.ends_with('\n'))
        })
        .await;
        let (code, words) = verified(&gate, kept.lines().next().unwrap()).await;
        assert_eq!(code, Some(0), "{words}");
        let receipt: Value = serde_json::from_str(&kept).unwrap();
        let digest = receipt["issuer"]["runtime"]["checkpoint"]["digest"].as_str().unwrap();
        assert!(line.starts_with(digest), "{line}");
        let health = eventually(|| async {
            let anchor = ledger::health(&gate).await["anchor"].clone();
            anchor["delivered_at"].is_string().then_some(anchor)
        })
        .await;
        assert_eq!((&health["lag_seconds"], &health["last_error"]), (&json!(0), &Value::Null));
        assert_eq!(gate.end().await, Some(0));
        let kept = std::fs::read_to_string(&anchored).unwrap();
        assert_eq!(kept.lines().count(), 2, "the end is anchored before the process ends");
    }
}

#[tokio::test]
async fn an_anchor_that_fails_is_shown_and_delays_no_call() {
    let gate = gate(json!({"anchor": ["sh", "-c", "echo no disk >&2; test -e open"]})).await;
    let client = gate.http().await;
    client.two_key_call("read", "s:say", json!({})).await;
    head(&gate).await;
    let anchor = async |fits: fn(&Value) -> bool| {
        eventually(|| async {
            let anchor = ledger::health(&gate).await["anchor"].clone();
            fits(&anchor).then_some(anchor)
        })
        .await
    };
    let failing = anchor(|anchor| anchor["last_error"].is_string()).await;
    assert!(failing["last_error"].as_str().unwrap().contains("no disk"), "{failing}");
    assert_eq!(failing["delivered_at"], Value::Null);
    client.two_key_call("read", "s:say", json!({})).await;
    // It is tried again.
    std::fs::write(gate.home().join("open"), "").unwrap();
    let sound = anchor(|anchor| anchor["delivered_at"].is_string()).await;
    assert_eq!((&sound["lag_seconds"], &sound["last_error"]), (&json!(0), &Value::Null));
}

#[tokio::test]
async fn an_anchor_in_the_home_is_noted_where_chains_are_verified() {
    let gate = gate(json!({"anchor": "anchored.jsonl"})).await;
    let (_, verdict) = gate.rest(Method::GET, "/api/v1/chains/verify", None).await;
    assert_eq!(verdict["valid"], true, "{verdict}");
    assert!(verdict["notes"][0].as_str().unwrap().contains("lies in the home"), "{verdict}");
}

#[tokio::test]
async fn a_checkpoint_is_issued_on_request_before_any_call() {
    let gate = gate(json!({})).await;
    let (status, head) = gate.rest(Method::POST, "/api/v1/checkpoints", None).await;
    assert_eq!((status, &head["count"]), (200, &json!(0)), "{head}");
    let (code, words) = verified(&gate, head["line"].as_str().unwrap()).await;
    assert_eq!(code, Some(0), "{words}");
}
