//! The ledger as an auditor reads it: a copy, a home that must not change, a gate that has stopped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::gate::Gate;
use testkit::program::{run, stderr, stdout};

async fn good(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, args).await;
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

async fn json_of(dir: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&good(dir, &[args, &["-o", "json"]].concat()).await).unwrap()
}

async fn refused(dir: &Path, args: &[&str], status: i32) -> String {
    let output = run(dir, args).await;
    assert_eq!(output.status.code(), Some(status), "{args:?}: {}", stderr(&output));
    stderr(&output)
}

/// Returns a home with two calls, and without a running gate.
async fn recorded() -> Gate {
    let mut gate = Gate::scripted(json!([
        {"name": "say", "annotations": {"readOnlyHint": true}},
        {"name": "drop", "annotations": {"destructiveHint": true}},
    ]))
    .await;
    let args = r#"{"path":"/tmp/x"}"#;
    let read = ["call", "tool-read", "--tool-name=s:say", "--json_args", args];
    good(gate.dir.path(), &read).await;
    refused(gate.dir.path(), &["call", "tool-write", "--tool-name=s:drop"], 3).await;
    gate.end().await;
    gate
}

/// Returns every file of a folder with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => all.extend(files(&entry.path())),
            kind if kind.is_file() => {
                all.insert(entry.path(), std::fs::read(entry.path()).unwrap());
            }
            _ => {}
        }
    }
    all
}

/// The commands that read the ledger; `ID` and `RECEIPT` are replaced by one of its records and
/// receipts.
const READING: [&[&str]; 9] = [
    &["activity", "list"],
    &["activity", "show", "ID"],
    &["activity", "summary"],
    &["activity", "export"],
    &["receipt", "list"],
    &["receipt", "show", "RECEIPT"],
    &["receipt", "export"],
    &["contention"],
    &["targets", "coverage"],
];

/// Returns the commands with the ids of the ledger of a home.
async fn reading(dir: &Path) -> Vec<Vec<String>> {
    let list = json_of(dir, &["activity", "list", "--tool", "say"]).await;
    let record = &list["activities"][0];
    let word = |word: &&str| match *word {
        "ID" => record["id"].as_str().unwrap().to_owned(),
        "RECEIPT" => record["receipt_id"].as_str().unwrap().to_owned(),
        word => word.to_owned(),
    };
    READING.iter().map(|args| args.iter().map(word).collect()).collect()
}

#[tokio::test]
async fn smoke_reading_changes_nothing_in_the_home() {
    let gate = recorded().await;
    let dir = gate.dir.path();
    let before = files(&gate.home());
    for args in reading(dir).await {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        good(dir, &args).await;
        let after = files(&gate.home());
        let changed: Vec<&PathBuf> = after
            .iter()
            .filter(|(path, content)| before.get(*path) != Some(content))
            .map(|(path, _)| path)
            .collect();
        assert!(changed.is_empty() && before.len() == after.len(), "{args:?}: {changed:?}");
    }
}

#[tokio::test]
async fn a_copy_is_read_without_its_home() {
    let gate = recorded().await;
    let elsewhere = TempDir::new().unwrap();
    let copy = elsewhere.path().join("copy.db");
    std::fs::copy(gate.home().join("ledger.db"), &copy).unwrap();
    let copy = copy.to_str().unwrap();
    for args in reading(gate.dir.path()).await {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let here = good(gate.dir.path(), &args).await;
        let there = good(elsewhere.path(), &[&args[..], &["--db", copy]].concat()).await;
        assert_eq!(there, here, "{args:?}");
    }
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 1, "nothing was created");
    let export = ["receipt", "export", "--db", copy, "--output", "r.jsonl"];
    let output = run(elsewhere.path(), export).await;
    assert!(stderr(&output).contains("no public key of this ledger"), "{}", stderr(&output));
    assert!(!elsewhere.path().join("r.jsonl.pub.pem").exists());
    let words = refused(elsewhere.path(), &["activity", "list", "--db", "none.db"], 4).await;
    assert!(words.contains("LEDGER_UNAVAILABLE") && words.contains("none.db"), "{words}");
}

#[tokio::test]
async fn a_home_that_does_not_exist_is_an_error() {
    let dir = TempDir::new().unwrap();
    let others: [&[&str]; 3] = [&["runs", "list"], &["runs", "show", "x"], &["keys", "show"]];
    for args in READING.iter().chain(&others) {
        let words = refused(dir.path(), args, 1).await;
        assert!(words.contains("NOT_FOUND: the home '") && words.contains("--home"), "{words}");
        assert!(!dir.path().join("home").exists(), "{args:?} made a home");
    }
    std::fs::create_dir(dir.path().join("home")).unwrap();
    let words = refused(dir.path(), &["activity", "list"], 1).await;
    assert!(words.contains("NOT_FOUND") && words.contains("nothing has been recorded"), "{words}");
    assert_eq!(std::fs::read_dir(dir.path().join("home")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_a_killed_gate_had_not_filed_is_said_to_be_missing() {
    let mut gate = Gate::scripted(json!([{"name": "say"}])).await;
    let dir = gate.dir.path().to_owned();
    good(&dir, &["call", "tool-write", "--tool-name=s:say"]).await;
    gate.kill().await;
    let output = run(&dir, ["activity", "list"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 process did not end properly"), "{}", stderr(&output));
    gate.restart().await;
    gate.end().await;
    let output = run(&dir, ["activity", "list"]).await;
    assert!(!stderr(&output).contains("note:"), "{}", stderr(&output));
}

#[tokio::test]
async fn commands_say_that_a_stopped_gate_does_not_answer() {
    let gate = Gate::scripted(json!([{"name": "say"}])).await;
    let dir = gate.dir.path();
    good(dir, &["call", "tool-write", "--tool-name=s:say"]).await;
    let listing: &[&str] = &["activity", "list"];
    good(dir, listing).await;
    kill_process(gate.pid(), Signal::STOP).unwrap();
    let commands =
        [listing, &["upstream", "list"], &["call", "tool-write", "--tool-name=s:say"], &["mcp"]];
    let answers = commands.map(async |args| (args, refused(dir, args, 4).await));
    for (args, words) in join_all(answers).await {
        let pid = gate.pid().as_raw_nonzero();
        for part in ["TIMEOUT", "has not answered for 5 s", &format!("kill -CONT {pid}"), "--db"] {
            assert!(words.contains(part), "{args:?}: {words}");
        }
        let told = words.contains("may have taken effect; see 'countersign activity list'");
        assert_eq!(told, args[0] == "call", "{args:?}: {words}");
    }
    let file = gate.home().join("ledger.db");
    let table = good(dir, &[listing, &["--db", file.to_str().unwrap()]].concat()).await;
    assert!(table.contains("s:say"), "{table}");
    kill_process(gate.pid(), Signal::CONT).unwrap();
    good(dir, listing).await;
}

#[tokio::test]
async fn receipts_are_found_by_agent_server_target_and_time() {
    let gate = recorded().await;
    let dir = gate.dir.path();
    let agent = json_of(dir, &["activity", "list", "--tool", "say"]).await;
    let agent = &agent["activities"][0]["agent"];
    let (name, token) = (agent["name"].as_str().unwrap(), agent["token"].as_str().unwrap());
    let calls = 2;
    for (args, count) in [
        (&["--agent", name][..], calls),
        (&["--agent", name.split('#').next().unwrap()], calls),
        (&["--agent", token], calls),
        (&["--agent", "nobody"], 0),
        (&["--server", "s"], calls),
        (&["--server", "t"], 0),
        (&["--target-system", "filesystem"], 1),
        (&["--target-resource", "/tmp/x", "--server", "s", "--since", "1h"], 1),
        (&["--target-resource", "/tmp/x", "--until", "1h"], 0),
    ] {
        let list = json_of(dir, &[&["receipt", "list"], args].concat()).await;
        assert_eq!(list["receipts"].as_array().unwrap().len(), count, "{args:?}: {list}");
    }
    // Records expire, and receipts are found nevertheless.
    let db = testkit::ledger::edit(gate.home());
    db.execute_batch("DELETE FROM payloads; DELETE FROM activity").unwrap();
    drop(db);
    let list = json_of(dir, &["receipt", "list", "--agent", name]).await;
    assert_eq!(list["receipts"].as_array().unwrap().len(), calls);
}

#[tokio::test]
async fn many_chains_are_summed_up_in_one_line() {
    let gate = recorded().await;
    let dir = gate.dir.path();
    for _ in 0..3 {
        good(dir, &["call", "tool-read", "--tool-name=s:say", "--config", "config.json"]).await;
    }
    let chains = json_of(dir, &["receipt", "verify"]).await["chains"].as_array().unwrap().len();
    let line = good(dir, &["receipt", "verify"]).await;
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.starts_with(&format!("{chains} chains, ")), "{line}");
    let key = json_of(dir, &["keys", "show"]).await["keys"][0]["fingerprint"].clone();
    for part in ["all intact; ", " to ", "no clock jumps; signed by ", key.as_str().unwrap()] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let table = good(dir, &["receipt", "verify", "-v"]).await;
    assert_eq!(table.lines().count(), chains + 2, "{table}");
    good(dir, &["receipt", "export", "--output", "r.jsonl"]).await;
    let exported = good(dir, &["receipt", "verify", "r.jsonl"]).await;
    assert_eq!(exported, line);

    let db = testkit::ledger::edit(gate.home());
    let sql = "UPDATE receipts SET receipt_json = CAST(x'7b22ff227d' AS TEXT)
               WHERE receipt_number = (SELECT MIN(receipt_number) FROM receipts)";
    db.execute(sql, []).unwrap();
    assert_eq!(db.total_changes(), 1);
    drop(db);
    let output = run(dir, ["receipt", "verify"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let seen = stdout(&output);
    assert!(seen.starts_with(&format!("{chains} chains, ")), "{seen}");
    assert!(seen.contains(", 1 BROKEN; "), "{seen}");
    assert_eq!(seen.matches("BROKEN: ").count(), 1, "the others are still checked: {seen}");
    let list = good(dir, &["receipt", "list"]).await;
    assert!(list.lines().count() > 3, "{list}");
}

#[tokio::test]
async fn a_line_of_an_export_that_is_not_utf8_is_one_broken_receipt() {
    let gate = recorded().await;
    let dir = gate.dir.path();
    good(dir, &["receipt", "export", "--output", "r.jsonl"]).await;
    let mut bytes = std::fs::read(dir.join("r.jsonl")).unwrap();
    let at = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end - 40);
    bytes[at] = 0xff;
    std::fs::write(dir.join("r.jsonl"), bytes).unwrap();
    let output = run(dir, ["receipt", "verify", "r.jsonl"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains(" 1 BROKEN"), "{}", stdout(&output));
}
