//! Decisions that people made while the program ran: servers, approvals, switches, tokens, trusted
//! files. They have their own tables in the ledger's file; the store does not interpret them. Runs
//! of workflows are written here as well.
//!
//! The writer of the ledger waits during a change here, so a change is one short transaction with
//! precomputed values.

mod files;
mod items;
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
pub(crate) use secrets::move_out as move_secrets_out;
pub use secrets::{FILE as SECRETS_FILE, ServerSecrets};
pub use servers::{ApprovedServer, ServerState};
pub use tokens::TokenRecord;

use crate::database::connection::{self, ReadOnlyFile};
use crate::database::lock::Lock;
use crate::database::{schema, transaction};
use crate::error::StoreError;
use domain::config::Durability;

/// The decisions of a home. Each function blocks for a moment: call it off the async threads.
pub struct OperatorState {
    place: Location,
    /// Opened by the first query, and then kept.
    db: Mutex<Option<Connection>>,
    /// The locks of the runs of this process, by id.
    running: Mutex<HashMap<String, Lock>>,
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
        OperatorState::at(Location::File(file.to_owned(), durability))
    }

    /// Opens the state of a home for reading only: nothing is opened for writing or migrated. None
    /// if there are no decisions that this program can read.
    pub fn of_home(home: &Path) -> Result<Option<OperatorState>, StoreError> {
        let file = home.join(crate::database::FILE);
        if !file.exists() {
            return Ok(None);
        }
        let state = OperatorState::at(Location::Look(file));
        Ok(state.ask(schema::is_current)?.then_some(state))
    }

    pub(crate) fn in_memory() -> OperatorState {
        OperatorState::at(Location::Memory)
    }

    fn at(place: Location) -> OperatorState {
        let (db, running, secrets) = (Mutex::default(), Mutex::default(), Mutex::default());
        OperatorState { place, db, running, secrets }
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
        self.change(|db| {
            let before = db.total_changes();
            let done = work(db)?;
            if db.total_changes() > before {
                db.prepare_cached("UPDATE state SET version = version + 1")?.execute([])?;
            }
            Ok(done)
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

/// Returns the bytes of the file that the state takes, nearly all of them texts of items.
pub(crate) fn bytes(db: &Connection) -> Result<u64, StoreError> {
    let texts = "SELECT COALESCE(SUM(octet_length(approved_text)), 0)
                   + COALESCE(SUM(octet_length(pending_text)), 0) FROM items";
    Ok(db.query_row(texts, [], |row| row.get(0))?)
}
