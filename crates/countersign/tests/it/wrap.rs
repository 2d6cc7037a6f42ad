//! `countersign wrap`: a client and its server communicate as if directly connected, byte for byte,
//! and every call is recorded.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use axum::Router;
use mcp::limits::BATCH_MESSAGES_MAX;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::client::code;
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::{command, program};
use testkit::upstream::{ended, pids, scripted};
use testkit::wait::eventually;
use testkit::wire::Wire;
use tokio::net::TcpListener;

use crate::foreign::servers;
use crate::ledger::{record, records, records_when, whole_chains};
use crate::outcome::{NAMED_TWICE, warnings};

/// Messages in a formatting that none of our programs would produce.
const LINES: [&str; 8] = [
    r#"{ "jsonrpc":"2.0", "x-first":1E2, "id":"hello" ,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"x-able":{"a":1.50}},"clientInfo":{"version":"1","name":"wire","x":[ ]}}}"#,
    r#"{"method":"notifications/initialized","jsonrpc":"2.0","x-note":[1.0, 2e0]}"#,
    r#"{"jsonrpc":"2.0","method":"ping","id":1}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"x":1.0}}}"#,
    r#"{"id":3,"jsonrpc":"2.0","params":{ "arguments":{"n":1E2,"big":123456789012345678901234567890,"path":"\u002fx"}, "name":"read","x-extra":[0.10],"_meta":{"k":null} },"method":"tools/call"}"#,
    r#"{"jsonrpc":"2.0","id":"4","method":"x/unknown","params":{"a":1.0}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"error","arguments":{}}}"#,
    r#"{"jsonrpc":"2.0","id":-6,"method":"tools/call","params":{"name":"is_error"}}"#,
];

fn tools(dir: &Path) -> Value {
    json!([
        {"name": "read", "annotations": {"readOnlyHint": true}, "x-number": 1.0},
        {"name": "write", "x-do": {"work": {"log": dir.join("write.log")}}},
        {"name": "delete", "annotations": {"destructiveHint": true}},
        {"name": "error", "x-do": "error"},
        {"name": "is_error", "x-do": "is_error"},
        {"name": "progress", "x-do": {"progress": 3}},
        {"name": "hang", "x-do": {"hang": dir.join("cancelled")}},
        {"name": "ask", "x-do": {"ask": "roots/list"}},
        {"name": "die", "x-do": "die"},
    ])
}

/// Returns a config entry as a command line.
pub(crate) fn words(entry: &Value) -> Vec<OsString> {
    let args = entry["args"].as_array().cloned().unwrap_or_default();
    let words = [entry["command"].clone()].into_iter().chain(args);
    words.map(|word| word.as_str().unwrap().into()).collect()
}

pub(crate) fn wrapped(dir: &Path, name: &str, words: &[OsString]) -> Wire {
    let mut command = program(dir);
    command.args(["wrap", "--name", name, "--"]).args(words);
    Wire::open(command)
}

fn direct(dir: &Path, words: &[OsString]) -> Wire {
    let mut command = command(Path::new(&words[0]), dir);
    command.args(&words[1..]);
    Wire::open(command)
}

fn script(dir: &Path) -> Vec<OsString> {
    words(&scripted(dir, "s", &tools(dir)))
}

async fn open(dir: &Path) -> Wire {
    let mut wire = wrapped(dir, "s", &script(dir));
    wire.greet().await;
    wire
}

fn home(dir: &TempDir) -> PathBuf {
    dir.path().join("home")
}

#[tokio::test]
async fn smoke_messages_pass_byte_for_byte_in_both_directions() {
    let dir = TempDir::new().unwrap();
    let noted = |log: &str| {
        let note = r#"tee "$0" | exec "$@""#.into();
        let mut words: Vec<OsString> =
            vec!["sh".into(), "-c".into(), note, dir.path().join(log).into()];
        words.extend(script(dir.path()));
        words
    };
    let mut plain = direct(dir.path(), &noted("plain.log"));
    let mut wrap = wrapped(dir.path(), "s", &noted("wrap.log"));
    for line in LINES {
        plain.say(line).await;
        wrap.say(line).await;
        let message: Value = serde_json::from_str(line).unwrap();
        if let Some(id) = message.get("id") {
            assert_eq!(wrap.answer(id.clone()).await, plain.answer(id.clone()).await, "{line}");
        }
    }
    // `tee` may pass a line on before it writes it down, and the gate asks for the list.
    let told = eventually(|| async {
        let told = std::fs::read_to_string(dir.path().join("wrap.log")).ok()?;
        (told.lines().count() > LINES.len()).then_some(told)
    })
    .await;
    let (own, passed): (Vec<&str>, Vec<&str>) =
        told.lines().partition(|line| line.contains("countersign-list-"));
    assert_eq!(passed, LINES);
    assert_eq!(own.len(), 1, "the gate asks for the list on its own account: {own:?}");
}

#[tokio::test]
async fn tools_that_the_operator_locked_are_neither_listed_nor_called() {
    let dir = TempDir::new().unwrap();
    let config = dir.path().join("config.json");
    let mut server = scripted(dir.path(), "s", &tools(dir.path()));
    server["disabled_tools"] = json!(["delete"]);
    std::fs::write(&config, json!({"mcpServers": {"s": server}}).to_string()).unwrap();
    let mut command = program(dir.path());
    command.arg("--config").arg(&config).args(["wrap", "--name", "s", "--"]);
    command.args(script(dir.path()));
    let mut wire = Wire::open(command);
    wire.greet().await;
    wire.say(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#).await;
    let list: Value = serde_json::from_str(&wire.answer("list").await).unwrap();
    let listed = list["result"]["tools"].as_array().unwrap();
    assert_eq!(listed.len(), 8);
    assert!(listed.iter().all(|tool| tool["name"] != "delete"));
    assert_eq!(listed[0]["x-number"].to_string(), "1.0", "the rest stays as it was");
    let refused = wire.call("call", "delete", json!({})).await;
    assert_eq!(testkit::client::refusal(&refused["result"])["code"], "TOOL_BLOCKED");
}

/// Compares a client's view of a real server, directly and through the gate.
async fn compare_real(name: &str, dir: &Path, entry: &Value, calls: &[(&str, Value)]) {
    let mut plain = direct(dir, &words(entry));
    let mut wrap = wrapped(dir, name, &words(entry));
    assert_eq!(wrap.greet().await, plain.greet().await, "{name}");
    let list = r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#;
    for wire in [&mut plain, &mut wrap] {
        wire.say(list).await;
    }
    assert_eq!(wrap.answer("list").await, plain.answer("list").await, "{name}");
    for (n, (tool, args)) in calls.iter().enumerate() {
        let call = json!({"jsonrpc": "2.0", "id": n, "method": "tools/call",
            "params": {"name": tool, "arguments": args}});
        for wire in [&mut plain, &mut wrap] {
            wire.say(&call.to_string()).await;
        }
        assert_eq!(wrap.answer(n).await, plain.answer(n).await, "{name} {tool}");
    }
    wrap.close();
    wrap.ended().await;
}

/// Serves a text over HTTP; returns its address.
async fn page(text: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().fallback(move || async move { text });
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/page")
}

/// They are for the client's own user interface, which is on this side of the gate.
#[tokio::test]
async fn tools_for_apps_pass() {
    let dir = TempDir::new().unwrap();
    let tools = json!([{"name": "refresh", "_meta": {"ui": {"visibility": ["app"]}}}]);
    let mut wire = wrapped(dir.path(), "s", &words(&scripted(dir.path(), "s", &tools)));
    wire.greet().await;
    wire.say(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#).await;
    let list: Value = serde_json::from_str(&wire.answer("list").await).unwrap();
    assert_eq!(list["result"]["tools"][0]["name"], "refresh");
    let called = wire.call("call", "refresh", json!({})).await;
    assert_eq!(called["result"]["content"][0]["type"], "text", "{called}");
    assert_ne!(called["result"]["isError"], true, "{called}");
}

#[tokio::test]
async fn real_servers_answer_as_they_do_without_the_gate() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let home = home(&dir);
    let dir = dir.path();
    let sum =
        [("get-sum", json!({"a": 2, "b": 40})), ("echo", json!({"message": "ünï \u{1f600}"}))];
    compare_real("everything", dir, &servers::everything(), &sum).await;
    let filesystem = servers::filesystem(dir);
    let file = dir.join("files/a.txt");
    let calls = [
        ("write_file", json!({"path": file, "content": "words"})),
        ("read_text_file", json!({"path": file})),
        ("read_text_file", json!({"path": dir.join("config.json")})),
    ];
    compare_real("fs", dir, &filesystem, &calls).await;
    let thought = json!({"thought": "first", "thoughtNumber": 1, "totalThoughts": 1,
        "nextThoughtNeeded": false});
    let calls = [("sequentialthinking", thought)];
    compare_real("thinking", dir, &servers::sequential_thinking(), &calls).await;
    let calls = [("fetch", json!({"url": page("a page on loopback").await, "raw": true}))];
    compare_real("fetch", dir, &servers::fetch(), &calls).await;
    let found = records_when(&home, |records| records.len() == 7).await;
    let fs: Vec<&Value> = found.iter().filter(|record| record["server"] == "fs").collect();
    assert_eq!(fs.len(), 3);
    for (record, (class, status)) in
        fs.iter().zip([("destructive", "success"), ("read", "success"), ("read", "error")])
    {
        assert_eq!(
            (&record["effective_class"], &record["status"]),
            (&json!(class), &json!(status))
        );
        assert_eq!(record["system"], "filesystem");
    }
    assert_eq!(fs[0]["resource"], file.to_str().unwrap());
    assert_eq!(std::fs::read_to_string(file).unwrap(), "words");
}

#[tokio::test]
async fn calls_are_recorded_with_target_and_class() {
    let dir = TempDir::new().unwrap();
    let mut wire = open(dir.path()).await;
    for (tool, class) in [("read", "read"), ("write", "write"), ("delete", "destructive")] {
        wire.call(tool, tool, json!({"owner": "o", "repo": "r"})).await;
        let record = record(&home(&dir), tool).await;
        assert_eq!(record["effective_class"], class, "{record}");
        assert_eq!(record["action"]["target"], json!({"system": "s", "resource": "o/r"}));
        assert_eq!((&record["surface"], &record["client"]), (&json!("wrap"), &json!("wire")));
        assert_eq!((&record["request_id"], &record["status"]), (&json!(tool), &json!("success")));
    }
}

#[tokio::test]
async fn an_unknown_tool_is_refused_as_servers_do() {
    let dir = TempDir::new().unwrap();
    let mut wire = open(dir.path()).await;
    let answer = wire.call("u", "none", json!({"path": "/x"})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let record = record(&home(&dir), "none").await;
    assert_eq!(
        (&record["status"], &record["outcome"]["status"]),
        (&json!("blocked"), &json!("failure"))
    );
    let receipt = record["receipt_id"].as_str();
    assert!(receipt.is_some_and(|id| !id.is_empty()), "it is signed: {record}");
}

#[tokio::test]
async fn a_result_that_names_a_member_twice_passes_with_a_warning_on_its_record() {
    let dir = TempDir::new().unwrap();
    let result = |text: &str| json!({"return": text});
    let tools = json!([
        {"name": "twice", "x-do": result(r#"{"content":[],"structuredContent":{"n":1,"n":2}}"#)},
        {"name": "once", "x-do": result(r#"{"content":[],"structuredContent":{"n":1}}"#)},
    ]);
    let mut wire = wrapped(dir.path(), "s", &words(&scripted(dir.path(), "s", &tools)));
    wire.greet().await;
    for (tool, is_told) in [("twice", true), ("once", false)] {
        let answer = wire.call(tool, tool, json!({})).await;
        assert_eq!(code(&answer["result"]), "ok", "{answer}");
        let record = record(&home(&dir), tool).await;
        let warnings = warnings(dir.path(), &record).await;
        assert_eq!(warnings.contains(NAMED_TWICE), is_told, "{tool}: {warnings}");
    }
}

#[tokio::test]
async fn progress_cancellation_and_questions_pass() {
    let dir = TempDir::new().unwrap();
    let mut wire = open(dir.path()).await;
    wire.say(r#"{"jsonrpc":"2.0","id":"p","method":"tools/call","params":{"name":"progress","_meta":{"progressToken":"t"}}}"#).await;
    for step in 1..=3 {
        let line =
            wire.receive_until(|message| message["method"] == "notifications/progress").await;
        let told: Value = serde_json::from_str(&line).unwrap();
        let expected = json!({"progressToken": "t", "progress": step, "total": 3, "x-step": step});
        assert_eq!(told["params"], expected);
    }
    wire.answer("p").await;
    wire.say(r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"ask"}}"#).await;
    let asked = wire.receive_until(|message| message["method"] == "roots/list").await;
    let asked: Value = serde_json::from_str(&asked).unwrap();
    let roots = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": "file:///mine"}]}});
    wire.say(&roots.to_string()).await;
    assert!(wire.answer("a").await.contains("file:///mine"));
    wire.say(r#"{"jsonrpc":"2.0","id":"h","method":"tools/call","params":{"name":"hang"}}"#).await;
    let begun = |records: &[Value]| records.iter().any(|record| record["tool"] == "hang");
    records_when(&home(&dir), begun).await;
    wire.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"h"}}"#)
        .await;
    let hang = record(&home(&dir), "hang").await;
    assert_eq!(
        (&hang["status"], &hang["error_code"], &hang["runtime"]["outcome"]),
        (&json!("unknown"), &json!("CANCELLED"), &json!("unknown"))
    );
    let told = dir.path().join("cancelled");
    eventually(|| async { told.exists().then_some(()) }).await;
    wire.call("after", "read", json!({})).await;
    record(&home(&dir), "read").await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_used_leaves_the_outcome_unknown() {
    let dir = TempDir::new().unwrap();
    let cut = json!({"say": r#"{"jsonrpc":"2.0","id":"$id","result":{"#, "hang": true});
    let tools = json!([{"name": "cut", "x-do": cut}, {"name": "null", "x-do": {"return": "null"}}]);
    let mut wire = wrapped(dir.path(), "s", &words(&scripted(dir.path(), "s", &tools)));
    wire.greet().await;
    for tool in ["cut", "null"] {
        let answer = wire.call(tool, tool, json!({})).await;
        let refused = testkit::client::refusal(&answer["result"]);
        assert_eq!(refused["code"], "OUTCOME_UNKNOWN", "{answer}");
        assert_eq!(record(&home(&dir), tool).await["status"], "unknown", "{tool}");
    }
}

#[tokio::test]
async fn an_answer_within_a_batch_is_recorded_before_it_is_passed_on() {
    let first = r#"[{"jsonrpc":"2.0","id":"$id","result":{"content":[]}}"#;
    let more = r#",{"jsonrpc":"2.0","method":"notifications/x"}"#.repeat(BATCH_MESSAGES_MAX);
    for (version, more, code, status) in [
        ("2025-03-26", "", "ok", "success"),
        ("2025-03-26", more.as_str(), "OUTCOME_UNKNOWN", "unknown"),
        ("2025-06-18", "", "OUTCOME_UNKNOWN", "unknown"),
    ] {
        let batch = format!("{first}{more}]");
        let tools = json!([{"name": "batch", "x-do": {"say": batch, "hang": true}}]);
        let dir = TempDir::new().unwrap();
        let mut wire = wrapped(dir.path(), "s", &words(&scripted(dir.path(), "s", &tools)));
        let hello = json!({"protocolVersion": version, "capabilities": {},
                           "clientInfo": {"name": "wire", "version": "1"}});
        wire.ask("hello", "initialize", hello).await;
        wire.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        let answer = wire.call("b", "batch", json!({})).await;
        assert_eq!(testkit::client::code(&answer["result"]), code, "{answer}");
        assert_eq!(record(&home(&dir), "batch").await["status"], status);
    }
}

#[tokio::test]
async fn a_server_that_dies_fails_its_call_and_its_exit_code_is_passed_on() {
    let dir = TempDir::new().unwrap();
    let mut wire = open(dir.path()).await;
    let answer = wire.call("d", "die", json!({"path": "/x"})).await;
    let code = &testkit::client::refusal(&answer["result"])["code"];
    assert_eq!(code, "OUTCOME_UNKNOWN", "{answer}");
    assert_eq!(wire.ended().await.code(), Some(128 + Signal::ABORT.as_raw()));
    let record = record(&home(&dir), "die").await;
    assert_eq!((&record["status"], &record["resource"]), (&json!("unknown"), &json!("/x")));
    let chains = whole_chains(&home(&dir));
    assert_eq!(chains[0].0["status"], "complete");
}

#[tokio::test]
async fn when_the_client_leaves_the_server_ends_and_its_exit_code_is_passed_on() {
    let dir = TempDir::new().unwrap();
    for (command, code) in [("cat > /dev/null; exit 7", 7), ("cat > /dev/null", 0), ("exit 9", 9)] {
        let words: Vec<OsString> = vec!["sh".into(), "-c".into(), command.into()];
        let mut wire = wrapped(dir.path(), "s", &words);
        wire.close();
        assert_eq!(wire.ended().await.code(), Some(code), "{command}");
    }
    let mut wire = wrapped(dir.path(), "s", &["/no/such/program".into()]);
    assert_eq!(wire.ended().await.code(), Some(127));
}

#[tokio::test]
async fn a_killed_wrapper_leaves_no_process() {
    let dir = TempDir::new().unwrap();
    let entry = testkit::upstream::counted(dir.path(), "s", &tools(dir.path()));
    let mut wire = wrapped(dir.path(), "s", &words(&entry));
    wire.greet().await;
    wire.call("w", "write", json!({"path": "/x"})).await;
    wire.say(r#"{"jsonrpc":"2.0","id":"h","method":"tools/call","params":{"name":"hang","arguments":{"path":"/h"}}}"#).await;
    let pending = |records: &[Value]| records.iter().any(|record| record["tool"] == "hang");
    records_when(&home(&dir), pending).await;
    kill_process(Pid::from_raw(wire.pid()).unwrap(), Signal::KILL).unwrap();
    for pid in pids(dir.path(), "s") {
        ended(pid).await;
    }
    // The next process on the home recovers what it left.
    let _next = open(dir.path()).await;
    let hang = eventually(|| async {
        let hang = record(&home(&dir), "hang").await;
        (hang["status"] == "interrupted").then_some(hang)
    })
    .await;
    assert_eq!(hang["runtime"]["interrupted"], true);
    assert_eq!(whole_chains(&home(&dir))[0].0["status"], "interrupted");
}

#[tokio::test]
async fn wrap_writes_its_own_chain_beside_a_running_gate() {
    let mut gate =
        Gate::start(|dir| json!({"s": scripted(dir, "s", &tools(dir))}), json!({})).await;
    let client = gate.http_at("/mcp/s/s").await;
    let mut wire = open(gate.dir.path()).await;
    for n in 0..5 {
        client.call("read", json!({"path": format!("/gate/{n}")})).await;
        wire.call(n.to_string(), "read", json!({"path": format!("/wrap/{n}")})).await;
    }
    records_when(&gate.home(), |records| records.len() == 10).await;
    wire.close();
    assert!(wire.ended().await.success());
    assert_eq!(gate.end().await, Some(0));
    let chains = whole_chains(&gate.home());
    assert_eq!(chains.len(), 2);
    for (chain, check) in &chains {
        assert_eq!((&chain["status"], check.length), (&json!("complete"), 6), "{chain}");
    }
    for record in records(&gate.home()) {
        let surface = record["surface"].as_str().unwrap();
        let from_wrap = record["resource"].as_str().unwrap().starts_with("/wrap/");
        assert_eq!(surface == "wrap", from_wrap, "{record}");
    }
}

/// Only one revision has batches. Each call in one is recorded, and the responses come in one array.
#[tokio::test]
async fn a_batch_passes_message_by_message_and_is_answered_together() {
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{}}},{"jsonrpc":"2.0","id":"p","method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"id":3}]"#;
    for (version, is_allowed) in [("2025-03-26", true), ("2025-06-18", false)] {
        let dir = tempfile::tempdir().unwrap();
        let server = scripted(dir.path(), "s", &tools(dir.path()));
        let mut wire = wrapped(dir.path(), "s", &words(&server));
        let hello = json!({"protocolVersion": version, "capabilities": {},
                           "clientInfo": {"name": "wire", "version": "1"}});
        wire.ask("hello", "initialize", hello).await;
        wire.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        wire.say(batch).await;
        let answer: Value = serde_json::from_str(&wire.hear().await).unwrap();
        if !is_allowed {
            assert_eq!(answer["error"]["code"], -32600, "{answer}");
            continue;
        }
        let answers = answer.as_array().unwrap();
        let of = |id: Value| answers.iter().find(|answer| answer["id"] == id).unwrap();
        assert_eq!(answers.len(), 3, "{answer}");
        assert!(
            of(json!(1))["result"]["content"].is_array() && of(json!("p"))["result"].is_object()
        );
        assert_eq!(of(json!(3))["error"]["code"], -32600, "{answer}");
        let home = dir.path().join("home");
        let kept = records_when(&home, |records| records.len() == 2).await;
        for tool in ["read", "notifications/x"] {
            assert!(kept.iter().any(|record| record["tool"] == tool), "{kept:?}");
        }
    }
}

#[tokio::test]
async fn everything_besides_tools_passes_unchanged_and_is_recorded() {
    let dir = TempDir::new().unwrap();
    let script = json!({"tools": [], "prompts": [{"name": "p"}], "resources": [],
        "capabilities": {"completions": {}}, "heard": dir.path().join("heard")});
    let words = words(&scripted(dir.path(), "s", &script));
    let mut plain = direct(dir.path(), &words);
    let mut wrap = wrapped(dir.path(), "s", &words);
    assert_eq!(wrap.greet().await, plain.greet().await);
    let lines = [
        r#"{"jsonrpc":"2.0","id":"a","method":"prompts/list"}"#,
        r#"{"jsonrpc":"2.0","x":1E2,"id":"b","method":"prompts/get","params":{ "name":"p","n":1E2}}"#,
        r#"{"jsonrpc":"2.0","id":"c","method":"resources/read","params":{"uri":"memo://a"}}"#,
        r#"{"jsonrpc":"2.0","id":"d","method":"custom/own","params":{"n":0.10}}"#,
        r#"{"jsonrpc":"2.0","id":"e","method":"logging/setLevel","params":{"level":"info"}}"#,
    ];
    for (line, id) in lines.into_iter().zip(["a", "b", "c", "d", "e"]) {
        wrap.say(line).await;
        plain.say(line).await;
        assert_eq!(wrap.answer(id).await, plain.answer(id).await, "{line}");
    }
    wrap.say(r#"{"jsonrpc":"2.0","id":"f","method":"prompts/get","params":{"name":[1]}}"#).await;
    assert!(wrap.answer("f").await.contains("-32602"));
    wrap.say(r#"{"jsonrpc":"2.0","method":"notifications/custom/own","params":{"n":1E2}}"#).await;
    let home = home(&dir);
    let records = records_when(&home, |records| records.len() == 5).await;
    let found: Vec<String> = records
        .iter()
        .map(|record| format!("{} {}", record["tool"], record["effective_class"]).replace('"', ""))
        .collect();
    let expected = [
        "prompts/get read",
        "resources/read read",
        "custom/own write",
        "logging/setLevel read",
        "notifications/custom/own write",
    ];
    assert_eq!(found, expected);
    assert!(!whole_chains(&home).is_empty());
    let heard = std::fs::read_to_string(dir.path().join("heard")).unwrap();
    assert!(heard.contains(r#"notifications/custom/own {"n":1E2}"#), "{heard}");
}

/// Covers the announcements of a server, and the requests that no other test here makes.
#[tokio::test]
async fn notifications_lists_and_subscriptions_pass_in_both_directions() {
    let dir = TempDir::new().unwrap();
    let methods = [
        "notifications/resources/updated",
        "notifications/message",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/elicitation/complete",
        "notifications/custom/own",
    ];
    let messages: Vec<Value> =
        methods.iter().map(|method| json!({"method": method, "params": r#"{"n":1E2}"#})).collect();
    let asks = json!({"code": -32042, "message": "open it", "data": {"elicitations": []}});
    let script = json!({
        "tools": [{"name": "tell", "x-do": {"notify": messages}},
            {"name": "sign_in", "x-do": {"refuse": asks}}],
        "prompts": [], "templates": [{"uriTemplate": "memo://{x}", "name": "m"}],
        "resources": [{"uri": "memo://a", "name": "a"}], "heard": dir.path().join("heard"),
        "capabilities": {"completions": {}, "logging": {}},
    });
    let words = words(&scripted(dir.path(), "s", &script));
    let mut plain = direct(dir.path(), &words);
    let mut wrap = wrapped(dir.path(), "s", &words);
    assert_eq!(wrap.greet().await, plain.greet().await);
    let requests = [
        ("resources/list", "{}"),
        ("resources/templates/list", "{}"),
        ("resources/subscribe", r#"{"uri":"memo://a"}"#),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/resource","uri":"memo://{x}"},"argument":{}}"#,
        ),
        ("tools/call", r#"{"name":"sign_in"}"#),
    ];
    for (id, (method, params)) in requests.into_iter().enumerate() {
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        wrap.say(&line).await;
        plain.say(&line).await;
        assert_eq!(wrap.answer(id).await, plain.answer(id).await, "{line}");
    }
    wrap.say(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#).await;
    wrap.say(r#"{"jsonrpc":"2.0","id":"t","method":"tools/call","params":{"name":"tell"}}"#).await;
    for method in methods {
        let line = wrap.receive_until(|message| message.get("method").is_some()).await;
        let expected = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"n":1E2}}}}"#);
        assert_eq!(line, expected);
    }
    wrap.answer("t").await;
    let heard = std::fs::read_to_string(dir.path().join("heard")).unwrap();
    assert!(heard.contains("notifications/roots/list_changed -"), "{heard}");
}

#[tokio::test]
async fn a_response_over_the_limit_fails_its_call_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let tools = json!([{"name": "big", "x-do": {"text": 17 << 20}}, {"name": "echo"}]);
    let mut wire = wrapped(dir.path(), "s", &words(&scripted(dir.path(), "s", &tools)));
    wire.greet().await;
    for (tool, expected) in [("big", "RESPONSE_TOO_LARGE"), ("echo", "ok")] {
        let answer = wire.call(tool, tool, json!({})).await;
        assert_eq!(code(&answer["result"]), expected, "{tool}");
    }
}
