//! The rules that name what calls touch: the operator's mapping, the built-in table, and how both
//! are shown and tried.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::gate::Gate;
use testkit::program::{run, stderr, stdout};
use testkit::upstream::{counted, pids, scripted};
use testkit::wait::eventually;

use crate::passthrough::WRITTEN;

fn tool(name: &str, arguments: &[&str]) -> Value {
    let properties: Value = arguments.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
}

fn tickets() -> Value {
    json!([
        tool("get_ticket", &["project", "ticket"]),
        tool("copy_ticket", &["project", "from", "to"]),
        tool("search_tickets", &["project", "path"]),
    ])
}

fn rules() -> Value {
    json!({"system": "tracker.example", "rules": [
        {"tools": "search_*", "resource": null},
        {"tools": "copy_*", "resource": "{project:lower}#{to}", "reads": "{project:lower}#{from}"},
        {"tools": "*", "resource": "{project:lower}#{ticket}"},
    ]})
}

async fn gate() -> Gate {
    let servers = |dir: &Path| {
        let mut server = counted(dir, "s", &tickets());
        server["targets"] = rules();
        json!({"s": server})
    };
    Gate::start(servers, json!({})).await
}

/// Calls a tool and returns the target of its record, as system and resource.
async fn called(gate: &Gate, tool: &str, arguments: Value) -> Option<(String, String)> {
    let body = json!({"tool_variant": "call_tool_read", "name": tool, "args": arguments,
        "intent": {"operation_type": "read"}});
    let (status, answer) = gate.rest(Method::POST, "/api/v1/tools/call", Some(body)).await;
    assert_eq!(status, 200, "{answer}");
    let path = format!("/api/v1/activity/{}", answer["id"].as_str().unwrap());
    let (_, record) = gate.rest(Method::GET, &path, None).await;
    let text = |name: &str| record["target"][name].as_str().map(str::to_owned);
    Some((text("system")?, text("resource")?))
}

fn named(system: &str, resource: &str) -> Option<(String, String)> {
    Some((system.to_owned(), resource.to_owned()))
}

async fn tried(gate: &Gate, tool: &str, arguments: Value) -> (u16, Value) {
    let path = format!("/api/v1/tools/{}/targets", tool.replace(':', "/"));
    gate.rest(Method::POST, &path, Some(json!({"arguments": arguments}))).await
}

#[tokio::test]
async fn the_mapping_names_targets_and_is_reloaded_without_a_new_connection() {
    let gate = gate().await;
    let ticket = json!({"project": "Shop", "ticket": 12});
    assert_eq!(
        called(&gate, "s:get_ticket", ticket.clone()).await,
        named("tracker.example", "shop#12")
    );
    let search = json!({"project": "Shop", "path": "x"});
    assert_eq!(called(&gate, "s:search_tickets", search).await, None);
    gate.rewrite(|config| {
        config["mcpServers"]["s"]["targets"] =
            json!({"rules": [{"tools": "get_*", "resource": "{project}~{ticket}"}]});
    });
    let get = || called(&gate, "s:get_ticket", ticket.clone());
    eventually(|| async { (get().await == named("s", "Shop~12")).then_some(()) }).await;
    gate.rewrite(|config| {
        config["mcpServers"]["s"].as_object_mut().unwrap().remove("targets");
    });
    eventually(|| async { (get().await != named("s", "Shop~12")).then_some(()) }).await;
    assert_eq!(pids(gate.dir.path(), "s").len(), 1, "the server was never restarted");
}

#[tokio::test]
async fn a_rule_that_fits_no_tool_is_a_warning() {
    let gate = gate().await;
    gate.rewrite(|config| {
        config["mcpServers"]["s"]["targets"] = json!({"rules": [
            {"tools": "get_tickt", "resource": "{project}"},
            {"tools": "get_*", "resource": "{projct}/{ticket}"},
        ]});
    });
    let server = gate.server_when("s", |server| server.get("warnings").is_some()).await;
    let warnings = server["warnings"].as_array().unwrap();
    let texts: Vec<&str> = warnings.iter().map(|it| it["text"].as_str().unwrap()).collect();
    assert_eq!(
        texts,
        [
            "targets: 'get_tickt' matches no tool that the server lists; did you mean 'get_ticket'?",
            "targets: the rule for 'get_*' uses 'projct', but no tool that it matches has such an \
         argument; did you mean 'project'?",
        ]
    );
    assert_eq!(warnings[0]["kind"], "unfit_target_rule");
    let shown = stdout(&gate.cli(&["upstream", "get", "s"]).await);
    assert!(shown.starts_with("warning: unfit_target_rule: targets: 'get_tickt'"), "{shown}");
    gate.log_line("matches no tool that the server lists").await;
}

#[tokio::test]
async fn smoke_a_call_can_be_tried_without_being_made() {
    let gate = gate().await;
    let (status, answer) =
        tried(&gate, "s:copy_ticket", json!({"project": "Shop", "from": 1, "to": 2})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        answer,
        json!({"name": "s:copy_ticket", "basis": "config",
            "targets": [
                {"system": "tracker.example", "resource": "shop#2", "access": "write"},
                {"system": "tracker.example", "resource": "shop#1", "access": "read"},
            ],
            "rule": {"origin": "config", "system": "tracker.example",
                "resource": ["{project:lower}#{to}"], "reads": ["{project:lower}#{from}"]}})
    );
    let (_, answer) = tried(&gate, "s:search_tickets", json!({"path": "x"})).await;
    assert_eq!(
        (&answer["basis"], &answer["targets"]),
        (&json!("config: names no resource"), &json!([]))
    );
    let (_, answer) = tried(&gate, "s:get_ticket", json!({})).await;
    assert_eq!(
        (&answer["basis"], answer.get("rule")),
        (&json!("no resource in the arguments"), None)
    );
    for (body, words) in [
        (json!({}), "arguments is required"),
        (json!({"arguments": [1]}), "arguments must be an object"),
        (json!({"arguments": {}, "x": 1}), "unknown member 'x'"),
    ] {
        let path = "/api/v1/tools/s/get_ticket/targets";
        let (status, answer) = gate.rest(Method::POST, path, Some(body)).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("INVALID_REQUEST")));
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    }
    let (status, answer) = tried(&gate, "s:get_tickets", json!({})).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("NOT_FOUND")), "{answer}");
    let (_, records) = gate.rest(Method::GET, "/api/v1/activity?type=tool_call", None).await;
    assert_eq!(records["total"], 0, "nothing was called");
}

#[tokio::test]
async fn the_command_line_tries_a_call_and_shows_the_rules() {
    let gate = gate().await;
    let arguments = r#"{"project": "Shop", "ticket": 12}"#;
    let output = gate.cli(&["targets", "try", "s:get_ticket", arguments]).await;
    let expected = "tool      s:get_ticket\nnamed by  config\n\
                    template  {project:lower}#{ticket}\n\n\
                    SYSTEM           RESOURCE  ACCESS\ntracker.example  shop#12   read\n";
    assert_eq!(stdout(&output), expected, "{}", stderr(&output));
    let output = gate.cli(&["targets", "try", "s:search_tickets", "{}"]).await;
    let shown = stdout(&output);
    assert!(shown.contains("no target  config: names no resource"), "{shown}");
    let output = gate.cli(&["targets", "try", "s:get_ticket", arguments, "-o", "json"]).await;
    let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(shown["targets"][0]["resource"], "shop#12");
    for (arguments, words) in [
        (["s:get_ticket", "[1]"], "the arguments must be a JSON object"),
        (["s:get_ticket", "{"], "the arguments are not valid JSON"),
        (["get_ticket", "{}"], "expected 'server:tool'"),
        (["s:nothing", "{}"], "tool 's:nothing' not found"),
    ] {
        let output = gate.cli(&["targets", "try", arguments[0], arguments[1]]).await;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    let shown = stdout(&gate.cli(&["tools", "show", "s:copy_ticket"]).await);
    let rule = "{project:lower}#{to}, {project:lower}#{from} (read) in tracker.example (config)";
    assert!(shown.contains(rule), "{shown}");
    let (_, shown) = gate.rest(Method::GET, "/api/v1/tools/s/search_tickets", None).await;
    assert_eq!(shown["targets"][0]["resource"], json!([]), "{shown}");
    let (_, list) = gate.rest(Method::GET, "/api/v1/tools", None).await;
    assert_eq!(list["tools"][0].get("targets"), None, "only in a single tool");
}

#[tokio::test]
async fn without_a_running_gate_the_server_is_started_to_try_a_call() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = scripted(dir.path(), "s", &tickets());
    server["targets"] = rules();
    let config = json!({"mcpServers": {"s": server}});
    let file = dir.path().join("config.json");
    std::fs::write(&file, config.to_string()).unwrap();
    let (file, arguments) = (file.to_str().unwrap(), r#"{"project": "Shop", "ticket": 12}"#);
    let args = ["--config", file, "targets", "try", "s:get_ticket", arguments];
    let output = run(dir.path(), args).await;
    assert!(stdout(&output).contains("tracker.example  shop#12"), "{}", stderr(&output));
}

/// A server that gives itself this name and lists these tools.
fn calling_itself(dir: &Path, folder: &str, name: &str, tools: &Value) -> Value {
    let files = dir.join(folder);
    std::fs::create_dir_all(&files).unwrap();
    let welcome = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
        "serverInfo": {"name": name, "version": "1"}});
    std::fs::write(files.join("welcome"), welcome.to_string()).unwrap();
    std::fs::write(files.join("list"), json!({"tools": tools}).to_string()).unwrap();
    std::fs::write(files.join("result"), r#"{"content":[]}"#).unwrap();
    json!({"command": "sh", "args": ["-c", WRITTEN, files]})
}

#[tokio::test]
async fn a_well_known_server_is_one_system_under_two_names_and_its_name_gives_no_trust() {
    let tools = json!([
        tool("issue_read", &["owner", "repo", "issue_number"]),
        tool("issue_write", &["owner", "repo", "issue_number", "title"]),
        tool("issue_lookalike", &["owner", "repo"]),
    ]);
    let servers = |dir: &Path| {
        let mut quarantined = calling_itself(dir, "c", "github-mcp-server", &tools);
        quarantined["quarantined"] = json!(true);
        json!({
            "github": calling_itself(dir, "a", "github-mcp-server", &tools),
            "second": calling_itself(dir, "b", "github-mcp-server", &tools),
            "other": calling_itself(dir, "d", "somebody", &tools),
            "locked": quarantined,
        })
    };
    let gate = Gate::start(servers, json!({})).await;
    let issue = json!({"owner": "Octo", "repo": "shop", "issue_number": 12});
    let expected = named("github.com", "octo/shop#12");
    assert_eq!(called(&gate, "github:issue_read", issue.clone()).await, expected);
    assert_eq!(called(&gate, "second:issue_write", issue.clone()).await, expected);
    assert_ne!(called(&gate, "other:issue_read", issue.clone()).await, expected);
    let (_, shown) = gate.rest(Method::GET, "/api/v1/tools/second/issue_read", None).await;
    assert_eq!(shown["targets"][0]["origin"], "builtin:github", "{shown}");
    let (_, answer) = tried(&gate, "github:issue_lookalike", issue.clone()).await;
    assert_eq!(answer["targets"][0]["resource"], "octo/shop", "the schema lacks issue_number");
    // The name changes nothing about locks.
    let body = json!({"tool_variant": "call_tool_read", "name": "locked:issue_read",
        "args": issue, "intent": {"operation_type": "read"}});
    let (status, answer) = gate.rest(Method::POST, "/api/v1/tools/call", Some(body)).await;
    assert_ne!(status, 200, "{answer}");
}

/// The keys that name a resource for any tool do so on the record of a call, whatever else the tool
/// has.
#[tokio::test]
async fn every_key_for_any_tool_names_the_target_of_a_call() {
    let servers = |dir: &Path| json!({"s": scripted(dir, "s", &json!([{"name": "act"}]))});
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    for (arguments, system, resource) in [
        (json!({"url": "https://h/a?x=1"}), "web", None),
        (json!({"uri": "https://h/a"}), "web", Some("https://h/a")),
        (json!({"endpoint": "/v1/users"}), "s", Some("/v1/users")),
        (json!({"table": "events"}), "s", Some("events")),
        (json!({"collection": "events"}), "s", Some("events")),
        (json!({"table": "events", "database": "analytics"}), "s", Some("analytics.events")),
        (json!({"table": "events", "schema": "public"}), "s", Some("public.events")),
        (json!({"collection": "c", "dataset": "d"}), "s", Some("d.c")),
        (json!({"collection": "c", "keyspace": "k"}), "s", Some("k.c")),
        (json!({"owner": "o", "repo": "r"}), "s", Some("o/r")),
        (json!({"path": "/no/such/file"}), "filesystem", Some("/no/such/file")),
        (json!({"key": "k"}), "s", Some("k")),
        (json!({"bucket": "b"}), "s", Some("b")),
        (json!({"bucket": "b", "object": "o"}), "s", Some("b/o")),
        (json!({"object": "o"}), "s", Some("o")),
        (json!({"resource": "invoices/7"}), "s", Some("invoices/7")),
        (json!({"resource": "invoices/7", "title": "x", "value": 1}), "s", Some("invoices/7")),
        (json!({"resource_id": "i"}), "s", Some("resource/i")),
    ] {
        let found = called(&gate, "s:act", arguments.clone()).await;
        let (found_system, found_resource) = found.unwrap_or_default();
        assert_eq!(found_system, system, "{arguments}");
        assert!(resource.is_none_or(|it| it == found_resource), "{arguments}: {found_resource}");
    }
}
