//! Servers behind the gate: each independent, with its true state reported.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::routing::any;
use mcp::http::server::{SessionOwner, Sessions};
use serde_json::{Value, json};
use testkit::client::{self, able, answers, text};
use testkit::gate::Gate;
use testkit::script::Script;
use testkit::upstream::scripted;
use testkit::wait::eventually;

fn states(answer: &Value) -> BTreeMap<String, String> {
    let servers = answer["servers"].as_array().unwrap();
    servers
        .iter()
        .map(|server| {
            (
                server["name"].as_str().unwrap().to_owned(),
                server["state"].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

#[tokio::test]
async fn smoke_one_bad_server_never_spoils_the_rest() {
    let servers = |dir: &std::path::Path| {
        let mut off = scripted(dir, "off", &json!([{"name": "t"}]));
        off["enabled"] = false.into();
        let mut quarantined =
            scripted(dir, "quarantined", &json!([{"name": "t", "description": "secret words"}]));
        quarantined["quarantined"] = true.into();
        let mut partly = scripted(dir, "partly", &json!([{"name": "a"}, {"name": "b"}]));
        partly["disabled_tools"] = json!(["b"]);
        json!({
            "good": scripted(dir, "good", &json!([{"name": "t"}])),
            "missing": {"command": "/does/not/exist"},
            "quits": {"command": "sh", "args": ["-c", "echo 'no config' >&2; exit 3"]},
            "refused": {"url": "http://127.0.0.1:1/mcp"},
            "variable": {"command": "sh", "env": {"X": "${env:COUNTERSIGN_TEST_IS_NOT_SET}"}},
            "off": off, "quarantined": quarantined, "partly": partly,
        })
    };
    let gate = Gate::start(servers, json!({})).await;
    let client = gate.http().await;
    let list = eventually(|| async {
        let list = client.document("upstream_servers", json!({})).await;
        states(&list).values().all(|state| state != "connecting").then_some(list)
    })
    .await;
    let expected = [
        ("good", "ready"),
        ("missing", "error"),
        ("off", "disabled"),
        ("partly", "ready"),
        ("quarantined", "quarantined"),
        ("quits", "error"),
        ("refused", "error"),
        ("variable", "error"),
    ];
    let expected = expected.map(|(name, state)| (name.to_owned(), state.to_owned()));
    assert_eq!(states(&list), BTreeMap::from(expected));
    let entry = |name: &str| {
        list["servers"]
            .as_array()
            .unwrap()
            .iter()
            .find(|server| server["name"] == name)
            .unwrap()
            .clone()
    };
    for (name, status, said) in [
        ("missing", "exit status: 127", "cannot start '/does/not/exist'"),
        ("quits", "exit status: 3", "no config"),
    ] {
        let shown = entry(name)["error"].as_str().unwrap().to_owned();
        assert!(shown.contains(status) && !shown.contains(said), "{shown}");
        let full = gate.server_when(name, |entry| entry["state"] == "error").await;
        assert!(full["error"].as_str().unwrap().contains(said), "operators see it all: {full}");
    }
    assert!(entry("variable")["error"].as_str().unwrap().contains("COUNTERSIGN_TEST_IS_NOT_SET"));
    assert_eq!(entry("partly")["tools"], json!({"callable": 1, "disabled_by_config": 1}));
    assert_eq!(entry("good").get("tools"), None, "a fully callable server gains no member");

    let code = async |name: &str| {
        let result = client.two_key_call("write", name, json!({})).await;
        (client::code(&result).to_owned(), text(&result).to_owned())
    };
    assert_eq!(code("good:t").await.0, "ok");
    assert_eq!(code("partly:a").await.0, "ok");
    for name in ["missing:t", "quits:t", "refused:t", "variable:t"] {
        assert_eq!(code(name).await.0, "UPSTREAM_UNAVAILABLE", "{name}");
    }
    for (name, status) in [
        ("off:t", "server_disabled"),
        ("quarantined:t", "server_quarantined"),
        ("partly:b", "disabled_by_config"),
    ] {
        let (code, words) = code(name).await;
        assert_eq!(code, "TOOL_BLOCKED", "{name}");
        assert!(words.contains(status), "{words}");
        assert!(!words.contains("secret words"));
    }
    let found = client.document("retrieve_tools", json!({"query": "secret words t a b"})).await;
    let names: Vec<&str> =
        found["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert!(
        !names.iter().any(|name| name.starts_with("quarantined") || *name == "partly:b"),
        "{names:?}"
    );
}

#[tokio::test]
async fn a_child_gets_usual_variables_but_not_the_gates_own() {
    let show =
        "echo \"own=$OWN path=${PATH:+yes} gate=$(env | grep -c ^COUNTERSIGN_)\" >&2; exit 1";
    let servers = |_: &std::path::Path| json!({"s": {"command": "sh", "args": ["-c", show], "env": {"OWN": "set"}}});
    let gate = Gate::start(servers, json!({})).await;
    let entry = gate.server_when("s", |entry| entry["state"] == "error").await;
    let error = entry["error"].as_str().unwrap();
    assert!(error.contains("own=set path=yes gate=0"), "{error}");
}

#[tokio::test]
async fn nothing_is_left_when_the_gate_stops() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    // Ignores the end of stdin and SIGTERM, and has a child.
    let stubborn = format!(
        "trap '' TERM; sleep 1000 & echo \"$$ $!\" > '{}'; while :; do sleep 1000; done",
        pids.display()
    );
    let servers = |dir: &std::path::Path| json!({"stubborn": {"command": "sh", "args": ["-c", stubborn]}, "good": scripted(dir, "good", &json!([{"name": "t"}]))});
    let gate =
        Gate::start(servers, json!({"shutdown_timeout": "1s", "connect_timeout": "60s"})).await;
    let pids = eventually(|| async {
        let text = std::fs::read_to_string(&pids).ok()?;
        let pids: Vec<i32> = text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        (pids.len() == 2).then_some(pids)
    })
    .await;
    assert_eq!(gate.stop().await, Some(0));
    for pid in pids {
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        eventually(|| async { rustix::process::test_kill_process(pid).is_err().then_some(()) })
            .await;
    }
}

/// An HTTP server whose sessions can be lost.
struct Forgetful {
    url: String,
    sessions: Arc<Mutex<Sessions>>,
}

impl Forgetful {
    async fn start(script: Value) -> Forgetful {
        let sessions = Arc::new(Mutex::new(Sessions::new()));
        let in_use = sessions.clone();
        let handler = any(move |request: Request| {
            let (sessions, script) = (in_use.lock().unwrap().clone(), script.clone());
            async move {
                let anyone = SessionOwner { holder: String::new(), view: String::new() };
                sessions.handle(request, &anyone, || Arc::new(Script::new(script))).await
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let router = Router::new().route("/mcp", handler);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Forgetful { url, sessions }
    }

    fn forget(&self) {
        *self.sessions.lock().unwrap() = Sessions::new();
    }
}

/// The gate asks again for all that clients had asked for, on either kind of connection.
#[tokio::test]
async fn a_server_that_lost_its_session_is_subscribed_to_again() {
    let dir = tempfile::tempdir().unwrap();
    let heard = dir.path().join("heard");
    let server = Forgetful::start(json!({
        "tools": [{"name": "plain"}], "resources": [], "capabilities": {"logging": {}},
        "heard": heard,
    }))
    .await;
    let gate = Gate::start(|_| json!({"s": {"url": server.url}}), json!({})).await;
    gate.ready("s").await;
    let shared = gate.http_at("/mcp/s/s").await;
    let own = gate.http_at_with("/mcp/s/s", able(), answers("me")).await;
    let asked = |line: &str| {
        let text = std::fs::read_to_string(&heard).unwrap_or_default();
        text.lines().filter(|heard| heard.starts_with(line)).count()
    };
    let wishes = [
        r#"resources/subscribe {"uri":"memo://shared"}"#,
        r#"resources/subscribe {"uri":"memo://own"}"#,
        r#"logging/setLevel {"level":"error"}"#,
    ];
    shared.request("resources/subscribe", json!({"uri": "memo://shared"})).await.unwrap();
    shared.request("logging/setLevel", json!({"level": "error"})).await.unwrap();
    own.request("resources/subscribe", json!({"uri": "memo://own"})).await.unwrap();
    assert_eq!(wishes.map(asked), [1; 3]);
    server.forget();
    for client in [&shared, &own] {
        assert_eq!(client::code(&client.call("plain", json!({})).await), "ok");
    }
    eventually(|| async { (wishes.map(asked) == [2; 3]).then_some(()) }).await;
}
