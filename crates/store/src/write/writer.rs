//! The one writer of this process. It takes what waits for it, commits that in one transaction,
//! answers those who wait, and files earlier entries in between: on a thread of its own, or for a
//! few entries on the thread of the caller that appended one.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::config::{Durability, OnFailure};
use receipt::content::Termination;
use receipt::key::SigningKey;
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use crate::database::lock::Lock;
use crate::database::{settings, timestamp, transaction};
use crate::error::StoreError;
use crate::keys::Keys;
use crate::limits::{
    AT_ONCE_MAX, BUSY_TIMEOUT, BUSY_TIMEOUT_FAILING, COMMIT_MAX, FILE_AFTER, FILE_AT_ONCE,
    FILE_MAX, QUEUE_MAX, RETRY_EVERY, UNFILED_BYTES_MAX, UNFILED_MAX,
};
use crate::state;
use crate::upkeep::expiry;
use crate::upkeep::retention::Retention;
use crate::write::chain::{OpenChain, filed_end_of};
use crate::write::checkpoint::Checkpoint;
use crate::write::drafts::{Draft, Drafts};
use crate::write::filing::{Clerk, Consequence, Filing};
use crate::write::health::Health;
use crate::write::inbox::Inbox;
use crate::write::journal::Journal;
use crate::write::link::{ChainEnd, ChainRef, Issuance, Link};
use crate::write::message::{CloseReply, Message, RotationReply, Submission};
use crate::write::row::JournalRow;
use crate::write::signer::Signer;
use crate::write::{compose, recovery};

/// Whether it is known that the tables can be written.
#[derive(Clone, Copy)]
enum Checked {
    Yes,
    No,
}

/// What is done between the rows that are filed.
#[derive(Clone, Copy)]
enum Beside {
    /// What has come meanwhile is committed, so that nobody waits for all of the rows.
    Commits,
    /// Where all that is committed is to be filed, more would never let that end.
    Nothing,
}

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
    pub(crate) retention: Retention,
    /// The number of the last change that readers can see.
    pub(crate) changes: watch::Sender<i64>,
    pub(crate) state: State,
}

#[derive(Default)]
pub(crate) struct State {
    chain: Option<OpenChain>,
    clerk: Clerk,
    drafts: Drafts,
    /// Committed and not yet filed.
    unfiled: VecDeque<(Instant, JournalRow)>,
    unfiled_bytes: usize,
    /// Rows committed and rows filed since the start, for those who wait for the ones before them.
    committed: u64,
    filed: u64,
    /// Rows are with the signer, or came back from it.
    signing: bool,
    /// Signed rows that are to be filed next.
    signed: Vec<JournalRow>,
    /// Signed rows that could not be filed.
    refiled: Option<Vec<JournalRow>>,
    settling: Vec<oneshot::Sender<()>>,
    /// Those of them whose entries are committed, with how many rows that makes.
    filing: Vec<(u64, oneshot::Sender<()>)>,
    rotating: Vec<RotationReply>,
    closing: Option<CloseReply>,
    /// Retention has receipts to issue, as soon as the signer is idle.
    retaining: bool,
}

impl State {
    /// More is committed than can be filed beside it.
    fn is_crowded(&self) -> bool {
        self.unfiled.len() > UNFILED_MAX || self.unfiled_bytes > UNFILED_BYTES_MAX
    }

    fn is_journal_long(&self) -> bool {
        self.chain.as_ref().is_some_and(|chain| chain.journal.is_long(self.unfiled_bytes))
    }
}

/// The writer, for its thread and for callers that commit what they have just appended. It is gone
/// once the ledger is closed.
pub(crate) type Shared = Mutex<Option<Writer>>;

/// The writer's thread: whatever nobody does at once is done here.
pub(crate) fn run(shared: &Shared, inbox: &Inbox) {
    loop {
        let Some(wait) = lock(shared).as_ref().map(Writer::wait) else {
            return;
        };
        inbox.wait(wait);
        let mut writer = lock(shared);
        let is_closing = writer.as_mut().is_none_or(Writer::turn);
        if is_closing {
            let closed = writer.take();
            drop(writer);
            return closed.map_or((), Writer::close);
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
    /// Does all that is to be done now, and says whether that was the end.
    fn turn(&mut self) -> bool {
        let pending = self.gather();
        self.refile();
        self.commit(pending, Checked::No);
        self.probe();
        self.file_signed();
        self.make_room();
        self.sign();
        self.answer();
        if self.state.closing.is_some() && !self.state.signing {
            return true;
        }
        self.retain();
        false
    }

    fn close(mut self) {
        let result = self.finish();
        if let Err(error) = &result {
            tracing::error!("the ledger was not closed: {error}");
        }
        // So that the file alone holds everything, for whoever copies it.
        let _ = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        let closing = self.state.closing.take();
        // Whoever hears that it is closed may open it again at once: the locks go first.
        drop(self);
        if let Some(done) = closing {
            let _ = done.send(result);
        }
    }

    /// Commits the few entries that wait, if nothing else is to be done.
    fn commit_few(&mut self) -> bool {
        let state = &self.state;
        // To wait for the disk is too long for a caller's thread.
        let slow = self.durability == Durability::Disk || state.chain.is_none() || state.retaining;
        if slow
            || state.is_crowded()
            || self.is_urgent()
            || self.is_stuck()
            || self.health.is_failing()
        {
            return false;
        }
        let Some(messages) = self.inbox.take_few(AT_ONCE_MAX) else {
            return false;
        };
        if messages.iter().any(Message::permits) && !self.is_free() {
            self.inbox.put_back(messages);
            return false;
        }
        let mut pending = Vec::with_capacity(messages.len());
        for message in messages {
            self.take(message, &mut pending);
        }
        self.commit(pending, Checked::Yes);
        self.sign();
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
        let mut pending = Vec::with_capacity(messages.len());
        for message in messages {
            self.take(message, &mut pending);
        }
        pending
    }

    fn take(&mut self, message: Message, pending: &mut Vec<Submission>) {
        match message {
            // Whoever waits for it hears that the ledger is closed.
            Message::Append(_) if self.state.closing.is_some() => {}
            Message::Append(append) => pending.push(append),
            Message::Signed(rows) => self.state.signed = rows,
            Message::Settle(done) => self.state.settling.push(done),
            Message::Rotate(done) => self.state.rotating.push(done),
            Message::Close(done) => self.state.closing = Some(done),
        }
    }

    /// How long nothing needs doing.
    fn wait(&self) -> Duration {
        let (state, now) = (&self.state, Instant::now());
        if !state.signed.is_empty() {
            return Duration::ZERO;
        }
        if self.is_stuck() || self.health.is_failing() {
            return RETRY_EVERY;
        }
        let unfiled = state.unfiled.front().filter(|_| !state.signing);
        let unfiled = unfiled.map(|(since, _)| *since + FILE_AFTER);
        let next = [state.drafts.due(), unfiled].into_iter().flatten();
        let retention = if state.retaining { now + FILE_AFTER } else { self.retention.next() };
        let next = next.fold(retention, Instant::min);
        next.saturating_duration_since(now)
    }

    /// Something could not be written and is tried again.
    fn is_stuck(&self) -> bool {
        self.state.drafts.queued() > 0 || self.state.refiled.is_some()
    }

    /// Somebody waits for everything to be in its place.
    fn is_urgent(&self) -> bool {
        let state = &self.state;
        !state.settling.is_empty() || !state.rotating.is_empty() || state.closing.is_some()
    }

    fn commit(&mut self, mut pending: Vec<Submission>, checked: Checked) {
        loop {
            let urgent = self.is_urgent();
            let drafts = self.state.drafts.sort(pending, urgent, Instant::now());
            if !drafts.is_empty() {
                let checked = match checked {
                    Checked::Yes => Ok(()),
                    Checked::No => self.check(&drafts),
                };
                match checked.and_then(|()| self.write(&drafts)) {
                    Ok(rows) => {
                        self.recovered();
                        self.state.drafts.committed(drafts, &rows);
                        self.keep(rows);
                    }
                    Err(error) => self.give_back(drafts, &error),
                }
            }
            pending = self.state.drafts.early();
            if pending.is_empty() {
                break;
            }
        }
        let committed = self.state.committed;
        self.state.filing.extend(self.state.settling.drain(..).map(|done| (committed, done)));
    }

    fn give_back(&mut self, drafts: Vec<Draft>, error: &StoreError) {
        self.failed(error);
        self.state.drafts.failed(drafts, error, self.on_failure);
        self.health.set_queue(self.state.drafts.queued(), QUEUE_MAX);
    }

    /// Writes drafts as rows of the journal.
    fn write(&mut self, drafts: &[Draft]) -> Result<Vec<JournalRow>, StoreError> {
        self.open_chain()?;
        let chain = self.state.chain.as_mut().expect("it was opened");
        let mut end = chain.end;
        let mut rows: Vec<JournalRow> =
            drafts.iter().map(|draft| draft.row(chain.issuance(&mut end))).collect();
        chain.journal.append(&mut rows)?;
        self.set_end(end);
        Ok(rows)
    }

    /// What is committed must be filed soon. So a call that would change things is not made while the
    /// tables are out of reach, and after a fault nothing is committed until they are not.
    fn check(&self, drafts: &[Draft]) -> Result<(), StoreError> {
        if self.state.refiled.is_some() {
            return Err(self.health.fault());
        }
        if self.health.is_failing() || drafts.iter().any(Draft::permits) {
            transaction::whole(&self.db, |_| Ok(()))?;
        }
        Ok(())
    }

    fn open_chain(&mut self) -> Result<(), StoreError> {
        if self.state.chain.is_none() {
            let Writer { db, keys, writers, durability, .. } = self;
            let chain = transaction::whole(db, |db| {
                let key = keys.refreshed(db)?;
                OpenChain::open(db, writers, key, *durability)
            })?;
            self.state.chain = Some(chain);
        }
        Ok(())
    }

    /// Keeps committed rows until they are filed.
    fn keep(&mut self, rows: Vec<JournalRow>) {
        let (now, state) = (Instant::now(), &mut self.state);
        state.committed += rows.len() as u64;
        state.unfiled_bytes += rows.iter().map(JournalRow::bytes).sum::<usize>();
        state.unfiled.extend(rows.into_iter().map(|row| (now, row)));
        self.health.set_rows(state.committed, state.filed);
    }

    /// Takes the next rows that are to be filed.
    fn next_rows(&mut self) -> Vec<JournalRow> {
        let state = &mut self.state;
        let count = state.unfiled.len().min(FILE_MAX);
        let rows: Vec<JournalRow> = state.unfiled.drain(..count).map(|(_, row)| row).collect();
        state.unfiled_bytes -= rows.iter().map(JournalRow::bytes).sum::<usize>();
        rows
    }

    /// Where more is committed than can be filed beside it, commits wait.
    fn make_room(&mut self) {
        while !self.state.signing && self.state.refiled.is_none() && self.state.is_crowded() {
            self.sign_and_file();
        }
    }

    /// Signs and files some rows here and now.
    fn sign_and_file(&mut self) {
        let Some(key) = self.state.chain.as_ref().map(|chain| chain.key.clone()) else {
            return;
        };
        let mut rows = self.next_rows();
        rows.iter_mut().for_each(|row| row.sign(&key));
        self.file(rows, Beside::Nothing);
    }

    fn set_end(&mut self, end: ChainEnd) {
        let Some(chain) = &mut self.state.chain else {
            return;
        };
        chain.end = end;
        self.health.set_chain(&chain.id, end);
    }

    /// Hands rows to the signer once they are many, old or waited for. It rests while something is
    /// to be issued after all that is committed.
    fn sign(&mut self) {
        let state = &self.state;
        let Some((since, _)) = state.unfiled.front() else {
            return;
        };
        let urgent = !state.filing.is_empty() || state.unfiled.len() >= FILE_MAX;
        let due = urgent || since.elapsed() >= FILE_AFTER;
        let rests = !state.rotating.is_empty() || state.closing.is_some() || state.retaining;
        if state.signing || state.refiled.is_some() || rests || !due {
            return;
        }
        let Some(key) = state.chain.as_ref().map(|chain| chain.key.clone()) else {
            return;
        };
        let rows = self.next_rows();
        self.signer.sign(rows, key);
        self.state.signing = true;
    }

    /// Files what has been signed, while the signer has the next rows: unless there is first something
    /// to be done for which none may be under way.
    fn file_signed(&mut self) {
        let rows = std::mem::take(&mut self.state.signed);
        if rows.is_empty() {
            return;
        }
        self.state.signing = false;
        if !self.state.is_crowded() && !self.state.is_journal_long() {
            self.sign();
        }
        self.file(rows, Beside::Commits);
    }

    fn file(&mut self, rows: Vec<JournalRow>, beside: Beside) {
        if let Some(earlier) = &mut self.state.refiled {
            earlier.extend(rows);
            return;
        }
        match self.try_file(&rows, beside) {
            Ok(changed) => {
                self.state.filed += rows.len() as u64;
                self.health.set_rows(self.state.committed, self.state.filed);
                self.changes.send_replace(changed);
                self.checkpoint.look();
                self.shorten_journal();
            }
            Err(error) => {
                self.failed(&error);
                self.state.refiled = Some(rows);
            }
        }
    }

    fn try_file(&mut self, rows: &[JournalRow], beside: Beside) -> Result<i64, StoreError> {
        let chain = self.state.chain.as_ref().expect("what is signed is of a chain");
        let (number, id) = (chain.number, chain.id.clone());
        let mut filing = Filing::begin(&self.db, ChainRef { number, id: &id }, rows)?;
        let mut filed = Ok(());
        for some in rows.chunks(FILE_AT_ONCE) {
            filed = self.state.clerk.add(&self.db, &mut filing, some);
            match (&filed, beside) {
                (Ok(()), Beside::Commits) => self.commit_meanwhile(),
                (Ok(()), Beside::Nothing) => {}
                (Err(_), _) => break,
            }
        }
        self.state.clerk.finish(&self.db, filing, filed, Consequence::Nothing)
    }

    /// Commits what waits. The tables are being written, so that need not be asked.
    fn commit_meanwhile(&mut self) {
        if !self.state.is_crowded() && !self.is_stuck() && !self.health.is_failing() {
            let pending = self.gather();
            self.commit(pending, Checked::Yes);
        }
    }

    /// What was filed need not stay in the journal. What is with the signer must, and is not known here.
    fn shorten_journal(&mut self) {
        if self.state.signing || !self.state.is_journal_long() {
            return;
        }
        let State { chain: Some(chain), drafts, unfiled, .. } = &mut self.state else {
            return;
        };
        // What waits to be tried again may end a call whose start is there.
        if drafts.queued() == 0
            && let Err(error) =
                chain.journal.begin_anew(drafts.running(), unfiled.iter().map(|(_, row)| row))
        {
            tracing::warn!("the journal grows: {error}");
        }
    }

    fn refile(&mut self) {
        if let Some(rows) = self.state.refiled.take() {
            self.file(rows, Beside::Nothing);
            if self.state.refiled.is_none() {
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

    /// Where nothing waits to be tried again, a ledger that failed would never be found sound: a gate
    /// that refuses every call meanwhile asks nothing of it. So something small is written.
    fn probe(&mut self) {
        if !self.health.is_failing() || self.is_stuck() {
            return;
        }
        let journal = self.state.chain.as_mut().map(|chain| &mut chain.journal);
        let probed = settings::set(&self.db, "probed_at", &timestamp::now())
            .and_then(|()| journal.map_or(Ok(()), Journal::probe));
        match probed {
            Ok(()) => self.recovered(),
            Err(error) => self.failed(&error),
        }
    }

    /// Answers those who wait for more than a commit.
    fn answer(&mut self) {
        let (stuck, filed) = (self.is_stuck(), self.state.filed);
        for (_, done) in self.state.filing.extract_if(.., |(upto, _)| stuck || *upto <= filed) {
            let _ = done.send(());
        }
        if !self.state.signing {
            for done in std::mem::take(&mut self.state.rotating) {
                let _ = done.send(self.rotate());
            }
        }
    }

    /// Signs and files here and now all that is committed.
    fn file_all(&mut self) -> Result<(), StoreError> {
        self.refile();
        while self.state.refiled.is_none() && !self.state.unfiled.is_empty() {
            self.sign_and_file();
        }
        match self.state.refiled {
            Some(_) => Err(self.health.fault()),
            None => Ok(()),
        }
    }

    /// Another key signs from here on. The old one signs that it does, in the transaction that
    /// makes it so: there is never a receipt under a key that was not announced.
    fn rotate(&mut self) -> Result<Arc<SigningKey>, StoreError> {
        let new = self.keys.make()?;
        let fingerprint = new.public().fingerprint().to_string();
        self.issue(Consequence::Key(&fingerprint), |issuance| {
            compose::rotated(issuance, &new.public())
        })
        .inspect_err(|_| self.keys.discard(&new))?;
        if let Some(chain) = &mut self.state.chain {
            chain.key = new.clone();
        }
        self.keys.set_current(new.clone());
        Ok(new)
    }

    /// Files a receipt of the ledger's own after all others, and what becomes true with it.
    pub(crate) fn issue(
        &mut self,
        consequence: Consequence<'_>,
        compose: impl FnOnce(Issuance<'_>) -> Link,
    ) -> Result<(), StoreError> {
        self.open_chain()?;
        self.file_all()?;
        let Some(chain) = &self.state.chain else {
            return Ok(());
        };
        let mut end = chain.end;
        let mut row = JournalRow::of_link(compose(chain.issuance(&mut end)));
        row.sign(&chain.key);
        let changed = self.state.clerk.file(&self.db, chain.by_ref(), &[row], consequence)?;
        self.changes.send_replace(changed);
        self.set_end(end);
        Ok(())
    }

    /// The last act: what ran is recorded as interrupted, the chain gets its terminal receipt.
    fn finish(&mut self) -> Result<(), StoreError> {
        let interrupted = self.state.drafts.interrupt();
        if !interrupted.is_empty() {
            let rows = self.write(&interrupted)?;
            self.keep(rows);
        }
        if self.state.chain.is_none() {
            return Ok(());
        }
        let termination = Termination::Complete;
        self.issue(Consequence::Closed(termination), |issuance| {
            compose::closing(issuance, termination)
        })?;
        if let Some(chain) = &self.state.chain {
            chain.journal.remove();
        }
        Ok(())
    }

    /// Old things are let go, and what other processes left open is closed, by one process at a
    /// time and not while receipts are being signed.
    fn retain(&mut self) {
        if Instant::now() < self.retention.next() {
            return;
        }
        self.state.retaining = self.state.signing;
        if self.state.retaining {
            return;
        }
        let more = self.maintain().unwrap_or_else(|error| {
            tracing::warn!("retention: {error}");
            false
        });
        self.retention.done(Instant::now(), more);
    }

    /// Whether there is more to let go of.
    fn maintain(&mut self) -> Result<bool, StoreError> {
        let Some(_lock) = Lock::try_maintenance(&self.writers)? else {
            return Ok(false);
        };
        recovery::recover(&mut self.db, &self.writers, &self.keys)?;
        state::end_lost_runs(&self.db, &self.writers)?;
        let more = self.retention.let_go(&mut self.db)?;
        Ok(self.expire_chain()? || more)
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
