//! The built-in tools through the gate: found, called, recorded, kept within their folder, and
//! changed while the gate runs.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::client::{Client, text};
use testkit::gate::Gate;
use testkit::program::{client_of, first_lines, program, run, stderr, stdout};
use testkit::wait::eventually;

use crate::ledger::{record, records_when};
use crate::misbehaving::{all_end, lives};

/// Makes a folder next to the home, with a file in it.
fn folder(dir: &Path) -> PathBuf {
    let folder = dir.canonicalize().unwrap().join("project");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("hello.txt"), "hello\nworld\n").unwrap();
    folder
}

async fn names(client: &Client) -> Vec<String> {
    let found = client.document("retrieve_tools", json!({"query": "file", "limit": 20})).await;
    let tools = found["tools"].as_array().unwrap().iter();
    let mut names: Vec<String> =
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn smoke_with_nothing_configured_agents_can_read_the_folder_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    std::fs::write(dir.path().join("secret"), "secret").unwrap();
    let child = program(dir.path())
        .arg("mcp")
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let client = client_of(child, json!({}), vec![]).await;
    let found = client.document("retrieve_tools", json!({"query": "read a file"})).await;
    assert_eq!(found["tools"][0]["name"], "workspace:Read", "{found}");
    assert_eq!(names(&client).await, ["workspace:Glob", "workspace:Grep", "workspace:Read"]);
    let read = client.two_key_call("read", "workspace:Read", json!({"path": "hello.txt"})).await;
    assert_eq!(text(&read), "hello\nworld\n");
    let record = record(&dir.path().join("home"), "Read").await;
    let path = folder.join("hello.txt");
    let target = json!({"system": "filesystem", "resource": path});
    assert_eq!(record["action"]["target"], target, "{record}");
    assert_eq!(record["action"]["type"], "filesystem.file.read");
    assert_eq!(
        (&record["server"], &record["effective_class"]),
        (&json!("workspace"), &json!("read"))
    );
    let found = client.two_key_call("read", "workspace:Grep", json!({"pattern": "w.rld"})).await;
    assert_eq!(text(&found), "hello.txt:2:world");
    let outside =
        client.two_key_call("read", "workspace:Glob", json!({"pattern": "*", "cwd": ".."})).await;
    assert_eq!(outside["isError"], true);
    assert!(text(&outside).contains("is outside the workspace root"), "{outside}");
    for tool in ["Write", "Bash"] {
        let absent = client
            .two_key_call(
                "write",
                &format!("workspace:{tool}"),
                json!({"path": "x", "content": "x"}),
            )
            .await;
        assert_eq!(testkit::client::refusal(&absent)["code"], "TOOL_NOT_FOUND", "{absent}");
    }
}

#[tokio::test]
async fn a_home_directory_is_opened_only_if_configured() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), ["tools", "list", "-o", "json"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!stdout(&output).contains("workspace"), "{}", stdout(&output));
    assert!(stderr(&output).contains("'workspace.root'"), "{}", stderr(&output));
    let asked = json!({"workspace": {"root": dir.path()}});
    std::fs::write(dir.path().join("config.json"), asked.to_string()).unwrap();
    let args = ["tools", "list", "-o", "json", "--config", "config.json"];
    let output = run(dir.path(), args).await;
    assert!(stdout(&output).contains("workspace:Read"), "{}", stdout(&output));
    assert_eq!(stderr(&output), "");
}

#[tokio::test]
async fn the_home_is_out_of_reach_where_the_root_holds_it() {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({"workspace": {"root": dir.path(), "write": true}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let gate = Gate::open(dir).await;
    let client = gate.http().await;
    for path in ["agent-token", "api-key", "ledger.db", "keys/../api-key"] {
        let path = format!("home/{path}");
        let refused = client.two_key_call("read", "workspace:Read", json!({"path": path})).await;
        assert!(text(&refused).contains("Countersign's own home"), "{refused}");
    }
    let write = json!({"path": "home/agent-token", "content": "mine"});
    let refused = client.two_key_call("write", "workspace:Write", write).await;
    assert!(text(&refused).contains("Countersign's own home"), "{refused}");
}

/// A token that may write must not be able to extend its own rights.
#[tokio::test]
async fn no_tool_changes_the_files_that_govern_tools() {
    // On the same disk as the program, which gets another name in the folder.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let config = json!({"workspace": {"root": dir.path(), "write": true}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    std::fs::hard_link(dir.path().join("config.json"), dir.path().join("alias.json")).unwrap();
    let own = env!("CARGO_BIN_EXE_countersign");
    std::fs::hard_link(own, dir.path().join("program")).unwrap();
    let gate = Gate::open(dir).await;
    let client = gate.http().await;
    let dir = gate.dir.path();
    let folder = dir.join("trusted");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("countersign.json"), "{}").unwrap();
    let write = |path: &str| json!({"path": path, "content": "{}"});
    let allowed =
        client.two_key_call("write", "workspace:Write", write("trusted/countersign.json")).await;
    assert_eq!(allowed["isError"], false, "nobody trusts it yet: {allowed}");
    let trusting = program(dir).args(["config", "trust"]).current_dir(&folder).output();
    let trust = trusting.await.unwrap();
    assert_eq!(trust.status.code(), Some(0), "{}", stderr(&trust));
    let unset = dir.join("xdg-config/countersign/config.json");
    let unset = unset.to_str().unwrap();
    for path in ["config.json", "alias.json", "trusted/countersign.json", "program", unset] {
        let refused = client.two_key_call("write", "workspace:Write", write(path)).await;
        assert!(text(&refused).contains("which no tool can change"), "{path}: {refused}");
    }
    let edit = json!({"path": "config.json", "old": "true", "new": "true, \"shell\": true"});
    let refused = client.two_key_call("write", "workspace:Edit", edit).await;
    assert!(text(&refused).contains("which no tool can change"), "{refused}");
    let text = std::fs::read_to_string(dir.join("config.json")).unwrap();
    assert_eq!(text, config.to_string());
}

#[tokio::test]
async fn what_the_config_allows_is_offered_with_its_class_and_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let config = json!({"workspace": {"root": folder, "write": true, "shell": true}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let gate = Gate::open(dir).await;
    let client = gate.http().await;
    for (operation, tool, args, expected) in [
        ("write", "Write", json!({"path": "a/b", "content": "one"}), "OK: 3 bytes"),
        ("write", "Edit", json!({"path": "a/b", "old": "one", "new": "two"}), "OK: 1 replacement"),
        ("destructive", "Bash", json!({"command": "cat a/b; env"}), "two"),
    ] {
        if operation == "destructive" {
            let refused =
                client.two_key_call("write", &format!("workspace:{tool}"), args.clone()).await;
            let code = &testkit::client::refusal(&refused)["code"];
            assert_eq!(code, "SERVER_MISMATCH", "{refused}");
        }
        let done = client.two_key_call(operation, &format!("workspace:{tool}"), args).await;
        assert!(text(&done).starts_with(expected), "{tool}: {done}");
        assert!(!text(&done).contains("COUNTERSIGN_"), "{done}");
    }
    assert_eq!(std::fs::read_to_string(folder.join("a/b")).unwrap(), "two");
    let done =
        |records: &[Value]| records.iter().filter(|it| it["status"] == "success").count() == 3;
    let records = records_when(&gate.home(), done).await;
    let target = json!({"system": "filesystem", "resource": folder.join("a/b")});
    for (tool, kind, class) in [
        ("Write", "filesystem.file.modify", "write"),
        ("Edit", "filesystem.file.modify", "write"),
        ("Bash", "system.command.execute", "destructive"),
    ] {
        let fits = |it: &&Value| it["tool"] == tool && it["status"] == "success";
        let record = records.iter().find(fits).unwrap();
        assert_eq!(
            (&record["action"]["type"], &record["effective_class"]),
            (&json!(kind), &json!(class))
        );
        if tool != "Bash" {
            assert_eq!(record["action"]["target"], target, "{tool}");
        }
    }
}

/// Leaves a child in its group and a daemon outside it, and prints their ids.
const LEAVES: &str = "sleep 1000 & echo $! >> pids; \
    setsid sh -c 'echo $$ >> pids; exec sleep 1000' & \
    while [ $(wc -l < pids) -lt 2 ]; do sleep 0.01; done";

async fn left(folder: &Path) -> Vec<Pid> {
    eventually(|| async {
        let text = std::fs::read_to_string(folder.join("pids")).ok()?;
        let pids = text.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        let pids: Vec<Pid> = pids.collect();
        (pids.len() == 2).then_some(pids)
    })
    .await
}

async fn with_a_shell(call_timeout: &str) -> (Gate, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let workspace = json!({"root": folder, "shell": true});
    let config = json!({"workspace": workspace, "call_timeout": call_timeout});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    (Gate::open(dir).await, folder)
}

#[tokio::test]
async fn nothing_of_a_command_is_left_when_it_has_ended_or_was_too_slow() {
    let (gate, folder) = with_a_shell("2m").await;
    let client = gate.http().await;
    for (end, expected) in [("exit 3", "[exit code 3]"), ("exec sleep 1000", "[killed: timed out")]
    {
        let _ = std::fs::remove_file(folder.join("pids"));
        let args = json!({"command": format!("{LEAVES}; {end}"), "timeout_seconds": 2});
        let done = client.two_key_call("destructive", "workspace:Bash", args).await;
        assert!(text(&done).contains(expected), "{done}");
        let left = left(&folder).await;
        assert!(!left.iter().any(|pid| lives(*pid)), "they end before the answer comes: {end}");
    }
}

#[tokio::test]
async fn nothing_of_a_command_is_left_when_the_gate_is_killed() {
    let (gate, folder) = with_a_shell("2m").await;
    let client = gate.http().await;
    let command = json!({"command": format!("{LEAVES}; exec sleep 1000")});
    let running =
        tokio::spawn(
            async move { client.two_key_call("destructive", "workspace:Bash", command).await },
        );
    let left = left(&folder).await;
    assert!(left.iter().all(|pid| lives(*pid)));
    kill_process(gate.pid(), Signal::KILL).unwrap();
    all_end(&left).await;
    running.abort();
}

#[tokio::test]
async fn a_command_may_take_as_long_as_its_caller_said() {
    let (gate, _) = with_a_shell("1s").await;
    let client = gate.http().await;
    let args = json!({"command": "sleep 2; echo done", "timeout_seconds": 60});
    let done = client.two_key_call("destructive", "workspace:Bash", args).await;
    assert_eq!(text(&done), "done\n[exit code 0]");
}

#[tokio::test]
async fn the_tools_follow_the_config_while_the_gate_runs() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let config = json!({"workspace": {"root": folder}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let gate = Gate::open(dir).await;
    let client = gate.http().await;
    let reading = ["workspace:Glob", "workspace:Grep", "workspace:Read"];
    assert_eq!(names(&client).await, reading);
    gate.rewrite(|config| config["workspace"]["write"] = true.into());
    eventually(|| async { (names(&client).await.len() == 5).then_some(()) }).await;
    let wrote =
        client.two_key_call("write", "workspace:Write", json!({"path": "x", "content": "x"})).await;
    assert!(text(&wrote).starts_with("OK"), "{wrote}");
    let other = folder.join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("there"), "there").unwrap();
    gate.rewrite(|config| config["workspace"]["root"] = json!(other));
    eventually(|| async {
        let read = client.two_key_call("read", "workspace:Read", json!({"path": "there"})).await;
        (text(&read) == "there").then_some(())
    })
    .await;
    gate.rewrite(|config| config["workspace"]["enabled"] = false.into());
    eventually(|| async { names(&client).await.is_empty().then_some(()) }).await;
    gate.rewrite(|config| config["workspace"] = json!({"root": folder}));
    eventually(|| async { (names(&client).await == reading).then_some(()) }).await;
}

#[tokio::test]
async fn people_switch_the_workspace_and_its_tools() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let config = json!({"workspace": {"root": folder}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let gate = Gate::open(dir).await;
    let entry = gate.ready("workspace").await;
    assert_eq!(entry["transport"], "builtin", "{entry}");
    let client = gate.http().await;
    for (off, on, status) in [
        (
            &["upstream", "disable", "workspace"][..],
            &["upstream", "enable", "workspace"][..],
            "server_disabled",
        ),
        (
            &["upstream", "quarantine", "workspace"],
            &["upstream", "approve", "workspace", "--yes"],
            "server_quarantined",
        ),
        (
            &["tools", "disable", "workspace:Read"],
            &["tools", "enable", "workspace:Read"],
            "disabled_by_user",
        ),
    ] {
        let output = gate.cli(off).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let refused =
            client.two_key_call("read", "workspace:Read", json!({"path": "hello.txt"})).await;
        let error = testkit::client::refusal(&refused);
        assert_eq!(error["code"], "TOOL_BLOCKED", "{refused}");
        assert!(error.to_string().contains(status), "{refused}");
        let output = gate.cli(on).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let read =
            client.two_key_call("read", "workspace:Read", json!({"path": "hello.txt"})).await;
        assert_eq!(text(&read), "hello\nworld\n");
    }
}

#[tokio::test]
async fn the_tools_are_available_on_every_surface() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let config = json!({"workspace": {"root": folder}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let gate = Gate::open(dir).await;
    let args = json!({"path": "hello.txt"});
    for (client, name) in [
        (gate.http_at("/mcp/s/workspace").await, "Read"),
        (gate.stdio_server("workspace").await, "Read"),
        (gate.http_at("/mcp/all").await, "workspace__Read"),
    ] {
        let listed = client.request("tools/list", json!({})).await.unwrap();
        assert_eq!(listed["tools"].as_array().unwrap().len(), 3, "{listed}");
        assert_eq!(text(&client.call(name, args.clone()).await), "hello\nworld\n");
    }
    let call = ["call", "tool-read", "--tool-name=workspace:Read", "--json_args"];
    let output = gate.cli(&[&call[..], &[&args.to_string()]].concat()).await;
    assert!(stdout(&output).contains("hello\nworld"), "{}{}", stdout(&output), stderr(&output));
}

#[tokio::test]
async fn serve_says_where_the_tools_work() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let mut child = program(dir.path())
        .args(["serve", "--listen", "127.0.0.1:0"])
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let told = first_lines(&mut child, 3).await;
    let expected = format!("workspace (built-in tools in {})", folder.display());
    assert!(told.contains(&expected), "{told}");
}
