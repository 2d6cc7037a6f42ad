//! Everything that a server offers besides tools, on `/mcp/s/<server>` and in `wrap`: prompts,
//! resources and their templates, completion, logs, a server's own methods. It passes unchanged, is
//! decided and recorded like a call, and reaches only those who asked for it.

use std::path::Path;

use mcp::message::raw;
use mcp::peer::{Ask, RequestError};
use serde_json::{Value, json};
use store::state::{ApprovalResult, ItemVersion};
use testkit::client::{Client, PATIENCE, able, answers};
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::stdio_client;
use testkit::upstream::scripted;
use testkit::wait::eventually;

use crate::foreign::servers;
use crate::ledger::{records, records_when, whole_chains};
use crate::locks::{client_with, decisions, live, make_token, replace_script};
use crate::passthrough::{direct, doors};

const UPDATED: &str = "notifications/resources/updated";
const MESSAGE: &str = "notifications/message";
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";

/// The code of a request that the gate refuses.
const REFUSED: i64 = -32003;

/// A definition in a formatting that none of our programs would produce.
const PROMPT: &str = r#"{ "x-number" : 1E2, "name":"p", "description":"\u0041", "arguments":[ ] }"#;

fn notify(method: &str, params: Value) -> Value {
    json!({"notify": [{"method": method, "params": params}]})
}

fn log(level: &str) -> Value {
    notify(MESSAGE, json!({"level": level, "data": level}))
}

/// A script with one of everything.
fn offer(dir: &Path) -> Value {
    json!({
        "tools": [
            {"name": "plain"},
            {"name": "update", "x-do": notify(UPDATED, json!({"uri": "memo://a"}))},
            {"name": "update_b", "x-do": notify(UPDATED, json!({"uri": "memo://b"}))},
            {"name": "debug", "x-do": log("debug")},
            {"name": "error", "x-do": log("error")},
            {"name": "moved", "x-do": notify("notifications/custom/moved", json!(r#"{"n":1E2}"#))},
            {"name": "opened", "x-do": notify("notifications/elicitation/complete",
                json!({"elicitationId": "e"}))},
            {"name": "other", "x-do": notify(RESOURCES_CHANGED, Value::Null)},
            {"name": "ask_own", "x-do": {"ask": "custom/question", "with": {"n": 1}}},
        ],
        "prompts": [{"x-text": PROMPT}, {"name": "q"}, {"name": "r"}],
        "templates": [{"uriTemplate": "memo://{name}", "name": "memo"}],
        "resources": [{"uri": "memo://a", "name": "a"}, {"uri": "memo://b", "name": "b"},
            {"uri": "memo://c", "name": "c"}],
        "capabilities": {"logging": {}, "completions": {}, "experimental": {"x": {"n": 1}},
            "tasks": {"list": {}}},
        "heard": dir.join("heard"),
    })
}

async fn gate() -> Gate {
    let gate = Gate::start(|dir| json!({"s": scripted(dir, "s", &offer(dir))}), json!({})).await;
    gate.ready("s").await;
    gate
}

async fn plain(gate: &Gate) -> Client {
    gate.http_at("/mcp/s/s").await
}

async fn able_at(gate: &Gate) -> Client {
    let mut answers = answers("me");
    answers.push(("custom/question", json!({"answer": 1})));
    gate.http_at_with("/mcp/s/s", able(), answers).await
}

fn error(answer: Result<impl std::fmt::Debug, RequestError>) -> mcp::ErrorObject {
    match answer {
        Err(RequestError::Refused(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

/// Returns the params of the notifications of one method that a client has received.
fn told(client: &Client, method: &str) -> Vec<String> {
    let notices = client.notices.lock().unwrap();
    notices.iter().filter(|(of, _)| of == method).map(|(_, params)| params.clone()).collect()
}

async fn told_when(client: &Client, method: &str, count: usize) -> Vec<String> {
    let enough = || async { Some(told(client, method)).filter(|told| told.len() >= count) };
    eventually(enough).await
}

/// Returns the lines of the messages that the server received.
fn server_heard(gate: &Gate) -> Vec<String> {
    let text = std::fs::read_to_string(gate.dir.path().join("heard")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn requests() -> [(&'static str, &'static str, &'static str); 4] {
    [
        ("resources/read", r#"{"uri":"memo://a","x":[1.0,1E2]}"#, "read"),
        (
            "prompts/get",
            r#"{"name":"p","arguments":{"big":123456789012345678901234567890}}"#,
            "read",
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"\u0041"}}"#,
            "read",
        ),
        ("custom/reindex", r#"{"deep":{"list":[{"n":0.10}]},"_meta":{"k":1.50}}"#, "write"),
    ]
}

fn echoed(params: &str) -> String {
    format!(r#"{{"echo":{params},"x-number":1E2,"_meta":{{"x-meta":1.0}}}}"#)
}

#[tokio::test]
async fn a_view_of_one_server_has_that_servers_capabilities() {
    let gate = gate().await;
    let expected = json!({
        "tools": {"listChanged": true},
        "prompts": {"listChanged": true, "x-number": 1},
        "resources": {"listChanged": true, "subscribe": true},
        "logging": {}, "completions": {}, "experimental": {"x": {"n": 1}},
    });
    let alone = tempfile::tempdir().unwrap();
    for (door, client) in doors(&gate, "s", alone.path()).await {
        assert_eq!(client.welcome["capabilities"], expected, "{door}");
    }
}

#[tokio::test]
async fn requests_and_lists_pass_unchanged() {
    let gate = gate().await;
    let alone = tempfile::tempdir().unwrap();
    for (door, client) in doors(&gate, "s", alone.path()).await {
        for (method, params, _) in requests() {
            let answer = client.request_text(method, params).await.unwrap();
            assert_eq!(answer, echoed(params), "{door} {method}");
        }
        let prompts = client.request_text("prompts/list", "{}").await.unwrap();
        let expected = format!(r#"{{"prompts":[{PROMPT},{{"name":"q"}},{{"name":"r"}}]}}"#);
        assert_eq!(prompts, expected, "{door}");
        let templates = client.request_text("resources/templates/list", "{}").await.unwrap();
        let template = r#"{"uriTemplate":"memo://{name}","name":"memo"}"#;
        assert_eq!(templates, format!(r#"{{"resourceTemplates":[{template}]}}"#), "{door}");
        let first = client.request("resources/list", json!({})).await.unwrap();
        assert_eq!(first["resources"].as_array().map(Vec::len), Some(2), "{door}");
        let next = json!({"cursor": first["nextCursor"]});
        let text = client.request_text("resources/list", &next.to_string()).await.unwrap();
        let last = r#"{"resources":[{"uri":"memo://c","name":"c"}],"x-page":1E0}"#;
        assert_eq!(text, last, "{door}");
        let ask = Ask::new("custom/reindex", None, PATIENCE);
        let bare = client.peer.request(ask).await.unwrap();
        assert_eq!(bare.get(), echoed("null"), "{door}: absent params stay absent");
    }
}

/// Deterministic random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len() as u64) as usize]
    }

    /// Returns JSON in spellings that no writer of ours would choose.
    fn json(&mut self, depth: u64) -> String {
        let numbers = ["1E2", "-0", "0.10", "1.0e+3", "123456789012345678901234567890", "7"];
        let texts = [r#""\u0041\/""#, r#""é日本""#, r#""\ud83d\ude00\n""#, r#""""#, r#"" \t""#];
        match self.roll(if depth == 0 { 3 } else { 5 }) {
            0 => self.pick(&numbers).to_owned(),
            1 => self.pick(&texts).to_owned(),
            2 => self.pick(&["null", "true", "false", "[ ]", "{ }"]).to_owned(),
            3 => {
                let items: Vec<String> = (0..self.roll(4)).map(|_| self.json(depth - 1)).collect();
                format!("[ {} ]", items.join(" ,"))
            }
            _ => {
                let count = self.roll(4);
                let member = |n: u64| format!("\"k{n}\" : {}", self.json(depth - 1));
                format!("{{ {}}}", (0..count).map(member).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

#[tokio::test]
async fn random_params_arrive_and_return_character_for_character() {
    let gate = gate().await;
    let client = plain(&gate).await;
    let mut dice = Dice(1);
    for case in 0..200 {
        let given = dice.json(4);
        let (method, params) = match case % 4 {
            0 => ("resources/read", format!(r#"{{"uri":"memo://a","x":{given}}}"#)),
            1 => ("prompts/get", format!(r#"{{"name":"p","arguments":{given}}}"#)),
            2 => {
                let reference = r#"{"type":"ref/prompt","name":"p"}"#;
                ("completion/complete", format!(r#"{{"ref":{reference},"argument":{given}}}"#))
            }
            _ => ("custom/any", format!(r#"{{"x":{given},"_meta":{{"y":{given}}}}}"#)),
        };
        let answer = client.request_text(method, &params).await;
        assert_eq!(answer.unwrap(), echoed(&params), "{method}");
    }
}

#[tokio::test]
async fn random_notifications_arrive_character_for_character_in_both_directions() {
    const METHOD: &str = "notifications/custom/random";
    let mut dice = Dice(2);
    let params: Vec<String> = (0..50).map(|_| format!(r#"{{ "x" :{}}}"#, dice.json(4))).collect();
    let script = |dir: &Path| {
        let messages: Vec<Value> =
            params.iter().map(|params| json!({"method": METHOD, "params": params})).collect();
        json!({"tools": [{"name": "tell", "x-do": {"notify": messages}}],
            "heard": dir.join("heard")})
    };
    let gate = Gate::start(|dir| json!({"s": scripted(dir, "s", &script(dir))}), json!({})).await;
    gate.ready("s").await;
    let client = able_at(&gate).await;
    client.call("tell", json!({})).await;
    assert_eq!(told_when(&client, METHOD, params.len()).await, params);
    for params in &params {
        // One at a time: what does not wait for a response may be overtaken.
        let line = format!("{METHOD} {params}");
        client.peer.notify(METHOD, Some(raw(params.clone()))).await.unwrap();
        let arrived = || async { server_heard(&gate).contains(&line).then_some(()) };
        eventually(arrived).await;
    }
}

#[tokio::test]
async fn each_request_is_recorded_with_its_class_and_target() {
    let gate = gate().await;
    let client = plain(&gate).await;
    for (method, params, _) in requests() {
        client.request_text(method, params).await.unwrap();
    }
    let failed = client.request("custom2/none", json!({})).await;
    assert_eq!(error(failed).code, -32601, "the server's own answer");
    let home = gate.home();
    let records = records_when(&home, |records| {
        records.iter().filter(|record| record["receipt"].is_object()).count() >= 5
    })
    .await;
    for (method, _, class) in requests() {
        let record = records.iter().find(|record| record["tool"] == method).unwrap();
        assert_eq!(
            (&record["server"], &record["effective_class"]),
            (&json!("s"), &json!(class)),
            "{record}"
        );
        assert_eq!(record["status"], "success", "{record}");
    }
    let target = |method: &str| {
        let record = records.iter().find(|record| record["tool"] == method).unwrap();
        format!("{} {}", record["system"], record["resource"]).replace('"', "")
    };
    assert_eq!(target("resources/read"), "s memo://a");
    assert_eq!(target("prompts/get"), "s prompt/p");
    assert_eq!(target("completion/complete"), "s prompt/p");
    let failed = records.iter().find(|record| record["tool"] == "custom2/none").unwrap();
    assert_eq!(failed["error_code"], "UPSTREAM_ERROR", "{failed}");
    assert!(!whole_chains(&home).is_empty());
}

#[tokio::test]
async fn params_that_do_not_name_their_subject_are_refused() {
    let gate = gate().await;
    let client = plain(&gate).await;
    for (method, params) in [
        ("resources/read", r#"{"uri":["memo://a"]}"#),
        ("resources/subscribe", "{}"),
        ("prompts/get", r#"{"name":{"toString":1}}"#),
        ("prompts/get", r#"{"name":"p","name":"q"}"#),
        ("prompts/get", r#"{"name":"p","arguments":{"a":1,"a":2}}"#),
        ("completion/complete", r#"{"ref":{"type":"ref/other","name":"p"}}"#),
        ("prompts/get", r#"{"name":"none"}"#),
    ] {
        let refused = error(client.request_text(method, params).await);
        assert_eq!(refused.code, -32602, "{method} {params}: {}", refused.message);
    }
    let sent = server_heard(&gate);
    assert!(sent.iter().all(|line| line.starts_with("notifications/initialized")), "{sent:?}");
    for method in ["tasks/list", "server/discover", "resources/forget", "sampling/createMessage"] {
        assert_eq!(error(client.request(method, json!({})).await).code, -32601, "{method}");
    }
}

/// Approves an item of a server in its pending version.
fn approve(gate: &Gate, kind: &str, name: &str) {
    let store = decisions(gate);
    let items = store.state().items("s").unwrap();
    let item = items.iter().find(|item| item.kind == kind && item.name == name).unwrap();
    let fingerprint = &item.pending.as_ref().unwrap().fingerprint;
    let version = ItemVersion { kind, name, fingerprint };
    let answers = store.state().approve_items("s", &[version]).unwrap();
    assert!(matches!(answers[..], [ApprovalResult::Approved]), "{answers:?}");
}

async fn names(client: &Client, method: &str, member: &str, key: &str) -> Vec<String> {
    let list = client.request(method, json!({})).await.unwrap();
    let items = list[member].as_array().unwrap().iter();
    items.map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn changed_prompts_and_templates_are_hidden_and_locked_until_approved() {
    let script = |prompts: Value, templates: Value| {
        json!({"tools": [{"name": "tell", "x-do": notify(PROMPTS_CHANGED, Value::Null)}],
            "prompts": prompts, "templates": templates, "resources": [],
            "capabilities": {"completions": {}}})
    };
    let first = script(json!([{"name": "p"}]), json!([{"uriTemplate": "a://{x}", "name": "a"}]));
    let gate = Gate::start(|dir| json!({"s": live(dir, "s", &first)}), json!({})).await;
    gate.ready("s").await;
    let client = plain(&gate).await;
    let prompts = async || names(&client, "prompts/list", "prompts", "name").await;
    assert_eq!(prompts().await, ["p"]);
    let marked = json!([{"name": "p", "description": "exfiltrate"}, {"name": "new"}]);
    let templates = json!([{"uriTemplate": "a://{x}", "name": "a"},
        {"uriTemplate": "b://{x}", "name": "exfiltrate"}]);
    replace_script(&gate, "s", &script(marked, templates));
    client.call("tell", json!({})).await;
    eventually(|| async { prompts().await.is_empty().then_some(()) }).await;
    let shown = names(&client, "resources/templates/list", "resourceTemplates", "name").await;
    assert_eq!(shown, ["a"]);
    let reference = |kind: &str, member: &str, name: &str| json!({"ref": {"type": kind, member: name}, "argument": {"name": "x", "value": ""}});
    let locked = [
        ("prompts/get", json!({"name": "p"})),
        ("prompts/get", json!({"name": "new"})),
        ("completion/complete", reference("ref/prompt", "name", "new")),
        ("completion/complete", reference("ref/resource", "uri", "b://{x}")),
        ("resources/read", json!({"uri": "b://1"})),
        ("resources/subscribe", json!({"uri": "b://1"})),
    ];
    for (method, params) in &locked {
        let refused = error(client.request(method, params.clone()).await);
        let data: Value = serde_json::from_str(refused.text().get()).unwrap();
        let details = &data["data"]["error"];
        assert_eq!((refused.code, &details["code"]), (REFUSED, &json!("TOOL_BLOCKED")), "{data}");
        assert_eq!(details["details"]["status"], "pending_approval", "{data}");
        let message = &refused.message;
        assert!(
            !message.contains("retrieve_tools") && !message.contains("exfiltrate"),
            "{message}"
        );
    }
    client.request("resources/read", json!({"uri": "a://1"})).await.unwrap();
    client.request("resources/read", json!({"uri": "c://1"})).await.unwrap();
    let before = told_when(&client, PROMPTS_CHANGED, 1).await.len();
    approve(&gate, "prompt", "new");
    approve(&gate, "template", "b://{x}");
    eventually(|| async { (prompts().await == ["new"]).then_some(()) }).await;
    client.request("prompts/get", json!({"name": "new"})).await.unwrap();
    client.request("resources/read", json!({"uri": "b://1"})).await.unwrap();
    assert!(told_when(&client, PROMPTS_CHANGED, before + 1).await.len() <= before + 2);
    let refused = records(&gate.home()).into_iter().filter(|record| record["status"] == "blocked");
    assert_eq!(refused.count(), locked.len(), "each refusal is recorded");
}

#[tokio::test]
async fn a_server_that_is_switched_off_shows_and_does_nothing() {
    let gate = gate().await;
    let client = plain(&gate).await;
    client.request("resources/subscribe", json!({"uri": "memo://a"})).await.unwrap();
    let other = gate.http_at("/mcp/s/s").await;
    let (status, _) =
        gate.rest(reqwest::Method::POST, "/api/v1/servers/s/disable", Some(json!({}))).await;
    assert_eq!(status, 200);
    for (method, member) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let list = other.request(method, json!({})).await.unwrap();
        assert_eq!(list[member], json!([]), "{method}");
    }
    for (method, params, _) in requests() {
        let refused = error(other.request_text(method, params).await);
        assert_eq!(refused.code, REFUSED, "{method}: {}", refused.message);
        assert!(refused.message.contains("server_disabled"), "{}", refused.message);
    }
}

#[tokio::test]
async fn a_token_without_the_right_to_write_reads_and_uses_no_method_of_a_servers_own() {
    let gate = gate().await;
    let store = decisions(&gate);
    let scope = json!({"operations": ["read"], "surfaces": ["passthrough"]});
    make_token(&store, "reader", &scope);
    let reader = client_with(&gate, "reader", "/mcp/s/s").await;
    for (method, params, class) in requests() {
        let answer = reader.request_text(method, params).await;
        if class == "read" {
            assert_eq!(answer.unwrap(), echoed(params));
        } else {
            let refused = error(answer);
            assert!(refused.text().get().contains("NOT_PERMITTED"), "{}", refused.text());
        }
    }
    reader.peer.notify("notifications/custom/x", None).await.unwrap();
    records_when(&gate.home(), |records| {
        let mut blocked = records.iter().filter(|record| record["status"] == "blocked");
        blocked.any(|record| record["tool"] == "notifications/custom/x")
    })
    .await;
    assert!(!server_heard(&gate).iter().any(|line| line.contains("custom")));
}

#[tokio::test]
async fn updates_reach_those_who_subscribed_and_nobody_else() {
    let gate = gate().await;
    let (one, two, three) = (plain(&gate).await, plain(&gate).await, plain(&gate).await);
    let subscribed = |line: &String| line.starts_with("resources/");
    let asked = || server_heard(&gate).iter().filter(|line| subscribed(line)).count();
    let change = async |client: &Client, what: &str, uri: &str| {
        client.request(&format!("resources/{what}"), json!({"uri": uri})).await.unwrap();
    };
    change(&one, "subscribe", "memo://a").await;
    change(&two, "subscribe", "memo://a").await;
    change(&two, "subscribe", "memo://b").await;
    three.call("update", json!({})).await;
    let a = r#"{"uri":"memo://a"}"#;
    assert_eq!(told_when(&one, UPDATED, 1).await, [a]);
    assert_eq!(told_when(&two, UPDATED, 1).await, [a]);
    let before = asked();
    change(&one, "unsubscribe", "memo://a").await;
    assert_eq!(asked(), before, "another client still wants it");
    three.call("update", json!({})).await;
    three.call("update_b", json!({})).await;
    assert_eq!(told_when(&two, UPDATED, 3).await.len(), 3);
    // The server restarts, and the gate subscribes again for those who are left.
    let (status, _) =
        gate.rest(reqwest::Method::POST, "/api/v1/servers/s/restart", Some(json!({}))).await;
    assert_eq!(status, 200);
    eventually(|| async { (asked() >= before + 2).then_some(()) }).await;
    three.call("update_b", json!({})).await;
    assert_eq!(told_when(&two, UPDATED, 4).await.len(), 4);
    drop(two);
    let left = || async {
        let gone = server_heard(&gate).iter().filter(|line| line.contains("unsubscribe")).count();
        (gone == 2).then_some(())
    };
    eventually(left).await;
    assert_eq!((told(&one, UPDATED).len(), told(&three, UPDATED).len()), (1, 0));
}

#[tokio::test]
async fn log_messages_reach_each_client_from_its_own_level_on() {
    let gate = gate().await;
    let (quiet, curious, silent) = (plain(&gate).await, plain(&gate).await, plain(&gate).await);
    let set = async |client: &Client, level: &str| {
        client.request("logging/setLevel", json!({"level": level})).await
    };
    set(&curious, "debug").await.unwrap();
    set(&quiet, "error").await.unwrap();
    let levels: Vec<String> =
        server_heard(&gate).into_iter().filter(|line| line.starts_with("logging")).collect();
    let most = r#"logging/setLevel {"level":"debug"}"#;
    assert_eq!(levels, [most, most], "the server keeps the most detailed level");
    assert_eq!(error(set(&silent, "loud").await).code, -32602);
    silent.call("debug", json!({})).await;
    silent.call("error", json!({})).await;
    assert_eq!(told_when(&curious, MESSAGE, 2).await.len(), 2);
    let heard = told_when(&quiet, MESSAGE, 1).await;
    assert_eq!(heard, [r#"{"level":"error","data":"error"}"#]);
    assert!(told(&silent, MESSAGE).is_empty());
}

#[tokio::test]
async fn a_client_with_its_own_connection_hears_everything_within_its_call() {
    let gate = gate().await;
    let (one, two) = (able_at(&gate).await, able_at(&gate).await);
    let shared = plain(&gate).await;
    for client in [&one, &two] {
        client.call("plain", json!({})).await;
    }
    for (tool, method, params) in [
        ("debug", MESSAGE, r#"{"level":"debug","data":"debug"}"#),
        ("moved", "notifications/custom/moved", r#"{"n":1E2}"#),
        ("opened", "notifications/elicitation/complete", r#"{"elicitationId":"e"}"#),
        ("update", UPDATED, r#"{"uri":"memo://a"}"#),
    ] {
        one.call(tool, json!({})).await;
        assert_eq!(told(&one, method), [params], "it comes before the result of {tool}");
        shared.call(tool, json!({})).await;
        assert!(told(&two, method).is_empty() && told(&shared, method).is_empty(), "{tool}");
    }
    let asked = one.call("ask_own", json!({})).await;
    assert!(asked.to_string().contains("answer"), "{asked}");
    one.peer.notify("notifications/roots/list_changed", None).await.unwrap();
    let params = Some(raw(r#"{"n":1E2}"#.to_owned()));
    one.peer.notify("notifications/custom/hello", params).await.unwrap();
    let arrived = || async {
        let heard = server_heard(&gate);
        let has = |line: &str| heard.iter().any(|heard| heard == line);
        let both = has("notifications/roots/list_changed -")
            && has(r#"notifications/custom/hello {"n":1E2}"#);
        both.then_some(())
    };
    eventually(arrived).await;
}

#[tokio::test]
async fn a_change_of_resources_is_told_once_to_each_client_that_sees_the_server() {
    let gate = gate().await;
    let clients = [plain(&gate).await, plain(&gate).await, able_at(&gate).await];
    let all = gate.http_at("/mcp/all").await;
    for client in &clients {
        client.request("resources/list", json!({})).await.unwrap();
    }
    clients[0].call("other", json!({})).await;
    for client in &clients[..2] {
        assert_eq!(told_when(client, RESOURCES_CHANGED, 1).await.len(), 1);
    }
    clients[2].call("other", json!({})).await;
    told_when(&clients[2], RESOURCES_CHANGED, 1).await;
    for client in &clients {
        client.request("ping", json!({})).await.unwrap();
        assert_eq!(told(client, RESOURCES_CHANGED).len(), 1);
    }
    assert!(told(&all, RESOURCES_CHANGED).is_empty());
}

#[tokio::test]
async fn extensions_of_a_client_reach_the_server() {
    let script = json!([{"name": "plain"}, {"name": "app", "x-needs": "extensions"},
        {"name": "lab", "x-needs": "experimental"}]);
    let servers = |dir: &Path| {
        let mut entry = scripted(dir, "s", &script);
        entry["auto_approve"] = "new".into();
        json!({"s": entry})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    for (capabilities, expected) in [
        (json!({}), json!(["plain"])),
        (json!({"extensions": {}, "experimental": {}}), json!(["plain"])),
        (json!({"extensions": {"ui": {"n": 1}}}), json!(["plain", "app"])),
        (json!({"experimental": {"x": {}}}), json!(["plain", "lab"])),
    ] {
        let client = gate.http_at_with("/mcp/s/s", capabilities, vec![]).await;
        assert_eq!(json!(names(&client, "tools/list", "tools", "name").await), expected);
    }
}

#[tokio::test]
async fn everything_of_a_real_server_passes_as_if_asked_directly() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = servers::gate(|_| json!({"s": servers::everything()})).await;
    let direct = direct(gate.dir.path(), &servers::everything()).await;
    let alone = tempfile::tempdir().unwrap();
    let through = [
        gate.http_at("/mcp/s/s").await,
        stdio_client(
            alone.path(),
            &["--config", gate.config_file().to_str().unwrap(), "--server", "s"],
            json!({}),
            vec![],
        )
        .await,
    ];
    let completion = r#"{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"E"}}"#;
    for (method, params) in [
        ("prompts/list", "{}"),
        ("resources/templates/list", "{}"),
        ("resources/list", "{}"),
        ("prompts/get", r#"{"name":"simple-prompt"}"#),
        ("prompts/get", r#"{"name":"args-prompt","arguments":{"city":"Paris"}}"#),
        ("resources/read", r#"{"uri":"demo://resource/static/document/features.md"}"#),
        ("completion/complete", completion),
        ("resources/subscribe", r#"{"uri":"demo://resource/static/document/features.md"}"#),
        ("resources/unsubscribe", r#"{"uri":"demo://resource/static/document/features.md"}"#),
        ("logging/setLevel", r#"{"level":"error"}"#),
        ("prompts/get", r#"{"name":"none"}"#),
        ("resources/read", r#"{"uri":"demo://none"}"#),
    ] {
        let text = |answer: Result<String, RequestError>| match answer {
            Ok(text) => text,
            Err(RequestError::Refused(error)) => format!("error {}", error.code),
            Err(other) => panic!("{method}: {other}"),
        };
        let expected = text(direct.request_text(method, params).await);
        for client in &through {
            assert_eq!(text(client.request_text(method, params).await), expected, "{method}");
        }
    }
}
