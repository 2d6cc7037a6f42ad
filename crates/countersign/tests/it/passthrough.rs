//! Pass-through: a client of `/mcp/all`, `/mcp/s/<server>` or `mcp --server` sees the servers' own
//! tools and gets the servers' own responses.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use mcp::message::raw;
use mcp::peer::{Ask, RequestError};
use serde_json::{Value, json};
use testkit::client::{Client, PATIENCE, text};
use testkit::foreign;
use testkit::gate::{Gate, http_client};
use testkit::program::{client_of, command, run, stderr, stdio_client};
use testkit::upstream::{accepting_new, counted, pids, scripted};
use testkit::wait::eventually;
use tokio_util::sync::CancellationToken;

use crate::foreign::servers;

pub(crate) const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// A server that responds with the content of files: `welcome`, `list` and `result`. It logs the
/// requested methods in `asked`.
pub(crate) const WRITTEN: &str = r#"
while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
        *'"initialize"'*) what=welcome ;;
        *'"tools/list"'*) what=list ;;
        *'"tools/call"'*) what=result ;;
        *) continue ;;
    esac
    echo $what >> "$0/asked"
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$(cat "$0/$what")"
done
"#;

const WELCOME: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"written","version":"0.1","x-number":1.50},"instructions":"Handle with care"}"#;

/// Definitions in a formatting that none of our programs would produce.
const DEFINITIONS: [&str; 2] = [
    r#"{ "x-number" : 1E2, "name" : "one", "description":"\u0041 name \/ \"name\"", "inputSchema":{"type":"object" ,"properties":{"name":{"type":"string","default":0.10}}},"_meta":{"z":1,"a":null} }"#,
    r#"{"inputSchema":{"type":"object"},"title":"é日本","annotations":{"readOnlyHint":true,"x-hint":[ ]},"name":"two","x-big":123456789012345678901234567890}"#,
];

const RESULT: &str = r#"{ "content":[{"type":"text","text":"\u0041","x-block":1.0}], "structuredContent":{"z":1E2,"a":[0.10]},"_meta":{"x":{"k":1.50}}, "x-big":12345678901234567890123 }"#;

fn list_of(definitions: &[&str]) -> String {
    format!(r#"{{"tools":[{}]}}"#, definitions.join(","))
}

fn written(dir: &Path, name: &str) -> Value {
    let files = dir.join(name);
    std::fs::create_dir_all(&files).unwrap();
    std::fs::write(files.join("welcome"), WELCOME).unwrap();
    std::fs::write(files.join("list"), list_of(&DEFINITIONS)).unwrap();
    std::fs::write(files.join("result"), RESULT).unwrap();
    json!({"command": "sh", "args": ["-c", WRITTEN, files]})
}

/// Connects to one server over HTTP, and over stdio with and without a running gate.
pub(crate) async fn doors(gate: &Gate, server: &str, alone: &Path) -> [(&'static str, Client); 3] {
    let config = gate.config_file();
    let args = ["--config", config.to_str().unwrap(), "--server", server];
    [
        ("http", gate.http_at(&format!("/mcp/s/{server}")).await),
        ("bridged", gate.stdio_server(server).await),
        ("in process", stdio_client(alone, &args, json!({}), vec![]).await),
    ]
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn code(result: &Value) -> &str {
    testkit::client::refusal(result)["code"].as_str().unwrap_or("none")
}

async fn refusal(client: &Client, name: &str) -> mcp::ErrorObject {
    let answer = client.request("tools/call", json!({"name": name, "arguments": {}})).await;
    match answer {
        Err(RequestError::Refused(error)) => error,
        other => panic!("{name}: {other:?}"),
    }
}

#[tokio::test]
async fn definitions_and_results_come_byte_for_byte() {
    let gate = Gate::start(|dir| json!({"w": written(dir, "w")}), json!({})).await;
    let alone = tempfile::tempdir().unwrap();
    for (door, client) in doors(&gate, "w", alone.path()).await {
        let list = client.request_text("tools/list", "{}").await.unwrap();
        assert_eq!(list, list_of(&DEFINITIONS), "{door}");
        let result = client.request_text("tools/call", r#"{"name":"one"}"#).await.unwrap();
        assert_eq!(result, RESULT, "{door}");
    }
    let all = gate.http_at("/mcp/all").await;
    let list = all.request_text("tools/list", "{}").await.unwrap();
    let renamed = list_of(&DEFINITIONS)
        .replace(r#""name" : "one""#, r#""name" : "w__one""#)
        .replace(r#""name":"two""#, r#""name":"w__two""#);
    assert_eq!(list, renamed);
    let result = all.request_text("tools/call", r#"{"name":"w__two"}"#).await.unwrap();
    assert_eq!(result, RESULT);
}

/// Returns a list without the tools that can be called only as a task, which the gate leaves out.
fn without_tasks(list: &str) -> String {
    #[derive(serde::Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        tools: Vec<&'a serde_json::value::RawValue>,
    }
    let List { tools } = serde_json::from_str(list).unwrap();
    let tools = tools.iter().map(|tool| tool.get());
    let kept: Vec<&str> =
        tools.filter(|tool| !tool.contains(r#""taskSupport":"required""#)).collect();
    list_of(&kept)
}

#[tokio::test]
async fn a_real_server_is_seen_as_it_is() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = servers::gate(|dir| json!({"e": servers::everything(), "g": servers::git(dir)}));
    let gate = gate.await;
    for (name, entry) in [("e", servers::everything()), ("g", servers::git(gate.dir.path()))] {
        let direct = direct(gate.dir.path(), &entry).await;
        let expected = direct.request_text("tools/list", "{}").await.unwrap();
        let expected = without_tasks(&expected);
        let client = gate.http_at(&format!("/mcp/s/{name}")).await;
        let list = client.request_text("tools/list", "{}").await.unwrap();
        assert!(names(&serde_json::from_str(&list).unwrap()).len() > 10, "{name}");
        assert_eq!(list, expected, "{name}");
        assert_eq!(client.welcome["serverInfo"], direct.welcome["serverInfo"], "{name}");
        assert_eq!(client.welcome["instructions"], direct.welcome["instructions"], "{name}");
    }
    let all = gate.http_at("/mcp/all").await;
    let sum = all.call("e__get-sum", json!({"a": 2, "b": 40})).await;
    assert_eq!(text(&sum), "The sum of 2 and 40 is 42.");
}

/// Connects a client to the server itself, without a gate.
pub(crate) async fn direct(dir: &Path, entry: &Value) -> Client {
    let args = entry["args"].as_array().cloned().unwrap_or_default();
    let child = command(Path::new(entry["command"].as_str().unwrap()), dir)
        .args(args.iter().map(|arg| arg.as_str().unwrap()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    client_of(child, json!({}), vec![]).await
}

#[tokio::test]
async fn one_server_introduces_itself_unless_it_is_locked() {
    let servers = |dir: &Path| {
        let mut kept = written(dir, "kept");
        kept["quarantined"] = true.into();
        json!({"w": written(dir, "w"), "kept": kept})
    };
    let gate = Gate::start(servers, json!({})).await;
    let alone = tempfile::tempdir().unwrap();
    let expected: Value = serde_json::from_str(WELCOME).unwrap();
    for (door, client) in doors(&gate, "w", alone.path()).await {
        assert_eq!(client.welcome["serverInfo"], expected["serverInfo"], "{door}");
        assert_eq!(client.welcome["instructions"], expected["instructions"], "{door}");
    }
    for view in ["/mcp/all", "/mcp/s/kept"] {
        let client = gate.http_at(view).await;
        assert_eq!(client.welcome["serverInfo"]["name"], "countersign", "{view}");
        assert_eq!(client.welcome.get("instructions"), None, "{view}");
    }
}

#[tokio::test]
async fn names_in_the_view_of_all_fit_and_stay_the_same() {
    let long = "x".repeat(200);
    let tools = json!([
        {"name": "plain"}, {"name": "a.b/c"}, {"name": "日本"}, {"name": "_t"}, {"name": long},
        {"name": format!("{long}y")}, {"name": "a:b:c"},
    ]);
    let server_names = ["s", "s_", "s.t", "s__t", "ssssssssssssssssssssssssssssssssssssssssssssss"];
    let mut seen = Vec::new();
    for order in [server_names.to_vec(), server_names.into_iter().rev().collect()] {
        let servers = |dir: &Path| {
            let named = order.iter().map(|name| {
                let mut entry = scripted(dir, name, &tools);
                entry["name"] = (*name).into();
                entry
            });
            named.collect()
        };
        let gate = Gate::start(servers, json!({})).await;
        let client = gate.http_at("/mcp/all").await;
        let list = client.request("tools/list", json!({})).await.unwrap();
        let names: BTreeSet<String> = names(&list).into_iter().map(str::to_owned).collect();
        assert_eq!(names.len(), server_names.len() * tools.as_array().unwrap().len());
        for name in &names {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!(name.len() <= 64 && name.chars().all(plain), "{name}");
            let result = client.call(name, json!({"called": name})).await;
            assert!(text(&result).contains(&format!(r#"{{"called":"{name}"}}"#)), "{result}");
        }
        assert!(names.contains("s__plain"), "{names:?}");
        seen.push(names);
    }
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn locked_tools_are_not_shown_and_not_called() {
    let tools = json!([{"name": "open"}, {"name": "shut"}]);
    let servers = |dir: &Path| {
        let mut partly = counted(dir, "partly", &tools);
        partly["disabled_tools"] = json!(["shut"]);
        let mut kept = scripted(dir, "kept", &tools);
        kept["quarantined"] = true.into();
        let mut off = counted(dir, "off", &tools);
        off["enabled"] = false.into();
        json!({"partly": partly, "kept": kept, "off": off})
    };
    let gate = Gate::start(servers, json!({})).await;
    let all = gate.http_at("/mcp/all").await;
    let list = all.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&list), ["partly__open"]);
    for name in ["partly__shut", "kept__open"] {
        let result = all.call(name, json!({})).await;
        assert_eq!(code(&result), "TOOL_BLOCKED", "{name}: {result}");
    }
    assert_eq!(refusal(&all, "off__open").await.code, -32602, "nobody knows what it would offer");
    let alone = tempfile::tempdir().unwrap();
    for (server, shown, locked, status) in [
        ("partly", vec!["open"], "shut", "disabled_by_config"),
        ("kept", vec![], "open", "server_quarantined"),
        ("off", vec![], "open", "server_disabled"),
    ] {
        for (door, client) in doors(&gate, server, alone.path()).await {
            let list = client.request("tools/list", json!({})).await.unwrap();
            assert_eq!(names(&list), shown, "{door} {server}");
            let result = client.call(locked, json!({})).await;
            assert_eq!(code(&result), "TOOL_BLOCKED", "{door} {server}: {result}");
            assert!(text(&result).contains(status), "{door} {server}: {result}");
        }
    }
    assert_eq!(pids(gate.dir.path(), "off"), [0; 0], "a server that is off is never started");
}

#[tokio::test]
async fn what_a_server_answers_comes_through_unchanged() {
    let gate = Gate::scripted(json!([
        {"name": "echo"}, {"name": "error", "x-do": "error"}, {"name": "is_error", "x-do": "is_error"},
    ]))
    .await;
    let alone = tempfile::tempdir().unwrap();
    for (door, client) in doors(&gate, "s", alone.path()).await {
        let params = r#"{"name":"echo","arguments":{"n": 1E2,"big":123456789012345678},"_meta":{"x-trace":{"k":1.50}},"x-other":{"ttl":60}}"#;
        let answer = client.request_text("tools/call", params).await.unwrap();
        let value: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(text(&value), params, "{door}");
        assert!(answer.contains(r#""x-number":1E2"#), "{door}: {answer}");
        assert!(answer.contains(r#""_meta":{"x-meta":{"kept":1.0}}"#), "{door}: {answer}");
        let error = refusal(&client, "error").await;
        assert_eq!((error.code, error.message.as_str()), (-32042, "no luck"), "{door}");
        assert!(error.text().get().contains(r#""data":{"why":"scripted"}"#), "{door}: {error:?}");
        let result = client.call("is_error", json!({})).await;
        let expected =
            json!({"content": [{"type": "text", "text": "went wrong"}], "isError": true});
        assert_eq!(result, expected, "{door}");
        let unknown = refusal(&client, "nothing").await;
        assert_eq!(unknown.code, -32602, "{door}: {}", unknown.message);
        assert!(unknown.message.contains("nothing"), "{door}: {}", unknown.message);
    }
    let all = gate.http_at("/mcp/all").await;
    assert_eq!(refusal(&all, "s__error").await.code, -32042);
    for name in ["s__nothing", "nothing", "s:echo", "echo", ""] {
        assert_eq!(refusal(&all, name).await.code, -32602, "{name}");
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_do_not_reach_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let tools = json!([{"name": "work", "inputSchema": schema, "x-do": {"work": {"log": log}}}]);
    let gate = Gate::scripted(tools).await;
    for (view, name) in [("/mcp/s/s", "work"), ("/mcp/all", "s__work")] {
        let client = gate.http_at(view).await;
        for arguments in [json!({}), json!({"n": "1"}), json!({"n": 1.5})] {
            let result = client.call(name, arguments.clone()).await;
            assert_eq!(code(&result), "INVALID_ARGUMENTS", "{view} {arguments}: {result}");
        }
        assert!(!log.exists(), "{view}");
        assert_ne!(client.call(name, json!({"n": 1})).await["isError"], true, "{view}");
        std::fs::remove_file(&log).unwrap();
    }
}

#[tokio::test]
async fn progress_and_cancellation_are_relayed() {
    let dir = tempfile::tempdir().unwrap();
    let (begun, marker) = (dir.path().join("begun"), dir.path().join("cancelled"));
    let gate = Gate::scripted(json!([
        {"name": "steps", "x-do": {"progress": 3}},
        {"name": "hang", "x-log": begun, "x-do": {"hang": marker}},
    ]))
    .await;
    let alone = tempfile::tempdir().unwrap();
    let mut clients: Vec<_> = doors(&gate, "s", alone.path()).await.map(|(d, c)| (d, "", c)).into();
    clients.push(("all", "s__", gate.http_at("/mcp/all").await));
    for (door, prefix, client) in clients {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let sink = steps.clone();
        let call = |tool: &str| {
            let params = json!({"name": format!("{prefix}{tool}"), "arguments": {}});
            Ask::new("tools/call", Some(raw(params.to_string())), PATIENCE)
        };
        let progress = move |params: mcp::message::Raw| {
            let params: Value = serde_json::from_str(params.get()).unwrap();
            sink.lock().unwrap().push(params["x-step"].as_u64().unwrap());
        };
        let ask = Ask { progress: Some(Arc::new(progress)), ..call("steps") };
        client.peer.request(ask).await.unwrap();
        assert_eq!(*steps.lock().unwrap(), [1, 2, 3], "{door}");

        let cancel = CancellationToken::new();
        let hanging = client.peer.request(Ask { cancel: cancel.clone(), ..call("hang") });
        tokio::pin!(hanging);
        tokio::select! {
            answer = &mut hanging => panic!("{door}: {answer:?}"),
            () = eventually(|| async { std::fs::remove_file(&begun).ok() }) => {}
        }
        assert!(!marker.exists(), "{door}");
        cancel.cancel();
        assert!(matches!(hanging.await, Err(RequestError::Cancelled)), "{door}");
        eventually(|| async { std::fs::remove_file(&marker).ok() }).await;
    }
}

#[tokio::test]
async fn progress_bears_the_token_that_the_client_chose() {
    let gate = Gate::scripted(json!([{"name": "steps", "x-do": {"progress": 2}}])).await;
    let session = open(&gate, "/mcp/s/s").await;
    let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {
        "name": "steps", "_meta": {"progressToken": "my own"}}});
    let response = post(&gate, "/mcp/s/s", &call).header("mcp-session-id", session);
    let events = response.send().await.unwrap().text().await.unwrap();
    assert_eq!(events.matches(r#""progressToken":"my own""#).count(), 2, "{events}");
}

fn post(gate: &Gate, path: &str, body: &Value) -> reqwest::RequestBuilder {
    http_client()
        .post(format!("http://{}{path}", gate.address))
        .bearer_auth(gate.secret("agent-token"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(body.to_string())
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
}

/// Opens a session and returns its id.
async fn open(gate: &Gate, path: &str) -> String {
    let response = post(gate, path, &initialize()).send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_session_belongs_to_the_view_that_it_was_opened_on() {
    let servers = |dir: &Path| {
        let tools = json!([{"name": "t"}]);
        json!({"s": scripted(dir, "s", &tools), "u": scripted(dir, "u", &tools)})
    };
    let gate = Gate::start(servers, json!({})).await;
    let views = ["/mcp", "/mcp/all", "/mcp/s/s", "/mcp/s/u"];
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    for own in views {
        let session = open(&gate, own).await;
        for view in views {
            let request = post(&gate, view, &list).header("mcp-session-id", &session);
            let status = request.send().await.unwrap().status().as_u16();
            assert_eq!(status, if view == own { 200 } else { 404 }, "{own} on {view}");
        }
    }
}

#[tokio::test]
async fn unknown_views_get_404_and_callers_without_a_token_401() {
    let gate = Gate::scripted(json!([{"name": "t"}])).await;
    for name in ["nothing", "S", "s%20", "%2e%2e"] {
        let path = format!("/mcp/s/{name}");
        let response = post(&gate, &path, &initialize()).send().await.unwrap();
        assert_eq!(response.status(), 404, "{path}");
        let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert_eq!(body["error"]["code"], "NOT_FOUND", "{path}");
    }
    for path in ["/mcp/all", "/mcp/s/s", "/mcp/s/nothing"] {
        for token in [None, Some("wrong")] {
            let mut request = http_client().post(format!("http://{}{path}", gate.address));
            request = request.header("content-type", "application/json");
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            let response = request.body(initialize().to_string()).send().await.unwrap();
            assert_eq!(response.status(), 401, "{path} {token:?}");
        }
    }
    let alone = tempfile::tempdir().unwrap();
    let config = gate.config_file();
    let config = config.to_str().unwrap();
    for dir in [gate.dir.path(), alone.path()] {
        let output = run(dir, ["mcp", "--config", config, "--server", "nothing"]).await;
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains("NOT_FOUND"), "{}", stderr(&output));
    }
}

/// Returns the next notification of the server.
pub(crate) async fn heard(client: &Client) -> String {
    let mut heard = client.heard.lock().await;
    tokio::time::timeout(PATIENCE, heard.recv()).await.expect("in time").expect("an open client")
}

#[tokio::test]
async fn clients_are_told_when_their_list_changes() {
    let servers = |dir: &Path| {
        let change = json!([{"name": "change", "x-do": {"become": [{"name": "new"}]}}]);
        let server = |name: &str| accepting_new(scripted(dir, name, &change));
        json!({"s": server("s"), "u": server("u")})
    };
    for door in ["http", "bridged", "all"] {
        let gate = Gate::start(servers, json!({})).await;
        let (client, prefix) = match door {
            "http" => (gate.http_at("/mcp/s/s").await, ""),
            "bridged" => (gate.stdio_server("s").await, ""),
            _ => (gate.http_at("/mcp/all").await, "s__"),
        };
        assert_eq!(client.welcome["capabilities"]["tools"]["listChanged"], true, "{door}");
        let other = gate.stdio_server("u").await;
        client.call(&format!("{prefix}change"), json!({})).await;
        assert_eq!(heard(&client).await, LIST_CHANGED, "{door}");
        let list = client.request("tools/list", json!({})).await.unwrap();
        assert!(names(&list).contains(&format!("{prefix}new").as_str()), "{door}: {list}");
        assert!(!names(&list).contains(&format!("{prefix}change").as_str()), "{door}: {list}");
        // A response comes after earlier notifications.
        other.request("ping", json!({})).await.unwrap();
        assert!(other.heard.lock().await.try_recv().is_err(), "{door}: another server changed");
    }
}

#[tokio::test]
async fn an_unannounced_list_change_is_detected_and_announced_once() {
    let servers = |dir: &Path| json!({"w": written(dir, "w")});
    let gate = Gate::start(servers, json!({"refresh_interval": "1s"})).await;
    let files = gate.dir.path().join("w");
    let client = gate.stdio_server("w").await;
    let listed = || {
        let asked = std::fs::read_to_string(files.join("asked")).unwrap();
        asked.lines().filter(|method| *method == "list").count()
    };
    let listed_again = async || {
        let before = listed();
        eventually(|| async { (listed() > before + 1).then_some(()) }).await;
        client.request("ping", json!({})).await.unwrap();
    };
    listed_again().await;
    assert!(client.heard.lock().await.try_recv().is_err(), "nothing has changed");
    std::fs::write(files.join("new"), list_of(&DEFINITIONS[1..])).unwrap();
    std::fs::rename(files.join("new"), files.join("list")).unwrap();
    assert_eq!(heard(&client).await, LIST_CHANGED);
    let list = client.request_text("tools/list", "{}").await.unwrap();
    assert_eq!(list, list_of(&DEFINITIONS[1..]));
    listed_again().await;
    assert!(client.heard.lock().await.try_recv().is_err(), "nothing else has changed");
}

#[tokio::test]
async fn a_restart_with_the_same_list_sends_no_notification() {
    let servers = |dir: &Path| {
        let tools = json!([{"name": "t"}]);
        json!({"s": counted(dir, "s", &tools)})
    };
    let gate = Gate::start(servers, json!({})).await;
    let client = gate.stdio_server("s").await;
    gate.ready("s").await;
    assert_eq!(gate.cli(&["upstream", "restart", "s"]).await.status.code(), Some(0));
    eventually(|| async { (pids(gate.dir.path(), "s").len() == 2).then_some(()) }).await;
    gate.ready("s").await;
    assert_ne!(client.call("t", json!({})).await["isError"], true);
    assert!(client.heard.lock().await.try_recv().is_err());
    gate.rewrite(|config| config["mcpServers"]["s"]["disabled_tools"] = json!(["t"]));
    assert_eq!(heard(&client).await, LIST_CHANGED);
    let list = client.request("tools/list", json!({})).await.unwrap();
    assert_eq!(names(&list), [""; 0]);
}
