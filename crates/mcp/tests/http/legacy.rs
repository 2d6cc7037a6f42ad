//! The client of HTTP+SSE against a small server of that transport, and against ones that
//! misbehave.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, StatusCode};
use mcp::http::client::Endpoint;
use mcp::http::legacy::connect;
use mcp::{Peer, RequestError};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};

use crate::rig::{Listener, ask, greet, serve, soon};

/// The stream of the only client, and what it posted.
#[derive(Clone, Default)]
struct OldServer {
    stream: Arc<Mutex<Option<mpsc::UnboundedSender<String>>>>,
    posted: Arc<Mutex<Vec<(String, Value)>>>,
}

impl OldServer {
    async fn start(&self) -> String {
        let router = axum::Router::new()
            .route("/sse/{kind}", get(open))
            .route("/messages", post(take))
            .with_state(self.clone());
        format!("http://{}", serve(router).await)
    }

    async fn say(&self, event: &str) {
        self.stream.lock().await.as_ref().unwrap().send(event.to_owned()).unwrap();
    }
}

fn connect_to(url: String) -> Peer {
    let mut endpoint = Endpoint::new(url);
    endpoint.headers.push((http::header::AUTHORIZATION, HeaderValue::from_static("Bearer hush")));
    connect(endpoint, Listener::new().0).unwrap()
}

async fn open(
    State(server): State<OldServer>,
    Path(kind): Path<String>,
    headers: HeaderMap,
) -> Response {
    if headers.get("authorization").is_none_or(|value| value != "Bearer hush") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let first = match kind.as_str() {
        "sound" => "event: endpoint\ndata: /messages?sessionId=hush\n\n",
        "chatty" => ": hello\n\nevent: ping\ndata: 1\n\nevent: endpoint\ndata: /messages\n\n",
        "elsewhere" => "event: endpoint\ndata: http://127.0.0.2:1/messages\n\n",
        "no-url" => "event: endpoint\ndata: http://[\n\n",
        "nameless" => "data: {}\n\n",
        "no-events" => return ([("content-type", "text/html")], "<p>").into_response(),
        other => panic!("{other}"),
    };
    let (sender, events) = mpsc::unbounded_channel();
    sender.send(first.to_owned()).unwrap();
    if kind != "nameless" {
        *server.stream.lock().await = Some(sender);
    }
    let events = stream::unfold(events, |mut events| async move {
        let event = events.recv().await?;
        Some((Ok::<_, Infallible>(event), events))
    });
    ([("content-type", "text/event-stream")], Body::from_stream(events)).into_response()
}

async fn take(
    State(server): State<OldServer>,
    Query(query): Query<Value>,
    body: Bytes,
) -> StatusCode {
    let message: Value = serde_json::from_slice(&body).unwrap();
    let session = query["sessionId"].as_str().unwrap_or_default().to_owned();
    server.posted.lock().await.push((session, message.clone()));
    let answer = match message["method"].as_str() {
        Some("initialize") => json!({"protocolVersion": "2024-11-05", "capabilities": {},
            "serverInfo": {"name": "old", "version": "1"}}),
        Some("tools/call") => match message["params"]["name"].as_str().unwrap() {
            "refused" => return StatusCode::BAD_REQUEST,
            "silent" => return StatusCode::ACCEPTED,
            "huge" => json!({"text": "x".repeat(mcp::limits::FRAME_BYTES_MAX)}),
            name => json!({"content": [{"type": "text", "text": name}]}),
        },
        _ => return StatusCode::ACCEPTED,
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": answer});
    server.say(&format!("event: message\ndata: {answer}\n\n")).await;
    StatusCode::ACCEPTED
}

#[tokio::test]
async fn requests_are_posted_and_answered_over_the_stream() {
    for kind in ["sound", "chatty"] {
        let server = OldServer::default();
        let peer = connect_to(format!("{}/sse/{kind}", server.start().await));
        greet(&peer).await;
        let answer = soon(peer.request(ask("echo"))).await.unwrap();
        let answer: Value = serde_json::from_str(answer.get()).unwrap();
        assert_eq!(answer["content"][0]["text"], "echo", "{kind}");
        let refused = soon(peer.request(ask("refused"))).await.unwrap_err().to_string();
        assert!(refused.contains("HTTP 400"), "{refused}");
        let again = soon(peer.request(ask("again"))).await;
        assert!(again.is_ok(), "one refused message ends nothing");
        let posted = server.posted.lock().await;
        let session = if kind == "sound" { "hush" } else { "" };
        assert!(posted.iter().all(|(named, _)| named == session), "{posted:?}");
        assert_eq!(posted[1].1["method"], "notifications/initialized");
    }
}

#[tokio::test]
async fn the_end_of_the_stream_is_the_end_of_the_connection() {
    let server = OldServer::default();
    let peer = connect_to(format!("{}/sse/sound", server.start().await));
    greet(&peer).await;
    let waiting = {
        let peer = peer.clone();
        tokio::spawn(async move { peer.request(ask("silent")).await })
    };
    soon(async {
        while server.posted.lock().await.len() < 3 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    *server.stream.lock().await = None;
    let failed = soon(waiting).await.unwrap().unwrap_err().to_string();
    assert!(failed.contains("the server ended the stream"), "{failed}");
    assert!(soon(peer.request(ask("echo"))).await.is_err());
}

/// Neither the headers nor the messages go to another host.
#[tokio::test]
async fn a_server_that_names_no_usable_address_is_not_connected() {
    for (kind, words) in [
        ("elsewhere", "cannot be used: it is on another host"),
        ("no-url", "cannot be used: it is not a URL"),
        ("nameless", "ended before it named the address"),
        ("no-events", "answered with text/html"),
    ] {
        let server = OldServer::default();
        let peer = connect_to(format!("{}/sse/{kind}?key=hush", server.start().await));
        let failed = soon(peer.request(ask("echo"))).await.unwrap_err().to_string();
        assert!(failed.contains(words) && !failed.contains("hush"), "{kind}: {failed}");
        assert!(server.posted.lock().await.is_empty());
    }
    let server = OldServer::default();
    let endpoint = Endpoint::new(format!("{}/sse/sound", server.start().await));
    let peer = connect(endpoint, Listener::new().0).unwrap();
    let failed = soon(peer.request(ask("echo"))).await.unwrap_err().to_string();
    assert!(failed.contains("requires authorization"), "{failed}");
}

/// The stream has everybody's answers.
#[tokio::test]
async fn an_answer_that_is_too_large_fails_only_its_request() {
    let server = OldServer::default();
    let peer = connect_to(format!("{}/sse/sound", server.start().await));
    greet(&peer).await;
    let refused = soon(peer.request(ask("huge"))).await;
    assert!(matches!(refused, Err(RequestError::TooLarge)), "{refused:?}");
    assert!(soon(peer.request(ask("echo"))).await.is_ok());
}
