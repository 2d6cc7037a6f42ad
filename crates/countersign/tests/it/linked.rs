//! Discovery mode apart from tools: what results link to can be read, by a client and by a model,
//! and people use the servers' prompts. All of it is decided and recorded like a call.

use std::path::Path;

use mcp::peer::RequestError;
use serde_json::{Value, json};
use testkit::client::{Client, able, answers, code, refusal, text, two_keys};
use testkit::gate::Gate;
use testkit::upstream::scripted;
use testkit::wait::eventually;

use crate::ledger::records_when;
use crate::locks::{client_with, decisions, live, make_token, replace_script};

const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
const COMPLETE: &str = "notifications/elicitation/complete";
const LINK: &str = "countersign://server/s/memo://a";

/// The code of a request that the gate refuses.
const REFUSED: i64 = -32003;

fn script(dir: &Path) -> Value {
    let link = json!({"content": [
        {"type": "text", "text": "see"},
        {"type": "resource_link", "uri": "memo://a", "name": "a", "x-number": 1.5},
        {"type": "resource", "resource": {"uri": "memo://b", "text": "b"}},
    ]});
    let asks = json!({"code": -32042, "message": "open the address first", "data": {"elicitations": [
        {"mode": "url", "elicitationId": "e", "url": "https://example.com", "message": "Sign in"}]}});
    let complete = json!([{"method": COMPLETE, "params": {"elicitationId": "e"}}]);
    json!({
        "tools": [
            {"name": "link", "x-do": {"reply": link}},
            {"name": "sign_in", "x-do": {"refuse": asks}},
            {"name": "fail", "x-do": "error"},
            {"name": "done", "x-do": {"notify": complete}},
            {"name": "refresh_chart", "description": "Refreshes a chart",
             "_meta": {"ui": {"visibility": ["app"]}}},
            {"name": "show_chart", "description": "Shows a chart",
             "_meta": {"ui": {"visibility": ["model", "app"]}}},
        ],
        "prompts": [{"name": "p", "description": "A prompt", "_meta": {"x": 1}}, {"name": "q"}],
        "resources": [{"uri": "memo://a", "name": "a"}],
        "heard": dir.join("heard"),
    })
}

async fn gate() -> Gate {
    let servers = |dir: &Path| {
        let other = json!({"tools": [], "prompts": [{"name": "p"}]});
        json!({"s": scripted(dir, "s", &script(dir)), "t": scripted(dir, "t", &other)})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    gate.ready("t").await;
    gate
}

fn error(answer: Result<Value, RequestError>) -> mcp::ErrorObject {
    match answer {
        Err(RequestError::Refused(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

async fn names(client: &Client) -> Vec<String> {
    let list = client.request("prompts/list", json!({})).await.unwrap();
    let prompts = list["prompts"].as_array().unwrap().iter();
    prompts.map(|prompt| prompt["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn links_name_their_server_and_are_read_by_clients_and_models() {
    let gate = gate().await;
    let client = gate.http().await;
    let found = client.two_key_call("write", "s:link", json!({})).await;
    let blocks = &found["content"];
    assert_eq!(blocks[0]["text"], "see");
    assert_eq!(blocks[1]["uri"], LINK);
    assert_eq!(blocks[1]["x-number"], 1.5, "the rest stays");
    assert_eq!(blocks[2]["resource"]["uri"], "countersign://server/s/memo://b");
    // The scripted server answers with the params that arrived.
    let read = client.request("resources/read", json!({"uri": LINK, "x": 1.5})).await.unwrap();
    assert_eq!(read["echo"], json!({"uri": "memo://a", "x": 1.5}));
    let params = json!({"name": "call_tool_read",
        "arguments": {"name": LINK, "intent": {"operation_type": "read", "reason": "curious"}}});
    let read = client.request("tools/call", params).await.unwrap();
    assert_eq!(read["echo"], json!({"uri": "memo://a"}));
    let reads = |records: &[Value]| {
        let reads = records.iter().filter(|record| record["tool"] == "resources/read");
        reads.cloned().collect::<Vec<_>>()
    };
    let records = records_when(&gate.home(), |records| reads(records).len() == 2).await;
    for record in reads(&records) {
        assert_eq!((&record["server"], &record["status"]), (&json!("s"), &json!("success")));
        assert_eq!(record["effective_class"], "read", "{record}");
        assert_eq!(record["resource"], "memo://a", "{record}");
    }
    let alone = client.request("resources/read", json!({"uri": "memo://a"})).await.unwrap();
    assert_eq!(alone["echo"]["uri"], "memo://a", "only one server has it");
    let lists = client.request("resources/list", json!({})).await.unwrap();
    assert_eq!(lists, json!({"resources": []}));
    let lists = client.request("resources/templates/list", json!({})).await.unwrap();
    assert_eq!(lists, json!({"resourceTemplates": []}));
}

#[tokio::test]
async fn a_link_that_leads_nowhere_gets_a_clear_answer() {
    let gate = gate().await;
    let client = gate.http().await;
    for uri in [
        "countersign://server/none/memo://a",
        "countersign://server/workspace/memo://a",
        "other://a",
    ] {
        let missing = error(client.request("resources/read", json!({"uri": uri})).await);
        assert_eq!(missing.code, -32602, "{}", missing.message);
        assert_eq!(missing.message, format!("unknown resource: {uri}"));
    }
    for params in [json!({}), json!({"uri": ["a"]})] {
        assert_eq!(error(client.request("resources/read", params).await).code, -32602);
    }
    let none = "countersign://server/none/memo://a";
    let missing = client.two_key_call("read", none, json!({})).await;
    assert_eq!(code(&missing), "TOOL_NOT_FOUND");
    assert_eq!(
        text(&missing),
        format!("unknown resource: {none}; a link must be copied unchanged")
    );
    let wrong = client.two_key_call("read", LINK, json!({"uri": "memo://b"})).await;
    assert_eq!(code(&wrong), "INVALID_ARGUMENTS");
    assert!(text(&wrong).contains("takes no args"), "{wrong}");
    let twice = two_keys("write", LINK, json!({}));
    let written = client.request("tools/call", twice).await.unwrap();
    assert_eq!(code(&written), "ok", "a stricter declaration is allowed");
}

#[tokio::test]
async fn a_link_is_as_locked_and_hidden_as_its_server() {
    let gate = gate().await;
    let store = decisions(&gate);
    make_token(
        &store,
        "other",
        &json!({"servers": ["t"], "operations": ["read"], "surfaces": ["discovery"]}),
    );
    let other = client_with(&gate, "other", "/mcp").await;
    let hidden = error(other.request("resources/read", json!({"uri": LINK})).await);
    let none = json!({"uri": "countersign://server/nix/memo://a"});
    let missing = error(other.request("resources/read", none).await);
    assert_eq!(hidden.code, missing.code);
    assert_eq!(hidden.message, format!("unknown resource: {LINK}"));
    assert_eq!(missing.message, "unknown resource: countersign://server/nix/memo://a");
    assert_eq!(code(&other.two_key_call("read", LINK, json!({})).await), "TOOL_NOT_FOUND");
    assert_eq!(names(&other).await, ["t__p"]);
    let client = gate.http().await;
    let (status, _) =
        gate.rest(reqwest::Method::POST, "/api/v1/servers/s/disable", Some(json!({}))).await;
    assert_eq!(status, 200);
    let locked = error(client.request("resources/read", json!({"uri": LINK})).await);
    assert_eq!(locked.code, REFUSED, "{}", locked.message);
    assert!(locked.message.contains("server_disabled"), "{}", locked.message);
    let locked = client.two_key_call("read", LINK, json!({})).await;
    assert_eq!(code(&locked), "TOOL_BLOCKED");
    let refused = |records: &[Value]| {
        let reads = records.iter().filter(|record| record["tool"] == "resources/read");
        reads.filter(|record| record["status"] != "success").count()
    };
    // Every one of them is recorded.
    records_when(&gate.home(), |records| refused(records) == 5).await;
}

#[tokio::test]
async fn smoke_people_use_the_prompts_of_all_servers() {
    let gate = gate().await;
    let client = gate.http().await;
    let capabilities = json!({"tools": {}, "prompts": {"listChanged": true}, "resources": {}});
    assert_eq!(client.welcome["capabilities"], capabilities);
    assert_eq!(names(&client).await, ["s__p", "s__q", "t__p"]);
    let list = client.request("prompts/list", json!({})).await.unwrap();
    assert_eq!(list["prompts"][0], json!({"name": "s__p", "description": "A prompt"}));
    let params = json!({"name": "s__p", "arguments": {"a": "1"}});
    let got = client.request("prompts/get", params).await.unwrap();
    assert_eq!(got["echo"], json!({"name": "p", "arguments": {"a": "1"}}));
    let unknown = error(client.request("prompts/get", json!({"name": "p"})).await);
    assert_eq!((unknown.code, unknown.message.as_str()), (-32602, "unknown prompt: p"));
    let records = records_when(&gate.home(), |records| !records.is_empty()).await;
    let record = records.iter().find(|record| record["tool"] == "prompts/get").unwrap();
    assert_eq!((&record["server"], &record["resource"]), (&json!("s"), &json!("prompt/p")));
    assert_eq!(record["effective_class"], "read");
}

#[tokio::test]
async fn a_change_of_prompts_is_announced_once_and_reviewed_first() {
    let notify = json!({"notify": [{"method": PROMPTS_CHANGED}]});
    let script =
        |prompts: Value| json!({"tools": [{"name": "tell", "x-do": notify}], "prompts": prompts});
    let servers = |dir: &Path| {
        let mut open = live(dir, "open", &script(json!([{"name": "a"}])));
        open["auto_approve"] = "new".into();
        json!({"open": open, "s": live(dir, "s", &script(json!([{"name": "p"}])))})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("open").await;
    gate.ready("s").await;
    let client = gate.http().await;
    assert_eq!(names(&client).await, ["open__a", "s__p"]);
    replace_script(&gate, "s", &script(json!([{"name": "p", "description": "changed"}])));
    client.two_key_call("write", "s:tell", json!({})).await;
    eventually(|| async { (names(&client).await == ["open__a"]).then_some(()) }).await;
    let locked = error(client.request("prompts/get", json!({"name": "s__p"})).await);
    assert_eq!(locked.code, REFUSED);
    assert!(locked.message.contains("pending_approval"), "{}", locked.message);
    replace_script(&gate, "open", &script(json!([{"name": "a"}, {"name": "b"}])));
    client.two_key_call("write", "open:tell", json!({})).await;
    eventually(|| async { (names(&client).await == ["open__a", "open__b"]).then_some(()) }).await;
    let told = client.notices.lock().unwrap();
    let told = told.iter().filter(|(method, _)| method == PROMPTS_CHANGED).count();
    assert!((1..=2).contains(&told), "{told} announcements of two changes");
}

#[tokio::test]
async fn a_request_to_open_an_address_reaches_the_client() {
    let gate = gate().await;
    let client = gate.http_at_with("/mcp", able(), answers("me")).await;
    let params = two_keys("write", "s:sign_in", json!({}));
    let asked = error(client.request("tools/call", params).await);
    assert_eq!(asked.code, -32042);
    let text: Value = serde_json::from_str(asked.text().get()).unwrap();
    assert_eq!(text["data"]["elicitations"][0]["elicitationId"], "e", "{text}");
    client.two_key_call("write", "s:done", json!({})).await;
    eventually(|| async {
        let told = client.notices.lock().unwrap();
        told.iter().any(|(method, _)| method == COMPLETE).then_some(())
    })
    .await;
    let failed = client.two_key_call("write", "s:fail", json!({})).await;
    assert_eq!(code(&failed), "UPSTREAM_ERROR", "any other error is for the model");
    let records = records_when(&gate.home(), |records| records.len() >= 3).await;
    let record = records.iter().find(|record| record["tool"] == "sign_in").unwrap();
    assert_eq!(record["error_code"], "UPSTREAM_ERROR", "{record}");
}

#[tokio::test]
async fn each_of_four_clients_is_asked_for_itself() {
    let tools = json!([
        {"name": "sample", "x-do": {"ask": "sampling/createMessage"}},
        {"name": "elicit", "x-do": {"ask": "elicitation/create"}},
        {"name": "roots", "x-do": {"ask": "roots/list"}},
    ]);
    let gate = Gate::scripted(tools).await;
    gate.ready("s").await;
    let who = ["first", "second", "third", "fourth"];
    let mut clients = Vec::new();
    for name in who {
        clients.push((name, gate.http_at_with("/mcp", able(), answers(name)).await));
    }
    for round in 0..3 {
        let calls = clients.iter().flat_map(|(name, client)| {
            ["s:sample", "s:elicit", "s:roots"].map(|tool| (name, client, tool))
        });
        let calls = calls.map(async |(name, client, tool)| {
            let result = client.two_key_call("write", tool, json!({})).await;
            for other in who {
                let has = text(&result).contains(other);
                assert_eq!(has, *name == other, "{round} {name} {tool}: {result}");
            }
        });
        futures_util::future::join_all(calls).await;
    }
}

/// A client that declares something has its own connection, on these surfaces too.
#[tokio::test]
async fn what_a_client_declares_and_announces_reaches_the_server() {
    let servers = |dir: &Path| {
        let tools = json!([{"name": "plain"}, {"name": "app", "x-needs": "extensions"},
            {"name": "lab", "x-needs": "experimental"}]);
        let script = json!({"tools": tools, "heard": dir.join("heard")});
        let mut entry = scripted(dir, "s", &script);
        entry["auto_approve"] = "new".into();
        json!({"s": entry})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    let declared = json!({"extensions": {"ui": {}}, "experimental": {"x": {}}, "roots": {"listChanged": true}});
    let changes = || {
        let heard = std::fs::read_to_string(gate.dir.path().join("heard")).unwrap_or_default();
        heard.matches("notifications/roots/list_changed").count()
    };
    for view in ["/mcp", "/mcp/all"] {
        let client = gate.http_at_with(view, declared.clone(), answers("me")).await;
        for tool in ["plain", "app", "lab"] {
            let params = match view {
                "/mcp" => two_keys("write", &format!("s:{tool}"), json!({})),
                _ => json!({"name": format!("s__{tool}"), "arguments": {}}),
            };
            let called = client.request("tools/call", params).await.unwrap();
            assert_eq!(code(&called), "ok", "{view} {tool}");
        }
        let before = changes();
        client.peer.notify("notifications/roots/list_changed", None).await.unwrap();
        eventually(|| async { (changes() == before + 1).then_some(()) }).await;
    }
    let plain = gate.http().await;
    assert_eq!(code(&plain.two_key_call("write", "s:app", json!({})).await), "TOOL_NOT_FOUND");
}

#[tokio::test]
async fn tools_for_apps_are_not_offered_to_models() {
    let gate = gate().await;
    let client = gate.http().await;
    let arguments = json!({"query": "chart", "include_disabled": true});
    let found = client.document("retrieve_tools", arguments).await;
    assert_eq!(found["tools"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(found["tools"][0]["name"], "s:show_chart");
    assert_eq!(found["disabled"], json!([]));
    let refused = client.two_key_call("write", "s:refresh_chart", json!({})).await;
    assert_eq!(code(&refused), "NOT_PERMITTED");
    assert!(text(&refused).contains("only to its own user interface"), "{refused}");
    let described = client.call("describe_tool", json!({"tool_ids": ["s:refresh_chart"]})).await;
    assert_eq!(refusal(&described)["code"], "NOT_PERMITTED");
    let instructions = client.welcome["instructions"].as_str().unwrap();
    assert!(!instructions.contains("refresh_chart") && instructions.contains("s (5 tools)"));
    let is_of_app = |record: &Value| record["tool"] == "refresh_chart";
    records_when(&gate.home(), |records| records.iter().any(is_of_app)).await;
    let app = gate.http_at("/mcp/s/s").await;
    let list = app.request("tools/list", json!({})).await.unwrap();
    assert_eq!(list["tools"].as_array().map(Vec::len), Some(6));
    assert_eq!(code(&app.call("refresh_chart", json!({})).await), "ok");
    let all = gate.http_at("/mcp/all").await;
    assert_eq!(code(&all.call("s__refresh_chart", json!({})).await), "ok");
}
