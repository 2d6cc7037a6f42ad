//! An invalid message gets a clear error with its code, and affects nothing else.

use serde_json::{Value, json};
use testkit::client::text;
use testkit::gate::{Gate, both};

fn tools() -> Value {
    json!([{"name": "read_file", "description": "Reads a file", "annotations": {"readOnlyHint": true},
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}])
}

#[tokio::test]
async fn smoke_invalid_parameters_are_reported_with_their_code() {
    let gate = Gate::scripted(tools()).await;
    let intent = json!({"operation_type": "read"});
    let cases = [
        (json!({"intent": intent}), "INVALID_ARGUMENTS", "'server:tool'"),
        (
            json!({"name": "read_file", "intent": intent}),
            "INVALID_ARGUMENTS",
            "'server:tool', got 'read_file'",
        ),
        (
            json!({"name": "s:raed_file", "intent": intent}),
            "TOOL_NOT_FOUND",
            "did you mean 's:read_file'?",
        ),
        (
            json!({"name": "t:read_file", "intent": intent}),
            "TOOL_NOT_FOUND",
            "did you mean 's:read_file'?",
        ),
        (
            json!({"name": "s:read_file", "args": [1], "intent": intent}),
            "INVALID_ARGUMENTS",
            "args must be a JSON object",
        ),
        (
            json!({"name": "s:read_file", "args": {}, "args_json": "{}", "intent": intent}),
            "INVALID_ARGUMENTS",
            "both given",
        ),
        (
            json!({"name": "s:read_file", "args_json": "{", "intent": intent}),
            "INVALID_ARGUMENTS",
            "args_json is not valid JSON",
        ),
        (
            json!({"name": "s:read_file", "args_json": "{\"path\":1,\"path\":2}", "intent": intent}),
            "INVALID_ARGUMENTS",
            "duplicate key 'path'",
        ),
        (
            json!({"name": "s:read_file", "args": {}, "intent": intent}),
            "INVALID_ARGUMENTS",
            "path is required",
        ),
        (
            json!({"name": "s:read_file", "args": {"path": 7}, "intent": intent}),
            "INVALID_ARGUMENTS",
            "path must be a string, got 7",
        ),
    ];
    for (door, client) in both(&gate).await {
        for (arguments, code, words) in &cases {
            let result = client.call("call_tool_read", arguments.clone()).await;
            assert_eq!(result["isError"], true, "{door} {arguments}");
            assert_eq!(testkit::client::refusal(&result)["code"], *code, "{door} {arguments}");
            assert!(text(&result).contains(words), "{door} {arguments}: {}", text(&result));
        }
        let good = json!({"name": "s:read_file", "args": {"path": "x"}, "intent": intent});
        assert_ne!(client.call("call_tool_read", good).await["isError"], true, "{door}");
    }
}

#[tokio::test]
async fn the_gates_own_tools_check_their_parameters() {
    let gate = Gate::scripted(tools()).await;
    let cases = [
        ("retrieve_tools", json!({}), "INVALID_ARGUMENTS", "query is required"),
        ("retrieve_tools", json!({"query": "x", "limit": 0}), "INVALID_ARGUMENTS", "1 to 100"),
        ("retrieve_tools", json!({"query": "x", "limit": 101}), "INVALID_ARGUMENTS", "1 to 100"),
        ("retrieve_tools", json!({"query": "x", "limit": "many"}), "INVALID_ARGUMENTS", "1 to 100"),
        (
            "retrieve_tools",
            json!({"query": "x", "detail": "some"}),
            "INVALID_ARGUMENTS",
            "compact or full",
        ),
        (
            "retrieve_tools",
            json!({"qeury": "x"}),
            "INVALID_ARGUMENTS",
            "unknown parameter 'qeury'; did you mean 'query'?",
        ),
        ("describe_tool", json!({"tool_ids": []}), "INVALID_ARGUMENTS", "1 to 5"),
        ("describe_tool", json!({"tool_ids": ["s:nothing"]}), "TOOL_NOT_FOUND", "not found"),
        ("read_cache", json!({"key": "nothing"}), "CACHE_MISS", "two hours"),
        ("upstream_servers", json!({"operation": "restart"}), "INVALID_ARGUMENTS", "list or get"),
        ("upstream_servers", json!({"operation": "get", "name": "x"}), "NOT_FOUND", "not found"),
        (
            "retrieve_tool",
            json!({"query": "x"}),
            "TOOL_NOT_FOUND",
            "did you mean 'retrieve_tools'?",
        ),
    ];
    let client = gate.http().await;
    for (tool, arguments, code, words) in cases {
        let result = client.call(tool, arguments.clone()).await;
        assert_eq!(testkit::client::refusal(&result)["code"], code, "{tool} {arguments}");
        assert!(text(&result).contains(words), "{tool} {arguments}: {}", text(&result));
    }
    for query in ["", "   ", "\u{0}\u{1b}[31m", &"word ".repeat(20_000), "\u{1f980}\u{202e}"] {
        let found = client.document("retrieve_tools", json!({"query": query})).await;
        assert!(found["tools"].is_array(), "{query:?}");
    }
}

#[tokio::test]
async fn bad_frames_on_stdio_are_answered_and_the_connection_goes_on() {
    use std::process::Stdio;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

    let gate = Gate::scripted(tools()).await;
    let mut child = testkit::program::program(gate.dir.path())
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut huge = vec![b'x'; mcp::limits::FRAME_BYTES_MAX + 1];
    huge.push(b'\n');
    let cases: [(&[u8], Value, i64); 9] = [
        (b"nonsense\n", Value::Null, -32700),
        (b"\xff\xfe\n", Value::Null, -32700),
        (&huge, Value::Null, -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]\n", Value::Null, -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"Method\":\"x\"}\n", Value::Null, -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}\n", Value::Null, -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"server/discover\"}\n", json!(2), -32601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"2\",\"method\":\"tools/call\",\"params\":{\"name\":\"x\",\"name\":\"y\"}}\n", json!("2"), -32602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"x\",\"arguments\":[]}}\n", json!(3), -32602),
    ];
    for (frame, id, code) in cases {
        stdin.write_all(frame).await.unwrap();
        let line = lines.next_line().await.unwrap().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        let shown = String::from_utf8_lossy(&frame[..frame.len().min(80)]).into_owned();
        assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
        assert_eq!(answer["id"], id, "{shown}");
    }
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n").await.unwrap();
    let line = lines.next_line().await.unwrap().unwrap();
    assert_eq!(line, r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
    drop(stdin);
    assert_eq!(lines.next_line().await.unwrap(), None, "stdin's end ends it");
    assert!(child.wait().await.unwrap().success());
}
