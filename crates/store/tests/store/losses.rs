//! Damaged journals, lost or older databases, deleted keys and lock files: what the home still holds
//! is recovered, what is lost is counted and signed for, and nothing starts as if it were new.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use domain::tool::Class;
use receipt::chain::ChainStatus;
use rusqlite::Connection;
use serde_json::Value;
use store::survey::{FileState, Survey};
use store::{Entry, Store, StoreError};

use super::faults::foreign;
use super::support::{Home, Look, call, journal_file, rules, started};
use super::unsigned::{change, ended_chains, faults};

/// A home as a killed process would leave it: one call is filed, three are in the journal alone.
struct Left {
    home: Home,
    journal: PathBuf,
    filed: String,
    unfiled: Vec<String>,
}

async fn left() -> Left {
    let home = Home::new();
    let store = home.open();
    let (filed, _) = call(&store, Class::Read).await.unwrap();
    store.settled().await;
    // While another connection holds the tables, nothing more is filed.
    let holder = foreign(&home);
    let mut unfiled = Vec::new();
    for _ in 0..3 {
        unfiled.push(call(&store, Class::Read).await.unwrap().0);
    }
    let copy = home.copy();
    holder.execute_batch("COMMIT").unwrap();
    let journal = journal_file(copy.path(), &copy.look().chains[0].id);
    Left { home: copy, journal, filed, unfiled }
}

/// Returns what the ledger signed about repairs.
pub(crate) fn repairs(look: &Look) -> Vec<Value> {
    let receipts = look.chains.iter().flat_map(|chain| &chain.receipts);
    let repairs = receipts.filter(|receipt| {
        receipt["credentialSubject"]["action"]["type"] == "agent_receipts.ledger_repaired"
    });
    repairs.map(|receipt| receipt["issuer"]["runtime"]["ledger_repaired"].clone()).collect()
}

/// Returns where the lines of a text begin, and where it ends.
fn starts(text: &[u8]) -> Vec<usize> {
    let breaks = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect()
}

#[tokio::test]
async fn a_flipped_bit_in_a_journal_costs_at_most_its_own_entry() {
    let left = left().await;
    let text = fs::read(&left.journal).unwrap();
    // The header, the entry that is filed, and three that are not.
    let lines = starts(&text);
    assert_eq!(lines.len(), 6);
    let regions = [
        ("header", lines[0] + 30, None),
        ("filed entry", lines[1] + 40, None),
        ("number", lines[2] + 9, Some(0)),
        ("record", lines[3] + 200, Some(1)),
        ("checksum", lines[4] - 5, Some(1)),
        ("line break", lines[4] - 1, None),
        ("last record", lines[4] + 100, Some(2)),
        ("last line break", lines[5] - 1, None),
    ];
    for (region, at, lost) in regions {
        let copy = left.home.copy();
        let journal = copy.path().join("writers").join(left.journal.file_name().unwrap());
        let mut damaged = text.clone();
        damaged[at] ^= 4;
        fs::write(&journal, damaged).unwrap();
        let survey = Survey::of(copy.path(), None);
        let is_noticed = region == "line break" || region == "last line break";
        assert_eq!(survey.faults.is_empty(), is_noticed, "{region}: {survey:?}");
        let store = copy.open();
        assert_eq!(store.ledger().notices.is_empty(), lost.is_none(), "{region}");
        store.close().await.unwrap();
        let look = copy.look();
        look.assert_recorded(&left.filed);
        for (number, id) in left.unfiled.iter().enumerate() {
            if Some(number) == lost {
                assert_eq!(look.status(id), "absent", "{region}");
            } else {
                look.assert_recorded(id);
            }
        }
        assert_eq!(look.chains[0].status, ChainStatus::Interrupted, "{region}");
        let repairs = repairs(&look);
        assert_eq!(repairs.len(), usize::from(lost.is_some()), "{region}: {repairs:?}");
        assert_eq!(journal.with_extension("damaged").exists(), lost.is_some(), "{region}");
        if let Some(repair) = repairs.first() {
            assert_eq!(repair["lost_entries"], 1, "{region}: {repair}");
            assert_eq!(repair["set_aside"], format!("{}.damaged", look.chains[0].id));
        }
        assert!(!journal.exists(), "{region}");
        copy.open().close().await.unwrap();
    }
}

#[tokio::test]
async fn a_damaged_start_does_not_cost_the_end_of_its_call() {
    let home = Home::new();
    let store = home.open();
    let (ends, stays) = (started(Class::Write), started(Class::Write));
    let (ended, open) = (ends.id.clone(), stays.id.clone());
    let end = super::support::ended(&ends);
    for call in [ends, stays] {
        store.append(Entry::Started(Box::new(call))).await.unwrap();
    }
    store.settled().await;
    let holder = foreign(&home);
    // It is committed and cannot be filed.
    let _ = store.append(Entry::Ended(Box::new(end))).await;
    let copy = home.copy();
    holder.execute_batch("COMMIT").unwrap();
    let journal = journal_file(copy.path(), &copy.look().chains[0].id);
    let mut text = fs::read(&journal).unwrap();
    let lines = starts(&text);
    for line in &lines[1..3] {
        text[line + 50] ^= 1;
    }
    fs::write(&journal, text).unwrap();
    copy.open().close().await.unwrap();
    let look = copy.look();
    assert_eq!(look.status(&open), "interrupted");
    assert!(look.receipt(&open).is_some());
    // Whether the end reached the journal depends on the moment; it is never left pending.
    assert!(["success", "interrupted"].contains(&look.status(&ended)), "{}", look.status(&ended));
    assert!(look.receipt(&ended).is_some());
}

pub(crate) fn refusal(home: &Path) -> String {
    match Store::open(home, &rules()) {
        Err(StoreError::Incomplete(words)) => words,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("started as if new"),
    }
}

fn remove_database(home: &Path) {
    for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        let _ = fs::remove_file(home.join(name));
    }
}

#[tokio::test]
async fn a_home_whose_database_is_gone_is_not_begun_anew() {
    let left = left().await;
    for is_emptied in [false, true] {
        let home = left.home.copy();
        remove_database(home.path());
        if is_emptied {
            fs::write(home.path().join(store::FILE), "").unwrap();
        }
        let words = refusal(home.path());
        assert!(words.contains("1 signing key") && words.contains("1 journal"), "{words}");
        let survey = Survey::of(home.path(), None);
        assert_eq!(survey.journals[0].entries, 4, "{survey:?}");
        assert!(!survey.faults.is_empty() && !matches!(survey.database, FileState::Valid(_)));
        let done = store::repair::repair(home.path(), None).unwrap();
        assert!(done.iter().any(|word| word.contains("adopted chain")), "{done:?}");
        home.open().close().await.unwrap();
        let look = home.look();
        look.assert_recorded(&left.filed);
        left.unfiled.iter().for_each(|id| look.assert_recorded(id));
        let repairs = repairs(&look);
        assert_eq!(repairs.len(), 1, "the journal had everything: {repairs:?}");
        assert_eq!(repairs[0]["subject"], "ledger");
        let again = store::repair::repair(home.path(), None).unwrap();
        assert!(again.len() == 1 && again[0].contains("ended the notice"), "{again:?}");
        assert_eq!(store::repair::repair(home.path(), None).unwrap(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn keys_that_never_signed_do_not_stop_a_start() {
    let home = Home::new();
    home.open().close().await.unwrap();
    assert!(!home.path().join("keys/used").exists(), "nothing was signed");
    home.open().close().await.unwrap();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    assert!(home.path().join("keys/used").exists());
}

#[tokio::test]
async fn a_database_older_than_the_keys_or_a_journal_is_not_used() {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    let old = fs::read(home.path().join(store::FILE)).unwrap();
    let store = home.open();
    let (lost, _) = call(&store, Class::Write).await.unwrap();
    store.rotate_key().await.unwrap();
    call(&store, Class::Write).await.unwrap();
    store.settled().await;
    let holder = foreign(&home);
    let (kept, _) = call(&store, Class::Read).await.unwrap();
    let copy = home.copy();
    holder.execute_batch("COMMIT").unwrap();
    remove_database(copy.path());
    fs::write(copy.path().join(store::FILE), &old).unwrap();
    let words = refusal(copy.path());
    assert!(words.contains("was replaced by") && words.contains("is not in it"), "{words}");
    store::repair::repair(copy.path(), None).unwrap();
    copy.open().close().await.unwrap();
    let look = copy.look();
    look.assert_recorded(&kept);
    assert_eq!(look.status(&lost), "absent", "the journal was begun anew after it was filed");
    let lost: u64 = repairs(&look).iter().filter_map(|it| it["lost_entries"].as_u64()).sum();
    assert!(lost > 0, "{:?}", repairs(&look));
    assert_eq!(Survey::of(copy.path(), None).faults, Vec::<String>::new());
}

#[tokio::test]
async fn a_chain_that_the_tables_lost_is_adopted_with_the_same_receipts() {
    let left = left().await;
    let db = testkit::ledger::edit(left.home.path());
    let hash: String =
        db.query_row("SELECT receipt_hash FROM receipts", [], |row| row.get(0)).unwrap();
    // As after a power failure that the journal survived and the database did not.
    db.execute_batch(
        "DELETE FROM receipts; DELETE FROM payloads; DELETE FROM activity; DELETE FROM chains;",
    )
    .unwrap();
    drop(db);
    left.home.open().close().await.unwrap();
    let look = left.home.look();
    look.assert_recorded(&left.filed);
    left.unfiled.iter().for_each(|id| look.assert_recorded(id));
    let db = testkit::ledger::edit(left.home.path());
    let found =
        db.prepare("SELECT 1 FROM receipts WHERE receipt_hash = ?1").unwrap().exists([hash]);
    assert!(found.unwrap(), "another receipt was issued");
    assert_eq!(repairs(&look), Vec::<Value>::new());
}

#[tokio::test]
async fn a_checkpoint_does_not_forbid_to_repair_damage() {
    let home = Home::new();
    let (store, other) = (home.open(), home.open());
    for _ in 0..4 {
        call(&store, Class::Read).await.unwrap();
    }
    store.settled().await;
    // The last receipt of its chain names the head of the first one.
    call(&other, Class::Read).await.unwrap();
    other.close().await.unwrap();
    let home = home.copy();
    let chain = home.look().chains[0].id.clone();
    let journal = journal_file(home.path(), &chain);
    let mut text = fs::read(&journal).unwrap();
    let lines = starts(&text);
    for line in &lines[2..5] {
        text[line + 100] ^= 1;
    }
    fs::write(&journal, text).unwrap();
    change(
        &home,
        &format!(
            "DELETE FROM activity WHERE receipt_id IN (SELECT id FROM receipts
               WHERE chain_id='{chain}' AND sequence > 1);
             DELETE FROM receipts WHERE chain_id='{chain}' AND sequence > 1;
             UPDATE chains SET filed=1, length=1, last_hash=(SELECT receipt_hash FROM receipts
               WHERE chain_id='{chain}') WHERE chain_id='{chain}'"
        ),
    );
    // Nothing is signed onto a chain that was longer, until a person orders it.
    home.open().close().await.unwrap();
    assert!(journal.exists());
    store::repair::repair(home.path(), None).unwrap();
    let look = home.look();
    assert_eq!(repairs(&look)[0]["lost_entries"], 3);
    assert!(!home.path().join("checkpoint.json").exists(), "it is set aside");
    home.open().close().await.unwrap();
}

#[tokio::test]
async fn a_database_older_than_the_last_checkpoint_is_not_used() {
    let home = ended_chains(1).await;
    let old = fs::read(home.path().join(store::FILE)).unwrap();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(Survey::of(home.path(), None).faults, Vec::<String>::new());
    remove_database(home.path());
    fs::write(home.path().join(store::FILE), old).unwrap();
    let words = refusal(home.path());
    assert!(words.contains("has 0 receipts, but 2 at the last checkpoint"), "{words}");
    assert!(Survey::of(home.path(), None).faults[0].contains("but 2 at the last checkpoint"));
    let done = store::repair::repair(home.path(), None).unwrap();
    assert!(done.iter().any(|word| word.contains("set 'checkpoint.json' aside")), "{done:?}");
    home.open().close().await.unwrap();
    // What is missing stays a fault until a person accepts it.
    let words = "the checkpoint in checkpoint.json.aside-";
    assert!(faults(&home)[0].contains(words), "{:?}", faults(&home));
    let lost = store::acceptance::losses(home.path()).unwrap();
    assert_eq!((lost.len(), &lost[0].missing, &lost[0].left), (1, &vec![(1, 2)], &None));
    store::acceptance::accept(home.path(), &lost).unwrap();
    assert_eq!(faults(&home), Vec::<String>::new());
    let broken = home.copy();
    change(
        &broken,
        "DELETE FROM receipts WHERE sequence = 1 AND chain_id = (SELECT chain_id
       FROM chains WHERE chain = 1)",
    );
    assert_eq!(faults(&broken).len(), 1, "{:?}", faults(&broken));
    // One that no key of this home signed is reported, and stops nothing.
    let other = ended_chains(1).await;
    fs::copy(other.path().join("checkpoint.json"), home.path().join("checkpoint.json")).unwrap();
    assert!(matches!(Survey::of(home.path(), None).checkpoint, FileState::Invalid(_)));
    home.open().close().await.unwrap();
}

pub(crate) fn secret(home: &Home, fingerprint: &str) -> PathBuf {
    let digits = fingerprint.trim_start_matches("sha256:");
    home.path().join("keys").join(format!("{}.secret.pem", &digits[..16]))
}

#[tokio::test]
async fn an_old_secret_key_may_be_removed_after_a_rotation() {
    let home = Home::new();
    let (rotating, other) = (home.open(), home.open());
    let old = rotating.key().public().fingerprint().to_string();
    let (filed, _) = call(&other, Class::Write).await.unwrap();
    call(&rotating, Class::Write).await.unwrap();
    other.settled().await;
    rotating.rotate_key().await.unwrap();
    let open = started(Class::Write);
    let id = open.id.clone();
    other.append(Entry::Started(Box::new(open))).await.unwrap();
    other.settled().await;
    rotating.settled().await;
    let copy = home.copy();
    fs::remove_file(secret(&copy, &old)).unwrap();
    let store = copy.open();
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    let look = copy.look();
    look.assert_recorded(&filed);
    assert_eq!(look.status(&id), "interrupted");
    assert!(look.receipt(&id).is_some());
    let repairs = repairs(&look);
    assert_eq!(repairs.len(), 1, "{repairs:?}");
    assert_eq!((&repairs[0]["missing_key"], &repairs[0]["ended_at"]), (&old.into(), &1.into()));
    let unclosed = look.chains.iter().filter(|chain| chain.row_status == "unclosed").count();
    assert_eq!(unclosed, 1);
    copy.open().close().await.unwrap();
}

#[tokio::test]
async fn a_deleted_lock_file_is_made_anew_and_nobody_takes_the_chain() {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    store.settled().await;
    let chain = home.look().chains[0].id.clone();
    let lock = home.path().join("writers").join(format!("{chain}.lock"));
    fs::remove_file(&lock).unwrap();
    // Another process recovers whatever it takes for abandoned.
    let other = home.open();
    call(&other, Class::Write).await.unwrap();
    let (id, _) = call(&store, Class::Write).await.unwrap();
    store.settled().await;
    assert!(lock.exists(), "the writer noticed it");
    fs::remove_file(journal_file(home.path(), &chain)).unwrap();
    call(&store, Class::Write).await.unwrap();
    store.settled().await;
    assert!(journal_file(home.path(), &chain).exists(), "the journal too");
    let third = home.open();
    for store in [&other, &store, &third] {
        store.close().await.unwrap();
    }
    let look = home.look();
    look.assert_recorded(&id);
    assert!(look.chains.iter().all(|chain| chain.status == ChainStatus::Complete));
}

#[tokio::test]
async fn a_damaged_database_is_set_aside_and_what_can_be_read_is_kept() {
    let home = Home::new();
    let store = home.open();
    let mut ids = Vec::new();
    for _ in 0..300 {
        ids.push(call(&store, Class::Write).await.unwrap().0);
    }
    store.state().set_switch("files", "delete", true).unwrap();
    store.close().await.unwrap();
    let file = home.path().join(store::FILE);
    let mut bytes = fs::read(&file).unwrap();
    // Some pages in the middle of the receipts.
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 3 * 4096].fill(0x5a);
    fs::write(&file, bytes).unwrap();
    assert!(!store::survey::integrity(home.path()).unwrap().is_empty());
    let done = store::repair::repair(home.path(), None).unwrap();
    let is_kept = |name: &str| name.starts_with("ledger.db.damaged-");
    let names = fs::read_dir(home.path()).unwrap().map(|file| file.unwrap().file_name());
    assert!(names.into_iter().any(|name| is_kept(&name.to_string_lossy())), "{done:?}");
    let store = home.open();
    assert!(store.state().switched_off("files").unwrap().contains("delete"));
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    let db = Connection::open(&file).unwrap();
    let kept: usize =
        db.query_row("SELECT count(*) FROM signed_receipts", [], |row| row.get(0)).unwrap();
    assert!(kept > 100, "{kept} receipts, {done:?}");
    assert_eq!(store::survey::integrity(home.path()).unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn copies_of_chains_fill_a_new_database() {
    let home = Home::new();
    let store = home.open();
    let (id, _) = call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    let chain = home.look().chains[0].id.clone();
    let receipts: Vec<String> = store.read().receipt_texts(&chain).map(Result::unwrap).collect();
    fs::create_dir(home.path().join("copies")).unwrap();
    let foreign = receipts[0].replace("files", "other");
    let text = format!("{}\n{foreign}\nno receipt\n", receipts.join("\n"));
    fs::write(home.path().join("copies/chain.jsonl"), text).unwrap();
    drop(store);
    remove_database(home.path());
    let done = store::repair::repair(home.path(), None).unwrap();
    assert!(done.iter().any(|word| word.contains("added 2 receipts")), "{done:?}");
    let look = home.look();
    assert!(look.receipt(&id).is_some());
    assert_eq!(look.chains[0].row_status, "complete");
    home.open().close().await.unwrap();
}

/// Returns the text of each call's receipt, without its proof, which has the time of the signature.
fn bodies(look: &Look) -> BTreeMap<String, Value> {
    let receipts = look.chains.iter().flat_map(|chain| &chain.receipts).cloned();
    let body = |mut receipt: Value| {
        receipt.as_object_mut().unwrap().remove("proof");
        (receipt["id"].as_str().unwrap().to_owned(), receipt)
    };
    receipts.map(body).collect()
}

/// Returns a home as a killed process leaves it, all of whose calls are in the tables and in the
/// journal, and the ids of the calls.
async fn filed_and_killed() -> (Home, Vec<String>) {
    let home = Home::new();
    let store = home.open();
    let mut ids = Vec::new();
    for _ in 0..120 {
        ids.push(call(&store, Class::Write).await.unwrap().0);
    }
    store.settled().await;
    let copy = home.copy();
    let db = testkit::ledger::edit(copy.path());
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    (copy, ids)
}

#[tokio::test]
async fn what_a_damaged_database_lost_comes_back_from_the_journal() {
    let (home, ids) = filed_and_killed().await;
    let before = bodies(&home.look());
    let whole = fs::read(home.path().join(store::FILE)).unwrap();
    let page = 4096;
    let (half, pages) = (whole.len() / 2 / page, whole.len() / page);
    for (damage, first, last) in [
        ("cut to half", half, pages),
        ("cut to its first page", 1, pages),
        ("no header", 0, 1),
        ("a hole", half, half + 6),
        ("its end", pages - 9, pages),
    ] {
        let home = home.copy();
        let file = home.path().join(store::FILE);
        let mut bytes = whole.clone();
        if damage.starts_with("cut") {
            bytes.truncate(first * page);
        } else {
            bytes[first * page..last * page].fill(0x5a);
        }
        fs::write(&file, &bytes).unwrap();
        let hash = receipt::Hash::of(&bytes).to_string();
        let done = store::repair::repair(home.path(), None).unwrap();
        let look = home.look();
        ids.iter().for_each(|id| look.assert_recorded(id));
        let after = bodies(&look);
        for (id, receipt) in &before {
            assert_eq!(after.get(id), Some(receipt), "{damage}: {done:#?}");
        }
        let repairs = repairs(&look);
        assert_eq!(repairs.len(), 1, "{damage}: nothing is lost: {repairs:#?}");
        let account = repairs[0]["done"].to_string();
        assert!(account.contains(&hash), "{damage}: {account}");
        let chain = &look.chains[0].id;
        let kept = fs::read_dir(home.path().join("writers")).unwrap().map(|file| file.unwrap());
        let mut kept = kept.filter(|file| file.file_name().to_string_lossy().contains(".aside-"));
        let journal = kept.next().expect("the journal is kept").path();
        let hash = receipt::Hash::of(&fs::read(&journal).unwrap()).to_string();
        assert!(account.contains(&hash) && account.contains(chain), "{damage}: {account}");
        assert_eq!(Survey::of(home.path(), None).faults, Vec::<String>::new(), "{damage}");
        home.open().close().await.unwrap();
        assert_eq!(bodies(&home.look()).len(), after.len(), "{damage}");
    }
}

#[tokio::test]
async fn rows_that_somebody_deleted_come_back_from_the_journal() {
    let (home, ids) = filed_and_killed().await;
    let before = bodies(&home.look());
    let db = testkit::ledger::edit(home.path());
    db.execute_batch(
        "DELETE FROM receipts WHERE sequence BETWEEN 10 AND 19;
         DELETE FROM receipts WHERE sequence = 40;
         DELETE FROM activity WHERE number BETWEEN 15 AND 24;
         DELETE FROM activity WHERE number = 60;",
    )
    .unwrap();
    drop(db);
    let done = store::repair::repair(home.path(), None).unwrap();
    // Some of the deleted receipts still stood on their pages.
    assert!(done.iter().any(|words| words.starts_with("filed ")), "{done:#?}");
    let look = home.look();
    ids.iter().for_each(|id| look.assert_recorded(id));
    let after = bodies(&look);
    assert!(before.iter().all(|(id, receipt)| after.get(id) == Some(receipt)), "{done:#?}");
}

#[tokio::test]
async fn what_is_in_no_file_is_counted() {
    let (home, _) = filed_and_killed().await;
    let db = testkit::ledger::edit(home.path());
    db.execute_batch("DELETE FROM receipts WHERE sequence BETWEEN 10 AND 19; VACUUM").unwrap();
    let chain: String = db.query_row("SELECT chain_id FROM chains", [], |row| row.get(0)).unwrap();
    drop(db);
    let journal = journal_file(home.path(), &chain);
    let mut text = fs::read(&journal).unwrap();
    let lines = starts(&text);
    // The lines of the fifth to the twenty-ninth call, each with a start and an end.
    text.drain(lines[9]..lines[59]);
    fs::write(&journal, text).unwrap();
    store::repair::repair(home.path(), None).unwrap();
    let db = testkit::ledger::edit(home.path());
    let mut texts = db.prepare("SELECT receipt_json FROM receipts ORDER BY sequence").unwrap();
    let texts = texts.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap);
    let accounts: Vec<Value> = texts
        .map(|text| serde_json::from_str::<Value>(&text).unwrap())
        .map(|receipt| receipt["issuer"]["runtime"]["ledger_repaired"].clone())
        .filter(|account| account["subject"] == "journal")
        .collect();
    assert_eq!(accounts.len(), 1, "{accounts:#?}");
    assert_eq!(accounts[0]["lost_receipts"], 10, "{accounts:#?}");
}

#[tokio::test]
async fn a_journal_that_comes_back_after_its_chain_ended_costs_no_call() {
    let left = left().await;
    let (home, journal) = (left.home, left.journal);
    let text = fs::read(&journal).unwrap();
    // The header, and the entry that is filed.
    fs::write(&journal, &text[..starts(&text)[2]]).unwrap();
    home.open().close().await.unwrap();
    let before = home.look();
    left.unfiled.iter().for_each(|id| assert_eq!(before.status(id), "absent"));
    fs::write(&journal, text).unwrap();
    let done = store::repair::repair(home.path(), None).unwrap();
    assert!(done.iter().any(|done| done.starts_with("signed 3 calls of chain")), "{done:?}");
    let look = home.look();
    left.unfiled.iter().for_each(|id| look.assert_recorded(id));
    let receipt = look.receipt(&left.unfiled[0]).unwrap();
    assert!(receipt["issuer"]["runtime"]["promised_hash"].is_string(), "{receipt}");
    assert_eq!(faults(&home), Vec::<String>::new());
    home.open().close().await.unwrap();
}

#[tokio::test]
async fn a_record_that_is_gone_is_made_again_from_its_receipt() {
    let home = Home::new();
    let store = home.open();
    for class in [Class::Read, Class::Write, Class::Destructive] {
        call(&store, class).await.unwrap();
    }
    let (mut failed, mut end) =
        (started(Class::Write), super::support::ended(&started(Class::Read)));
    end.id.clone_from(&failed.id);
    end.status = store::RecordStatus::Blocked;
    (end.error_code, end.error_message) = (Some("DENIED".into()), Some("not today".to_owned()));
    failed.warnings = vec!["a warning".to_owned()];
    store.append(Entry::Whole(Box::new(failed), Box::new(end))).await.unwrap();
    store.close().await.unwrap();
    change(
        &home,
        "DELETE FROM payloads; DELETE FROM touches; DELETE FROM activity WHERE number > 1",
    );
    assert_eq!(faults(&home).len(), 1, "{:?}", faults(&home));
    let done = store::repair::repair(home.path(), None).unwrap();
    assert!(done.iter().any(|done| done.starts_with("made 3 records again")), "{done:?}");
    assert_eq!(faults(&home), Vec::<String>::new());
    assert_eq!(home.look().calls.len(), 4);
    assert_eq!(store::repair::repair(home.path(), None).unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_copy_fills_the_places_that_a_sound_database_lacks() {
    let home = ended_chains(2).await;
    let chain = home.look().chains[0].id.clone();
    let store = home.open();
    let receipts: Vec<String> = store.read().receipt_texts(&chain).map(Result::unwrap).collect();
    store.close().await.unwrap();
    fs::create_dir(home.path().join("copies")).unwrap();
    fs::write(home.path().join("copies/chain.jsonl"), receipts.join("\n")).unwrap();
    let before = bodies(&home.look());
    change(&home, &format!("DELETE FROM receipts WHERE chain_id = '{chain}'"));
    let done = store::repair::repair(home.path(), None).unwrap();
    assert!(done.iter().any(|done| done.contains("added 2 receipts")), "{done:?}");
    let after = bodies(&home.look());
    assert!(before.iter().all(|(id, receipt)| after.get(id) == Some(receipt)), "{done:?}");
    assert_eq!(faults(&home), Vec::<String>::new());
    let again = store::repair::repair(home.path(), None).unwrap();
    assert!(!again.iter().any(|done| done.contains("added")), "{again:?}");
}

/// The variables that give a child the home that it repairs, and the number of the step after which it
/// ends.
const REPAIRED_HOME: &str = "COUNTERSIGN_TEST_REPAIRED_HOME";
const KILLED_AT: &str = "COUNTERSIGN_TEST_KILLED_AT";

/// The body of a child, which another test runs as itself.
#[test]
fn child_that_repairs() {
    let Some(home) = std::env::var_os(REPAIRED_HOME) else {
        return testkit::run::skipped("it is what another test starts, no test of its own");
    };
    let last: usize = std::env::var(KILLED_AT).unwrap().parse().unwrap();
    let steps = Cell::new(0);
    let reached = |_: &str| {
        steps.set(steps.get() + 1);
        if steps.get() == last {
            std::process::abort();
        }
    };
    store::repair::repair_by_step(Path::new(&home), None, &reached).unwrap();
}

/// Returns the text of each receipt of a call, without its proof.
fn receipts_of_calls(home: &Home) -> BTreeMap<String, Value> {
    let db = super::support::db(home.path());
    let mut texts = db.prepare("SELECT receipt_json FROM receipts").unwrap();
    let texts = texts.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let receipts = texts.map(|text| serde_json::from_str::<Value>(&text.unwrap()).unwrap());
    let body = |mut receipt: Value| {
        receipt.as_object_mut().unwrap().remove("proof");
        (receipt["id"].as_str().unwrap().to_owned(), receipt)
    };
    let receipts = receipts.map(body);
    let is_call =
        |receipt: &Value| receipt["credentialSubject"]["principal"]["id"] == "token:agent";
    receipts.filter(|(_, receipt)| is_call(receipt)).collect()
}

/// Returns a home as a killed process leaves it: a hole is in its database, and the newest calls are
/// in the log of the database.
async fn damaged_with_log() -> Home {
    let home = Home::new();
    let store = home.open();
    for turn in 0..2 {
        for _ in 0..60 {
            call(&store, Class::Write).await.unwrap();
        }
        store.settled().await;
        if turn == 0 {
            let db = Connection::open(home.path().join(store::FILE)).unwrap();
            db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        }
    }
    let copy = home.copy();
    let file = copy.path().join(store::FILE);
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4 * 4096].fill(0x5a);
    fs::write(&file, bytes).unwrap();
    assert!(fs::metadata(copy.path().join("ledger.db-wal")).unwrap().len() > 4096);
    assert!(!store::survey::integrity(copy.path()).unwrap().is_empty());
    copy
}

#[tokio::test]
async fn a_killed_repair_is_repeated() {
    let damaged = damaged_with_log().await;
    for has_journal in [true, false] {
        let original = damaged.copy();
        if !has_journal {
            for file in fs::read_dir(original.path().join("writers")).unwrap() {
                fs::remove_file(file.unwrap().path()).unwrap();
            }
        }
        let repaired = original.copy();
        store::repair::repair(repaired.path(), None).unwrap();
        let expected = receipts_of_calls(&repaired);
        assert!(if has_journal { expected.len() == 120 } else { expected.len() > 60 });
        let mut steps = 0;
        loop {
            steps += 1;
            let home = original.copy();
            let child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "store::losses::child_that_repairs", "--test-threads=1"])
                .env(REPAIRED_HOME, home.path())
                .env(KILLED_AT, steps.to_string())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if child.unwrap().success() {
                break;
            }
            if home.path().join("ledger.db.new").exists() {
                let words = refusal(home.path());
                assert!(words.contains("a repair of the ledger did not finish"), "{words}");
            }
            let done = store::repair::repair(home.path(), None).unwrap();
            let case = format!("journal {has_journal}, killed after step {steps}: {done:#?}");
            assert!(receipts_of_calls(&home) == expected, "{case}");
            let names = fs::read_dir(home.path()).unwrap().map(|file| file.unwrap().file_name());
            let names = names.map(|name| name.into_string().unwrap());
            for name in names.filter(|name| name.starts_with("ledger.db.damaged-")) {
                let bytes = fs::read(home.path().join(&name)).unwrap();
                let hash = receipt::Hash::of(&bytes).to_string();
                let is_named = |words: &&String| words.contains(&*name) && words.contains(&hash);
                assert!(done.iter().any(|words| is_named(&words)), "{name}: {case}");
            }
            home.open().close().await.unwrap();
            assert!(receipts_of_calls(&home) == expected, "{case}");
        }
        assert!(steps > 8, "only {steps} steps");
    }
}

#[tokio::test]
async fn a_call_whose_interruption_is_signed_is_not_interrupted_again() {
    let home = Home::new();
    let store = home.open();
    let begun = started(Class::Write);
    let id = begun.id.clone();
    store.append(Entry::Started(Box::new(begun))).await.unwrap();
    store.settled().await;
    let left = home.copy();
    store.close().await.unwrap();
    let journal = journal_file(left.path(), &left.look().chains[0].id);
    let text = fs::read(&journal).unwrap();
    left.open().close().await.unwrap();
    // A repair that makes the database anew finds the receipt on a page, and reads the journal again.
    fs::write(&journal, text).unwrap();
    change(&left, "DELETE FROM touches; DELETE FROM payloads; DELETE FROM activity");
    change(&left, "DELETE FROM chains");
    store::repair::repair(left.path(), None).unwrap();
    let look = left.look();
    assert!(look.receipt(&id).is_some());
    assert_eq!((look.status(&id), look.chains.len()), ("interrupted", 2));
    assert_eq!(faults(&left), Vec::<String>::new());
}
