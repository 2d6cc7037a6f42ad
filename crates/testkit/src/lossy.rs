//! An MCP server over HTTP whose tools lose their answers. A tool is named after the way and the class
//! of its calls (`reset_write`), and every call is counted when it arrives. The older transport has a
//! stream for each tool, so that one that breaks ends no other.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
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
    /// Answers the requests of a connection: one, unless a tool keeps it open.
    async fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut is_reused = false;
        loop {
            let request = read(&mut stream).await?;
            if let Some(left) = self.keep(&mut stream, &request.body, is_reused).await? {
                match left {
                    ControlFlow::Continue(()) => is_reused = true,
                    ControlFlow::Break(()) => return Ok(()),
                }
                continue;
            }
            return self.answer_last(stream, &request).await;
        }
    }

    /// Answers a call of `kept` and leaves the connection open, and cuts it when the next call on it
    /// is one of `reused`. Returns `None` if the request is neither.
    async fn keep(
        &self,
        stream: &mut TcpStream,
        message: &Value,
        is_reused: bool,
    ) -> io::Result<Option<ControlFlow<()>>> {
        let tool = message["params"]["name"].as_str().unwrap_or_default();
        let way = tool.rsplit_once('_').map_or("", |(way, _)| way);
        match way {
            "kept" => {
                self.way(message);
                let text = response(&message["id"], r#"{"content":[]}"#);
                let (kind, length) = ("Content-Type: application/json", text.len());
                let head = format!("HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {length}\r\n\r\n");
                stream.write_all(format!("{head}{text}").as_bytes()).await?;
                Ok(Some(ControlFlow::Continue(())))
            }
            "reused" if is_reused => {
                self.way(message);
                Ok(Some(ControlFlow::Break(())))
            }
            _ => Ok(None),
        }
    }

    /// Answers the last request of a connection.
    async fn answer_last(&self, mut stream: TcpStream, request: &HttpRequest) -> io::Result<()> {
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
            Some("tools/call") => {
                let way = self.way(message);
                if let Some(answer) = broken(way).or_else(|| refusal(way)) {
                    return stream.write_all(answer.as_bytes()).await;
                }
                lost_events(way, id)
            }
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
    if way == "cut" {
        return vec![StreamPart::End];
    }
    if way == "half" {
        let half = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},");
        return vec![StreamPart::Bytes(half), StreamPart::End];
    }
    answer_in(way, id).map(|answer| event(&answer)).into_iter().collect()
}

/// Returns the message that a way gives for an answer, on either transport; `None` if it gives none.
fn answer_in(way: &str, id: &Value) -> Option<String> {
    let result = match way {
        "malformed" => return Some(malformed(id)),
        "other_id" => return Some(response(&json!(987_654), r#"{"content":[]}"#)),
        "silent" | "hang" => return None,
        "huge" => &format!(r#"{{"content":[],"x":"{}"}}"#, "x".repeat(HUGE_BYTES)),
        "null" => "null",
        "text" => "\"done\"",
        "number" => "7",
        "array" => "[]",
        "fine" | "reused" => r#"{"content":[]}"#,
        "doubled" => r#"{"content":[],"structuredContent":{"n":1,"n":2}}"#,
        other => panic!("no way {other}"),
    };
    Some(response(id, result))
}

/// Returns a response without a usable answer, or a part of one, after which the connection ends.
fn broken(way: &str) -> Option<String> {
    Some(match way {
        "reset" => String::new(),
        "half_head" => "HTTP/1.1 200 OK\r\nContent-Ty".to_owned(),
        "half_body" => {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n";
            format!("{head}\r\n{{\"jsonrpc\":\"2.0\",")
        }
        "html" => empty("200 OK", "Content-Type: text/html\r\n"),
        "untyped" => empty("200 OK", ""),
        "accepted" => empty("202 Accepted", ""),
        "500" => empty("500 Internal Server Error", ""),
        "502" => empty("502 Bad Gateway", ""),
        "503" => empty("503 Service Unavailable", ""),
        "504" => empty("504 Gateway Timeout", ""),
        "408" => empty("408 Request Timeout", ""),
        "see_other" => empty("303 See Other", "Location: /done\r\n"),
        _ => return None,
    })
}

/// Returns a response that says that the call was not processed.
fn refusal(way: &str) -> Option<String> {
    Some(match way {
        "401" => empty("401 Unauthorized", ""),
        "403" => empty("403 Forbidden", ""),
        "429" => empty("429 Too Many Requests", ""),
        "busy" => empty("503 Service Unavailable", "Retry-After: 1\r\n"),
        "moved" => empty("308 Permanent Redirect", "Location: /new\r\n"),
        _ => return None,
    })
}

/// Answers a call over the streamable transport, or does not.
async fn lose(stream: &mut TcpStream, way: &str, id: &Value) -> io::Result<()> {
    if let Some(answer) = broken(way).or_else(|| refusal(way)) {
        return stream.write_all(answer.as_bytes()).await;
    }
    if let Some(way) = way.strip_prefix("stream_") {
        return lose_stream(stream, way, id).await;
    }
    match way {
        "huge" => json_body(stream, "", &" ".repeat(HUGE_BYTES)).await,
        "proxy_error" => {
            let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"oh"}}"#;
            body(stream, "502 Bad Gateway", "", error).await
        }
        way => match answer_in(way, id) {
            Some(answer) => json_body(stream, "", &answer).await,
            None => std::future::pending().await,
        },
    }
}

/// Answers a call over the streamable transport by a stream of events.
async fn lose_stream(stream: &mut TcpStream, way: &str, id: &Value) -> io::Result<()> {
    event_stream(stream).await?;
    match way {
        "cut" => stream.write_all(b": working\n\n").await,
        "half" => stream.write_all(b"data: {\"jsonrpc\":\"2.0\"").await,
        // The session is gone when the stream is to be resumed.
        "lost" => stream.write_all(b"id: 1\nretry: 10\ndata:\n\n").await,
        way => {
            let answer = answer_in(way, id).expect("a stream without an answer is cut");
            stream.write_all(format!("data: {answer}\n\n").as_bytes()).await?;
            // Only an answer to this call ends it while the stream stays open.
            if way == "other_id" { Ok(()) } else { std::future::pending().await }
        }
    }
}

/// Returns a response without a body.
fn empty(status: &str, headers: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n")
}

async fn status(stream: &mut TcpStream, status: &str, headers: &str) -> io::Result<()> {
    stream.write_all(empty(status, headers).as_bytes()).await
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
