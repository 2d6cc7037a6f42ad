//! A client whose connection breaks in the middle of a call gets the answer afterwards, and the call
//! is made and recorded once.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::client::PATIENCE;
use testkit::foreign;
use testkit::gate::{Gate, http_client};
use testkit::upstream::scripted;
use testkit::wait::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::conformance::{node, peer};
use crate::ledger::{records, records_when};

/// Starts a gate whose server has a tool that works until a file exists, and a log of its calls.
async fn gate() -> Gate {
    let tools = |dir: &Path| {
        let work = json!({"work": {"until": dir.join("release"), "log": dir.join("calls")}});
        json!([{"name": "work", "x-do": work}])
    };
    let gate = Gate::start(|dir| json!({"s": scripted(dir, "s", &tools(dir))}), json!({})).await;
    gate.ready("s").await;
    gate
}

fn calls(gate: &Gate) -> usize {
    let log = std::fs::read_to_string(gate.dir.path().join("calls")).unwrap_or_default();
    log.lines().count()
}

/// Sends a message on a separate connection.
async fn post(gate: &Gate, view: &str, session: &str, message: &Value) -> TcpStream {
    let body = message.to_string();
    let mut stream = TcpStream::connect(&gate.address).await.unwrap();
    let head = format!(
        "POST {view} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Mcp-Session-Id: {session}\r\nContent-Length: {}\r\n\r\n{body}",
        gate.address,
        gate.secret("agent-token"),
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn open(gate: &Gate, view: &str) -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
        {"protocolVersion": "2025-11-25", "capabilities": {},
         "clientInfo": {"name": "raw", "version": "1"}}});
    let request = http_client()
        .post(format!("http://{}{view}", gate.address))
        .bearer_auth(gate.secret("agent-token"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    let answer = request.body(hello.to_string()).send().await.unwrap();
    answer.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

/// Reads until an event has an id.
async fn first_id(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let reading = async {
        let mut bytes = [0; 4096];
        loop {
            let count = stream.read(&mut bytes).await.unwrap();
            assert_ne!(count, 0, "the connection ended: {text}");
            text += std::str::from_utf8(&bytes[..count]).unwrap();
            if let Some((_, id)) = text.split_once("\nid: ")
                && let Some((id, rest)) = id.split_once('\n')
                && rest.contains("\n\n")
            {
                return id.to_owned();
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("an event arrives in time")
}

/// Makes a call whose connection breaks, and returns what comes afterwards.
async fn resumed(gate: &Gate, view: &str, params: &Value) -> String {
    let session = open(gate, view).await;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let mut stream = post(gate, view, &session, &call).await;
    let id = first_id(&mut stream).await;
    drop(stream);
    std::fs::write(gate.dir.path().join("release"), "").unwrap();
    let get = http_client()
        .get(format!("http://{}{view}", gate.address))
        .bearer_auth(gate.secret("agent-token"))
        .header("accept", "text/event-stream")
        .header("mcp-session-id", &session)
        .header("last-event-id", &id);
    let answer = get.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    tokio::time::timeout(PATIENCE, answer.text()).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_call_outlives_its_connection_and_is_made_once() {
    let gate = gate().await;
    let text = resumed(&gate, "/mcp/s/s", &json!({"name": "work", "arguments": {}})).await;
    assert!(text.contains(r#""id":7,"result""#), "{text}");
    let records = records_when(&gate.home(), |records| {
        records.iter().any(|record| record["tool"] == "work" && record["status"] == "success")
    })
    .await;
    assert_eq!(records.iter().filter(|record| record["tool"] == "work").count(), 1);
    assert_eq!(calls(&gate), 1);
}

#[tokio::test]
async fn every_view_resumes() {
    let plain = json!({"name": "s__work", "arguments": {}});
    let two_keys = testkit::client::two_keys("write", "s:work", json!({}));
    for (view, params) in [("/mcp/all", plain), ("/mcp", two_keys)] {
        let gate = gate().await;
        let text = resumed(&gate, view, &params).await;
        assert!(text.contains("together"), "{view}: {text}");
        assert_eq!(calls(&gate), 1, "{view}");
    }
}

#[tokio::test]
async fn the_typescript_sdk_resumes_a_call_whose_connection_broke() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = gate().await;
    let mut client = node(gate.dir.path());
    client.arg(peer("resume.mjs")).arg(foreign::folder().join("conformance"));
    client.args([&gate.address, "/mcp/s/s", &gate.secret("agent-token"), "work"]);
    client.arg(gate.dir.path().join("release")).stdin(Stdio::null());
    let output = tokio::time::timeout(PATIENCE, client.output()).await.expect("it ends").unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    let got: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}{complaints}"));
    assert_eq!(got["cuts"], 1, "{got}");
    assert!(got["result"]["content"][0]["text"].as_str().unwrap().contains("together"), "{got}");
    eventually(|| async {
        let of_tool = records(&gate.home()).into_iter().filter(|record| record["tool"] == "work");
        (of_tool.count() == 1).then_some(())
    })
    .await;
    assert_eq!(calls(&gate), 1);
}
