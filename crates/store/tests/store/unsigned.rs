//! Rows that nobody signed: whatever they say, nothing is signed because of them, verification names
//! them, and a repair makes them repeat what is signed.

use std::fs;

use domain::tool::Class;
use receipt::audit::{Audit, AuditDetail, AuditScope};
use receipt::chain::ChainExpectation;
use store::read::LedgerPlace;
use store::{Entry, RecordKind, Store};

use super::support::{Home, call, ended, journal_file, started, whole};

/// Returns the first fault of each chain, and those of the ledger, as verification finds them.
pub(crate) fn faults(home: &Home) -> Vec<String> {
    let store = Store::open_to_read(&home.path().join(store::FILE), home.path()).unwrap();
    let mut audit = Audit::new(store.public_keys().unwrap(), None, AuditDetail::Chains).unwrap();
    store.read().audit(&mut audit, LedgerPlace::Home(home.path()), || ()).unwrap();
    let outcome = audit.finish(AuditScope::All, ChainExpectation::default());
    outcome.reports.into_iter().filter_map(|report| report.error).collect()
}

/// Changes the database of a home in which nothing runs.
pub(crate) fn change(home: &Home, sql: &str) {
    let db = testkit::ledger::edit(home.path());
    let before = db.total_changes();
    db.execute_batch(sql).unwrap();
    assert!(db.total_changes() > before, "{sql}");
}

pub(crate) fn receipts(home: &Home) -> i64 {
    let db = super::support::db(home.path());
    db.query_row("SELECT count(*) FROM receipts", [], |row| row.get(0)).unwrap()
}

/// Returns a home with so many chains that ended, each after a call.
pub(crate) async fn ended_chains(count: usize) -> Home {
    let home = Home::new();
    for _ in 0..count {
        let store = home.open();
        call(&store, Class::Write).await.unwrap();
        store.close().await.unwrap();
    }
    home
}

/// Opens and closes a home without a call, and returns what an operator is told.
async fn notices(home: &Home) -> Vec<String> {
    let store = home.open();
    let notices = store.ledger().notices;
    store.close().await.unwrap();
    notices
}

#[tokio::test]
async fn a_chain_that_has_ended_gets_no_second_end() {
    let original = ended_chains(2).await;
    for (case, sql) in [
        ("the last", "UPDATE chains SET status='open' WHERE chain=2"),
        ("the first", "UPDATE chains SET status='open' WHERE chain=1"),
        ("all", "UPDATE chains SET status='open'"),
    ] {
        let home = original.copy();
        change(&home, sql);
        let words = "the table of chains differs from what is signed: status";
        assert!(faults(&home)[0].contains(words), "{case}: {:?}", faults(&home));
        let before = receipts(&home);
        let notices = notices(&home).await;
        assert!(notices[0].contains(words), "{case}: {notices:?}");
        assert_eq!(receipts(&home), before, "{case}: something was signed");
        let done = store::repair::repair(home.path(), None).unwrap();
        assert!(done[0].contains("corrected the row of chain"), "{case}: {done:?}");
        assert_eq!(faults(&home), Vec::<String>::new(), "{case}");
    }
}

#[tokio::test]
async fn an_end_that_was_cut_off_with_its_traces_is_not_signed_anew() {
    // The checkpoint of the last one does not repeat the first.
    let original = ended_chains(3).await;
    let cut = "DELETE FROM receipts WHERE sequence=2 AND chain_id=(SELECT chain_id FROM chains
          WHERE chain=1);
        UPDATE chains SET status='open', length=1, named=1, last_hash=(SELECT receipt_hash
          FROM receipts WHERE receipts.chain_id=chains.chain_id) WHERE chain=1;";
    for (case, more, words) in [
        ("the chain after it names it", "", "but had 2 when chain"),
        (
            "nor does that",
            "UPDATE chains SET preceding_sequence=1 WHERE chain=2",
            "lists it as open, but the checkpoint in receipt 2",
        ),
    ] {
        let home = original.copy();
        change(&home, &format!("{cut}{more}"));
        let before = receipts(&home);
        let notices = notices(&home).await;
        assert!(notices[0].contains(words), "{case}: {notices:?}");
        assert_eq!(receipts(&home), before, "{case}: something was signed");
    }
}

#[tokio::test]
async fn the_row_of_a_chain_repeats_its_receipts() {
    let original = ended_chains(2).await;
    for (column, sql) in [
        ("status", "UPDATE chains SET status='interrupted' WHERE chain=1"),
        ("status", "UPDATE chains SET status='unclosed' WHERE chain=1"),
        ("key", "UPDATE chains SET key='sha256:00' WHERE chain=1"),
        ("opened_at", "UPDATE chains SET opened_at='2026-01-01T00:00:00.000Z' WHERE chain=1"),
        ("pid", "UPDATE chains SET pid=pid+1 WHERE chain=2"),
        ("preceding", "UPDATE chains SET preceding_sequence=1 WHERE chain=2"),
        ("preceding", "UPDATE chains SET preceding=NULL WHERE chain=2"),
        ("preceding", "UPDATE chains SET preceding_hash='sha256:00' WHERE chain=2"),
    ] {
        let home = original.copy();
        change(&home, sql);
        let words = format!("the table of chains differs from what is signed: {column}");
        assert!(faults(&home)[0].contains(&words), "{sql}: {:?}", faults(&home));
        store::repair::repair(home.path(), None).unwrap();
        assert_eq!(faults(&home), Vec::<String>::new(), "{sql}");
    }
}

#[tokio::test]
async fn a_wrong_number_of_filed_entries_costs_no_entry() {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    store.settled().await;
    let holder = super::faults::foreign(&home);
    let (unfiled, _) = call(&store, Class::Read).await.unwrap();
    let copy = home.copy();
    holder.execute_batch("COMMIT").unwrap();
    let journal = journal_file(copy.path(), &copy.look().chains[0].id);
    let before = fs::read(&journal).unwrap();
    for number in ["filed + 5", "filed - 1"] {
        let home = copy.copy();
        change(&home, &format!("UPDATE chains SET filed = {number}"));
        let notices = notices(&home).await;
        assert!(notices[0].contains("which does not agree with receipt"), "{notices:?}");
        let journal = home.path().join("writers").join(journal.file_name().unwrap());
        assert_eq!(fs::read(&journal).unwrap(), before, "{number}: it is all there");
        store::repair::repair(home.path(), None).unwrap();
        home.look().assert_recorded(&unfiled);
        assert_eq!(faults(&home), Vec::<String>::new(), "{number}");
    }
}

#[tokio::test]
async fn a_checkpoint_names_only_what_is_signed() {
    let home = ended_chains(2).await;
    change(
        &home,
        "UPDATE chains SET length=99, named=0 WHERE chain=1;
         INSERT INTO checkpoints (chain_id, sequence, hash) SELECT chain_id, sequence, receipt_hash
           FROM receipts WHERE sequence=1 LIMIT 1;",
    );
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    let text = store.checkpoint().await.unwrap();
    let receipt: serde_json::Value = serde_json::from_str(&text).unwrap();
    let checkpoint = receipt::checkpoint::Checkpoint::of(&receipt).unwrap();
    let look = home.look();
    let named = checkpoint.heads.iter().find(|head| head.chain_id == look.chains[0].id);
    assert_eq!((named, checkpoint.count), (None, 2), "{checkpoint:?}");
    let previous = checkpoint.previous.map(|head| (head.chain_id, head.length));
    assert_eq!(previous, Some((look.chains[1].id.clone(), 2)));
    store.close().await.unwrap();
}

#[tokio::test]
async fn the_table_of_checkpoints_lists_those_that_are_signed() {
    let original = ended_chains(2).await;
    for (sql, words) in [
        ("DELETE FROM checkpoints WHERE number=1", "lacks the one in receipt 2"),
        ("DELETE FROM checkpoints WHERE number=2", "lacks the one in receipt 2"),
        ("UPDATE checkpoints SET sequence=1 WHERE number=1", "lists receipt 1, which is not there"),
        (
            "UPDATE checkpoints SET hash=(SELECT hash FROM checkpoints WHERE number=2)",
            "lists receipt 2, which is not there",
        ),
    ] {
        let home = original.copy();
        change(&home, sql);
        assert!(faults(&home)[0].contains(words), "{sql}: {:?}", faults(&home));
        let done = store::repair::repair(home.path(), None).unwrap();
        assert!(done.iter().any(|done| done.contains("lists again receipt 2")), "{done:?}");
        assert_eq!(faults(&home), Vec::<String>::new(), "{sql}");
        home.open().close().await.unwrap();
    }
}

#[tokio::test]
async fn the_type_of_a_record_is_signed() {
    let home = Home::new();
    let store = home.open();
    let (_, mut entry) = whole(Class::Read);
    let Entry::Whole(refused, _) = &mut entry else { unreachable!() };
    refused.kind = RecordKind::PolicyDecision;
    store.append(entry).await.unwrap();
    call(&store, Class::Read).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(faults(&home), Vec::<String>::new());
    for change_of in ["'tool_call' WHERE type='policy_decision'", "'system' WHERE type='tool_call'"]
    {
        let home = home.copy();
        change(&home, &format!("UPDATE activity SET type={change_of}"));
        let words = "its record differs from the signed text: type";
        assert!(faults(&home)[0].contains(words), "{change_of}: {:?}", faults(&home));
    }
}

#[tokio::test]
async fn a_meeting_follows_from_its_records() {
    let home = Home::new();
    let store = home.open();
    for name in ["one", "two"] {
        let mut call = started(Class::Write);
        name.clone_into(&mut call.agent.name);
        call.action.correlation_id = None;
        let end = ended(&call);
        store.append(Entry::Whole(Box::new(call), Box::new(end))).await.unwrap();
    }
    store.close().await.unwrap();
    assert_eq!(faults(&home), Vec::<String>::new());
    for sql in [
        "UPDATE meetings SET kind='read-read'",
        "UPDATE meetings SET gap_us=gap_us+1",
        "UPDATE meetings SET other=number",
    ] {
        let home = home.copy();
        change(&home, sql);
        assert_eq!(faults(&home), ["1 meetings do not follow from their records"], "{sql}");
    }
}

#[tokio::test]
async fn a_count_of_deletions_that_nobody_signed_excuses_none() {
    let home = ended_chains(2).await;
    change(
        &home,
        r#"DELETE FROM activity WHERE number = 1; DELETE FROM payloads WHERE number = 1;
           DELETE FROM touches WHERE number = 1;
           INSERT INTO settings (name, value) VALUES ('expired_records', '[{"kind":"records",
             "reason":"size","holder":null,"count":1,"bytes":0,"span_us":[0,9000000000000000]}]')"#,
    );
    let words = "the count of deletions that no receipt states yet is not signed by this home";
    let is_found = |faults: Vec<String>| {
        faults.iter().any(|fault| fault.starts_with(words))
            && faults.iter().any(|fault| fault.contains("its record is missing"))
    };
    assert!(is_found(faults(&home)), "{:?}", faults(&home));
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    store.checkpoint().await.unwrap();
    store.close().await.unwrap();
    assert!(is_found(faults(&home)), "nothing was signed: {:?}", faults(&home));
    let done = store::repair::repair(home.path(), None).unwrap();
    assert!(done.iter().any(|done| done.starts_with("moved 1 rows")), "{done:?}");
    assert!(!faults(&home).iter().any(|fault| fault.starts_with(words)), "{:?}", faults(&home));
}

#[tokio::test]
async fn no_chain_names_an_edited_hash_as_the_end_of_the_one_before() {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    store.settled().await;
    let original = home.copy();
    fs::remove_dir_all(original.path().join("writers")).unwrap();
    fs::create_dir(original.path().join("writers")).unwrap();
    let other = receipt::Hash::of(b"another").to_string();
    for is_edited in [false, true] {
        let home = original.copy();
        if is_edited {
            change(&home, &format!("UPDATE receipts SET receipt_hash = '{other}'"));
        }
        let store = home.open();
        call(&store, Class::Write).await.unwrap();
        store.close().await.unwrap();
        let db = super::support::db(home.path());
        let sql = "SELECT receipt_json FROM receipts WHERE sequence = 1
                   AND chain_id = (SELECT chain_id FROM chains WHERE chain = 2)";
        let first: String = db.query_row(sql, [], |row| row.get(0)).unwrap();
        assert!(!first.contains(&other), "{first}");
        assert_eq!(first.contains("preceding_chain"), !is_edited, "{first}");
    }
}

#[tokio::test]
async fn no_checkpoint_covers_a_row_that_says_that_it_was_named() {
    let home = ended_chains(3).await;
    change(&home, "UPDATE chains SET length = 99, named = 99 WHERE chain = 1");
    let words = "the chain has 2 receipts, but had 99 according to the table of chains";
    assert!(faults(&home)[0].starts_with(words), "{:?}", faults(&home));
    let store = home.open();
    let told = "has 99 receipts, and its last one is receipt 2";
    assert!(store.ledger().notices[0].ends_with(told), "{:?}", store.ledger().notices);
    call(&store, Class::Write).await.unwrap();
    let text = store.checkpoint().await.unwrap();
    let receipt: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(receipt::checkpoint::Checkpoint::of(&receipt).unwrap().count, 3, "{text}");
    store.close().await.unwrap();
    assert_eq!(faults(&home).len(), 1, "{:?}", faults(&home));
    let done = store::repair::repair(home.path(), None).unwrap();
    assert!(done[0].contains("it said that the chain has 99 receipts"), "{done:?}");
    assert_eq!(faults(&home), Vec::<String>::new());
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(faults(&home), Vec::<String>::new(), "the next checkpoint names it");
}

#[tokio::test]
async fn no_loss_is_accepted_that_only_the_table_of_chains_names() {
    let original = ended_chains(2).await;
    for sql in [
        "UPDATE chains SET length = 99 WHERE chain = 1",
        "UPDATE chains SET length = 3, named = 0 WHERE chain = 2",
        "UPDATE chains SET length = 1 WHERE chain = 2",
        "UPDATE chains SET last_hash = 'sha256:00' WHERE chain = 2",
    ] {
        let home = original.copy();
        change(&home, sql);
        assert_eq!(store::acceptance::losses(home.path()).unwrap(), [], "{sql}");
        let done = store::repair::repair(home.path(), None).unwrap();
        assert!(done[0].contains("corrected the row of chain"), "{sql}: {done:?}");
        assert_eq!(faults(&home), Vec::<String>::new(), "{sql}");
        assert_eq!(store::repair::repair(home.path(), None).unwrap(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_call_that_only_a_row_knows_gets_no_receipt() {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    let begun = started(Class::Write);
    let begun_id = begun.id.clone();
    store.append(Entry::Started(Box::new(begun))).await.unwrap();
    store.settled().await;
    let home = home.copy();
    change(
        &home,
        "INSERT INTO activity (id, changed, chain, type, source, surface, server, tool, agent,
           started_us, status)
         SELECT 'forged', changed + 100, chain, type, source, surface, server, 'delete_all', agent,
           started_us, 'pending' FROM activity WHERE number = 1",
    );
    let told = notices(&home).await;
    assert!(told[0].starts_with("record forged says that a call of chain"), "{told:?}");
    let look = home.look();
    assert!(look.receipt("forged").is_none(), "it was signed");
    assert!(look.receipt(&begun_id).is_some(), "the one that the journal knows");
    assert_eq!(faults(&home), ["record forged names no receipt"]);
    let done = store::repair::repair(home.path(), None).unwrap();
    assert!(done.iter().any(|done| done.starts_with("moved 1 rows")), "{done:?}");
    assert_eq!(faults(&home), Vec::<String>::new());
    assert_eq!(home.look().status("forged"), "absent");
}
