//! The ledger of Countersign: every call, and its signed receipt. Entries are appended and read
//! back through typed queries; the storage in SQLite is an internal matter.
//!
//! One writer commits an append to a journal and confirms it; a thread signs; rows are filed into
//! the queryable tables afterwards, many at a time. `README.md` describes each step.

mod database;
mod error;
mod keys;
mod limits;
pub mod read;
pub mod record;
pub mod state;
mod upkeep;
mod write;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

pub use domain::config::{Durability, OnFailure};
use domain::tool::Class;
use receipt::{PublicKey, SigningKey};
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

pub use database::FILE;
pub use error::StoreError;
pub use read::copies::{COPIES, ChainCopy};
pub use record::run;
pub use record::{
    CallEnd, CallStart, Entry, EventOperator, OutsideSource, Payload, ReceiptAction, ReceiptChoice,
    RecordAgent, RecordKind, RecordStatus, Word,
};
pub use write::{Commit, LedgerHealth, Safety};

use crate::database::lock::Lock;
use crate::database::{WRITERS, change, connection, schema};
use crate::keys::Keys;
use crate::limits::{HOLD, INBOX_MAX};
use crate::read::{Reader, copies};
use crate::state::OperatorState;
use crate::upkeep::retention::RetentionRules;
use crate::write::checkpoint::Checkpoint;
use crate::write::health::Health;
use crate::write::inbox::{Inbox, InboxError};
use crate::write::message::{Message, Submission};
use crate::write::recovery;
use crate::write::schedule::Schedule;
use crate::write::signer::Signer;
use crate::write::writer::{self, Writer};

/// A handle to the ledger; clones share the same ledger.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    home: PathBuf,
    inbox: Arc<Inbox>,
    writer: Arc<writer::SharedWriter>,
    health: Arc<Health>,
    on_failure: OnFailure,
    changes: watch::Receiver<i64>,
    reader: Reader,
    state: OperatorState,
    key: Mutex<Arc<SigningKey>>,
    /// For measurements: entries are accepted and discarded.
    is_nowhere: bool,
}

impl Store {
    /// Opens the ledger in an existing home, creates it if it is missing, and recovers what a dead
    /// process left.
    pub fn open(home: &Path, rules: &domain::config::Ledger) -> Result<Store, StoreError> {
        let writers = home.join(WRITERS);
        DirBuilder::new().recursive(true).mode(0o700).create(&writers).map_err(|error| {
            StoreError::Write(format!("cannot create '{}': {error}", writers.display()))
        })?;
        let (db, keys) = prepare(home, &writers, rules.durability)?;
        let key = keys.current();
        let inbox = Arc::new(Inbox::default());
        let health = Arc::new(Health::default());
        let (changes_sender, changes) = watch::channel(change::latest(&db)?);
        let writer = Writer {
            db,
            writers,
            inbox: inbox.clone(),
            signer: Signer::spawn(inbox.clone())?,
            checkpoint: Checkpoint::spawn(home)?,
            keys,
            health: health.clone(),
            on_failure: rules.on_failure,
            durability: rules.durability,
            retention: retention_rules(rules),
            changes: changes_sender,
            home: home.to_owned(),
            schedule: Schedule::new(Instant::now()),
            work: writer::Work::default(),
        };
        let writer = Arc::new(Mutex::new(Some(writer)));
        let (shared, messages) = (writer.clone(), inbox.clone());
        std::thread::Builder::new()
            .name("ledger-writer".to_owned())
            .spawn(move || writer::run(&shared, &messages))
            .map_err(|error| StoreError::Write(format!("cannot start a thread: {error}")))?;
        let inner = Inner {
            home: home.to_owned(),
            inbox,
            writer,
            health,
            on_failure: rules.on_failure,
            changes,
            reader: Reader::live(&home.join(FILE)),
            state: OperatorState::of_file(&home.join(FILE), rules.durability),
            key: Mutex::new(key),
            is_nowhere: false,
        };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Returns a store that keeps nothing, to measure the cost of storage. Nothing else may use it.
    #[doc(hidden)]
    pub fn nowhere() -> Store {
        let inner = Inner {
            home: PathBuf::new(),
            inbox: Arc::default(),
            writer: Arc::default(),
            health: Arc::default(),
            on_failure: OnFailure::QueueReads,
            changes: watch::channel(0).1,
            reader: Reader::live(Path::new("")),
            state: OperatorState::in_memory(),
            key: Mutex::new(Arc::new(SigningKey::from_seed(&[0; 32]))),
            is_nowhere: true,
        };
        Store { inner: Arc::new(inner) }
    }

    /// Appends an entry. The future resolves once the entry will survive the process being killed;
    /// the entry is kept even if the future is dropped. The start of a call that only reads
    /// resolves at once: it is written with its end, or soon.
    pub fn append(&self, entry: Entry) -> Commit {
        if self.inner.is_nowhere {
            return Commit::known(Ok(Safety::Committed));
        }
        let inbox = &self.inner.inbox;
        let is_held = matches!(&entry, Entry::Started(started) if !started.changes_things());
        let (reply, commit) = if is_held {
            (None, Commit::known(Ok(Safety::Queued)))
        } else {
            let (reply, answer) = oneshot::channel();
            (Some(reply), Commit::awaited(answer))
        };
        match inbox.leave(Message::Append(Submission { entry, reply })) {
            Ok(()) if is_held => inbox.wake_by(Instant::now() + HOLD),
            Ok(()) => writer::commit_at_once(&self.inner.writer, inbox),
            Err(InboxError::Full) => {
                let words = format!("{INBOX_MAX} entries are already waiting; try again later");
                return Commit::known(Err(StoreError::Write(words)));
            }
            Err(InboxError::Closed) => return Commit::known(Err(StoreError::Closed)),
        }
        commit
    }

    /// Refuses a call of this class if its record could not be kept.
    pub fn admits(&self, class: Class) -> Result<(), StoreError> {
        self.inner.health.admits(class, self.inner.on_failure)
    }

    pub fn ledger(&self) -> LedgerHealth {
        self.inner.health.now()
    }

    /// Waits until everything appended so far can be read back, or cannot be written at all.
    pub async fn settled(&self) {
        let (done, settled) = oneshot::channel();
        if !self.inner.is_nowhere && self.inner.inbox.send(Message::Settle(done)).is_ok() {
            let _ = settled.await;
        }
    }

    /// Watches the number of the newest change to any record of this process.
    pub fn changes(&self) -> watch::Receiver<i64> {
        self.inner.changes.clone()
    }

    /// Returns the reader of everything filed so far; `settled` waits for the rest.
    pub fn read(&self) -> &Reader {
        &self.inner.reader
    }

    /// Returns the decisions that people made while the program ran.
    pub fn state(&self) -> &OperatorState {
        &self.inner.state
    }

    /// Lists the copies of chains in the home, by name.
    pub fn copies(&self) -> Vec<ChainCopy> {
        copies::list(&self.inner.home)
    }

    /// Returns the lines of a copy; none if there is no such file.
    pub fn copy_lines(
        &self,
        name: &str,
    ) -> Result<Option<impl Iterator<Item = Result<String, StoreError>> + use<>>, StoreError> {
        copies::lines(&self.inner.home, name)
    }

    /// Returns every public key that ever signed here, the current one first.
    pub fn public_keys(&self) -> Result<Vec<PublicKey>, StoreError> {
        self.inner.reader.public_keys(&self.inner.home.join("keys"))
    }

    /// Returns the key that signs.
    pub fn key(&self) -> Arc<SigningKey> {
        self.inner.key.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Replaces the signing key from here on.
    pub async fn rotate_key(&self) -> Result<Arc<SigningKey>, StoreError> {
        let (done, rotated) = oneshot::channel();
        if self.inner.inbox.send(Message::Rotate(done)).is_err() {
            return Err(StoreError::Closed);
        }
        let key = rotated.await.unwrap_or(Err(StoreError::Closed))?;
        *self.inner.key.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = key.clone();
        Ok(key)
    }

    /// Ends the chain; nothing can be appended afterwards.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.inner.state.rest();
        let (done, closed) = oneshot::channel();
        if self.inner.is_nowhere || self.inner.inbox.send(Message::Close(done)).is_err() {
            return Ok(());
        }
        closed.await.unwrap_or(Ok(()))
    }
}

impl Drop for Inner {
    /// Closes the chain, if the process lives long enough: nothing can be appended any more.
    fn drop(&mut self) {
        let _ = self.inbox.send(Message::Close(oneshot::channel().0));
    }
}

fn retention_rules(rules: &domain::config::Ledger) -> RetentionRules {
    RetentionRules {
        days: rules.activity_retention_days,
        records_max: rules.max_records.into(),
        megabytes_max: rules.max_size_mb.into(),
        receipt_days: rules.receipt_retention_days,
    }
}

/// Prepares the file, its tables and keys, and recovers what a dead process left; one process at a
/// time.
fn prepare(
    home: &Path,
    writers: &Path,
    durability: Durability,
) -> Result<(Connection, Keys), StoreError> {
    let _lock = Lock::maintenance(writers)?;
    let file = home.join(FILE);
    connection::create(&file)?;
    let mut db = connection::writing(&file, durability)?;
    if !schema::is_current(&db)? {
        schema::migrate(&mut db)?;
    }
    state::move_secrets_out(&db, home)?;
    let keys = Keys::open(&home.join("keys"), &db)?;
    match recovery::recover(&mut db, writers, &keys) {
        Ok(0) => {}
        Ok(closed) => {
            tracing::info!(chains = closed, "closed chains that an earlier process left open")
        }
        // Recovery can run later; until then the ledger cannot be written either.
        Err(StoreError::Write(reason)) => tracing::error!("cannot recover the ledger: {reason}"),
        Err(error) => return Err(error),
    }
    Ok((db, keys))
}
