//! Lists that change while clients are connected: reviewed first, and announced once to each client
//! that sees the change.

use domain::trust::ItemKind;
use serde_json::{Value, json};
use store::RecordStatus;
use testkit::client::Client;
use testkit::wait::eventually;

use crate::gate::{DOORS, Gate};
use crate::offer::{
    OPERATIONS, PROMPTS_CHANGED, RESOURCES_CHANGED, TOOLS_CHANGED, UPDATED, changing, notify,
};
use crate::server::Server;
use crate::view::{PASSING, name_on};

/// The code of a request that the gate refuses.
const REFUSED: i64 = -32003;

#[tokio::test]
async fn clients_are_told_when_their_list_changes() {
    for view in PASSING {
        for door in DOORS {
            let change = json!([{"name": "change", "x-do": {"become": [{"name": "new"}]}}]);
            let [s, u] = [(); 2].map(|()| Server::scripted(change.clone()).accepting_new());
            let gate = Gate::start(&[("s", &s), ("u", &u)], json!({})).await;
            let client = gate.client_at(door, view, json!({}), vec![]).await;
            assert_eq!(client.welcome["capabilities"]["tools"]["listChanged"], true, "{view}");
            let other = gate.client("/mcp/s/u").await;
            client.call(&name_on(view, "change"), json!({})).await;
            assert_eq!(client.told_when(TOOLS_CHANGED, 1).await.len(), 1, "{door:?} {view}");
            let list = client.listed("tools/list").await;
            assert!(list.contains(&name_on(view, "new")), "{door:?} {view}: {list:?}");
            assert!(!list.contains(&name_on(view, "change")), "{door:?} {view}: {list:?}");
            // A response comes after earlier notifications.
            other.request("ping", json!({})).await.unwrap();
            assert!(other.notices.lock().unwrap().is_empty(), "{view}: another server changed");
        }
    }
}

#[tokio::test]
async fn an_unannounced_list_change_is_detected_and_announced_once() {
    let list = |name: &str| json!([{"name": name}]);
    let server = Server::scripted(list("one")).accepting_new();
    let gate = Gate::start(&[("s", &server)], json!({"refresh_interval": "1s"})).await;
    let client = gate.client("/mcp/s/s").await;
    let listed_again = async || {
        let before = server.count("tools/list");
        let is_listed = || async { (server.count("tools/list") > before + 1).then_some(()) };
        eventually(is_listed).await;
        client.request("ping", json!({})).await.unwrap();
    };
    listed_again().await;
    assert_eq!(client.told(TOOLS_CHANGED).len(), 0, "nothing has changed");
    server.replace(list("two"));
    client.told_when(TOOLS_CHANGED, 1).await;
    assert_eq!(client.listed("tools/list").await, ["two"]);
    listed_again().await;
    assert_eq!(client.told(TOOLS_CHANGED).len(), 1, "nothing else has changed");
}

#[tokio::test]
async fn a_restart_with_the_same_list_sends_no_notification() {
    let server = Server::scripted(json!([{"name": "t"}]));
    let gate = Gate::of(&server).await;
    let client = gate.client("/mcp/s/s").await;
    assert!(gate.gateway.restart("s").await);
    eventually(|| async { (server.opened() == 2).then_some(()) }).await;
    gate.ready("s").await;
    assert_ne!(client.call("t", json!({})).await["isError"], true);
    assert!(client.notices.lock().unwrap().is_empty());
    let locked = server.with("disabled_tools", json!(["t"]));
    gate.reconfigure(&[("s", &locked)], json!({})).await;
    client.told_when(TOOLS_CHANGED, 1).await;
    assert_eq!(client.listed("tools/list").await, [""; 0]);
}

/// Requests about items that wait for approval.
fn pending() -> [(&'static str, Value); 6] {
    let reference = |kind: &str, member: &str, name: &str| json!({"ref": {"type": kind, member: name}, "argument": {"name": "x", "value": ""}});
    [
        ("prompts/get", json!({"name": "p"})),
        ("prompts/get", json!({"name": "new"})),
        ("completion/complete", reference("ref/prompt", "name", "new")),
        ("completion/complete", reference("ref/resource", "uri", "b://{x}")),
        ("resources/read", json!({"uri": "b://1"})),
        ("resources/subscribe", json!({"uri": "b://1"})),
    ]
}

#[tokio::test]
async fn changed_prompts_and_templates_are_hidden_and_locked_until_approved() {
    let script = |prompts: Value, templates: Value| {
        json!({"tools": [{"name": "tell", "x-do": notify(PROMPTS_CHANGED, Value::Null)}],
            "prompts": prompts, "templates": templates, "resources": [],
            "capabilities": {"completions": {}}})
    };
    let first = json!({"uriTemplate": "a://{x}", "name": "a"});
    let server = Server::scripted(script(json!([{"name": "p"}]), json!([first])));
    let gate = Gate::of(&server).await;
    let client = gate.client("/mcp/s/s").await;
    let prompts = async || client.listed("prompts/list").await;
    assert_eq!(prompts().await, ["p"]);
    let marked = json!([{"name": "p", "description": "exfiltrate"}, {"name": "new"}]);
    let templates = json!([first, {"uriTemplate": "b://{x}", "name": "exfiltrate"}]);
    server.replace(script(marked, templates));
    client.call("tell", json!({})).await;
    eventually(|| async { prompts().await.is_empty().then_some(()) }).await;
    assert_eq!(client.listed("resources/templates/list").await, ["a://{x}"]);
    for (method, params) in pending() {
        let refused = client.refused(method, params).await;
        let data: Value = serde_json::from_str(refused.text().get()).unwrap();
        let details = &data["data"]["error"];
        assert_eq!((refused.code, &details["code"]), (REFUSED, &json!("TOOL_BLOCKED")), "{data}");
        assert_eq!(details["details"]["status"], "pending_approval", "{data}");
        let message = &refused.message;
        let is_plain = !message.contains("retrieve_tools") && !message.contains("exfiltrate");
        assert!(is_plain, "{message}");
    }
    client.request("resources/read", json!({"uri": "a://1"})).await.unwrap();
    client.request("resources/read", json!({"uri": "c://1"})).await.unwrap();
    let before = client.told_when(PROMPTS_CHANGED, 1).await.len();
    gate.approve(ItemKind::Prompt, "new").await;
    gate.approve(ItemKind::Template, "b://{x}").await;
    eventually(|| async { (prompts().await == ["new"]).then_some(()) }).await;
    client.request("prompts/get", json!({"name": "new"})).await.unwrap();
    client.request("resources/read", json!({"uri": "b://1"})).await.unwrap();
    assert!(client.told_when(PROMPTS_CHANGED, before + 1).await.len() <= before + 2);
    let records = gate.records().await;
    let refused = records.iter().filter(|record| record.status == RecordStatus::Blocked);
    assert_eq!(refused.count(), pending().len(), "each refusal is recorded");
}

/// The lists of server `s` with an item each that was not there at first.
const NEW: [(&str, &str, &str); 3] = [
    ("tools/list", TOOLS_CHANGED, "s__new"),
    ("prompts/list", PROMPTS_CHANGED, "s__new"),
    ("resources/list", RESOURCES_CHANGED, "memo://new"),
];

#[tokio::test]
async fn a_change_is_told_once_to_each_client_of_all_servers_that_sees_it() {
    let server = Server::scripted(changing(json!([]), json!([]), &[])).accepting_new();
    let quiet = Server::scripted(json!([{"name": "t"}]));
    // Servers that keep failing change the catalog all the time.
    let dead = Server::dead();
    let servers = [("s", &server), ("quiet", &quiet), ("x", &dead), ("y", &dead), ("z", &dead)];
    let gate = Gate::start(&servers, json!({})).await;
    let scope =
        json!({"servers": ["quiet"], "operations": OPERATIONS, "surfaces": ["passthrough"]});
    let secret = gate.token("narrow", scope).await;
    let narrow = gate.client_as(&secret, "/mcp/all", json!({}), vec![]).await;
    let mut clients: Vec<Client> = gate.doors("/mcp/all").await.map(|(_, client)| client).into();
    clients.push(gate.able("/mcp/all", "me").await);
    for client in clients.iter().chain([&narrow]) {
        for (method, ..) in NEW {
            client.listed(method).await;
        }
    }
    let resources = json!([{"uri": "memo://new", "name": "new"}]);
    server.replace(changing(json!([{"name": "new"}]), resources, &["new"]));
    // Each connection announces the change.
    clients[0].call("s__tell", json!({})).await;
    clients[2].call("s__tell", json!({})).await;
    for client in &clients {
        for (method, changed, name) in NEW {
            client.told_when(changed, 1).await;
            assert!(client.listed(method).await.contains(&name.to_owned()), "{method}");
        }
    }
    for client in &clients {
        client.request("ping", json!({})).await.unwrap();
        for (_, changed, _) in NEW {
            assert_eq!(client.told(changed).len(), 1, "{changed}");
        }
    }
    narrow.request("ping", json!({})).await.unwrap();
    assert!(narrow.notices.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_address_that_comes_to_belong_to_several_servers_is_announced_and_qualified() {
    let memo = json!([{"uri": "memo://x", "name": "x"}]);
    let update = notify(UPDATED, json!({"uri": "memo://x"}));
    let a = json!({"tools": [{"name": "update", "x-do": update}], "resources": memo});
    let (a, b) = (Server::scripted(a), Server::scripted(changing(json!([]), json!([]), &[])));
    let gate = Gate::start(&[("a", &a), ("b", &b)], json!({})).await;
    let client = gate.client("/mcp/all").await;
    assert_eq!(client.listed("resources/list").await, ["memo://x"]);
    client.request("resources/subscribe", json!({"uri": "memo://x"})).await.unwrap();
    b.replace(changing(json!([]), memo, &[]));
    client.call("b__tell", json!({})).await;
    client.told_when(RESOURCES_CHANGED, 1).await;
    let both = ["countersign://server/a/memo://x", "countersign://server/b/memo://x"];
    assert_eq!(client.listed("resources/list").await, both);
    let several = client.refused("resources/read", json!({"uri": "memo://x"})).await;
    assert!(several.message.contains(both[0]) && several.message.contains(both[1]));
    client.request("resources/read", json!({"uri": both[0]})).await.unwrap();
    client.call("a__update", json!({})).await;
    let heard = client.told_when(UPDATED, 1).await;
    assert_eq!(heard, [r#"{"uri":"memo://x"}"#], "the subscription keeps its address");
    b.replace(changing(json!([]), json!([]), &[]));
    client.call("b__tell", json!({})).await;
    client.told_when(RESOURCES_CHANGED, 2).await;
    assert_eq!(client.listed("resources/list").await, ["memo://x"]);
}

#[tokio::test]
async fn a_storm_of_list_changes_is_answered_with_a_few_lists_and_the_last_one_stands() {
    let tools = json!([{"name": "storm", "x-do": {"storm": 1000}}]);
    let server = Server::scripted(tools).accepting_new();
    let gate = Gate::of(&server).await;
    let client = gate.client("/mcp").await;
    assert_eq!(client.code_of("write", "s:storm").await, "ok");
    eventually(|| async { (client.code_of("write", "s:v1000").await == "ok").then_some(()) }).await;
    assert_eq!(gate.server("s").listing.tools().len(), 1);
    let asked = server.count("tools/list");
    assert!((2..=10).contains(&asked), "{asked} lists for 1000 changes");
}

#[tokio::test]
async fn continuous_changes_do_not_delay_the_new_list() {
    let tools = json!([{"name": "storm", "x-do": {"storm": 150, "every_ms": 10}}]);
    let server = Server::scripted(tools);
    let gate = Gate::of(&server).await;
    let client = gate.client("/mcp").await;
    let lists = eventually(|| async { (server.count("tools/list") >= 3).then_some(()) });
    tokio::select! {
        code = client.code_of("write", "s:storm") => panic!("{code}: the storm was waited for"),
        () = lists => {}
    }
}
