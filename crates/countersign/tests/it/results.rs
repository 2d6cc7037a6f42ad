//! Arguments, results, progress and cancellation pass through unchanged.

use std::sync::{Arc, Mutex};

use mcp::message::raw;
use mcp::peer::{Ask, CancelReason, RequestError};
use serde_json::{Value, json};
use testkit::client::{PATIENCE, text};
use testkit::gate::{Gate, both};
use testkit::upstream::scripted;
use testkit::wait::eventually;
use tokio_util::sync::CancellationToken;

fn write(name: &str, args: Value) -> Value {
    json!({"name": format!("s:{name}"), "args": args, "intent": {"operation_type": "write"}})
}

#[tokio::test]
async fn bytes_survive_in_both_directions() {
    let gate = Gate::scripted(json!([{"name": "echo"}])).await;
    for (door, client) in both(&gate).await {
        let params = r#"{"name":"call_tool_write","arguments":{"name":"s:echo","args":{"n": 1E2,"big":123456789012345678,"s":"\u0041","deep":{"z":1,"a":[0.10]}},"intent":{"operation_type":"write"}},"_meta":{"x-trace":{"k":1.50}},"x-other":{"ttl":60}}"#;
        let answer = client.request_text("tools/call", params).await.unwrap();
        let value: Value = serde_json::from_str(&answer).unwrap();
        let arrived = text(&value);
        assert!(arrived.contains(r#""arguments":{"n": 1E2,"big":123456789012345678,"s":"\u0041","deep":{"z":1,"a":[0.10]}}"#), "{door}: {arrived}");
        assert!(arrived.contains(r#""x-trace":{"k":1.50}"#), "{door}: {arrived}");
        assert!(arrived.contains(r#""x-other":{"ttl":60}"#), "{door}: {arrived}");
        assert!(
            answer.contains(
                r#""x-number":1E2,"x-big":12345678901234567890123,"_meta":{"x-meta":{"kept":1.0}}"#
            ),
            "{door}: {answer}"
        );
        assert!(answer.contains(r#""x-block":1"#), "{door}: {answer}");
    }
}

#[tokio::test]
async fn long_results_are_cut_and_read_on() {
    let servers = |dir: &std::path::Path| json!({"s": scripted(dir, "s", &json!([{"name": "long", "x-do": {"text": 2500}}]))});
    let gate = Gate::start(servers, json!({"tool_response_limit": 1000})).await;
    for (door, client) in both(&gate).await {
        let result = client.call("call_tool_write", write("long", json!({}))).await;
        assert_eq!(text(&result).len(), 1000, "{door}");
        assert_eq!(result["structuredContent"], json!({"length": 2500}), "{door}");
        let note = result["content"][1]["text"].as_str().unwrap();
        assert!(note.starts_with("[cut: 1000 of 2500 characters shown"), "{door}: {note}");
        let key = note.split('"').nth(3).unwrap();
        let mut whole = text(&result).to_owned();
        while whole.len() < 2500 {
            let page = client.call("read_cache", json!({"key": key, "offset": whole.len()})).await;
            whole.push_str(text(&page));
        }
        let expected: String = (0..2500u32).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
        assert_eq!(whole, expected, "{door}");
    }
}

#[tokio::test]
async fn progress_comes_under_the_clients_own_token() {
    let gate = Gate::scripted(json!([{"name": "work", "x-do": {"progress": 3}}])).await;
    for (door, client) in both(&gate).await {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let sink = steps.clone();
        let ask = Ask {
            method: "tools/call".to_owned(),
            params: Some(raw(
                json!({"name": "call_tool_write", "arguments": write("work", json!({}))})
                    .to_string(),
            )),
            timeout: PATIENCE,
            cancel: CancellationToken::new(),
            reason: CancelReason::default(),
            notices: None,
            progress: Some(Arc::new(move |params| {
                let params: Value = serde_json::from_str(params.get()).unwrap();
                sink.lock().unwrap().push((params["progress"].as_u64(), params["x-step"].as_u64()));
            })),
            trace: None,
            delivery: Arc::default(),
        };
        client.peer.request(ask).await.unwrap();
        let expected: Vec<_> = (1..=3).map(|step| (Some(step), Some(step))).collect();
        assert_eq!(*steps.lock().unwrap(), expected, "{door}");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_upstream() {
    for door in ["stdio", "http"] {
        let dir = tempfile::tempdir().unwrap();
        let (begun, file) = (dir.path().join("begun"), dir.path().join("cancelled"));
        let hang = json!({"name": "hang", "x-log": begun, "x-do": {"hang": file}});
        let gate = Gate::scripted(json!([hang])).await;
        let client = if door == "stdio" { gate.stdio().await } else { gate.http().await };
        let cancel = CancellationToken::new();
        let ask = Ask {
            cancel: cancel.clone(),
            ..Ask::new(
                "tools/call",
                Some(raw(
                    json!({"name": "call_tool_write", "arguments": write("hang", json!({}))})
                        .to_string(),
                )),
                PATIENCE,
            )
        };
        let hanging = client.peer.request(ask);
        tokio::pin!(hanging);
        tokio::select! {
            answer = &mut hanging => panic!("{door}: {answer:?}"),
            () = eventually(|| async { begun.exists().then_some(()) }) => {}
        }
        cancel.cancel();
        assert!(matches!(hanging.await, Err(RequestError::Cancelled)), "{door}");
        eventually(|| async { file.exists().then_some(()) }).await;
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_ends_with_its_code() {
    let servers = |dir: &std::path::Path| {
        let mut server =
            scripted(dir, "s", &json!([{"name": "hang", "x-do": "hang"}, {"name": "echo"}]));
        server["call_timeout"] = "1s".into();
        json!({"s": server})
    };
    let gate = Gate::start(servers, json!({})).await;
    // Otherwise the call could spend its time waiting for the server to start.
    gate.ready("s").await;
    for (door, client) in both(&gate).await {
        let result = client.call("call_tool_write", write("hang", json!({}))).await;
        assert_eq!(testkit::client::refusal(&result)["code"], "TIMEOUT", "{door}");
        assert_ne!(client.call("call_tool_write", write("echo", json!({}))).await["isError"], true);
    }
}

#[tokio::test]
async fn different_upstream_errors_get_different_codes() {
    let tools = json!([
        {"name": "error", "x-do": "error"}, {"name": "is_error", "x-do": "is_error"}, {"name": "die", "x-do": "die"},
        {"name": "ask", "x-do": {"ask": "roots/list"}},
    ]);
    let gate = Gate::scripted(tools).await;
    let client = gate.http().await;
    let error = client.call("call_tool_write", write("error", json!({}))).await;
    assert_eq!(testkit::client::refusal(&error)["code"], "UPSTREAM_ERROR");
    assert_eq!(
        testkit::client::refusal(&error)["details"]["error"],
        json!({"code": -32042, "message": "no luck", "data": {"why": "scripted"}})
    );
    let is_error = client.call("call_tool_write", write("is_error", json!({}))).await;
    assert_eq!(
        is_error,
        json!({"content": [{"type": "text", "text": "went wrong"}], "isError": true})
    );
    let ask = client.call("call_tool_write", write("ask", json!({}))).await;
    assert!(
        text(&ask).contains("method not found"),
        "a shared connection has nobody to ask: {ask}"
    );
    let dead = client.call("call_tool_write", write("die", json!({}))).await;
    assert_eq!(testkit::client::refusal(&dead)["code"], "OUTCOME_UNKNOWN");
    // The server is started again.
    eventually(|| async {
        let result = client.call("call_tool_write", write("is_error", json!({}))).await;
        (text(&result) == "went wrong").then_some(())
    })
    .await;
}
