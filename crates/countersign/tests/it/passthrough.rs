//! Pass-through at each of its doors: a client of `/mcp/all`, `/mcp/s/<server>` or `mcp --server` sees
//! the servers' own tools and gets the servers' own responses.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::client::{Client, PATIENCE, text};
use testkit::foreign;
use testkit::gate::{Gate, http_client};
use testkit::program::{client_of, command, run, stderr, stdio_client};
use testkit::upstream::{accepting_new, scripted};

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

/// A definition and a result in a formatting that none of our programs would produce.
const DEFINITION: &str =
    r#"{ "x-number" : 1E2, "name" : "one", "inputSchema":{"type":"object" } }"#;
const RESULT: &str = r#"{ "content":[ ], "x-big":12345678901234567890123 }"#;

fn list_of(definitions: &[&str]) -> String {
    format!(r#"{{"tools":[{}]}}"#, definitions.join(","))
}

fn written(dir: &Path, name: &str) -> Value {
    let files = dir.join(name);
    std::fs::create_dir_all(&files).unwrap();
    std::fs::write(files.join("welcome"), WELCOME).unwrap();
    std::fs::write(files.join("list"), list_of(&[DEFINITION])).unwrap();
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

#[tokio::test]
async fn smoke_one_server_is_passed_through_unchanged_at_every_door() {
    let gate = Gate::start(|dir| json!({"w": written(dir, "w")}), json!({})).await;
    let alone = tempfile::tempdir().unwrap();
    let expected: Value = serde_json::from_str(WELCOME).unwrap();
    for (door, client) in doors(&gate, "w", alone.path()).await {
        assert_eq!(client.welcome["serverInfo"], expected["serverInfo"], "{door}");
        assert_eq!(client.welcome["instructions"], expected["instructions"], "{door}");
        let list = client.request_text("tools/list", "{}").await.unwrap();
        assert_eq!(list, list_of(&[DEFINITION]), "{door}");
        let result = client.request_text("tools/call", r#"{"name":"one"}"#).await.unwrap();
        assert_eq!(result, RESULT, "{door}");
        let unknown = client.refused("tools/call", json!({"name": "two"})).await;
        assert_eq!(unknown.code, -32602, "{door}: {}", unknown.message);
    }
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
        assert!(client.listed("tools/list").await.len() > 10, "{name}");
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
    let gate = Gate::start(servers, json!({})).await;
    let clients = [
        ("http", "", gate.http_at("/mcp/s/s").await),
        ("bridged", "", gate.stdio_server("s").await),
        ("all", "s__", gate.http_at("/mcp/all").await),
    ];
    let other = gate.stdio_server("u").await;
    clients[0].2.call("change", json!({})).await;
    for (door, prefix, client) in clients {
        assert_eq!(heard(&client).await, LIST_CHANGED, "{door}");
        let list = client.listed("tools/list").await;
        assert!(list.contains(&format!("{prefix}new")), "{door}: {list:?}");
        assert!(!list.contains(&format!("{prefix}change")), "{door}: {list:?}");
    }
    // A response comes after earlier notifications.
    other.request("ping", json!({})).await.unwrap();
    assert!(other.heard.lock().await.try_recv().is_err(), "another server changed");
}
