//! The ledger of Countersign: every call, and its signed receipt. Entries are appended and read
//! back through typed queries; the storage in SQLite is an internal matter.
//!
//! One writer commits an append to a journal and confirms it; a thread signs; rows are filed into
//! the queryable tables afterwards, many at a time. `README.md` describes each step.

pub mod acceptance;
pub mod anchored;
mod database;
mod error;
mod evidence;
mod keys;
mod limits;
pub mod read;
pub mod record;
pub mod repair;
pub mod state;
pub mod survey;
mod touches;
mod upkeep;
mod vectors;
mod write;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use domain::config::AnchorConfig;
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
    CallEnd, CallStart, Entry, EventOperator, OutsideSource, Payload, ReceiptAction, RecordAgent,
    RecordKind, RecordStatus, Word,
};
pub use upkeep::shares::ShareExcess;
pub use vectors::{VectorFile, VectorKey};
pub use write::checkpoint_file::{CHECKPOINT_FILE, kept_checkpoint};
pub use write::{AnchorHealth, Commit, LedgerHealth, Safety};

use crate::anchored::AnchorCheck;
use crate::database::aside::set_aside;
use crate::database::lock::Lock;
use crate::database::{WRITERS, change, connection, schema};
use crate::evidence::Evidence;
use crate::evidence::finding::{self, FindingKind, words_of};
use crate::evidence::judge::{judge, untrusted_checkpoint};
use crate::keys::Keys;
use crate::limits::{HOLD, INBOX_MAX};
use crate::read::{Reader, copies};
use crate::state::OperatorState;
use crate::state::keeping::{self, Decided};
use crate::upkeep::clock;
use crate::upkeep::retention::Retention;
use crate::upkeep::rules::RetentionRules;
use crate::upkeep::shares::RecordShares;
use crate::write::adoption::Adoption;
use crate::write::anchor::Anchor;
use crate::write::checkpoint_file;
use crate::write::heads;
use crate::write::health::Health;
use crate::write::inbox::{Inbox, InboxError};
use crate::write::log_copy::LogCopy;
use crate::write::message::{Message, Submission};
use crate::write::recovery;
use crate::write::schedule::Schedule;
use crate::write::signer::Signer;
use crate::write::writer::{self, Writer};
use vault::Vault;

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
    shares: Arc<RecordShares>,
    on_failure: OnFailure,
    anchor: Option<AnchorConfig>,
    changes: watch::Receiver<i64>,
    reader: Reader,
    state: OperatorState,
    vault: Vault,
    key: Mutex<Arc<SigningKey>>,
    query_key: [u8; 32],
    /// For measurements: entries are accepted and discarded.
    is_nowhere: bool,
}

impl Store {
    /// Opens the ledger in an existing home, creates it in a new one, and recovers what a dead
    /// process left. Refuses a home whose database is missing, or older than its
    /// other files or its anchor.
    pub fn open(home: &Path, rules: &domain::config::Ledger) -> Result<Store, StoreError> {
        let writers = home.join(WRITERS);
        create_writers(&writers)?;
        let prepared = prepare(home, &writers, rules)?;
        let Prepared { db, keys, query_key, recovered, notices } = prepared;
        let key = keys.current();
        let inbox = Arc::new(Inbox::default());
        let health = Arc::new(Health::with(notices));
        let shares = Arc::new(RecordShares::default());
        let (changes_sender, changes) = watch::channel(change::latest(&db)?);
        let writer = Writer {
            db,
            writers,
            inbox: inbox.clone(),
            signer: Signer::spawn(inbox.clone())?,
            log_copy: LogCopy::spawn(home)?,
            anchor: Anchor::spawn(home, rules.anchor.as_ref(), &health)?,
            keys,
            health: health.clone(),
            on_failure: rules.on_failure,
            durability: rules.durability,
            retention: Retention::new(&home.join(FILE), shares.clone()),
            recovered_at: None,
            changes: changes_sender,
            home: home.to_owned(),
            schedule: Schedule::new(Instant::now()),
            work: writer::Work::after_recovery(recovered),
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
            shares,
            on_failure: rules.on_failure,
            anchor: rules.anchor.clone(),
            changes,
            reader: Reader::live(&home.join(FILE)),
            state: OperatorState::of_file(&home.join(FILE), rules.durability),
            vault: Vault::of_home(home),
            key: Mutex::new(key),
            query_key,
            is_nowhere: false,
        };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Opens a ledger, or a copy of one, for reading only: nothing is created, migrated, recovered or
    /// written, and nothing can be appended. `home` is the folder with the keys.
    pub fn open_to_read(file: &Path, home: &Path) -> Result<Store, StoreError> {
        let inner = Inner::unwritten(home, Reader::open(file)?, OperatorState::to_read(file, home));
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Returns a store that keeps nothing, to measure the cost of storage. Nothing else may use it.
    #[doc(hidden)]
    pub fn nowhere() -> Store {
        let nothing = Path::new("");
        let mut inner =
            Inner::unwritten(nothing, Reader::live(nothing), OperatorState::in_memory());
        inner.is_nowhere = true;
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

    /// Makes these the home's rules of retention, for this process and all others. Without any,
    /// nothing is deleted. Blocks for a moment: call it off the async threads.
    pub fn set_retention(&self, rules: &domain::config::Ledger) -> Result<(), StoreError> {
        self.inner.state.set_retention(&RetentionRules::from(rules))?;
        let _ = self.inner.inbox.send(Message::Retention);
        Ok(())
    }

    /// Returns a token's use of the ledger if it exceeds its share, so that its calls are refused.
    pub fn share_excess(&self, token: &str) -> Option<ShareExcess> {
        self.inner.shares.excess(token)
    }

    pub fn ledger(&self) -> LedgerHealth {
        self.inner.health.now()
    }

    /// Compares the home with its anchor, without changing anything.
    pub fn check_anchor(&self) -> Result<AnchorCheck, StoreError> {
        anchored::check(&self.inner.home, self.inner.anchor.as_ref())
    }

    /// Waits until everything appended so far can be read back, or cannot be written at all.
    pub async fn settled(&self) {
        let (done, settled) = oneshot::channel();
        if !self.inner.is_nowhere && self.inner.inbox.send(Message::Settle(done)).is_ok() {
            let _ = settled.await;
        }
    }

    /// Returns the folder that holds the ledger, its keys and its journals.
    pub fn home(&self) -> &Path {
        &self.inner.home
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

    /// Returns the encrypted secrets of the home.
    pub fn vault(&self) -> &Vault {
        &self.inner.vault
    }

    /// Returns the stored vectors of a version of the search model, each of this many bytes.
    pub fn vectors(&self, model: &str, vector_bytes: usize) -> VectorFile {
        VectorFile::new(&self.inner.home, model, vector_bytes)
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
        self.inner.reader.public_keys(&self.inner.home.join(keys::FOLDER))
    }

    /// Returns the key of the hashes that replace queries of addresses, the same for all processes
    /// of the home.
    pub fn query_key(&self) -> &[u8; 32] {
        &self.inner.query_key
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
        self.anchor_soon();
        Ok(key)
    }

    /// Issues a receipt that names the heads of all chains, and returns it.
    pub async fn checkpoint(&self) -> Result<String, StoreError> {
        let (done, issued) = oneshot::channel();
        if self.inner.inbox.send(Message::Checkpoint(done)).is_err() {
            return Err(StoreError::Closed);
        }
        issued.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Has a checkpoint issued for the anchor, if there is one, without waiting for it: a decision is
    /// then known outside the home before the minute is over.
    pub fn anchor_soon(&self) {
        if self.inner.anchor.is_some() {
            let _ = self.inner.inbox.send(Message::Checkpoint(oneshot::channel().0));
        }
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

impl Inner {
    /// Returns a ledger without a writer.
    fn unwritten(home: &Path, reader: Reader, state: OperatorState) -> Inner {
        let inbox = Arc::new(Inbox::default());
        inbox.close();
        Inner {
            home: home.to_owned(),
            inbox,
            writer: Arc::default(),
            health: Arc::default(),
            shares: Arc::default(),
            on_failure: OnFailure::Refuse,
            anchor: None,
            changes: watch::channel(0).1,
            reader,
            state,
            vault: Vault::of_home(home),
            key: Mutex::new(Arc::new(SigningKey::from_seed(&[0; 32]))),
            query_key: keys::query::read(&home.join(keys::FOLDER)).unwrap_or_default(),
            is_nowhere: false,
        }
    }
}

impl Drop for Inner {
    /// Closes the chain, if the process lives long enough: nothing can be appended any more.
    fn drop(&mut self) {
        let _ = self.inbox.send(Message::Close(oneshot::channel().0));
    }
}

fn create_writers(writers: &Path) -> Result<(), StoreError> {
    DirBuilder::new().recursive(true).mode(0o700).create(writers).map_err(|error| {
        StoreError::Write(format!("cannot create '{}': {error}", writers.display()))
    })
}

/// A ledger that is ready to be written.
struct Prepared {
    db: Connection,
    keys: Keys,
    query_key: [u8; 32],
    /// The number of chains that were closed.
    recovered: usize,
    /// Losses and repairs that an operator must know of.
    notices: Vec<String>,
}

/// Prepares the file, its tables and keys, and recovers what a dead process left; one process at a
/// time.
fn prepare(
    home: &Path,
    writers: &Path,
    rules: &domain::config::Ledger,
) -> Result<Prepared, StoreError> {
    let _lock = Lock::maintenance(writers)?;
    let mut notices = keys::complete(&home.join(keys::FOLDER))?;
    let mut evidence = Evidence::of_files(home, rules.anchor.as_ref());
    finding::refuse(&judge(&evidence), home)?;
    let mut db = open_tables(&home.join(FILE), rules.durability)?;
    evidence.add_tables(&db)?;
    let findings = judge(&evidence);
    finding::refuse(&findings, home)?;
    let mut keys = Keys::open(&home.join(keys::FOLDER), &db)?;
    clock::examine(&db, jiff::Timestamp::now())?;
    notices.extend(words_of(&findings, FindingKind::is_told));
    notices.extend(keep_checkpoint(&db, (home, &evidence), &keys)?);
    let mut closed = 0;
    match recovery::recover(&mut db, home, &keys, Adoption::Intact) {
        Ok(recovered) => {
            closed = recovered.closed;
            if closed > 0 {
                let chains = closed;
                tracing::info!(chains, "closed chains that an earlier process left open");
            }
            notices.extend(recovered.faults.into_iter().chain(recovered.doubtful));
            if recovered.lost > 0 && home.join(CHECKPOINT_FILE).exists() {
                // It names receipts that a signed account of their loss has replaced.
                notices.push(set_aside(home, CHECKPOINT_FILE)?);
            }
        }
        // Recovery can run later; until then the ledger cannot be written either.
        Err(StoreError::Write(reason)) => tracing::error!("cannot recover the ledger: {reason}"),
        Err(error) => return Err(error),
    }
    if schema::has_rows(&db, "chains")? {
        keys.mark_used();
    }
    match keeping::reconcile(&db, (home, &evidence.decisions)) {
        Ok(notice) => notices.extend(notice),
        Err(StoreError::Write(reason)) => tracing::error!("cannot compare decisions: {reason}"),
        Err(error) => return Err(error),
    }
    let decided = Decided::read(&db, home)?;
    notices.extend(decided.fault());
    notices.extend(decided.lost_at.map(|at| keeping::lost_words(&at)));
    notices.iter().for_each(|notice| tracing::warn!("{notice}"));
    let query_key = keys::query::query_key(&home.join(keys::FOLDER));
    Ok(Prepared { db, keys, query_key, recovered: closed, notices })
}

/// Keeps the newest checkpoint of the tables in its file, if that is missing, older or not trusted.
/// Returns what an operator must know of a file that is not trusted.
fn keep_checkpoint(
    db: &Connection,
    (home, evidence): (&Path, &Evidence),
    keys: &Keys,
) -> Result<Vec<String>, StoreError> {
    let mut notices = Vec::new();
    match &evidence.checkpoint {
        Some(Ok(_)) if evidence.newer_checkpoint.is_none() => return Ok(notices),
        Some(Err(why)) => {
            let done = set_aside(home, CHECKPOINT_FILE);
            notices.push(untrusted_checkpoint(why));
            notices.push(done.unwrap_or_else(|error| error.to_string()));
        }
        Some(Ok(_)) | None => {}
    }
    if let Some(text) = heads::newest_text(db, &keys.known())? {
        checkpoint_file::replace(home, &text, Durability::Disk);
    }
    Ok(notices)
}

/// Opens a database with the present tables, creating what is missing.
fn open_tables(file: &Path, durability: Durability) -> Result<Connection, StoreError> {
    connection::create(file)?;
    let mut db = connection::writing(file, durability)?;
    if !schema::is_current(&db)? {
        schema::migrate(&mut db)?;
    }
    Ok(db)
}
