//! The disk space of a call.

use domain::tool::Class;
use store::Store;

use super::support::{Home, db, whole};

/// A small call, with its record, its kept texts, its touch and its receipt.
const BYTES_MAX: i64 = 1_500;

async fn append(store: &Store, calls: usize) {
    for _ in 0..calls {
        store.append(whole(Class::Write).1).await.unwrap();
    }
    store.settled().await;
}

#[tokio::test]
async fn a_small_call_takes_at_most_1500_bytes() {
    let home = Home::new();
    let store = home.open();
    let size = || -> i64 {
        let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        db(home.path()).query_row(sql, [], |row| row.get(0)).unwrap()
    };
    append(&store, 500).await;
    let before = size();
    append(&store, 1_500).await;
    let bytes = (size() - before) / 1_500;
    assert!((1..=BYTES_MAX).contains(&bytes), "{bytes} bytes");
    store.close().await.unwrap();
}
