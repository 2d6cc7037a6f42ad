//! Connections that only read.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::StoreError;
use crate::limits::{BUSY_TIMEOUT, READ_IN_PLACE_BYTES, READERS_MAX};

/// Connections kept for the next question.
pub(super) struct Readers {
    file: PathBuf,
    /// Nobody writes the file, so that no lock and no file beside it is needed.
    is_still: bool,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn live(file: &Path) -> Readers {
        Readers { file: file.to_owned(), is_still: false, idle: Mutex::default() }
    }

    /// Whoever writes a ledger keeps a write-ahead log beside it; a file without one is still.
    pub(super) fn of_file(file: &Path) -> Result<Readers, StoreError> {
        if let Err(error) = std::fs::File::open(file) {
            return Err(StoreError::Read(format!("'{}': {error}", file.display())));
        }
        let mut log = file.as_os_str().to_owned();
        log.push("-wal");
        let is_still = !Path::new(&log).exists();
        Ok(Readers { file: file.to_owned(), is_still, idle: Mutex::default() })
    }

    pub(super) fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let db = match kept {
            Some(db) => db,
            None => self.connect().map_err(StoreError::of_reading)?,
        };
        let answer = question(&db).map_err(StoreError::of_reading)?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < READERS_MAX {
            idle.push(db);
        }
        Ok(answer)
    }

    /// The same, with all that is read being of one moment.
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

    /// The same for who goes through much of the file and looks at nothing twice. Read in place, all
    /// of that would stay mapped and count as memory of this process.
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

    fn connect(&self) -> Result<Connection, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = if self.is_still {
            Connection::open_with_flags(still(&self.file), flags | OpenFlags::SQLITE_OPEN_URI)?
        } else {
            Connection::open_with_flags(&self.file, flags)?
        };
        db.busy_timeout(BUSY_TIMEOUT)?;
        // Otherwise SQLite plans a statement anew for each value that it is given.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        db.pragma_update(None, "mmap_size", READ_IN_PLACE_BYTES)?;
        db.set_prepared_statement_cache_capacity(64);
        Ok(db)
    }
}

/// A connection that leaves no trace in a ledger that nobody writes.
pub(crate) fn look(file: &Path) -> Result<Connection, StoreError> {
    Readers::of_file(file)?.connect()
}

/// The address that opens a file as one that does not change.
fn still(file: &Path) -> PathBuf {
    let mut address = b"file:".to_vec();
    for byte in file.as_os_str().as_bytes() {
        match byte {
            b'?' | b'#' | b'%' => address.extend(format!("%{byte:02x}").bytes()),
            plain => address.push(*plain),
        }
    }
    address.extend(b"?immutable=1");
    OsString::from_vec(address).into()
}
