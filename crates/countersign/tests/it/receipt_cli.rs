//! Receipts as their owner and a third party verify them.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::gate::Gate;
use testkit::program::{run, stderr, stdout};
use testkit::upstream::scripted;

use crate::cli::in_both_ways;

async fn good(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, args).await;
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

async fn refused(dir: &Path, args: &[&str], status: i32) -> String {
    let output = run(dir, args).await;
    assert_eq!(output.status.code(), Some(status), "{args:?}: {}", stderr(&output));
    stderr(&output)
}

/// Makes a home without a running gate, where a separate process with its own chain makes each
/// call.
async fn three_chains() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let tools = json!([{"name": "say", "annotations": {"readOnlyHint": true}}]);
    let config = json!({"mcpServers": {"s": scripted(dir.path(), "s", &tools)}});
    let folder = dir.path().join("xdg-config/countersign");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    for _ in 0..3 {
        good(dir.path(), &["call", "tool-read", "--tool-name=s:say"]).await;
    }
    dir
}

/// An export in its own folder, as a third party gets it; its lines, oldest chain first.
struct Export {
    dir: TempDir,
    lines: Vec<String>,
}

impl Export {
    async fn of(home: &Path) -> Export {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("r.jsonl");
        good(home, &["receipt", "export", "--output", file.to_str().unwrap()]).await;
        let text = std::fs::read_to_string(file).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_by_key(|line| place(line));
        Export { dir, lines }
    }

    fn write(&self, lines: &[String]) {
        std::fs::write(self.dir.path().join("r.jsonl"), lines.join("\n")).unwrap();
    }

    /// Returns the reported fault of these lines.
    async fn broken(&self, lines: &[String]) -> String {
        self.write(lines);
        refused(self.dir.path(), &["receipt", "verify", "r.jsonl"], 1).await
    }

    fn without(&self, index: usize) -> Vec<String> {
        let mut lines = self.lines.clone();
        lines.remove(index);
        lines
    }
}

/// Returns the position of a line; chains are named by their time.
fn place(line: &str) -> (String, u64) {
    let receipt: Value = serde_json::from_str(line).unwrap();
    let chain = &receipt["credentialSubject"]["chain"];
    (chain["chain_id"].as_str().unwrap().to_owned(), chain["sequence"].as_u64().unwrap())
}

#[tokio::test]
async fn smoke_receipts_are_listed_shown_and_verified() {
    in_both_ways(async |dir| {
        good(dir, &["call", "tool-read", "--tool-name=s:say"]).await;
        let list = good(dir, &["receipt", "list", "--status", "success", "-o", "json"]).await;
        let list: Value = serde_json::from_str(&list).unwrap();
        let entries = list["receipts"].as_array().unwrap();
        let entry = entries.iter().find(|entry| entry["action_type"] == "data.api.read");
        let entry = entry.unwrap_or_else(|| panic!("{list}"));
        let id = entry["id"].as_str().unwrap();
        let table = good(dir, &["receipt", "list"]).await;
        assert!(table.lines().any(|line| line.ends_with(&id[id.len() - 8..])), "{table}");

        let raw = good(dir, &["receipt", "show", "--raw", id]).await;
        assert!(good(dir, &["receipt", "export"]).await.lines().any(|line| line == raw));
        let shown = good(dir, &["receipt", "show", id.strip_prefix("urn:receipt:").unwrap()]).await;
        assert!(shown.starts_with("{\n  \""), "{shown}");
        assert_eq!(
            serde_json::from_str::<Value>(&shown).unwrap(),
            serde_json::from_str::<Value>(&raw).unwrap()
        );
        refused(dir, &["receipt", "show", "nothing"], 1).await;

        let verdict = good(dir, &["receipt", "verify", "-o", "json"]).await;
        let verdict: Value = serde_json::from_str(&verdict).unwrap();
        assert_eq!(verdict["valid"], true, "{verdict}");
        assert_eq!(verdict["clock_jumps"], json!({"back": 0, "ahead": 0}), "{verdict}");
        assert_eq!(verdict["signers"].as_array().unwrap().len(), 1, "{verdict}");
        assert!(verdict["first"].as_str() <= verdict["last"].as_str(), "{verdict}");
        let chain = &verdict["chains"][0];
        assert_eq!(chain["chain_id"], entry["chain_id"], "{verdict}");
        let table = good(dir, &["receipt", "verify", "-v"]).await;
        let (line, table) = table.split_once('\n').unwrap();
        assert!(line.contains("all intact; "), "{line}");
        assert!(table.starts_with("CHAIN") && table.trim_end().ends_with("intact"), "{table}");
    })
    .await;
}

#[tokio::test]
async fn changes_of_an_export_are_detected_without_the_home() {
    let home = three_chains().await;
    let export = Export::of(home.path()).await;
    let verify = ["receipt", "verify", "r.jsonl"];
    let line = good(export.dir.path(), &verify).await;
    assert!(line.starts_with("3 chains, 6 receipts, all intact; "), "{line}");
    assert!(!export.dir.path().join("home").exists(), "no home is needed");
    let chains: Vec<(String, u64)> = export.lines.iter().map(|line| place(line)).collect();
    assert_eq!(chains.len(), 6, "{chains:?}");

    let mut changed = export.lines.clone();
    changed[2] = changed[2].replace("data.api.read", "data.api.write");
    let words = export.broken(&changed).await;
    assert!(
        words.contains(&format!("chain {} is broken at receipt 1 (urn:", chains[2].0)),
        "{words}"
    );
    assert!(words.contains("signature"), "{words}");
    let words = export.broken(&export.without(2)).await;
    assert!(words.contains("sequence is 2, expected 1"), "{words}");
    let words = export.broken(&export.without(1)).await;
    assert!(
        words.contains(&chains[0].0) && words.contains("the end of the chain is missing"),
        "{words}"
    );
    let words = export.broken(&export.lines[2..]).await;
    assert!(words.contains(&chains[0].0) && words.contains("the chain is missing"), "{words}");
    let mut unreadable = export.lines.clone();
    unreadable[3].truncate(40);
    let words = export.broken(&unreadable).await;
    assert!(words.contains("broken at receipt 2: ") && words.contains("not valid JSON"), "{words}");

    // A single chain cannot show the others, and the report says so.
    export.write(&export.lines[4..]);
    let output = run(export.dir.path(), verify).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains(&chains[2].0), "{}", stderr(&output));
}

#[tokio::test]
async fn expected_length_and_hash_of_a_chain_are_checked() {
    let home = three_chains().await;
    let export = Export::of(home.path()).await;
    let dir = export.dir.path();
    let chain = place(&export.lines[0]).0;
    let list = good(home.path(), &["receipt", "list", "--chain", &chain, "-o", "json"]).await;
    let list: Value = serde_json::from_str(&list).unwrap();
    let hash = list["receipts"][0]["hash"].as_str().unwrap();
    let first_hash = list["receipts"][1]["hash"].as_str().unwrap();
    let of = |more: &'static [&'static str]| [&["receipt", "verify", "r.jsonl"], more].concat();
    let one = [of(&["--chain"]), vec![chain.as_str()]].concat();
    let and = |more: &[&str]| -> Vec<String> {
        one.iter().chain(more).map(|word| (*word).to_owned()).collect()
    };
    for (args, status) in [
        (and(&["--expect-length", "2", "--expect-final-hash", hash]), 0),
        (and(&["--expect-length", "3"]), 1),
        (and(&["--expect-final-hash", first_hash]), 1),
        (and(&["--expect-final-hash", "sha256:0"]), 2),
    ] {
        let output = run(dir, &args).await;
        assert_eq!(output.status.code(), Some(status), "{args:?}: {}", stderr(&output));
    }
    let words = refused(dir, &of(&["--expect-length", "2"]), 2).await;
    assert!(words.contains("--chain"), "{words}");
    refused(dir, &of(&["--chain", "none"]), 2).await;
}

#[tokio::test]
async fn unverifiable_input_is_not_reported_as_broken() {
    let home = three_chains().await;
    let export = Export::of(home.path()).await;
    let dir = export.dir.path();
    let ledger = home.path().join("home/ledger.db");
    std::fs::copy(&ledger, dir.join("copy.db")).unwrap();
    std::fs::write(dir.join("text.jsonl"), "hello\n").unwrap();
    std::fs::write(dir.join("empty.jsonl"), "").unwrap();
    let key = ["--public-key", "r.jsonl.pub.pem"];
    for (args, word) in [
        (&["nowhere.jsonl"][..], "nowhere.jsonl"),
        (&["text.jsonl", key[0], key[1]], "not an export"),
        (&["empty.jsonl", key[0], key[1]], "no receipts"),
        (&["copy.db", key[0], key[1]], "--db"),
        (&["--db", "nowhere.db", key[0], key[1]], "nowhere.db"),
        (&["--db", "text.jsonl", key[0], key[1]], "text.jsonl"),
        (&["--db", "copy.db"], "--public-key"),
        (&["r.jsonl", "--public-key", "text.jsonl"], "text.jsonl"),
        (&["r.jsonl", "--expect-lenght", "2"], "--expect-length"),
        (&["r.jsonl", "--db", "copy.db"], "--db"),
        (&[], "does not exist yet"),
    ] {
        let words = refused(dir, &[&["receipt", "verify"], args].concat(), 2).await;
        assert!(words.contains(word), "{args:?}: {words}");
    }
    good(dir, &["receipt", "verify", "--db", "copy.db", key[0], key[1]]).await;
    std::fs::remove_file(dir.join("r.jsonl.pub.pem")).unwrap();
    let words = refused(dir, &["receipt", "verify", "r.jsonl"], 2).await;
    assert!(words.contains("r.jsonl.pub.pem") && words.contains("--public-key"), "{words}");
    let stranger = three_chains().await;
    let pem = good(stranger.path(), &["keys", "show", "--pem"]).await;
    std::fs::write(dir.join("r.jsonl.pub.pem"), pem).unwrap();
    let words = refused(dir, &["receipt", "verify", "r.jsonl"], 1).await;
    assert!(words.contains("signed with another key"), "{words}");
}

fn in_ledger(home: &Path, sql: &str) {
    let db = testkit::ledger::edit(home.join("home"));
    db.execute_batch(sql).unwrap();
}

#[tokio::test]
async fn receipts_deleted_from_the_ledger_are_detected() {
    let home = three_chains().await;
    good(home.path(), &["receipt", "verify"]).await;
    let newest = "(SELECT chain_id FROM chains ORDER BY chain DESC LIMIT 1)";
    in_ledger(
        home.path(),
        &format!("DELETE FROM receipts WHERE sequence = 2 AND chain_id = {newest}"),
    );
    let words = refused(home.path(), &["receipt", "verify"], 1).await;
    assert!(words.contains("the end of the chain is missing"), "{words}");

    let home = three_chains().await;
    let middle = "(SELECT chain_id FROM chains ORDER BY chain LIMIT 1 OFFSET 1)";
    in_ledger(
        home.path(),
        &format!(
            "DELETE FROM receipts WHERE chain_id = {middle}; DELETE FROM chains WHERE chain_id = {middle};"
        ),
    );
    let words = refused(home.path(), &["receipt", "verify"], 1).await;
    assert!(words.contains("the chain is missing"), "{words}");

    let home = three_chains().await;
    in_ledger(
        home.path(),
        "UPDATE receipts SET receipt_json = replace(receipt_json, 'low', 'high') WHERE sequence = 1 AND receipt_number = (SELECT MAX(receipt_number) FROM receipts WHERE sequence = 1)",
    );
    let words = refused(home.path(), &["receipt", "verify"], 1).await;
    assert!(words.contains("at receipt 1 (urn:receipt:"), "{words}");
}

#[tokio::test]
async fn old_receipts_stay_valid_after_a_key_rotation() {
    in_both_ways(async |dir| {
        let say = ["call", "tool-read", "--tool-name=s:say"];
        good(dir, &say).await;
        let old = good(dir, &["keys", "show", "--pem"]).await;
        assert!(old.starts_with("-----BEGIN PUBLIC KEY-----\n"), "{old}");
        let told = good(dir, &["keys", "rotate", "-o", "json"]).await;
        let told: Value = serde_json::from_str(&told).unwrap();
        good(dir, &say).await;

        let keys = good(dir, &["keys", "show", "-o", "json"]).await;
        let keys: Value = serde_json::from_str(&keys).unwrap();
        let [current, former] = keys["keys"].as_array().unwrap().as_slice() else {
            panic!("{keys}")
        };
        assert_eq!((&current["current"], &former["current"]), (&json!(true), &json!(false)));
        assert_eq!((&current["did"], &current["file"]), (&told["did"], &told["file"]));
        assert_eq!(former["pem"], old);
        assert_eq!(
            std::fs::read_to_string(current["file"].as_str().unwrap()).unwrap(),
            current["pem"]
        );
        let table = good(dir, &["keys", "show"]).await;
        assert_eq!((table.matches("current").count(), table.matches("previous").count()), (1, 1));

        good(dir, &["receipt", "verify"]).await;
        let folder = dir.join("out");
        std::fs::create_dir(&folder).unwrap();
        good(dir, &["receipt", "export", "--output", "out"]).await;
        let pems = std::fs::read_to_string(folder.join("receipts.jsonl.pub.pem")).unwrap();
        assert_eq!(pems.matches("BEGIN PUBLIC KEY").count(), 2);
        good(dir, &["receipt", "verify", "out/receipts.jsonl"]).await;
        // The first key leads to the second through the rotation that it signed.
        std::fs::write(folder.join("old.pem"), &old).unwrap();
        good(dir, &["receipt", "verify", "--db", "home/ledger.db", "--public-key", "out/old.pem"])
            .await;
    })
    .await;
}

#[tokio::test]
async fn verify_covers_the_latest_receipts_of_a_running_gate() {
    let gate =
        Gate::scripted(json!([{"name": "say", "annotations": {"readOnlyHint": true}}])).await;
    for count in 1..=3 {
        good(gate.dir.path(), &["call", "tool-read", "--tool-name=s:say"]).await;
        let verdict = good(gate.dir.path(), &["receipt", "verify", "-o", "json"]).await;
        let verdict: Value = serde_json::from_str(&verdict).unwrap();
        assert_eq!(
            (&verdict["receipts"], &verdict["chains"][0]["status"]),
            (&json!(count), &json!("unknown"))
        );
    }
}
