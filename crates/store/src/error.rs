//! Errors of the ledger.

use domain::Code;

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot write the ledger: {0}")]
    Write(String),
    #[error("cannot read the ledger: {0}")]
    Read(String),
    #[error("{0}")]
    Key(String),
    #[error(
        "the ledger is damaged: {0}; restore ledger.db from a backup, or run 'countersign ledger \
         check' to see what is left and 'countersign ledger repair' to recover it"
    )]
    Corrupt(String),
    #[error(
        "{0}; restore ledger.db from a backup, or run 'countersign ledger check' to see what is \
         left and 'countersign ledger repair' to recover it"
    )]
    Incomplete(String),
    #[error(
        "the ledger was written by a newer version (format {found}, supported up to {newest}); \
         upgrade Countersign"
    )]
    Newer { found: usize, newest: usize },
    #[error(
        "the ledger has a layout that no release of Countersign has: read it with the build that \
         wrote it, and use another home with this one"
    )]
    UnknownLayout,
    #[error("the ledger is closed")]
    Closed,
    #[error("'{0}' is not a cursor of this list; omit it to start with the newest entry")]
    Cursor(String),
}

impl StoreError {
    pub fn code(&self) -> Code {
        match self {
            StoreError::Cursor(_) => Code::InvalidRequest,
            StoreError::Incomplete(_) => Code::LedgerIncomplete,
            StoreError::Write(_)
            | StoreError::Read(_)
            | StoreError::Key(_)
            | StoreError::Corrupt(_)
            | StoreError::Newer { .. }
            | StoreError::UnknownLayout
            | StoreError::Closed => Code::LedgerUnavailable,
        }
    }

    /// Marks the error as a read error: SQLite's errors do not say which it was.
    pub(crate) fn of_reading(self) -> StoreError {
        match self {
            StoreError::Write(words) => StoreError::Read(words),
            StoreError::Read(_)
            | StoreError::Key(_)
            | StoreError::Corrupt(_)
            | StoreError::Incomplete(_)
            | StoreError::Newer { .. }
            | StoreError::UnknownLayout
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
                StoreError::Write("another process has locked it".to_owned())
            }
            _ if is_of_tables(&error) => StoreError::Corrupt(error.to_string()),
            _ => StoreError::Write(error.to_string()),
        }
    }
}

/// Reports whether the file lacks something that every ledger has.
fn is_of_tables(error: &rusqlite::Error) -> bool {
    let words = match error {
        rusqlite::Error::SqliteFailure(_, Some(words)) => words,
        rusqlite::Error::SqlInputError { msg, .. } => msg,
        _ => return false,
    };
    words.starts_with("no such table: ") || words.starts_with("no such column: ")
}
