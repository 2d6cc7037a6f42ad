//! Committed entries stay in the journal until they are filed, whatever else is in progress, and
//! are covered by a checkpoint a minute later.

use std::collections::HashSet;
use std::path::Path;

use tokio::sync::oneshot;

use super::*;
use crate::Store;
use crate::limits::{CHECKPOINT_AFTER, JOURNAL_BYTES_MAX};
use crate::record::tests::started;
use crate::record::{CallEnd, CallStart, Entry, Payload};
use crate::write::backlog::Progress;
use crate::write::message::{Message, Submission};
use crate::write::schedule::Upkeep;

const CALL_BYTES: usize = 60_000;

fn leave_call(writer: &Writer, number: usize) {
    let call = CallStart { id: format!("call-{number}"), ..started() };
    let mut ended = CallEnd::interrupted(&call.id);
    ended.response = Payload { kept: Some("x".repeat(CALL_BYTES)), ..Payload::default() };
    let entry = Entry::Whole(Box::new(call), Box::new(ended));
    writer.inbox.leave(Message::Append(Submission { entry, reply: None })).unwrap();
}

fn settle(writer: &mut Writer) {
    writer.inbox.leave(Message::Settle(oneshot::channel().0)).unwrap();
    turn(writer);
}

/// Does a turn of the writer without its thread.
fn turn(writer: &mut Writer) {
    let mut turn = writer.turn();
    while let Turn::File(batch) = turn {
        let filed = batch.file(|| writer.commit_meanwhile());
        turn = writer.continue_turn(filed);
    }
}

fn await_message(inbox: &Inbox) {
    loop {
        let messages = inbox.take(1);
        if !messages.is_empty() {
            return inbox.put_back(messages);
        }
        inbox.wait(Duration::from_secs(1));
    }
}

/// Returns the entries that a journal holds.
fn entries(path: &Path) -> HashSet<u64> {
    let text = std::fs::read_to_string(path).unwrap();
    let entry = |line: &str| line.strip_prefix("{\"entry\":")?.split(',').next()?.parse().ok();
    // The header has the number 0.
    text.lines().filter_map(entry).filter(|entry| *entry > 0).collect()
}

fn assert_kept(writer: &Writer) {
    let chain = writer.work.chain.as_ref().unwrap();
    let kept = entries(&writer.writers.join(format!("{}.journal", chain.id)));
    let Progress { committed, filed } = writer.work.backlog.progress();
    for entry in filed + 1..=committed {
        assert!(kept.contains(&entry), "entry {entry} is gone; {filed} are filed");
    }
}

#[test]
fn a_restarted_journal_keeps_rows_held_by_the_signer() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path(), &domain::config::Ledger::default()).unwrap();
    // Without its thread the writer acts only when called.
    let mut writer = lock(&store.inner.writer).take().unwrap();
    // Retention keeps the signer idle for a moment, and could interfere.
    writer.schedule.maintained(Upkeep::Done, Instant::now());
    let many = usize::try_from(JOURNAL_BYTES_MAX).unwrap() / CALL_BYTES + 1;
    (0..many).for_each(|number| leave_call(&writer, number));
    settle(&mut writer);
    assert!(writer.work.backlog.batches().at_signer);
    await_message(&writer.inbox);
    // They are signed. More is committed before they are filed, and a caller waits for it.
    (many..many + 5).for_each(|number| leave_call(&writer, number));
    settle(&mut writer);
    let all = writer.work.backlog.progress().committed;
    while writer.work.backlog.progress().filed < all {
        assert_kept(&writer);
        writer.inbox.wait(writer.rest());
        turn(&mut writer);
    }
    let chain = writer.work.chain.as_ref().unwrap();
    let kept = entries(&writer.writers.join(format!("{}.journal", chain.id)));
    assert!(kept.len() <= 5, "{} of {all} are still there", kept.len());
}

#[test]
fn callers_commit_while_a_batch_is_filed() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path(), &domain::config::Ledger::default()).unwrap();
    let mut writer = lock(&store.inner.writer).take().unwrap();
    writer.schedule.maintained(Upkeep::Done, Instant::now());
    (0..2).for_each(|number| leave_call(&writer, number));
    settle(&mut writer);
    await_message(&writer.inbox);
    let Turn::File(batch) = writer.turn() else { panic!("the signed batch is due") };
    let filed = batch.file(|| {
        writer.commit_meanwhile();
        let permitted = CallStart { id: "permitted".to_owned(), ..started() };
        let entry = Entry::Started(Box::new(permitted));
        let (reply, mut committed) = oneshot::channel();
        let submission = Submission { entry, reply: Some(reply) };
        writer.inbox.leave(Message::Append(submission)).unwrap();
        assert!(writer.commit_few(), "the transaction of the batch is no obstacle");
        assert!(committed.try_recv().is_ok());
    });
    assert!(matches!(writer.continue_turn(filed), Turn::Rest));
    assert_eq!(writer.work.backlog.progress(), Progress { committed: 3, filed: 2 });
    assert!(!writer.work.holds_tables);
}

#[test]
fn a_checkpoint_covers_entries_that_are_a_minute_old_once() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path(), &domain::config::Ledger::default()).unwrap();
    let mut writer = lock(&store.inner.writer).take().unwrap();
    writer.schedule.maintained(Upkeep::Done, Instant::now());
    let issued = |writer: &Writer| -> i64 {
        writer.db.query_row("SELECT COUNT(*) FROM checkpoints", [], |row| row.get(0)).unwrap()
    };
    leave_call(&writer, 1);
    turn(&mut writer);
    assert!(writer.work.uncovered_since.is_some());
    assert_eq!(issued(&writer), 0, "not yet");
    writer.work.uncovered_since = Instant::now().checked_sub(CHECKPOINT_AFTER);
    for _ in 0..2 {
        turn(&mut writer);
        assert_eq!(issued(&writer), 1);
        assert_eq!(writer.work.uncovered_since, None);
    }
    let kept = crate::kept_checkpoint(home.path()).unwrap().unwrap();
    assert!(kept.contains("agent_receipts.checkpoint"), "{kept}");
}
