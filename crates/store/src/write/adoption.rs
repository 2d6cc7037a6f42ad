//! Journals whose chain the tables do not know: the database was lost, or is older than they are.
//! A journal that loses nothing by it is adopted at the next start; any other one shows that more
//! is missing, and waits for a person's decision to repair the ledger.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use crate::database::lock::Lock;
use crate::database::timestamp;
use crate::error::StoreError;
use crate::write::chain::{end_of, insert};
use crate::write::journal::{self, Header, HeaderFacts, Scan};

/// The journals that are adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adoption {
    /// Those after whose adoption nothing is missing.
    Intact,
    All,
}

/// A chain that has a journal and is not in the tables.
pub(crate) struct UnknownChain {
    pub(crate) id: String,
    /// The other things that are missing, in words.
    pub(crate) missing: Option<String>,
}

/// Returns the chains that have a journal and are not in the tables.
pub(crate) fn unknown(db: &Connection, writers: &Path) -> Result<Vec<UnknownChain>, StoreError> {
    let mut unknown = Vec::new();
    let ids = unlisted(db, writers)?;
    for id in &ids {
        // A writer adds its chain to the tables before it writes to the journal.
        let Some(scan) = journal::scan(writers, id).filter(|scan| !scan.is_blank()) else {
            continue;
        };
        if is_listed(db, id)? {
            continue;
        }
        let missing = missing(db, writers, &scan, &ids)?;
        unknown.push(UnknownChain { id: id.clone(), missing });
    }
    Ok(unknown)
}

/// Adds unknown chains to the tables, so that recovery files what their journals hold. The caller
/// holds the maintenance lock.
pub(crate) fn adopt(
    db: &Connection,
    writers: &Path,
    adoption: Adoption,
) -> Result<Vec<String>, StoreError> {
    let mut adopted = Vec::new();
    for UnknownChain { id, missing, .. } in unknown(db, writers)? {
        if adoption == Adoption::Intact && missing.is_some() {
            continue;
        }
        // Its writer may be opening it just now.
        let Some(_lock) = Lock::take(writers, &id)? else {
            continue;
        };
        if let (false, Some(scan)) = (is_listed(db, &id)?, journal::scan(writers, &id)) {
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

fn unlisted(db: &Connection, writers: &Path) -> Result<BTreeSet<String>, StoreError> {
    let mut unlisted = BTreeSet::new();
    for id in journal::chains(writers) {
        if !is_listed(db, &id)? {
            unlisted.insert(id);
        }
    }
    Ok(unlisted)
}

fn is_listed(db: &Connection, id: &str) -> Result<bool, StoreError> {
    Ok(db.prepare_cached("SELECT 1 FROM chains WHERE chain_id = ?1")?.exists([id])?)
}

/// Returns what would be missing if a chain were adopted from its journal.
fn missing(
    db: &Connection,
    writers: &Path,
    scan: &Scan,
    unlisted: &BTreeSet<String>,
) -> Result<Option<String>, StoreError> {
    let Some(header) = &scan.header else {
        return Ok(Some("its journal has no header".to_owned()));
    };
    if header.filed > 0 {
        let filed = header.filed;
        return Ok(Some(format!("{filed} of its entries were filed and are in no table")));
    }
    let lost = scan.lost_after(0).count();
    if lost > 0 {
        return Ok(Some(format!("{lost} entries of its journal are damaged")));
    }
    let promises = scan.rows.iter().filter_map(|row| row.promise.as_ref());
    let promised: Vec<u64> = promises.map(|promise| promise.sequence).collect();
    if !promised.iter().copied().eq(1..=promised.len() as u64) {
        return Ok(Some("some of its receipts are in no table".to_owned()));
    }
    let Some(before) = &header.preceding else {
        return Ok(None);
    };
    let reached = end_of(db, writers, &before.chain_id)?.sequence;
    if reached >= before.sequence || is_expired(db, &before.chain_id)? {
        return Ok(None);
    }
    let name = if unlisted.contains(&before.chain_id) || is_listed(db, &before.chain_id)? {
        format!("only {reached} of {} receipts", before.sequence)
    } else {
        format!("none of {} receipts", before.sequence)
    };
    Ok(Some(format!("of the chain before it, {}, {name} can be found", before.chain_id)))
}

fn is_expired(db: &Connection, id: &str) -> Result<bool, StoreError> {
    let status: Option<String> = db
        .prepare_cached("SELECT status FROM chains WHERE chain_id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    Ok(status.as_deref() == Some("expired"))
}
