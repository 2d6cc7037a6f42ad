//! A server with one of everything, and a gate with two of them.

use mcp::message::raw;
use serde_json::{Value, json};

use crate::gate::Gate;
use crate::server::Server;

pub(crate) const UPDATED: &str = "notifications/resources/updated";
pub(crate) const MESSAGE: &str = "notifications/message";
pub(crate) const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
pub(crate) const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
pub(crate) const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";

pub(crate) const OPERATIONS: [&str; 3] = ["read", "write", "destructive"];

/// Definitions in a formatting that none of our programs would produce.
pub(crate) const PROMPT: &str =
    r#"{ "x-number" : 1E2, "name":"p", "description":"\u0041", "arguments":[ ] }"#;
pub(crate) const MEMO: &str = r#"{ "x":1E2 , "uri" : "memo:\/\/both", "name":"both" }"#;

/// A result with addresses in every place: `memo://both` and `ui://page` belong to two servers.
pub(crate) const LINKS: &str = r#"{ "content":[{"type":"resource_link","uri":"memo://both","name":"x", "n":0.10},{"type":"resource","resource":{"uri":"memo://NAME","text":"\u0041"}},{"type":"text","text":"memo://both"}],"structuredContent":{"uri":"memo://both"},"_meta":{"ui":{"resourceUri":"ui:\/\/page"},"ui/resourceUri":"ui://page","x":1E2} }"#;

/// The address of `memo://both` on server `a` and on server `b`.
pub(crate) const ADDRESS_A: &str = "countersign://server/a/memo://both";
pub(crate) const ADDRESS_B: &str = "countersign://server/b/memo://both";

/// Returns the `x-do` of a tool that sends a notification.
pub(crate) fn notify(method: &str, params: Value) -> Value {
    json!({"notify": [{"method": method, "params": params}]})
}

fn log(level: &str, name: &str) -> Value {
    notify(MESSAGE, json!({"level": level, "data": name}))
}

/// Returns a script with one of everything, some of which other servers have too.
pub(crate) fn offer(name: &str) -> Value {
    let own = format!("memo://{name}");
    json!({
        "tools": [
            {"name": "plain"},
            {"name": "links", "x-do": {"return": LINKS.replace("NAME", name)}},
            {"name": "page", "_meta": {"ui": {"resourceUri": "ui://page"}}},
            {"name": "update", "x-do": notify(UPDATED, json!({"uri": "memo://both"}))},
            {"name": "update_own", "x-do": notify(UPDATED, json!({"uri": own}))},
            {"name": "debug", "x-do": log("debug", name)},
            {"name": "error", "x-do": log("error", name)},
            {"name": "moved", "x-do": notify("notifications/custom/moved", json!(r#"{"n":1E2}"#))},
            {"name": "opened", "x-do": notify("notifications/elicitation/complete",
                json!({"elicitationId": name}))},
            {"name": "changed", "x-do": notify(RESOURCES_CHANGED, Value::Null)},
            {"name": "url", "x-do": "error"},
            {"name": "ask_own", "x-do": {"ask": "custom/question", "with": {"n": 1}}},
            {"name": "sample", "x-do": {"ask": "sampling/createMessage"}},
            {"name": "elicit", "x-do": {"ask": "elicitation/create"}},
            {"name": "roots", "x-do": {"ask": "roots/list"}},
        ],
        "prompts": [{"x-text": PROMPT}, {"name": format!("only {name}")}, {"name": "q"}],
        "templates": [
            {"uriTemplate": format!("{name}://{{x}}"), "name": "own"},
            {"uriTemplate": "both://{x}/data", "name": "both"},
        ],
        "resources": [
            {"x-text": MEMO}, {"uri": own, "name": name}, {"uri": "ui://page", "name": "page"},
        ],
        "capabilities": {"logging": {}, "completions": {}, "experimental": {"x": {"n": 1}},
            "tasks": {"list": {}}},
    })
}

/// A gate with two servers that have everything, and one that has only tools.
pub(crate) struct TwoOffers {
    pub(crate) gate: Gate,
    pub(crate) a: Server,
    pub(crate) b: Server,
    pub(crate) tools: Server,
}

impl TwoOffers {
    pub(crate) async fn start() -> TwoOffers {
        let [a, b] = ["a", "b"].map(|name| Server::scripted(offer(name)));
        let tools = Server::scripted(json!([{"name": "t"}]));
        let gate = Gate::start(&[("a", &a), ("b", &b), ("tools", &tools)], json!({})).await;
        TwoOffers { gate, a, b, tools }
    }
}

/// Returns the scripted server's answer to a request with these params.
pub(crate) fn echoed(params: &str) -> String {
    format!(r#"{{"echo":{params},"x-number":1E2,"_meta":{{"x-meta":1.0}}}}"#)
}

/// Returns a script whose lists can be replaced; `tell` announces a change of each.
pub(crate) fn changing(prompts: Value, resources: Value, tools: &[&str]) -> Value {
    let all = [TOOLS_CHANGED, PROMPTS_CHANGED, RESOURCES_CHANGED];
    let tell = all.map(|method| json!({"method": method, "params": null}));
    let mut tools: Vec<Value> = tools.iter().map(|name| json!({"name": name})).collect();
    tools.push(json!({"name": "tell", "x-do": {"notify": tell}}));
    json!({"tools": tools, "prompts": prompts, "resources": resources, "templates": []})
}

/// Sends a notification of a client.
pub(crate) async fn say(client: &testkit::client::Client, method: &str, params: Option<&str>) {
    let params = params.map(|params| raw(params.to_owned()));
    client.peer.notify(method, params).await.unwrap();
}
