//! Arguments, results and errors of a server's process, through the gate's own tools.

use serde_json::{Value, json};
use testkit::client::{code, refusal, text};
use testkit::gate::{Gate, both};
use testkit::wait::eventually;

#[tokio::test]
async fn smoke_results_and_errors_of_a_process_reach_the_caller() {
    let tools = json!([
        {"name": "echo"}, {"name": "error", "x-do": "error"},
        {"name": "is_error", "x-do": "is_error"}, {"name": "die", "x-do": "die"},
    ]);
    let gate = Gate::scripted(tools).await;
    for (door, client) in both(&gate).await {
        let params = r#"{"name":"call_tool_write","arguments":{"name":"s:echo","args":{"n": 1E2,"big":123456789012345678},"intent":{"operation_type":"write"}}}"#;
        let answer = client.request_text("tools/call", params).await.unwrap();
        let value: Value = serde_json::from_str(&answer).unwrap();
        let arrived = text(&value);
        let arguments = r#""arguments":{"n": 1E2,"big":123456789012345678}"#;
        assert!(arrived.contains(arguments), "{door}: {arrived}");
        assert!(answer.contains(r#""x-number":1E2,"x-big":12345678901234567890123"#), "{door}");
        let error = client.two_key_call("write", "s:error", json!({})).await;
        assert_eq!(code(&error), "UPSTREAM_ERROR", "{door}");
        assert_eq!(refusal(&error)["details"]["error"]["code"], -32042, "{door}");
        let is_error = client.two_key_call("write", "s:is_error", json!({})).await;
        assert_eq!(text(&is_error), "went wrong", "{door}");
    }
    let client = gate.http().await;
    assert_eq!(client.code_of("write", "s:die").await, "OUTCOME_UNKNOWN");
    // The server is started again.
    let is_back = || async { (client.code_of("write", "s:echo").await == "ok").then_some(()) };
    eventually(is_back).await;
}
