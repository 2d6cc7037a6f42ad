//! Committing: entries become rows of the journal, and their callers are answered.

use std::time::{Duration, Instant};

use super::{Work, Writer};
use crate::database::transaction;
use crate::error::StoreError;
use crate::limits::{AT_ONCE_MAX, BUSY_TIMEOUT, COMMIT_MAX, QUEUE_MAX};
use crate::write::chain::OpenChain;
use crate::write::draft::Draft;
use crate::write::drafts::DueReply;
use crate::write::link::ChainEnd;
use crate::write::message::{Message, Submission};
use crate::write::row::JournalRow;
use crate::write::schedule::Precondition;

/// The known state of the tables.
#[derive(Clone, Copy)]
pub(super) enum Tables {
    Writable,
    Unknown,
}

impl Writer {
    /// Commits the few waiting entries, if nothing else is to be done.
    pub(super) fn commit_few(&mut self) -> bool {
        if !self.schedule.lets_callers_commit(&self.situation()) {
            return false;
        }
        let Some(messages) = self.inbox.take_few(AT_ONCE_MAX) else {
            return false;
        };
        if messages.iter().any(Message::permits) && !self.is_free() {
            self.inbox.put_back(messages);
            return false;
        }
        let submissions = self.sort(messages);
        self.commit(submissions, Tables::Writable);
        if self.schedule.signs(&self.situation(), Instant::now()) {
            self.sign();
        }
        true
    }

    /// Reports whether the tables can be written without waiting for another process.
    pub(super) fn is_free(&self) -> bool {
        if self.work.holds_tables {
            return true;
        }
        let _ = self.db.busy_timeout(Duration::ZERO);
        let free = transaction::whole(&self.db, |_| Ok(()));
        let _ = self.db.busy_timeout(BUSY_TIMEOUT);
        free.is_ok()
    }

    /// Takes as many waiting messages as one commit holds.
    pub(super) fn gather(&mut self) -> Vec<Submission> {
        let messages = self.inbox.take(COMMIT_MAX);
        self.sort(messages)
    }

    /// Dispatches messages, and returns the entries to commit.
    fn sort(&mut self, messages: Vec<Message>) -> Vec<Submission> {
        let Writer { work: Work { backlog, waiters, .. }, retention, schedule, .. } = self;
        let mut submissions = Vec::with_capacity(messages.len());
        for message in messages {
            match message {
                // Its caller gets the error that the ledger is closed.
                Message::Append(_) if waiters.is_closing() => {}
                Message::Append(submission) => submissions.push(submission),
                Message::Signed(rows) => backlog.keep_signed(rows),
                Message::Settle(reply) => waiters.settle(reply),
                Message::Rotate(reply) => waiters.rotate(reply),
                Message::Checkpoint(reply) => waiters.checkpoint(reply),
                Message::Retention => {
                    retention.begin_anew();
                    schedule.hasten_upkeep(Instant::now());
                }
                Message::Close(reply) => waiters.close(reply),
            }
        }
        submissions
    }

    pub(super) fn commit(&mut self, mut submissions: Vec<Submission>, tables: Tables) {
        loop {
            let is_urgent = self.work.waiters.count().is_urgent();
            let drafts = self.work.drafts.sort(submissions, is_urgent, Instant::now());
            if !drafts.is_empty() {
                let checked = match tables {
                    Tables::Writable => Ok(()),
                    Tables::Unknown => self.check(&drafts),
                };
                match checked.and_then(|()| self.write(&drafts)) {
                    Ok(rows) => {
                        self.recovered();
                        self.work.drafts.committed(drafts, &rows);
                        self.keep(rows);
                    }
                    Err(error) => self.give_back(drafts, &error),
                }
            }
            submissions = self.work.drafts.early();
            if submissions.is_empty() {
                break;
            }
        }
        self.work.waiters.committed(self.work.backlog.progress().committed);
    }

    fn give_back(&mut self, drafts: Vec<Draft>, error: &StoreError) {
        self.failed(error);
        let replies = self.work.drafts.failed(drafts, error, self.on_failure, Instant::now());
        self.health.set_queue(self.work.drafts.queued(), QUEUE_MAX);
        replies.into_iter().for_each(DueReply::send);
    }

    /// Writes drafts as rows of the journal.
    pub(super) fn write(&mut self, drafts: &[Draft]) -> Result<Vec<JournalRow>, StoreError> {
        self.open_chain()?;
        let chain = self.work.chain.as_mut().expect("the chain was just opened");
        let mut end = chain.end;
        let mut rows: Vec<JournalRow> =
            drafts.iter().map(|draft| draft.row(chain.issuance(&mut end))).collect();
        chain.journal.append(&mut rows)?;
        chain.note_tail(end);
        self.set_end(end);
        Ok(rows)
    }

    fn check(&self, drafts: &[Draft]) -> Result<(), StoreError> {
        match self.situation().precondition(drafts.iter().any(Draft::permits)) {
            Precondition::Nothing => Ok(()),
            Precondition::WritableTables => transaction::whole(&self.db, |_| Ok(())),
            Precondition::Unmet => Err(self.health.fault()),
        }
    }

    pub(super) fn open_chain(&mut self) -> Result<(), StoreError> {
        if self.work.chain.is_none() {
            let Writer { db, keys, writers, durability, .. } = self;
            let chain = transaction::whole(db, |db| {
                let key = keys.refreshed(db)?;
                OpenChain::open(db, writers, key, *durability)
            })?;
            self.work.chain = Some(chain);
            self.keys.mark_used();
        }
        Ok(())
    }

    /// Keeps committed rows until they are filed.
    pub(super) fn keep(&mut self, rows: Vec<JournalRow>) {
        let now = Instant::now();
        self.work.uncovered_since.get_or_insert(now);
        self.work.backlog.keep(rows, now);
        self.health.set_progress(self.work.backlog.progress());
    }

    pub(super) fn set_end(&mut self, end: ChainEnd) {
        let Some(chain) = &mut self.work.chain else {
            return;
        };
        chain.end = end;
        self.health.set_chain(&chain.id, end);
    }
}
