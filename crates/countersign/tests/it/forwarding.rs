//! Calls through a pass-through surface: they keep what the client sent, except for what no server
//! may get, and end with a code if the server's answer cannot be passed on.

use std::path::Path;
use std::process::Stdio;

use mcp::message::raw;
use mcp::peer::{Ask, RequestError};
use serde_json::{Value, json};
use testkit::client::{PATIENCE, code, text};
use testkit::gate::Gate;
use testkit::program::{client_of, program, run, stderr};
use testkit::upstream::scripted;
use testkit::wait::eventually;
use testkit::wire::Wire;

use crate::passthrough::doors;

/// A server that writes down what it hears, and never answers a call of `hang`.
const HEARS: &str = r#"
while IFS= read -r line; do
    printf '%s\n' "$line" >> "$0/heard"
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
        *'"initialize"'*) what=welcome ;;
        *'"tools/list"'*) what=list ;;
        *'"name":"hang"'*) continue ;;
        *'"tools/call"'*) what=result ;;
        *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$(cat "$0/$what")"
done
"#;

fn hears(dir: &Path) -> Value {
    let folder = dir.join("hears");
    std::fs::create_dir_all(&folder).unwrap();
    let welcome = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                         "serverInfo": {"name": "hears", "version": "1"}});
    let list = json!({"tools": [
        {"name": "t", "inputSchema": {"type": "object"},
         "outputSchema": {"type": "object", "properties": {"n": {"type": "number"}}}},
        {"name": "hang", "inputSchema": {"type": "object"}},
        {"name": "slow", "inputSchema": {"type": "object"},
         "execution": {"taskSupport": "required"}},
    ]});
    let result = json!({"content": [], "structuredContent": {"n": 1}});
    for (name, value) in [("welcome", welcome), ("list", list), ("result", result)] {
        std::fs::write(folder.join(name), value.to_string()).unwrap();
    }
    json!({"command": "sh", "args": ["-c", HEARS, folder]})
}

async fn hearing() -> Gate {
    let gate = Gate::start(|dir| json!({"s": hears(dir)}), json!({})).await;
    gate.ready("s").await;
    gate
}

/// Returns the lines with these words that the server has heard, once there are some.
async fn heard(gate: &Gate, words: &str) -> Vec<Value> {
    let file = gate.dir.path().join("hears/heard");
    eventually(|| async {
        let lines = std::fs::read_to_string(&file).unwrap();
        let found: Vec<Value> = lines
            .lines()
            .filter(|line| line.contains(words))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        (!found.is_empty()).then_some(found)
    })
    .await
}

#[tokio::test]
async fn absent_arguments_stay_absent_and_tasks_are_not_asked_for() {
    let gate = hearing().await;
    let client = gate.http_at("/mcp/s/s").await;
    for params in [
        json!({"name": "t"}),
        json!({"name": "t", "arguments": {}, "task": {"ttl": 1000}, "x-other": 1}),
    ] {
        client.request("tools/call", params).await.unwrap();
    }
    let calls = heard(&gate, "tools/call").await;
    assert_eq!(calls[0]["params"], json!({"name": "t"}));
    assert_eq!(calls[1]["params"], json!({"name": "t", "arguments": {}, "x-other": 1}));
}

#[tokio::test]
async fn the_reason_of_a_cancellation_reaches_the_server() {
    let gate = hearing().await;
    let mut command = program(gate.dir.path());
    command.args(["mcp", "--server", "s"]);
    let mut wire = Wire::open(command);
    wire.greet().await;
    let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call",
                      "params": {"name": "hang"}});
    wire.say(&call.to_string()).await;
    heard(&gate, "hang").await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": "c", "reason": "the user pressed Esc"}});
    wire.say(&cancel.to_string()).await;
    let cancelled = heard(&gate, "notifications/cancelled").await;
    assert_eq!(cancelled[0]["params"]["reason"], "the user pressed Esc");
}

/// A tool that only runs as a task could never be called.
#[tokio::test]
async fn a_tool_that_requires_a_task_is_left_out_with_its_reason() {
    let gate = hearing().await;
    let client = gate.http_at("/mcp/s/s").await;
    let list = client.request("tools/list", json!({})).await.unwrap();
    assert!(!list.to_string().contains("slow"), "{list}");
    let line = gate.log_line("'slow' is left out").await;
    assert!(line.contains("only as a task"), "{line}");
}

#[tokio::test]
async fn nothing_is_executed_before_initialize() {
    let gate = hearing().await;
    for args in [&["mcp"][..], &["mcp", "--all"], &["mcp", "--server", "s"]] {
        let mut command = program(gate.dir.path());
        command.args(args);
        let mut wire = Wire::open(command);
        let params = match args.len() {
            1 => testkit::client::two_keys("write", "s:t", json!({})),
            2 => json!({"name": "s__t"}),
            _ => json!({"name": "t", "_meta": {"io.modelcontextprotocol/protocolVersion": "x"}}),
        };
        let call =
            json!({"jsonrpc": "2.0", "id": "early", "method": "tools/call", "params": params});
        wire.say(&call.to_string()).await;
        let answer: Value = serde_json::from_str(&wire.hear().await).unwrap();
        assert_eq!(answer["error"]["code"], -32600, "{args:?}: {answer}");
        wire.greet().await;
    }
    let lines = std::fs::read_to_string(gate.dir.path().join("hears/heard")).unwrap();
    assert!(!lines.contains("tools/call"), "{lines}");
}

/// Clients check structured content against the tool's output schema, and drop a result that does
/// not fit it with all that it says.
#[tokio::test]
async fn a_refusal_of_a_tool_with_an_output_schema_has_no_structured_content() {
    let gate = hearing().await;
    let disabled = gate.rest(reqwest::Method::POST, "/api/v1/tools/s/t/disable", None).await;
    assert_eq!(disabled.0, 200);
    let alone = tempfile::tempdir().unwrap();
    let [(_, http), (_, bridged), _] = doors(&gate, "s", alone.path()).await;
    let all = gate.http_at("/mcp/all").await;
    for (client, name) in [(&http, "t"), (&bridged, "t"), (&all, "s__t")] {
        let params = json!({"name": name, "arguments": {}});
        let refused = client.request("tools/call", params).await.unwrap();
        assert_eq!(refused["structuredContent"], Value::Null, "{refused}");
        assert_eq!(refused["_meta"]["countersign/error"]["code"], "TOOL_BLOCKED", "{refused}");
        assert!(text(&refused).contains("disabled"), "{refused}");
    }
}

#[tokio::test]
async fn a_response_over_the_limit_fails_its_call_and_nothing_else() {
    let tools = json!([{"name": "big", "x-do": {"text": 17 << 20}}, {"name": "echo"}]);
    let gate = Gate::scripted(tools.clone()).await;
    let alone = tempfile::tempdir().unwrap();
    let mut clients: Vec<_> = doors(&gate, "s", alone.path()).await.into();
    let dir = tempfile::tempdir().unwrap();
    let server = scripted(dir.path(), "s", &tools);
    let mut wrap = program(dir.path());
    wrap.args(["wrap", "--name", "s", "--"]).args(crate::wrap::words(&server));
    wrap.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    clients.push(("wrap", client_of(wrap.spawn().unwrap(), json!({}), vec![]).await));
    for (door, client) in clients {
        let call = |name: &str| {
            let params = raw(json!({"name": name, "arguments": {}}).to_string());
            client.peer.request(Ask::new("tools/call", Some(params), PATIENCE))
        };
        let result: Value = serde_json::from_str(call("big").await.unwrap().get()).unwrap();
        assert_eq!(code(&result), "RESPONSE_TOO_LARGE", "{door}");
        let after: Result<_, RequestError> = call("echo").await;
        assert_eq!(code(&serde_json::from_str(after.unwrap().get()).unwrap()), "ok", "{door}");
    }
}

#[tokio::test]
async fn an_empty_variable_counts_as_unset() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = program(dir.path());
    command.args(["upstream", "list"]).env("COUNTERSIGN_CONFIG", "");
    let output = command.output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let given = run(dir.path(), ["upstream", "list", "--config", ""]).await;
    assert_ne!(given.status.code(), Some(0), "an empty argument is a mistake");
}
