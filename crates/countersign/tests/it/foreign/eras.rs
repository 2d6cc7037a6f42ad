//! A server on the Python SDK that speaks both eras of the protocol, in front of clients of the
//! older one: it is spoken to in the newer, unless the config says otherwise.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::client::{able, answers, code, text};
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::command;

use crate::conformance::{peer, served};

#[tokio::test]
async fn a_real_server_of_both_eras_is_used_in_the_newer_one() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let python = foreign::program("python-mcp2/bin/python");
    let mut http = command(&python, dir.path());
    http.args(["-W", "ignore"]).arg(peer("both_eras.py")).arg("http").stderr(Stdio::null());
    let http = served(http).await;
    let stdio = json!({"command": python, "args": ["-W", "ignore", peer("both_eras.py")]});
    let old = |mut entry: Value| {
        entry["protocol"] = json!("2025");
        entry
    };
    let remote = json!({"url": http.address});
    let servers = json!({
        "stdio": stdio, "http": remote, "stdio_old": old(stdio.clone()), "http_old": old(remote.clone()),
    });
    let gate = Gate::start(|_| servers, json!({"connect_timeout": "60s"})).await;
    for (server, revision) in [
        ("stdio", "2026-07-28"),
        ("http", "2026-07-28"),
        ("stdio_old", "2025-11-25"),
        ("http_old", "2025-11-25"),
    ] {
        gate.ready(server).await;
        let client = gate.http_at_with(&format!("/mcp/s/{server}"), able(), answers("me")).await;
        assert_eq!(client.welcome["instructions"], "Handle with care", "{server}");
        let plain = client.call("revision", json!({})).await;
        assert_eq!(text(&plain), revision, "{server}: {plain}");
        let greeted = client.call("greet", json!({"greeting": "Hi"})).await;
        assert_eq!(text(&greeted), format!("{revision}: Hi, me"), "{server}: {greeted}");
        let rooted = client.call("roots", json!({})).await;
        assert_eq!(text(&rooted), format!("{revision}: file:///me"), "{server}: {rooted}");
        assert_eq!(client.listed("resources/list").await, ["memo://a"], "{server}");
        let read = client.request("resources/read", json!({"uri": "memo://a"})).await.unwrap();
        assert_eq!(read["contents"][0]["text"], "a memo", "{server}");
        let prompt = json!({"name": "hello", "arguments": {"name": "me"}});
        let prompt = client.request("prompts/get", prompt).await.unwrap();
        let words = &prompt["messages"][0]["content"]["text"];
        assert_eq!(words, "Hello, me", "{server}: {prompt}");
        let silent = gate.http_at(&format!("/mcp/s/{server}")).await;
        let greet = json!({"name": "greet", "arguments": {"greeting": "Hi"}});
        let unanswered = silent.request("tools/call", greet).await;
        if revision == "2026-07-28" {
            let unanswered = unanswered.unwrap();
            assert_eq!(code(&unanswered), "INPUT_REQUIRED", "{server}: {unanswered}");
            let words = "needs a client that declares elicitation";
            assert!(text(&unanswered).contains(words), "{server}: {unanswered}");
        } else {
            assert!(unanswered.is_err(), "{server}: {unanswered:?}");
        }
    }
    assert_eq!(gate.stop().await, Some(0));
}
