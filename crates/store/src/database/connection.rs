//! Connections to the ledger's file: one that writes, and others that only read.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use domain::config::Durability;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::database::receipts;
use crate::error::StoreError;
use crate::limits::{BUSY_TIMEOUT, LOG_PAGES_MAX, PAGE_BYTES, READ_IN_PLACE_BYTES};

/// Creates the file for the user alone, whatever the umask; SQLite gives its companions the same
/// mode.
pub(crate) fn create(file: &Path) -> Result<(), StoreError> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(file)
        .map_err(|error| StoreError::Write(format!("cannot open '{}': {error}", file.display())))?;
    Ok(())
}

/// Opens a connection that writes to an existing file.
pub(crate) fn writing(file: &Path, durability: Durability) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    // Otherwise SQLite plans each statement anew for each value that is bound to it.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Applies to a new file only.
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
    db.pragma_update(None, "wal_autocheckpoint", LOG_PAGES_MAX)?;
    receipts::view_ours(&db)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(db)
}

/// A ledger's file to read, and whether another process may write it meanwhile.
pub(crate) struct ReadOnlyFile {
    path: PathBuf,
    /// Nothing writes the file, so no lock and no companion file is needed.
    is_still: bool,
}

impl ReadOnlyFile {
    /// Returns the file of a ledger that this process writes.
    pub(crate) fn live(path: &Path) -> ReadOnlyFile {
        ReadOnlyFile { path: path.to_owned(), is_still: false }
    }

    /// Examines any file. A writer keeps a write-ahead log next to its ledger; a file without one
    /// is still, and a connection to it leaves no trace.
    pub(crate) fn at(path: &Path) -> Result<ReadOnlyFile, StoreError> {
        if let Err(error) = std::fs::File::open(path) {
            return Err(StoreError::Read(format!("'{}': {error}", path.display())));
        }
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let is_still = !Path::new(&log).exists();
        Ok(ReadOnlyFile { path: path.to_owned(), is_still })
    }

    pub(crate) fn connect(&self) -> Result<Connection, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = if self.is_still {
            Connection::open_with_flags(still(&self.path), flags | OpenFlags::SQLITE_OPEN_URI)?
        } else {
            Connection::open_with_flags(&self.path, flags)?
        };
        db.busy_timeout(BUSY_TIMEOUT)?;
        // Otherwise SQLite plans each statement anew for each value that is bound to it.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        db.pragma_update(None, "mmap_size", READ_IN_PLACE_BYTES)?;
        receipts::view(&db)?;
        db.set_prepared_statement_cache_capacity(64);
        Ok(db)
    }
}

/// Returns the URI that opens a file as immutable.
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
