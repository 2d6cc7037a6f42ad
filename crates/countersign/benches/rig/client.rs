//! A minimal MCP client: one persistent HTTP connection, one session, responses as bytes.

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

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
