//! A tampered ledger, verified in every way: the command line, the REST API by chain and as a
//! whole, and copies through both. One auditor serves them all, so their verdicts are the same.

mod homes;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use rusqlite::Connection;
use serde_json::{Value, json};
use testkit::gate::Gate;
use testkit::program::{run, stderr, stdout};
use testkit::upstream::scripted;

/// The chains of the home, oldest first: three of the command line, with a call and an end each,
/// and the gate's, which is open.
struct Stage {
    gate: Gate,
    db: Connection,
    chains: Vec<String>,
}

/// A receipt: the index of its chain, and its sequence number.
type At = (usize, i64);

enum Tampering {
    Sql(&'static str),
    /// Replaces a receipt's text.
    Text(At, fn(String) -> String),
    Swap(At, At),
    /// Repeats a receipt at the end of a chain.
    Again(At, usize),
}

use Tampering::{Again, Sql, Swap, Text};

/// Gates that share the kinds of tampering.
const GATES: usize = 4;

/// `{0}` to `{3}` are the ids of the chains.
const KINDS: [(&str, Tampering); 24] = [
    ("the end of a chain is gone", Sql("DELETE FROM receipts WHERE chain_id='{1}' AND sequence=2")),
    ("the beginning is gone", Sql("DELETE FROM receipts WHERE chain_id='{1}' AND sequence=1")),
    ("all receipts of a chain are gone", Sql("DELETE FROM receipts WHERE chain_id='{1}'")),
    (
        "a chain and its opening are gone",
        Sql("DELETE FROM receipts WHERE chain_id='{1}'; DELETE FROM chains WHERE chain_id='{1}'"),
    ),
    (
        "the oldest chain is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{0}'; DELETE FROM chains WHERE chain_id='{0}'"),
    ),
    (
        "a chain is said to have expired",
        Sql("DELETE FROM receipts WHERE chain_id='{1}';
             UPDATE chains SET status='expired' WHERE chain_id='{1}'"),
    ),
    (
        "the end of the last closed chain is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{2}' AND sequence=2;
             UPDATE chains SET status='open' WHERE chain_id='{2}'"),
    ),
    (
        "a receipt in the middle is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{3}' AND sequence=2"),
    ),
    (
        "a receipt is in another chain",
        Sql("UPDATE receipts SET chain_id='{1}', sequence=3 WHERE chain_id='{3}' AND sequence=3"),
    ),
    ("two receipts are exchanged", Swap((3, 1), (3, 2))),
    ("two chains are exchanged in part", Swap((0, 1), (1, 1))),
    ("a receipt comes twice", Again((3, 2), 3)),
    ("something follows the end", Again((1, 1), 0)),
    ("another tool", Text((1, 1), |text| text.replace("\"say\"", "\"pay\""))),
    ("another outcome", Text((3, 2), |text| text.replace("\"success\"", "\"failure\""))),
    (
        "another time",
        Text((1, 2), |text| text.replace("issuanceDate\":\"20", "issuanceDate\":\"19")),
    ),
    ("another signature", Text((3, 1), |text| other_signature(&text))),
    ("no proof", Text((3, 1), |text| without(&text, "proof"))),
    ("another sequence", Text((3, 2), |text| text.replace("\"sequence\":2", "\"sequence\":7"))),
    (
        "another link",
        Text((3, 3), |text| {
            text.replacen(
                "previous_receipt_hash\":\"sha256:",
                "previous_receipt_hash\":\"sha256:0",
                1,
            )
        }),
    ),
    ("one member more", Text((1, 1), |text| text.replacen('{', "{\"x\":1,", 1))),
    ("a member twice", Text((1, 1), |text| text.replacen('{', "{\"version\":\"0.5.0\",", 1))),
    ("no JSON", Text((3, 2), |_| "noise".to_owned())),
    ("half of it", Text((3, 2), |text| text[..text.len() / 2].to_owned())),
];

fn other_signature(text: &str) -> String {
    let mut receipt: Value = serde_json::from_str(text).unwrap();
    let value = receipt["proof"]["proofValue"].as_str().unwrap().to_owned();
    let first = if value.as_bytes()[1] == b'A' { "uB" } else { "uA" };
    receipt["proof"]["proofValue"] = format!("{first}{}", &value[2..]).into();
    receipt.to_string()
}

fn without(text: &str, member: &str) -> String {
    let mut receipt: Value = serde_json::from_str(text).unwrap();
    receipt.as_object_mut().unwrap().shift_remove(member);
    receipt.to_string()
}

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

impl Stage {
    async fn new() -> Stage {
        let dir = tempfile::tempdir().unwrap();
        let tools = json!([{"name": "say", "annotations": {"readOnlyHint": true}}]);
        let config = json!({"mcpServers": {"s": scripted(dir.path(), "s", &tools)}});
        let file = dir.path().join("config.json");
        std::fs::write(&file, config.to_string()).unwrap();
        for _ in 0..3 {
            let file = file.to_str().unwrap();
            let call = ["call", "tool-read", "--tool-name=s:say", "--config", file];
            let output = run(dir.path(), call).await;
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        }
        let gate = Gate::open(dir).await;
        let client = gate.http().await;
        for _ in 0..4 {
            client.two_key_call("read", "s:say", json!({})).await;
        }
        let (_, listed) = gate.rest(Method::GET, "/api/v1/chains", None).await;
        let chains = listed["chains"].as_array().unwrap().iter().rev();
        let chains: Vec<String> =
            chains.map(|chain| chain["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(chains.len(), 4, "{listed}");
        let db = testkit::ledger::edit(gate.home());
        db.busy_timeout(Duration::from_secs(10)).unwrap();
        db.execute_batch(
            "CREATE TEMP TABLE kept_signed_receipts AS SELECT number AS place, * FROM signed_receipts;
             CREATE TEMP TABLE kept_chains AS SELECT rowid AS place, * FROM chains;",
        )
        .unwrap();
        Stage { gate, db, chains }
    }

    fn text(&self, (chain, sequence): At) -> String {
        let sql = "SELECT receipt_json FROM receipts WHERE chain_id=?1 AND sequence=?2";
        self.db.query_row(sql, (&self.chains[chain], sequence), |row| row.get(0)).unwrap()
    }

    fn put(&self, (chain, sequence): At, text: &str) {
        let sql = "UPDATE receipts SET receipt_json=?3 WHERE chain_id=?1 AND sequence=?2";
        let before = self.db.total_changes();
        self.db.execute(sql, (&self.chains[chain], sequence, text)).unwrap();
        assert_eq!(self.db.total_changes() - before, 1);
    }

    fn tamper(&self, kind: &Tampering) {
        match kind {
            Sql(sql) => {
                let named = self.chains.iter().enumerate();
                let sql = named.fold((*sql).to_owned(), |sql, (place, id)| {
                    sql.replace(&format!("{{{place}}}"), id)
                });
                let before = self.db.total_changes();
                self.db.execute_batch(&sql).unwrap();
                assert!(self.db.total_changes() > before, "{sql}");
            }
            Text(at, change) => {
                let text = self.text(*at);
                let changed = change(text.clone());
                assert_ne!(changed, text);
                self.put(*at, &changed);
            }
            Swap(one, other) => {
                let (first, second) = (self.text(*one), self.text(*other));
                self.put(*one, &second);
                self.put(*other, &first);
            }
            Again((chain, sequence), onto) => {
                let columns = "own, receipt_json, receipt_hash";
                let sql = format!(
                    "INSERT INTO receipts (id, chain_id, sequence, {columns})
                     SELECT 'urn:again', ?3, (SELECT max(sequence) + 1 FROM receipts WHERE \
                     chain_id=?3), {columns} FROM receipts WHERE chain_id=?1 AND sequence=?2"
                );
                let onto = &self.chains[*onto];
                self.db.execute(&sql, (&self.chains[*chain], sequence, onto)).unwrap();
            }
        }
    }

    fn mend(&self) {
        for table in ["signed_receipts", "chains"] {
            let columns: Vec<String> = self
                .db
                .prepare(&format!(
                    "SELECT name FROM pragma_table_info('{table}') WHERE name <> 'number'"
                ))
                .and_then(|mut names| names.query_map([], |row| row.get(0))?.collect())
                .unwrap();
            let columns = columns.join(", ");
            let sql = format!(
                "BEGIN IMMEDIATE; DELETE FROM {table};
                 INSERT INTO {table} (rowid, {columns}) SELECT place, {columns} FROM kept_{table};
                 COMMIT;"
            );
            self.db.execute_batch(&sql).unwrap();
        }
    }

    async fn verified(&self, args: &[&str]) -> Value {
        let output = self.gate.cli(&[&["receipt", "verify", "-o", "json"], args].concat()).await;
        let code = output.status.code();
        let answer: Value = serde_json::from_str(&stdout(&output))
            .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
        assert_eq!(code, Some(if answer["valid"] == true { 0 } else { 1 }), "{answer}");
        answer
    }

    async fn asked(&self, path: &str) -> Value {
        let (status, answer) = self.gate.rest(Method::GET, path, None).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Writes every receipt of the ledger, chain after chain, to a file that both can verify.
    fn copy(&self) -> std::path::PathBuf {
        let folder = self.gate.home().join("copies");
        std::fs::create_dir_all(&folder).unwrap();
        let sql = "SELECT receipt_json FROM receipts ORDER BY chain_id, sequence";
        let lines: Vec<String> = self
            .db
            .prepare(sql)
            .and_then(|mut texts| texts.query_map([], |row| row.get(0))?.collect())
            .unwrap();
        let file = folder.join("copy.jsonl");
        std::fs::write(&file, lines.join("\n")).unwrap();
        file
    }

    /// Verifies in every way at once: each waits a moment for receipts that may not be signed yet.
    async fn look(&self, keys: &Path, kind: &str) -> Looks {
        let copy = self.copy();
        let copy = [copy.to_str().unwrap(), "--public-key", keys.to_str().unwrap()];
        let (by_cli, by_rest, by_chain, by_cli_copy, by_rest_copy) = tokio::join!(
            self.verified(&[]),
            self.asked("/api/v1/chains/verify"),
            join_all(self.chains.iter().map(|id| self.asked_of_chain(id))),
            self.verified(&copy),
            self.asked("/api/v1/copies/copy.jsonl/verify"),
        );
        assert_eq!(verdicts(&by_cli), verdicts(&by_rest), "{kind}");
        let mut by_cli = by_cli;
        // The command line adds facts about all receipts.
        by_cli.as_object_mut().unwrap().retain(|name, _| by_rest.get(name).is_some());
        assert_eq!(by_cli, by_rest, "{kind}");
        for (id, (status, chain)) in self.chains.iter().zip(by_chain) {
            let verdict = verdicts(&by_cli).get(id).map(|(valid, ..)| *valid);
            assert_eq!((status, chain["valid"].as_bool()), (200, verdict), "{kind}: {chain}");
        }
        assert_eq!(verdicts(&by_cli_copy), verdicts(&by_rest_copy), "{kind}");
        assert_eq!(by_cli_copy["valid"], by_rest_copy["valid"], "{kind}");
        Looks { ledger: by_cli["valid"] == true, copy: by_cli_copy["valid"] == true }
    }

    async fn asked_of_chain(&self, id: &str) -> (u16, Value) {
        self.gate.rest(Method::GET, &format!("/api/v1/chains/{id}/verify"), None).await
    }
}

/// The verdicts: true if every chain is intact.
#[derive(Debug, PartialEq, Eq)]
struct Looks {
    ledger: bool,
    copy: bool,
}

#[tokio::test]
async fn every_side_sees_the_same_tampering() {
    // On several gates at once, since each verification waits.
    join_all(KINDS.chunks(KINDS.len().div_ceil(GATES)).map(sees)).await;
}

/// Shows each kind of tampering to every side of one gate.
async fn sees(kinds: &[(&str, Tampering)]) {
    let stage = Stage::new().await;
    let keys = stage.gate.dir.path().join("keys.pem");
    let output = stage.gate.cli(&["keys", "show", "--pem"]).await;
    std::fs::write(&keys, stdout(&output)).unwrap();
    let whole = Looks { ledger: true, copy: true };
    assert_eq!(stage.look(&keys, "nothing").await, whole);
    for (kind, tampering) in kinds {
        stage.tamper(tampering);
        assert_eq!(stage.look(&keys, kind).await, Looks { ledger: false, copy: false }, "{kind}");
        stage.mend();
    }
    assert_eq!(stage.look(&keys, "nothing any more").await, whole);
}
