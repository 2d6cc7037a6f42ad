//! A closed loop of clients over HTTP: each keeps one connection, sends its next call when it
//! has the answer to the last, and checks the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use futures_util::future::join_all;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use testkit::answer::{expect_echo, messages};
use tokio::net::TcpStream;

/// Clients share sessions, as the tools of one agent do.
const SESSIONS_MAX: usize = 8;

/// A call that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// The pause after a failure, so that a closed port is not tried without end.
const AFTER_FAILURE: Duration = Duration::from_millis(2);

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The way to a tool that echoes.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: String,
    pub(crate) path: String,
    pub(crate) token: String,
    pub(crate) tool: ToolCall,
}

#[derive(Clone)]
pub(crate) enum ToolCall {
    Named(String),
    /// By `call_tool_read`, as an agent calls a tool that it has found.
    Read(String),
}

impl ToolCall {
    pub(crate) fn params(&self, text: &str) -> String {
        match self {
            ToolCall::Named(name) => {
                format!(r#"{{"name":"{name}","arguments":{{"text":"{text}"}}}}"#)
            }
            ToolCall::Read(name) => {
                let intent = r#"{"operation_type":"read"}"#;
                let arguments =
                    format!(r#"{{"name":"{name}","args":{{"text":"{text}"}},"intent":{intent}}}"#);
                format!(r#"{{"name":"call_tool_read","arguments":{arguments}}}"#)
            }
        }
    }
}

/// The calls of some time.
#[derive(Default)]
pub(crate) struct Burst {
    pub(crate) samples_us: Vec<f64>,
    pub(crate) seconds: f64,
    pub(crate) errors: usize,
    pub(crate) first_error: Option<String>,
}

impl Burst {
    pub(crate) fn add(&mut self, sample: Result<f64, String>) {
        match sample {
            Ok(sample) => self.samples_us.push(sample),
            Err(error) => {
                self.errors += 1;
                self.first_error.get_or_insert(error);
            }
        }
    }
}

/// Returns a request's id, the word that its answer must have, and a text of about this size.
pub(crate) fn next_text(bytes: usize) -> (u64, String, String) {
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let word = format!("word-{id}-");
    let text = format!("{word}{}", "x".repeat(bytes.saturating_sub(word.len())));
    (id, word, text)
}

pub(crate) struct Crew {
    clients: Vec<LoadClient>,
    target: Target,
}

impl Crew {
    /// Connects the clients, one after the other.
    pub(crate) async fn open(target: &Target, clients: usize) -> Result<Crew, String> {
        let mut crew = Vec::with_capacity(clients);
        for number in 0..clients {
            let session = match number < SESSIONS_MAX {
                true => None,
                false => crew.get(number % SESSIONS_MAX).map(|of: &LoadClient| of.session.clone()),
            };
            crew.push(match session {
                None => LoadClient::greet(target).await?,
                Some(session) => LoadClient::join(target, session).await?,
            });
        }
        Ok(Crew { clients: crew, target: target.clone() })
    }

    pub(crate) async fn work(&mut self, time: Duration, payload_bytes: usize) -> Burst {
        let started = Instant::now();
        let tool = &self.target.tool;
        let working = self.clients.iter_mut().map(|client| async move {
            let mut burst = Burst::default();
            while started.elapsed() < time {
                let sample = client.call(tool, payload_bytes).await;
                let has_failed = sample.is_err();
                burst.add(sample);
                if has_failed {
                    tokio::time::sleep(AFTER_FAILURE).await;
                }
            }
            burst
        });
        let mut whole = Burst::default();
        for burst in join_all(working).await {
            whole.samples_us.extend(burst.samples_us);
            whole.errors += burst.errors;
            whole.first_error = whole.first_error.or(burst.first_error);
        }
        whole.seconds = started.elapsed().as_secs_f64();
        whole
    }
}

/// One client, which connects again after a failure.
pub(crate) struct LoadClient {
    address: String,
    path: String,
    token: String,
    session: Option<Arc<str>>,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl LoadClient {
    pub(crate) async fn greet(target: &Target) -> Result<LoadClient, String> {
        let mut client = LoadClient::unconnected(target);
        client.request("initialize", super::client::INITIALIZE).await?;
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        client.post(ready.to_owned()).await?;
        Ok(client)
    }

    async fn join(target: &Target, session: Option<Arc<str>>) -> Result<LoadClient, String> {
        let mut client = LoadClient { session, ..LoadClient::unconnected(target) };
        // The first request shows whose connection it is; not every server knows this one.
        let ping = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;
        client.post(ping.to_owned()).await?;
        Ok(client)
    }

    fn unconnected(target: &Target) -> LoadClient {
        let Target { address, path, token, .. } = target.clone();
        LoadClient { address, path, token, session: None, sender: None }
    }

    /// Returns the names of all tools.
    pub(crate) async fn tools(&mut self) -> Result<Vec<String>, String> {
        let list = self.request("tools/list", "{}").await?;
        let tools = list["result"]["tools"].as_array().ok_or_else(|| list.to_string())?;
        Ok(tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect())
    }

    /// Posts a document to a path that is no MCP endpoint.
    pub(crate) async fn post_document(target: &Target, document: String) -> Result<(), String> {
        LoadClient::unconnected(target).post(document).await.map(drop)
    }

    async fn request(&mut self, method: &str, params: &str) -> Result<Value, String> {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let answer = self.post(body.replace('\n', " ")).await?;
        let answer = String::from_utf8_lossy(&answer);
        let parsed = messages(&answer).filter_map(|text| serde_json::from_str::<Value>(text).ok());
        let found = parsed.into_iter().find(|message| message["id"] == json!(id));
        let found = found.filter(|message| message.get("result").is_some());
        found.ok_or_else(|| format!("{method}: {}", answer.chars().take(300).collect::<String>()))
    }

    /// Returns the microseconds that a call took.
    pub(crate) async fn call(
        &mut self,
        tool: &ToolCall,
        payload_bytes: usize,
    ) -> Result<f64, String> {
        let (id, word, text) = next_text(payload_bytes);
        let params = tool.params(&text);
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        let started = Instant::now();
        let answer = self.post(body).await?;
        let took_us = started.elapsed().as_secs_f64() * 1e6;
        expect_echo(&String::from_utf8_lossy(&answer), id, &word)?;
        Ok(took_us)
    }

    async fn post(&mut self, body: String) -> Result<Bytes, String> {
        let exchange = tokio::time::timeout(PATIENCE, self.exchange(body)).await;
        let answer = exchange.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        if answer.is_err() {
            self.sender = None;
        }
        answer
    }

    async fn exchange(&mut self, body: String) -> Result<Bytes, String> {
        let mut request = Request::post(&self.path)
            .header("host", &self.address)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        if let Some(session) = &self.session {
            request = request
                .header("mcp-session-id", &**session)
                .header("mcp-protocol-version", "2025-06-18");
        }
        let request = request.body(Full::from(body)).map_err(|error| error.to_string())?;
        let response = self.connected().await?.send_request(request).await;
        let response = response.map_err(|error| error.to_string())?;
        if let Some(session) = response.headers().get("mcp-session-id") {
            self.session = session.to_str().ok().map(Arc::from);
        }
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
        let body = body.to_bytes();
        match status.is_success() {
            true => Ok(body),
            false => Err(format!("{status}: {}", String::from_utf8_lossy(&body))),
        }
    }

    async fn connected(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, String> {
        if self.sender.as_ref().is_none_or(SendRequest::is_closed) {
            let stream = TcpStream::connect(&self.address).await;
            let stream = stream.map_err(|error| format!("{}: {error}", self.address))?;
            stream.set_nodelay(true).map_err(|error| error.to_string())?;
            let (sender, connection) =
                handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
            tokio::spawn(connection);
            self.sender = Some(sender);
        }
        let sender = self.sender.as_mut().ok_or("not connected")?;
        sender.ready().await.map_err(|error| error.to_string())?;
        Ok(sender)
    }
}
