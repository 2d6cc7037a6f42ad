//! The server against raw HTTP.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request as HttpRequest;
use axum::response::Response as HttpResponse;
use futures_util::stream;
use mcp::limits;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::rig::{EventStream, Rig, call, events_of, initialize, json_of, owner, request, soon};

const CANCEL: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LATEST: &str = "2025-11-25";

async fn refused(rig: &Rig, session: Option<&str>, body: &str) -> (u16, i64, Value) {
    let response = rig.post(session, body).send().await.unwrap();
    let status = response.status().as_u16();
    let body = json_of(response).await;
    (status, body["error"]["code"].as_i64().unwrap(), body["id"].clone())
}

#[tokio::test]
async fn the_first_message_decides_between_json_and_events() {
    let rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    assert_eq!(session.len(), 32);
    let answer = json_of(rig.post(Some(&session), &call(1, "echo")).send().await.unwrap()).await;
    assert_eq!(answer["id"], 1);
    let response = rig.post(Some(&session), &call(2, "progress")).send().await.unwrap();
    let events = events_of(response).await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["method"], "notifications/progress");
    assert_eq!(events[1]["id"], 2);
    let json_only = rig.post(Some(&session), &call(3, "progress")).build().unwrap();
    let mut json_only = json_only;
    json_only.headers_mut().insert("accept", "application/json".parse().unwrap());
    let answer = json_of(rig.http.execute(json_only).await.unwrap()).await;
    assert_eq!(answer["id"], 3);
}

#[tokio::test]
async fn notifications_and_answers_are_accepted_without_a_body() {
    let rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    for body in [INITIALIZED, r#"{"jsonrpc":"2.0","id":99,"result":{}}"#] {
        let response = rig.post(Some(&session), body).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        assert!(response.bytes().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_cancelled_post_ends_with_an_error() {
    let mut rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    let waiting = tokio::spawn(rig.post(Some(&session), &call(1, "wait")).send());
    assert_eq!(rig.next_event().await, "started");
    rig.post(Some(&session), CANCEL).send().await.unwrap();
    let answer = json_of(soon(waiting).await.unwrap().unwrap()).await;
    assert_eq!(answer["error"]["code"], -32800);
    assert_eq!(answer["id"], 1);
}

#[tokio::test]
async fn an_id_in_use_is_refused_to_the_second_and_left_to_the_first() {
    let mut rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    let first = tokio::spawn(rig.post(Some(&session), &call(1, "wait")).send());
    assert_eq!(rig.next_event().await, "started");
    assert_eq!(refused(&rig, Some(&session), &call(1, "echo")).await, (400, -32600, json!(1)));
    rig.release.add_permits(1);
    let answer = json_of(soon(first).await.unwrap().unwrap()).await;
    assert_eq!(answer["result"]["content"][0]["text"], "waited");
    let again = json_of(rig.post(Some(&session), &call(1, "echo")).send().await.unwrap()).await;
    assert!(again["result"].is_object());
}

#[tokio::test]
async fn a_client_that_leaves_does_not_cancel_its_call() {
    let mut rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    let left = tokio::spawn(rig.post(Some(&session), &call(1, "wait")).send());
    assert_eq!(rig.next_event().await, "started");
    left.abort();
    assert_eq!(refused(&rig, Some(&session), &call(1, "echo")).await, (400, -32600, json!(1)));
    rig.post(Some(&session), CANCEL).send().await.unwrap();
    assert_eq!(rig.next_event().await, "cancelled");
}

#[tokio::test]
async fn only_the_owner_of_a_live_session_is_answered() {
    let rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    let forged = "0123456789abcdef0123456789abcdef";
    assert_eq!(refused(&rig, Some(forged), &call(1, "echo")).await, (404, -32001, json!(1)));
    for method in [Method::POST, Method::GET, Method::DELETE] {
        let mallory = rig.send(method.clone(), Some(&session)).header("x-owner", "mallory");
        let mallory = mallory
            .header("content-type", "application/json")
            .header("accept", "text/event-stream")
            .body(if method == Method::POST { call(1, "echo") } else { String::new() });
        assert_eq!(mallory.send().await.unwrap().status(), StatusCode::NOT_FOUND, "{method}");
    }
    let twice = rig.post(Some(&session), &call(1, "echo")).header("mcp-session-id", forged);
    assert_eq!(twice.send().await.unwrap().status(), StatusCode::BAD_REQUEST);
    let deleted = rig.send(Method::DELETE, Some(&session)).send().await.unwrap();
    assert_eq!(deleted.status(), StatusCode::NO_CONTENT);
    assert_eq!(refused(&rig, Some(&session), &call(1, "echo")).await.0, 404);
    let again = rig.send(Method::DELETE, Some(&session)).send().await.unwrap();
    assert_eq!(again.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_calls_and_streams() {
    let mut rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    let standing = rig.send(Method::GET, Some(&session)).header("accept", "text/event-stream");
    let standing = standing.send().await.unwrap();
    let waiting = tokio::spawn(rig.post(Some(&session), &call(1, "wait")).send());
    assert_eq!(rig.next_event().await, "started");
    rig.send(Method::DELETE, Some(&session)).send().await.unwrap();
    assert_eq!(rig.next_event().await, "cancelled");
    let answer = json_of(soon(waiting).await.unwrap().unwrap()).await;
    assert!(answer["error"].is_object(), "{answer}");
    assert!(events_of(standing).await.is_empty());
}

#[tokio::test]
async fn the_service_may_end_its_session_by_closing_the_peer() {
    let mut rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    rig.post(Some(&session), INITIALIZED).send().await.unwrap();
    let peer = soon(rig.ready.recv()).await.unwrap();
    let standing = rig.send(Method::GET, Some(&session)).header("accept", "text/event-stream");
    let standing = standing.send().await.unwrap();
    let waiting = tokio::spawn(rig.post(Some(&session), &call(1, "wait")).send());
    assert_eq!(rig.next_event().await, "started");
    peer.close("it is over");
    assert_eq!(rig.next_event().await, "cancelled");
    assert!(events_of(standing).await.is_empty());
    let answer = json_of(soon(waiting).await.unwrap().unwrap()).await;
    assert!(answer["error"].is_object(), "{answer}");
    assert_eq!(refused(&rig, Some(&session), &call(2, "echo")).await.0, 404);
    assert!(rig.sessions.is_empty());
}

#[tokio::test]
async fn without_a_session_only_initialize_and_probes_are_answered() {
    let rig = Rig::start().await;
    for (method, status, code) in [
        ("server/discover", 200, -32601),
        ("toolsy", 200, -32601),
        ("tools/list", 400, -32600),
        ("ping", 400, -32600),
        ("logging/setLevel", 400, -32600),
    ] {
        let got = refused(&rig, None, &request(7, method, json!({}))).await;
        assert_eq!(got, (status, code, json!(7)), "{method}");
    }
    assert_eq!(refused(&rig, None, INITIALIZED).await, (400, -32600, Value::Null));
    let got = rig.send(Method::GET, None).header("accept", "text/event-stream").send().await;
    assert_eq!(got.unwrap().status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_failed_initialize_leaves_no_session() {
    let rig = Rig::start().await;
    let body = request(1, "initialize", json!({"nothing": true}));
    let response = rig.post(None, &body).send().await.unwrap();
    assert!(!response.headers().contains_key("mcp-session-id"));
    assert_eq!(json_of(response).await["error"]["code"], -32602);
    assert!(rig.sessions.is_empty());
}

#[tokio::test]
async fn an_unknown_revision_is_named_with_the_known_ones() {
    let rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    let strange = |body: &str, session| {
        rig.post(session, body).header("mcp-protocol-version", "1999-01-01").send()
    };
    let response = strange(&call(1, "echo"), Some(&session)).await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let error = json_of(response).await["error"].take();
    assert_eq!(error["data"]["supported"][3], LATEST);
    let response = strange(&initialize(LATEST), None).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let known = rig.post(Some(&session), &call(1, "echo")).header("mcp-protocol-version", LATEST);
    assert_eq!(known.send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn batches_belong_to_one_revision() {
    let rig = Rig::start().await;
    let batch = format!(
        r#"[{},{INITIALIZED},{},{},{{"jsonrpc":"2.0","id":4}}]"#,
        call(1, "echo"),
        call(2, "progress"),
        call(1, "echo")
    );
    let latest = rig.open(LATEST).await;
    assert_eq!(refused(&rig, Some(&latest), &batch).await, (400, -32600, Value::Null));
    assert_eq!(refused(&rig, None, &batch).await.0, 400);
    let session = rig.open("2025-03-26").await;
    let answers = json_of(rig.post(Some(&session), &batch).send().await.unwrap()).await;
    let answers = answers.as_array().unwrap();
    let with = |id: i64, member: &str| {
        answers.iter().filter(|answer| answer["id"] == id && answer.get(member).is_some()).count()
    };
    assert_eq!(answers.len(), 4, "{answers:?}");
    assert_eq!([with(1, "result"), with(1, "error"), with(2, "result"), with(4, "error")], [1; 4]);
    let silent = rig.post(Some(&session), &format!("[{INITIALIZED}]")).send().await.unwrap();
    assert_eq!(silent.status(), StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_newer_standing_stream_replaces_the_older_one() {
    let mut rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    rig.post(Some(&session), INITIALIZED).send().await.unwrap();
    let peer = soon(rig.ready.recv()).await.unwrap();
    let listen = || rig.send(Method::GET, Some(&session)).header("accept", "text/event-stream");
    let older = listen().send().await.unwrap();
    assert_eq!(older.headers()["content-type"], "text/event-stream");
    let mut newer = EventStream::new(listen().send().await.unwrap());
    assert!(events_of(older).await.is_empty());
    peer.notify("notifications/tools/list_changed", None).await.unwrap();
    assert_eq!(newer.next().await.data, "");
    assert!(newer.next().await.data.contains("list_changed"));
    let plain = rig.send(Method::GET, Some(&session)).header("accept", "*/*").send().await;
    assert_eq!(plain.unwrap().status(), StatusCode::NOT_ACCEPTABLE);
    let put = rig.send(Method::PUT, Some(&session)).send().await.unwrap();
    assert_eq!(put.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(put.headers()["allow"], "GET, POST, DELETE");
}

#[tokio::test]
async fn bodies_of_the_wrong_type_or_form_are_rejected() {
    let rig = Rig::start().await;
    for (kind, status) in [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/jsonx", 415),
        ("", 415),
    ] {
        let post = rig.send(Method::POST, None).header("content-type", kind);
        let response = post.body(initialize(LATEST)).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{kind}");
    }
    let zipped = rig.post(None, &initialize(LATEST)).header("content-encoding", "gzip");
    assert_eq!(zipped.send().await.unwrap().status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(refused(&rig, None, "{").await, (400, -32700, Value::Null));
    let twice = r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#;
    assert_eq!(refused(&rig, None, twice).await, (400, -32600, Value::Null));
}

/// Calls the server without a socket, so that time can stand still and bodies can misbehave.
async fn direct(rig: &Rig, session: Option<&str>, body: Body) -> HttpResponse {
    direct_as("alice", rig, session, body).await
}

async fn direct_as(holder: &str, rig: &Rig, session: Option<&str>, body: Body) -> HttpResponse {
    let mut request = HttpRequest::post("/mcp").header("content-type", "application/json");
    if let Some(id) = session {
        request = request.header("mcp-session-id", id);
    }
    let request = request.body(body).unwrap();
    rig.sessions.handle(request, &owner(holder), || rig.service.clone()).await
}

async fn open_direct(rig: &Rig) -> String {
    let response = direct(rig, None, Body::from(initialize(LATEST))).await;
    response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn bodies_are_bounded_in_size_and_time() {
    let rig = Rig::start().await;
    let announced = Body::from(vec![b' '; limits::FRAME_BYTES_MAX + 1]);
    assert_eq!(direct(&rig, None, announced).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let mebibyte = Bytes::from(vec![b' '; 1 << 20]);
    let endless = stream::repeat_with(move || Ok::<_, std::io::Error>(mebibyte.clone()));
    let endless = Body::from_stream(endless);
    assert_eq!(direct(&rig, None, endless).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let silent = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    assert_eq!(direct(&rig, None, silent).await.status(), StatusCode::REQUEST_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_becomes_a_stream_that_is_kept_alive() {
    let rig = Rig::start().await;
    let session = open_direct(&rig).await;
    let response = direct(&rig, Some(&session), Body::from(call(1, "wait"))).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    let mut next = async || {
        let frame = http_body_util::BodyExt::frame(&mut body).await.unwrap().unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    };
    let first = next().await;
    assert!(first.starts_with("id: ") && first.ends_with("\nretry: 1000\ndata: \n\n"), "{first}");
    assert_eq!(next().await, ": keep-alive\n\n");
    rig.release.add_permits(1);
    let rest = axum::body::to_bytes(body, 10_000).await.unwrap();
    assert!(String::from_utf8_lossy(&rest).contains("waited"));
}

#[tokio::test(start_paused = true)]
async fn sessions_expire_when_idle_but_not_while_a_call_runs() {
    let mut rig = Rig::start().await;
    let idle = open_direct(&rig).await;
    let busy = open_direct(&rig).await;
    drop(direct(&rig, Some(&busy), Body::from(call(1, "wait"))).await);
    assert_eq!(rig.next_event().await, "started");
    tokio::time::advance(limits::HTTP_SESSION_IDLE).await;
    let status =
        async |id: &str| direct(&rig, Some(id), Body::from(call(2, "echo"))).await.status();
    assert_eq!(status(&idle).await, StatusCode::NOT_FOUND);
    assert_eq!(status(&busy).await, StatusCode::OK);
    assert_eq!(rig.sessions.len(), 1);
    let swept = open_direct(&rig).await;
    tokio::time::advance(limits::HTTP_SESSION_IDLE - Duration::from_secs(1)).await;
    open_direct(&rig).await;
    assert_eq!(rig.sessions.len(), 3);
    tokio::time::advance(Duration::from_secs(1)).await;
    open_direct(&rig).await;
    assert_eq!(rig.sessions.len(), 3, "{swept} made room");
}

#[tokio::test]
async fn sessions_beyond_the_limit_are_rejected() {
    let rig = Rig::start().await;
    let hello = || Body::from(initialize(LATEST));
    for (holder, opened) in [("alice", 1), ("bob", 2)] {
        for _ in 0..limits::HTTP_SESSIONS_PER_HOLDER_MAX {
            let response = direct_as(holder, &rig, None, hello()).await;
            assert_eq!(response.status(), StatusCode::OK, "{holder} has room");
        }
        let response = direct_as(holder, &rig, None, hello()).await;
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(rig.sessions.len(), opened * limits::HTTP_SESSIONS_PER_HOLDER_MAX);
    }
    let response = direct_as("carol", &rig, None, hello()).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(rig.sessions.len(), limits::HTTP_SESSIONS_MAX);
}

#[tokio::test]
async fn shutdown_lets_calls_finish_and_takes_no_new_ones() {
    let mut rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    let standing = rig.send(Method::GET, Some(&session)).header("accept", "text/event-stream");
    let standing = standing.send().await.unwrap();
    let waiting = tokio::spawn(rig.post(Some(&session), &call(1, "wait")).send());
    assert_eq!(rig.next_event().await, "started");
    let sessions = rig.sessions.clone();
    let closing = tokio::spawn(async move { sessions.close_all("shutdown").await });
    assert!(events_of(standing).await.is_empty());
    assert_eq!(refused(&rig, Some(&session), &call(2, "echo")).await, (503, -32000, json!(2)));
    assert_eq!(refused(&rig, None, &initialize(LATEST)).await.0, 503);
    rig.release.add_permits(1);
    let answer = json_of(soon(waiting).await.unwrap().unwrap()).await;
    assert_eq!(answer["result"]["content"][0]["text"], "waited");
    soon(closing).await.unwrap();
    assert!(rig.sessions.is_empty());
}
