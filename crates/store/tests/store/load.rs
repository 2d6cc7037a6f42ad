//! Many concurrent callers.

use domain::tool::Class;
use store::{Entry, Safety, Store};

use super::support::{Home, call, ended, journal_file, payload, rules, started, whole};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_ledgers_on_one_home_keep_their_chains_apart() {
    const STORES: usize = 4;
    const CALLS: usize = 150;
    let home = Home::new();
    let stores: Vec<Store> = (0..STORES).map(|_| home.open()).collect();
    let tasks: Vec<_> = stores
        .iter()
        .cycle()
        .take(STORES * 4)
        .map(|store| {
            let store = store.clone();
            tokio::spawn(async move {
                for turn in 0..CALLS {
                    let class = if turn % 2 == 0 { Class::Read } else { Class::Write };
                    assert_eq!(call(&store, class).await.unwrap().1, Safety::Committed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for store in &stores {
        store.close().await.unwrap();
    }
    let look = home.look();
    assert_eq!((look.chains.len(), look.calls.len()), (STORES, STORES * 4 * CALLS));
    for chain in &look.chains {
        assert_eq!(chain.receipts.len(), 4 * CALLS + 1);
    }
}

#[tokio::test]
async fn homes_are_opened_by_many_at_the_same_time() {
    let home = Home::new();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let path = home.path().to_owned();
            std::thread::spawn(move || Store::open(&path, &rules()).map(|store| store.key()))
        })
        .collect();
    let keys: Vec<_> =
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap().public()).collect();
    assert!(keys.iter().all(|key| *key == keys[0]), "one key for all");
}

#[tokio::test]
async fn thousands_of_calls_run_at_once() {
    const CALLS: usize = 4_000;
    let home = Home::new();
    let store = home.open();
    let calls: Vec<_> = (0..CALLS).map(|_| started(Class::Read)).collect();
    let ends: Vec<_> = calls.iter().map(ended).collect();
    for call in calls {
        store.append(Entry::Started(Box::new(call))).await.unwrap();
    }
    let ends: Vec<_> =
        ends.into_iter().rev().map(|end| store.append(Entry::Ended(Box::new(end)))).collect();
    for end in ends {
        assert_eq!(end.await.unwrap(), Safety::Committed);
    }
    store.settled().await;
    assert_eq!(home.look().calls.len(), CALLS);
}

#[tokio::test]
async fn a_journal_does_not_grow_with_the_ledger() {
    const MEGABYTE: u64 = 1024 * 1024;
    let home = Home::new();
    let store = home.open();
    let running = started(Class::Write);
    let runs = running.id.clone();
    store.append(Entry::Started(Box::new(running))).await.unwrap();
    let mut answered = Vec::new();
    for _ in 0..400 {
        let call = started(Class::Read);
        let mut end = ended(&call);
        end.response = payload(&"x".repeat(60_000));
        answered.push(call.id.clone());
        store.append(Entry::Whole(Box::new(call), Box::new(end))).await.unwrap();
    }
    store.settled().await;
    let chain = home.look().chains[0].id.clone();
    let bytes = std::fs::metadata(journal_file(home.path(), &chain)).unwrap().len();
    assert!(bytes < 16 * MEGABYTE, "{bytes} of 24 million are still there");
    let copy = home.copy();
    copy.open().close().await.unwrap();
    let look = copy.look();
    answered.iter().for_each(|id| look.assert_recorded(id));
    assert_eq!(look.status(&runs), "interrupted");
    assert!(look.receipt(&runs).is_some());
}

#[tokio::test]
async fn earlier_entries_are_settled_while_more_keep_arriving() {
    let home = Home::new();
    let store = home.open();
    let other = store.clone();
    let flood = tokio::spawn(async move {
        loop {
            let _ = other.append(whole(Class::Read).1).await;
        }
    });
    for _ in 0..20 {
        let (id, _) = call(&store, Class::Write).await.unwrap();
        store.settled().await;
        home.look().assert_recorded(&id);
    }
    flood.abort();
}

/// All committed rows are filed before another key signs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_rotated_while_more_entries_keep_arriving() {
    const CALLERS: usize = 200;
    let home = Home::new();
    let store = home.open();
    let flood = |_| {
        let store = store.clone();
        tokio::spawn(async move {
            loop {
                let _ = store.append(whole(Class::Read).1).await;
            }
        })
    };
    let flood: Vec<_> = (0..CALLERS).map(flood).collect();
    let (id, _) = call(&store, Class::Write).await.unwrap();
    let first = store.key();
    let second = store.rotate_key().await.unwrap();
    assert_ne!(first.public().fingerprint(), second.public().fingerprint());
    home.look().assert_recorded(&id);
    flood.iter().for_each(tokio::task::JoinHandle::abort);
    store.close().await.unwrap();
}
