//! Decisions that people made while the program ran: servers, approvals, switches, tokens, trusted
//! files. They have their own tables in the ledger's file; the store does not interpret them. Runs
//! of workflows are written here as well.
//!
//! The writer of the ledger waits during a change here, so a change is one short transaction with
//! precomputed values.

pub(crate) mod decisions;
mod files;
mod items;
pub(crate) mod keeping;
mod runs;
mod secrets;
mod servers;
mod switches;
mod tokens;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
use domain::config::Durability;
use keeping::Keeper;

/// The decisions of a home. Each function blocks for a moment: call it off the async threads.
pub struct OperatorState {
    place: Location,
    /// Opened by the first query, and then kept.
    db: Mutex<Option<Connection>>,
    /// The locks of the runs of this process, by id.
    running: Mutex<HashMap<String, Lock>>,
    /// Keeps the second copy; none for a state that is only read, or not kept at all.
    keeper: Option<Keeper>,
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
        let keeper = file.parent().map(Keeper::of);
        let state = OperatorState::at(Location::File(file.to_owned(), durability));
        OperatorState { keeper, ..state }
    }

    /// Opens the state of a home for reading only: nothing is opened for writing or migrated. None
    /// if there are no decisions that this program can read.
    pub fn of_home(home: &Path) -> Result<Option<OperatorState>, StoreError> {
        let file = home.join(crate::database::FILE);
        if !file.exists() {
            return Ok(None);
        }
        let state = OperatorState::to_read(&file);
        Ok(state.ask(schema::is_current)?.then_some(state))
    }

    /// Uses the state in a file that is only read.
    pub(crate) fn to_read(file: &Path) -> OperatorState {
        OperatorState::at(Location::Look(file.to_owned()))
    }

    pub(crate) fn in_memory() -> OperatorState {
        OperatorState::at(Location::Memory)
    }

    fn at(place: Location) -> OperatorState {
        let (db, running, secrets) = (Mutex::default(), Mutex::default(), Mutex::default());
        OperatorState { place, db, running, keeper: None, secrets }
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
        if let Some(keeper) = &self.keeper {
            keeper.finish();
        }
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

    /// Applies a decision in one transaction, and counts it if it changed anything.
    fn decide<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.kept(|db| {
            let before = db.total_changes();
            let done = work(db)?;
            if db.total_changes() > before {
                db.prepare_cached("UPDATE state SET version = version + 1")?.execute([])?;
            }
            Ok(done)
        })
    }

    /// Makes a change of what is kept twice.
    fn kept<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with(|db| {
            let (done, is_change) = transaction::whole(db, |db| {
                let before = db.total_changes();
                let done = work(db)?;
                let is_change = db.total_changes() > before;
                if is_change {
                    decisions::count(db)?;
                }
                Ok((done, is_change))
            })?;
            if let Some(keeper) = self.keeper.as_ref().filter(|_| is_change) {
                keeper.changed(db);
            }
            Ok(done)
        })
    }

    /// Returns when the decisions of this home were lost, unless a person has reviewed that.
    pub fn lost_at(&self) -> Result<Option<String>, StoreError> {
        self.ask(decisions::lost_at)
    }

    /// Makes a server that nothing is known of wait for a review, after decisions were lost.
    pub fn await_review(&self, name: &str) -> Result<(), StoreError> {
        self.kept(|db| decisions::await_review(db, name))
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
