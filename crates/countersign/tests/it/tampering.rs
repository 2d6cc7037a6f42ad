//! A home that was edited without its signing key, as everybody sees it who reads the ledger: the
//! command line, the REST API by chain and as a whole (which is what the page asks), and exports of
//! the receipts in both formats. One auditor serves them all, so their verdicts are the same.

mod edits;
mod kinds;
mod stage;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use receipt::Hash;
use reqwest::Method;
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::foreign;
use testkit::program::{run, stderr, stdout};

use self::kinds::{INTACT_EXPORTS, KINDS, Kind, NOT_SIGNED, SHOWN_BY_NO_VIEW};
use self::stage::{Prepared, Stage, call, copy, files};
use crate::page::drive;

/// Gates that share the kinds.
const GATES: usize = 6;

/// The verdict on each chain: whether it is valid, where it is broken, and the reason.
type Verdicts = BTreeMap<String, (bool, Value, Value)>;

fn verdicts(answer: &Value) -> Verdicts {
    let chains = answer["chains"].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
    let verdict = |chain: &Value| {
        let valid = chain["valid"].as_bool().unwrap();
        (valid, chain["broken_at"].clone(), chain["error"].clone())
    };
    chains.map(|chain| (chain["chain_id"].as_str().unwrap().to_owned(), verdict(chain))).collect()
}

/// The receipts of a ledger as a third party gets them, with the public keys.
struct Export {
    dir: TempDir,
    text: String,
}

impl Export {
    /// Exports the receipts as lines and as a table, which have the same texts.
    async fn of(stage: &Stage) -> Export {
        let dir = tempfile::tempdir().unwrap();
        let (lines, table) = (dir.path().join("r.jsonl"), dir.path().join("r.db"));
        for (file, format) in [(&lines, "jsonl"), (&table, "sqlite")] {
            let args = ["receipt", "export", "--format", format, "--output"];
            let output = stage.gate.cli(&[&args[..], &[file.to_str().unwrap()]].concat()).await;
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        }
        let text = String::from_utf8_lossy(&std::fs::read(lines).unwrap()).into_owned();
        let in_table: String = texts(&table).iter().map(|text| format!("{text}\n")).collect();
        assert_eq!(text, in_table);
        Export { dir, text }
    }

    /// Reports whether the command line and REST call it intact.
    async fn is_valid(&self, stage: &Stage) -> (bool, bool) {
        let sent = json!({"name": "r", "text": self.text});
        let (by_cli, (status, by_rest)) = tokio::join!(
            run(self.dir.path(), ["receipt", "verify", "r.jsonl"]),
            stage.gate.rest(Method::POST, "/api/v1/copies/verify", Some(sent)),
        );
        assert_eq!(status, 200, "{by_rest}");
        (by_cli.status.success(), by_rest["valid"] == true)
    }
}

/// Returns the texts of receipts in a published table.
fn texts(table: &Path) -> Vec<String> {
    let db = Connection::open(table).unwrap();
    let mut statement = db.prepare("SELECT receipt_json FROM receipts ORDER BY rowid").unwrap();
    let texts = statement.query_map([], |row| row.get(0)).unwrap();
    texts.collect::<Result<_, _>>().unwrap()
}

/// Returns the verdict of the command line, which is that of REST.
async fn verdict(stage: &Stage, kind: &str) -> Value {
    let (mut by_cli, by_rest) =
        tokio::join!(stage.verified(kind), stage.asked("/api/v1/chains/verify"));
    // The command line adds facts about all receipts.
    by_cli.as_object_mut().unwrap().retain(|name, _| by_rest.get(name).is_some());
    assert_eq!(by_cli, by_rest, "{kind}");
    by_rest
}

/// Returns the chains whose own verdict differs from the one on the whole ledger.
async fn differing(stage: &Stage, verdict: &Value) -> Vec<String> {
    let by_chain = verdicts(verdict);
    let mut differing = Vec::new();
    for (letter, id) in stage.chains() {
        let Some((is_valid, ..)) = by_chain.get(id) else { continue };
        let alone = stage.asked(&format!("/api/v1/chains/{id}/verify")).await;
        if alone["valid"] != *is_valid {
            differing.push(format!("{letter} alone: {}", alone["valid"]));
        }
    }
    differing
}

/// Returns what is wrong with what everybody sees of a kind.
async fn seen(stage: &Stage, kind: &Kind, whole: &Export) -> Vec<String> {
    let verdict = verdict(stage, kind.name).await;
    let mut wrong = differing(stage, &verdict).await;
    if verdict["valid"] == true || !verdict.to_string().contains(kind.found) {
        wrong.push(verdict.to_string());
    }
    let export = Export::of(stage).await;
    if export.text != whole.text {
        let is_intact = INTACT_EXPORTS.contains(&kind.name);
        let verdicts = export.is_valid(stage).await;
        if verdicts != (is_intact, is_intact) {
            wrong.push(format!("its export is valid by command line and REST: {verdicts:?}"));
        }
    }
    wrong.into_iter().map(|words| format!("{}: {words}", kind.name)).collect()
}

/// Shows each kind to everybody who reads the ledger of one gate.
async fn shown(prepared: &Prepared, kinds: &[Kind]) -> Vec<String> {
    let stage = prepared.stage().await;
    let whole = Export::of(&stage).await;
    let mut wrong = Vec::new();
    for kind in kinds {
        stage.tamper(&kind.tampering);
        wrong.extend(seen(&stage, kind, &whole).await);
        stage.mend();
    }
    let verdict = verdict(&stage, "nothing any more").await;
    assert_eq!(verdict["valid"], true, "{verdict}");
    assert_eq!(whole.is_valid(&stage).await, (true, true));
    wrong
}

#[tokio::test]
async fn every_edit_is_found_on_every_surface() {
    let prepared = Prepared::new().await;
    // Over several gates at once.
    let chunks = KINDS.chunks(KINDS.len().div_ceil(GATES));
    let wrong = join_all(chunks.map(|kinds| shown(&prepared, kinds))).await.concat();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), KINDS.len(), wrong.join("\n"));
}

/// Returns everything that the page, and a person at the command line, can see of the ledger.
async fn views(stage: &Stage) -> BTreeMap<String, Value> {
    let mut views = BTreeMap::new();
    let mut paths: Vec<String> = [
        "/activity?limit=100",
        "/activity/export",
        "/receipts?limit=100",
        "/receipts/export",
        "/chains",
        "/contention?containers=true",
        "/targets/coverage",
        "/runs",
        "/agents",
        "/tokens",
        "/servers",
        "/servers/s/items",
        "/tools",
        "/keys",
    ]
    .map(str::to_owned)
    .to_vec();
    for (list, name) in [("activity", "activities"), ("receipts", "receipts"), ("runs", "runs")] {
        let page = stage.asked(&format!("/api/v1/{list}?limit=100")).await;
        let ids = page[name].as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap());
        paths.extend(ids.map(|id| format!("/{list}/{id}")));
    }
    for path in paths {
        let (_, view) = stage.gate.rest(Method::GET, &format!("/api/v1{path}"), None).await;
        views.insert(path, view);
    }
    views
}

#[tokio::test]
async fn an_edit_that_is_no_fault_changes_no_view_but_of_what_is_not_signed() {
    let stage = Prepared::new().await.stage().await;
    let before = views(&stage).await;
    let unseen = SHOWN_BY_NO_VIEW.iter().map(|sql| (sql, false));
    let mut wrong = Vec::new();
    for (sql, is_shown) in unseen.chain(NOT_SIGNED.iter().map(|sql| (sql, true))) {
        stage.sql(sql);
        let verdict = verdict(&stage, sql).await;
        let after = views(&stage).await;
        let changed: Vec<_> =
            before.keys().filter(|path| after.get(*path) != before.get(*path)).collect();
        if verdict["valid"] == false {
            wrong.push(format!("{sql} is found, so it belongs to the kinds: {verdict}"));
        } else if is_shown == changed.is_empty() {
            wrong.push(format!("{sql} is not found and changes {changed:?}"));
        }
        stage.mend();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_browser_shows_that_the_ledger_is_broken() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let stage = Prepared::new().await.stage().await;
    let act = async |what: &str, args: Value| {
        match what {
            "tamper" => {
                let kind = KINDS.iter().find(|kind| kind.name == args["kind"]).unwrap();
                stage.tamper(&kind.tampering);
            }
            "mend" => stage.mend(),
            what => panic!("nobody expected '{what}'"),
        }
        json!({})
    };
    // One of each class of findings.
    let kinds = json!([
        ["the end that no checkpoint names is gone", "the chain has 1 receipts, but had 3"],
        ["a chain is gone with its row and its records", "but had 2 at the checkpoint"],
        ["another outcome", "signature does not match"],
        ["the column of the hash", "the columns hash"],
        ["opened by another process", "the table of chains"],
        ["no checkpoint is listed", "the table of checkpoints"],
        ["a failed call succeeded", "its record differs"],
        ["a record was made up", "names no receipt"],
        ["an agent met itself", "meetings do not follow"],
        ["a tool is on again", "signed decisions"],
        ["checkpoint.json is noise", "checkpoint.json is not a checkpoint"],
    ]);
    drive(&stage.gate, "broken.mjs", json!({"kinds": kinds}), act).await;
}

/// A copy of a home over which no gate runs, with an open chain that no checkpoint names.
struct Left {
    dir: TempDir,
    chain: String,
}

impl Left {
    fn of(stage: &Stage) -> Left {
        Left { dir: copy(stage.gate.dir.path()), chain: stage.chains()[&'k'].clone() }
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Executes SQL in which `{k}` is the id of the chain.
    fn sql(&self, sql: &str) {
        let sql = sql.replace("{k}", &self.chain);
        testkit::ledger::edit(self.home()).execute_batch(&sql).unwrap();
    }

    fn length(&self) -> i64 {
        let sql = "SELECT COUNT(*) FROM receipts WHERE chain_id=?1";
        let db = testkit::ledger::read(self.home());
        db.query_row(sql, [&self.chain], |row| row.get(0)).unwrap()
    }

    async fn run(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = run(self.dir.path(), args).await;
        (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
    }

    async fn verify(&self, args: &[&str]) -> (Option<i32>, String) {
        self.run(&[&["receipt", "verify"], args].concat()).await
    }
}

#[tokio::test]
async fn a_cut_end_is_never_signed_over() {
    let left = Left::of(&Prepared::new().await.stage().await);
    left.sql("DELETE FROM receipts WHERE chain_id='{k}' AND sequence > 1");
    for _ in 0..2 {
        let (code, words) = left.verify(&[]).await;
        assert_eq!(code, Some(1), "{words}");
        assert!(words.contains("the chain has 1 receipts, but had 3"), "{words}");
    }
    call(left.dir.path()).await;
    assert_eq!(left.length(), 1, "nothing was signed onto what is left");
    let (code, words) = left.verify(&[]).await;
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("the end of the chain is missing"), "{words}");
}

#[tokio::test]
async fn an_earlier_copy_of_the_database_is_not_used() {
    let stage = Prepared::new().await.stage().await;
    stage.tamper(&kinds::Tampering::Earlier);
    let left = Left::of(&stage);
    let (code, words) = left.run(&["call", "tool-read", "--tool-name=s:say"]).await;
    assert_eq!(code, Some(4), "{words}");
    assert!(words.contains("LEDGER_INCOMPLETE"), "{words}");
    let (code, words) = left.verify(&[]).await;
    assert_eq!(code, Some(1), "{words}");
}

#[tokio::test]
async fn smoke_a_journal_that_is_not_filed_yet_is_a_note_and_no_fault() {
    let left = Left::of(&Prepared::new().await.stage().await);
    // The state that a crash leaves between a commit and its filing.
    left.sql(
        "DELETE FROM activity WHERE receipt_id IN
           (SELECT id FROM receipts WHERE chain_id='{k}' AND sequence > 1);
         DELETE FROM touches WHERE number NOT IN (SELECT number FROM activity);
         DELETE FROM receipts WHERE chain_id='{k}' AND sequence > 1;
         UPDATE chains SET length=1, last_hash=(SELECT receipt_hash FROM receipts
           WHERE chain_id='{k}'), filed = filed - 2 WHERE chain_id='{k}'",
    );
    let (code, words) = left.verify(&[]).await;
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("2 entries are in its journal"), "{words}");
    call(left.dir.path()).await;
    let (code, words) = left.verify(&[]).await;
    assert_eq!(code, Some(0), "{words}");
    assert_eq!(left.length(), 4, "both receipts, and the end");
}

#[tokio::test]
async fn a_head_kept_elsewhere_shows_what_the_home_no_longer_does() {
    let stage = Prepared::new().await.stage().await;
    let earlier = Left::of(&stage);
    let issued = stage.gate.cli(&["ledger", "head"]).await;
    assert_eq!(issued.status.code(), Some(0), "{}", stderr(&issued));
    let now = Left::of(&stage);
    let before = files(&now.home());
    let (code, head) = now.run(&["ledger", "head"]).await;
    assert_eq!((code, &head), (Some(0), &stdout(&issued)));
    assert!(files(&now.home()) == before, "without a running gate, it only reads");
    let words: Vec<&str> = head.trim().split(' ').collect();
    assert!(words.len() == 3 && words[0].starts_with("sha256:") && words[1] == "4", "{head}");
    let receipt = std::fs::read_to_string(now.home().join("checkpoint.json")).unwrap();
    for kept in [&head, &receipt] {
        let (code, words) = now.verify(&["--head", kept]).await;
        assert_eq!(code, Some(0), "{words}");
    }
    let other = head.replace(words[0], &Hash::of(b"another ledger").to_string());
    let (code, words) = now.verify(&["--head", &other]).await;
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("no checkpoint has the head"), "{words}");
    let (code, words) = now.verify(&["--head", "noise"]).await;
    assert_eq!(code, Some(2), "{words}");
    // An attacker who replaces the ledger replaces the file next to it as well.
    std::fs::remove_file(earlier.home().join("checkpoint.json")).unwrap();
    let (code, words) = earlier.verify(&[]).await;
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("checkpoint.json is missing"), "{words}");
    for kept in [&head, &receipt] {
        let (code, words) = earlier.verify(&["--head", kept]).await;
        assert_eq!(code, Some(1), "{words}");
    }
}
