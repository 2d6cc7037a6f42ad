//! The one writer of this process. It carries out what its schedule decides: it commits what waits
//! in one write, answers those who wait, and files earlier entries in between: on a thread of its
//! own, or for a few entries on the thread of the caller that appended one.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::config::{Durability, OnFailure};
use receipt::content::Termination;
use receipt::key::SigningKey;
use rusqlite::Connection;
use tokio::sync::watch;

use crate::database::lock::Lock;
use crate::database::{settings, timestamp, transaction};
use crate::error::StoreError;
use crate::keys::Keys;
use crate::limits::{
    AT_ONCE_MAX, BUSY_TIMEOUT, BUSY_TIMEOUT_FAILING, COMMIT_MAX, FILE_AFTER, FILE_AT_ONCE,
    QUEUE_MAX,
};
use crate::state;
use crate::upkeep::expiry;
use crate::upkeep::retention::RetentionRules;
use crate::write::backlog::Backlog;
use crate::write::chain::{OpenChain, filed_end_of};
use crate::write::checkpoint::Checkpoint;
use crate::write::compose;
use crate::write::draft::Draft;
use crate::write::drafts::Drafts;
use crate::write::filing::{Clerk, Consequence, Filing};
use crate::write::health::Health;
use crate::write::inbox::Inbox;
use crate::write::journal::Journal;
use crate::write::link::{ChainEnd, ChainRef, Issuance, Link};
use crate::write::message::{Message, Submission};
use crate::write::recovery;
use crate::write::row::JournalRow;
use crate::write::schedule::{Action, Precondition, Schedule, Situation, Upkeep};
use crate::write::signer::Signer;
use crate::write::waiters::Waiters;

pub(crate) struct Writer {
    pub(crate) db: Connection,
    pub(crate) home: PathBuf,
    pub(crate) writers: PathBuf,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) signer: Signer,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) keys: Keys,
    pub(crate) health: Arc<Health>,
    pub(crate) on_failure: OnFailure,
    pub(crate) durability: Durability,
    pub(crate) retention: RetentionRules,
    /// The number of the last change that readers can see.
    pub(crate) changes: watch::Sender<i64>,
    pub(crate) schedule: Schedule,
    pub(crate) work: Work,
}

/// All that is under way.
#[derive(Default)]
pub(crate) struct Work {
    chain: Option<OpenChain>,
    clerk: Clerk,
    drafts: Drafts,
    backlog: Backlog,
    waiters: Waiters,
}

/// How a turn ended.
enum Turn {
    Rest,
    Close,
}

/// Whether it is known that the tables can be written.
#[derive(Clone, Copy)]
enum Tables {
    Writable,
    Unknown,
}

/// What is done between the rows that are filed.
#[derive(Clone, Copy)]
enum Interlude {
    /// What has come meanwhile is committed, so that nobody waits for all of the rows.
    Commits,
    /// Where all that is committed is to be filed, more would never let that end.
    Nothing,
}

/// The writer, for its thread and for callers that commit what they have just appended. It is gone
/// once the ledger is closed.
pub(crate) type Shared = Mutex<Option<Writer>>;

/// The writer's thread: whatever nobody does at once is done here.
pub(crate) fn run(shared: &Shared, inbox: &Inbox) {
    loop {
        let Some(rest) = lock(shared).as_ref().map(Writer::rest) else {
            return;
        };
        inbox.wait(rest);
        let mut writer = lock(shared);
        match writer.as_mut().map(Writer::turn) {
            Some(Turn::Rest) => {}
            Some(Turn::Close) | None => {
                let closed = writer.take();
                drop(writer);
                return closed.map_or((), Writer::close);
            }
        }
    }
}

/// Commits what waits, on the caller's own thread: that takes less time than to wake another. Where
/// it is not a matter of microseconds the writer's thread is woken.
pub(crate) fn commit_at_once(shared: &Shared, inbox: &Inbox) {
    let committed = match shared.try_lock() {
        Ok(mut writer) => writer.as_mut().is_some_and(Writer::commit_few),
        Err(_) => false,
    };
    let now = Instant::now();
    inbox.wake_by(if committed { now + FILE_AFTER } else { now });
}

fn lock(shared: &Shared) -> MutexGuard<'_, Option<Writer>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writer {
    fn situation(&self) -> Situation {
        let Work { chain, drafts, backlog, waiters, .. } = &self.work;
        Situation {
            durability: self.durability,
            journal_bytes: chain.as_ref().map(|chain| chain.journal.length()),
            queued: drafts.queued(),
            held_until: drafts.due(),
            is_failing: self.health.is_failing(),
            unfiled: backlog.unfiled(),
            batches: backlog.batches(),
            waiting: waiters.count(),
        }
    }

    /// How long nothing needs doing.
    fn rest(&self) -> Duration {
        self.schedule.rest(&self.situation(), Instant::now())
    }

    /// Does all that is to be done now.
    fn turn(&mut self) -> Turn {
        let mut submissions = self.gather();
        loop {
            match self.schedule.next(&self.situation(), Instant::now()) {
                Action::Refile => self.refile(),
                Action::Commit => self.commit(std::mem::take(&mut submissions), Tables::Unknown),
                Action::Probe => self.probe(),
                Action::Sign => self.sign(),
                Action::FileSigned => {
                    let rows = self.work.backlog.take_signed();
                    self.file(rows, Interlude::Commits);
                }
                Action::FileHere => self.sign_and_file(),
                Action::AnswerSettled => self.answer_settled(),
                Action::Rotate => self.answer_rotating(),
                Action::Maintain => self.maintain(),
                Action::Close => return Turn::Close,
                Action::Rest => return Turn::Rest,
            }
        }
    }

    fn close(mut self) {
        let result = self.finish();
        if let Err(error) = &result {
            tracing::error!("the ledger was not closed: {error}");
        }
        // So that the file alone holds everything, for whoever copies it.
        let _ = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        let closing = self.work.waiters.take_closing();
        // Whoever hears that it is closed may open it again at once: the locks go first.
        drop(self);
        if let Some(reply) = closing {
            let _ = reply.send(result);
        }
    }

    /// Commits the few entries that wait, if nothing else is to be done.
    fn commit_few(&mut self) -> bool {
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

    /// Whether the tables can be written without waiting for another process.
    fn is_free(&self) -> bool {
        let _ = self.db.busy_timeout(Duration::ZERO);
        let free = transaction::whole(&self.db, |_| Ok(()));
        let _ = self.db.busy_timeout(BUSY_TIMEOUT);
        free.is_ok()
    }

    /// Takes as much of what waits as goes into one commit.
    fn gather(&mut self) -> Vec<Submission> {
        let messages = self.inbox.take(COMMIT_MAX);
        self.sort(messages)
    }

    /// Puts messages where they belong. The entries are left, to be committed.
    fn sort(&mut self, messages: Vec<Message>) -> Vec<Submission> {
        let Work { backlog, waiters, .. } = &mut self.work;
        let mut submissions = Vec::with_capacity(messages.len());
        for message in messages {
            match message {
                // Whoever waits for it hears that the ledger is closed.
                Message::Append(_) if waiters.is_closing() => {}
                Message::Append(submission) => submissions.push(submission),
                Message::Signed(rows) => backlog.keep_signed(rows),
                Message::Settle(reply) => waiters.settle(reply),
                Message::Rotate(reply) => waiters.rotate(reply),
                Message::Close(reply) => waiters.close(reply),
            }
        }
        submissions
    }

    fn commit(&mut self, mut submissions: Vec<Submission>, tables: Tables) {
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
        self.work.drafts.failed(drafts, error, self.on_failure, Instant::now());
        self.health.set_queue(self.work.drafts.queued(), QUEUE_MAX);
    }

    /// Writes drafts as rows of the journal.
    fn write(&mut self, drafts: &[Draft]) -> Result<Vec<JournalRow>, StoreError> {
        self.open_chain()?;
        let chain = self.work.chain.as_mut().expect("it was opened");
        let mut end = chain.end;
        let mut rows: Vec<JournalRow> =
            drafts.iter().map(|draft| draft.row(chain.issuance(&mut end))).collect();
        chain.journal.append(&mut rows)?;
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

    fn open_chain(&mut self) -> Result<(), StoreError> {
        if self.work.chain.is_none() {
            let Writer { db, keys, writers, durability, .. } = self;
            let chain = transaction::whole(db, |db| {
                let key = keys.refreshed(db)?;
                OpenChain::open(db, writers, key, *durability)
            })?;
            self.work.chain = Some(chain);
        }
        Ok(())
    }

    /// Keeps committed rows until they are filed.
    fn keep(&mut self, rows: Vec<JournalRow>) {
        self.work.backlog.keep(rows, Instant::now());
        self.health.set_progress(self.work.backlog.progress());
    }

    fn set_end(&mut self, end: ChainEnd) {
        let Some(chain) = &mut self.work.chain else {
            return;
        };
        chain.end = end;
        self.health.set_chain(&chain.id, end);
    }

    /// Hands the next batch to the signer.
    fn sign(&mut self) {
        let key = self.key_of_chain();
        self.signer.sign(self.work.backlog.batch_for_signer(), key);
    }

    /// Signs and files the next batch here and now.
    fn sign_and_file(&mut self) {
        let key = self.key_of_chain();
        let mut rows = self.work.backlog.next_batch();
        rows.iter_mut().for_each(|row| row.sign(&key));
        self.file(rows, Interlude::Nothing);
    }

    fn key_of_chain(&self) -> Arc<SigningKey> {
        let chain = self.work.chain.as_ref().expect("what is committed is of a chain");
        chain.key.clone()
    }

    fn file(&mut self, rows: Vec<JournalRow>, interlude: Interlude) {
        if self.work.backlog.batches().is_refused {
            return self.work.backlog.keep_refused(rows);
        }
        match self.try_file(&rows, interlude) {
            Ok(changed) => {
                self.work.backlog.count_filed(rows.len());
                self.health.set_progress(self.work.backlog.progress());
                self.changes.send_replace(changed);
                self.checkpoint.look();
                if self.situation().begins_journal_anew() {
                    self.begin_journal_anew();
                }
            }
            Err(error) => {
                self.failed(&error);
                self.work.backlog.keep_refused(rows);
            }
        }
    }

    fn try_file(&mut self, rows: &[JournalRow], interlude: Interlude) -> Result<i64, StoreError> {
        let chain = self.work.chain.as_ref().expect("what is signed is of a chain");
        let (number, id) = (chain.number, chain.id.clone());
        let mut filing = Filing::begin(&self.db, ChainRef { number, id: &id }, rows)?;
        let mut filed = Ok(());
        for some in rows.chunks(FILE_AT_ONCE) {
            filed = self.work.clerk.add(&self.db, &mut filing, some);
            match (&filed, interlude) {
                (Ok(()), Interlude::Commits) => self.commit_meanwhile(),
                (Ok(()), Interlude::Nothing) => {}
                (Err(_), _) => break,
            }
        }
        self.work.clerk.finish(&self.db, filing, filed, Consequence::Nothing)
    }

    /// Commits what waits. The tables are being written, so that need not be asked.
    fn commit_meanwhile(&mut self) {
        if self.situation().lets_commit_beside_filing() {
            let submissions = self.gather();
            self.commit(submissions, Tables::Writable);
        }
    }

    /// What was filed need not stay in the journal.
    fn begin_journal_anew(&mut self) {
        let Work { chain: Some(chain), drafts, backlog, .. } = &mut self.work else {
            return;
        };
        if let Err(error) = chain.journal.begin_anew(drafts.running(), backlog.rows()) {
            tracing::warn!("the journal grows: {error}");
        }
    }

    fn refile(&mut self) {
        if let Some(rows) = self.work.backlog.take_refused() {
            self.file(rows, Interlude::Nothing);
            if !self.work.backlog.batches().is_refused {
                self.recovered();
            }
        }
    }

    fn failed(&mut self, error: &StoreError) {
        if self.health.set_failing(error) {
            tracing::error!("{error}; calls that change things are refused until it can");
            let _ = self.db.busy_timeout(BUSY_TIMEOUT_FAILING);
        }
    }

    fn recovered(&mut self) {
        if self.health.set_sound() {
            tracing::info!("the ledger can be written again");
            let _ = self.db.busy_timeout(BUSY_TIMEOUT);
        }
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

    fn answer_rotating(&mut self) {
        for reply in self.work.waiters.take_rotating() {
            let _ = reply.send(self.rotate());
        }
    }

    /// Signs and files here and now all that is committed.
    fn file_all(&mut self) -> Result<(), StoreError> {
        self.refile();
        loop {
            let Situation { unfiled, batches, .. } = self.situation();
            if batches.is_refused {
                return Err(self.health.fault());
            }
            if unfiled.rows == 0 {
                return Ok(());
            }
            self.sign_and_file();
        }
    }

    /// Another key signs from here on. The old one signs that it does, in the transaction that
    /// makes it so: there is never a receipt under a key that was not announced.
    fn rotate(&mut self) -> Result<Arc<SigningKey>, StoreError> {
        let new = self.keys.make()?;
        let fingerprint = new.public().fingerprint().to_string();
        let consequence = Consequence::Key(&fingerprint);
        self.issue(consequence, |issuance| compose::rotated(issuance, &new.public()))
            .inspect_err(|_| self.keys.discard(&new))?;
        if let Some(chain) = &mut self.work.chain {
            chain.key = new.clone();
        }
        self.keys.set_current(new.clone());
        Ok(new)
    }

    /// Files a receipt of the ledger's own after all others, and what becomes true with it.
    fn issue(
        &mut self,
        consequence: Consequence<'_>,
        compose: impl FnOnce(Issuance<'_>) -> Link,
    ) -> Result<(), StoreError> {
        self.open_chain()?;
        self.file_all()?;
        let Some(chain) = &self.work.chain else {
            return Ok(());
        };
        let mut end = chain.end;
        let mut row = JournalRow::of_link(compose(chain.issuance(&mut end)));
        row.sign(&chain.key);
        let changed = self.work.clerk.file(&self.db, chain.by_ref(), &[row], consequence)?;
        self.changes.send_replace(changed);
        self.set_end(end);
        Ok(())
    }

    /// The last act: what ran is recorded as interrupted, the chain gets its terminal receipt.
    fn finish(&mut self) -> Result<(), StoreError> {
        let interrupted = self.work.drafts.interrupt();
        if !interrupted.is_empty() {
            let rows = self.write(&interrupted)?;
            self.keep(rows);
        }
        if self.work.chain.is_none() {
            return Ok(());
        }
        let termination = Termination::Complete;
        self.issue(Consequence::Closed(termination), |issuance| {
            compose::closing(issuance, termination)
        })?;
        if let Some(chain) = &self.work.chain {
            chain.journal.remove();
        }
        Ok(())
    }

    /// Old things are let go, and what other processes left open is closed.
    fn maintain(&mut self) {
        let upkeep = self.try_maintain().unwrap_or_else(|error| {
            tracing::warn!("retention: {error}");
            Upkeep::Done
        });
        self.schedule.maintained(upkeep, Instant::now());
    }

    /// By one process at a time.
    fn try_maintain(&mut self) -> Result<Upkeep, StoreError> {
        let Some(_lock) = Lock::try_maintenance(&self.writers)? else {
            return Ok(Upkeep::Done);
        };
        recovery::recover(&mut self.db, &self.writers, &self.keys)?;
        state::end_lost_runs(&self.db, &self.writers)?;
        let more = self.retention.let_go(&mut self.db)?;
        let expired = self.expire_chain()?;
        Ok(if expired || more { Upkeep::More } else { Upkeep::Done })
    }

    /// Lets one chain go, if one is old enough.
    fn expire_chain(&mut self) -> Result<bool, StoreError> {
        let Some(chain_id) = self.retention.expired_chain(&self.db)? else {
            return Ok(false);
        };
        let last = filed_end_of(&self.db, &chain_id)?;
        expiry::export(&self.db, &chain_id, &self.home)?;
        self.issue(Consequence::Expired(&chain_id), |issuance| {
            compose::expired(issuance, &chain_id, last)
        })?;
        tracing::info!(chain = %chain_id, "exported and removed old receipts");
        Ok(true)
    }
}

impl Drop for Writer {
    /// However the thread ends, nobody is left waiting for it.
    fn drop(&mut self) {
        self.inbox.close();
    }
}

#[cfg(test)]
mod tests;
