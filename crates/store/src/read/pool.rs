//! The connections of a reader, kept between queries.

use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use crate::database::connection::ReadOnlyFile;
use crate::error::StoreError;
use crate::limits::{READ_IN_PLACE_BYTES, READERS_MAX};

pub(super) struct Pool {
    file: ReadOnlyFile,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(super) fn new(file: ReadOnlyFile) -> Pool {
        Pool { file, idle: Mutex::default() }
    }

    pub(super) fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let db = self.take()?;
        let answer = question(&db).map_err(StoreError::of_reading)?;
        self.keep(db);
        Ok(answer)
    }

    // Compiled once, not for every query.
    fn take(&self) -> Result<Connection, StoreError> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.map_or_else(|| self.file.connect().map_err(StoreError::of_reading), Ok)
    }

    fn keep(&self, db: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < READERS_MAX {
            idle.push(db);
        }
    }

    /// Runs a query in one read transaction, so that all it reads is of one moment.
    pub(super) fn ask_at_once<T>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.ask(|db| {
            let moment = db.unchecked_transaction()?;
            let answer = question(&moment)?;
            moment.finish()?;
            Ok(answer)
        })
    }

    /// Runs a query that reads much of the file once. If mapped, all of that would stay in memory
    /// and count towards this process.
    pub(super) fn ask_in_passing<T>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.ask(|db| {
            db.pragma_update(None, "mmap_size", 0)?;
            let moment = db.unchecked_transaction()?;
            let answer = question(&moment)?;
            moment.finish()?;
            db.pragma_update(None, "mmap_size", READ_IN_PLACE_BYTES)?;
            Ok(answer)
        })
    }
}
