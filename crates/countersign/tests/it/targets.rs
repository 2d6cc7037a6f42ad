//! One name for one thing: a file has its real path as a target whichever way it is touched, and a
//! call that is seen twice can be recognised.

mod spellings;
mod things;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::foreign;
use testkit::gate::{Gate, Serving};
use testkit::model::{ModelCall, Turn};
use testkit::program::{countersign, program, stderr, stdout};
use testkit::upstream::scripted;
use testkit::wait::eventually;
use testkit::wire::Wire;

use crate::agents::stage::{Stage, ended};
use crate::agents::{ours, say};
use crate::events::hook;
use crate::foreign::servers;
use crate::ledger::{records, records_when, whole_chains};

/// Tools over files, without annotations.
fn file_tools() -> Value {
    let path = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    json!([
        {"name": "read_file", "inputSchema": path},
        {"name": "write_file", "inputSchema": path},
    ])
}

/// Makes `real/f.txt`, a link to the folder and a link to the file; returns the folder's real path.
fn tree(dir: &Path) -> PathBuf {
    let dir = dir.canonicalize().unwrap();
    std::fs::create_dir_all(dir.join("real")).unwrap();
    std::fs::write(dir.join("real/f.txt"), "one\n").unwrap();
    symlink("real", dir.join("linked")).unwrap();
    symlink("real/f.txt", dir.join("link.txt")).unwrap();
    dir
}

/// A gate over a local server that runs in its folder, which is the workspace too.
async fn gate() -> Gate {
    gate_of(|_| ()).await
}

async fn gate_of(change: impl FnOnce(&mut Vec<Value>)) -> Gate {
    let dir = tempfile::tempdir().unwrap();
    let folder = tree(dir.path());
    let mut tools = file_tools();
    change(tools.as_array_mut().unwrap());
    let mut server = scripted(dir.path(), "s", &tools);
    server["cwd"] = json!(folder);
    let config = json!({
        "mcpServers": {"s": server},
        "workspace": {"enabled": true, "root": folder, "write": true, "shell": true},
    });
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    Gate::open(dir).await
}

fn event(folder: &Path, tool: &str, input: Value, id: &str) -> Vec<u8> {
    let event = json!({"hook_event_name": "PostToolUse", "session_id": "session-1", "cwd": folder,
        "tool_name": tool, "tool_input": input, "tool_response": {}, "tool_use_id": id});
    event.to_string().into_bytes()
}

async fn hooked(dir: &Path, event: &[u8]) {
    let output = hook(dir, event).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// Asserts that every record names this file, and its receipt too.
fn assert_all_name(records: &[Value], file: &Path) {
    let file = file.to_str().unwrap();
    for record in records {
        let target = json!({"system": "filesystem", "resource": file});
        assert_eq!(
            (&record["system"], &record["resource"]),
            (&json!("filesystem"), &json!(file)),
            "{record}"
        );
        assert_eq!(record["action"]["target"], target, "{record}");
    }
}

#[tokio::test]
async fn a_file_has_one_name_over_mcp_rest_hook_and_wrap() {
    let gate = gate().await;
    let (dir, folder) = (gate.dir.path(), gate.dir.path().canonicalize().unwrap());
    let client = gate.http().await;
    let linked = folder.join("linked/f.txt");
    for (operation, tool, path) in [
        ("read", "s:read_file", json!(folder.join("real/f.txt"))),
        ("write", "s:write_file", json!(linked)),
        ("write", "s:write_file", json!("linked/../real//f.txt")),
        ("read", "workspace:Read", json!("link.txt")),
    ] {
        let answer = client.two_key_call(operation, tool, json!({"path": path})).await;
        assert_ne!(answer["isError"], true, "{answer}");
    }
    let body = json!({"tool_variant": "call_tool_read", "name": "s:read_file",
        "args": {"path": "link.txt"}, "intent": {"operation_type": "read"}});
    let (status, answer) = gate.rest(Method::POST, "/api/v1/tools/call", Some(body)).await;
    assert_eq!(status, 200, "{answer}");
    // A refused call names the same thing.
    client.two_key_call("read", "workspace:Write", json!({"path": linked, "content": "x"})).await;
    hooked(dir, &event(&folder, "Write", json!({"file_path": linked, "content": "x"}), "t1")).await;
    hooked(dir, &event(&folder, "Read", json!({"file_path": "link.txt"}), "t2")).await;
    let edit = json!({"notebook_path": "linked/f.txt"});
    hooked(dir, &event(&folder, "NotebookEdit", edit, "t3")).await;
    hooked(dir, &event(&folder, "mcp__s__read_file", json!({"path": linked}), "t4")).await;
    let through_the_gate = json!({"name": "s:write_file", "args": {"path": linked},
        "intent": {"operation_type": "write"}});
    let tool = "mcp__countersign__call_tool_write";
    hooked(dir, &event(&folder, tool, through_the_gate, "t5")).await;
    hooked(dir, &event(&folder, "mcp__gate__s__read_file", json!({"path": linked}), "t6")).await;
    let mut wire = wrapped(dir, "w");
    wire.greet().await;
    wire.call("c", "read_file", json!({"path": "linked/f.txt"})).await;
    let whole = |records: &[Value]| {
        records.len() == 13 && records.iter().all(|record| record["receipt"].is_object())
    };
    let found = records_when(&gate.home(), whole).await;
    assert_all_name(&found, &folder.join("real/f.txt"));
    whole_chains(&gate.home());
}

/// Wraps the same server in the test's folder.
fn wrapped(dir: &Path, name: &str) -> Wire {
    let server = scripted(dir, name, &file_tools());
    let mut command = program(dir);
    command.args(["wrap", "--name", name, "--"]).arg(server["command"].as_str().unwrap());
    command.arg(server["args"][0].as_str().unwrap()).current_dir(dir);
    Wire::open(command)
}

#[tokio::test]
async fn a_workflow_step_names_a_file_by_its_real_path() {
    let turns = [
        ours("Write", json!({"path": "linked/f.txt", "content": "x"})),
        ours("Bash", json!({"command": "echo y > link.txt"})),
        say("done"),
    ];
    let stage = Stage::new("openai_compatible", turns).await;
    let folder = tree(&stage.workspace());
    let output = stage.run(&stage.flow(&json!({"enable": true})), &[]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found = records_when(&stage.home(), |records| records.len() == 2).await;
    assert_all_name(&found, &folder.join("real/f.txt"));
}

#[tokio::test]
async fn a_link_that_changes_during_a_call_changes_no_name() {
    let dir = tempfile::tempdir().unwrap();
    let folder = tree(dir.path());
    std::fs::create_dir(folder.join("other")).unwrap();
    let go = folder.join("go");
    let mut tools = file_tools();
    for tool in tools.as_array_mut().unwrap() {
        tool["x-do"] = json!({"work": {"until": go}});
    }
    let server = scripted(dir.path(), "s", &tools);
    let config = json!({"mcpServers": {"s": server}}).to_string();
    std::fs::write(dir.path().join("config.json"), config).unwrap();
    let gate = Gate::open(dir).await;
    let client = gate.http().await;
    let path = json!({"path": folder.join("linked/f.txt")});
    let reading = client.two_key_call("read", "s:read_file", path.clone());
    let writing = client.two_key_call("write", "s:write_file", path);
    let changing = async {
        let pending = records_when(&gate.home(), |records| records.len() == 2).await;
        for record in &pending {
            let resource = folder.join("real/f.txt");
            assert_eq!(
                (&record["status"], &record["resource"]),
                (&json!("pending"), &json!(resource))
            );
        }
        std::fs::remove_file(folder.join("linked")).unwrap();
        symlink("other", folder.join("linked")).unwrap();
        std::fs::write(&go, "").unwrap();
    };
    tokio::join!(reading, writing, changing);
    let ended = |records: &[Value]| records.iter().all(|record| record["receipt"].is_object());
    let found = records_when(&gate.home(), ended).await;
    assert_eq!(found.len(), 2);
    assert_all_name(&found, &folder.join("real/f.txt"));
    let again = json!({"path": folder.join("linked/f.txt")});
    client.two_key_call("read", "s:read_file", again).await;
    let found = records_when(&gate.home(), |records| records.len() == 3).await;
    assert_eq!(found[2]["resource"], json!(folder.join("other/f.txt")));
}

/// A bad path costs neither the call nor its record, and delays nothing.
#[tokio::test]
async fn odd_paths_are_recorded_like_any_other() {
    let gate = gate().await;
    let folder = gate.dir.path().canonicalize().unwrap();
    symlink("loop", folder.join("loop")).unwrap();
    symlink("none/../real/f.txt", folder.join("dangling")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.join("fifo")).status().unwrap();
    assert!(made.success());
    let client = gate.http().await;
    let at = |path: &str| json!(folder.join(path));
    let cases = [
        (at("loop/x"), at("loop/x")),
        (at("dangling"), at("real/f.txt")),
        (at("linked/no/such/file"), at("real/no/such/file")),
        (at("linked/f.txt/x"), at("real/f.txt/x")),
        (at("fifo"), at("fifo")),
        (json!("/"), json!("/")),
        (json!("../../../../../../../../../../etc/hosts"), json!("/etc/hosts")),
        (json!("x".repeat(1 << 20)), Value::Null),
        (json!("a\u{0}b"), at("a⟨U+0000⟩b")),
        (json!("a\r\nb"), at("a⟨U+000D⟩⟨U+000A⟩b")),
        (json!(""), Value::Null),
    ];
    for (n, (path, resource)) in cases.into_iter().enumerate() {
        client.two_key_call("read", "s:read_file", json!({"path": path})).await;
        let found = records_when(&gate.home(), |records| records.len() == n + 1).await;
        assert_eq!(
            found[n]["resource"],
            resource,
            "{}",
            &path.to_string()[..20.min(path.to_string().len())]
        );
    }
}

/// A server that asked for roots works in the one that the client named, for that client alone.
#[tokio::test]
async fn relative_paths_start_at_the_clients_only_root() {
    let gate =
        gate_of(|tools| tools.push(json!({"name": "ask", "x-do": {"ask": "roots/list"}}))).await;
    let folder = gate.dir.path().canonicalize().unwrap();
    let roots = |names: &[&str]| {
        let uri = |name: &&str| json!({"uri": format!("file://{}", folder.join(name).display())});
        let roots: Vec<Value> = names.iter().map(uri).collect();
        vec![("roots/list", json!({"roots": roots}))]
    };
    let capabilities = json!({"roots": {}});
    let rooted = gate.http_with(capabilities.clone(), roots(&["linked"])).await;
    let several = gate.http_with(capabilities, roots(&["real", "linked"])).await;
    let plain = gate.http().await;
    for (client, resource) in [
        (&rooted, json!(folder.join("real/f.txt"))),
        (&several, json!("f.txt")),
        (&plain, json!(folder.join("f.txt"))),
    ] {
        let before = records(&gate.home()).len();
        client.two_key_call("read", "s:ask", json!({})).await;
        client.two_key_call("read", "s:read_file", json!({"path": "f.txt"})).await;
        let read = |record: &Value| record["tool"] == "read_file";
        let has_read =
            |records: &[Value]| records.get(before..).is_some_and(|new| new.iter().any(read));
        let found = records_when(&gate.home(), has_read).await;
        let record = found[before..].iter().find(|record| read(record)).unwrap();
        assert_eq!(record["resource"], resource, "{record}");
    }
}

#[tokio::test]
async fn a_server_elsewhere_has_no_files_of_this_machine() {
    let dir = tempfile::tempdir().unwrap();
    let folder = tree(dir.path());
    let server = scripted(dir.path(), "s", &file_tools());
    // The name tells that the paths are those of a container.
    let docker = folder.join("docker");
    let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", server["command"].as_str().unwrap());
    std::fs::write(&docker, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&docker, mode).unwrap();
    let config = json!({"mcpServers": {"s": {"command": docker, "args": server["args"]}}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let gate = Gate::open(dir).await;
    let client = gate.http().await;
    let path = json!({"path": folder.join("linked/f.txt")});
    let answer = client.two_key_call("read", "s:read_file", path).await;
    assert_ne!(answer["isError"], true, "{answer}");
    let found = records_when(&gate.home(), |records| records.len() == 1).await;
    assert_eq!(found[0]["system"], "s", "{}", found[0]);
}

#[tokio::test]
async fn one_call_seen_by_wrap_and_hook_has_one_tool_use_id() {
    let gate = gate().await;
    let (dir, folder) = (gate.dir.path(), gate.dir.path().canonicalize().unwrap());
    // The gate knows nothing of the wrapped server.
    let mut wire = wrapped(dir, "w");
    wire.greet().await;
    let arguments = json!({"path": folder.join("linked/f.txt")});
    let params = json!({"name": "read_file", "arguments": arguments,
        "_meta": {"claudecode/toolUseId": "toolu_7"}});
    wire.ask("c", "tools/call", params).await;
    hooked(dir, &event(&folder, "mcp__w__read_file", arguments, "toolu_7")).await;
    // However a call that was seen twice is kept, all of it has the one id and the one name.
    let both = |records: &[Value]| {
        let mut sources: Vec<&str> =
            records.iter().filter_map(|record| record["source"].as_str()).collect();
        sources.sort_unstable();
        sources.contains(&"hook") && records.iter().all(|record| record["receipt"].is_object())
    };
    let found = records_when(&gate.home(), both).await;
    assert_all_name(&found, &folder.join("real/f.txt"));
    for record in &found {
        let id = &record["receipt"]["credentialSubject"]["correlation_id"];
        assert_eq!(id, "toolu_7", "{record}");
    }
    // Two agents saw one call, so no agents met.
    assert_eq!(meetings(&gate, "?kind=read-read").await, Vec::<String>::new());
}

/// Returns the kinds of meetings between agents; `query` begins with `?`.
async fn meetings(gate: &Gate, query: &str) -> Vec<String> {
    let (status, graph) = gate.rest(Method::GET, &format!("/api/v1/contention{query}"), None).await;
    assert_eq!(status, 200, "{graph}");
    let edges = graph["edges"].as_array().unwrap();
    edges.iter().map(|edge| edge["kind"].as_str().unwrap().to_owned()).collect()
}

/// Callers declare no intent on this surface, and the server says nothing of its tools: their names
/// tell that one reads and the other writes.
#[tokio::test]
async fn two_reads_of_an_unannotated_tool_are_no_conflict_but_a_write_is() {
    let gate = gate().await;
    let path = gate.dir.path().canonicalize().unwrap().join("link.txt");
    let call = async |name: &str| {
        let client = gate.http_at("/mcp/s/s").await;
        let params = json!({"name": name, "arguments": {"path": path}});
        client.request("tools/call", params).await.unwrap();
    };
    call("read_file").await;
    call("read_file").await;
    records_when(&gate.home(), |records| records.len() == 2).await;
    assert_eq!(meetings(&gate, "").await, Vec::<String>::new());
    assert_eq!(meetings(&gate, "?kind=read-read").await, ["read-read"]);
    call("write_file").await;
    records_when(&gate.home(), |records| records.len() == 3).await;
    assert_eq!(meetings(&gate, "").await, ["read-write", "read-write"]);
}

/// The same file through a server and through an agent's own tool is one thing.
#[tokio::test]
async fn smoke_a_file_touched_in_two_ways_is_one_meeting() {
    let gate = gate().await;
    let (dir, folder) = (gate.dir.path(), gate.dir.path().canonicalize().unwrap());
    let client = gate.http().await;
    let path = json!({"path": "linked/f.txt"});
    client.two_key_call("write", "s:write_file", path).await;
    let own = json!({"file_path": folder.join("real/f.txt"), "content": "x"});
    hooked(dir, &event(&folder, "Write", own, "t1")).await;
    records_when(&gate.home(), |records| records.len() == 2).await;
    eventually(|| async { (meetings(&gate, "").await == ["write-write"]).then_some(()) }).await;
}

/// No hard link is the real name of a file, so that each is recorded as it was given.
#[tokio::test]
async fn two_hard_links_of_a_file_are_one_meeting() {
    let gate = gate().await;
    let (dir, folder) = (gate.dir.path(), gate.dir.path().canonicalize().unwrap());
    std::fs::hard_link(folder.join("real/f.txt"), folder.join("hard.txt")).unwrap();
    let client = gate.http().await;
    client.two_key_call("read", "workspace:Read", json!({"path": "hard.txt"})).await;
    let own = json!({"file_path": folder.join("real/f.txt"), "content": "x"});
    hooked(dir, &event(&folder, "Write", own, "t1")).await;
    let found = records_when(&gate.home(), |records| records.len() == 2).await;
    let names: Vec<&str> = found.iter().filter_map(|it| it["resource"].as_str()).collect();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    assert_eq!(names, [path("hard.txt"), path("real/f.txt")]);
    eventually(|| async { (meetings(&gate, "").await == ["read-write"]).then_some(()) }).await;
}

/// The home is that of the server, which the config may set.
#[tokio::test]
async fn a_path_in_the_home_of_a_server_is_a_file_of_this_machine() {
    let dir = tempfile::tempdir().unwrap();
    let folder = tree(dir.path());
    let mut server = scripted(dir.path(), "s", &file_tools());
    server["env"] = json!({"HOME": folder});
    let config = json!({"mcpServers": {"s": server}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let gate = Gate::open(dir).await;
    let client = gate.http().await;
    client.two_key_call("read", "s:read_file", json!({"path": "~/linked/f.txt"})).await;
    let found = records_when(&gate.home(), |records| records.len() == 1).await;
    assert_all_name(&found, &folder.join("real/f.txt"));
}

#[tokio::test]
async fn hook_events_that_nobody_knows_are_left_alone() {
    let dir = TempDir::new().unwrap();
    for event in [
        json!({"hook_event_name": "PreCompact", "tool_name": 7, "cwd": {}}),
        json!({"hook_event_name": "SomethingNew", "tool_name": "Write", "tool_input": []}),
        json!({"hook_event_name": "Notification", "message": "x"}),
        json!({"hook_event_name": "UserPromptSubmit", "session_id": 1}),
    ] {
        let output = hook(dir.path(), event.to_string().as_bytes()).await;
        assert_eq!(output.status.code(), Some(0), "{event}: {}", stderr(&output));
        assert_eq!((&*output.stdout, &*output.stderr), (&b""[..], &b""[..]), "{event}");
    }
    assert!(!dir.path().join("home/spool").exists());
}

/// The real servers: the reference file server resolves relative paths from its first folder.
#[tokio::test]
async fn real_servers_name_the_files_that_they_touch() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let servers =
        |dir: &Path| json!({"filesystem": servers::filesystem(dir), "git": servers::git(dir)});
    let gate = Gate::start(servers, json!({})).await;
    for name in ["filesystem", "git"] {
        gate.ready(name).await;
    }
    let folder = gate.dir.path().canonicalize().unwrap();
    let client = gate.http().await;
    for (operation, tool, args, resource) in [
        (
            "destructive",
            "filesystem:write_file",
            json!({"path": "a.txt", "content": "x"}),
            "files/a.txt",
        ),
        (
            "read",
            "filesystem:read_text_file",
            json!({"path": folder.join("files/a.txt")}),
            "files/a.txt",
        ),
        ("read", "git:git_status", json!({"repo_path": folder.join("repository")}), "repository"),
    ] {
        let answer = client.two_key_call(operation, tool, args).await;
        assert_ne!(answer["isError"], true, "{tool}: {answer}");
        let called = |record: &&Value| tool.ends_with(record["tool"].as_str().unwrap());
        let record = eventually(|| async {
            records(&gate.home())
                .iter()
                .find(called)
                .cloned()
                .filter(|it| it["receipt"].is_object())
        });
        assert_all_name(&[record.await], &folder.join(resource));
    }
    assert_eq!(std::fs::read_to_string(folder.join("files/a.txt")).unwrap(), "x");
}

/// A real agent writes a file with its own tool and again through the gate, by another name.
#[tokio::test]
async fn long_claude_and_the_file_server_name_one_file_alike() {
    if !testkit::run::is_long_or_skipped() {
        return;
    }
    // The folder is known only once the stage is there, so that the paths are relative to it.
    let native = |arguments| Turn::Call(vec![ModelCall::native("Write", arguments)]);
    let dir = tempfile::tempdir().unwrap();
    let folder = tree(dir.path());
    let (own, linked) = (folder.join("real/new.txt"), folder.join("linked/new.txt"));
    let through_the_gate = json!({"name": "filesystem:write_file",
        "args": {"path": linked, "content": "two"}, "intent": {"operation_type": "destructive"}});
    let turns = [
        native(json!({"file_path": own, "content": "one"})),
        ours("call_tool_destructive", through_the_gate),
        say("written"),
    ];
    let stage = Stage::new("claude", turns).await;
    let mut server = servers::filesystem(stage.dir());
    server["args"] = json!([folder]);
    let config = stage.config(&json!({"filesystem": server}));
    let mut serving = program(stage.dir());
    serving.args(&config);
    let _serving = Serving::start(serving).await;
    let output = ended(claude(&stage, &folder)).await;
    let said = format!("{}\n{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "two", "{said}");
    let whole = |records: &[Value]| {
        let all = records.iter().all(|record| record["receipt"].is_object());
        let has = |tool: &str| records.iter().any(|record| record["tool"] == tool);
        all && has("Write") && has("write_file") && has("call_tool_destructive")
    };
    let found = records_when(&stage.home(), whole).await;
    assert_all_name(&found, &own);
    let id = |tool: &str| {
        let found = found.iter().find(|record| record["tool"] == tool).unwrap();
        found["receipt"]["credentialSubject"]["correlation_id"].clone()
    };
    assert!(id("write_file").is_string(), "the agent sends the id of its tool use");
    assert_eq!(id("write_file"), id("call_tool_destructive"), "one call, seen twice");
    assert_ne!(id("write_file"), id("Write"));
}

/// Claude Code with its own tools, the gate as a server, and the gate's hook after each call.
fn claude(stage: &Stage, folder: &Path) -> tokio::process::Command {
    let hook = json!([{"matcher": "*", "hooks": [
        {"type": "command", "command": format!("{} hook", countersign().display())}]}]);
    let settings = json!({"hooks": {"PostToolUse": hook, "PostToolUseFailure": hook}});
    let server = json!({"command": countersign(), "args": ["mcp"], "alwaysLoad": true});
    let config = json!({"mcpServers": {"countersign": server}});
    for (name, value) in [("settings.json", settings), ("mcp.json", config)] {
        std::fs::write(stage.dir().join(name), value.to_string()).unwrap();
    }
    let mut command = stage.agent();
    command
        .args(["-p", "write it", "--allowedTools", "mcp__countersign,Write", "--mcp-config"])
        .arg(stage.dir().join("mcp.json"))
        .arg("--settings")
        .arg(stage.dir().join("settings.json"))
        .arg("--add-dir")
        .arg(folder)
        .env("ANTHROPIC_BASE_URL", stage.model.url())
        .env("ANTHROPIC_API_KEY", "test");
    command
}
