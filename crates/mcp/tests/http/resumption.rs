//! Clients whose connection breaks: they resume where they were, and no other client can.

use std::time::Duration;

use mcp::limits;
use mcp::sse::SseEvent;
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;

use crate::rig::{EventStream, Rig, call, events_of, json_of, soon};

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LATEST: &str = "2025-11-25";
const OLDER: &str = "2025-06-18";

async fn resume(rig: &Rig, session: &str, event: &str) -> Response {
    let get = rig.send(Method::GET, Some(session)).header("accept", "text/event-stream");
    get.header("last-event-id", event).send().await.unwrap()
}

/// Starts a call that reports progress and then waits, and returns its stream.
async fn slow(rig: &mut Rig, session: &str, id: i64) -> EventStream {
    let stream = rig.post(Some(session), &call(id, "slow")).send().await.unwrap();
    assert_eq!(rig.next_event().await, "started");
    EventStream::new(stream)
}

fn id(event: &SseEvent) -> String {
    event.id.clone().expect("the event has an id")
}

#[tokio::test]
async fn an_answer_is_kept_for_a_client_whose_connection_broke() {
    let mut rig = Rig::start().await;
    for (version, has_empty) in [(LATEST, true), (OLDER, false), ("2025-03-26", false)] {
        let session = rig.open(version).await;
        let mut stream = slow(&mut rig, &session, 1).await;
        let mut first = stream.next().await;
        assert_eq!(first.data.is_empty(), has_empty, "{version}");
        if has_empty {
            assert_eq!(first.retry_ms, Some(1000));
            let empty = id(&first);
            first = stream.next().await;
            assert_ne!(empty, id(&first));
        }
        assert!(first.data.contains("notifications/progress"));
        drop(stream);
        rig.release.add_permits(1);
        let rest = events_of(resume(&rig, &session, &id(&first)).await).await;
        assert_eq!(rest[0]["method"], "notifications/progress", "{version}");
        assert_eq!(rest[1]["result"]["content"][0]["text"], "slowly", "{version}");
        let again = events_of(resume(&rig, &session, &id(&first)).await).await;
        assert_eq!(again, rest, "it may break again");
    }
}

#[tokio::test]
async fn a_stream_is_resumed_while_its_call_runs() {
    let mut rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    let mut stream = slow(&mut rig, &session, 1).await;
    let start = id(&stream.next().await);
    let mut resumed = EventStream::new(resume(&rig, &session, &start).await);
    assert_eq!(id(&resumed.next().await), start);
    assert!(resumed.next().await.data.contains("notifications/progress"));
    rig.release.add_permits(1);
    assert!(resumed.next().await.data.contains("notifications/progress"));
    let last = resumed.next().await;
    assert!(last.data.contains("slowly"));
    assert!(events_of(resume(&rig, &session, &id(&last)).await).await.is_empty());
}

#[tokio::test]
async fn only_the_session_of_an_event_reads_on_and_only_on_its_stream() {
    let mut rig = Rig::start().await;
    let (mine, other) = (rig.open(LATEST).await, rig.open(LATEST).await);
    let mut one = slow(&mut rig, &mine, 1).await;
    let mut two = slow(&mut rig, &mine, 2).await;
    let (first, second) = (id(&one.next().await), id(&two.next().await));
    drop((one, two));
    rig.release.add_permits(2);
    for (event, expected) in [(&first, 1), (&second, 2)] {
        let events = events_of(resume(&rig, &mine, event).await).await;
        let answers: Vec<&Value> = events.iter().filter(|event| event["id"].is_i64()).collect();
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0]["id"], expected);
    }
    let beyond = format!("{first}9");
    for (session, event) in [
        (&other, first.as_str()),
        (&mine, "nonsense"),
        (&mine, "999999-1-1"),
        (&mine, beyond.as_str()),
        (&mine, ""),
    ] {
        let refused = resume(&rig, session, event).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{event}");
        let words = json_of(refused).await["error"]["message"].to_string();
        assert!(words.contains("not the id of an event of this session"), "{words}");
    }
    let mallory = rig.send(Method::GET, Some(&mine)).header("accept", "text/event-stream");
    let mallory = mallory.header("x-owner", "mallory").header("last-event-id", &first);
    assert_eq!(mallory.send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_standing_stream_is_resumed_too() {
    let mut rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    rig.post(Some(&session), INITIALIZED).send().await.unwrap();
    let peer = soon(rig.ready.recv()).await.unwrap();
    let get = rig.send(Method::GET, Some(&session)).header("accept", "text/event-stream");
    let mut standing = EventStream::new(get.send().await.unwrap());
    let start = id(&standing.next().await);
    for name in ["a", "b"] {
        peer.notify(name, None).await.unwrap();
        assert!(standing.next().await.data.contains(name));
    }
    drop(standing);
    peer.notify("c", None).await.unwrap();
    let mut resumed = EventStream::new(resume(&rig, &session, &start).await);
    assert_eq!(id(&resumed.next().await), start);
    for name in ["a", "b", "c"] {
        assert!(resumed.next().await.data.contains(&format!("\"{name}\"")), "{name}");
    }
    peer.notify("d", None).await.unwrap();
    assert!(resumed.next().await.data.contains("\"d\""));
}

#[tokio::test]
async fn answers_are_kept_in_bounded_number() {
    let mut rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    let mut starts = Vec::new();
    for number in 0..=limits::REPLAY_ANSWERS_MAX as i64 {
        rig.release.add_permits(1);
        let mut stream = slow(&mut rig, &session, number).await;
        starts.push(id(&stream.next().await));
        while !stream.next().await.data.contains("slowly") {}
    }
    let refused = resume(&rig, &session, &starts[0]).await;
    assert_eq!(refused.status(), StatusCode::GONE);
    let words = json_of(refused).await["error"]["message"].to_string();
    assert!(words.contains("no longer kept"), "{words}");
    assert_eq!(events_of(resume(&rig, &session, &starts[1]).await).await.len(), 3);
}

#[tokio::test]
async fn a_session_that_ends_keeps_nothing() {
    let mut rig = Rig::start().await;
    let session = rig.open(LATEST).await;
    let mut stream = slow(&mut rig, &session, 1).await;
    let start = id(&stream.next().await);
    rig.send(Method::DELETE, Some(&session)).send().await.unwrap();
    let mut last = stream.next().await;
    while last.data.contains("progress") {
        last = stream.next().await;
    }
    assert!(serde_json::from_str::<Value>(&last.data).unwrap()["error"].is_object(), "{last:?}");
    assert_eq!(resume(&rig, &session, &start).await.status(), StatusCode::NOT_FOUND);
    rig.release.add_permits(1);
}

/// Time stands still, so that the end of it can be tested.
#[tokio::test(start_paused = true)]
async fn answers_expire() {
    use axum::body::Body;
    use axum::extract::Request as HttpRequest;
    let rig = Rig::start().await;
    let handle = async |request: HttpRequest| {
        let owner = crate::rig::owner("alice");
        rig.sessions.handle(request, &owner, || rig.service.clone()).await
    };
    let post = |session: Option<&str>, body: String| {
        let request = HttpRequest::post("/mcp").header("content-type", "application/json");
        let request = match session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        };
        request.body(Body::from(body)).unwrap()
    };
    let hello = handle(post(None, crate::rig::initialize(LATEST))).await;
    let session = hello.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    rig.release.add_permits(1);
    let answer = handle(post(Some(&session), call(1, "slow"))).await;
    let body = axum::body::to_bytes(answer.into_body(), 100_000).await.unwrap();
    let start = mcp::sse::Parser::new(100_000).push(&body).unwrap()[0].id.clone().unwrap();
    let resumed = async || {
        let get = HttpRequest::get("/mcp").header("accept", "text/event-stream");
        let get = get.header("mcp-session-id", &session).header("last-event-id", &start);
        handle(get.body(Body::empty()).unwrap()).await.status()
    };
    assert_eq!(resumed().await, StatusCode::OK);
    tokio::time::advance(limits::REPLAY_TIME - Duration::from_secs(1)).await;
    assert_eq!(resumed().await, StatusCode::OK);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(resumed().await, StatusCode::GONE);
}
