//! Tampering with a home while no gate runs. Each case changes a copy of one prepared home;
//! `receipt verify` must report it and write nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use receipt::content::{
    Action, Issuer, OutcomeStatus, Position, Principal, Receipt, ReceiptOutcome, Termination,
};
use receipt::verify::SignedReceipt;
use receipt::{Hash, RiskLevel, SigningKey};
use reqwest::Method;
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::gate::Gate;
use testkit::program::{program, run, stderr, stdout};
use testkit::upstream::scripted;
use testkit::wire::Wire;

/// A home whose `serve` was killed. Its chain (`{s}`) has seven receipts: a read, a write, a failed
/// and a refused call, a checkpoint, and two reads that no checkpoint and no chain names. In
/// between a `wrap` wrote its own chain (`{w}`): a call and the end.
struct Prepared {
    dir: TempDir,
    serve: String,
    wrap: String,
}

/// One way to tamper with a copy of the home.
enum Tampering {
    Sql(&'static str),
    /// Replaces the text of a receipt of the chain of `serve`.
    Text(i64, fn(String) -> String),
    /// Changes the files of the home.
    Files(fn(&Path)),
}

use Tampering::{Files, Sql, Text};

struct Kind {
    name: &'static str,
    tampering: Tampering,
    /// Words of the report.
    found: &'static str,
}

const fn kind(name: &'static str, tampering: Tampering, found: &'static str) -> Kind {
    Kind { name, tampering, found }
}

const END_MISSING: &str = "the end of the chain is missing";
const COLUMNS: &str = "differ from the signed text";
const RECORD: &str = "its record differs from the signed text";
const SIGNATURE: &str = "signature does not match";

const KINDS: [Kind; 61] = [
    // Ends that are cut off.
    kind(
        "the end that no chain names is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{s}' AND sequence > 5"),
        "the chain has 5 receipts, but had 7 according to the table of chains",
    ),
    kind(
        "the end is gone, and the table of chains agrees",
        Sql("DELETE FROM receipts WHERE chain_id='{s}' AND sequence > 5; {5 is the head}"),
        "is missing",
    ),
    kind(
        "the end is gone with its records, up to the checkpoint",
        Sql("DELETE FROM activity WHERE receipt_id IN (SELECT id FROM receipts
               WHERE chain_id='{s}' AND sequence > 4);
             DELETE FROM receipts WHERE chain_id='{s}' AND sequence > 4;
             DELETE FROM checkpoints WHERE chain_id='{s}'; {4 is the head}"),
        "but had 5 at the checkpoint in checkpoint.json",
    ),
    kind(
        "all but the first receipt is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{s}' AND sequence > 1"),
        END_MISSING,
    ),
    kind(
        "the last receipt of a closed chain is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{w}' AND sequence=2"),
        END_MISSING,
    ),
    kind(
        "the same, and the chain is said to be open",
        Sql("DELETE FROM receipts WHERE chain_id='{w}' AND sequence=2;
             UPDATE chains SET status='open', length=1, last_hash=(SELECT receipt_hash FROM receipts
               WHERE chain_id='{w}') WHERE chain_id='{w}'"),
        "but had 2 at the checkpoint in receipt 5",
    ),
    // Whole chains.
    kind(
        "all receipts of a chain are gone",
        Sql("DELETE FROM receipts WHERE chain_id='{w}'"),
        "the chain is missing",
    ),
    kind(
        "a chain is gone with its row and its records",
        Sql("DELETE FROM activity WHERE receipt_id IN (SELECT id FROM receipts
               WHERE chain_id='{w}');
             DELETE FROM receipts WHERE chain_id='{w}'; DELETE FROM chains WHERE chain_id='{w}'"),
        "the chain has 0 receipts, but had 2 at the checkpoint in receipt 5",
    ),
    kind(
        "the chain with the checkpoint is gone with its row and its records",
        Sql("DELETE FROM activity WHERE receipt_id IN (SELECT id FROM receipts
               WHERE chain_id='{s}');
             DELETE FROM receipts WHERE chain_id='{s}'; DELETE FROM chains WHERE chain_id='{s}'"),
        "the chain is missing",
    ),
    kind(
        "a chain is said to have expired",
        Sql("DELETE FROM receipts WHERE chain_id='{w}';
             UPDATE chains SET status='expired' WHERE chain_id='{w}'"),
        "is missing",
    ),
    kind(
        "the row of a chain is gone",
        Sql("DELETE FROM chains WHERE chain_id='{w}'"),
        "the chain is not in the table of chains",
    ),
    kind(
        "the ledger was emptied",
        Sql("DELETE FROM receipts; DELETE FROM chains; DELETE FROM activity;
             DELETE FROM checkpoints"),
        "the checkpoint in checkpoint.json names it",
    ),
    // Earlier states.
    kind("the ledger is an earlier copy", Files(roll_back), "at the checkpoint in checkpoint.json"),
    kind(
        "the ledger is an earlier copy, and a gate went on with it",
        Files(roll_back),
        "a gate found that the end of the chain is missing",
    ),
    kind(
        "checkpoint.json is of another ledger",
        Files(|home| {
            let text = std::fs::read_to_string(home.join("checkpoint.json")).unwrap();
            let other = text.replace("\"low\"", "\"high\"");
            assert_ne!(other, text);
            std::fs::write(home.join("checkpoint.json"), other).unwrap();
        }),
        "checkpoint.json is not a checkpoint: signature does not match",
    ),
    kind(
        "checkpoint.json is noise",
        Files(|home| std::fs::write(home.join("checkpoint.json"), "noise").unwrap()),
        "checkpoint.json is not a checkpoint",
    ),
    // Receipts in the wrong place.
    kind(
        "the beginning is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{s}' AND sequence=1"),
        "sequence is 2, expected 1",
    ),
    kind(
        "a receipt in the middle is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{s}' AND sequence=3"),
        "sequence is 4, expected 3",
    ),
    kind(
        "the checkpoint is gone",
        Sql("DELETE FROM receipts WHERE chain_id='{s}' AND sequence=5;
             DELETE FROM checkpoints WHERE chain_id='{s}'"),
        "sequence is 6, expected 5",
    ),
    kind(
        "a gap is closed by renumbering",
        Sql("DELETE FROM receipts WHERE chain_id='{s}' AND sequence=6;
             UPDATE receipts SET sequence=6 WHERE chain_id='{s}' AND sequence=7"),
        "sequence is 7, expected 6",
    ),
    kind(
        "two receipts are exchanged",
        Sql("UPDATE receipts SET sequence=90 WHERE chain_id='{s}' AND sequence=1;
             UPDATE receipts SET sequence=1 WHERE chain_id='{s}' AND sequence=2;
             UPDATE receipts SET sequence=2 WHERE chain_id='{s}' AND sequence=90"),
        "sequence is 2, expected 1",
    ),
    kind(
        "a receipt is in another chain",
        Sql("UPDATE receipts SET chain_id='{w}', sequence=3 WHERE chain_id='{s}' AND sequence=7"),
        "belongs to chain",
    ),
    kind(
        "a receipt comes twice",
        Sql("INSERT INTO receipts (id, chain_id, sequence, receipt_json, receipt_hash)
             SELECT 'urn:again', chain_id, 8, receipt_json, receipt_hash FROM receipts
             WHERE chain_id='{s}' AND sequence=7"),
        "sequence is 7, expected 8",
    ),
    kind("the end is forged", Files(forge_end), "signed with another key"),
    kind(
        "a chain has another id",
        Sql("UPDATE receipts SET chain_id='other' WHERE chain_id='{w}';
             UPDATE chains SET chain_id='other' WHERE chain_id='{w}'"),
        "the columns chain_id",
    ),
    // Texts.
    kind("another tool", Text(1, |text| text.replace("\"say\"", "\"pay\"")), SIGNATURE),
    kind("another outcome", Text(3, |text| text.replace("\"failure\"", "\"success\"")), SIGNATURE),
    kind(
        "another time",
        Text(2, |text| text.replace("issuanceDate\":\"20", "issuanceDate\":\"19")),
        SIGNATURE,
    ),
    kind("another head in the checkpoint", Text(5, |text| longer_head(&text)), SIGNATURE),
    kind("another signature", Text(2, |text| super::other_signature(&text)), SIGNATURE),
    kind("no proof", Text(2, |text| super::without(&text, "proof")), "proof is missing"),
    kind(
        "another sequence",
        Text(2, |text| text.replace("\"sequence\":2", "\"sequence\":9")),
        SIGNATURE,
    ),
    kind("one member more", Text(2, |text| text.replacen('{', "{\"x\":1,", 1)), SIGNATURE),
    kind(
        "a member twice",
        Text(2, |text| text.replacen('{', "{\"version\":\"0.5.0\",", 1)),
        "not valid JSON",
    ),
    kind("no JSON", Text(2, |_| "noise".to_owned()), "not valid JSON"),
    kind("half of it", Text(2, |text| text[..text.len() / 2].to_owned()), "not valid JSON"),
    kind(
        "not text",
        Sql("UPDATE receipts SET receipt_json=CAST(x'ff00fe' AS TEXT)
             WHERE chain_id='{s}' AND sequence=2"),
        "not valid JSON",
    ),
    // Columns of receipts.
    kind(
        "the column of the id",
        Sql("UPDATE receipts SET id=id || 'x' WHERE {3}"),
        "the receipt of record",
    ),
    kind(
        "a receipt passes for one of the ledger itself",
        Sql("UPDATE receipts SET own='agent_receipts.chain_expired' WHERE {3}"),
        COLUMNS,
    ),
    kind(
        "a receipt of the ledger itself passes for a call's",
        Sql("UPDATE receipts SET own=NULL WHERE own IS NOT NULL AND chain_id='{w}'"),
        COLUMNS,
    ),
    kind("the column of the hash", Sql("UPDATE receipts SET receipt_hash='x' WHERE {3}"), COLUMNS),
    // Records.
    kind(
        "a record is gone",
        Sql("DELETE FROM activity WHERE receipt_id=(SELECT id FROM receipts WHERE {3})"),
        "its record is missing from activity",
    ),
    kind("all records are gone", Sql("DELETE FROM activity"), "its record is missing"),
    kind(
        "a record has another status",
        Sql("UPDATE activity SET status='success' WHERE status='error'"),
        RECORD,
    ),
    kind(
        "a record has another error",
        Sql("UPDATE activity SET error_message='it worked' WHERE status='error'"),
        RECORD,
    ),
    kind(
        "a target has another name",
        Sql("UPDATE targets SET resource='/srv/b' WHERE target=(SELECT max(target) FROM activity)"),
        RECORD,
    ),
    kind("an agent has another name", Sql("UPDATE agents SET name='nobody'"), RECORD),
    kind(
        "a record has another intent",
        Sql("UPDATE activity SET intent_type='read' WHERE intent_type='write'"),
        RECORD,
    ),
    kind(
        "a record has another class",
        Sql("UPDATE activity SET effective_class='read' WHERE effective_class='write'"),
        RECORD,
    ),
    kind(
        "a record has another time",
        Sql("UPDATE activity SET started_us=started_us-5000"),
        RECORD,
    ),
    kind(
        "a record has another duration",
        Sql("UPDATE activity SET duration_us=duration_us+1 WHERE tool='say'"),
        RECORD,
    ),
    kind(
        "a record has another size",
        Sql("UPDATE activity SET response_bytes=1 WHERE tool='say'"),
        RECORD,
    ),
    kind(
        "a record warns of something else",
        Sql("UPDATE activity SET warnings='[\"all is well\"]'"),
        RECORD,
    ),
    kind("arguments are others", Sql("UPDATE payloads SET arguments='{}'"), RECORD),
    kind(
        "a result is another",
        Sql("UPDATE payloads SET response='{\"content\":[]}'"),
        "differs from the signed text: response",
    ),
    kind(
        "a record touches nothing any more",
        Sql("DELETE FROM touches WHERE number=(SELECT number FROM activity WHERE tool='put')"),
        "differs from the signed text: touches",
    ),
    kind(
        "a write became a read",
        Sql("UPDATE touches SET who=who-1 WHERE who%4=1"),
        "differs from the signed text: touches",
    ),
    kind(
        "a record is hidden behind another",
        Sql("UPDATE activity SET joined=(SELECT id FROM activity WHERE tool='say') \
             WHERE tool='put'"),
        "differs from the signed text: joined",
    ),
    kind(
        "a touch was made up",
        Sql("INSERT INTO touches SELECT target, started_us, who, 9999 FROM touches LIMIT 1"),
        "1 touches belong to no record",
    ),
    kind(
        "a record denies its receipt",
        Sql("UPDATE activity SET receipt_id=NULL WHERE tool='say'"),
        "names no receipt",
    ),
    kind(
        "a record was made up",
        Sql("INSERT INTO activity (id, changed, chain, type, source, surface, server, tool, agent,
               started_us, status)
             SELECT 'made-up', changed + 1000, chain, type, source, surface, server, tool, agent,
               started_us, status FROM activity WHERE tool='say' LIMIT 1"),
        "record made-up names no receipt",
    ),
];

/// Replaces the database by the copy that was made before the checkpoint.
fn roll_back(home: &Path) {
    std::fs::copy(home.join("earlier.db"), home.join("ledger.db")).unwrap();
}

/// Makes a checkpoint say that a chain was longer than it was.
fn longer_head(text: &str) -> String {
    let mut receipt: Value = serde_json::from_str(text).unwrap();
    let chain = &mut receipt["issuer"]["runtime"]["checkpoint"]["chains"][0];
    chain["length"] = (chain["length"].as_u64().unwrap() + 1).into();
    receipt.to_string()
}

/// Ends the chain of `serve` after its checkpoint, with a new key.
fn forge_end(home: &Path) {
    let db = testkit::ledger::edit(home);
    let sql = "SELECT receipt_json, chain_id FROM receipts
               WHERE action_type='agent_receipts.checkpoint'";
    let (last, chain_id): (String, String) =
        db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let last = SignedReceipt::parse(&last).unwrap();
    let key = SigningKey::from_seed(&[9; 32]);
    let (did, time) = (key.public().did(), "2026-01-01T00:00:00.000Z");
    let id = "01980a5e-7000-7000-8000-000000000000";
    let receipt = Receipt {
        id,
        issuer: Issuer { id: &did, ..Issuer::default() },
        issued_at: time,
        principal: Principal { id: &did, kind: None },
        action: Action {
            id,
            action_type: "agent_receipts.chain_closed",
            risk: RiskLevel::Low,
            target: None,
            parameters_hash: None,
            peer: None,
            drop_count: None,
            timestamp: time,
            idempotency_key: None,
        },
        outcome: ReceiptOutcome {
            status: OutcomeStatus::Success,
            error: None,
            response_hash: None,
        },
        correlation_id: None,
        rotation: None,
    };
    let body = receipt.body(&Position {
        chain_id: &chain_id,
        sequence: last.link.sequence + 1,
        previous: Some(last.hash),
        termination: Some(Termination::Complete),
    });
    let after = last.link.sequence;
    db.execute("DELETE FROM receipts WHERE chain_id=?1 AND sequence>?2", (&chain_id, after))
        .unwrap();
    db.execute(
        "INSERT INTO receipts (id, chain_id, sequence, own, receipt_json, receipt_hash)
         VALUES (?1, ?2, ?3, 'agent_receipts.chain_closed', ?4, ?5)",
        (
            format!("urn:receipt:{id}"),
            &chain_id,
            after + 1,
            body.sign(&key, time),
            body.hash().to_string(),
        ),
    )
    .unwrap();
}

impl Prepared {
    async fn new() -> Prepared {
        let tools = json!([{"name": "say", "annotations": {"readOnlyHint": true}}, {"name": "put"},
            {"name": "fail", "x-do": "is_error"},
            {"name": "drop", "annotations": {"destructiveHint": true}}]);
        let mut gate = Gate::start(|dir| json!({"s": scripted(dir, "s", &tools)}), json!({})).await;
        let client = gate.http().await;
        client.two_key_call("read", "s:say", json!({"path": "/srv/a"})).await;
        client.two_key_call("write", "s:put", json!({"path": "/srv/a"})).await;
        wrapped_call(gate.dir.path(), &tools).await;
        client.two_key_call("destructive", "s:fail", json!({})).await;
        client.two_key_call("read", "s:drop", json!({})).await;
        let (_, chains) = gate.rest(Method::GET, "/api/v1/chains", None).await;
        let earlier = gate.home().join("earlier.db");
        backup(&gate.home(), &earlier);
        let (status, head) = gate.rest(Method::POST, "/api/v1/checkpoints", None).await;
        assert_eq!((status, &head["count"]), (200, &json!(2)), "{head}");
        client.two_key_call("read", "s:say", json!({})).await;
        client.two_key_call("read", "s:say", json!({})).await;
        gate.rest(Method::GET, "/api/v1/chains", None).await;
        gate.kill().await;
        let id = |place: usize| chains["chains"][place]["id"].as_str().unwrap().to_owned();
        Prepared { wrap: id(0), serve: id(1), dir: gate.dir }
    }

    /// Copies the home.
    fn copy(&self) -> Copy {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["home", "home/keys", "home/writers"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let config = "config.json";
        std::fs::copy(self.dir.path().join(config), dir.path().join(config)).unwrap();
        for (name, bytes) in files(&self.dir.path().join("home")) {
            if !name.ends_with(".sock") {
                let to = dir.path().join("home").join(&name);
                std::fs::write(&to, bytes).unwrap();
                let mode = std::fs::metadata(self.dir.path().join("home").join(&name)).unwrap();
                std::fs::set_permissions(&to, mode.permissions()).unwrap();
            }
        }
        Copy { dir, serve: self.serve.clone(), wrap: self.wrap.clone() }
    }
}

/// Makes one call through `wrap`, which writes its own chain.
async fn wrapped_call(dir: &Path, tools: &Value) {
    let entry = scripted(dir, "w", tools);
    let mut command = program(dir);
    command.args(["wrap", "--name", "w", "--"]).arg(entry["command"].as_str().unwrap());
    let args = entry["args"].as_array().cloned().unwrap_or_default();
    command.args(args.iter().map(|word| word.as_str().unwrap()));
    let mut wire = Wire::open(command);
    wire.greet().await;
    wire.call("1", "say", json!({"path": "/srv/w"})).await;
    wire.close();
    wire.ended().await;
}

fn backup(home: &Path, to: &Path) {
    let db = testkit::ledger::edit(home);
    db.execute("VACUUM INTO ?1", [to.to_str().unwrap()]).unwrap();
}

/// Returns the files of a home that hold the ledger, by name.
fn files(home: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for folder in ["", "keys", "writers"] {
        for file in std::fs::read_dir(home.join(folder)).unwrap().map(Result::unwrap) {
            let name = PathBuf::from(folder).join(file.file_name());
            let name = name.to_str().unwrap().to_owned();
            // SQLite's index of the log is not part of the content.
            if file.metadata().unwrap().is_file() && !name.ends_with("-shm") {
                found.insert(name, std::fs::read(file.path()).unwrap());
            }
        }
    }
    found
}

struct Copy {
    dir: TempDir,
    serve: String,
    wrap: String,
}

impl Copy {
    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn db(&self) -> Connection {
        testkit::ledger::edit(self.home())
    }

    fn tamper(&self, tampering: &Tampering) {
        match tampering {
            Sql(sql) => self.sql(sql),
            Text(sequence, change) => {
                let (db, place) = (self.db(), (&self.serve, *sequence));
                let sql = "SELECT receipt_json FROM receipts WHERE chain_id=?1 AND sequence=?2";
                let text: String = db.query_row(sql, place, |row| row.get(0)).unwrap();
                let changed = change(text.clone());
                assert_ne!(changed, text);
                let sql = "UPDATE receipts SET receipt_json=?3 WHERE chain_id=?1 AND sequence=?2";
                db.execute(sql, (&self.serve, sequence, changed)).unwrap();
            }
            Files(change) => {
                // The log of the killed process belongs to the database.
                drop(self.db().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
                change(&self.home());
            }
        }
    }

    fn sql(&self, sql: &str) {
        let head = |length: u8| {
            format!(
                "UPDATE chains SET length={length}, last_hash=(SELECT receipt_hash FROM receipts
                   WHERE chain_id='{{s}}' AND sequence={length}) WHERE chain_id='{{s}}'"
            )
        };
        let sql = sql
            .replace("{5 is the head}", &head(5))
            .replace("{4 is the head}", &head(4))
            .replace("{3}", "chain_id='{s}' AND sequence=3")
            .replace("{s}", &self.serve)
            .replace("{w}", &self.wrap);
        let db = self.db();
        let before = db.total_changes();
        db.execute_batch(&sql).unwrap();
        assert!(db.total_changes() > before, "{sql}");
    }

    /// Verifies the home, which must not change by that.
    async fn verify(&self, args: &[&str]) -> (Option<i32>, String) {
        let before = files(&self.home());
        let args = [&["receipt", "verify"], args].concat();
        let output = run(self.dir.path(), args).await;
        let words = format!("{}{}", stdout(&output), stderr(&output));
        let after = files(&self.home());
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&after), names(&before), "{words}");
        assert!(after == before, "verify wrote something: {words}");
        (output.status.code(), words)
    }

    /// Starts a gate for one call, which recovers what others left.
    async fn call(&self) {
        let args = ["call", "tool-read", "--tool-name=s:say", "--config", "config.json"];
        let output = run(self.dir.path(), args).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

#[tokio::test]
async fn every_tampering_with_a_home_is_found_and_nothing_is_written() {
    let prepared = Prepared::new().await;
    let (code, words) = prepared.copy().verify(&[]).await;
    assert_eq!(code, Some(0), "nothing was done: {words}");
    let mut unseen = Vec::new();
    for Kind { name, tampering, found } in &KINDS {
        let copy = prepared.copy();
        copy.tamper(tampering);
        if name.ends_with("a gate went on with it") {
            copy.call().await;
        }
        let (code, words) = copy.verify(&[]).await;
        if code != Some(1) || !words.contains(found) {
            unseen.push(format!("{name}, exit code {code:?}: {words}"));
        }
    }
    assert!(unseen.is_empty(), "{}", unseen.join("\n"));
}

#[tokio::test]
async fn a_cut_end_is_never_signed_over() {
    let prepared = Prepared::new().await;
    let copy = prepared.copy();
    copy.sql("DELETE FROM receipts WHERE chain_id='{s}' AND sequence > 5");
    let last = |copy: &Copy| -> i64 {
        let sql = "SELECT MAX(sequence) FROM receipts WHERE chain_id=?1";
        copy.db().query_row(sql, [&copy.serve], |row| row.get(0)).unwrap()
    };
    for _ in 0..2 {
        let (code, words) = copy.verify(&[]).await;
        assert_eq!(code, Some(1), "{words}");
        assert!(words.contains("the chain has 5 receipts, but had 7"), "{words}");
    }
    copy.call().await;
    assert_eq!(last(&copy), 5, "nothing was signed onto what is left");
    let (code, words) = copy.verify(&[]).await;
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains(END_MISSING), "{words}");
}

#[tokio::test]
async fn smoke_a_journal_that_is_not_filed_yet_is_a_note_and_no_fault() {
    let prepared = Prepared::new().await;
    let copy = prepared.copy();
    // The state that a crash leaves between a commit and its filing.
    copy.sql(
        "DELETE FROM activity WHERE receipt_id IN
           (SELECT id FROM receipts WHERE chain_id='{s}' AND sequence > 5);
         DELETE FROM receipts WHERE chain_id='{s}' AND sequence > 5; {5 is the head};
         UPDATE chains SET filed = filed - 2 WHERE chain_id='{s}'",
    );
    let (code, words) = copy.verify(&[]).await;
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("2 entries are in its journal"), "{words}");
    copy.call().await;
    let (code, words) = copy.verify(&[]).await;
    assert_eq!(code, Some(0), "{words}");
    let sql = "SELECT COUNT(*) FROM receipts WHERE chain_id=?1";
    let count: i64 = copy.db().query_row(sql, [&copy.serve], |row| row.get(0)).unwrap();
    assert_eq!(count, 8, "both receipts, and the end");
}

#[tokio::test]
async fn a_head_kept_elsewhere_shows_what_the_home_no_longer_does() {
    let prepared = Prepared::new().await;
    let copy = prepared.copy();
    let before = files(&copy.home());
    let head = run(copy.dir.path(), ["ledger", "head"]).await;
    assert_eq!(head.status.code(), Some(0), "{}", stderr(&head));
    assert!(files(&copy.home()) == before, "without a running gate, it only reads");
    let head = stdout(&head).trim().to_owned();
    let words: Vec<&str> = head.split(' ').collect();
    assert!(words.len() == 3 && words[0].starts_with("sha256:") && words[1] == "2", "{head}");
    let receipt = std::fs::read_to_string(copy.home().join("checkpoint.json")).unwrap();
    for kept in [&head, &receipt] {
        let (code, words) = copy.verify(&["--head", kept]).await;
        assert_eq!(code, Some(0), "{words}");
    }
    let other = head.replace(words[0], &Hash::of(b"another ledger").to_string());
    let (code, words) = copy.verify(&["--head", &other]).await;
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("no checkpoint has the head"), "{words}");
    let (code, words) = copy.verify(&["--head", "noise"]).await;
    assert_eq!(code, Some(2), "{words}");
    // An attacker who replaces the ledger replaces the file next to it as well.
    roll_back(&copy.home());
    for name in ["checkpoint.json", "ledger.db-wal"] {
        std::fs::remove_file(copy.home().join(name)).unwrap();
    }
    let (code, words) = copy.verify(&[]).await;
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("checkpoint.json is missing"), "{words}");
    for kept in [&head, &receipt] {
        let (code, words) = copy.verify(&["--head", kept]).await;
        assert_eq!(code, Some(1), "{words}");
    }
}
