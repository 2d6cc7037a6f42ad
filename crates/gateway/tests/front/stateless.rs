//! Clients of the handshake era in front of a server that speaks only revision 2026-07-28.

use std::sync::Arc;

use domain::upstream::UpstreamState;
use mcp::Raw;
use mcp::peer::{Ask, ProgressSink};
use serde_json::{Value, json};
use testkit::client::{Client, code, refusal, text};
use testkit::wait::eventually;
use tokio::sync::mpsc;

use crate::gate::{DOORS, Door, Gate};
use crate::server::Server;
use crate::stateless_server::StatelessServer;
use crate::view::{PASSING, VIEWS, ask_on, call_on, name_on};

async fn gate() -> (Gate, StatelessServer) {
    let server = StatelessServer::default();
    (Gate::of(&server.served()).await, server)
}

async fn called(client: &Client, view: &str, tool: &str) -> Value {
    client.request("tools/call", call_on(view, tool, json!({}))).await.unwrap()
}

#[tokio::test]
async fn a_server_of_the_new_era_is_reached_from_the_old_one() {
    let (gate, server) = gate().await;
    for view in VIEWS {
        for door in DOORS {
            let client = gate.client_at(door, view, json!({}), vec![]).await;
            let echo = called(&client, view, "echo").await;
            let sent: Value = serde_json::from_str(text(&echo)).unwrap();
            let meta = &sent["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
            assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "countersign");
            assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
        }
    }
    let client = gate.client("/mcp/s/s").await;
    assert_eq!(client.welcome["serverInfo"]["name"], "modern");
    assert_eq!(client.welcome["instructions"], "Handle with care");
    assert_eq!(client.welcome["protocolVersion"], "2025-11-25");
    assert!(client.listed("tools/list").await.contains(&"echo".to_owned()));
    assert_eq!(client.listed("resources/list").await, ["memo://a"]);
    assert_eq!(client.listed("prompts/list").await, ["p"]);
    let read = client.request("resources/read", json!({"uri": "memo://a"})).await.unwrap();
    assert_eq!(read["contents"][0]["text"], "memo");
    let methods = server.methods();
    assert_eq!(methods[0], "server/discover");
    for old in ["initialize", "notifications/initialized", "ping"] {
        assert!(!methods.iter().any(|method| method == old), "{methods:?}");
    }
}

#[tokio::test]
async fn the_questions_in_a_result_are_asked_of_the_client_and_one_call_is_one_record() {
    let (gate, server) = gate().await;
    for view in VIEWS {
        for door in DOORS {
            let client = gate.able_at(door, view, "me").await;
            let answered = called(&client, view, "ask").await;
            let expected = r#"{"who":{"action":"accept","content":{"name":"me"}}}"#;
            assert_eq!(text(&answered), expected, "{view} {door:?}: {answered}");
            let both = called(&client, view, "twice").await;
            assert!(text(&both).contains(r#""b":{"#), "{both}");
            assert_eq!(text(&called(&client, view, "again").await), "done");
        }
    }
    let records = gate.records().await;
    for tool in ["ask", "twice", "again"] {
        let calls = records.iter().filter(|record| record.tool == tool);
        assert_eq!(calls.count(), VIEWS.len() * DOORS.len(), "{tool}");
    }
    let asked = records.iter().filter(|record| record.tool == "elicitation/create").count();
    assert_eq!(asked, 2 * VIEWS.len() * DOORS.len());
    let ids = server.heard("tools/call");
    assert!(ids.iter().all(|params| params["name"] != "ask" || !params["_meta"].is_null()));
}

#[tokio::test]
async fn a_prompt_may_ask_too() {
    let (gate, _) = gate().await;
    for view in PASSING {
        let client = gate.able(view, "me").await;
        let got = client.request("prompts/get", json!({"name": name_on(view, "p")})).await.unwrap();
        let words = got["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(words.contains("file:///me"), "{view}: {got}");
    }
}

#[tokio::test]
async fn a_call_whose_questions_nobody_answers_fails_with_the_reason() {
    let (gate, _) = gate().await;
    let [silent, able] =
        [gate.client("/mcp/s/s").await, gate.able_at(Door::Memory, "/mcp/s/s", "me").await];
    for (client, tool, expected, words) in [
        (&silent, "ask", "INPUT_REQUIRED", "'elicitation/create', which this client did not"),
        (&silent, "needs", "INPUT_REQUIRED", "it needs a client that declares sampling"),
        (&able, "forever", "INPUT_REQUIRED", "questions within one call"),
        (&able, "odd", "OUTCOME_UNKNOWN", "its result is of the unknown type 'task'"),
    ] {
        let failed = client.call(tool, json!({})).await;
        assert_eq!(code(&failed), expected, "{tool}: {failed}");
        assert!(text(&failed).contains(words), "{tool}: {failed}");
        assert_eq!(refusal(&failed)["details"]["sent"], true, "{tool}: {failed}");
    }
    let records = gate.records().await;
    let count = |status| records.iter().filter(|it| it.status.as_str() == status).count();
    assert_eq!((count("error"), count("unknown"), records.len()), (3, 1, 4));
}

#[tokio::test]
async fn changes_are_announced_and_updates_reach_their_subscribers() {
    let server = StatelessServer::default();
    let gate = Gate::of(&server.served().accepting_new()).await;
    let client = gate.client("/mcp/s/s").await;
    client.listed("tools/list").await;
    eventually(|| async { (!server.streams(|_| true).is_empty()).then_some(()) }).await;
    server.add("later").await;
    client.told_when("notifications/tools/list_changed", 1).await;
    assert!(client.listed("tools/list").await.contains(&"later".to_owned()));

    let other = gate.client("/mcp/s/s").await;
    client.request("resources/subscribe", json!({"uri": "memo://a"})).await.unwrap();
    server.update("memo://a").await;
    let told = client.told_when("notifications/resources/updated", 1).await;
    assert!(told[0].contains(r#""uri":"memo://a""#), "{told:?}");
    client.request("resources/unsubscribe", json!({"uri": "memo://a"})).await.unwrap();
    let is_over = || server.streams(|it| it.get("resourceSubscriptions").is_some()).is_empty();
    eventually(|| async { is_over().then_some(()) }).await;
    assert!(other.told("notifications/resources/updated").is_empty());
    for old in ["resources/subscribe", "resources/unsubscribe"] {
        assert!(server.heard(old).is_empty(), "{old}");
    }
}

#[tokio::test]
async fn a_log_level_is_part_of_each_request() {
    let (gate, server) = gate().await;
    let client = gate.client("/mcp/s/s").await;
    client.call("log", json!({})).await;
    client.request("logging/setLevel", json!({"level": "warning"})).await.unwrap();
    client.call("log", json!({})).await;
    let told = client.told_when("notifications/message", 1).await;
    assert_eq!(told, [r#"{"level":"warning","data":"said"}"#]);
    assert!(server.heard("logging/setLevel").is_empty());
}

#[tokio::test]
async fn progress_passes_under_the_clients_token() {
    let (gate, _) = gate().await;
    let client = gate.client("/mcp/s/s").await;
    let (note, mut heard) = mpsc::unbounded_channel();
    let progress: ProgressSink = Arc::new(move |params| drop(note.send(params)));
    let ask = Ask { progress: Some(progress), ..ask_on("/mcp/s/s", "progress") };
    client.peer.request(ask).await.unwrap();
    assert!(heard.recv().await.unwrap().get().contains(r#""progress":1"#));
}

#[tokio::test]
async fn a_call_goes_on_while_its_server_reports_progress() {
    let server = StatelessServer::default().served().with("call_timeout", "1s");
    for (call_timeout_max, with_progress, expected) in
        [("30m", true, "ok"), ("30m", false, "TIMEOUT"), ("1500ms", true, "TIMEOUT")]
    {
        let config = json!({"call_timeout_max": call_timeout_max});
        let gate = Gate::start(&[("s", &server)], config).await;
        let client = gate.client("/mcp/s/s").await;
        let progress: Option<ProgressSink> =
            with_progress.then(|| Arc::new(|_: Raw| {}) as ProgressSink);
        let ask = Ask { progress, ..ask_on("/mcp/s/s", "steps") };
        let result = client.peer.request(ask).await.unwrap();
        let result: Value = serde_json::from_str(result.get()).unwrap();
        assert_eq!(code(&result), expected, "{call_timeout_max} {with_progress}: {result}");
    }
}

#[tokio::test]
async fn each_setting_speaks_its_own_era() {
    let old = Server::scripted(json!([{"name": "echo"}]));
    let new = StatelessServer::default();
    let set = |era: &str| (old.clone().with("protocol", era), new.served().with("protocol", era));
    for (era, old_ready, new_ready) in
        [("auto", true, true), ("2025", true, false), ("2026", false, true)]
    {
        let (old, new) = set(era);
        let gate = Gate::start(&[("old", &old), ("new", &new)], json!({})).await;
        let is_ready = |name: &str| gate.server(name).state == UpstreamState::Ready;
        assert_eq!((is_ready("old"), is_ready("new")), (old_ready, new_ready), "{era}");
        if era == "2026" {
            let UpstreamState::Waiting(failure) = &gate.server("old").state else { panic!() };
            let words = "does not offer protocol 2026-07-28";
            assert!(failure.reason.contains(words), "{}", failure.reason);
        }
    }
}

#[tokio::test]
async fn a_server_that_answered_a_probe_is_not_probed_again() {
    let old = Server::scripted(json!([{"name": "echo"}])).with("protocol", "auto");
    let gate = Gate::of(&old).await;
    assert_eq!(old.count("server/discover"), 1);
    gate.able("/mcp/s/s", "me").await.listed("tools/list").await;
    gate.gateway.restart("s").await;
    eventually(|| async { (old.count("initialize") == 3).then_some(()) }).await;
    assert_eq!(old.count("server/discover"), 1);
}

#[tokio::test]
async fn a_server_that_ignores_the_probe_gets_the_handshake() {
    let welcome = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"mute","version":"1"}}"#;
    let answers = json!({"initialize": welcome, "tools/list": r#"{"tools":[{"name":"t"}]}"#});
    let gate = Gate::of(&Server::written(answers).with("protocol", "auto")).await;
    assert_eq!(gate.client("/mcp/s/s").await.listed("tools/list").await, ["t"]);
}
