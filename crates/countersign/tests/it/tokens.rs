//! Tokens of agents: created with a scope, shown once, enforced on every interface, revoked at
//! once.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::{Client, text};
use testkit::gate::{Gate, http_client};
use testkit::program::{first_lines, program, run, stderr, stdout};
use testkit::upstream::scripted;
use testkit::wait::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::passthrough::{LIST_CHANGED, heard};

/// The time for everything that ends with a token, with a margin for a busy machine.
const PROMPTLY: Duration = Duration::from_secs(5);

fn tools() -> Value {
    json!([
        {"name": "peek", "description": "Peeks at it", "annotations": {"readOnlyHint": true}},
        {"name": "plain", "description": "Plain, says nothing of itself"},
        {"name": "drop", "description": "Drops it", "annotations": {"destructiveHint": true}},
    ])
}

async fn two_servers() -> Gate {
    let servers =
        |dir: &Path| json!({"s": scripted(dir, "s", &tools()), "t": scripted(dir, "t", &tools())});
    let profiles = json!({"narrow": {"servers": ["t"], "exclude": ["t:drop"]}});
    let gate = Gate::start(servers, json!({"profiles": profiles})).await;
    gate.ready("s").await;
    gate.ready("t").await;
    gate
}

async fn make(gate: &Gate, body: Value) -> String {
    let (status, answer) = gate.rest(Method::POST, "/api/v1/tokens", Some(body)).await;
    assert_eq!(status, 201, "{answer}");
    answer["token"].as_str().unwrap().to_owned()
}

async fn client(gate: &Gate, token: &str, path: &str) -> Client {
    gate.http_as(token, path, json!({}), vec![]).await
}

/// Returns the status of an initialization with this token.
async fn knock(gate: &Gate, token: &str, path: &str) -> u16 {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    let request = http_client()
        .post(format!("http://{}{path}", gate.address))
        .bearer_auth(token)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(hello.to_string());
    request.send().await.unwrap().status().as_u16()
}

/// Returns the names that a search finds.
async fn seen(client: &Client) -> Vec<String> {
    let arguments = json!({"query": "peeks plain drops it says nothing", "limit": 100});
    let found = client.document("retrieve_tools", arguments).await;
    let names =
        found["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names
}

async fn listed(client: &Client) -> Vec<String> {
    let list = client.request("tools/list", json!({})).await.unwrap();
    let names = list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_token_is_shown_once_and_listed_without_its_secret() {
    let gate = two_servers().await;
    let body = json!({"name": "ci", "servers": ["s"], "operations": ["read"], "expires_in": "30d"});
    let (status, made) = gate.rest(Method::POST, "/api/v1/tokens", Some(body.clone())).await;
    assert_eq!(status, 201, "{made}");
    let secret = made["token"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("cst_") && secret.len() > 40, "{secret}");
    let (status, again) = gate.rest(Method::POST, "/api/v1/tokens", Some(body)).await;
    assert_eq!((status, &again["error"]["code"]), (409, &json!("CONFLICT")), "{again}");
    let everything = json!({"name": "all", "servers": ["*"], "operations": ["read", "write", "destructive"],
        "surfaces": ["discovery", "passthrough"], "unannotated_tools": "deny"});
    make(&gate, everything).await;
    let (_, list) = gate.rest(Method::GET, "/api/v1/tokens", None).await;
    let tokens = list["tokens"].as_array().unwrap();
    assert_eq!(tokens.len(), 2, "{list}");
    for (name, value) in [
        ("name", json!("ci")),
        ("state", json!("valid")),
        ("servers", json!(["s"])),
        ("operations", json!(["read"])),
        ("surfaces", json!(["discovery"])),
        ("profile", json!(null)),
        ("unannotated_tools", json!("deny")),
        ("revoked_at", json!(null)),
    ] {
        assert_eq!(tokens[0][name], value, "{name}");
    }
    assert!(tokens[0]["expires_at"].is_string() && tokens[0].get("token").is_none());
    assert_eq!(tokens[1]["servers"], json!(["*"]));
    assert!(!list.to_string().contains(&secret) && !list.to_string().contains("hash"), "{list}");

    let shown = stdout(&gate.cli(&["token", "list"]).await);
    assert!(shown.contains("ci     valid  read                    s        discovery"), "{shown}");
    let output = gate.cli(&["token", "revoke", "ci"]).await;
    assert_eq!(stdout(&output), "revoked token 'ci'\n", "{}", stderr(&output));
    let output = gate.cli(&["token", "revoke", "ci"]).await;
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    assert!(stderr(&output).contains("NOT_FOUND"), "{}", stderr(&output));
    let (_, list) = gate.rest(Method::GET, "/api/v1/tokens", None).await;
    assert_eq!(list["tokens"][0]["state"], "revoked", "{list}");
    let (_, records) = gate.rest(Method::GET, "/api/v1/activity?type=token_change", None).await;
    let records = records["activities"].as_array().unwrap().clone();
    assert_eq!(records.len(), 3, "{records:?}");
    let sources: Vec<&str> = records.iter().map(|r| r["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["cli", "api", "api"]);
    assert!(records.iter().all(|record| record["receipt_id"].is_string()));
}

#[tokio::test]
async fn an_invalid_scope_is_rejected_with_the_allowed_values() {
    let gate = two_servers().await;
    for (body, field, words) in [
        (json!({"operations": ["read"]}), "name", "name is required"),
        (
            json!({"name": "t"}),
            "operations",
            "must name at least one of read, write, or destructive",
        ),
        (json!({"name": "t", "operations": []}), "operations", "must name at least one of"),
        (json!({"name": "t", "operations": "read"}), "operations", "must be a list of strings"),
        (
            json!({"name": "t", "operations": ["read", 1]}),
            "operations",
            "must be a list of strings",
        ),
        (
            json!({"name": "t", "operations": ["delete"]}),
            "operations",
            "must be read, write, or destructive",
        ),
        (
            json!({"name": "t", "operations": ["read"], "servers": []}),
            "servers",
            "must name at least one server",
        ),
        (
            json!({"name": "t", "operations": ["read"], "servers": ["*", "s"]}),
            "servers",
            "invalid name '*'",
        ),
        (
            json!({"name": "t", "operations": ["read"], "surfaces": []}),
            "surfaces",
            "discovery or passthrough",
        ),
        (
            json!({"name": "t", "operations": ["read"], "surfaces": ["rest"]}),
            "surfaces",
            "discovery or passthrough",
        ),
        (
            json!({"name": "t", "operations": ["read"], "profile": "nothing"}),
            "profile",
            "there is no profile 'nothing'",
        ),
        (
            json!({"name": "t", "operations": ["read"], "expires_in": "soon"}),
            "expires_in",
            "such as 30d",
        ),
        (
            json!({"name": "t", "operations": ["read"], "expires_in": "0s"}),
            "expires_in",
            "such as 30d",
        ),
        (
            json!({"name": "t", "operations": ["read"], "expires_in": 30}),
            "expires_in",
            "must be a string",
        ),
        (
            json!({"name": "t", "operations": ["read"], "expires_in": "99999999d"}),
            "expires_in",
            "too long",
        ),
        (
            json!({"name": "t", "operations": ["read"], "unannotated_tools": "ask"}),
            "unannotated_tools",
            "allow or deny",
        ),
        (json!({"name": "t", "operation": ["read"]}), "operation", "did you mean 'operations'?"),
        (
            json!({"name": "t", "operations": ["read"], "server": ["s"]}),
            "server",
            "did you mean 'servers'?",
        ),
        (json!({"name": "a b", "operations": ["read"]}), "name", "is not a valid token name"),
        (json!({"name": "ü/..", "operations": ["read"]}), "name", "is not a valid token name"),
    ] {
        let (status, answer) = gate.rest(Method::POST, "/api/v1/tokens", Some(body.clone())).await;
        let error = &answer["error"];
        assert_eq!((status, &error["code"]), (400, &json!("INVALID_REQUEST")), "{body}: {answer}");
        assert_eq!(error["details"]["field"], field, "{body}: {answer}");
        assert!(error["message"].as_str().unwrap().contains(words), "{body}: {answer}");
    }
    for name in ["admin", "agent-token"] {
        let body = json!({"name": name, "operations": ["read"]});
        let (status, answer) = gate.rest(Method::POST, "/api/v1/tokens", Some(body)).await;
        assert_eq!(status, 409, "{answer}");
    }
    for args in [
        &["token", "create", "t"][..],
        &["token", "create", "t", "--operations", "delete"],
        &["token", "create", "t", "--operations", "read", "--expires-in", "soon"],
        &["token", "create", "t", "--operations", "read", "--profile", "nothing"],
        &["token", "create", "a b", "--operations", "read"],
        &["token", "revoke", "nothing"],
        &["token", "revoke", "../api-key"],
    ] {
        let output = gate.cli(args).await;
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{args:?}");
    }
    let (_, list) = gate.rest(Method::GET, "/api/v1/tokens", None).await;
    assert_eq!(list, json!({"tokens": []}));
}

/// Reports whether any file below the folder contains the text.
fn holds(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match std::fs::read(&path) {
            _ if path.is_dir() => holds(&path, text),
            Ok(bytes) => bytes.windows(text.len()).any(|window| window == text.as_bytes()),
            // Sockets cannot be read.
            Err(_) => false,
        }
    })
}

#[tokio::test]
async fn the_secret_stands_alone_on_stdout_and_in_no_file_or_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("serve.log");
    let mut serving = program(dir.path())
        .args(["serve", "--listen", "127.0.0.1:0", "-o", "json"])
        .env("COUNTERSIGN_LOG", "trace")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let ready: Value = serde_json::from_str(&first_lines(&mut serving, 1).await).unwrap();
    for is_served in [true, false] {
        let name = format!("token-{is_served}");
        let output = program(dir.path())
            .args(["token", "create", &name, "--operations", "read,write"])
            .env("COUNTERSIGN_LOG", "trace")
            .output()
            .await
            .unwrap();
        let secret = stdout(&output).trim_end().to_owned();
        assert!(secret.starts_with("cst_") && !secret.contains(char::is_whitespace), "{secret}");
        assert!(stderr(&output).contains("it is not shown again"), "{}", stderr(&output));
        assert!(!stderr(&output).contains(&secret));
        if is_served {
            let url = format!("http://{}/mcp", ready["listen"].as_str().unwrap());
            let answer = http_client().post(url).bearer_auth(&secret).send().await.unwrap();
            assert_ne!(answer.status().as_u16(), 401, "it opens");
            serving.kill().await.unwrap();
        }
        assert!(!holds(dir.path(), &secret), "its secret lies in a file");
    }
    assert!(std::fs::metadata(&log).unwrap().len() > 0);
    let output =
        run(dir.path(), ["token", "create", "j", "--operations", "read", "-o", "json"]).await;
    let made: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert!(made["token"].is_string() && made["operations"] == json!(["read"]), "{made}");
    let help = stdout(&run(dir.path(), ["token", "create", "--help"]).await);
    assert!(
        help.contains("$(countersign token create") && help.contains("is printed on stdout"),
        "{help}"
    );
}

#[tokio::test]
async fn a_reader_reaches_nothing_that_could_change_something() {
    let gate = two_servers().await;
    let surfaces = json!(["discovery", "passthrough"]);
    let body = json!({"name": "reader", "operations": ["read"], "surfaces": surfaces});
    let token = make(&gate, body).await;
    let discovery = client(&gate, &token, "/mcp").await;
    assert_eq!(discovery.code_of("read", "s:peek").await, "ok");
    for class in ["read", "write", "destructive"] {
        assert_eq!(discovery.code_of(class, "s:plain").await, "NOT_PERMITTED", "{class}");
        let expected = if class == "destructive" { "NOT_PERMITTED" } else { "SERVER_MISMATCH" };
        assert_eq!(discovery.code_of(class, "s:drop").await, expected, "{class}");
    }
    assert_eq!(discovery.code_of("write", "s:peek").await, "NOT_PERMITTED");
    for (path, prefix) in [("/mcp/s/s", ""), ("/mcp/all", "s__")] {
        let through = client(&gate, &token, path).await;
        let result = through.call(&format!("{prefix}peek"), json!({})).await;
        assert_ne!(result["isError"], true, "{path}: {result}");
        for name in ["plain", "drop"] {
            let arguments = json!({"name": format!("{prefix}{name}"), "arguments": {}});
            match through.request("tools/call", arguments).await {
                Ok(result) => {
                    assert_eq!(result["isError"], true, "{path} {name}: {result}");
                    assert!(text(&result).contains("may not"), "{path} {name}: {result}");
                }
                Err(error) => assert!(error.to_string().contains("may not"), "{error}"),
            }
        }
    }
    let trusting =
        json!({"name": "trusting", "operations": ["read"], "unannotated_tools": "allow"});
    let token = make(&gate, trusting).await;
    let trusting = client(&gate, &token, "/mcp").await;
    assert_eq!(trusting.code_of("read", "s:plain").await, "ok");
    assert_eq!(trusting.code_of("write", "s:plain").await, "NOT_PERMITTED");
    assert_eq!(trusting.code_of("destructive", "s:drop").await, "NOT_PERMITTED");
    for path in ["/mcp/s/s", "/mcp/all"] {
        assert_eq!(knock(&gate, &token, path).await, 403, "it is good for discovery alone");
    }
}

#[tokio::test]
async fn smoke_a_token_sees_its_servers_and_its_profile_and_no_more() {
    let gate = two_servers().await;
    let all = json!(["read", "write", "destructive"]);
    let both = json!(["discovery", "passthrough"]);
    let body = json!({"name": "one", "servers": ["s"], "operations": all, "surfaces": both});
    let one = make(&gate, body).await;
    let session = client(&gate, &one, "/mcp").await;
    assert_eq!(seen(&session).await, ["s:drop", "s:peek", "s:plain"]);
    assert_eq!(session.code_of("read", "t:peek").await, "TOOL_NOT_FOUND");
    let servers = session.document("upstream_servers", json!({"operation": "list"})).await;
    assert_eq!(servers["servers"].as_array().unwrap().len(), 1, "{servers}");
    assert_eq!(knock(&gate, &one, "/mcp/s/t").await, 404, "as if it were not there");
    assert_eq!(knock(&gate, &one, "/mcp/s/nothing").await, 404);
    let through = client(&gate, &one, "/mcp/all").await;
    assert!(listed(&through).await.iter().all(|name| name.starts_with("s__")));

    let body = json!({"name": "held", "profile": "narrow", "operations": all});
    let held = make(&gate, body).await;
    let session = client(&gate, &held, "/mcp").await;
    assert_eq!(seen(&session).await, ["t:peek", "t:plain"]);
    assert_eq!(session.code_of("destructive", "t:drop").await, "TOOL_NOT_FOUND");

    let agent = gate.secret("agent-token");
    let narrowed = client(&gate, &agent, "/mcp/p/narrow").await;
    assert_eq!(seen(&narrowed).await, ["t:peek", "t:plain"]);
    assert_eq!(knock(&gate, &agent, "/mcp/p/nothing").await, 404);
    let nothing = client(&gate, &one, "/mcp/p/narrow").await;
    assert_eq!(seen(&nothing).await, Vec::<String>::new(), "both hold");
    let stdio = testkit::program::stdio_client(
        gate.dir.path(),
        &["--profile", "narrow"],
        json!({}),
        vec![],
    );
    assert_eq!(seen(&stdio.await).await, ["t:peek", "t:plain"]);
    let output = gate.cli(&["mcp", "--profile", "nothing"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("there is no such profile"), "{}", stderr(&output));
}

#[tokio::test]
async fn a_profile_holds_without_a_running_gate_too() {
    let dir = tempfile::tempdir().unwrap();
    let server = |name: &str| scripted(dir.path(), name, &tools());
    let config = json!({"mcpServers": {"s": server("s"), "t": server("t")},
                        "profiles": {"narrow": {"servers": ["t"]}}});
    let folder = dir.path().join("xdg-config/countersign");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let alone =
        testkit::program::stdio_client(dir.path(), &["--profile", "narrow"], json!({}), vec![])
            .await;
    assert_eq!(seen(&alone).await, ["t:drop", "t:peek", "t:plain"]);
    let output = run(dir.path(), ["mcp", "--profile", "nothing"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let output = run(dir.path(), ["mcp", "--profile", "narrow", "--server", "s"]).await;
    assert_eq!(output.status.code(), Some(1), "one of the two");
}

/// Opens a stream of MCP lines over `control.sock`, as `countersign mcp` does, with this token.
async fn lines(gate: &Gate, token: &str) -> Client {
    let mut stream = UnixStream::connect(gate.home().join("control.sock")).await.unwrap();
    let request = format!(
        "GET /mcp/lines HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         connection: upgrade\r\nupgrade: mcp-lines\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    let (reader, writer) = stream.into_split();
    Client::greet(json!({}), vec![], |service| mcp::lines::connect(reader, writer, service)).await
}

#[tokio::test]
async fn a_revoked_token_opens_nothing_and_ends_its_open_sessions() {
    let gate = two_servers().await;
    let body = |name: &str| json!({"name": name, "operations": ["read"], "surfaces": ["discovery", "passthrough"]});
    let token = make(&gate, body("gone")).await;
    let (stream, session) = (lines(&gate, &token).await, client(&gate, &token, "/mcp").await);
    assert_eq!(seen(&stream).await.len(), 2);
    assert_eq!(stream.code_of("read", "s:peek").await, "ok");
    let (status, answer) = gate.rest(Method::DELETE, "/api/v1/tokens/gone", None).await;
    assert_eq!((status, answer), (200, json!({"name": "gone", "revoked": true})));
    for path in ["/mcp", "/mcp/all", "/mcp/s/s"] {
        assert_eq!(knock(&gate, &token, path).await, 401, "{path}");
    }
    assert!(session.request("tools/list", json!({})).await.is_err(), "its session is not answered");
    let closed = tokio::time::timeout(PROMPTLY, stream.peer.closed()).await;
    assert!(closed.is_ok(), "its stream of lines has ended");
    assert!(stream.request("tools/list", json!({})).await.is_err());
    let (status, answer) = gate.rest(Method::DELETE, "/api/v1/tokens/gone", None).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("NOT_FOUND")), "{answer}");
    let again = make(&gate, body("gone")).await;
    assert_eq!(
        (knock(&gate, &again, "/mcp").await, knock(&gate, &token, "/mcp").await),
        (200, 401)
    );

    let mut short = body("short");
    short["expires_in"] = json!("1s");
    let token = make(&gate, short).await;
    assert_eq!(knock(&gate, &token, "/mcp").await, 200);
    eventually(|| async { (knock(&gate, &token, "/mcp").await == 401).then_some(()) }).await;
    let (_, list) = gate.rest(Method::GET, "/api/v1/tokens", None).await;
    let states: Vec<&str> =
        list["tokens"].as_array().unwrap().iter().map(|t| t["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["revoked", "valid", "expired"], "{list}");
}

/// Opens a session, and returns the stream on which its client waits for notifications.
async fn standing(gate: &Gate, token: &str, path: &str) -> reqwest::Response {
    let url = format!("http://{}{path}", gate.address);
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let post = |message: Value| {
        let post = http_client().post(&url).bearer_auth(token).body(message.to_string());
        let post = post.header("content-type", "application/json");
        post.header("accept", "application/json, text/event-stream")
    };
    let answer = post(initialize).send().await.unwrap();
    let session = answer.headers()["mcp-session-id"].clone();
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let sent = post(initialized).header("mcp-session-id", &session).send().await.unwrap();
    assert_eq!(sent.status(), 202);
    let listen = http_client().get(&url).bearer_auth(token).header("mcp-session-id", &session);
    let stream = listen.header("accept", "text/event-stream").send().await.unwrap();
    assert_eq!(stream.status(), 200);
    stream
}

/// Waits until a stream ends, whatever its content.
async fn end_of(what: &str, mut stream: reqwest::Response) {
    let ending = async { while let Ok(Some(_)) = stream.chunk().await {} };
    assert!(tokio::time::timeout(PROMPTLY, ending).await.is_ok(), "{what} goes on");
}

#[tokio::test]
async fn streams_end_as_soon_as_their_token_does() {
    let gate = two_servers().await;
    let body = |name: &str, expires_in: Option<&str>| {
        json!({"name": name, "operations": ["read"], "expires_in": expires_in,
               "surfaces": ["discovery", "passthrough"]})
    };
    let token = make(&gate, body("gone", None)).await;
    let other = make(&gate, body("other", None)).await;
    let paths = ["/mcp", "/mcp/p/narrow", "/mcp/all", "/mcp/s/s"];
    let mut streams = Vec::new();
    for path in paths {
        let mine = standing(&gate, &token, path).await;
        streams.push((path, mine, standing(&gate, &other, path).await));
    }
    let short = make(&gate, body("short", Some("3s"))).await;
    let expiring = standing(&gate, &short, "/mcp").await;
    let by_lines = lines(&gate, &token).await;
    assert_eq!(gate.rest(Method::DELETE, "/api/v1/tokens/gone", None).await.0, 200);
    for (path, mine, mut others) in streams {
        end_of(path, mine).await;
        // Its first event, which has no content, may be still to read.
        let ending = async { while let Ok(Some(_)) = others.chunk().await {} };
        let ended = tokio::time::timeout(Duration::from_millis(100), ending).await;
        assert!(ended.is_err(), "{path}: that of another token goes on");
    }
    assert!(tokio::time::timeout(PROMPTLY, by_lines.peer.closed()).await.is_ok());
    end_of("a stream whose token has expired", expiring).await;
    // Only the sessions of the other token are left.
    eventually(|| async {
        let url = format!("http://{}/metrics", gate.address);
        let page = http_client().get(url).bearer_auth(gate.secret("api-key")).send().await.unwrap();
        page.text().await.unwrap().contains("\ncountersign_mcp_sessions 4\n").then_some(())
    })
    .await;
}

/// The notification stream was opened while its token was valid.
#[tokio::test]
async fn a_revoked_tokens_standing_stream_receives_nothing() {
    let gate = two_servers().await;
    let body = json!({"name": "gone", "operations": ["read"], "surfaces": ["passthrough"]});
    let token = make(&gate, body).await;
    let mut stream = standing(&gate, &token, "/mcp/s/s").await;
    let switch = async |verb: &str| {
        let path = format!("/api/v1/tools/s/peek/{verb}");
        assert_eq!(gate.rest(Method::POST, &path, None).await.0, 200);
    };
    let next = async |stream: &mut reqwest::Response| {
        let reading = stream.chunk();
        tokio::time::timeout(std::time::Duration::from_secs(3), reading).await
    };
    // Before that, it gets the notification that the list has changed.
    switch("disable").await;
    let mut told = String::new();
    while !told.contains("list_changed") {
        let chunk = next(&mut stream).await.expect("news come").unwrap().expect("it goes on");
        told.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert_eq!(gate.rest(Method::DELETE, "/api/v1/tokens/gone", None).await.0, 200);
    switch("enable").await;
    loop {
        match next(&mut stream).await {
            // The stream has ended, or nothing comes.
            Err(_) | Ok(Err(_) | Ok(None)) => break,
            Ok(Ok(Some(chunk))) => {
                let said = String::from_utf8_lossy(&chunk).into_owned();
                assert!(!said.contains("list_changed"), "{said}");
            }
        }
    }
}

/// A client is notified once of each change that its token can see, and of no other.
#[tokio::test]
async fn a_changed_list_is_announced_only_to_those_who_see_the_change() {
    let gate = two_servers().await;
    let token = make(
        &gate,
        json!({"name": "narrow", "servers": ["s"], "operations": ["read"],
        "surfaces": ["passthrough"]}),
    )
    .await;
    let narrow = gate.http_as(&token, "/mcp/all", json!({}), vec![]).await;
    let wide = gate.http_at("/mcp/all").await;
    for client in [&narrow, &wide] {
        client.request("tools/list", json!({})).await.unwrap();
    }
    for path in ["t/peek", "s/peek"] {
        let path = format!("/api/v1/tools/{path}/disable");
        assert_eq!(gate.rest(Method::POST, &path, None).await.0, 200);
        assert_eq!(heard(&wide).await, LIST_CHANGED);
    }
    assert_eq!(heard(&narrow).await, LIST_CHANGED);
    for client in [&narrow, &wide] {
        client.request("ping", json!({})).await.unwrap();
        assert!(client.heard.lock().await.try_recv().is_err(), "no change is announced twice");
    }
}
