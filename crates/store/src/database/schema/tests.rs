//! The mechanism of steps, and the files that are refused.

use std::path::Path;

use domain::config;

use super::*;
use crate::Store;
use crate::database::FILE;
use crate::read::{Page, Reader, RecordFilter};
use crate::record::tests::started;
use crate::record::{CallEnd, Entry};

/// Makes a closed ledger with a record and its receipt.
async fn fill(home: &Path) -> Connection {
    let store = Store::open(home, &config::Ledger::default()).unwrap();
    let (call, end) = (started(), CallEnd::at_once(started().id));
    store.append(Entry::Whole(Box::new(call), Box::new(end))).await.unwrap();
    store.close().await.unwrap();
    Connection::open(home.join(FILE)).unwrap()
}

fn refusal(home: &Path) -> StoreError {
    Store::open(home, &config::Ledger::default()).err().unwrap()
}

#[tokio::test]
async fn a_further_step_keeps_the_rows_and_an_older_program_refuses_its_file() {
    let home = tempfile::tempdir().unwrap();
    let mut db = fill(home.path()).await;
    assert_eq!(version(&db).unwrap(), Some(1));
    let further = [FIRST, "CREATE TABLE more (agent INTEGER); INSERT INTO more VALUES (7);"];
    migrate_by(&mut db, &further).unwrap();
    migrate_by(&mut db, &further).unwrap();
    assert_eq!(version(&db).unwrap(), Some(2));
    let read = Reader::live(&home.path().join(FILE));
    let found = read.activity(&RecordFilter::default(), &Page::first(10)).unwrap();
    assert_eq!(found.records[0].id, started().id);
    assert_eq!(found.records[0].targets.len(), 1);
    let taken: i64 = db.query_row("SELECT COUNT(*) FROM more", [], |row| row.get(0)).unwrap();
    assert_eq!(taken, 1, "a step is taken once");

    let error = refusal(home.path());
    assert!(matches!(error, StoreError::Newer { found: 2, newest: 1 }), "{error}");
    assert!(error.to_string().contains("upgrade Countersign"), "{error}");
    assert!(Reader::open(&home.path().join(FILE)).is_err());
}

#[tokio::test]
async fn a_step_that_fails_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut db = fill(home.path()).await;
    let failing =
        [FIRST, "CREATE TABLE more (agent INTEGER); CREATE TABLE agents (agent INTEGER);"];
    assert!(migrate_by(&mut db, &failing).is_err());
    assert_eq!(version(&db).unwrap(), Some(1));
    assert!(!has_table(&db, "more").unwrap());
}

#[tokio::test]
async fn a_ledger_of_an_unknown_layout_is_refused_and_kept() {
    let home = tempfile::tempdir().unwrap();
    let db = fill(home.path()).await;
    db.pragma_update(None, "application_id", 0).unwrap();
    db.pragma_update(None, "user_version", 9).unwrap();
    let error = refusal(home.path());
    assert!(matches!(error, StoreError::UnknownLayout), "{error}");
    let read = Reader::open(&home.path().join(FILE)).err().unwrap();
    assert!(matches!(read, StoreError::UnknownLayout), "{read}");
    assert!(has_rows(&db, "activity").unwrap());
}
