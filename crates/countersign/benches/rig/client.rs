//! A minimal MCP client: one persistent HTTP connection, one session, responses as bytes.

use std::time::Duration;

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// The polling interval, long enough not to take time from the gate.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    address: String,
    path: String,
    token: String,
    session: Option<String>,
    id: u64,
}

/// Returns the message of a response; one that took long comes as the last event of a stream.
fn message(response: Bytes) -> Bytes {
    const DATA: &[u8] = b"\ndata: ";
    match response.windows(DATA.len()).rposition(|part| part == DATA) {
        Some(at) if !response.starts_with(b"{") => response.slice(at + DATA.len()..),
        _ => response,
    }
}

impl Client {
    pub(crate) async fn greet(address: &str, path: &str, token: &str) -> Client {
        let stream = TcpStream::connect(address).await.expect("somebody listens");
        stream.set_nodelay(true).expect("a TCP socket");
        let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        let (address, path) = (address.to_owned(), path.to_owned());
        let mut client =
            Client { sender, address, path, token: token.to_owned(), session: None, id: 0 };
        client.ask("initialize", INITIALIZE).await;
        client.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()).await;
        client
    }

    /// Returns the whole response, which must be a result.
    pub(crate) async fn ask(&mut self, method: &str, params: &str) -> Bytes {
        self.id += 1;
        let id = self.id;
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let answer = message(self.post(body).await);
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#);
        assert!(answer.starts_with(start.as_bytes()), "{method} through {}: {answer:?}", self.path);
        answer
    }

    /// Waits until this many servers have listed their tools, as a client of `/mcp` sees it.
    pub(crate) async fn listed(&mut self, servers: usize) {
        let ask = r#"{"name":"upstream_servers","arguments":{}}"#;
        loop {
            let answer = self.ask("tools/call", ask).await;
            let answer: Value = serde_json::from_slice(&answer).expect("JSON");
            let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
            let answer: Value = serde_json::from_str(text).expect("a JSON document");
            let entries = answer["servers"].as_array().expect("a list of servers");
            if entries.iter().filter(|entry| entry["state"] == "ready").count() == servers {
                return;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn post(&mut self, body: String) -> Bytes {
        let mut request = Request::post(&self.path)
            .header("host", &self.address)
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request
                .header("mcp-session-id", session)
                .header("mcp-protocol-version", "2025-06-18");
        }
        let request = request.body(Full::from(body)).expect("a request");
        let response = self.sender.send_request(request).await.expect("an answer");
        assert!(matches!(response.status(), StatusCode::OK | StatusCode::ACCEPTED), "{response:?}");
        if let Some(session) = response.headers().get("mcp-session-id") {
            self.session = Some(session.to_str().expect("plain text").to_owned());
        }
        response.into_body().collect().await.expect("a whole answer").to_bytes()
    }
}

pub(crate) const INITIALIZE: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{},
    "clientInfo":{"name":"bench","version":"1"}}"#;
