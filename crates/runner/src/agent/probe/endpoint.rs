//! The model of a probe: an HTTP server on loopback that hands over the first request with tools.
//! It reads only as much of HTTP as the agent programs use, within limits.

use std::net::Ipv4Addr;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::agent::offered;

/// The head of a request has a few hundred bytes.
const HEAD_BYTES_MAX: u64 = 64 * 1024;

/// A first request has some 100 KiB.
const BODY_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Only the first one counts.
const REQUESTS_MAX: usize = 4;

/// A request for an answer, with tools.
pub(super) struct FirstRequest {
    pub(super) tools: Vec<String>,
    pub(super) body: String,
}

/// The running server, which ends when it is dropped.
pub(super) struct Endpoint {
    port: u16,
    requests: mpsc::Receiver<FirstRequest>,
    _serving: JoinSet<()>,
}

impl Endpoint {
    pub(super) async fn start() -> std::io::Result<Endpoint> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let (sender, requests) = mpsc::channel(REQUESTS_MAX);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let sender = sender.clone();
                clients.spawn(async move {
                    // A client that breaks off is no concern of the probe.
                    let _ = converse(stream, &sender).await;
                });
            }
        });
        Ok(Endpoint { port, requests, _serving: serving })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Waits for a request with tools.
    pub(super) async fn first(&mut self) -> Option<FirstRequest> {
        self.requests.recv().await
    }
}

/// Answers one request, and closes the connection.
async fn converse(stream: TcpStream, found: &mpsc::Sender<FirstRequest>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let Some(head) = Head::read(&mut stream).await? else { return Ok(()) };
    let body = head.body(&mut stream).await?;
    let value: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let tools = offered::in_request(&head.path, &value).unwrap_or_default();
    if !tools.is_empty() {
        let body = String::from_utf8_lossy(&body).into_owned();
        // The probe ends with this request, unanswered.
        let _ = found.send(FirstRequest { tools, body }).await;
        return std::future::pending().await;
    }
    let answer = answer(&head.path).to_string();
    let text = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{answer}",
        answer.len()
    );
    stream.get_mut().write_all(text.as_bytes()).await?;
    stream.get_mut().shutdown().await
}

/// Returns a short answer to a request without tools, which a program may send first.
fn answer(path: &str) -> Value {
    if path.contains("/messages") {
        json!({
            "id": "m", "type": "message", "role": "assistant", "model": "probe",
            "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn",
            "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
            "input_tokens": 1,
        })
    } else if path.contains(":generateContent") || path.contains(":countTokens") {
        json!({
            "candidates": [{
                "content": {"role": "model", "parts": [{"text": "{}"}]}, "finishReason": "STOP",
            }],
            "totalTokens": 1,
        })
    } else {
        json!({"data": [], "models": []})
    }
}

/// The parts of a request's head that matter.
struct Head {
    path: String,
    length: u64,
    is_chunked: bool,
}

impl Head {
    async fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Head>> {
        let mut lines = Vec::new();
        let mut limited = (&mut *stream).take(HEAD_BYTES_MAX);
        loop {
            let mut line = String::new();
            if limited.read_line(&mut line).await? == 0 {
                return Ok(None);
            }
            if line.trim_end().is_empty() {
                break;
            }
            lines.push(line);
        }
        Ok(Head::of(&lines))
    }

    fn of(lines: &[String]) -> Option<Head> {
        let (first, headers) = lines.split_first()?;
        let path = first.split(' ').nth(1)?.to_owned();
        let header = |name: &str| {
            let mut pairs = headers.iter().filter_map(|line| line.split_once(':'));
            pairs.find(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, it)| it.trim())
        };
        let length = header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
        let is_chunked =
            header("transfer-encoding").is_some_and(|it| it.eq_ignore_ascii_case("chunked"));
        Some(Head { path, length, is_chunked })
    }

    async fn body(&self, stream: &mut BufReader<TcpStream>) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if !self.is_chunked {
            let length = self.length.min(BODY_BYTES_MAX);
            stream.take(length).read_to_end(&mut body).await?;
            return Ok(body);
        }
        loop {
            let mut line = String::new();
            (&mut *stream).take(HEAD_BYTES_MAX).read_line(&mut line).await?;
            let size = line.trim().split(';').next().unwrap_or_default();
            let size = u64::from_str_radix(size, 16).unwrap_or(0);
            if size == 0 || body.len() as u64 + size > BODY_BYTES_MAX {
                return Ok(body);
            }
            (&mut *stream).take(size).read_to_end(&mut body).await?;
            (&mut *stream).take(2).read_to_end(&mut Vec::new()).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn asked(request: &str) -> (Endpoint, String) {
        let endpoint = Endpoint::start().await.unwrap();
        let address = (Ipv4Addr::LOCALHOST, endpoint.port);
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        if request.contains("tools") {
            return (endpoint, answer);
        }
        stream.read_to_string(&mut answer).await.unwrap();
        (endpoint, answer)
    }

    #[tokio::test]
    async fn the_first_request_with_tools_is_handed_over() {
        let body = r#"{"tools":[{"name":"Bash"}],"say":"hello"}"#;
        let length = body.len();
        let plain = format!(
            "POST /v1/messages?beta=true HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let (first, rest) = body.split_at(7);
        let chunked = format!(
            "POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{first}\r\n{:x};x\r\n{rest}\r\n0\r\n\r\n",
            rest.len()
        );
        for request in [plain, chunked] {
            let (mut endpoint, _) = asked(&request).await;
            let first = endpoint.first().await.unwrap();
            assert_eq!(first.tools, ["Bash"], "{request}");
            assert!(first.body.contains("hello"));
        }
    }

    #[tokio::test]
    async fn other_requests_are_answered() {
        for (request, words) in [
            ("HEAD /api/hello HTTP/1.1\r\n\r\n", "200 OK"),
            ("POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}", "end_turn"),
            ("POST /v1beta/models/m:generateContent HTTP/1.1\r\n\r\n", "candidates"),
        ] {
            let (_, answer) = asked(request).await;
            assert!(answer.contains(words), "{request}: {answer}");
        }
    }
}
