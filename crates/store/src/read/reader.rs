//! A ledger to read from. The queries are in the modules next to this one.

use std::path::Path;
use std::sync::Arc;

use super::pool::Pool;
use crate::database::connection::ReadOnlyFile;
use crate::database::{receipts, schema};
use crate::error::StoreError;

/// A ledger to read from; clones share the same one.
#[derive(Clone)]
pub struct Reader {
    pub(super) pool: Arc<Pool>,
}

impl Reader {
    /// Opens the ledger of a home, which may be written meanwhile.
    pub(crate) fn live(file: &Path) -> Reader {
        Reader { pool: Arc::new(Pool::new(ReadOnlyFile::live(file))) }
    }

    /// Opens any file with receipts: a ledger, a copy of one, or another program's file in the same
    /// format. Nothing is written next to it. A file without receipts is an error.
    pub fn open(file: &Path) -> Result<Reader, StoreError> {
        let pool = Pool::new(ReadOnlyFile::at(file)?);
        pool.ask(schema::check_format).map_err(with_advice)?;
        if !pool.ask(receipts::has_any)? {
            return Err(StoreError::Read("the file contains no receipts".to_owned()));
        }
        Ok(Reader { pool: Arc::new(pool) })
    }
}

/// Adds what to do about a ledger that was not closed, in a folder that cannot be written.
fn with_advice(error: StoreError) -> StoreError {
    match error {
        StoreError::Read(words) if words.contains("unable to open database file") => {
            StoreError::Read(format!(
                "{words}; it was not closed properly: copy it and its '-wal' file into a folder that \
                 can be written, and read it there"
            ))
        }
        error => error,
    }
}
