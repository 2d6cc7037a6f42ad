//! A running call of a foreign client: progress under its own token, and cancellation.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::client::PATIENCE;
use testkit::foreign;
use testkit::gate::Gate;
use testkit::upstream::scripted;
use testkit::wait::eventually;

use super::clients::{Python, Rmcp, trace};
use super::servers::{self, EverythingHttp};

fn long_operation(server: &str) -> Value {
    json!({
        "name": format!("{server}:trigger-long-running-operation"),
        "args": {"duration": 0.6, "steps": 3},
        "intent": {"operation_type": "read"},
    })
}

async fn everything() -> (Gate, [EverythingHttp; 2]) {
    let http = [EverythingHttp::start().await, EverythingHttp::start_sse().await];
    let [new, old] = http.each_ref().map(|server| server.entry.clone());
    let servers = json!({"stdio": servers::everything(), "http": new, "sse": old});
    (servers::gate(|_| servers).await, http)
}

#[tokio::test]
async fn progress_of_a_real_server_reaches_the_python_client_under_its_token() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let (gate, _http) = everything().await;
    for door in ["http", "stdio"] {
        let options = ["--handshake", "--trace"];
        let mut client = Python::through(door, &gate, &options);
        let mut progress = Vec::new();
        for server in ["stdio", "http", "sse"] {
            let call = json!({"op": "progress_call", "name": "call_tool_read", "arguments": long_operation(server)});
            let answer = client.perform(call).await;
            assert_eq!(answer.get("client_error"), None, "{door}: {answer}");
            progress.push(answer["progress"].clone());
        }
        client.end().await;
        let tokens: Vec<Value> = trace(&gate)
            .into_iter()
            .filter(|(sent, _)| *sent)
            .filter_map(|(_, message)| message.pointer("/params/_meta/progressToken").cloned())
            .collect();
        assert_eq!(tokens.len(), 3, "{door}");
        for (token, progress) in tokens.iter().zip(progress) {
            let step = |n: u64| json!({"progress": n, "total": 3, "progressToken": token});
            assert_eq!(progress, json!([step(1), step(2), step(3)]), "{door}");
        }
    }
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn progress_of_a_real_server_reaches_rmcp_under_its_token() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let (gate, _http) = everything().await;
    for door in ["http", "stdio"] {
        let mut client = Rmcp::through(door, &gate).await;
        for server in ["stdio", "http", "sse"] {
            let call = client.begin("call_tool_read", long_operation(server)).await;
            let token = call.progress_token.clone();
            for step in 1..=3 {
                let params = tokio::time::timeout(PATIENCE, client.progress.recv()).await;
                let params = params.expect("progress in time").expect("a client that goes on");
                assert_eq!(params.progress_token, token, "{door} {server}");
                assert_eq!((params.progress, params.total), (f64::from(step), Some(3.0)));
            }
            call.await_response().await.expect("a result");
        }
    }
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn a_call_cancelled_by_rmcp_is_cancelled_at_the_server() {
    for door in ["http", "stdio"] {
        let marker = tempfile::tempdir().unwrap();
        let file = marker.path().join("cancelled");
        let tools = json!([{"name": "hang", "x-do": {"hang": file}}, {"name": "echo"}]);
        let gate = servers::gate(|dir| json!({"s": scripted(dir, "s", &tools)})).await;
        let client = Rmcp::through(door, &gate).await;
        let write = |tool: &str| json!({"name": format!("s:{tool}"), "intent": {"operation_type": "write"}});
        let hanging = client.begin("call_tool_write", write("hang")).await;
        // The other call's response shows that the first one has been sent.
        client.call("call_tool_write", write("echo")).await;
        assert!(!file.exists(), "{door}");
        hanging.cancel(Some("no longer wanted".to_owned())).await.unwrap();
        eventually(|| async { file.exists().then_some(()) }).await;
        let after = client.call("call_tool_write", write("echo")).await;
        assert_ne!(after["isError"], true, "{door}: {after}");
    }
}

#[tokio::test]
async fn a_call_that_times_out_in_python_is_cancelled_at_the_server() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    // The client's HTTP library gives up after as long a silence, so the stream must have begun.
    let http_timeout = mcp::limits::HTTP_STREAM_AFTER + Duration::from_secs(2);
    let gives_up = async |door: &str, timeout: Duration| {
        let marker = tempfile::tempdir().unwrap();
        let file = marker.path().join("cancelled");
        let tools = json!([{"name": "hang", "x-do": {"hang": file}}]);
        let gate = servers::gate(|dir| json!({"s": scripted(dir, "s", &tools)})).await;
        let timeout = timeout.as_secs().to_string();
        let mut client = Python::through(door, &gate, &["--handshake", "--timeout", &timeout]);
        let arguments = json!({"name": "s:hang", "intent": {"operation_type": "write"}});
        let call = json!({"op": "call", "name": "call_tool_write", "arguments": arguments});
        let answer = client.perform(call).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("timed out"), "{door}: {answer}");
        eventually(|| async { file.exists().then_some(()) }).await;
        client.end().await;
    };
    tokio::join!(gives_up("http", http_timeout), gives_up("stdio", Duration::from_secs(2)));
}
