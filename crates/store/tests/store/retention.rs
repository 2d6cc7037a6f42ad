//! Data that retention deletes, and data that stays.

use std::path::Path;

use domain::tool::Class;
use receipt::PublicKey;
use receipt::chain::{ChainExpectation, verify};
use serde_json::Value;
use store::{Entry, Store};

use super::support::{Home, call, db, ended, payload, rules, started};

async fn append_old(store: &Store, days: i64, count: usize) {
    for _ in 0..count {
        let mut call = started(Class::Write);
        call.at -= jiff::SignedDuration::from_hours(24 * days);
        let end = ended(&call);
        store.append(Entry::Whole(Box::new(call), Box::new(end))).await.unwrap();
    }
    store.settled().await;
}

fn count(home: &Path, table: &str) -> u64 {
    db(home).query_row(&format!("SELECT COUNT(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

/// Polls the writer until the condition holds; it applies retention in between.
async fn until(store: &Store, so: impl Fn() -> bool) {
    while !so() {
        store.settled().await;
    }
}

#[tokio::test]
async fn old_records_are_deleted_and_their_receipts_kept() {
    let home = Home::new();
    let store = home.open();
    append_old(&store, 100, 5).await;
    append_old(&store, 1, 3).await;
    store.close().await.unwrap();
    let store = home.open();
    until(&store, || count(home.path(), "activity") == 3).await;
    assert_eq!(count(home.path(), "payloads"), 3);
    assert_eq!(home.look().chains[0].receipts.len(), 9);
}

#[tokio::test]
async fn excess_records_are_deleted_oldest_first() {
    let home = Home::new();
    let mut rules = rules();
    rules.max_records = 10;
    let store = home.open();
    append_old(&store, 0, 25).await;
    let (newest, _) = call(&store, Class::Read).await.unwrap();
    store.close().await.unwrap();
    let store = Store::open(home.path(), &rules).unwrap();
    until(&store, || count(home.path(), "activity") == 10).await;
    home.look().assert_recorded(&newest);
}

#[tokio::test]
async fn payloads_are_deleted_for_size_before_records() {
    let home = Home::new();
    let mut rules = rules();
    rules.max_size_mb = 2;
    let store = home.open();
    for _ in 0..1_200 {
        let mut call = started(Class::Write);
        call.arguments = payload(&format!("\"{}\"", "x".repeat(4_000)));
        let end = ended(&call);
        drop(store.append(Entry::Whole(Box::new(call), Box::new(end))));
    }
    store.settled().await;
    store.close().await.unwrap();
    let store = Store::open(home.path(), &rules).unwrap();
    until(&store, || count(home.path(), "payloads") < 700).await;
    assert_eq!(count(home.path(), "activity"), 1_200);
}

#[tokio::test]
async fn old_chains_are_exported_and_removed_with_a_receipt() {
    let home = Home::new();
    let store = home.open();
    append_old(&store, 100, 3).await;
    let key = store.key().public();
    store.close().await.unwrap();
    // The terminal receipt is of today, as for every chain that was closed today.
    let db = rusqlite::Connection::open(home.path().join(store::FILE)).unwrap();
    db.execute("UPDATE receipts SET timestamp = '2020-01-01T00:00:00.000Z'", []).unwrap();
    drop(db);
    let mut rules = rules();
    rules.receipt_retention_days = 30;
    let store = Store::open(home.path(), &rules).unwrap();
    until(&store, || count(home.path(), "chains WHERE status = 'expired'") == 1).await;
    store.close().await.unwrap();
    let look = home.look();
    let [gone, present] = &look.chains[..] else { panic!("{} chains", look.chains.len()) };
    assert!(gone.receipts.is_empty());
    let text = std::fs::read_to_string(home.path().join(format!("exports/{}.jsonl", gone.id)));
    let text = text.unwrap();
    let check = verify(text.lines(), &key, ChainExpectation::default());
    assert!(check.valid && check.length == 4, "{check:?}");
    let expired: &Value = &present.receipts[0]["issuer"]["runtime"]["expired_chain"];
    assert_eq!((&expired["chain_id"], &expired["sequence"]), (&gone.id.clone().into(), &4.into()));
    let last = receipt::verify::SignedReceipt::parse(text.lines().last().unwrap()).unwrap();
    assert_eq!(expired["hash"], last.hash.to_string());
    assert_eq!(present.receipts[0]["issuer"]["id"], PublicKey::did(&key));
}
