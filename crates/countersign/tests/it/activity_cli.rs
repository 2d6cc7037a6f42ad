//! Activity as a person at the command line sees it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use testkit::client::{PATIENCE, two_keys};
use testkit::gate::Gate;
use testkit::program::{program, run, stderr, stdout};
use testkit::upstream::{counted, pids};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use crate::cli::in_both_ways;

async fn good(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, args).await;
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

async fn json_of(dir: &Path, args: &[&str]) -> Value {
    let text = good(dir, &[args, &["-o", "json"]].concat()).await;
    serde_json::from_str(&text).unwrap()
}

/// Makes one call that succeeds, then one that is refused.
async fn two_calls(dir: &Path) {
    let args = r#"{"word":"\u009b31m","path":"/tmp/x"}"#;
    let read =
        ["call", "tool-read", "--tool-name=s:say", "--reason", "to see", "--json_args", args];
    good(dir, &read).await;
    let refused = run(dir, ["call", "tool-write", "--tool-name=s:drop"]).await;
    assert_eq!(refused.status.code(), Some(3));
}

#[tokio::test]
async fn records_are_listed_newest_first_and_shown_in_full() {
    in_both_ways(async |dir| {
        two_calls(dir).await;
        let table = good(dir, &["activity", "list"]).await;
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].starts_with("TIME") && lines[0].ends_with("ID"), "{table}");
        assert!(lines[1].contains("  s:drop  write"), "{table}");
        assert!(lines[1].contains("refused SERVER_MISMATCH"), "{table}");
        assert!(lines[2].contains("  s:say   read"), "{table}");
        assert!(lines[2].contains("filesystem /tmp/x"), "{table}");
        assert_eq!(lines.len(), 3, "{table}");

        let list = json_of(dir, &["activity", "list", "--tool", "say", "--since", "1h"]).await;
        let [record] = list["activities"].as_array().unwrap().as_slice() else { panic!("{list}") };
        let id = record["id"].as_str().unwrap();
        let (_, short) = lines[2].rsplit_once("  ").unwrap();
        assert!(short.len() == 8 && id.ends_with(short), "{table}");
        let shown = good(dir, &["activity", "show", short]).await;
        for part in [
            "\nintent\n  operation    read\n",
            "\n  reason       to see\n",
            "\ntargets\n  read      filesystem /tmp/x\n",
            "\\u009b31m",
            "receipt   urn:receipt:",
        ] {
            assert!(shown.contains(part), "{part}\n---\n{shown}");
        }
        assert!(!shown.contains('\u{9b}'));
        let whole = json_of(dir, &["activity", "show", id]).await;
        assert_eq!(whole["arguments"]["path"], "/tmp/x");
        assert!(
            good(dir, &["activity", "show", id, "-o", "yaml"]).await.contains("reason: to see")
        );
    })
    .await;
}

#[tokio::test]
async fn activity_lists_are_filtered_and_paged() {
    let gate = Gate::scripted(json!([
        {"name": "say", "annotations": {"readOnlyHint": true}},
        {"name": "drop", "annotations": {"destructiveHint": true}},
    ]))
    .await;
    let dir = gate.dir.path();
    two_calls(dir).await;
    for (args, count) in [
        (&["--status", "blocked"][..], 1),
        (&["--status", "refused"], 1),
        (&["--intent-type", "read"], 1),
        (&["--server", "s"], 2),
        (&["--server", "t"], 0),
        (&["--until", "1h"], 0),
        (&["--since", "2020-01-01"], 2),
        (&["-q", "TO SEE"], 1),
        (&["--target-resource", "/tmp/x", "--target-system", "filesystem"], 1),
        (&["--type", "system"], 0),
    ] {
        let list = json_of(dir, &[&["activity", "list"], args].concat()).await;
        assert_eq!(list["activities"].as_array().unwrap().len(), count, "{args:?}: {list}");
    }
    assert_eq!(good(dir, &["activity", "list", "--server", "t"]).await, "no matching records\n");

    let first = run(dir, ["activity", "list", "--limit", "1"]).await;
    let words = stderr(&first);
    let (count, cursor) = words.trim().split_once("; continue with --cursor ").unwrap();
    assert_eq!(count, "1 of 2");
    let second = good(dir, &["activity", "list", "--limit", "1", "--cursor", cursor]).await;
    assert!(stdout(&first).contains("s:drop") && second.contains("s:say"), "{second}");
    assert!(!second.contains("s:drop"), "{second}");

    for (args, word) in [
        (&["list", "--status", "refsued"][..], "'refused'"),
        (&["list", "--intent-type", "wirte"], "'write'"),
        (&["list", "--since", "soon"], "2h"),
        (&["list", "--limit", "0"], "1..=100"),
        (&["list", "--cursor", "x"], "cursor"),
        (&["show", "nothing"], "NOT_FOUND"),
        (&["summary", "--period", "2h"], "24h"),
    ] {
        let output = run(dir, ["activity"].iter().chain(args)).await;
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{args:?}");
        assert!(stderr(&output).contains(word), "{args:?}: {}", stderr(&output));
    }
}

#[tokio::test]
async fn activity_is_summarized_and_exported() {
    in_both_ways(async |dir| {
        two_calls(dir).await;
        let summary = good(dir, &["activity", "summary", "--period", "1h"]).await;
        assert!(summary.contains("by status  1 success, 1 refused\n"), "{summary}");
        assert!(summary.contains("\ns:say   1      0        0"), "{summary}");
        assert_eq!(json_of(dir, &["activity", "summary"]).await["calls"], 2);

        let lines = good(dir, &["activity", "export"]).await;
        let tools: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["tool_name"].clone())
            .collect();
        assert_eq!(tools, ["drop", "say"]);
        let csv =
            ["activity", "export", "--format", "csv", "--status", "blocked", "--output", "a.csv"];
        assert_eq!(good(dir, &csv).await, "");
        let csv = std::fs::read_to_string(dir.join("a.csv")).unwrap();
        assert_eq!(csv.lines().count(), 2, "{csv}");
        assert!(csv.starts_with("id,timestamp,"), "{csv}");

        let output = run(dir, ["activity", "export", "--output", "/dev/full"]).await;
        assert_eq!(output.status.code(), Some(4));
        assert!(stderr(&output).contains("free some space"), "{}", stderr(&output));
        let output = run(dir, ["activity", "export", "--output", "no/such/folder"]).await;
        assert_eq!(output.status.code(), Some(4));
    })
    .await;
}

#[tokio::test]
async fn reading_the_ledger_starts_no_server() {
    let dir = tempfile::tempdir().unwrap();
    let server = counted(dir.path(), "s", &json!([{"name": "say"}]));
    let folder = dir.path().join("xdg-config/countersign");
    std::fs::create_dir_all(&folder).unwrap();
    let config = json!({"mcpServers": {"s": server}});
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    // Makes the ledger.
    good(dir.path(), &["keys", "rotate"]).await;
    for args in [
        &["activity", "list"][..],
        &["activity", "summary"],
        &["activity", "export"],
        &["receipt", "list"],
        &["receipt", "verify"],
        &["keys", "show"],
        &["contention"],
        &["runs", "list"],
    ] {
        good(dir.path(), args).await;
    }
    assert_eq!(pids(dir.path(), "s"), [] as [i32; 0]);
    good(dir.path(), &["call", "tool-write", "--tool-name=s:say"]).await;
    assert_eq!(pids(dir.path(), "s").len(), 1, "it would have been counted");
}

/// An agent that read, one that wrote and deleted, a deleted folder, and a refusal.
async fn audited(gate: &Gate) {
    let (one, other) = (gate.http().await, gate.http().await);
    for (client, class, tool, path) in [
        (&one, "read", "s:get", "/srv/app/notes.md"),
        (&other, "write", "s:put", "/srv/app/notes.md"),
        (&other, "destructive", "s:wipe", "/srv/app/old.md"),
        (&one, "destructive", "s:wipe", "/srv/app"),
        (&one, "write", "s:wipe", "/srv/app/notes.md"),
        (&one, "destructive", "s:wipe", "/srv/apples"),
    ] {
        let call = two_keys(class, tool, json!({"path": path}));
        client.request("tools/call", call).await.unwrap();
    }
}

#[tokio::test]
async fn smoke_each_question_of_an_audit_is_one_command() {
    let gate = Gate::scripted(json!([
        {"name": "get", "annotations": {"readOnlyHint": true}},
        {"name": "put", "annotations": {"readOnlyHint": false, "destructiveHint": false}},
        {"name": "wipe", "annotations": {"destructiveHint": true}},
    ]))
    .await;
    audited(&gate).await;
    let dir = gate.dir.path();
    let list = async |args: &[&str]| json_of(dir, &[&["activity", "list"], args].concat()).await;
    let tools = |list: &Value| -> Vec<String> {
        let records = list["activities"].as_array().unwrap();
        records.iter().map(|it| it["tool_name"].as_str().unwrap().to_owned()).collect()
    };

    // Who touched it? Also whoever deleted its folder.
    let file = ["--target-resource", "/srv/app/notes.md", "--since", "7d"];
    assert_eq!(tools(&list(&file).await), ["wipe", "put", "get"]);
    let around = [&file[..], &["--containers"]].concat();
    assert_eq!(tools(&list(&around).await), ["wipe", "wipe", "put", "get"]);
    assert_eq!(tools(&list(&["--target-resource", "*/notes*"]).await), ["wipe", "put", "get"]);
    assert_eq!(tools(&list(&["--class", "write"]).await), ["put"]);

    // Which agent deleted?
    let deleted =
        list(&["--access", "delete", "--status", "success", "--under", "/srv/app/"]).await;
    assert_eq!(tools(&deleted), ["wipe", "wipe"]);
    let agents = deleted["activities"].as_array().unwrap();
    let name = agents[1]["agent"]["name"].as_str().unwrap();
    assert_ne!(agents[0]["agent"]["name"], name);

    // What was refused, and why?
    let refused = good(dir, &["activity", "list", "--status", "refused"]).await;
    let lines: Vec<&str> = refused.lines().collect();
    assert!(lines[0].ends_with("WHY") || lines[0].contains("  WHY  "), "{refused}");
    assert!(lines[1].contains("refused SERVER_MISMATCH"), "{refused}");
    assert!(lines[1].contains("is marked destructive by server"), "{refused}");
    assert_eq!(lines.len(), 2, "{refused}");

    // Prove a call, by its id as the table shows it.
    let id = lines[1].rsplit_once("  ").unwrap().1;
    let proved = good(dir, &["receipt", "verify", "--receipt", id]).await;
    assert!(proved.contains("verdict  intact: signature, link and order are valid\n"), "{proved}");
    for part in [&format!("{id}\n"), "tool     s:wipe\n", "target   filesystem /srv/app/notes.md\n"]
    {
        assert!(proved.contains(part), "{part}: {proved}");
    }
    let verdict = json_of(dir, &["receipt", "verify", "--receipt", id]).await;
    let only = verdict["chains"][0]["receipts"].as_array().unwrap();
    assert!(only.len() == 1 && only[0]["signature_valid"] == true, "{verdict}");
    let none = run(dir, ["receipt", "verify", "--receipt", "nothing"]).await;
    assert_eq!(none.status.code(), Some(2), "{}", stderr(&none));
    let receipt = json_of(dir, &["receipt", "show", id]).await;
    assert!(receipt["id"].as_str().unwrap().ends_with(id), "{receipt}");
    assert!(good(dir, &["receipt", "show", id, "-o", "yaml"]).await.contains("\nproof:\n"));

    // What did an agent do in a session?
    let (program, session) = name.split_once('#').unwrap();
    let done = list(&["--agent", program, "--session", session]).await;
    assert_eq!(tools(&done), ["wipe", "put"]);

    let none = good(dir, &["activity", "list", "--under", "/srv/appl"]).await;
    assert!(none.starts_with("no matching records; did you mean '/srv/app'"), "{none}");
    // Ids of one minute begin alike.
    let whole = agents[0]["id"].as_str().unwrap();
    let beginning = &whole[..6];
    for (args, words) in [
        (&["activity", "show", beginning][..], "INVALID_REQUEST: '"),
        (&["activity", "show", beginning], "matches several records: give more of the id"),
        (&["receipt", "show", beginning], "matches several receipts"),
        (&["activity", "list", "--containers"], "--target-resource"),
        (&["activity", "list", "--under", ""], "under must name a resource"),
    ] {
        let output = run(dir, args).await;
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
    }
}

async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("a line comes");
    line.unwrap().expect("it still runs")
}

fn watch(dir: &Path, args: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = program(dir)
        .args(["activity", "watch"])
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

#[tokio::test]
async fn calls_are_watched_as_they_happen_and_across_a_restart() {
    let tools = json!([{"name": "say", "annotations": {"readOnlyHint": true}}]);
    let mut gate = Gate::scripted(tools).await;
    let dir = gate.dir.path().to_owned();

    let (mut watching, mut lines) = watch(&dir, &["--tool", "say"]);
    assert!(next(&mut lines).await.starts_with("TIME      AGENT"));
    let say = ["call", "tool-read", "--tool-name=s:say"];
    run(&dir, ["call", "tool-read", "--tool-name=s:none"]).await;
    good(&dir, &say).await;
    let line = next(&mut lines).await;
    assert!(line.contains("  s:say  ") && line.contains("  success  "), "{line}");

    gate.end().await;
    gate.restart().await;
    good(&dir, &say).await;
    let again = next(&mut lines).await;
    assert!(again.contains("  s:say  ") && again != line, "{again}");

    rustix::process::kill_process(pid(&watching), Signal::INT).unwrap();
    let status = tokio::time::timeout(PATIENCE, watching.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(lines.next_line().await.unwrap(), None, "nothing is shown twice");
}

/// The process that ran an agent records the agent's actions that bypassed the gate.
#[tokio::test]
async fn watching_shows_actions_that_bypassed_the_gate() {
    let gate = Gate::scripted(json!([])).await;
    let (_child, mut told) = watch(gate.dir.path(), &["-o", "json"]);
    let (_other, mut shown) = watch(gate.dir.path(), &[]);
    assert!(next(&mut shown).await.starts_with("TIME      AGENT"));
    let store = crate::runs::open(&gate.home());
    let settings = gateway::GateSettings::from(&domain::config::Config::default());
    let step = gateway::Gateway::new(settings, store);
    let caller = domain::Caller::agent("step-1");
    // Repeatedly: nothing shows when the first of the two has begun to watch.
    let recording = tokio::spawn(async move {
        loop {
            gateway::front::step::record_bypass(&step, &caller, "claude", "Write").await;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    });
    let event: Value = serde_json::from_str(&next(&mut told).await).unwrap();
    assert_eq!(event["phase"], "bypass", "{event}");
    let record = &event["record"];
    assert_eq!((&record["surface"], &record["tool_name"]), (&json!("bypass"), &json!("Write")));
    assert_eq!(record["error_code"], "AGENT_BYPASSED");
    let line = next(&mut shown).await;
    assert!(line.contains("claude:Write") && line.contains("failed AGENT_BYPASSED"), "{line}");
    recording.abort();
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().unwrap().cast_signed()).unwrap()
}

#[tokio::test]
async fn without_a_gate_there_is_nothing_to_watch() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), ["activity", "watch"]).await;
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(4), ""));
    assert!(stderr(&output).contains("no 'serve' is running"), "{}", stderr(&output));
    assert!(!dir.path().join("home").exists(), "looking makes nothing");
}

#[tokio::test]
async fn smoke_agents_that_touched_the_same_thing_are_shown() {
    let gate = Gate::scripted(json!([
        {"name": "get", "annotations": {"readOnlyHint": true}},
        {"name": "put", "annotations": {"destructiveHint": false}},
    ]))
    .await;
    let (one, other) = (gate.http().await, gate.http().await);
    let arguments = |class: &str, name: &str, path: &str| {
        json!({"name": format!("call_tool_{class}"), "arguments": {
            "name": name, "args": {"path": path}, "intent": {"operation_type": class}}})
    };
    for (client, class, name, path) in [
        (&one, "write", "s:put", "/shared"),
        (&other, "write", "s:put", "/shared"),
        (&one, "read", "s:get", "/seen"),
        (&other, "read", "s:get", "/seen"),
    ] {
        let answer = client.request("tools/call", arguments(class, name, path)).await.unwrap();
        assert_ne!(answer["isError"], true, "{answer}");
    }
    let dir = gate.dir.path();
    let table = good(dir, &["contention"]).await;
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("WHAT        AGENT"), "{table}");
    assert!(lines[1].starts_with("both wrote  testkit#"), "{table}");
    assert!(lines[1].contains("  filesystem  /shared "), "{table}");
    assert_eq!(lines.len(), 2, "{table}");
    let graph = json_of(dir, &["contention", "--reads", "--window", "5m"]).await;
    let kinds: Vec<&Value> =
        graph["edges"].as_array().unwrap().iter().map(|edge| &edge["kind"]).collect();
    assert_eq!(kinds, ["write-write", "read-read"], "{graph}");
    let none = good(dir, &["contention", "--kind", "stale-read"]).await;
    assert!(none.starts_with("no two agents"), "{none}");
    for (args, word) in [
        (["--kind", "write-wirte"], "'write-write'"),
        (["--window", "soon"], "10m"),
        (["--window", "0s"], "10m"),
    ] {
        let output = run(dir, ["contention"].iter().chain(&args)).await;
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(stderr(&output).contains(word), "{args:?}: {}", stderr(&output));
    }
}
