//! A file of any older version keeps its content.

use std::fs;
use std::path::Path;

use domain::ledger::target::{Access, Touches};
use receipt::Hash;
use receipt::chain::{ChainExpectation, verify};

use super::*;
use crate::Store;
use crate::read::contention::ContentionFilter;
use crate::read::{Page, Reader, ReceiptFilter, RecordFilter, RunFilter};
use crate::record::tests::started;
use crate::record::{CallEnd, Entry, Payload, RecordStatus};

#[test]
fn the_released_first_migration_is_unchanged() {
    let hash = Hash::of(FIRST.as_bytes()).to_string();
    assert_eq!(hash, "sha256:717bcfb7823bb228b0f38c255695989f4f99d0fef6cd098948ebd4b33b3767ad");
}

/// Makes a closed ledger with a record and its receipt, as written by a program that knew only the
/// first step.
async fn first(home: &Path) {
    let store = Store::open(home, &domain::config::Ledger::default()).unwrap();
    let call = started();
    let end = CallEnd {
        id: call.id.clone(),
        status: RecordStatus::Success,
        error_code: None,
        error_message: None,
        duration: std::time::Duration::from_millis(1),
        response: Payload::default(),
        warnings: Vec::new(),
        touches: Touches::default(),
    };
    store.append(Entry::Whole(Box::new(call), Box::new(end))).await.unwrap();
    store.close().await.unwrap();
    let (new, old) = (home.join("new.db"), home.join(crate::database::FILE));
    fs::rename(&old, &new).unwrap();
    let db = Connection::open(&old).unwrap();
    db.pragma_update(None, "journal_mode", "wal").unwrap();
    db.execute_batch(FIRST).unwrap();
    db.pragma_update(None, "user_version", 1).unwrap();
    db.execute("ATTACH ?1 AS new", [new.to_str().unwrap()]).unwrap();
    for table in ["receipts", "agents", "targets", "activity", "payloads", "settings", "chains"] {
        // Later versions have more columns.
        let mut columns = db.prepare(&format!("PRAGMA main.table_info({table})")).unwrap();
        let names = columns.query_map([], |row| row.get::<_, String>(1)).unwrap();
        let names = names.map(Result::unwrap).collect::<Vec<_>>().join(", ");
        let copy = format!("INSERT INTO {table} ({names}) SELECT {names} FROM new.{table}");
        db.execute(&copy, []).unwrap();
    }
    drop(db);
    fs::remove_file(new).unwrap();
}

fn version(home: &Path) -> usize {
    let db = Connection::open(home.join(crate::database::FILE)).unwrap();
    db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn assert_kept(reader: &Reader, key: &receipt::PublicKey) {
    let activity = reader.activity(&RecordFilter::default(), &Page::first(10)).unwrap();
    assert_eq!(activity.records.len(), 1);
    assert_eq!(activity.records[0].id, started().id);
    let touches = &activity.records[0].targets;
    assert_eq!(touches.len(), 1, "made from the record's target");
    assert_eq!((&*touches[0].resource, touches[0].access), ("/a", Access::Unknown));
    let by_target =
        RecordFilter { target_resource: Some("/a".to_owned()), ..RecordFilter::default() };
    assert_eq!(reader.activity(&by_target, &Page::first(10)).unwrap().total.count(), 1);
    let graph = reader.contention(&ContentionFilter::default()).unwrap();
    assert_eq!((graph.nodes_total, graph.nodes[0].unknown), (1, 1));
    let receipts = reader.receipts(&ReceiptFilter::default(), &Page::first(10)).unwrap();
    let mut texts: Vec<_> = receipts.receipts.into_iter().map(|receipt| receipt.text).collect();
    texts.reverse();
    assert_eq!(texts.len(), 2, "of the call, and the end of its chain");
    assert!(verify(&texts, key, ChainExpectation::default()).valid);
}

#[tokio::test]
async fn a_version_1_ledger_gains_state_and_keeps_its_records() {
    let folder = tempfile::tempdir().unwrap();
    first(folder.path()).await;
    assert_eq!(version(folder.path()), 1);
    let store = Store::open(folder.path(), &domain::config::Ledger::default()).unwrap();
    assert_eq!(version(folder.path()), STEPS.len());
    assert_kept(store.read(), &store.key().public());
    assert_eq!(store.state().version().unwrap(), 0);
    store.state().quarantine_server("git").unwrap();
    assert_eq!(store.state().servers().unwrap().len(), 1);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_version_2_ledger_gains_runs_and_keeps_its_decisions() {
    let folder = tempfile::tempdir().unwrap();
    first(folder.path()).await;
    let db = Connection::open(folder.path().join(crate::database::FILE)).unwrap();
    db.execute_batch(SECOND).unwrap();
    db.pragma_update(None, "user_version", 2).unwrap();
    db.execute("INSERT INTO switches (server, tool) VALUES ('git', 'push')", []).unwrap();
    drop(db);
    let store = Store::open(folder.path(), &domain::config::Ledger::default()).unwrap();
    assert_eq!(version(folder.path()), STEPS.len());
    assert_kept(store.read(), &store.key().public());
    let switches = store.state().switched_off("git").unwrap();
    assert_eq!(switches.len(), 1);
    let runs = store.read().runs(&RunFilter::default(), &Page::first(10)).unwrap();
    assert_eq!((runs.runs.len(), runs.total, runs.next_cursor), (0, 0, None));
    store.close().await.unwrap();
}

#[tokio::test]
async fn entries_left_by_an_older_program_get_their_receipts() {
    let folder = tempfile::tempdir().unwrap();
    first(folder.path()).await;
    let db = Connection::open(folder.path().join(crate::database::FILE)).unwrap();
    let key: String = db.query_row("SELECT key FROM chains", [], |row| row.get(0)).unwrap();
    let mut call = started();
    call.id = uuid::Uuid::now_v7().to_string();
    let texts = [
        serde_json::to_string(&call).unwrap(),
        serde_json::to_string(&CallEnd::at_once(call.id.clone())).unwrap(),
    ];
    db.execute(
        "INSERT INTO chains (chain, chain_id, opened_at, pid, key) VALUES (7, 'left', '', 1, ?1)",
        [key],
    )
    .unwrap();
    db.execute(
        "INSERT INTO journal (slot, chain, entry, started, ended, sequence, hash, body)
         VALUES (1, 7, 1, ?1, ?2, 1, 'sha256:00', '{}')",
        texts,
    )
    .unwrap();
    // A row that cannot be read costs only itself.
    db.execute_batch(
        "INSERT INTO journal (slot, chain, entry, started, sequence, hash, body)
         VALUES (2, 7, 2, '{', 2, 'sha256:01', '{}')",
    )
    .unwrap();
    drop(db);
    let store = Store::open(folder.path(), &domain::config::Ledger::default()).unwrap();
    let filter = ReceiptFilter { chain_id: Some("left".to_owned()), ..ReceiptFilter::default() };
    let found = store.read().receipts(&filter, &Page::first(10)).unwrap().receipts;
    let mut texts: Vec<_> = found.into_iter().map(|receipt| receipt.text).collect();
    texts.reverse();
    assert_eq!(texts.len(), 2, "of the call, and the end of its chain");
    assert!(texts[0].contains(&call.id));
    assert!(texts[0].contains("\"promised_hash\":\"sha256:00\""), "{}", texts[0]);
    assert!(verify(&texts, &store.key().public(), ChainExpectation::default()).valid);
    store.close().await.unwrap();
}

#[tokio::test]
async fn reading_a_version_1_ledger_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    first(folder.path()).await;
    let file = folder.path().join(crate::database::FILE);
    let names = || fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
    let before = (fs::read(&file).unwrap(), names().collect::<Vec<_>>());
    let reader = Reader::open(&file).unwrap();
    let keys = reader.public_keys(&folder.path().join("keys")).unwrap();
    assert_kept(&reader, &keys[0]);
    assert!((fs::read(&file).unwrap(), names().collect::<Vec<_>>()) == before);
}
