//! Lists of tools that no server should send: enormous, endless, ambiguous, hostile. They are
//! bounded, omissions are reported, and other servers are unaffected.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::client::{self, Client, text};
use testkit::gate::Gate;
use testkit::program::{run, stderr, stdout};
use testkit::upstream::{accepting_new, scripted};
use testkit::wait::{eventually, eventually_within};

use crate::misbehaving::{in_state, lists_asked, memory_kb, recorded, server};

/// The maximum number of tools taken from one server.
const TOOLS_MAX: u64 = 100_000;

/// The list of maximum length takes seconds in a debug build.
const LONG_LIST_PATIENCE: Duration = Duration::from_secs(60);

async fn found(client: &Client, query: &str) -> Vec<String> {
    let found = client.document("retrieve_tools", json!({"query": query})).await;
    let tools = found["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn result(client: &Client, name: &str, args: &str) -> Value {
    let args: Value = serde_json::from_str(args).unwrap();
    client.two_key_call("write", name, args).await
}

#[tokio::test]
async fn a_server_may_list_as_many_tools_as_the_bound_and_no_more() {
    let servers = |dir: &Path| {
        let made = |count: u64| json!({"list": {"made": count, "page": 10_000}});
        json!({"most": scripted(dir, "most", &made(TOOLS_MAX)),
               "more": scripted(dir, "more", &made(TOOLS_MAX + 1)),
               "good": scripted(dir, "good", &json!([{"name": "t"}]))})
    };
    let gate = Gate::start(servers, json!({"connect_timeout": "60s"})).await;
    let client = gate.http().await;
    assert_eq!(client.code_of("write", "good:t").await, "ok", "while the others are still listing");
    let most = eventually_within(LONG_LIST_PATIENCE, || async {
        let entry = server(&client, "most").await;
        (entry["state"] == "ready").then_some(entry)
    })
    .await;
    assert_eq!(most["tool_count"], TOOLS_MAX);
    assert_eq!(found(&client, "made 99999").await[0], "most:made_99999");
    assert_eq!(client.code_of("write", "most:made_99999").await, "ok");
    let more = in_state(&client, "more", "error").await;
    let reason = "tools/list: more than 1000 pages or 100000 tools";
    assert!(more["error"].as_str().unwrap().contains(reason), "{more}");
    assert_eq!(client.code_of("write", "more:made_0").await, "UPSTREAM_UNAVAILABLE");
    let megabytes = memory_kb(gate.pid()) / 1024;
    assert!(megabytes < 400, "{megabytes} MB");
}

#[tokio::test]
async fn a_list_that_never_ends_or_is_none_is_refused_with_its_reason() {
    let one = json!([{"name": "t"}]);
    let servers = |dir: &Path| {
        let list =
            |name: &str, list: Value| scripted(dir, name, &json!({"list": list, "tools": one}));
        json!({
            "good": scripted(dir, "good", &one),
            "loops": list("loops", json!("loop")),
            "endless": list("endless", json!("endless")),
            "object": list("object", json!({"answer": {"tools": {"t": {}}}})),
            "text": list("text", json!({"answer": "t"})),
            "nothing": list("nothing", json!({"answer": {}})),
            "cursor": list("cursor", json!({"answer": {"tools": [], "nextCursor": 7}})),
        })
    };
    let gate = Gate::start(servers, json!({})).await;
    let client = gate.http().await;
    for (name, reason) in [
        ("loops", "the server repeats the cursor 'again'"),
        ("endless", "more than 1000 pages or 100000 tools"),
        ("object", "invalid response"),
        ("text", "invalid response"),
        ("nothing", "invalid response"),
        ("cursor", "invalid response"),
    ] {
        let entry = in_state(&client, name, "error").await;
        let error = entry["error"].as_str().unwrap();
        assert!(error.contains("tools/list: ") && error.contains(reason), "{name}: {error}");
        assert_eq!(
            client.code_of("write", &format!("{name}:t")).await,
            "UPSTREAM_UNAVAILABLE",
            "{name}"
        );
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
    let gate = Gate::scripted(odd_tools()).await;
    let client = gate.http().await;
    for name in ODD_NAMES {
        let answer = result(&client, &format!("s:{name}"), "{}").await;
        let params: Value = serde_json::from_str(text(&answer)).unwrap();
        assert_eq!(params["name"], name, "the server got another name than it listed");
    }
    assert_eq!(server(&client, "s").await["tool_count"], ODD_NAMES.len() + 1);
    let described = client.document("describe_tool", json!({"tool_ids": ["s:twice"]})).await;
    assert!(described.to_string().contains("the first"), "{described}");
    assert_ne!(result(&client, "s:twice", "{}").await["isError"], true);
    // For people, invisible characters are made visible.
    let table = stdout(&gate.cli(&["tools", "list"]).await);
    assert!(!table.contains('\u{200b}') && table.contains("s:dele⟨U+200B⟩te"), "{table}");
}

#[tokio::test]
async fn omitted_tools_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({"mcpServers": {"s": scripted(dir.path(), "s", &odd_tools())}});
    std::fs::write(dir.path().join("c.json"), config.to_string()).unwrap();
    let output = run(dir.path(), ["tools", "list", "-o", "json", "--config", "c.json"]).await;
    let list: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(list["total"], ODD_NAMES.len() + 1);
    let log = stderr(&output);
    for reason in [
        "tool 'twice' is listed twice; only the first entry is used",
        "tool name is empty",
        "tool name ' blank' has leading or trailing spaces",
        r"tool name 'esc\u{1b}[31m' contains a control character",
        r"tool name 'line\nbreak' contains a control character",
        "tool name of 257 bytes is too long",
        "not a tool object: 'name' is missing",
        "not a tool object: name: ",
        "not a tool object: expected an object",
    ] {
        assert_eq!(log.matches(reason).count(), 1, "{reason}: {log}");
    }
}

#[tokio::test]
async fn contradictory_hints_count_as_the_worse_one() {
    let both = json!({"readOnlyHint": true, "destructiveHint": true});
    let gate = Gate::scripted(json!([{"name": "t", "annotations": both}])).await;
    let client = gate.http().await;
    for (variant, operation, code) in [
        ("call_tool_read", "read", "SERVER_MISMATCH"),
        ("call_tool_write", "write", "SERVER_MISMATCH"),
        ("call_tool_destructive", "destructive", "ok"),
    ] {
        let arguments = json!({"name": "s:t", "intent": {"operation_type": operation}});
        let result = client.call(variant, arguments).await;
        assert_eq!(client::code(&result), code, "{variant}");
    }
}

/// Returns `depth` nested objects, under the key `a`.
fn nested(depth: usize) -> String {
    format!("{}{{}}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))
}

#[tokio::test]
async fn hostile_schemas_end_no_call_and_fetch_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let remote = format!("http://{}/schema.json", listener.local_addr().unwrap());
    let pattern = r#"{"properties":{"a":{"pattern":"^(a+)+$(?=x)"}}}"#;
    let tree = r##"{"properties":{"a":{"$ref":"#"}},"maxProperties":1}"##;
    let doubling = r##"{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["x"]},
                                 {"properties":{"a":{"$ref":"#"}},"required":["y"]}]}"##;
    let link = |n: usize| json!({"anyOf": [{"$ref": format!("#/$defs/{n}")}, {"$ref": format!("#/$defs/{n}")}]});
    let links: serde_json::Map<String, Value> = (0..40)
        .map(|n| (n.to_string(), if n == 0 { json!({"type": "string"}) } else { link(n - 1) }))
        .collect();
    let chain = json!({"$defs": links, "$ref": "#/$defs/39"}).to_string();
    let deep = format!("{}{{}}{}", r#"{"properties":{"a":"#.repeat(31), "}}".repeat(31));
    let (remote_ref, remote_dialect) =
        (json!({"$ref": remote}).to_string(), json!({"$schema": remote}).to_string());
    let (long, wide) = (format!(r#"{{"a":"{}!"}}"#, "a".repeat(10_000)), nested(100));
    let cases: Vec<(&str, &str, &str, &str)> = vec![
        // (tool, schema, arguments, outcome): arguments that cannot be checked pass.
        ("remote_ref", &remote_ref, "{}", "ok"),
        ("remote_dialect", &remote_dialect, "{}", "ok"),
        ("file_ref", r#"{"$ref":"file:///etc/passwd"}"#, "{}", "ok"),
        ("missing_ref", r##"{"$ref":"#/$defs/none"}"##, "{}", "ok"),
        ("no_type", r#"{"type":"nonsense"}"#, "{}", "ok"),
        ("no_schema", "[]", "{}", "ok"),
        ("no_pattern", r#"{"properties":{"a":{"pattern":"("}}}"#, r#"{"a":"x"}"#, "ok"),
        (
            "large_pattern",
            r#"{"properties":{"a":{"pattern":"((a{0,999}){0,999}){0,999}"}}}"#,
            r#"{"a":"x"}"#,
            "ok",
        ),
        // A schema that can never be checked in bounded time locks its tool.
        ("itself", r##"{"$ref":"#"}"##, "{}", "TOOL_BLOCKED"),
        (
            "each_other",
            r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a"}"##,
            "{}",
            "TOOL_BLOCKED",
        ),
        ("tree", tree, &wide, "ok"),
        ("tree_broken", tree, r#"{"a":{"a":{"a":1,"b":2}}}"#, "INVALID_ARGUMENTS"),
        ("deep", &deep, &wide, "ok"),
        ("pattern", pattern, &long, "INVALID_ARGUMENTS"),
        // Each level of the arguments doubles the work.
        ("doubling", doubling, &wide, "ok"),
        // Each definition doubles it, whatever the arguments.
        ("chain", &chain, "{}", "TOOL_BLOCKED"),
    ];
    let tools: Vec<String> = cases
        .iter()
        .map(|(name, schema, ..)| format!(r#"{{"name":"{name}","inputSchema":{schema}}}"#))
        .collect();
    let tools: Value = serde_json::from_str(&format!("[{}]", tools.join(","))).unwrap();
    let gate = Gate::scripted(tools).await;
    let client = gate.http().await;
    assert!(!found(&client, "remote ref tree deep").await.is_empty());
    for (name, _, arguments, outcome) in &cases {
        let answer = result(&client, &format!("s:{name}"), arguments).await;
        let code = testkit::client::refusal(&answer)["code"].as_str().unwrap_or("ok");
        assert_eq!(code, *outcome, "{name}: {answer}");
    }
    let connected = listener.accept().err().map(|error| error.kind());
    assert_eq!(connected, Some(std::io::ErrorKind::WouldBlock), "a remote schema was fetched");
}

/// A server whose schemas take long to check delays only its own callers, both while it waits for
/// approval and afterwards.
#[tokio::test]
async fn a_costly_schema_delays_only_its_own_callers() {
    let looking = |count: usize| {
        let patterns = vec![json!({"pattern": "(?=.*x)a"}); count];
        json!({"type": "object", "properties": {"a": {"allOf": patterns}}})
    };
    let annotations = json!({"destructiveHint": true});
    let tools = json!([
        {"name": "hang", "inputSchema": looking(400)},
        {"name": "slow", "inputSchema": looking(2)},
        {"name": "hinted", "inputSchema": looking(400), "annotations": annotations},
    ]);
    let servers = |dir: &Path| {
        let mut waiting = scripted(dir, "waiting", &tools);
        waiting["quarantined"] = true.into();
        json!({"waiting": waiting, "s": scripted(dir, "s", &tools),
               "quick": scripted(dir, "quick", &json!([{"name": "ok"}]))})
    };
    let mut gate = Gate::start(servers, json!({})).await;
    let client = gate.http().await;
    gate.server_when("waiting", |entry| entry["tool_count"] == 3).await;
    for server in ["s", "quick"] {
        gate.ready(server).await;
    }
    let arguments = json!({"a": "a".repeat(20_000)}).to_string();
    for (tool, status) in [
        ("waiting:hang", "server_quarantined"),
        ("waiting:slow", "server_quarantined"),
        ("waiting:hinted", "server_quarantined"),
        ("s:hang", "schema_too_costly"),
        ("s:hinted", "schema_too_costly"),
    ] {
        let calls = (0..4).map(|_| result(&client, tool, &arguments));
        for answer in futures_util::future::join_all(calls).await {
            let error = testkit::client::refusal(&answer);
            let found = (&error["code"], &error["details"]["status"]);
            assert_eq!(found, (&json!("TOOL_BLOCKED"), &json!(status)), "{tool}: {answer}");
        }
    }
    let slow = (0..4).map(|_| result(&client, "s:slow", &arguments));
    let slow = futures_util::future::join_all(slow);
    let others = async {
        for _ in 0..20 {
            assert_eq!(result(&client, "quick:ok", "{}").await["isError"], json!(null));
            let health = gate.rest(reqwest::Method::GET, "/healthz", None).await;
            assert_eq!(health.0, 200);
        }
    };
    let (answers, ()) = tokio::join!(slow, others);
    for answer in answers {
        let code = testkit::client::refusal(&answer)["code"].as_str().unwrap_or("ok");
        assert!(matches!(code, "ok" | "INVALID_ARGUMENTS"), "{answer}");
    }
    let (other, pid) = (gate.http().await, gate.pid().as_raw_nonzero());
    let under_way = tokio::spawn(async move { result(&other, "s:slow", &arguments).await });
    eventually(|| async { has_thread(pid.get(), "schema").then_some(()) }).await;
    assert_eq!(gate.end().await, Some(0));
    under_way.abort();
}

fn has_thread(pid: i32, name: &str) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.into_iter().any(|found| found.trim_end() == name)
}

#[tokio::test]
async fn a_storm_of_list_changes_is_answered_with_a_few_lists_and_the_last_one_stands() {
    let tools = json!([{"name": "storm", "x-do": {"storm": 1000}}]);
    let servers = |dir: &Path| json!({"s": accepting_new(recorded(dir, "s", &tools))});
    let gate = Gate::start(servers, json!({})).await;
    let client = gate.http().await;
    assert_eq!(client.code_of("write", "s:storm").await, "ok");
    eventually(|| async { (client.code_of("write", "s:v1000").await == "ok").then_some(()) }).await;
    let tools = client.document("upstream_servers", json!({"operation": "get", "name": "s"})).await;
    assert_eq!(tools["servers"][0]["tool_count"], 1);
    let asked = lists_asked(gate.dir.path(), "s");
    assert!((2..=10).contains(&asked), "{asked} lists for 1000 changes");
}

#[tokio::test]
async fn continuous_changes_do_not_delay_the_new_list() {
    let tools = json!([{"name": "storm", "x-do": {"storm": 150, "every_ms": 10}}]);
    let servers = |dir: &Path| json!({"s": recorded(dir, "s", &tools)});
    let gate = Gate::start(servers, json!({})).await;
    let client = gate.http().await;
    let lists = eventually(|| async { (lists_asked(gate.dir.path(), "s") >= 3).then_some(()) });
    tokio::select! {
        code = client.code_of("write", "s:storm") => panic!("{code}: the storm was waited for"),
        () = lists => {}
    }
}
