//! Receipts and chains, in a ledger and in copies of one.

use std::collections::BTreeSet;
use std::path::Path;

use domain::tool::Class;
use rusqlite::Connection;

use super::rig::{call, store};
use crate::Store;
use crate::database::FILE;
use crate::error::StoreError;
use crate::read::{Page, Reader, ReceiptFilter};
use crate::record::RecordStatus;

async fn ten_calls() -> (tempfile::TempDir, Store) {
    let calls = (0..10).map(|number| {
        let status = if number % 2 == 0 { RecordStatus::Success } else { RecordStatus::Error };
        (call(&format!("id-{number}"), "a#1", Class::Write, "/a", number), status)
    });
    store(calls.collect()).await
}

fn sequences(reader: &Reader, filter: &ReceiptFilter, limit: usize) -> Vec<u64> {
    let (mut page, mut sequences) = (Page::first(limit), Vec::new());
    loop {
        let found = reader.receipts(filter, &page).unwrap();
        assert!(found.receipts.len() <= limit);
        sequences.extend(found.receipts.iter().map(|receipt| receipt.sequence));
        let Some(cursor) = found.next_cursor else {
            assert_eq!(found.total.count(), sequences.len() as u64);
            return sequences;
        };
        page.cursor = Some(cursor);
    }
}

#[tokio::test]
async fn receipts_are_listed_newest_first() {
    let (_home, store) = ten_calls().await;
    let reader = store.read();
    let chain = reader.chains().unwrap().remove(0);
    let all = ReceiptFilter::default();
    let of_chain = ReceiptFilter { chain_id: Some(chain.id.clone()), ..all.clone() };
    for limit in [1, 3, 100] {
        assert_eq!(sequences(reader, &all, limit), (1..=10).rev().collect::<Vec<u64>>());
        assert_eq!(sequences(reader, &of_chain, limit), (1..=10).rev().collect::<Vec<u64>>());
    }
    let failed = ReceiptFilter { status: Some("failure".to_owned()), ..of_chain.clone() };
    assert_eq!(sequences(reader, &failed, 2), [10, 8, 6, 4, 2]);
    let at = |second: i64| Some(jiff::Timestamp::from_second(1_700_000_000 + second).unwrap());
    let between = ReceiptFilter { start: at(2), end: at(5), ..all.clone() };
    assert_eq!(sequences(reader, &between, 2), [5, 4, 3]);
    let typed = |kind: &str| ReceiptFilter { action_type: Some(kind.to_owned()), ..all.clone() };
    assert_eq!(sequences(reader, &typed("data.api.write"), 9).len(), 10);
    assert_eq!(sequences(reader, &typed("data.api.read"), 9).len(), 0);
    let elsewhere = ReceiptFilter { chain_id: Some("none".to_owned()), ..failed };
    assert_eq!(sequences(reader, &elsewhere, 9).len(), 0);
    let foreign = Page { limit: 1, cursor: Some("r1".to_owned()) };
    assert!(matches!(reader.receipts(&of_chain, &foreign), Err(StoreError::Cursor(_))));
}

#[tokio::test]
async fn a_chain_knows_its_ends_and_its_texts() {
    let (home, store) = ten_calls().await;
    let chain = store.read().chains().unwrap().remove(0);
    let opening = chain.opening.clone().unwrap();
    assert_eq!((&*opening.status, opening.pid), ("open", std::process::id()));
    assert_eq!(opening.key, store.key().public().fingerprint().to_string());
    assert_eq!((chain.length, opening.preceding), (10, None));
    assert_eq!(chain.first_timestamp.as_deref(), Some("2023-11-14T22:13:20.000Z"));
    assert_eq!(chain.last_timestamp.as_deref(), Some("2023-11-14T22:13:29.000Z"));
    let last = store.read().receipt("urn:receipt:id-9").unwrap().unwrap();
    assert_eq!(Some(&last.hash), chain.last_hash.as_ref());
    assert_eq!(last.chain_id, chain.id);
    let texts: Vec<String> = store.read().receipt_texts(&chain.id).map(Result::unwrap).collect();
    assert_eq!((texts.len(), &texts[9]), (10, &last.text));
    assert!(texts[0].contains("urn:receipt:id-0"));
    assert_eq!(store.read().chain(&chain.id).unwrap(), Some(chain));
    assert_eq!(store.read().chain("none").unwrap(), None);
    assert_eq!(store.read().receipt_texts("none").count(), 0);
    let keys = store.public_keys().unwrap();
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0].fingerprint(), store.key().public().fingerprint());
    store.close().await.unwrap();
    let closed = Reader::open(&home.path().join(FILE)).unwrap().chains().unwrap().remove(0);
    assert_eq!((closed.opening.unwrap().status.as_str(), closed.length), ("complete", 11));
}

fn names(folder: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn a_copy_of_the_file_alone_is_read_and_nothing_is_written_beside_it() {
    let (home, store) = ten_calls().await;
    store.close().await.unwrap();
    drop(store);
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("50% of #1?.db");
    let db = Connection::open(home.path().join(FILE)).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    std::fs::copy(home.path().join(FILE), &copy).unwrap();
    let reader = Reader::open(&copy).unwrap();
    let chain = reader.chains().unwrap().remove(0);
    assert_eq!(chain.length, 11);
    assert_eq!(reader.receipt_texts(&chain.id).map(Result::unwrap).count(), 11);
    assert_eq!(names(folder.path()).len(), 1, "{:?}", names(folder.path()));
}

#[tokio::test]
async fn a_file_of_another_program_is_read() {
    let (_home, store) = ten_calls().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("receipts.db");
    assert_eq!(store.read().export_table(None, &file).unwrap(), 10);
    let reader = Reader::open(&file).unwrap();
    let chain = reader.chains().unwrap().remove(0);
    assert_eq!((chain.length, chain.opening.clone()), (10, None));
    assert_eq!(reader.chain(&chain.id).unwrap(), Some(chain.clone()));
    let theirs: Vec<String> = reader.receipt_texts(&chain.id).map(Result::unwrap).collect();
    let ours: Vec<String> = store.read().receipt_texts(&chain.id).map(Result::unwrap).collect();
    assert_eq!(theirs, ours);
    assert_eq!(sequences(&reader, &ReceiptFilter::default(), 100).len(), 10);
    let receipt = |reader: &Reader| reader.receipt("urn:receipt:id-3").unwrap().unwrap();
    assert_eq!(receipt(&reader), receipt(store.read()));
    assert_eq!(receipt(&reader).tool_name, "edit");
    let decisions = crate::anchored::decisions(&file, crate::read::LedgerPlace::Copy);
    assert_eq!(decisions.unwrap(), None, "it has none, and can be verified");
    let of_chain = folder.path().join("chain.db");
    assert_eq!(store.read().export_table(Some("none"), &of_chain).unwrap(), 0);
}

#[test]
fn a_file_that_is_not_a_ledger_is_reported_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    Connection::open(path("empty.db")).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
    std::fs::write(
        path("text.db"),
        "not a database, but long enough to be taken for one".repeat(99),
    )
    .unwrap();
    for (name, words) in
        [("missing.db", "missing.db'"), ("empty.db", "no receipts"), ("text.db", "not a database")]
    {
        let error = Reader::open(&path(name)).err().unwrap().to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
    assert!(!path("missing.db").exists());
}
