//! The damage drill: one home, damaged in every way that we know of. For each: what a start and a check
//! say, and what a repair brings back. Every call that any file of the home still holds is back with what
//! was signed of it, every file that an account names is there with its hash, a second repair finds
//! nothing, and the ledger verifies once what is lost was accepted.

mod kinds;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use domain::tool::Class;
use receipt::Hash;
use rusqlite::Connection;
use serde_json::Value;
use store::survey::{Survey, integrity};
use store::{Store, StoreError, acceptance};

use super::faults::foreign;
use super::support::{Home, call, db, journal_file, rules};
use super::unsigned::faults;
use kinds::{Kind, Start};

/// A home as a killed process leaves it.
struct Prepared {
    home: Home,
    /// The home before the last two processes.
    older: Home,
    /// Another home, in which nothing was recorded.
    other: Home,
    /// The chains of a process that ended and of which the home has a copy, of another that ended, and
    /// of the one that was killed.
    chains: [String; 3],
    /// Calls of which the tables have nothing.
    unfiled: Vec<String>,
    /// The receipt of each call, as the undamaged home has it, and packed.
    receipts: BTreeMap<String, String>,
    packed: BTreeMap<String, Vec<u8>>,
}

const COPY: &str = "copies/chain.jsonl";

impl Prepared {
    async fn new() -> Prepared {
        let home = Home::new();
        let store = home.open();
        calls(&store, Class::Write, 2).await;
        store.close().await.unwrap();
        let chain = home.look().chains[0].id.clone();
        let texts: Vec<String> = store.read().receipt_texts(&chain).map(Result::unwrap).collect();
        let older = home.copy();
        let store = home.open();
        store.state().set_switch("files", "delete", true).unwrap();
        calls(&store, Class::Write, 8).await;
        store.close().await.unwrap();
        let store = home.open();
        calls(&store, Class::Write, 14).await;
        store.settled().await;
        // While another connection holds the tables, nothing more is filed.
        let holder = foreign(&home);
        let unfiled = calls(&store, Class::Read, 4).await;
        let left = home.copy();
        holder.execute_batch("COMMIT").unwrap();
        store.close().await.unwrap();
        fs::create_dir(left.path().join("copies")).unwrap();
        fs::write(left.path().join(COPY), texts.join("\n")).unwrap();
        settle(left.path());
        let chains: Vec<String> = home.look().chains.iter().map(|it| it.id.clone()).collect();
        let (chains, receipts) = (chains.try_into().unwrap(), receipts_of(home.path()));
        let other = Home::new();
        other.open().close().await.unwrap();
        settle(other.path());
        let packed = receipts.iter().map(|(id, text)| (id.clone(), receipt::packed::pack(text)));
        let packed = packed.collect();
        Prepared { home: left, older, other, chains, unfiled, receipts, packed }
    }

    fn copy(&self) -> Home {
        let copy = self.home.copy();
        fs::create_dir(copy.path().join("copies")).unwrap();
        fs::copy(self.home.path().join(COPY), copy.path().join(COPY)).unwrap();
        copy
    }

    /// Returns the calls that any file of a home holds whole: the receipt stands in the database or in a
    /// copy, or the journal has all of its lines.
    fn held(&self, home: &Path) -> BTreeSet<&str> {
        let read = |name: &str| fs::read(home.join(name)).unwrap_or_default();
        let files = ["ledger.db", "ledger.db-wal"].map(read);
        let copy = fs::read_to_string(home.join(COPY)).unwrap();
        let (lines, all) = (self.lines(home), self.lines(self.home.path()));
        let in_journal = |id: &str| {
            let of = |lines: &[String]| lines.iter().filter(|line| line.contains(id)).count();
            of(&lines) > 0 && of(&lines) == of(&all)
        };
        let is_held = |id: &str, packed: &[u8]| {
            files.iter().any(|file| memchr::memmem::find(file, packed).is_some())
                || copy.contains(id)
                || in_journal(id)
        };
        let held = self.packed.iter().filter(|(id, packed)| is_held(id, packed));
        held.map(|(id, _)| &**id).collect()
    }

    /// Returns the whole lines of the killed process's journal.
    fn lines(&self, home: &Path) -> Vec<String> {
        let text = fs::read(journal_file(home, &self.chains[2])).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(str::to_owned).collect()
    }
}

async fn calls(store: &Store, class: Class, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(call(store, class).await.unwrap().0);
    }
    ids
}

/// Writes everything from the database's log into its file.
fn settle(home: &Path) {
    let db = Connection::open(home.join("ledger.db")).unwrap();
    let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}

/// Returns the text of each call's receipt.
fn receipts_of(home: &Path) -> BTreeMap<String, String> {
    let db = db(home);
    let mut texts = db.prepare("SELECT id, receipt_json FROM receipts WHERE own IS NULL").unwrap();
    let texts = texts.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).unwrap();
    let texts = texts.map(Result::unwrap);
    texts.map(|(id, text)| (id.trim_start_matches("urn:receipt:").to_owned(), text)).collect()
}

/// Returns what a receipt says of its call, whichever chain it is in and whenever it was issued.
fn said(text: &str) -> Value {
    let mut receipt: Value = serde_json::from_str(text).unwrap();
    for name in ["proof", "issuanceDate"] {
        receipt.as_object_mut().unwrap().remove(name);
    }
    receipt["credentialSubject"].as_object_mut().unwrap().remove("chain");
    receipt["issuer"].as_object_mut().unwrap().remove("id");
    let runtime = receipt["issuer"]["runtime"].as_object_mut().unwrap();
    for name in ["promised_hash", "preceding_chain", "chain_opened"] {
        runtime.remove(name);
    }
    receipt
}

/// Opens and closes a home; returns what the operator is told, or the refusal.
async fn start(home: &Home) -> Result<Vec<String>, String> {
    match Store::open(home.path(), &rules()) {
        Ok(store) => {
            let told = store.ledger().notices;
            store.close().await.unwrap();
            Ok(told)
        }
        Err(
            StoreError::Incomplete(words) | StoreError::Corrupt(words) | StoreError::Key(words),
        ) => Err(words),
        Err(other) => panic!("{other}"),
    }
}

/// Returns all that a check says.
fn check(home: &Home) -> Vec<String> {
    let mut said = Survey::of(home.path(), None).faults;
    match integrity(home.path()) {
        Ok(found) if found.is_empty() && said.is_empty() => said.extend(faults(home)),
        Ok(found) => said.extend(found),
        Err(error) => said.push(error.to_string()),
    }
    said
}

/// Asserts that every file that an account names with a hash is there, and has that hash.
fn assert_files(home: &Path, done: &[String]) {
    for words in done {
        let Some((before, rest)) = words.split_once("(sha256:") else { continue };
        let hash = format!("sha256:{}", rest.split(')').next().unwrap());
        let name = before.rsplit('\'').nth(1).unwrap_or_default();
        if before.contains("aside") || before.starts_with("moved") || before.contains("kept") {
            let bytes =
                fs::read(home.join(name)).unwrap_or_else(|error| panic!("{words}: {error}"));
            assert_eq!(Hash::of(&bytes).to_string(), hash, "{words}");
        }
    }
}

async fn drill(prepared: &Prepared, kind: &Kind) {
    let Kind { name, damage, starts, found } = kind;
    let home = prepared.copy();
    damage(prepared, home.path());
    let started = prepared.copy();
    damage(prepared, started.path());
    match (start(&started).await, starts) {
        (Ok(told), Start::Silent) => assert_eq!(told, Vec::<String>::new(), "{name}"),
        (Ok(told), Start::Told(words)) => {
            assert!(told.iter().any(|it| it.contains(words)), "{name}: {told:#?}");
        }
        (Err(refusal), Start::Refused(words)) => {
            assert!(refusal.contains(words), "{name}: {refusal}")
        }
        (_, Start::Any) => {}
        (other, _) => panic!("{name}: {other:#?}"),
    }
    let checked = check(&home);
    let is_found = checked.iter().any(|it| it.contains(found));
    assert!(if found.is_empty() { checked.is_empty() } else { is_found }, "{name}: {checked:#?}");
    repaired(prepared, kind, &home).await;
}

/// Repairs a damaged home, and looks at what came back.
async fn repaired(prepared: &Prepared, kind: &Kind, home: &Home) {
    let name = kind.name;
    let held = prepared.held(home.path());
    let done = store::repair::repair(home.path(), None).unwrap();
    let receipts = receipts_of(home.path());
    for id in &held {
        let text = receipts.get(*id).unwrap_or_else(|| panic!("{name}: {id} is lost: {done:#?}"));
        let before = &prepared.receipts[*id];
        assert!(text == before || said(text) == said(before), "{name}:\n{text}\n{before}");
    }
    assert_files(home.path(), &done);
    let lost = prepared.receipts.len() - held.len();
    let words = format!("{name}: {lost} lost: {done:#?}");
    let again = store::repair::repair(home.path(), None).unwrap();
    let is_notice = |done: &String| done.starts_with("ended the notice");
    assert!(again.iter().all(is_notice), "{name}: {again:#?}");
    if kind.is_hopeless() {
        return;
    }
    let losses = acceptance::losses(home.path()).unwrap();
    if !losses.is_empty() {
        assert!(lost > 0, "{words}");
        acceptance::accept(home.path(), &losses).unwrap();
    }
    assert_eq!(faults(home), Vec::<String>::new(), "{words}");
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(faults(home), Vec::<String>::new(), "{words}");
}

async fn drill_all(part: usize) {
    let prepared = Arc::new(Prepared::new().await);
    assert_eq!((prepared.receipts.len(), prepared.unfiled.len()), (28, 4));
    let mut failed = Vec::new();
    for kind in kinds::KINDS.iter().skip(part).step_by(2) {
        let prepared = prepared.clone();
        let drilled = tokio::spawn(async move { drill(&prepared, kind).await });
        if drilled.await.is_err() {
            failed.push(kind.name);
        }
    }
    assert_eq!(failed, Vec::<&str>::new());
}

#[tokio::test]
async fn what_any_file_holds_comes_back() {
    drill_all(0).await;
}

#[tokio::test]
async fn what_any_file_holds_comes_back_in_the_other_half_of_the_kinds() {
    drill_all(1).await;
}
