//! The client against servers that misbehave, or behave in unusual ways.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Bytes;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{HeaderMap, HeaderValue, StatusCode};
use mcp::http::client::{Endpoint, connect};
use mcp::peer::Ask;
use mcp::{Peer, RequestError};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::rig::{Listener, PATIENCE, Rig, ask, serve, soon};

fn strange(kind: &str) -> Response {
    let events = [("content-type", "text/event-stream")];
    let json = [("content-type", "application/json")];
    match kind {
        "401" => (StatusCode::UNAUTHORIZED, "who are you").into_response(),
        "500" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        "503" => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        "busy" => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "1")]).into_response(),
        "404" => StatusCode::NOT_FOUND.into_response(),
        "408" => StatusCode::REQUEST_TIMEOUT.into_response(),
        "400" => {
            let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-7,"message":"not so"}}"#;
            (StatusCode::BAD_REQUEST, json, error).into_response()
        }
        "redirect" => {
            let target = [("location", "https://other.example/x?token=hush")];
            (StatusCode::TEMPORARY_REDIRECT, target).into_response()
        }
        "see-other" => {
            (StatusCode::SEE_OTHER, [("location", "https://other.example/x")]).into_response()
        }
        "nothing" => StatusCode::ACCEPTED.into_response(),
        "html" => ([("content-type", "text/html")], "<p>").into_response(),
        "garbage" => (json, "{").into_response(),
        "wrong-id" => (json, r#"{"jsonrpc":"2.0","id":99,"result":{}}"#).into_response(),
        "nameless" => (json, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-8,"message":"no"}}"#)
            .into_response(),
        "huge" => (json, vec![b' '; mcp::limits::FRAME_BYTES_MAX + 1]).into_response(),
        "half" => (events, "data: {\"jsonrpc\"").into_response(),
        "noise" => (events, "data: zzz\n\nretry: 100\n\n").into_response(),
        other => panic!("{other}"),
    }
}

fn connect_to(url: String) -> Peer {
    let mut endpoint = Endpoint::new(url);
    let secret = HeaderValue::from_static("Bearer hush");
    endpoint.headers.push((http::header::AUTHORIZATION, secret));
    connect(endpoint, Listener::new().0).unwrap()
}

#[tokio::test]
async fn each_failure_has_its_own_message_and_says_whether_the_request_was_sent() {
    let router = axum::Router::new()
        .route("/{kind}", post(|Path(kind): Path<String>| async move { strange(&kind) }));
    let address = serve(router).await;
    for (kind, words, is_sent) in [
        ("401", "the server requires authorization (HTTP 401)", false),
        ("500", "the server answered HTTP 500 Internal Server Error", true),
        ("503", "the server answered HTTP 503 Service Unavailable", true),
        ("busy", "the server answered HTTP 503 Service Unavailable", false),
        ("404", "the server answered HTTP 404 Not Found", false),
        ("408", "the server answered HTTP 408 Request Timeout", true),
        ("400", "not so (-7)", false),
        ("redirect", "connection closed: the server redirects to other.example;", false),
        ("see-other", "the server redirects to other.example;", true),
        ("nothing", "the server answered with no content type", true),
        ("html", "the server answered with text/html", true),
        ("garbage", "not a JSON-RPC message", true),
        ("wrong-id", "without a response", true),
        ("nameless", "no (-8)", true),
        ("huge", "exceeds 16777216 bytes", true),
        ("half", "without a response", true),
        ("noise", "without a response", true),
    ] {
        let peer = connect_to(format!("http://user:hush@{address}/{kind}?key=hush"));
        let asked = ask("echo");
        let delivery = asked.delivery.clone();
        let error = soon(peer.request(asked)).await.unwrap_err().to_string();
        assert!(error.contains(words), "{kind}: {error}");
        assert_eq!(delivery.is_sent(), is_sent, "{kind}: {error}");
        assert!(!error.contains("hush") && !error.contains("user"), "{kind}: {error}");
    }
}

#[tokio::test]
async fn the_http_status_is_in_the_error_data() {
    let router = axum::Router::new().route("/", post(|| async { strange("401") }));
    let peer = connect_to(format!("http://{}", serve(router).await));
    let Err(RequestError::Refused(error)) = soon(peer.request(ask("echo"))).await else {
        panic!("no refusal");
    };
    assert!(error.text().get().contains(r#""data":{"httpStatus":401}"#), "{error:?}");
}

#[tokio::test]
async fn an_unreachable_server_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let peer = connect_to(format!("http://{address}/?key=hush"));
    let asked = ask("echo");
    let delivery = asked.delivery.clone();
    let error = soon(peer.request(asked)).await.unwrap_err().to_string();
    assert!(error.contains("cannot reach 127.0.0.1: Connection refused"), "{error}");
    assert!(!delivery.is_sent());
    assert!(soon(peer.notify("notifications/x", None)).await.is_err());
}

#[tokio::test]
async fn only_web_addresses_are_taken() {
    for url in ["", "localhost", "file:///etc/passwd", "ws://localhost/", "data:x"] {
        assert!(connect(Endpoint::new(url), Listener::new().0).is_err(), "{url}");
    }
}

#[tokio::test]
async fn headers_of_the_endpoint_travel_with_every_message() {
    let rig = Rig::start().await;
    let mut endpoint = Endpoint::new(&rig.url);
    endpoint.headers.push(("x-owner".parse().unwrap(), HeaderValue::from_static("bob")));
    let peer = connect(endpoint, Listener::new().0).unwrap();
    crate::rig::greet(&peer).await;
    // The session is bob's: without the header on each POST this would be a 404.
    assert!(peer.request(ask("echo")).await.is_ok());
}

#[tokio::test]
async fn an_interrupted_answer_stream_resumes_after_its_last_event() {
    let first = "id: e1\nretry: 100\ndata: \n\n";
    let rest = "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}\n\n";
    let events = [("content-type", "text/event-stream")];
    let gets = Arc::new(AtomicUsize::new(0));
    let counted = gets.clone();
    let resume = move |headers: HeaderMap| async move {
        assert_eq!(headers["last-event-id"], "e1");
        // The first attempt brings nothing new.
        let body = if counted.fetch_add(1, Ordering::SeqCst) == 0 { "" } else { rest };
        (events, body).into_response()
    };
    let router =
        axum::Router::new().route("/", post(move || async move { (events, first) }).get(resume));
    let peer = connect_to(format!("http://{}", serve(router).await));
    assert_eq!(soon(peer.request(ask("echo"))).await.unwrap().get(), "7");
    assert_eq!(gets.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_server_without_sessions_or_standing_stream_is_served_too() {
    let (seen, mut versions) = tokio::sync::mpsc::unbounded_channel();
    let answer = move |headers: HeaderMap, body: Bytes| async move {
        let version = headers.get("mcp-protocol-version").cloned();
        seen.send((version, headers.contains_key("mcp-session-id"))).unwrap();
        let message: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let Some(id) = message.get("id") else {
            return StatusCode::ACCEPTED.into_response();
        };
        let result = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        ([("content-type", "application/json")], answer).into_response()
    };
    let refuse = get(|| async { StatusCode::METHOD_NOT_ALLOWED });
    let router = axum::Router::new().route("/", refuse.post(answer));
    let peer = connect_to(format!("http://{}", serve(router).await));
    crate::rig::greet(&peer).await;
    peer.request(Ask::new("ping", None, PATIENCE)).await.unwrap();
    assert_eq!(versions.recv().await.unwrap(), (None, false));
    let agreed = Some(HeaderValue::from_static("2025-06-18"));
    assert_eq!(versions.recv().await.unwrap(), (agreed.clone(), false));
    assert_eq!(versions.recv().await.unwrap(), (agreed, false));
}

/// Reads one POST, responds to it, and does not announce a close.
async fn answer_one(stream: &mut TcpStream) {
    let mut request = Vec::new();
    let body: Value = loop {
        request.push(stream.read_u8().await.unwrap());
        let last = request.rsplit(|byte| *byte == b'\n').next().unwrap();
        if last.starts_with(b"{")
            && let Ok(body) = serde_json::from_slice(last)
        {
            break body;
        }
    };
    let answer = json!({"jsonrpc": "2.0", "id": body["id"], "result": {}}).to_string();
    let head = format!("content-type: application/json\r\ncontent-length: {}", answer.len());
    let response = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{answer}");
    stream.write_all(response.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn a_connection_is_used_again_and_a_dead_one_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = connect_to(format!("http://{}/", listener.local_addr().unwrap()));
    let (closed, first_closed) = tokio::sync::oneshot::channel();
    let serving = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        answer_one(&mut first).await;
        answer_one(&mut first).await;
        drop(first);
        closed.send(listener.local_addr().unwrap()).unwrap();
        let (mut second, _) = listener.accept().await.unwrap();
        // This may be the probe connection made below, which closes at once.
        if second.peek(&mut [0]).await.unwrap() == 0 {
            second = listener.accept().await.unwrap().0;
        }
        answer_one(&mut second).await;
    });
    soon(peer.request(ask("echo"))).await.unwrap();
    soon(peer.request(ask("echo"))).await.unwrap();
    let address = soon(first_closed).await.unwrap();
    // Anything sent before this connection opens has been noticed by then.
    drop(TcpStream::connect(address).await.unwrap());
    soon(peer.request(ask("echo"))).await.unwrap();
    soon(serving).await.unwrap();
}

#[tokio::test]
async fn a_login_within_the_url_is_sent_unless_a_header_says_otherwise() {
    let (seen, mut logins) = tokio::sync::mpsc::unbounded_channel();
    let answer = move |headers: HeaderMap| async move {
        seen.send((headers["authorization"].clone(), headers["host"].clone())).unwrap();
        StatusCode::ACCEPTED
    };
    let address = serve(axum::Router::new().route("/", post(answer))).await;
    let url = format!("http://me:p%40ss@{address}/");
    let bare = connect(Endpoint::new(&url), Listener::new().0).unwrap();
    soon(bare.notify("notifications/x", None)).await.unwrap();
    let host = HeaderValue::from_str(&address.to_string()).unwrap();
    let login = HeaderValue::from_static("Basic bWU6cEBzcw==");
    assert_eq!(logins.recv().await.unwrap(), (login, host.clone()));
    soon(connect_to(url).notify("notifications/x", None)).await.unwrap();
    assert_eq!(logins.recv().await.unwrap(), (HeaderValue::from_static("Bearer hush"), host));
}

/// A response that is too large concerns only its request; the server continues.
#[tokio::test]
async fn a_response_that_is_too_large_fails_only_its_request() {
    let count = Arc::new(AtomicUsize::new(0));
    let router = axum::Router::new().route(
        "/",
        post(move |body: Bytes| async move {
            let request: Value = serde_json::from_slice(&body).unwrap();
            match count.fetch_add(1, Ordering::SeqCst) {
                0 => strange("huge"),
                _ => axum::Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": {}}))
                    .into_response(),
            }
        }),
    );
    let peer = connect_to(format!("http://{}", serve(router).await));
    let refused = soon(peer.request(ask("echo"))).await;
    assert!(matches!(refused, Err(RequestError::TooLarge)), "{refused:?}");
    assert!(soon(peer.request(ask("echo"))).await.is_ok());
}

/// Many servers answer 400 for a session that they do not know.
#[tokio::test]
async fn a_session_that_is_lost_with_status_400_is_begun_anew() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let router = axum::Router::new().route(
        "/",
        post(move |headers: HeaderMap, body: Bytes| async move {
            let request: Value = serde_json::from_slice(&body).unwrap();
            let session = headers.get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
            let answer = |result: Value| {
                axum::Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            };
            match (request["method"].as_str().unwrap(), session.as_deref()) {
                ("initialize", None) => {
                    let number = sessions.fetch_add(1, Ordering::SeqCst) + 1;
                    let welcome = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                                         "serverInfo": {"name": "s", "version": "1"}});
                    ([("mcp-session-id", number.to_string())], answer(welcome)).into_response()
                }
                ("tools/call", Some("2")) => answer(json!({})).into_response(),
                ("notifications/initialized", _) => StatusCode::ACCEPTED.into_response(),
                _ => {
                    let error = json!({"jsonrpc": "2.0", "id": null, "error":
                        {"code": -32000, "message": "Bad Request: No valid session ID provided"}});
                    (StatusCode::BAD_REQUEST, axum::Json(error)).into_response()
                }
            }
        }),
    );
    let peer = connect_to(format!("http://{}", serve(router).await));
    crate::rig::greet(&peer).await;
    soon(peer.request(ask("echo"))).await.unwrap();
}

/// A server whose calls end early; what they are answered with is not a reason to make them again.
async fn call_of_ending_server(answer: fn(&Value) -> Response) -> (usize, bool, RequestError) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let take = move |body: Bytes| async move {
        let request: Value = serde_json::from_slice(&body).unwrap();
        match request["method"].as_str().unwrap() {
            "initialize" => {
                let welcome = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                                     "serverInfo": {"name": "s", "version": "1"}});
                let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": welcome});
                ([("mcp-session-id", "one")], axum::Json(answer)).into_response()
            }
            "tools/call" => {
                counted.fetch_add(1, Ordering::SeqCst);
                answer(&request["id"])
            }
            _ => StatusCode::ACCEPTED.into_response(),
        }
    };
    let gone = get(|| async { StatusCode::NOT_FOUND });
    let router = axum::Router::new().route("/", gone.post(take));
    let peer = connect_to(format!("http://{}", serve(router).await));
    crate::rig::greet(&peer).await;
    let asked = ask("echo");
    let delivery = asked.delivery.clone();
    let error = soon(peer.request(asked)).await.unwrap_err();
    (calls.load(Ordering::SeqCst), delivery.is_sent(), error)
}

#[tokio::test]
async fn a_call_whose_stream_cannot_be_resumed_is_made_once() {
    let begun = |_: &Value| {
        let events = [("content-type", "text/event-stream")];
        (events, "id: e1\nretry: 100\ndata: \n\n").into_response()
    };
    let (calls, is_sent, error) = call_of_ending_server(begun).await;
    assert!(matches!(error, RequestError::Lost(_)), "{error}");
    assert!(error.to_string().contains("could not be resumed"), "{error}");
    assert_eq!((calls, is_sent), (1, true));
}

#[tokio::test]
async fn an_error_of_a_call_that_speaks_of_a_session_is_its_answer() {
    let failed = |id: &Value| {
        let error = json!({"code": -32000, "message": "the session was saved only in part"});
        let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
        (StatusCode::BAD_REQUEST, axum::Json(answer)).into_response()
    };
    let nameless = |_: &Value| {
        let error = json!({"code": -32000, "message": "the session was saved only in part"});
        let answer = json!({"jsonrpc": "2.0", "id": null, "error": error});
        (StatusCode::BAD_REQUEST, axum::Json(answer)).into_response()
    };
    for answer in [failed as fn(&Value) -> Response, nameless] {
        let (calls, _, error) = call_of_ending_server(answer).await;
        assert!(matches!(&error, RequestError::Refused(error) if error.code == -32000), "{error}");
        assert_eq!(calls, 1);
    }
}

/// A proxy's error with a status 5xx says nothing about the call.
#[tokio::test]
async fn an_error_beside_a_server_error_is_the_answer_only_if_it_names_the_request() {
    fn failed(id: &Value) -> Response {
        let error = json!({"code": -32603, "message": "it failed"});
        let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
        (StatusCode::BAD_GATEWAY, axum::Json(answer)).into_response()
    }
    let (_, is_sent, error) = call_of_ending_server(failed).await;
    assert!(is_sent && matches!(error, RequestError::Refused(_)), "{error}");
    let others: [fn(&Value) -> Response; 2] = [|_| failed(&Value::Null), |_| failed(&json!(999))];
    for nameless in others {
        let (calls, is_sent, error) = call_of_ending_server(nameless).await;
        assert!(matches!(error, RequestError::Lost(_)), "{error}");
        assert_eq!((calls, is_sent), (1, true));
    }
}
