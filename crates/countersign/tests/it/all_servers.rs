//! Everything that all servers offer, merged, on `/mcp/all` and `mcp --all`: names and addresses lead
//! back to their server, each request is decided and recorded there, and nothing else changes.

use std::path::Path;

use mcp::peer::RequestError;
use serde_json::{Value, json};
use testkit::client::{Answers, Client, able, answers, text};
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::stdio_client;
use testkit::upstream::{accepting_new, counted, pids, scripted};
use testkit::wait::eventually;

use crate::foreign::servers;
use crate::ledger::{records_when, whole_chains};
use crate::locks::{client_with, decisions, live, make_token, replace_script};

const UPDATED: &str = "notifications/resources/updated";
const MESSAGE: &str = "notifications/message";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";

const OPERATIONS: [&str; 3] = ["read", "write", "destructive"];

/// Definitions in a formatting that none of our programs would produce.
const PROMPT: &str = r#"{ "x-number" : 1E2, "name":"p", "description":"\u0041", "arguments":[ ] }"#;
const MEMO: &str = r#"{ "x":1E2 , "uri" : "memo:\/\/both", "name":"both" }"#;

/// A result with addresses in every place: `memo://both` and `ui://page` belong to two servers.
const LINKS: &str = r#"{ "content":[{"type":"resource_link","uri":"memo://both","name":"x", "n":0.10},{"type":"resource","resource":{"uri":"memo://NAME","text":"\u0041"}},{"type":"text","text":"memo://both"}],"structuredContent":{"uri":"memo://both"},"_meta":{"ui":{"resourceUri":"ui:\/\/page"},"ui/resourceUri":"ui://page","x":1E2} }"#;

fn notify(method: &str, params: Value) -> Value {
    json!({"notify": [{"method": method, "params": params}]})
}

/// A script with one of everything, some of which other servers have too.
fn offer(dir: &Path, name: &str) -> Value {
    json!({
        "tools": [
            {"name": "plain"},
            {"name": "links", "x-do": {"return": LINKS.replace("NAME", name)}},
            {"name": "page", "_meta": {"ui": {"resourceUri": "ui://page"}}},
            {"name": "update", "x-do": notify(UPDATED, json!({"uri": "memo://both"}))},
            {"name": "debug", "x-do": notify(MESSAGE, json!({"level": "debug", "data": name}))},
            {"name": "moved", "x-do": notify("notifications/custom/moved", json!({"n": 1}))},
            {"name": "opened", "x-do": notify("notifications/elicitation/complete",
                json!({"elicitationId": name}))},
            {"name": "url", "x-do": "error"},
            {"name": "ask_own", "x-do": {"ask": "custom/question", "with": {"n": 1}}},
            {"name": "sample", "x-do": {"ask": "sampling/createMessage"}},
            {"name": "elicit", "x-do": {"ask": "elicitation/create"}},
            {"name": "roots", "x-do": {"ask": "roots/list"}},
        ],
        "prompts": [{"x-text": PROMPT}, {"name": format!("only {name}")}],
        "templates": [
            {"uriTemplate": format!("{name}://{{x}}"), "name": "own"},
            {"uriTemplate": "both://{x}/data", "name": "both"},
        ],
        "resources": [
            {"x-text": MEMO},
            {"uri": format!("memo://{name}"), "name": name},
            {"uri": "ui://page", "name": "page"},
        ],
        "capabilities": {"logging": {}, "completions": {}, "experimental": {"x": {}}},
        "heard": dir.join(format!("{name}.heard")),
    })
}

async fn gate() -> Gate {
    let servers = |dir: &Path| {
        let server = |name: &str| scripted(dir, name, &offer(dir, name));
        json!({"a": server("a"), "b": server("b"), "tools": scripted(dir, "tools", &json!([{"name": "t"}]))})
    };
    let gate = Gate::start(servers, json!({})).await;
    for name in ["a", "b", "tools"] {
        gate.ready(name).await;
    }
    gate
}

/// Connects over every transport.
async fn doors(gate: &Gate, alone: &Path) -> [(&'static str, Client); 3] {
    let config = gate.config_file();
    let args = ["--config", config.to_str().unwrap(), "--all"];
    [
        ("http", gate.http_at("/mcp/all").await),
        ("bridged", stdio_client(gate.dir.path(), &["--all"], json!({}), vec![]).await),
        ("in process", stdio_client(alone, &args, json!({}), vec![]).await),
    ]
}

async fn all(gate: &Gate) -> Client {
    gate.http_at("/mcp/all").await
}

async fn able_at(gate: &Gate, view: &str, who: &str) -> Client {
    let mut answers: Answers = answers(who);
    answers.push(("custom/question", json!({"answer": 1})));
    gate.http_at_with(view, able(), answers).await
}

fn error(answer: Result<impl std::fmt::Debug, RequestError>) -> mcp::ErrorObject {
    match answer {
        Err(RequestError::Refused(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

fn told(client: &Client, method: &str) -> Vec<String> {
    let notices = client.notices.lock().unwrap();
    notices.iter().filter(|(of, _)| of == method).map(|(_, params)| params.clone()).collect()
}

async fn told_when(client: &Client, method: &str, count: usize) -> Vec<String> {
    let enough = || async { Some(told(client, method)).filter(|told| told.len() >= count) };
    eventually(enough).await
}

/// Returns the lines of the messages that a server received.
fn server_heard(gate: &Gate, name: &str) -> Vec<String> {
    let file = gate.dir.path().join(format!("{name}.heard"));
    std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

async fn listed(client: &Client, method: &str) -> Vec<String> {
    let (member, key) = match method {
        "tools/list" => ("tools", "name"),
        "prompts/list" => ("prompts", "name"),
        "resources/list" => ("resources", "uri"),
        _ => ("resourceTemplates", "uriTemplate"),
    };
    let (mut listed, mut params) = (Vec::new(), json!({}));
    loop {
        let page = client.request(method, params).await.unwrap();
        let items = page[member].as_array().unwrap().iter();
        listed.extend(items.map(|item| item[key].as_str().unwrap().to_owned()));
        match &page["nextCursor"] {
            Value::Null => return listed,
            cursor => params = json!({"cursor": cursor}),
        }
    }
}

fn echoed(params: &str) -> String {
    format!(r#"{{"echo":{params},"x-number":1E2,"_meta":{{"x-meta":1.0}}}}"#)
}

const ADDRESS_A: &str = "countersign://server/a/memo://both";
const ADDRESS_B: &str = "countersign://server/b/memo://both";

#[tokio::test]
async fn all_servers_offer_their_prompts_resources_and_templates_in_one_list() {
    let gate = gate().await;
    let alone = tempfile::tempdir().unwrap();
    for (door, client) in doors(&gate, alone.path()).await {
        let capabilities = json!({
            "tools": {"listChanged": true}, "prompts": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "completions": {}, "logging": {},
        });
        assert_eq!(client.welcome["capabilities"], capabilities, "{door}");
        let prompts = client.request_text("prompts/list", "{}").await.unwrap();
        let named = |name: &str| PROMPT.replace(r#""p""#, &format!("{name:?}"));
        assert!(prompts.contains(&named("a__p")) && prompts.contains(&named("b__p")), "{prompts}");
        let prompts = listed(&client, "prompts/list").await;
        assert_eq!((prompts.len(), &*prompts[0], &*prompts[2]), (4, "a__p", "b__p"), "{door}");
        assert!(prompts[1].starts_with("a__only_a_") && prompts[1].len() <= 64, "{prompts:?}");
        let templates = listed(&client, "resources/templates/list").await;
        let both = |name: &str| format!("countersign://server/{name}/both://{{x}}/data");
        assert_eq!(templates, ["a://{x}", &both("a"), "b://{x}", &both("b")], "{door}");
        let pages = ["ui://countersign/a/page", "ui://countersign/b/page"];
        let expected = [ADDRESS_A, "memo://a", pages[0], ADDRESS_B, "memo://b", pages[1]];
        assert_eq!(listed(&client, "resources/list").await, expected, "{door}");
        let resources = client.request_text("resources/list", "{}").await.unwrap();
        let spelled = MEMO.replace("memo:", "countersign://server/b/memo:");
        assert!(resources.contains(&spelled), "only the address is another: {resources}");
        let tools = client.request("tools/list", json!({})).await.unwrap();
        let tools = tools["tools"].as_array().unwrap();
        let page = tools.iter().find(|tool| tool["name"] == "b__page").unwrap();
        assert_eq!(page["_meta"]["ui"]["resourceUri"], pages[1], "{door}");
    }
}

#[tokio::test]
async fn all_servers_get_their_own_names_and_addresses_back() {
    let gate = gate().await;
    let alone = tempfile::tempdir().unwrap();
    let reference = |kind: &str, key: &str, name: &str| {
        format!(r#"{{ "ref":{{"type":"{kind}","{key}" : "{name}"}},"argument":{{"n":1E2}}}}"#)
    };
    for (door, client) in doors(&gate, alone.path()).await {
        for (method, given, sent) in [
            (
                "resources/read",
                format!(r#"{{ "uri" : "{ADDRESS_B}","x":[1.0,1E2]}}"#),
                r#"{ "uri" : "memo://both","x":[1.0,1E2]}"#.to_owned(),
            ),
            ("resources/read", r#"{"uri":"memo://b"}"#.into(), r#"{"uri":"memo://b"}"#.into()),
            (
                "resources/read",
                r#"{"uri":"countersign://server/b/memo://b"}"#.into(),
                r#"{"uri":"memo://b"}"#.into(),
            ),
            ("resources/read", r#"{"uri":"b://any"}"#.into(), r#"{"uri":"b://any"}"#.into()),
            (
                "prompts/get",
                r#"{ "name":"b__p", "arguments":{"big":12345678901234567890}}"#.into(),
                r#"{ "name":"p", "arguments":{"big":12345678901234567890}}"#.into(),
            ),
            (
                "completion/complete",
                reference("ref/prompt", "name", "b__p"),
                reference("ref/prompt", "name", "p"),
            ),
            (
                "completion/complete",
                reference("ref/resource", "uri", "b://{x}"),
                reference("ref/resource", "uri", "b://{x}"),
            ),
            (
                "completion/complete",
                reference("ref/resource", "uri", "countersign://server/b/both://{x}/data"),
                reference("ref/resource", "uri", "both://{x}/data"),
            ),
        ] {
            let answer = client.request_text(method, &given).await.unwrap();
            assert_eq!(answer, echoed(&sent), "{door} {method} {given}");
        }
    }
    let asked = server_heard(&gate, "a");
    assert!(asked.iter().all(|line| line.starts_with("notifications/initialized")), "{asked:?}");
}

#[tokio::test]
async fn all_servers_have_their_requests_recorded_with_the_server_and_its_own_address() {
    let gate = gate().await;
    let client = all(&gate).await;
    client.request("resources/read", json!({"uri": ADDRESS_B})).await.unwrap();
    client.request("prompts/get", json!({"name": "a__p"})).await.unwrap();
    client.request("logging/setLevel", json!({"level": "error"})).await.unwrap();
    let home = gate.home();
    let records = records_when(&home, |records| {
        records.iter().filter(|record| record["receipt"].is_object()).count() >= 4
    })
    .await;
    let of = |tool: &str| {
        let of_tool = records.iter().filter(|record| record["tool"] == tool);
        let mut told: Vec<String> = of_tool
            .map(|record| format!("{} {}", record["server"], record["resource"]).replace('"', ""))
            .collect();
        told.sort();
        told
    };
    assert_eq!(of("resources/read"), ["b memo://both"]);
    assert_eq!(of("prompts/get"), ["a prompt/p"]);
    assert_eq!(of("logging/setLevel"), ["a null", "b null"]);
    assert!(!whole_chains(&home).is_empty());
}

#[tokio::test]
async fn all_servers_results_have_links_that_lead_back() {
    let gate = gate().await;
    let client = all(&gate).await;
    for name in ["a", "b"] {
        let params = format!(r#"{{"name":"{name}__links"}}"#);
        let answer = client.request_text("tools/call", &params).await.unwrap();
        let address = format!("countersign://server/{name}/memo://both");
        let expected = LINKS
            .replace("NAME", name)
            .replacen(r#""memo://both""#, &format!("\"{address}\""), 1)
            .replace(r"ui:\/\/page", &format!(r"ui:\/\/countersign/{name}/page"))
            .replace(r#""ui://page""#, &format!(r#""ui://countersign/{name}/page""#));
        assert_eq!(answer, expected);
        let read = client.request("resources/read", json!({"uri": address})).await.unwrap();
        assert_eq!(read["echo"]["uri"], "memo://both");
        let sent = json!({"name": format!("{name}__plain"), "arguments": {"uri": address}});
        let sent = client.request("tools/call", sent).await.unwrap();
        let expected = r#"{"name":"plain","arguments":{"uri":"memo://both"}}"#;
        assert_eq!(text(&sent), expected, "a model may pass an address on");
    }
}

#[tokio::test]
async fn what_leads_to_no_server_or_to_several_is_refused() {
    let gate = gate().await;
    let client = all(&gate).await;
    for (method, params, code, words) in [
        ("resources/read", json!({"uri": "memo://both"}), -32602, ADDRESS_A),
        ("resources/subscribe", json!({"uri": "both://1/data"}), -32602, "server/b/both://1/data"),
        ("resources/read", json!({"uri": "none://x"}), -32002, "unknown resource: none://x"),
        ("resources/read", json!({"uri": "countersign://server/none/x"}), -32002, "unknown"),
        ("resources/read", json!({"uri": "countersign://server/tools/x"}), -32002, "unknown"),
        ("prompts/get", json!({"name": "p"}), -32602, "unknown prompt: p"),
        ("prompts/get", json!({"name": "a__p", "x": 1, "arguments": 1}), 0, ""),
        ("prompts/get", json!({"name": ["a__p"]}), -32602, "name must be a string"),
        ("completion/complete", json!({"ref": {"type": "ref/x"}}), -32602, "ref must name"),
        ("custom/reindex", json!({}), -32601, "custom/reindex"),
        ("tasks/list", json!({}), -32601, "tasks/list"),
        ("prompts/list", json!({"cursor": "x"}), -32602, "unknown cursor"),
        ("resources/list", json!({"cursor": 7}), -32602, "cursor must be a string"),
    ] {
        let answer = client.request(method, params.clone()).await;
        if code == 0 {
            answer.unwrap();
            continue;
        }
        let refused = error(answer);
        assert_eq!(refused.code, code, "{method} {params}: {}", refused.message);
        assert!(refused.message.contains(words), "{}", refused.message);
    }
    client.peer.notify("notifications/custom/hello", None).await.unwrap();
    let url = error(client.request("tools/call", json!({"name": "a__url"})).await);
    assert_eq!(url.code, -32042, "an error of the server passes");
    let heard = server_heard(&gate, "a");
    assert!(!heard.iter().any(|line| line.contains("custom")), "{heard:?}");
}

#[tokio::test]
async fn all_servers_resources_come_in_pages_that_belong_to_their_caller() {
    let servers = |dir: &Path| {
        let resources = |name: &str, count: usize| -> Vec<Value> {
            (0..count).map(|n| json!({"uri": format!("{name}://{n}"), "name": "r"})).collect()
        };
        let server = |name: &str, count| {
            scripted(dir, name, &json!({"tools": [], "resources": resources(name, count)}))
        };
        json!({"a": server("a", 300), "b": server("b", 450)})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("a").await;
    gate.ready("b").await;
    let client = all(&gate).await;
    let listed = eventually(|| async {
        Some(listed(&client, "resources/list").await).filter(|listed| listed.len() == 750)
    })
    .await;
    assert_eq!((&*listed[0], &*listed[300], &*listed[749]), ("a://0", "b://0", "b://449"));
    let first = client.request("resources/list", json!({})).await.unwrap();
    let cursor = first["nextCursor"].as_str().unwrap().to_owned();
    let scope = json!({"operations": OPERATIONS, "surfaces": ["passthrough"]});
    make_token(&decisions(&gate), "other", &scope);
    let other = client_with(&gate, "other", "/mcp/all").await;
    let foreign = error(other.request("resources/list", json!({"cursor": cursor})).await);
    assert_eq!(foreign.code, -32602);
    for tampered in [cursor[1..].to_owned(), format!("{cursor}A"), "AAAA".into(), String::new()] {
        let refused = error(client.request("resources/list", json!({"cursor": tampered})).await);
        assert_eq!(refused.code, -32602, "{tampered}");
    }
    let again = gate.http_at("/mcp/all").await;
    let again = again.request("resources/list", json!({"cursor": cursor})).await;
    assert!(again.is_ok(), "another session of the same caller");
}

#[tokio::test]
async fn updates_of_all_servers_reach_subscribers_under_the_address_they_used() {
    let gate = gate().await;
    let (one, two, three) = (all(&gate).await, all(&gate).await, all(&gate).await);
    one.request("resources/subscribe", json!({"uri": ADDRESS_A})).await.unwrap();
    two.request("resources/subscribe", json!({"uri": ADDRESS_B})).await.unwrap();
    three.call("a__update", json!({})).await;
    three.call("b__update", json!({})).await;
    assert_eq!(told_when(&one, UPDATED, 1).await, [json!({"uri": ADDRESS_A}).to_string()]);
    assert_eq!(told_when(&two, UPDATED, 1).await, [json!({"uri": ADDRESS_B}).to_string()]);
    one.request("resources/unsubscribe", json!({"uri": ADDRESS_A})).await.unwrap();
    let asked = server_heard(&gate, "a");
    assert!(asked.contains(&r#"resources/unsubscribe {"uri":"memo://both"}"#.to_owned()));
    three.call("a__update", json!({})).await;
    three.call("b__update", json!({})).await;
    assert_eq!(told_when(&two, UPDATED, 2).await.len(), 2);
    assert_eq!((told(&one, UPDATED).len(), told(&three, UPDATED).len()), (1, 0));
}

#[tokio::test]
async fn a_log_level_reaches_all_servers_and_those_that_come_later() {
    let gate = gate().await;
    let (curious, silent) = (all(&gate).await, all(&gate).await);
    assert_eq!(
        curious.request("logging/setLevel", json!({"level": "debug"})).await.unwrap(),
        json!({})
    );
    let refused = error(silent.request("logging/setLevel", json!({"level": "loud"})).await);
    assert_eq!(refused.code, -32602);
    let later = scripted(gate.dir.path(), "later", &offer(gate.dir.path(), "later"));
    gate.rewrite(|config| config["mcpServers"]["later"] = later);
    gate.ready("later").await;
    eventually(|| async {
        let asked = server_heard(&gate, "later");
        asked.iter().any(|line| line == r#"logging/setLevel {"level":"debug"}"#).then_some(())
    })
    .await;
    for name in ["a", "b", "later"] {
        silent.call(&format!("{name}__debug"), json!({})).await;
    }
    let mut heard = told_when(&curious, MESSAGE, 3).await;
    heard.sort();
    let message = |name: &str| format!(r#"{{"level":"debug","data":"{name}"}}"#);
    assert_eq!(heard, ["a", "b", "later"].map(message));
    assert!(told(&silent, MESSAGE).is_empty());
}

#[tokio::test]
async fn a_client_of_all_servers_hears_the_protocols_notifications_and_no_others() {
    let gate = gate().await;
    let (one, two) =
        (able_at(&gate, "/mcp/all", "one").await, able_at(&gate, "/mcp/all", "two").await);
    for (tool, method, params) in [
        ("b__debug", MESSAGE, json!({"level": "debug", "data": "b"})),
        ("b__opened", "notifications/elicitation/complete", json!({"elicitationId": "b"})),
        ("b__update", UPDATED, json!({"uri": ADDRESS_B})),
    ] {
        one.call(tool, json!({})).await;
        let heard: Vec<Value> =
            told(&one, method).iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        assert_eq!(heard, [params], "it comes before the result of {tool}");
    }
    one.call("b__moved", json!({})).await;
    let asked = one.call("b__ask_own", json!({})).await;
    assert!(text(&asked).contains("method not found"), "{asked}");
    one.peer.notify("notifications/roots/list_changed", None).await.unwrap();
    eventually(|| async {
        let heard = server_heard(&gate, "b");
        heard.iter().any(|line| line.starts_with("notifications/roots")).then_some(())
    })
    .await;
    assert!(told(&one, "notifications/custom/moved").is_empty());
    assert!(two.notices.lock().unwrap().is_empty(), "nothing crosses");
}

/// Four clients at once on each surface.
#[tokio::test]
async fn sampling_elicitation_and_roots_of_four_clients_cross_on_no_view() {
    for (view, args, prefix) in
        [("/mcp/s/a", vec!["--server", "a"], ""), ("/mcp/all", vec!["--all"], "a__")]
    {
        let gate = gate().await;
        let stdio =
            async |who: &str| stdio_client(gate.dir.path(), &args, able(), answers(who)).await;
        let clients = [
            ("first", stdio("first").await),
            ("second", stdio("second").await),
            ("third", able_at(&gate, view, "third").await),
            ("fourth", able_at(&gate, view, "fourth").await),
        ];
        for tool in ["sample", "elicit", "roots", "sample"].map(|tool| format!("{prefix}{tool}")) {
            let calls = clients.iter().map(async |(who, client)| {
                let result = client.call(&tool, json!({})).await;
                assert_ne!(result["isError"], true, "{view} {who}: {result}");
                for (other, _) in &clients {
                    let has = text(&result).contains(other);
                    assert_eq!(has, who == other, "{view} {who} {tool}: {result}");
                }
            });
            futures_util::future::join_all(calls).await;
        }
    }
}

#[tokio::test]
async fn a_client_of_all_servers_lists_what_is_there_for_its_capabilities_from_the_start() {
    let tools = json!([
        {"name": "pid", "x-do": {"work": {}}},
        {"name": "sample", "x-needs": "sampling", "x-do": {"ask": "sampling/createMessage"}},
    ]);
    let servers = |dir: &Path| {
        json!({
            "s": accepting_new(counted(dir, "s", &tools)),
            "t": accepting_new(counted(dir, "t", &tools)),
        })
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    gate.ready("t").await;
    let (able, plain) = (able_at(&gate, "/mcp/all", "me").await, all(&gate).await);
    let expected = ["s__pid", "s__sample", "t__pid", "t__sample"];
    assert_eq!(listed(&able, "tools/list").await, expected);
    assert_eq!(listed(&plain, "tools/list").await, ["s__pid", "t__pid"]);
    assert_eq!(listed(&able, "tools/list").await, expected);
    able.request("ping", json!({})).await.unwrap();
    assert!(able.notices.lock().unwrap().is_empty(), "what it was shown is no news");
    assert_eq!(pids(gate.dir.path(), "s").len(), 2, "the shared one, and its own");
    let called = able_at(&gate, "/mcp/all", "me").await.call("t__sample", json!({})).await;
    assert!(text(&called).contains(r#""model":"me""#), "a call needs no list before: {called}");
}

/// A script whose lists can be replaced; `tell` announces a change of each.
fn changing(prompts: Value, resources: Value, tools: &[&str]) -> Value {
    let all = [TOOLS_CHANGED, PROMPTS_CHANGED, RESOURCES_CHANGED];
    let tell = all.map(|method| json!({"method": method, "params": null}));
    let mut tools: Vec<Value> = tools.iter().map(|name| json!({"name": name})).collect();
    tools.push(json!({"name": "tell", "x-do": {"notify": tell}}));
    json!({"tools": tools, "prompts": prompts, "resources": resources, "templates": []})
}

#[tokio::test]
async fn a_change_is_told_once_to_each_client_of_all_servers_that_sees_it() {
    let script = changing(json!([]), json!([]), &[]);
    let servers = |dir: &Path| {
        // Servers that keep failing change the catalog all the time.
        let failing = json!({"command": "sh", "args": ["-c", "exit 3"]});
        let quiet = scripted(dir, "quiet", &json!([{"name": "t"}]));
        let s = accepting_new(live(dir, "s", &script));
        json!({"s": s, "quiet": quiet, "x": failing, "y": failing, "z": failing})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    gate.ready("quiet").await;
    make_token(
        &decisions(&gate),
        "narrow",
        &json!({"servers": ["quiet"], "operations": OPERATIONS, "surfaces": ["passthrough"]}),
    );
    let narrow = client_with(&gate, "narrow", "/mcp/all").await;
    let clients = [all(&gate).await, all(&gate).await, able_at(&gate, "/mcp/all", "me").await];
    for client in clients.iter().chain([&narrow]) {
        for method in ["tools/list", "prompts/list", "resources/list"] {
            listed(client, method).await;
        }
    }
    let resources = json!([{"uri": "memo://new", "name": "new"}]);
    replace_script(&gate, "s", &changing(json!([{"name": "new"}]), resources, &["new"]));
    // Each connection announces the change.
    clients[0].call("s__tell", json!({})).await;
    clients[2].call("s__tell", json!({})).await;
    for client in &clients {
        for (method, changed, name) in [
            ("tools/list", TOOLS_CHANGED, "s__new"),
            ("prompts/list", PROMPTS_CHANGED, "s__new"),
            ("resources/list", RESOURCES_CHANGED, "memo://new"),
        ] {
            told_when(client, changed, 1).await;
            assert!(listed(client, method).await.contains(&name.to_owned()), "{method}");
        }
    }
    for client in &clients {
        client.request("ping", json!({})).await.unwrap();
        for changed in [TOOLS_CHANGED, PROMPTS_CHANGED, RESOURCES_CHANGED] {
            assert_eq!(told(client, changed).len(), 1, "{changed}");
        }
    }
    narrow.request("ping", json!({})).await.unwrap();
    assert!(narrow.notices.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_address_that_comes_to_belong_to_several_servers_is_announced_and_qualified() {
    let first = changing(json!([]), json!([{"uri": "memo://x", "name": "x"}]), &[]);
    let update = json!({"tools": [{"name": "update", "x-do": notify(UPDATED, json!({"uri": "memo://x"}))}],
        "resources": [{"uri": "memo://x", "name": "x"}]});
    let servers = |dir: &Path| {
        let none = changing(json!([]), json!([]), &[]);
        json!({"a": scripted(dir, "a", &update), "b": live(dir, "b", &none)})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("a").await;
    gate.ready("b").await;
    let client = all(&gate).await;
    assert_eq!(listed(&client, "resources/list").await, ["memo://x"]);
    client.request("resources/subscribe", json!({"uri": "memo://x"})).await.unwrap();
    replace_script(&gate, "b", &first);
    client.call("b__tell", json!({})).await;
    told_when(&client, RESOURCES_CHANGED, 1).await;
    let both = ["countersign://server/a/memo://x", "countersign://server/b/memo://x"];
    assert_eq!(listed(&client, "resources/list").await, both);
    let several = error(client.request("resources/read", json!({"uri": "memo://x"})).await);
    assert!(several.message.contains(both[0]) && several.message.contains(both[1]));
    client.request("resources/read", json!({"uri": both[0]})).await.unwrap();
    client.call("a__update", json!({})).await;
    let heard = told_when(&client, UPDATED, 1).await;
    assert_eq!(heard, [r#"{"uri":"memo://x"}"#], "the subscription keeps its address");
    replace_script(&gate, "b", &changing(json!([]), json!([]), &[]));
    client.call("b__tell", json!({})).await;
    told_when(&client, RESOURCES_CHANGED, 2).await;
    assert_eq!(listed(&client, "resources/list").await, ["memo://x"]);
}

#[tokio::test]
async fn one_bad_server_spoils_nothing_of_the_others() {
    let servers = |dir: &Path| {
        // It answers everything but its list of resources, which never comes.
        let hangs = r#"while IFS= read -r line; do
            id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            case $line in
                *'"initialize"'*) r='{"protocolVersion":"2025-11-25","capabilities":{"resources":{},"tools":{}},"serverInfo":{"name":"h","version":"1"}}' ;;
                *'"tools/list"'*) r='{"tools":[{"name":"t"}]}' ;;
                *'"resources/templates/list"'*) r='{"resourceTemplates":[{"uriTemplate":"{+all}","name":"x"},{"name":"none"},7]}' ;;
                *) continue ;;
            esac
            printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
        done"#;
        let wild = json!([7, {"uri": 7}, {"name": "no uri"}, {"uri": "countersign://server/good/memo://good", "name": "x"}]);
        json!({
            "good": scripted(dir, "good", &offer(dir, "good")),
            "dead": {"command": "sh", "args": ["-c", "exit 3"]},
            "hangs": {"command": "sh", "args": ["-c", hangs]},
            "silent": {"command": "sleep", "args": ["1000"]},
            "wild": scripted(dir, "wild", &json!({"tools": [], "resources": wild})),
        })
    };
    let gate = Gate::start(servers, json!({})).await;
    for name in ["good", "wild", "hangs"] {
        gate.ready(name).await;
    }
    for client in [all(&gate).await, able_at(&gate, "/mcp/all", "me").await] {
        let resources = listed(&client, "resources/list").await;
        let wild = "countersign://server/wild/countersign://server/good/memo://good";
        assert_eq!(resources, ["memo://both", "memo://good", "ui://page", wild]);
        assert_eq!(listed(&client, "prompts/list").await[0], "good__p");
        assert!(listed(&client, "tools/list").await.contains(&"hangs__t".to_owned()));
        client.request("resources/read", json!({"uri": "memo://good"})).await.unwrap();
        client.request("logging/setLevel", json!({"level": "error"})).await.unwrap();
    }
}

#[tokio::test]
async fn locks_and_scopes_hold_for_everything_of_all_servers() {
    let script = |prompts: Value| {
        json!({"tools": [{"name": "tell", "x-do": notify(PROMPTS_CHANGED, Value::Null)}],
            "prompts": prompts, "resources": [{"uri": "memo://x", "name": "x"}]})
    };
    let first = script(json!([{"name": "p"}]));
    let servers = |dir: &Path| json!({"s": live(dir, "s", &first), "hidden": scripted(dir, "hidden", &offer(dir, "hidden"))});
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    gate.ready("hidden").await;
    make_token(
        &decisions(&gate),
        "narrow",
        &json!({"servers": ["s"], "operations": OPERATIONS, "surfaces": ["passthrough"]}),
    );
    let client = client_with(&gate, "narrow", "/mcp/all").await;
    assert_eq!(listed(&client, "prompts/list").await, ["s__p"]);
    assert_eq!(listed(&client, "resources/list").await, ["memo://x"]);
    assert!(client.welcome["capabilities"].get("logging").is_none(), "the other server's");
    for (method, params, code) in [
        ("prompts/get", json!({"name": "hidden__p"}), -32602),
        ("resources/read", json!({"uri": "ui://page"}), -32002),
        ("resources/read", json!({"uri": "countersign://server/hidden/memo://hidden"}), -32002),
    ] {
        assert_eq!(error(client.request(method, params.clone()).await).code, code, "{params}");
    }
    replace_script(&gate, "s", &script(json!([{"name": "p", "description": "other"}])));
    client.call("s__tell", json!({})).await;
    eventually(|| async { listed(&client, "prompts/list").await.is_empty().then_some(()) }).await;
    let locked = error(client.request("prompts/get", json!({"name": "s__p"})).await);
    assert!(locked.text().get().contains("TOOL_BLOCKED"), "{}", locked.text());
    let (status, _) =
        gate.rest(reqwest::Method::POST, "/api/v1/servers/s/disable", Some(json!({}))).await;
    assert_eq!(status, 200);
    assert!(listed(&client, "resources/list").await.is_empty());
    let address = json!({"uri": "countersign://server/s/memo://x"});
    let locked = error(client.request("resources/read", address).await);
    assert!(locked.text().get().contains("server_disabled"), "{}", locked.text());
}

#[tokio::test]
async fn resources_of_two_real_servers_are_told_apart() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let two = |_: &Path| json!({"one": servers::everything(), "two": servers::everything()});
    let gate = servers::gate(two).await;
    gate.ready("one").await;
    gate.ready("two").await;
    let client = all(&gate).await;
    let resources = listed(&client, "resources/list").await;
    let of = |name: &str| {
        let start = format!("countersign://server/{name}/demo://");
        resources.iter().filter(|uri| uri.starts_with(&start)).count()
    };
    assert!(of("one") > 0 && of("one") == of("two"), "{resources:?}");
    let links = client.call("two__get-resource-links", json!({"count": 3})).await;
    let links = links["content"].as_array().unwrap().iter();
    let links = links.filter(|block| block["type"] == "resource_link");
    let links: Vec<String> = links.map(|link| link["uri"].as_str().unwrap().to_owned()).collect();
    assert_eq!(links.len(), 3);
    for uri in resources.iter().chain(&links) {
        let read = client.request("resources/read", json!({"uri": uri})).await.unwrap();
        assert_eq!(read["contents"][0]["uri"], **uri, "{read}");
    }
}
