//! Agents that try to use more than their share, or a token that was switched off.

use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::client::{Client, code};
use testkit::gate::{Gate, http_client};
use testkit::upstream::scripted;
use testkit::wait::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The sessions that one token may have: half of all.
const SHARE: usize = 2048;

/// Issues a token for everything.
async fn token(gate: &Gate, name: &str) -> String {
    let wanted = json!({"name": name, "operations": ["read", "write", "destructive"]});
    let (status, made) = gate.rest(Method::POST, "/api/v1/tokens", Some(wanted)).await;
    assert_eq!(status, 201, "{made}");
    made["token"].as_str().unwrap().to_owned()
}

fn initialize() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
    .to_string()
}

async fn post(gate: &Gate, token: &str, body: String) -> reqwest::Response {
    let request = http_client().post(format!("http://{}/mcp", gate.address)).bearer_auth(token);
    let request = request.header("content-type", "application/json").body(body);
    request.header("accept", "application/json, text/event-stream").send().await.unwrap()
}

#[tokio::test]
async fn one_token_cannot_hold_all_sessions() {
    let gate = Gate::start(|_| json!({}), json!({})).await;
    let (greedy, honest) = (token(&gate, "greedy").await, token(&gate, "honest").await);
    let opened = stream::iter(0..2 * SHARE)
        .map(|_| post(&gate, &greedy, initialize()))
        .buffer_unordered(16)
        .filter(|response| ready(response.status() == StatusCode::OK));
    assert_eq!(opened.count().await, SHARE);
    let refused = post(&gate, &greedy, initialize()).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.text().await.unwrap().contains("you have too many sessions"));
    assert_eq!(post(&gate, &honest, initialize()).await.status(), StatusCode::OK);
}

/// Half of the connections of a listener, and of the bytes of arguments in flight.
const CONNECTIONS_SHARE: usize = 512;
const BYTES_SHARE: usize = 32 * 1024 * 1024;

/// Opens a connection on which this token is shown; returns it with the status of the answer.
async fn connection(gate: &Gate, token: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(&gate.address).await.unwrap();
    let host = &gate.address;
    let head =
        format!("GET /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    (stream, String::from_utf8_lossy(&answer[9..]).into_owned())
}

#[tokio::test]
async fn one_token_cannot_hold_all_connections() {
    let gate = Gate::start(|_| json!({}), json!({})).await;
    let (greedy, honest) = (token(&gate, "greedy").await, token(&gate, "honest").await);
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS_SHARE {
        let (stream, status) = connection(&gate, &greedy).await;
        assert_ne!(status, "429");
        held.push(stream);
    }
    assert_eq!(connection(&gate, &greedy).await.1, "429");
    assert_ne!(connection(&gate, &honest).await.1, "429");
    held.pop();
    eventually(|| async { (connection(&gate, &greedy).await.1 != "429").then_some(()) }).await;
}

/// The large calls are written on other threads, so that every connection sends its head in time.
#[tokio::test(flavor = "multi_thread")]
async fn one_token_cannot_fill_the_gate_with_calls() {
    let gate = Gate::scripted(json!([{"name": "hang", "x-do": "hang"}, {"name": "t"}])).await;
    gate.ready("s").await;
    let (greedy, honest) = (token(&gate, "greedy").await, token(&gate, "honest").await);
    let greedy = Arc::new(gate.http_as(&greedy, "/mcp", json!({}), vec![]).await);
    let honest = gate.http_as(&honest, "/mcp", json!({}), vec![]).await;
    let large = json!({"x": "x".repeat(BYTES_SHARE / 4 - 100)});
    let mut hanging = JoinSet::new();
    for _ in 0..4 {
        let (greedy, large) = (greedy.clone(), large.clone());
        hanging.spawn(async move { greedy.two_key_call("write", "s:hang", large).await });
    }
    let code = async |client: &Client| {
        let one_more = json!({"x": "x".repeat(1000)});
        code(&client.two_key_call("write", "s:t", one_more).await).to_owned()
    };
    eventually(|| async {
        let (_, begun) = gate.rest(Method::GET, "/api/v1/activity?tool=hang", None).await;
        (begun["activities"].as_array()?.len() == 4).then_some(())
    })
    .await;
    for _ in 0..3 {
        assert_eq!(code(&greedy).await, "TOO_MANY_REQUESTS");
    }
    assert_eq!(code(&honest).await, "ok");
    let path = "/api/v1/activity?status=blocked";
    let (_, records) = gate.rest(Method::GET, path, None).await;
    let records = records["activities"].as_array().unwrap();
    assert_eq!(records.len(), 1, "once a minute: {records:?}");
    assert_eq!(records[0]["agent"]["token"], "greedy");
    hanging.shutdown().await;
    eventually(|| async { (code(&greedy).await == "ok").then_some(()) }).await;
}

/// A token that fills the slots of a server and queues for more does not delay the next caller by
/// its queue.
#[tokio::test]
async fn a_queue_for_a_server_is_not_one_tokens_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (log, until) = (dir.path().join("log"), dir.path().join("until"));
    let tools = json!([{"name": "t", "x-do": {"work": {"log": log, "until": until}}}]);
    let servers = |dir: &Path| {
        let mut server = scripted(dir, "s", &tools);
        server["max_concurrent"] = 2.into();
        json!({"s": server})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    let lines = || std::fs::read_to_string(&log).unwrap_or_default();
    let mut calls = JoinSet::new();
    for (name, count) in [("greedy", 2), ("greedy", 4), ("honest", 1)] {
        let token = match name {
            "honest" => token(&gate, name).await,
            _ => gate.secret("agent-token"),
        };
        let client = Arc::new(gate.http_as(&token, "/mcp", json!({}), vec![]).await);
        for _ in 0..count {
            let client = client.clone();
            let who = json!({"who": name});
            calls.spawn(async move { client.two_key_call("write", "s:t", who).await });
        }
        // Each call is recorded before it waits for its slot.
        let begun = calls.len();
        eventually(|| async {
            let (_, found) = gate.rest(Method::GET, "/api/v1/activity?tool=t", None).await;
            let is_running = lines().lines().count() == 2;
            (is_running && found["activities"].as_array()?.len() == begun).then_some(())
        })
        .await;
    }
    std::fs::write(&until, "").unwrap();
    for answer in calls.join_all().await {
        assert_eq!(code(&answer), "ok", "{answer}");
    }
    let place = lines().lines().position(|line| line.contains("honest")).unwrap();
    assert!((2..4).contains(&place), "{}", lines());
}

#[tokio::test]
async fn a_rate_limit_holds_for_each_token() {
    let config = json!({"rate_limit": 5});
    let gate = Gate::start(|_| json!({}), config).await;
    let (fast, other) = (token(&gate, "fast").await, token(&gate, "other").await);
    for _ in 0..5 {
        assert_eq!(post(&gate, &fast, initialize()).await.status(), StatusCode::OK);
    }
    let refused = post(&gate, &fast, initialize()).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=12).contains(&wait), "{wait}");
    let body: Value = serde_json::from_str(&refused.text().await.unwrap()).unwrap();
    assert_eq!(body["error"]["code"], "TOO_MANY_REQUESTS");
    assert_eq!(post(&gate, &other, initialize()).await.status(), StatusCode::OK);
    // The same holds for lines, where there is no status.
    let lines = gate.stdio().await;
    let mut answers = Vec::new();
    for _ in 0..5 {
        answers.push(lines.request("ping", json!({})).await.map_err(|error| error.to_string()));
    }
    assert!(answers[..3].iter().all(Result::is_ok), "{answers:?}");
    assert!(answers[4].as_ref().unwrap_err().contains("rate_limit"), "{answers:?}");
}

#[tokio::test]
async fn the_default_token_can_be_switched_off_while_it_is_in_use() {
    let gate = Gate::scripted(json!([{"name": "t", "annotations": {"readOnlyHint": true}}])).await;
    gate.ready("s").await;
    let (default, scoped) = (gate.secret("agent-token"), token(&gate, "scoped").await);
    let client = gate.http().await;
    assert_eq!(client.code_of("read", "s:t").await, "ok");
    gate.rewrite(|config| config["agent_token"] = false.into());
    let status = async |token: &str| post(&gate, token, initialize()).await.status().as_u16();
    eventually(|| async { (status(&default).await == 401).then_some(()) }).await;
    assert!(client.request("tools/list", json!({})).await.is_err(), "its session has ended");
    assert_eq!(status(&scoped).await, 200);
    let refused = gate.cli(&["--config", "config.json", "mcp"]).await;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    gate.rewrite(|config| config["agent_token"] = true.into());
    eventually(|| async { (status(&default).await == 200).then_some(()) }).await;
}

#[tokio::test]
async fn a_switched_off_default_token_is_said_and_not_even_made() {
    let mut gate = Gate::start(|_| json!({}), json!({"agent_token": false})).await;
    // Both with a running gate, which the program asks, and without one.
    for is_running in [true, false] {
        if !is_running {
            gate.end().await;
        }
        let refused = gate.cli(&["--config", "config.json", "mcp"]).await;
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let words = testkit::program::stderr(&refused);
        for said in ["is switched off ('agent_token' in the config)", "countersign token create"] {
            assert!(words.contains(said), "{is_running}: {words}");
        }
        assert!(!gate.home().join("agent-token").exists(), "{is_running}");
    }
    let other = tempfile::tempdir().unwrap();
    let config = gate.config_file();
    let home = other.path().join("home");
    let args = ["--config", config.to_str().unwrap(), "--home", home.to_str().unwrap(), "mcp"];
    assert_eq!(gate.cli(&args).await.status.code(), Some(1));
    assert_eq!(std::fs::read_dir(&home).unwrap().count(), 0, "the home stays empty");
}
