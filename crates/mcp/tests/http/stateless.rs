//! The client against servers of revision 2026-07-28, and what it makes of the answers to a probe.

use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use mcp::Peer;
use mcp::http::client::{Endpoint, connect};
use mcp::message::to_raw;
use mcp::meta::ClientMeta;
use mcp::peer::{Ask, RequestError};
use mcp::stateless::{LISTEN, ProbeOutcome, probe};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::rig::{Listener, PATIENCE, ask, serve, soon};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];
const EVENTS: [(&str, &str); 1] = [("content-type", "text/event-stream")];

fn client() -> ClientMeta {
    ClientMeta::new(&json!({"name": "test", "version": "1"}), &to_raw(&json!({"roots": {}})))
}

fn answer(id: &Value, result: Value) -> Response {
    (JSON, json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()).into_response()
}

fn discovery() -> Value {
    json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}})
}

/// A server that answers each request with its own headers and body.
#[derive(Clone, Default)]
struct Mirror {
    heard: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
}

impl Mirror {
    async fn start(&self) -> Peer {
        let heard = self.heard.clone();
        let answer = move |headers: HeaderMap, body: Bytes| async move {
            let message: Value = serde_json::from_slice(&body).unwrap();
            heard.lock().unwrap().push((headers, message.clone()));
            match message["method"].as_str() {
                Some("server/discover") => answer(&message["id"], discovery()),
                // Its stream stays open without a word.
                Some("tools/call") if message["params"]["name"] == "wait" => {
                    let (sender, receiver) = mpsc::unbounded_channel::<Bytes>();
                    let body = futures_util::stream::unfold(receiver, async |mut receiver| {
                        receiver.recv().await.map(|it| (Ok::<_, std::io::Error>(it), receiver))
                    });
                    std::mem::forget(sender);
                    (EVENTS, Body::from_stream(body)).into_response()
                }
                _ => answer(&message["id"], json!({"resultType": "complete"})),
            }
        };
        let router = axum::Router::new().route("/", post(answer));
        let url = format!("http://{}", serve(router).await);
        let peer = connect(Endpoint::new(url), Listener::new().0).unwrap();
        let Ok(ProbeOutcome::Stateless(_)) = soon(probe(&peer, client(), PATIENCE)).await else {
            panic!("it is stateless");
        };
        peer
    }

    fn heard(&self) -> Vec<(HeaderMap, Value)> {
        self.heard.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn each_request_says_what_its_headers_repeat() {
    let mirror = Mirror::default();
    let peer = mirror.start().await;
    let headers = vec![("mcp-param-region".parse().unwrap(), "eu".parse().unwrap())];
    soon(peer.request(Ask { headers, ..ask("echo") })).await.unwrap();
    soon(peer.request(Ask::new("tools/list", None, PATIENCE))).await.unwrap();
    let heard = mirror.heard();
    for (headers, message) in &heard {
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
        assert_eq!(headers["mcp-method"], message["method"].as_str().unwrap());
        assert!(!headers.contains_key("mcp-session-id"));
        let meta = &message["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({"roots": {}}));
    }
    assert_eq!(heard[1].0["mcp-name"], "echo");
    assert_eq!(heard[1].0["mcp-param-region"], "eu");
    assert!(!heard[2].0.contains_key("mcp-name"));
}

#[tokio::test]
async fn a_withdrawn_request_closes_its_stream_and_nothing_more_is_sent() {
    let mirror = Mirror::default();
    let peer = mirror.start().await;
    let waiting = ask("wait");
    let cancel = waiting.cancel.clone();
    let cancelled = async {
        while mirror.heard().len() < 2 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (outcome, ()) = soon(async { tokio::join!(peer.request(waiting), cancelled) }).await;
    assert!(matches!(outcome, Err(RequestError::Cancelled)), "{outcome:?}");
    peer.idle().await;
    soon(peer.request(ask("echo"))).await.unwrap();
    let methods: Vec<Value> =
        mirror.heard().iter().map(|(_, message)| message["method"].clone()).collect();
    assert_eq!(methods, ["server/discover", "tools/call", "tools/call"]);
}

#[tokio::test]
async fn a_stream_of_announcements_begins_with_what_was_agreed() {
    let events = |id: &Value| {
        let message = |method: &str| {
            let params = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}});
            json!({"jsonrpc": "2.0", "method": method, "params": params})
        };
        let end = json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete"}});
        [
            message("notifications/subscriptions/acknowledged"),
            message("notifications/tools/list_changed"),
            end,
        ]
        .map(|message| format!(":\ndata: {message}\n\n"))
        .concat()
    };
    let answer = move |body: Bytes| async move {
        let message: Value = serde_json::from_slice(&body).unwrap();
        match message["method"].as_str() {
            Some("server/discover") => answer(&message["id"], discovery()),
            _ => (EVENTS, events(&message["id"])).into_response(),
        }
    };
    let router = axum::Router::new().route("/", post(answer));
    let (listener, mut unclaimed) = Listener::new();
    let url = format!("http://{}", serve(router).await);
    let peer = connect(Endpoint::new(url), listener).unwrap();
    assert!(matches!(soon(probe(&peer, client(), PATIENCE)).await, Ok(ProbeOutcome::Stateless(_))));
    let (note, mut taken) = mpsc::unbounded_channel();
    let listen = Ask {
        notices: Some(Arc::new(move |notification| {
            let is_first = notification.method.ends_with("acknowledged");
            let _ = note.send(notification.method.clone());
            (!is_first).then_some(notification)
        })),
        ..Ask::new(LISTEN, None, PATIENCE)
    };
    soon(peer.request(listen)).await.unwrap();
    assert_eq!(taken.recv().await.unwrap(), "notifications/subscriptions/acknowledged");
    assert_eq!(taken.recv().await.unwrap(), "notifications/tools/list_changed");
    assert_eq!(unclaimed.recv().await.unwrap(), "notifications/tools/list_changed");
}

async fn probed(status: u16, body: &'static str) -> String {
    let answer =
        move || async move { (StatusCode::from_u16(status).unwrap(), JSON, body).into_response() };
    let router = axum::Router::new().route("/", post(answer));
    let url = format!("http://{}", serve(router).await);
    let peer = connect(Endpoint::new(url), Listener::new().0).unwrap();
    match soon(probe(&peer, client(), PATIENCE)).await {
        Ok(ProbeOutcome::Stateless(_)) => "stateless".to_owned(),
        Ok(ProbeOutcome::Handshake) => "handshake".to_owned(),
        Ok(ProbeOutcome::Inconclusive(_)) => "inconclusive".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn only_what_a_server_itself_says_tells_its_era() {
    let error = |code: i64| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"no"}}}}"#)
    };
    for (status, body, expected) in [
        (
            200,
            r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}"#.to_owned(),
            "stateless",
        ),
        (
            200,
            r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2025-11-25"]}}"#.to_owned(),
            "handshake",
        ),
        (200, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), "handshake"),
        (200, error(-32601), "handshake"),
        (400, error(-32000), "handshake"),
        (404, error(-32601), "handshake"),
        (404, String::new(), "handshake"),
        (405, String::new(), "handshake"),
        (401, String::new(), "inconclusive"),
        (403, String::new(), "inconclusive"),
        (429, String::new(), "inconclusive"),
        (500, error(-32603), "inconclusive"),
        (503, String::new(), "inconclusive"),
        (200, "<html>".to_owned(), "inconclusive"),
    ] {
        let body: &'static str = body.leak();
        assert_eq!(probed(status, body).await, expected, "{status} {body}");
    }
}

#[tokio::test]
async fn a_server_that_names_the_revision_it_refused_is_probed_once_more() {
    let refused = Arc::new(Mutex::new(0));
    let counted = refused.clone();
    let answer = move |body: Bytes| async move {
        let id = serde_json::from_slice::<Value>(&body).unwrap()["id"].clone();
        let mut refused = counted.lock().unwrap();
        *refused += 1;
        if *refused > 1 {
            return answer(&id, discovery());
        }
        let error = json!({"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}});
        let body = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
        (StatusCode::BAD_REQUEST, JSON, body).into_response()
    };
    let router = axum::Router::new().route("/", post(answer));
    let url = format!("http://{}", serve(router).await);
    let peer = connect(Endpoint::new(url), Listener::new().0).unwrap();
    assert!(matches!(soon(probe(&peer, client(), PATIENCE)).await, Ok(ProbeOutcome::Stateless(_))));
    assert_eq!(*refused.lock().unwrap(), 2);
}

#[tokio::test]
async fn a_server_that_asks_for_it_is_left_alone() {
    let heard = Arc::new(Mutex::new(0));
    let counted = heard.clone();
    let answer = move || async move {
        *counted.lock().unwrap() += 1;
        (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "3600")]).into_response()
    };
    let router = axum::Router::new().route("/", post(answer));
    let url = format!("http://{}", serve(router).await);
    let peer = connect(Endpoint::new(url), Listener::new().0).unwrap();
    for _ in 0..3 {
        let asked = ask("echo");
        let delivery = asked.delivery.clone();
        let Err(RequestError::Refused(error)) = soon(peer.request(asked)).await else {
            panic!("no refusal");
        };
        assert!(error.retry_after().is_some_and(|wait| wait.as_secs() > 60), "{error}");
        assert!(!delivery.is_sent());
    }
    assert_eq!(*heard.lock().unwrap(), 1);
}
