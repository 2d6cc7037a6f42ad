//! Our client with our server: the features of a call.

use std::sync::{Arc, Mutex};

use mcp::RequestError;
use serde_json::Value;

use crate::rig::{Listener, Rig, ask, soon};

#[tokio::test]
async fn a_call_gets_its_answer_byte_for_byte() {
    let rig = Rig::start().await;
    let client = rig.client(Listener::new().0).await;
    let params = r#"{"name":"echo","arguments":{"n":1.50,"big":12345678901234567890123}}"#;
    let mut ask = ask("echo");
    ask.params = Some(mcp::message::raw(params.to_owned()));
    let answer: Value = serde_json::from_str(client.request(ask).await.unwrap().get()).unwrap();
    assert_eq!(answer["content"][0]["text"], r#"{"n":1.50,"big":12345678901234567890123}"#);
    assert_eq!(rig.sessions.len(), 1);
}

#[tokio::test]
async fn progress_reaches_the_one_who_asked() {
    let rig = Rig::start().await;
    let client = rig.client(Listener::new().0).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let mut ask = ask("progress");
    ask.progress = Some(Arc::new(move |params| sink.lock().unwrap().push(params)));
    client.request(ask).await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].get().contains("0.5"), "{}", seen[0]);
}

#[tokio::test]
async fn a_tool_asks_the_client_while_it_runs() {
    let rig = Rig::start().await;
    let client = rig.client(Listener::new().0).await;
    let answer = client.request(ask("ask")).await.unwrap();
    assert_eq!(answer.get(), r#"{"role":"assistant"}"#);
}

#[tokio::test]
async fn a_cancelled_call_stops_on_the_server() {
    let mut rig = Rig::start().await;
    let client = rig.client(Listener::new().0).await;
    let ask = ask("wait");
    let cancel = ask.cancel.clone();
    let asking = tokio::spawn(async move { client.request(ask).await });
    assert_eq!(rig.next_event().await, "started");
    cancel.cancel();
    assert!(matches!(soon(asking).await.unwrap(), Err(RequestError::Cancelled)));
    assert_eq!(rig.next_event().await, "cancelled");
}

#[tokio::test]
async fn dropping_a_request_cancels_its_call() {
    let mut rig = Rig::start().await;
    let client = rig.client(Listener::new().0).await;
    let asking = tokio::spawn(async move { client.request(ask("wait")).await });
    assert_eq!(rig.next_event().await, "started");
    asking.abort();
    assert_eq!(rig.next_event().await, "cancelled");
}

#[tokio::test]
async fn the_server_sends_messages_on_the_standing_stream() {
    let mut rig = Rig::start().await;
    let (listener, mut heard) = Listener::new();
    let client = rig.client(listener).await;
    let server_peer = soon(rig.ready.recv()).await.unwrap();
    server_peer.notify("notifications/tools/list_changed", None).await.unwrap();
    assert_eq!(soon(heard.recv()).await.unwrap(), "notifications/tools/list_changed");
    let ask = mcp::peer::Ask::new("sampling/createMessage", None, crate::rig::PATIENCE);
    let answer = server_peer.request(ask).await.unwrap();
    assert_eq!(answer.get(), r#"{"role":"assistant"}"#);
    drop(client);
}

#[tokio::test]
async fn two_clients_do_not_hear_each_other() {
    let mut rig = Rig::start().await;
    let (first, mut first_heard) = Listener::new();
    let (second, mut second_heard) = Listener::new();
    let first = rig.client(first).await;
    let first_peer = soon(rig.ready.recv()).await.unwrap();
    let second = rig.client(second).await;
    let second_peer = soon(rig.ready.recv()).await.unwrap();
    assert_eq!(rig.sessions.len(), 2);
    first_peer.notify("notifications/first", None).await.unwrap();
    second_peer.notify("notifications/second", None).await.unwrap();
    assert_eq!(soon(first_heard.recv()).await.unwrap(), "notifications/first");
    assert_eq!(soon(second_heard.recv()).await.unwrap(), "notifications/second");
    // Both clients count their ids from one, so the same ids are in flight in both sessions.
    let (one, two) = tokio::join!(first.request(ask("ask")), second.request(ask("ask")));
    assert!(one.is_ok() && two.is_ok());
    drop((first, second));
    assert!(first_heard.try_recv().is_err() && second_heard.try_recv().is_err());
}

#[tokio::test]
async fn a_client_that_closes_or_is_dropped_ends_its_session() {
    let mut rig = Rig::start().await;
    let closed = rig.client(Listener::new().0).await;
    let closed_peer = soon(rig.ready.recv()).await.unwrap();
    closed.close("done");
    assert_eq!(soon(closed_peer.closed()).await.0, "the client ended the session");
    let dropped = rig.client(Listener::new().0).await;
    let dropped_peer = soon(rig.ready.recv()).await.unwrap();
    drop(dropped);
    assert_eq!(soon(dropped_peer.closed()).await.0, "the client ended the session");
    assert!(rig.sessions.is_empty());
}

/// As after a restart of the server: the client begins another session, and sends its request again.
#[tokio::test]
async fn a_session_that_the_server_forgot_is_begun_anew() {
    let mut rig = Rig::start().await;
    let (listener, mut heard) = Listener::new();
    let client = rig.client(listener).await;
    soon(rig.ready.recv()).await.unwrap();
    rig.forget();
    let (first, second) = tokio::join!(client.request(ask("echo")), client.request(ask("echo")));
    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    assert_eq!(rig.sessions.len(), 1, "one session for both");
    assert!(!client.is_closed());
    // The server may have other tools now.
    assert_eq!(soon(heard.recv()).await.unwrap(), "notifications/tools/list_changed");
    // What the server sends on its own arrives again.
    let server = soon(rig.ready.recv()).await.unwrap();
    server.notify("notifications/x", None).await.unwrap();
    while soon(heard.recv()).await.unwrap() != "notifications/x" {}
}
