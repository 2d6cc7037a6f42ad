//! An MCP server over HTTP whose tools lose their answers. A tool is named after the way and the class
//! of its calls (`reset_write`), and every call is counted when it arrives. The older transport has a
//! stream for each tool, so that one that breaks ends no other.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// More than the gate accepts in one message.
const HUGE_BYTES: usize = 17 * 1024 * 1024;

/// The classes of calls.
pub const CLASSES: [&str; 3] = ["read", "write", "destructive"];

/// Returns the definition of a tool whose annotations give its calls this class.
pub fn tool_of_class(name: &str, class: &str) -> Value {
    let (is_read, is_destructive) = (class == "read", class == "destructive");
    let annotations = json!({"readOnlyHint": is_read, "destructiveHint": is_destructive});
    json!({"name": name, "annotations": annotations})
}

pub struct LossyServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    tools: Vec<Value>,
    calls: Mutex<HashMap<String, usize>>,
    /// The open streams of the older transport, by tool.
    streams: Mutex<HashMap<String, mpsc::UnboundedSender<StreamPart>>>,
    /// Every message is answered with 401, and no metadata says how to be authorized.
    is_closed: AtomicBool,
    /// Requests for that metadata are answered with 503.
    is_troubled: AtomicBool,
}

/// The next thing that happens on a stream.
enum StreamPart {
    Bytes(String),
    End,
}

struct HttpRequest {
    method: String,
    path: String,
    is_resumption: bool,
    body: Value,
}

impl LossyServer {
    /// Starts with a tool of each class for each of these ways.
    pub async fn start(ways: &[&str]) -> LossyServer {
        let named =
            ways.iter().flat_map(|way| CLASSES.map(|class| (format!("{way}_{class}"), class)));
        let tools = named.map(|(name, class)| tool_of_class(&name, class)).collect();
        let shared = Arc::new(Shared { tools, ..Shared::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let serving = tokio::spawn(serve(listener, shared.clone()));
        LossyServer { address, shared, serving }
    }

    /// Returns the address of the streamable transport.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns the address of the older transport for one tool.
    pub fn sse_url(&self, tool: &str) -> String {
        format!("http://{}/{tool}/sse", self.address)
    }

    /// Returns how often a tool was called.
    pub fn calls(&self, tool: &str) -> usize {
        self.shared.calls.lock().unwrap().get(tool).copied().unwrap_or_default()
    }

    /// Answers every message with 401 from now on, or no longer.
    pub fn refuse_all(&self, is_closed: bool) {
        self.shared.is_closed.store(is_closed, Ordering::SeqCst);
    }

    /// Answers every request for authorization metadata with 503.
    pub fn fail_metadata(&self) {
        self.shared.is_troubled.store(true, Ordering::SeqCst);
    }

    /// Closes the port and all connections.
    pub async fn stop(&mut self) {
        self.serving.abort();
        let _ = (&mut self.serving).await;
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        connections.spawn(async move { shared.answer(stream).await });
    }
}

impl Shared {
    /// Answers the one request of a connection.
    async fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        let request = read(&mut stream).await?;
        let (first, last) =
            request.path.trim_start_matches('/').split_once('/').unwrap_or_default();
        match (request.method.as_str(), last) {
            ("POST", _) if self.is_closed.load(Ordering::SeqCst) => {
                status(&mut stream, "401 Unauthorized", "").await
            }
            ("GET", _) if first == ".well-known" && self.is_troubled.load(Ordering::SeqCst) => {
                status(&mut stream, "503 Service Unavailable", "").await
            }
            ("GET", "sse") => self.stream(stream, first).await,
            ("POST", "post") => self.post(stream, first, &request.body).await,
            ("POST", _) => self.streamable(stream, &request.body).await,
            ("GET", _) if request.is_resumption => status(&mut stream, "404 Not Found", "").await,
            _ => status(&mut stream, "405 Method Not Allowed", "").await,
        }
    }

    /// Returns the result of a request that is no call.
    fn result(&self, message: &Value) -> Value {
        match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "lossy", "version": "1"},
            }),
            Some("tools/list") => json!({"tools": self.tools}),
            _ => json!({}),
        }
    }

    /// Counts a call, and returns the way in which its answer is lost.
    fn way<'a>(&self, message: &'a Value) -> &'a str {
        let tool = message["params"]["name"].as_str().expect("a call has a name");
        *self.calls.lock().unwrap().entry(tool.to_owned()).or_default() += 1;
        tool.rsplit_once('_').expect("a tool has a way and a class").0
    }

    async fn streamable(&self, mut stream: TcpStream, message: &Value) -> io::Result<()> {
        let id = &message["id"];
        match message["method"].as_str() {
            _ if id.is_null() => status(&mut stream, "202 Accepted", "").await,
            Some("tools/call") => lose(&mut stream, self.way(message), id).await,
            _ => {
                let session = "mcp-session-id: one\r\n";
                json_body(&mut stream, session, &response(id, &self.result(message).to_string()))
                    .await
            }
        }
    }

    /// Serves the stream of a tool over the older transport.
    async fn stream(&self, mut stream: TcpStream, tool: &str) -> io::Result<()> {
        let (sender, mut parts) = mpsc::unbounded_channel();
        self.streams.lock().unwrap().insert(tool.to_owned(), sender);
        event_stream(&mut stream).await?;
        stream.write_all(format!("event: endpoint\ndata: /{tool}/post\n\n").as_bytes()).await?;
        while let Some(StreamPart::Bytes(bytes)) = parts.recv().await {
            stream.write_all(bytes.as_bytes()).await?;
        }
        Ok(())
    }

    /// Takes a message of the older transport.
    async fn post(&self, mut stream: TcpStream, tool: &str, message: &Value) -> io::Result<()> {
        let id = &message["id"];
        let parts = match message["method"].as_str() {
            _ if id.is_null() => Vec::new(),
            Some("tools/call") => match self.way(message) {
                "reset" => return Ok(()),
                "502" => return status(&mut stream, "502 Bad Gateway", "").await,
                way => lost_events(way, id),
            },
            _ => vec![event(&response(id, &self.result(message).to_string()))],
        };
        status(&mut stream, "202 Accepted", "").await?;
        let sender = self.streams.lock().unwrap().get(tool).cloned();
        for part in parts {
            let _ = sender.as_ref().expect("the stream was opened").send(part);
        }
        Ok(())
    }
}

async fn read(stream: &mut TcpStream) -> io::Result<HttpRequest> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    let length = header("content-length:").and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    Ok(HttpRequest {
        method: method.to_ascii_uppercase(),
        path: path.to_owned(),
        is_resumption: header("last-event-id:").is_some(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

fn response(id: &Value, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// Returns a response in which a member occurs twice.
fn malformed(id: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"result":{{"x":1}}}}"#)
}

fn event(data: &str) -> StreamPart {
    StreamPart::Bytes(format!("data: {data}\n\n"))
}

/// Returns what happens on the stream of the older transport after a call.
fn lost_events(way: &str, id: &Value) -> Vec<StreamPart> {
    match way {
        "cut" => vec![StreamPart::End],
        "half" => {
            let half = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},");
            vec![StreamPart::Bytes(half), StreamPart::End]
        }
        "malformed" => vec![event(&malformed(id))],
        "null" => vec![event(&response(id, "null"))],
        "text" => vec![event(&response(id, "\"done\""))],
        "huge" => {
            let long = format!(r#"{{"content":[],"x":"{}"}}"#, "x".repeat(HUGE_BYTES));
            vec![event(&response(id, &long))]
        }
        "silent" => Vec::new(),
        "fine" => vec![event(&response(id, r#"{"content":[]}"#))],
        other => panic!("no way {other}"),
    }
}

/// Answers a call over the streamable transport, or does not.
async fn lose(stream: &mut TcpStream, way: &str, id: &Value) -> io::Result<()> {
    let json = async |stream: &mut TcpStream, body: &str| json_body(stream, "", body).await;
    match way {
        "reset" => Ok(()),
        "half_head" => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Ty").await,
        "half_body" => {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n";
            stream.write_all(format!("{head}\r\n{{\"jsonrpc\":\"2.0\",").as_bytes()).await
        }
        "html" => status(stream, "200 OK", "Content-Type: text/html\r\n").await,
        "untyped" => status(stream, "200 OK", "").await,
        "accepted" => status(stream, "202 Accepted", "").await,
        "other_id" => json(stream, &response(&json!(987_654), r#"{"content":[]}"#)).await,
        "malformed" => json(stream, &malformed(id)).await,
        "null" => json(stream, &response(id, "null")).await,
        "text" => json(stream, &response(id, "\"done\"")).await,
        "huge" => json(stream, &" ".repeat(HUGE_BYTES)).await,
        "500" => status(stream, "500 Internal Server Error", "").await,
        "502" => status(stream, "502 Bad Gateway", "").await,
        "503" => status(stream, "503 Service Unavailable", "").await,
        "504" => status(stream, "504 Gateway Timeout", "").await,
        "408" => status(stream, "408 Request Timeout", "").await,
        "proxy_error" => {
            let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"oh"}}"#;
            body(stream, "502 Bad Gateway", "", error).await
        }
        "see_other" => status(stream, "303 See Other", "Location: /done\r\n").await,
        "silent" => std::future::pending().await,
        "stream_cut" => {
            event_stream(stream).await?;
            stream.write_all(b": working\n\n").await
        }
        "stream_half" => {
            event_stream(stream).await?;
            stream.write_all(b"data: {\"jsonrpc\":\"2.0\"").await
        }
        "stream_malformed" => {
            event_stream(stream).await?;
            stream.write_all(format!("data: {}\n\n", malformed(id)).as_bytes()).await?;
            std::future::pending().await
        }
        // The session is gone when the stream is to be resumed.
        "stream_lost" => {
            event_stream(stream).await?;
            stream.write_all(b"id: 1\nretry: 10\ndata:\n\n").await
        }
        "fine" => json(stream, &response(id, r#"{"content":[]}"#)).await,
        "doubled" => {
            let twice = r#"{"content":[],"structuredContent":{"n":1,"n":2}}"#;
            json(stream, &response(id, twice)).await
        }
        "401" => status(stream, "401 Unauthorized", "").await,
        "403" => status(stream, "403 Forbidden", "").await,
        "429" => status(stream, "429 Too Many Requests", "").await,
        "busy" => status(stream, "503 Service Unavailable", "Retry-After: 1\r\n").await,
        "moved" => status(stream, "308 Permanent Redirect", "Location: /new\r\n").await,
        other => panic!("no way {other}"),
    }
}

async fn status(stream: &mut TcpStream, status: &str, headers: &str) -> io::Result<()> {
    let fixed = "Content-Length: 0\r\nConnection: close\r\n";
    stream.write_all(format!("HTTP/1.1 {status}\r\n{headers}{fixed}\r\n").as_bytes()).await
}

async fn event_stream(stream: &mut TcpStream) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await
}

async fn json_body(stream: &mut TcpStream, headers: &str, text: &str) -> io::Result<()> {
    body(stream, "200 OK", headers, text).await
}

async fn body(stream: &mut TcpStream, status: &str, headers: &str, text: &str) -> io::Result<()> {
    let (kind, length) = ("Content-Type: application/json", text.len());
    let head = format!("HTTP/1.1 {status}\r\n{kind}\r\n{headers}Content-Length: {length}\r\n");
    stream.write_all(format!("{head}Connection: close\r\n\r\n{text}").as_bytes()).await
}
