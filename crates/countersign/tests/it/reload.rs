//! A config file that is rewritten while the gate runs: changes take effect, unchanged servers stay
//! connected, and no call is affected.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::{Client, text};
use testkit::gate::{Gate, http_client};
use testkit::program::{program, stderr, stdout};
use testkit::upstream::{counted, ended, pids, scripted};
use testkit::wait::eventually;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

/// The number of responses after a change before it counts as survived.
const CALLS_AFTER: usize = 50;

/// Returns a server that logs each call in `<name>.log`.
fn noting(dir: &Path, name: &str) -> Value {
    let log = dir.join(format!("{name}.log"));
    counted(dir, name, &json!([{"name": "note", "x-do": {"work": {"log": log, "ms": 1}}}]))
}

/// Returns the calls that reached a server, by id.
fn noted(dir: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join(format!("{name}.log"))).unwrap_or_default();
    let id = |line: &str| {
        let arguments: Value = serde_json::from_str(line).unwrap();
        arguments["id"].as_str().unwrap().to_owned()
    };
    text.lines().map(id).collect()
}

fn write(tool: &str, args: &Value) -> Value {
    json!({"name": tool, "args": args, "intent": {"operation_type": "write"}})
}

fn code(result: &Value) -> String {
    testkit::client::refusal(result)["code"].as_str().unwrap_or("ok").to_owned()
}

/// The outcome of each call, by its server and id.
type Ends = BTreeMap<(String, String), String>;

/// The signal to stop callers, and their progress.
#[derive(Default)]
struct Race {
    over: AtomicBool,
    answered: AtomicUsize,
}

impl Race {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    async fn go_on(&self) {
        let from = self.answered.load(Ordering::SeqCst);
        let enough = || self.answered.load(Ordering::SeqCst) >= from + CALLS_AFTER;
        eventually(|| async { enough().then_some(()) }).await;
    }
}

/// A client of `mcp` that sees each line, so that a duplicate response is noticed.
struct Wire {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Wire {
    async fn open(gate: &Gate) -> Wire {
        let mut child = program(gate.dir.path())
            .arg("mcp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut wire = Wire { stdin: child.stdin.take().unwrap(), lines, _child: child };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "wire", "version": "1"}});
        wire.send(
            &json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello}),
        )
        .await;
        assert_eq!(wire.read().await.unwrap()["id"], "hello");
        wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        wire
    }

    async fn send(&mut self, message: &Value) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// Keeps several calls in flight until the race is over, then waits for every response.
    async fn call_on(mut self, who: &str, servers: &[&str], race: &Race) -> Ends {
        const AT_ONCE: usize = 4;
        let mut ends = Ends::new();
        let mut asked = BTreeMap::new();
        let mut count = 0;
        loop {
            while asked.len() - ends.len() < AT_ONCE && !race.is_over() {
                let (server, id) = (servers[count % servers.len()], format!("{who}-{count}"));
                count += 1;
                let arguments = write(&format!("{server}:note"), &json!({"id": id}));
                let params = json!({"name": "call_tool_write", "arguments": arguments});
                self.send(
                    &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}),
                )
                .await;
                asked.insert(id, server.to_owned());
            }
            if ends.len() == asked.len() {
                break;
            }
            let answer = self.read().await.expect("the gate goes on");
            let id = answer["id"].as_str().unwrap().to_owned();
            let server = asked[&id].clone();
            let twice = ends.insert((server, id), code(&answer["result"]));
            assert_eq!(twice, None, "{answer}");
            race.answered.fetch_add(1, Ordering::SeqCst);
        }
        drop(self.stdin);
        assert_eq!(self.lines.next_line().await.unwrap(), None, "nothing was asked any more");
        ends
    }
}

async fn call_on(client: Client, who: &str, servers: &[&str], race: &Race) -> Ends {
    let mut ends = Ends::new();
    for count in 0.. {
        if race.is_over() {
            break;
        }
        let (server, id) = (servers[count % servers.len()], format!("{who}-{count}"));
        let arguments = write(&format!("{server}:note"), &json!({"id": id}));
        let result = client.call("call_tool_write", arguments).await;
        ends.insert((server.to_owned(), id), code(&result));
        race.answered.fetch_add(1, Ordering::SeqCst);
    }
    ends
}

#[tokio::test]
async fn no_call_is_lost_or_made_twice_while_servers_come_go_and_change() {
    const SERVERS: [&str; 3] = ["stays", "changes", "leaves"];
    let servers =
        |dir: &Path| SERVERS.iter().map(|name| (*name, noting(dir, name))).collect::<Value>();
    let gate = Gate::start(servers, json!({})).await;
    let dir = gate.dir.path();
    let race = Race::default();
    let change = async {
        race.go_on().await;
        let new = scripted(dir, "comes", &json!([{"name": "t"}]));
        gate.rewrite(|config| {
            let servers = config["mcpServers"].as_object_mut().unwrap();
            servers.insert("comes".to_owned(), new);
            servers.remove("leaves");
            servers["changes"]["args"].as_array_mut().unwrap().push("other".into());
        });
        gate.ready("comes").await;
        gate.server_when("leaves", |entry| entry["error"]["code"] == "NOT_FOUND").await;
        eventually(|| async { (pids(dir, "changes").len() == 2).then_some(()) }).await;
        gate.ready("changes").await;
        race.go_on().await;
        race.over.store(true, Ordering::SeqCst);
    };
    let (ends, ()) = tokio::join!(
        async {
            tokio::join!(
                Wire::open(&gate).await.call_on("wire", &SERVERS, &race),
                Wire::open(&gate).await.call_on("line", &SERVERS, &race),
                call_on(gate.http().await, "http", &SERVERS, &race),
                call_on(gate.http().await, "more", &SERVERS, &race),
            )
        },
        change
    );
    let ends: Ends = [ends.0, ends.1, ends.2, ends.3].into_iter().flatten().collect();
    for server in SERVERS {
        let made = noted(dir, server);
        let once: BTreeSet<&String> = made.iter().collect();
        assert_eq!(once.len(), made.len(), "{server}: a call was made twice");
        let answered = ends.iter().filter(|((name, _), _)| name == server);
        let (good, bad): (Vec<_>, Vec<_>) = answered.partition(|(_, end)| *end == "ok");
        let good: BTreeSet<&String> = good.into_iter().map(|((_, id), _)| id).collect();
        assert_eq!(good, once, "{server}: what was made is what was answered");
        let codes: BTreeSet<&str> = bad.into_iter().map(|(_, end)| end.as_str()).collect();
        match server {
            "leaves" => {
                assert!(codes.contains("TOOL_NOT_FOUND"), "{codes:?}");
                assert!(
                    codes
                        .iter()
                        .all(|code| ["TOOL_NOT_FOUND", "UPSTREAM_UNAVAILABLE"].contains(code)),
                    "{codes:?}"
                );
            }
            _ => assert_eq!(codes, BTreeSet::new(), "{server}"),
        }
    }
    assert_eq!(pids(dir, "stays").len(), 1, "what did not change stays connected");
    ended(pids(dir, "changes")[0]).await;
    ended(pids(dir, "leaves")[0]).await;
}

#[tokio::test]
async fn smoke_a_call_under_way_ends_where_it_began() {
    let servers = |dir: &Path| {
        let server = |name: &str| {
            let (log, until) = (dir.join(format!("{name}.log")), dir.join("go"));
            let tools = json!([
                {"name": "wait", "x-do": {"work": {"log": log, "until": until}}},
                {"name": "pid", "x-do": {"work": {}}},
            ]);
            counted(dir, name, &tools)
        };
        json!({"changes": server("changes"), "leaves": server("leaves")})
    };
    let gate = Gate::start(servers, json!({})).await;
    let dir = gate.dir.path();
    let client = gate.http().await;
    let began = |name: &str| dir.join(format!("{name}.log")).exists().then_some(());
    let wait = async |name: &str| {
        let arguments = write(&format!("{name}:wait"), &json!({"id": "1"}));
        client.document("call_tool_write", arguments).await["pid"].as_i64().unwrap()
    };
    let change = async {
        eventually(|| async { began("changes").and(began("leaves")) }).await;
        gate.rewrite(|config| {
            let servers = config["mcpServers"].as_object_mut().unwrap();
            servers.remove("leaves");
            servers["changes"]["args"].as_array_mut().unwrap().push("other".into());
        });
        gate.server_when("leaves", |entry| entry["error"]["code"] == "NOT_FOUND").await;
        let new = eventually(|| async { pids(dir, "changes").get(1).copied() }).await;
        let answer = client.document("call_tool_write", write("changes:pid", &json!({}))).await;
        assert_eq!(answer["pid"], new, "new calls go to the new one");
        std::fs::write(dir.join("go"), "").unwrap();
    };
    let (changed, left, ()) = tokio::join!(wait("changes"), wait("leaves"), change);
    assert_eq!(changed, i64::from(pids(dir, "changes")[0]));
    assert_eq!(left, i64::from(pids(dir, "leaves")[0]));
    ended(pids(dir, "changes")[0]).await;
    ended(pids(dir, "leaves")[0]).await;
}

#[tokio::test]
async fn rules_and_limits_change_without_a_new_connection() {
    let tools = json!([
        {"name": "one", "description": "walks"}, {"name": "two", "description": "walks"},
        {"name": "gone", "description": "walks", "annotations": {"destructiveHint": true}},
    ]);
    let servers = |dir: &Path| json!({"s": counted(dir, "s", &tools)});
    let gate = Gate::start(servers, json!({})).await;
    let client = gate.http().await;
    let found = async || {
        let found = client.document("retrieve_tools", json!({"query": "walks"})).await;
        found["tools"].as_array().unwrap().len()
    };
    let call =
        async |tool: &str| code(&client.call("call_tool_write", write(tool, &json!({}))).await);
    assert_eq!(found().await, 3);
    assert_eq!(call("s:one").await, "ok");
    assert_eq!(call("s:gone").await, "SERVER_MISMATCH");
    gate.rewrite(|config| {
        config["mcpServers"]["s"]["disabled_tools"] = json!(["one"]);
        config["intent_declaration"] = json!({"strict_server_validation": false});
        config["tools_limit"] = 1.into();
    });
    eventually(|| async { (call("s:one").await == "TOOL_BLOCKED").then_some(()) }).await;
    assert_eq!(call("s:two").await, "ok");
    assert_eq!(call("s:gone").await, "ok", "what the server says of it is now a warning");
    assert_eq!(found().await, 1);
    gate.rewrite(|config| {
        config["mcpServers"]["s"]["quarantined"] = true.into();
    });
    eventually(|| async { (call("s:two").await == "TOOL_BLOCKED").then_some(()) }).await;
    assert_eq!(pids(gate.dir.path(), "s").len(), 1);
}

#[tokio::test]
async fn a_server_is_switched_off_and_on() {
    let servers = |dir: &Path| json!({"s": counted(dir, "s", &json!([{"name": "t"}]))});
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    let client = gate.http().await;
    gate.rewrite(|config| config["mcpServers"]["s"]["enabled"] = false.into());
    gate.server_when("s", |entry| entry["state"] == "disabled").await;
    ended(pids(gate.dir.path(), "s")[0]).await;
    let result = client.call("call_tool_write", write("s:t", &json!({}))).await;
    assert_eq!(code(&result), "TOOL_BLOCKED");
    gate.rewrite(|config| config["mcpServers"]["s"]["enabled"] = true.into());
    gate.ready("s").await;
    let result = client.call("call_tool_write", write("s:t", &json!({}))).await;
    assert_eq!(code(&result), "ok");
    assert_eq!(pids(gate.dir.path(), "s").len(), 2);
}

#[tokio::test]
async fn the_page_keeps_its_address() {
    let gate = Gate::start(|_| json!({}), json!({})).await;
    let link = async || stdout(&gate.cli(&["page"]).await).trim().to_owned();
    let before = link().await;
    let (origin, _) = before.split_once("/#code=").unwrap();
    let name = origin.strip_prefix("http://").unwrap();
    let status = async |host: &str| {
        let get = http_client().get(format!("http://{}/page/app.mjs", gate.address));
        get.header("host", host).header("origin", origin).send().await.unwrap().status().as_u16()
    };
    assert_eq!((status(name).await, status("gate.example").await), (200, 403));
    gate.rewrite(|config| config["allowed_hosts"] = json!([gate.address, "gate.example"]));
    eventually(|| async { (status("gate.example").await == 200).then_some(()) }).await;
    assert_eq!(status(name).await, 200);
    assert!(link().await.starts_with(&format!("{origin}/#code=")));
}

#[tokio::test]
async fn a_bad_file_changes_nothing_and_shows_in_the_status() {
    let servers = |dir: &Path| json!({"s": counted(dir, "s", &json!([{"name": "t"}]))});
    let gate = Gate::start(servers, json!({"tools_limit": 5})).await;
    let client = gate.http().await;
    let good = std::fs::read_to_string(gate.config_file()).unwrap();
    let config_when = async |fits: &dyn Fn(&Value) -> bool| {
        eventually(|| async {
            let (_, status) = gate.rest(Method::GET, "/api/v1/status", None).await;
            fits(&status["config"]).then(|| status["config"].clone())
        })
        .await
    };
    assert_eq!(config_when(&|_| true).await, json!({"state": "ok"}));
    for (bad, words) in [
        (r#"{"tools_limit": 5"#.to_owned(), "line 1"),
        (r#"{"mcpServers": {"s": {"command": ""}}, "tools_limt": 1}"#.to_owned(), "tools_limit"),
        (good.replace(r#""tools_limit":5"#, r#""tools_limit":"many""#), "tools_limit"),
    ] {
        gate.rewrite_text(&bad);
        let told = |config: &Value| {
            config["state"] == "rejected" && config["error"].as_str().unwrap().contains(words)
        };
        config_when(&told).await;
        let result = client.call("call_tool_write", write("s:t", &json!({}))).await;
        assert_eq!(code(&result), "ok", "{bad}");
        gate.rewrite_text(&good);
        assert_eq!(config_when(&|config| config["state"] == "ok").await, json!({"state": "ok"}));
    }
    std::fs::remove_file(gate.config_file()).unwrap();
    config_when(&|config| config["state"] == "rejected").await;
    let result = client.call("call_tool_write", write("s:t", &json!({}))).await;
    assert_eq!(code(&result), "ok");
    gate.rewrite_text(&good);
    config_when(&|config| config["state"] == "ok").await;
    assert_eq!(pids(gate.dir.path(), "s").len(), 1, "it was connected all the time");
}

#[tokio::test]
async fn hosts_are_let_in_and_shut_out_again() {
    let gate = Gate::scripted(json!([])).await;
    let status = async || {
        let request = http_client().get(format!("http://{}/api/v1/status", gate.address));
        let request = request.bearer_auth(gate.secret("api-key")).header("host", "gate.example");
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(status().await, 403);
    gate.rewrite(|config| config["allowed_hosts"] = json!(["gate.example"]));
    eventually(|| async { (status().await == 200).then_some(()) }).await;
    gate.rewrite(|config| config["allowed_hosts"] = json!([]));
    eventually(|| async { (status().await == 403).then_some(()) }).await;
}

#[tokio::test]
async fn the_command_line_sees_what_was_reloaded() {
    let gate = Gate::scripted(json!([{"name": "t"}])).await;
    let more = scripted(gate.dir.path(), "more", &json!([{"name": "u"}]));
    gate.rewrite(|config| config["mcpServers"]["more"] = more);
    gate.ready("more").await;
    let output = gate.cli(&["tools", "list", "--server", "more"]).await;
    assert!(stdout(&output).contains("more:u"), "{}", stderr(&output));
    let result = gate.http().await.call("call_tool_write", write("more:u", &json!({"a": 1}))).await;
    assert!(text(&result).contains(r#"{"a":1}"#), "{result}");
}
