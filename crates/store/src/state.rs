//! Decisions that people made while the program ran: servers, approvals, switches, tokens, trusted
//! files. They are entries of a signed log, and for queries rows of tables, in the ledger's file.
//! Where the two differ, the stricter counts. The store does not interpret them. Runs of workflows
//! are written here as well.
//!
//! The writer of the ledger waits during a change here, so a change is one short transaction with
//! precomputed values.

mod decision;
mod files;
mod items;
pub(crate) mod keeping;
mod runs;
mod secrets;
mod servers;
pub(crate) mod signed_log;
mod switches;
mod tokens;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

pub use items::{ApprovalResult, Definition, ItemChange, ItemVersion, ServerItem};
pub(crate) use runs::end_lost_runs;
pub use secrets::{FILE as SECRETS_FILE, ServerSecrets};
pub use servers::{ApprovedServer, ServerState};
pub use tokens::TokenRecord;

use crate::database::connection::{self, ReadOnlyFile};
use crate::database::lock::Lock;
use crate::database::{schema, transaction};
use crate::error::StoreError;
use crate::upkeep::rules::RetentionRules;
use decision::{Change, Decisions, Scope};
use domain::config::Durability;
use signed_log::DecisionLog;

/// The decisions of a home. Each function blocks for a moment: call it off the async threads.
pub struct OperatorState {
    place: Location,
    /// Opened by the first query, and then kept.
    db: Mutex<Option<Connection>>,
    /// The locks of the runs of this process, by id.
    running: Mutex<HashMap<String, Lock>>,
    /// The folder with the keys and the second copy; none for a state in memory.
    home: Option<PathBuf>,
    /// The signed log as it was last read.
    log: Mutex<Option<Arc<DecisionLog>>>,
    /// The secrets of a state in memory.
    secrets: Mutex<ServerSecrets>,
}

enum Location {
    File(PathBuf, Durability),
    /// A file that is only read.
    Look(PathBuf),
    Memory,
}

impl OperatorState {
    /// Uses the state in a ledger's file, which exists and has its tables.
    pub(crate) fn of_file(file: &Path, durability: Durability) -> OperatorState {
        OperatorState::at(Location::File(file.to_owned(), durability), file.parent())
    }

    /// Opens the state of a home for reading only: nothing is opened for writing or migrated. None
    /// if there are no decisions that this program can read.
    pub fn of_home(home: &Path) -> Result<Option<OperatorState>, StoreError> {
        let file = home.join(crate::database::FILE);
        if !file.exists() {
            return Ok(None);
        }
        let state = OperatorState::to_read(&file, home);
        Ok(state.ask(schema::is_current)?.then_some(state))
    }

    /// Uses the state in a file that is only read; `home` is the folder with the keys.
    pub(crate) fn to_read(file: &Path, home: &Path) -> OperatorState {
        OperatorState::at(Location::Look(file.to_owned()), Some(home))
    }

    pub(crate) fn in_memory() -> OperatorState {
        OperatorState::at(Location::Memory, None)
    }

    fn at(place: Location, home: Option<&Path>) -> OperatorState {
        let (db, running, secrets) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (home, log) = (home.map(Path::to_owned), Mutex::default());
        OperatorState { place, db, running, home, log, secrets }
    }

    /// Returns a number that grows with every decision by any process, but not with changed server
    /// lists; cheap enough to poll once a second. If it has changed, query the rest again.
    pub fn version(&self) -> Result<i64, StoreError> {
        self.ask(|db| {
            Ok(db.prepare_cached("SELECT version FROM state")?.query_row([], |row| row.get(0))?)
        })
    }

    /// Closes the file, unless a query is running. The next query opens it again.
    pub(crate) fn rest(&self) {
        match (&self.place, self.db.try_lock()) {
            (Location::File(..) | Location::Look(_), Ok(mut db)) => *db = None,
            (Location::File(..) | Location::Look(_) | Location::Memory, _) => {}
        }
    }

    /// Makes these the home's rules of retention.
    pub(crate) fn set_retention(&self, rules: &RetentionRules) -> Result<(), StoreError> {
        self.change(|db| rules.keep(db))
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Lock>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with(question).map_err(StoreError::of_reading)
    }

    /// Asks for decisions: beside the tables the question has what was signed, of the same moment.
    /// Nothing is signed in a state in memory, and nothing counts of a log that is damaged.
    fn ask_decided<T>(
        &self,
        question: impl FnOnce(&Connection, Option<&Decisions>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.ask(|db| {
            let moment = db.unchecked_transaction()?;
            let log = match &self.home {
                Some(home) => Some(self.log(&moment, home)?.unwrap_or_default()),
                None => None,
            };
            let answer = question(&moment, log.as_ref().map(|log| &log.decisions))?;
            moment.finish()?;
            Ok(answer)
        })
    }

    /// Applies a decision about this scope in one transaction, and counts it if it changed anything.
    fn decide<T>(
        &self,
        scope: Scope<'_>,
        work: impl Fn(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.sign(scope, |db| {
            let before = db.total_changes();
            let done = work(db)?;
            if db.total_changes() > before {
                signed_log::count(db)?;
            }
            Ok(done)
        })
    }

    /// Makes a change of decisions, and signs what it changed.
    fn sign<T>(
        &self,
        scope: Scope<'_>,
        work: impl Fn(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some(home) = &self.home else { return self.change(work) };
        self.with(|db| {
            let (done, signed) = transaction::whole(db, |db| {
                let log = self.log(db, home)?.map_err(signed_log::damaged)?;
                let before = log.decisions.within(scope);
                let tables = Decisions::of_tables(db, scope)?;
                let (done, decided) = if before == tables {
                    (work(db)?, Decisions::of_tables(db, scope)?)
                } else {
                    // Rows that no decision made are not signed with it.
                    db.execute_batch("SAVEPOINT signed")?;
                    tables.replace(db, &before)?;
                    work(db)?;
                    let decided = Decisions::of_tables(db, scope)?;
                    db.execute_batch("ROLLBACK TO signed; RELEASE signed")?;
                    (work(db)?, decided)
                };
                let change = Change::between(&before, &decided);
                let is_change = !change.is_empty();
                let signed = is_change.then(|| log.with(change, (db, home))).transpose()?;
                Ok((done, signed))
            })?;
            if let Some(signed) = signed {
                *self.known_log() = Some(Arc::new(signed));
                if let Err(error) = signed_log::write_copy(db, home) {
                    tracing::error!("cannot keep a copy of the decisions: {error}");
                }
            }
            Ok(done)
        })
    }

    /// Returns the signed log, which is read again if it has changed. The inner error is the reason
    /// not to trust it.
    fn log(
        &self,
        db: &Connection,
        home: &Path,
    ) -> Result<Result<Arc<DecisionLog>, String>, StoreError> {
        let (number, known) = (signed_log::number(db)?, self.known_log().clone());
        match known {
            Some(known) if known.number == number => return Ok(Ok(known)),
            Some(known) if known.number > number => {
                return Ok(Err(format!("decision {} is gone from it", known.number)));
            }
            Some(_) | None => {}
        }
        let log = DecisionLog::of_tables(db, home)?.map(Arc::new);
        if let Ok(log) = &log {
            *self.known_log() = Some(log.clone());
        }
        Ok(log)
    }

    fn known_log(&self) -> MutexGuard<'_, Option<Arc<DecisionLog>>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the decisions of this home were lost, unless a person has reviewed that.
    pub fn lost_at(&self) -> Result<Option<String>, StoreError> {
        self.ask_decided(|db, signed| {
            let signed = signed.and_then(Decisions::lost_at);
            Ok(signed.map(str::to_owned).or(decision::lost_at(db)?))
        })
    }

    fn change<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with(|db| transaction::whole(db, work))
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        match &*db {
            Some(db) => work(db),
            None => work(db.insert(self.place.connect()?)),
        }
    }
}

/// The cache size. Decisions are few; pages from the first lists of many servers would only take up
/// memory.
const CACHE_KIB: i64 = 256;

impl Location {
    fn connect(&self) -> Result<Connection, StoreError> {
        match self {
            Location::File(file, durability) => {
                let db = connection::writing(file, *durability)?;
                db.pragma_update(None, "cache_size", -CACHE_KIB)?;
                Ok(db)
            }
            Location::Look(file) => ReadOnlyFile::at(file)?.connect(),
            Location::Memory => {
                let mut db = Connection::open_in_memory()?;
                schema::migrate(&mut db)?;
                Ok(db)
            }
        }
    }
}
