//! The only writer of this process. It carries out its schedule's decisions: it commits waiting
//! entries in one write, answers their callers, and files earlier entries in between, on its own
//! thread or, for a few entries, on the thread of the caller that appended one.

mod batch;
mod commit;
mod issue;
mod maintenance;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::config::{Durability, OnFailure};
use rusqlite::Connection;
use tokio::sync::watch;

use self::batch::{Batch, FiledBatch, FilingConnection};
use self::commit::Tables;
use crate::database::{settings, timestamp};
use crate::error::StoreError;
use crate::keys::Keys;
use crate::limits::{BUSY_TIMEOUT, BUSY_TIMEOUT_FAILING, FILE_AFTER};
use crate::upkeep::retention::Retention;
use crate::write::anchor::Anchor;
use crate::write::backlog::Backlog;
use crate::write::chain::OpenChain;
use crate::write::drafts::Drafts;
use crate::write::heads::SignedHeads;
use crate::write::health::Health;
use crate::write::inbox::Inbox;
use crate::write::journal::Journal;
use crate::write::log_copy::LogCopy;
use crate::write::message::Submission;
use crate::write::schedule::{Action, Schedule, Situation};
use crate::write::signer::Signer;
use crate::write::waiters::Waiters;

pub(crate) struct Writer {
    pub(crate) db: Connection,
    pub(crate) home: PathBuf,
    pub(crate) writers: PathBuf,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) signer: Signer,
    pub(crate) log_copy: LogCopy,
    pub(crate) anchor: Option<Anchor>,
    pub(crate) keys: Keys,
    pub(crate) health: Arc<Health>,
    pub(crate) on_failure: OnFailure,
    pub(crate) durability: Durability,
    pub(crate) retention: Retention,
    /// The time of the latest recovery of what other processes left.
    pub(crate) recovered_at: Option<Instant>,
    /// The number of the last change that readers can see.
    pub(crate) changes: watch::Sender<i64>,
    pub(crate) schedule: Schedule,
    pub(crate) work: Work,
}

/// All work in progress.
#[derive(Default)]
pub(crate) struct Work {
    chain: Option<OpenChain>,
    /// None before the first filing, and while a batch is being filed.
    filing: Option<FilingConnection>,
    /// A batch is being filed: its transaction holds the tables.
    holds_tables: bool,
    drafts: Drafts,
    backlog: Backlog,
    waiters: Waiters,
    /// The journal is begun anew as soon as possible: it was deleted, or another key signs.
    is_journal_due: bool,
    signed_heads: SignedHeads,
    /// The commit time of the first entry that no checkpoint covers.
    uncovered_since: Option<Instant>,
}

impl Work {
    /// Returns the state after a recovery, whose receipts the next checkpoint is to cover.
    pub(crate) fn after_recovery(closed: usize) -> Work {
        Work { uncovered_since: (closed > 0).then(Instant::now), ..Work::default() }
    }
}

/// The end of a turn, or the part of it for which the writer is not locked.
enum Turn {
    File(Box<Batch>),
    Rest,
    Close,
}

/// The writer, shared by its thread and by callers that commit what they have just appended. None
/// once the ledger is closed.
pub(crate) type SharedWriter = Mutex<Option<Writer>>;

/// Runs the writer's thread, which does all work that callers do not do themselves.
pub(crate) fn run(shared: &SharedWriter, inbox: &Inbox) {
    loop {
        let Some(rest) = lock(shared).as_ref().map(Writer::rest) else {
            return;
        };
        inbox.wait(rest);
        let mut writer = lock(shared);
        let mut turn = writer.as_mut().map(Writer::turn);
        while let Some(Turn::File(batch)) = turn {
            drop(writer);
            let filed = batch.file(|| commit_meanwhile(shared));
            writer = lock(shared);
            turn = writer.as_mut().map(|writer| writer.continue_turn(filed));
        }
        if !matches!(turn, Some(Turn::Rest)) {
            let closed = writer.take();
            drop(writer);
            return closed.map_or((), Writer::close);
        }
    }
}

fn commit_meanwhile(shared: &SharedWriter) {
    if let Some(writer) = lock(shared).as_mut() {
        writer.commit_meanwhile();
    }
}

/// Commits waiting entries on the caller's own thread, which takes less time than waking another.
/// If it would take more than microseconds, wakes the writer's thread.
pub(crate) fn commit_at_once(shared: &SharedWriter, inbox: &Inbox) {
    let committed = match shared.try_lock() {
        Ok(mut writer) => writer.as_mut().is_some_and(Writer::commit_few),
        Err(_) => false,
    };
    let now = Instant::now();
    inbox.wake_by(if committed { now + FILE_AFTER } else { now });
}

fn lock(shared: &SharedWriter) -> MutexGuard<'_, Option<Writer>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writer {
    fn situation(&self) -> Situation {
        let Work { chain, drafts, backlog, waiters, .. } = &self.work;
        Situation {
            durability: self.durability,
            journal_bytes: chain.as_ref().map(|chain| chain.journal.length()),
            is_journal_due: self.work.is_journal_due,
            queued: drafts.queued(),
            held_until: drafts.due(),
            is_failing: self.health.is_failing(),
            uncovered_since: self.work.uncovered_since,
            unfiled: backlog.unfiled(),
            batches: backlog.batches(),
            waiting: waiters.count(),
        }
    }

    /// Returns the time until something needs doing.
    fn rest(&self) -> Duration {
        self.schedule.rest(&self.situation(), Instant::now())
    }

    /// Does all that is due now, up to the next batch to file.
    fn turn(&mut self) -> Turn {
        let submissions = self.gather();
        self.act(submissions)
    }

    /// Does the rest of a turn after a batch was filed.
    fn continue_turn(&mut self, filed: FiledBatch) -> Turn {
        self.end_filing(filed);
        self.act(Vec::new())
    }

    fn act(&mut self, mut submissions: Vec<Submission>) -> Turn {
        loop {
            match self.schedule.next(&self.situation(), Instant::now()) {
                Action::Refile => self.refile(),
                Action::Commit => self.commit(std::mem::take(&mut submissions), Tables::Unknown),
                Action::Probe => self.probe(),
                Action::Sign => self.sign(),
                Action::FileSigned => {
                    let rows = self.work.backlog.take_signed();
                    if let Some(batch) = self.begin_filing(rows) {
                        return Turn::File(Box::new(batch));
                    }
                }
                Action::FileHere => self.sign_and_file(),
                Action::AnswerSettled => self.answer_settled(),
                Action::Rotate => self.answer_rotating(),
                Action::Checkpoint => self.answer_checkpoints(),
                Action::Maintain => self.maintain(),
                Action::Close => return Turn::Close,
                Action::Rest => return Turn::Rest,
            }
        }
    }

    fn close(mut self) {
        self.retention.stop();
        let result = self.finish();
        if let Err(error) = &result {
            tracing::error!("cannot close the ledger: {error}");
        }
        // The file alone then holds everything, for anyone who copies it.
        let _ = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Some(anchor) = self.anchor.take() {
            anchor.finish();
        }
        let closing = self.work.waiters.take_closing();
        // A caller that learns of the close may reopen the ledger at once, so the locks are
        // released first.
        drop(self);
        if let Some(reply) = closing {
            let _ = reply.send(result);
        }
    }

    fn failed(&mut self, error: &StoreError) {
        if self.health.set_failing(error) {
            tracing::error!(
                "{error}; calls that write or destroy are refused until the ledger can be written"
            );
            let _ = self.db.busy_timeout(self.busy_timeout());
        }
    }

    fn recovered(&mut self) {
        if self.health.set_sound() {
            tracing::info!("the ledger can be written again");
            let _ = self.db.busy_timeout(self.busy_timeout());
        }
    }

    /// Returns the time to wait for another process that writes the tables.
    fn busy_timeout(&self) -> Duration {
        if self.health.is_failing() { BUSY_TIMEOUT_FAILING } else { BUSY_TIMEOUT }
    }

    /// Writes something small.
    fn probe(&mut self) {
        let journal = self.work.chain.as_mut().map(|chain| &mut chain.journal);
        let probed = settings::set(&self.db, "probed_at", &timestamp::now())
            .and_then(|()| journal.map_or(Ok(()), Journal::probe));
        match probed {
            Ok(()) => self.recovered(),
            Err(error) => self.failed(&error),
        }
    }

    fn answer_settled(&mut self) {
        let (situation, filed) = (self.situation(), self.work.backlog.progress().filed);
        self.work.waiters.answer(|upto| situation.is_settled(upto, filed));
    }

    fn answer_checkpoints(&mut self) {
        let issued = self.checkpoint();
        if let Err(error) = &issued {
            tracing::warn!("cannot issue a checkpoint; the next attempt is in a minute: {error}");
            self.work.uncovered_since = Some(Instant::now());
        }
        for reply in self.work.waiters.take_checkpoints() {
            let _ = reply.send(issued.clone());
        }
    }

    fn answer_rotating(&mut self) {
        for reply in self.work.waiters.take_rotating() {
            let _ = reply.send(self.rotate());
        }
    }
}

impl Drop for Writer {
    /// However the thread ends, no caller is left waiting for it.
    fn drop(&mut self) {
        self.inbox.close();
    }
}

#[cfg(test)]
mod tests;
