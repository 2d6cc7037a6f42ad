//! Every kind of entry, and its stored result.

use domain::tool::Class;
use receipt::chain::ChainStatus;
use serde_json::{Value, json};
use store::{Entry, EventOperator, OutsideSource, RecordKind, Safety, StoreError};
use touch::targets::Touches;

use super::support::{Home, call, ended, started, whole};

#[tokio::test]
async fn calls_of_every_class_leave_a_record_and_a_receipt() {
    let home = Home::new();
    let store = home.open();
    let mut ids = Vec::new();
    for class in [Class::Read, Class::Write, Class::Destructive] {
        let (id, safe) = call(&store, class).await.unwrap();
        assert_eq!(safe, Safety::Committed);
        ids.push(id);
        let (id, entry) = whole(class);
        assert_eq!(store.append(entry).await.unwrap(), Safety::Committed);
        ids.push(id);
    }
    store.settled().await;
    let look = home.look();
    ids.iter().for_each(|id| look.assert_recorded(id));
    assert_eq!((look.chains.len(), look.chains[0].receipts.len()), (1, 6));
    assert_eq!(look.journal, 0, "all of it is filed");
    let order: Vec<&Value> = look.chains[0].receipts.iter().map(|receipt| &receipt["id"]).collect();
    let expected: Vec<Value> = ids.iter().map(|id| json!(format!("urn:receipt:{id}"))).collect();
    assert_eq!(order, expected.iter().collect::<Vec<_>>(), "in the order of their ends");
}

#[tokio::test]
async fn a_receipt_says_what_the_record_says() {
    let home = Home::new();
    let store = home.open();
    let (id, _) = call(&store, Class::Read).await.unwrap();
    store.settled().await;
    let look = home.look();
    let receipt = look.receipt(&id).unwrap();
    let subject = &receipt["credentialSubject"];
    assert_eq!(subject["action"]["target"], json!({"system":"files","resource":"/srv/notes.txt"}));
    assert_eq!(subject["action"]["idempotency_key"], "7");
    assert_eq!(subject["outcome"]["status"], "success");
    assert_eq!(receipt["issuer"]["session_id"], "session-1");
    let runtime = &receipt["issuer"]["runtime"];
    assert_eq!(
        (&runtime["tool"], &runtime["effective_class"]),
        (&json!("read_text"), &json!("read"))
    );
    assert_eq!(runtime["reason"], "to see what \"it\" says");
}

#[tokio::test]
async fn a_decision_leaves_a_record_of_its_kind_and_a_receipt() {
    let home = Home::new();
    let store = home.open();
    let action = domain::taxonomy::classify_decision();
    let mut ids = Vec::new();
    for kind in [RecordKind::ServerChange, RecordKind::ToolChange, RecordKind::TokenChange] {
        let mut decision = started(Class::Write);
        (decision.kind, decision.effective, decision.touches) = (kind, None, Touches::default());
        (decision.variant, decision.declared) = (None, None);
        decision.action.kind = action.action_type.as_str().into();
        decision.action.risk = action.risk;
        let end = ended(&decision);
        ids.push((kind, decision.id.clone()));
        store.append(Entry::Whole(Box::new(decision), Box::new(end))).await.unwrap();
    }
    store.settled().await;
    let look = home.look();
    for (kind, id) in ids {
        look.assert_recorded(&id);
        assert_eq!(store.read().record(&id).unwrap().unwrap().kind, kind);
        let action = &look.receipt(&id).unwrap()["credentialSubject"]["action"];
        assert_eq!(
            (&action["type"], &action["risk_level"]),
            (&json!("system.settings.modify"), &json!("high"))
        );
    }
}

#[tokio::test]
async fn an_event_from_outside_names_its_peer_and_what_was_dropped() {
    let home = Home::new();
    let store = home.open();
    let mut call = started(Class::Write);
    call.outside = Some(Box::new(OutsideSource {
        pid: Some(4711),
        uid: Some(1000),
        gid: Some(1000),
        drop_count: Some(3),
        operator: Some(EventOperator { id: "did:web:acme".to_owned(), name: "Acme".to_owned() }),
        model: Some("some-model".to_owned()),
        ..OutsideSource::default()
    }));
    let (id, end) = (call.id.clone(), ended(&call));
    store.append(Entry::Whole(Box::new(call), Box::new(end))).await.unwrap();
    store.settled().await;
    let look = home.look();
    let action = &look.receipt(&id).unwrap()["credentialSubject"]["action"];
    assert_eq!(
        (&action["peer_credential"]["pid"], &action["peer_credential"]["uid"]),
        (&json!(4711), &json!(1000))
    );
    assert_eq!(action["emitter_metadata"]["drop_count"], 3);
}

#[tokio::test]
async fn closing_ends_the_chain_and_the_next_names_it() {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    let first = home.look();
    assert_eq!(first.chains[0].status, ChainStatus::Complete);
    assert_eq!(first.chains[0].row_status, "complete");
    let (id, entry) = whole(Class::Read);
    assert!(matches!(store.append(entry).await, Err(StoreError::Closed)), "{id}");
    store.close().await.unwrap();

    let store = home.open();
    call(&store, Class::Read).await.unwrap();
    store.settled().await;
    let look = home.look();
    let preceding = &look.chains[1].receipts[0]["issuer"]["runtime"]["preceding_chain"];
    assert_eq!(preceding["chain_id"], look.chains[0].id);
    assert_eq!(preceding["sequence"], 2);
    let db = super::support::db(home.path());
    let last: String = db
        .query_row(
            "SELECT receipt_hash FROM receipts WHERE chain_id = ?1 AND sequence = 2",
            [&look.chains[0].id],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(preceding["hash"], last);
}

#[tokio::test]
async fn a_ledger_that_was_only_opened_leaves_no_chain() {
    let home = Home::new();
    home.open().close().await.unwrap();
    assert!(home.look().chains.is_empty());
    assert_eq!(std::fs::read_dir(home.path().join("writers")).unwrap().count(), 1);
}

#[tokio::test]
async fn calls_that_run_at_the_close_are_interrupted() {
    let home = Home::new();
    let store = home.open();
    let (read, write) = (started(Class::Read), started(Class::Write));
    let ids = [read.id.clone(), write.id.clone()];
    store.append(Entry::Started(Box::new(read))).await.unwrap();
    store.append(Entry::Started(Box::new(write))).await.unwrap();
    store.close().await.unwrap();
    let look = home.look();
    for id in ids {
        assert_eq!(look.status(&id), "interrupted");
        assert_eq!(look.receipt(&id).unwrap()["credentialSubject"]["outcome"]["status"], "pending");
    }
    assert_eq!((look.journal, look.chains[0].status), (0, ChainStatus::Complete));
}

#[tokio::test]
async fn a_running_call_is_pending_until_it_ends() {
    let home = Home::new();
    let store = home.open();
    for class in [Class::Read, Class::Write] {
        let call = started(class);
        let (id, end) = (call.id.clone(), ended(&call));
        store.append(Entry::Started(Box::new(call))).await.unwrap();
        store.settled().await;
        assert_eq!(home.look().status(&id), "pending");
        store.append(Entry::Ended(Box::new(end))).await.unwrap();
        store.settled().await;
        home.look().assert_recorded(&id);
    }
    assert_eq!(home.look().journal, 0);
}

#[tokio::test]
async fn entries_are_recorded_even_if_nobody_waits() {
    let home = Home::new();
    let store = home.open();
    let call = started(Class::Write);
    let (id, end) = (call.id.clone(), ended(&call));
    drop(store.append(Entry::Started(Box::new(call))));
    drop(store.append(Entry::Ended(Box::new(end))));
    store.settled().await;
    home.look().assert_recorded(&id);
}

#[tokio::test]
async fn an_end_without_a_start_is_an_error() {
    let home = Home::new();
    let store = home.open();
    let end = ended(&started(Class::Read));
    assert!(matches!(store.append(Entry::Ended(Box::new(end))).await, Err(StoreError::Write(_))));
}

#[tokio::test]
async fn time_that_goes_back_breaks_nothing() {
    let home = Home::new();
    let store = home.open();
    for hours in [0, 5, 2, 100] {
        let mut call = started(Class::Read);
        call.at -= jiff::SignedDuration::from_hours(hours);
        let end = ended(&call);
        store.append(Entry::Whole(Box::new(call), Box::new(end))).await.unwrap();
    }
    store.close().await.unwrap();
    assert_eq!(home.look().chains[0].receipts.len(), 5);
}

#[tokio::test]
async fn the_last_handle_closes_the_chain() {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Read).await.unwrap();
    let mut changes = store.changes();
    drop(store);
    // The sender is dropped with the thread.
    while changes.changed().await.is_ok() {}
    assert_eq!(home.look().chains[0].status, ChainStatus::Complete);
}

#[tokio::test]
async fn the_file_is_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Read).await.unwrap();
    for name in ["ledger.db", "ledger.db-wal"] {
        let mode = std::fs::metadata(home.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}");
    }
}
