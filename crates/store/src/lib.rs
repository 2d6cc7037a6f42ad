//! What Countersign remembers: every call, and the signed receipt that it left. Entries are
//! appended and read back through typed queries; that they lie in SQLite is nobody else's business.
//!
//! An append is committed to a journal by one writer and answered; a thread signs; filing into the
//! tables that people query comes after, many entries at a time.

mod chain;
mod checkpoint;
mod columns;
mod committed;
mod compose;
mod copies;
mod drafts;
mod expiry;
mod filing;
mod health;
mod inbox;
mod journal;
mod keys;
mod limits;
pub mod query;
pub mod record;
mod recovery;
mod retention;
pub mod run;
mod schema;
mod signer;
pub mod state;
mod transaction;
mod writer;

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use domain::Code;
pub use domain::config::{Durability, OnFailure};
use domain::tool::Class;
use receipt::{PublicKey, SigningKey};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{oneshot, watch};

pub use committed::{Committed, Safe};
pub use copies::{COPIES, Copy};
pub use health::Ledger;
pub use record::{
    Action, Agent, Ended, Entry, Kind, Outside, Payload, Receipted, Started, Status, Word,
};

use crate::chain::Lock;
use crate::checkpoint::Checkpoint;
use crate::health::Health;
use crate::inbox::{Declined, Inbox};
use crate::keys::Keys;
use crate::limits::{BUSY_TIMEOUT, CHECKPOINT_PAGES_MAX, HOLD, INBOX_MAX, PAGE_BYTES};
use crate::query::Reader;
use crate::retention::{Retention, Rules};
use crate::signer::Signer;
use crate::state::State;
use crate::writer::{Message, Pending, Writer};

/// The file of the ledger in the home.
pub const FILE: &str = "ledger.db";

/// The folder in the home where those who write hold their locks.
const WRITERS: &str = "writers";

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot write the ledger: {0}")]
    Write(String),
    #[error("cannot read the ledger: {0}")]
    Read(String),
    #[error("{0}")]
    Key(String),
    #[error("the ledger is damaged: {0}; move ledger.db aside, and a new one begins")]
    Corrupt(String),
    #[error(
        "a journal is damaged: {0}; move that file aside: what it holds and the ledger does not is lost"
    )]
    CorruptJournal(String),
    #[error("the ledger was written by a newer version (format {found}, this one knows {newest})")]
    Newer { found: usize, newest: usize },
    #[error("the ledger is closed")]
    Closed,
    #[error("'{0}' is no cursor of this list: leave it out to begin with the newest")]
    Cursor(String),
}

impl StoreError {
    pub fn code(&self) -> Code {
        match self {
            StoreError::Cursor(_) => Code::InvalidRequest,
            StoreError::Write(_)
            | StoreError::Read(_)
            | StoreError::Key(_)
            | StoreError::Corrupt(_)
            | StoreError::CorruptJournal(_)
            | StoreError::Newer { .. }
            | StoreError::Closed => Code::LedgerUnavailable,
        }
    }

    /// SQLite's errors do not say whether something was to be read or written.
    fn of_reading(self) -> StoreError {
        match self {
            StoreError::Write(words) => StoreError::Read(words),
            StoreError::Read(_)
            | StoreError::Key(_)
            | StoreError::Corrupt(_)
            | StoreError::CorruptJournal(_)
            | StoreError::Newer { .. }
            | StoreError::Closed
            | StoreError::Cursor(_) => self,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::Corrupt(error.to_string())
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreError::Write("another process holds it".to_owned())
            }
            _ => StoreError::Write(error.to_string()),
        }
    }
}

/// A handle to the ledger; clones are the same ledger.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    home: PathBuf,
    inbox: Arc<Inbox>,
    writer: Arc<writer::Shared>,
    health: Arc<Health>,
    on_failure: OnFailure,
    changes: watch::Receiver<i64>,
    reader: Reader,
    state: State,
    key: Mutex<Arc<SigningKey>>,
    /// For measurements: entries are taken and forgotten.
    is_nowhere: bool,
}

impl Store {
    /// Opens the ledger in a home that is there, makes it where it is missing, and puts in order
    /// what a process that is gone has left.
    pub fn open(home: &Path, rules: &domain::config::Ledger) -> Result<Store, StoreError> {
        let writers = home.join(WRITERS);
        DirBuilder::new().recursive(true).mode(0o700).create(&writers).map_err(|error| {
            StoreError::Write(format!("cannot create '{}': {error}", writers.display()))
        })?;
        let (db, keys) = prepare(home, &writers, rules.durability)?;
        let key = keys.current();
        let inbox = Arc::new(Inbox::default());
        let health = Arc::new(Health::default());
        let (changes_sender, changes) = watch::channel(filing::latest_change(&db)?);
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
            retention: Retention::new(retention_rules(rules), Instant::now()),
            changes: changes_sender,
            home: home.to_owned(),
            state: writer::State::default(),
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
            state: State::of_file(&home.join(FILE), rules.durability),
            key: Mutex::new(key),
            is_nowhere: false,
        };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// A store that keeps nothing, to measure what keeping costs. Nothing else may use it.
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
            state: State::in_memory(),
            key: Mutex::new(Arc::new(SigningKey::from_seed(&[0; 32]))),
            is_nowhere: true,
        };
        Store { inner: Arc::new(inner) }
    }

    /// Takes an entry. The future resolves once it will survive the process being killed; the
    /// entry is taken whether or not anybody waits. The start of a call that only reads is not
    /// waited for: it is written with its end, or soon.
    pub fn append(&self, entry: Entry) -> Committed {
        if self.inner.is_nowhere {
            return Committed::known(Ok(Safe::Committed));
        }
        let inbox = &self.inner.inbox;
        let is_held = matches!(&entry, Entry::Started(started) if !started.changes_things());
        let (done, committed) = if is_held {
            (None, Committed::known(Ok(Safe::Queued)))
        } else {
            let (done, answer) = oneshot::channel();
            (Some(done), Committed::awaited(answer))
        };
        match inbox.leave(Message::Append(Pending { entry, done })) {
            Ok(()) if is_held => inbox.wake_by(Instant::now() + HOLD),
            Ok(()) => writer::commit_at_once(&self.inner.writer, inbox),
            Err(Declined::Full) => {
                let words = format!("{INBOX_MAX} entries wait for it already");
                return Committed::known(Err(StoreError::Write(words)));
            }
            Err(Declined::Closed) => return Committed::known(Err(StoreError::Closed)),
        }
        committed
    }

    /// Whether a call of this class may be made, as far as its record goes.
    pub fn admits(&self, class: Class) -> Result<(), StoreError> {
        self.inner.health.admits(class, self.inner.on_failure)
    }

    pub fn ledger(&self) -> Ledger {
        self.inner.health.now()
    }

    /// Waits until everything that was appended before can be read back, as far as it can be
    /// written at all.
    pub async fn settled(&self) {
        let (done, settled) = oneshot::channel();
        if !self.inner.is_nowhere && self.inner.inbox.send(Message::Settle(done)).is_ok() {
            let _ = settled.await;
        }
    }

    /// Tells the number of the newest change to any record of this process.
    pub fn changes(&self) -> watch::Receiver<i64> {
        self.inner.changes.clone()
    }

    /// What was recorded and filed so far; `settled` waits for the rest.
    pub fn read(&self) -> &Reader {
        &self.inner.reader
    }

    /// What people decided while the program ran.
    pub fn state(&self) -> &State {
        &self.inner.state
    }

    /// Every public key that ever signed here, the present one first.
    pub fn public_keys(&self) -> Result<Vec<PublicKey>, StoreError> {
        self.inner.reader.public_keys(&self.inner.home.join("keys"))
    }

    /// The key that signs.
    pub fn key(&self) -> Arc<SigningKey> {
        self.inner.key.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Has another key sign from here on.
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
    /// Nobody can append any more: the chain is closed, if the process lives long enough.
    fn drop(&mut self) {
        let _ = self.inbox.send(Message::Close(oneshot::channel().0));
    }
}

fn retention_rules(rules: &domain::config::Ledger) -> Rules {
    Rules {
        days: rules.activity_retention_days,
        records_max: rules.max_records.into(),
        megabytes_max: rules.max_size_mb.into(),
        receipt_days: rules.receipt_retention_days,
    }
}

/// The file is the person's own, whatever the umask; SQLite gives its companions the same mode.
fn create(file: &Path) -> Result<(), StoreError> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(file)
        .map_err(|error| StoreError::Write(format!("cannot open '{}': {error}", file.display())))?;
    Ok(())
}

/// A connection that writes to a file which is there.
fn connect(file: &Path, durability: Durability) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    // Otherwise each statement is planned anew for each value that is bound to it.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Of a new file alone: an older one keeps the size that it has.
    db.pragma_update(None, "page_size", PAGE_BYTES)?;
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(
        None,
        "synchronous",
        match durability {
            Durability::Process => "normal",
            Durability::Disk => "full",
        },
    )?;
    db.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES_MAX)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(db)
}

/// The file, its tables, keys and what a dead process left; one process at a time.
fn prepare(
    home: &Path,
    writers: &Path,
    durability: Durability,
) -> Result<(Connection, Keys), StoreError> {
    let _lock = Lock::maintenance(writers)?;
    let file = home.join(FILE);
    create(&file)?;
    let mut db = connect(&file, durability)?;
    if !schema::is_current(&db)? {
        schema::migrate(&mut db)?;
    }
    let keys = Keys::open(&home.join("keys"), &db)?;
    match recovery::recover(&mut db, writers, &keys) {
        Ok(0) => {}
        Ok(closed) => tracing::info!(chains = closed, "closed what an earlier process left open"),
        // It can be done later; until then it can be written neither.
        Err(StoreError::Write(reason)) => tracing::error!("cannot recover the ledger: {reason}"),
        Err(error) => return Err(error),
    }
    Ok((db, keys))
}
