//! Journals whose chain the tables do not know: the database was lost, or is older than they are.
//! A journal that loses nothing by it is adopted at the next start; any other one shows that more
//! is missing, and waits for a person's decision to repair the ledger.

use std::path::Path;

use rusqlite::Connection;

use crate::database::lock::Lock;
use crate::database::timestamp;
use crate::error::StoreError;
use crate::write::chain::{filed, insert};
use crate::write::journal::{self, Header, HeaderFacts};
use crate::write::journal_state::{JournalDepth, JournalState};

/// The journals that are adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adoption {
    /// Those after whose adoption nothing is missing.
    Intact,
    All,
}

/// Adds unknown chains to the tables, so that recovery files what their journals hold. The caller
/// holds the maintenance lock.
pub(crate) fn adopt(
    db: &Connection,
    writers: &Path,
    adoption: Adoption,
) -> Result<Vec<String>, StoreError> {
    let mut adopted = Vec::new();
    for id in journal::chains(writers) {
        if filed(db, &id)?.is_some() {
            continue;
        }
        let state = JournalState::read(Some(db), (writers, &id), JournalDepth::Header)?;
        let is_wanted = |state: &JournalState| {
            state.is_unknown() && (adoption == Adoption::All || state.missing().is_none())
        };
        if !state.as_ref().is_some_and(is_wanted) {
            continue;
        }
        // Its writer may be opening it just now.
        let Some(lock) = Lock::take(writers, &id)? else {
            continue;
        };
        // The file says up to which entry the journal went.
        let _lock = lock.leaving_its_file();
        if let (None, Some(scan)) = (filed(db, &id)?, journal::scan(writers, &id)) {
            insert(db, &scan.header.unwrap_or_else(|| substitute(&id)))?;
            tracing::warn!(chain = %id, "adopted a chain that the database did not know");
            adopted.push(id);
        }
    }
    Ok(adopted)
}

/// Returns the header of a chain of which only the name is known.
fn substitute(id: &str) -> Header {
    let (key, opened_at) = (String::new(), timestamp::now());
    Header::new(HeaderFacts { chain: id, key, opened_at, pid: 0, preceding: None })
}
