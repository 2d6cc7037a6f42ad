//! A ledger to read from. What can be asked of it stands with the answers, in the files beside.

use std::path::Path;
use std::sync::Arc;

use super::pool::Pool;
use crate::database::connection::ReadOnlyFile;
use crate::database::schema;
use crate::error::StoreError;

/// A ledger to read from; clones are the same one.
#[derive(Clone)]
pub struct Reader {
    pub(super) pool: Arc<Pool>,
}

impl Reader {
    /// The ledger of a home, which may be written to meanwhile.
    pub(crate) fn live(file: &Path) -> Reader {
        Reader { pool: Arc::new(Pool::new(ReadOnlyFile::live(file))) }
    }

    /// Any file with receipts: a ledger, a copy of one, or what another program wrote in the same
    /// form. Nothing is written beside it. One without receipts is an error.
    pub fn open(file: &Path) -> Result<Reader, StoreError> {
        let pool = Pool::new(ReadOnlyFile::at(file)?);
        if !pool.ask(|db| schema::has_table(db, "receipts"))? {
            return Err(StoreError::Read("the file holds no receipts".to_owned()));
        }
        Ok(Reader { pool: Arc::new(pool) })
    }
}
