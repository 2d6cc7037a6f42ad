//! Lists of tools that no server should send: endless, ambiguous, hostile. They are bounded, and
//! other servers are unaffected.

use std::net::TcpListener;

use domain::upstream::UpstreamState;
use serde_json::{Value, json};
use testkit::client::{Client, code, text};
use testkit::wait::eventually;

use crate::gate::Gate;
use crate::server::Server;

#[tokio::test]
async fn a_list_that_never_ends_or_is_none_is_refused_with_its_reason() {
    let one = json!([{"name": "t"}]);
    let cases = [
        ("loops", json!("loop"), "the server repeats the cursor 'again'"),
        ("endless", json!("endless"), "more than 1000 pages or 100000 tools"),
        ("object", json!({"answer": {"tools": {"t": {}}}}), "invalid response"),
        ("text", json!({"answer": "t"}), "invalid response"),
        ("nothing", json!({"answer": {}}), "invalid response"),
        ("cursor", json!({"answer": {"tools": [], "nextCursor": 7}}), "invalid response"),
    ];
    let bad = cases
        .each_ref()
        .map(|(name, list, _)| (*name, Server::scripted(json!({"list": list, "tools": one}))));
    let good = Server::scripted(one.clone());
    let mut servers: Vec<(&str, &Server)> = bad.iter().map(|(name, it)| (*name, it)).collect();
    servers.push(("good", &good));
    let gate = Gate::start(&servers, json!({})).await;
    let client = gate.client("/mcp").await;
    for (name, _, reason) in cases {
        let failed = || async {
            match &gate.server(name).state {
                UpstreamState::Waiting(failure) => Some(failure.reason.clone()),
                _ => None,
            }
        };
        let error = eventually(failed).await;
        assert!(error.contains("tools/list: ") && error.contains(reason), "{name}: {error}");
        let code = client.code_of("write", &format!("{name}:t")).await;
        assert_eq!(code, "UPSTREAM_UNAVAILABLE", "{name}");
    }
    assert_eq!(client.code_of("write", "good:t").await, "ok");
}

/// Unusual but valid names: each is its own tool, called by the bytes it was listed with.
const ODD_NAMES: [&str; 7] =
    ["a:b", "../x", "a__b", "delete", "d\u{435}lete", "dele\u{200b}te", "<IMPORTANT>"];

fn odd_tools() -> Value {
    let mut tools: Vec<Value> = ODD_NAMES.iter().map(|name| json!({"name": name})).collect();
    tools.push(json!({"name": "twice", "description": "the first"}));
    tools.push(json!({"name": "twice", "description": "the second", "x-do": "error"}));
    for name in ["", " blank", "esc\u{1b}[31m", "line\nbreak", &"x".repeat(257)] {
        tools.push(json!({"name": name}));
    }
    tools.push(json!({"title": "no name"}));
    tools.push(json!({"name": ["no text"]}));
    tools.push(json!("no object"));
    json!(tools)
}

#[tokio::test]
async fn odd_names_are_kept_apart_and_called_as_they_were_listed() {
    let gate = Gate::of(&Server::scripted(odd_tools())).await;
    let client = gate.client("/mcp").await;
    for name in ODD_NAMES {
        let answer = client.two_key_call("write", &format!("s:{name}"), json!({})).await;
        let params: Value = serde_json::from_str(text(&answer)).unwrap();
        assert_eq!(params["name"], name, "the server got another name than it listed");
    }
    assert_eq!(gate.server("s").listing.tools().len(), ODD_NAMES.len() + 1);
    let described = client.document("describe_tool", json!({"tool_ids": ["s:twice"]})).await;
    assert!(described.to_string().contains("the first"), "{described}");
    assert_eq!(client.code_of("write", "s:twice").await, "ok");
}

#[tokio::test]
async fn contradictory_hints_count_as_the_worse_one() {
    let both = json!({"readOnlyHint": true, "destructiveHint": true});
    let gate = Gate::of(&Server::scripted(json!([{"name": "t", "annotations": both}]))).await;
    let client = gate.client("/mcp").await;
    for (operation, expected) in
        [("read", "SERVER_MISMATCH"), ("write", "SERVER_MISMATCH"), ("destructive", "ok")]
    {
        assert_eq!(client.code_of(operation, "s:t").await, expected, "{operation}");
    }
}

/// Returns `depth` nested objects, under the key `a`.
fn nested(depth: usize) -> String {
    format!("{}{{}}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))
}

/// A schema with arguments for it, and the outcome of a call.
struct Schema(&'static str, String, String, &'static str);

impl Schema {
    fn new(
        name: &'static str,
        schema: impl Into<String>,
        arguments: &str,
        outcome: &'static str,
    ) -> Schema {
        Schema(name, schema.into(), arguments.to_owned(), outcome)
    }
}

/// Arguments that cannot be checked pass.
fn uncheckable(remote: &str) -> Vec<Schema> {
    let pattern = r#"{"properties":{"a":{"pattern":"((a{0,999}){0,999}){0,999}"}}}"#;
    vec![
        Schema::new("remote_ref", json!({"$ref": remote}).to_string(), "{}", "ok"),
        Schema::new("remote_dialect", json!({"$schema": remote}).to_string(), "{}", "ok"),
        Schema::new("file_ref", r#"{"$ref":"file:///etc/passwd"}"#, "{}", "ok"),
        Schema::new("missing_ref", r##"{"$ref":"#/$defs/none"}"##, "{}", "ok"),
        Schema::new("no_type", r#"{"type":"nonsense"}"#, "{}", "ok"),
        Schema::new("no_schema", "[]", "{}", "ok"),
        Schema::new("no_pattern", r#"{"properties":{"a":{"pattern":"("}}}"#, r#"{"a":"x"}"#, "ok"),
        Schema::new("large_pattern", pattern, r#"{"a":"x"}"#, "ok"),
    ]
}

/// A schema that can never be checked in bounded time locks its tool.
fn costly() -> Vec<Schema> {
    let link = |n: usize| {
        let next = json!({"$ref": format!("#/$defs/{n}")});
        json!({"anyOf": [next, next]})
    };
    let links: serde_json::Map<String, Value> = (0..40)
        .map(|n| (n.to_string(), if n == 0 { json!({"type": "string"}) } else { link(n - 1) }))
        .collect();
    // Each definition doubles the work, whatever the arguments.
    let chain = json!({"$defs": links, "$ref": "#/$defs/39"}).to_string();
    let each_other = r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a"}"##;
    vec![
        Schema::new("itself", r##"{"$ref":"#"}"##, "{}", "TOOL_BLOCKED"),
        Schema::new("each_other", each_other, "{}", "TOOL_BLOCKED"),
        Schema::new("chain", chain, "{}", "TOOL_BLOCKED"),
    ]
}

/// Schemas that cost much, and are checked all the same.
fn checkable() -> Vec<Schema> {
    let tree = r##"{"properties":{"a":{"$ref":"#"}},"maxProperties":1}"##;
    let deep = format!("{}{{}}{}", r#"{"properties":{"a":"#.repeat(31), "}}".repeat(31));
    let pattern = r#"{"properties":{"a":{"pattern":"^(a+)+$(?=x)"}}}"#;
    // Each level of the arguments doubles the work.
    let doubling = r##"{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["x"]},
                                 {"properties":{"a":{"$ref":"#"}},"required":["y"]}]}"##;
    let (long, wide) = (format!(r#"{{"a":"{}!"}}"#, "a".repeat(10_000)), nested(100));
    let broken = r#"{"a":{"a":{"a":1,"b":2}}}"#;
    vec![
        Schema::new("tree", tree, &wide, "ok"),
        Schema::new("tree_broken", tree, broken, "INVALID_ARGUMENTS"),
        Schema::new("deep", deep, &wide, "ok"),
        Schema::new("pattern", pattern, &long, "INVALID_ARGUMENTS"),
        Schema::new("doubling", doubling, &wide, "ok"),
    ]
}

async fn found(client: &Client, query: &str) -> usize {
    let found = client.document("retrieve_tools", json!({"query": query})).await;
    found["tools"].as_array().unwrap().len()
}

#[tokio::test]
async fn hostile_schemas_end_no_call_and_fetch_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let remote = format!("http://{}/schema.json", listener.local_addr().unwrap());
    let cases: Vec<Schema> =
        uncheckable(&remote).into_iter().chain(costly()).chain(checkable()).collect();
    let tools: Vec<String> = cases
        .iter()
        .map(|Schema(name, schema, ..)| format!(r#"{{"name":"{name}","inputSchema":{schema}}}"#))
        .collect();
    let tools: Value = serde_json::from_str(&format!("[{}]", tools.join(","))).unwrap();
    let gate = Gate::of(&Server::scripted(tools)).await;
    let client = gate.client("/mcp").await;
    assert_ne!(found(&client, "remote ref tree deep").await, 0);
    for Schema(name, _, arguments, outcome) in &cases {
        let arguments = serde_json::from_str(arguments).unwrap();
        let answer = client.two_key_call("write", &format!("s:{name}"), arguments).await;
        assert_eq!(code(&answer), *outcome, "{name}: {answer}");
    }
    let connected = listener.accept().err().map(|error| error.kind());
    assert_eq!(connected, Some(std::io::ErrorKind::WouldBlock), "a remote schema was fetched");
}
