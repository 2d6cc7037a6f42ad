//! The chain that this process writes. The writer of a chain holds a lock on a file of its name; a
//! chain whose lock can be taken has lost its writer.

use std::path::Path;
use std::sync::Arc;

use domain::config::Durability;
use receipt::key::SigningKey;
use receipt::{Hash, PublicKey};
use rusqlite::{Connection, OptionalExtension, params};

use crate::database::lock::Lock;
use crate::database::timestamp;
use crate::error::StoreError;
use crate::keys;
use crate::write::chain_row::{SignedEnds, ended};
use crate::write::journal::{self, Header, HeaderFacts, Journal, tail};
use crate::write::link::{ChainBeginning, ChainEnd, ChainRef, Issuance, PrecedingChain};

/// An open chain and the place of its next receipt.
pub(crate) struct OpenChain {
    pub(crate) number: i64,
    pub(crate) id: String,
    pub(crate) key: Arc<SigningKey>,
    pub(crate) end: ChainEnd,
    beginning: ChainBeginning,
    pub(crate) journal: Journal,
    lock: Lock,
}

/// The names of a chain whose writer is gone, and its signing key.
pub(crate) struct LeftChain<'a> {
    pub(crate) chain: ChainRef<'a>,
    pub(crate) key: Arc<SigningKey>,
    pub(crate) journal: Journal,
    pub(crate) lock: Lock,
    /// The header of the journal, if it can be read.
    pub(crate) header: Option<Header>,
}

impl OpenChain {
    /// Opens a chain of this process within the transaction that writes its first entry.
    pub(crate) fn open(
        db: &Connection,
        writers: &Path,
        key: Arc<SigningKey>,
        durability: Durability,
    ) -> Result<OpenChain, StoreError> {
        OpenChain::open_instead(db, (writers, durability), key, None)
    }

    /// Opens a chain that takes what is left of another one, which is not continued: of that one,
    /// only what is in the tables stays.
    pub(crate) fn open_instead(
        db: &Connection,
        (writers, durability): (&Path, Durability),
        key: Arc<SigningKey>,
        other: Option<&str>,
    ) -> Result<OpenChain, StoreError> {
        let id = uuid::Uuid::now_v7().to_string();
        let lock = Lock::take(writers, &id)?.ok_or_else(|| {
            StoreError::Write(format!("another process holds the lock of chain {id}"))
        })?;
        let preceding = preceding(db, writers, (&key.public(), other))?;
        let header = Header::new(HeaderFacts {
            chain: &id,
            key: key.public().fingerprint().to_string(),
            opened_at: timestamp::now(),
            pid: std::process::id(),
            preceding: preceding.as_ref(),
        });
        let (number, beginning) = (insert(db, &header)?, header.beginning());
        let journal = Journal::begin(writers, header, durability)?;
        Ok(OpenChain { number, id, key, end: ChainEnd::default(), beginning, journal, lock })
    }

    /// Makes a deleted lock file anew, so that no other process takes this chain for abandoned.
    /// Until then, the lock on the journal tells them.
    pub(crate) fn guard(&mut self, writers: &Path) {
        if self.lock.is_in_place() {
            return;
        }
        match Lock::take(writers, &self.id) {
            Ok(Some(lock)) => {
                tracing::warn!(chain = %self.id, "the chain's lock file was deleted; made it anew");
                self.lock = lock;
            }
            Ok(None) => {
                tracing::warn!(chain = %self.id, "the chain's lock file was replaced");
            }
            Err(error) => tracing::error!("the chain's lock file was deleted: {error}"),
        }
    }

    /// Notes the end of the journal in the lock file, after a commit. Nothing depends on it unless the
    /// journal is cut later.
    pub(crate) fn note_tail(&self, end: ChainEnd) {
        if let Err(error) = tail::write(self.lock.file(), self.journal.last(), end) {
            tracing::warn!(chain = %self.id, "cannot write to the chain's lock file: {error}");
        }
    }

    /// Prepares the receipt after `end`, which is the chain's own once that has been committed.
    pub(crate) fn issuance<'a>(&'a self, end: &'a mut ChainEnd) -> Issuance<'a> {
        let beginning = Some(&self.beginning).filter(|_| end.sequence == 0);
        Issuance { chain_id: &self.id, key: &self.key, end, beginning }
    }

    pub(crate) fn by_ref(&self) -> ChainRef<'_> {
        ChainRef { number: self.number, id: &self.id }
    }

    /// Takes over a chain whose writer is gone.
    pub(crate) fn adopt(db: &Connection, left: LeftChain<'_>) -> Result<OpenChain, StoreError> {
        let LeftChain { chain, key, journal, lock, header } = left;
        let (number, id) = (chain.number, chain.id.to_owned());
        let beginning = match header {
            Some(header) => header.beginning(),
            None => beginning(db, number)?,
        };
        Ok(OpenChain { number, end: filed_end_of(db, &id)?, id, key, beginning, journal, lock })
    }
}

/// Adds a chain to the tables as its journal's header describes it; returns its number.
pub(crate) fn insert(db: &Connection, header: &Header) -> Result<i64, StoreError> {
    let preceding = header.preceding.as_ref();
    let number = db
        .prepare_cached(
            "INSERT INTO chains (chain_id, opened_at, pid, key, preceding, preceding_sequence,
               preceding_hash)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .insert(params![
            header.chain,
            header.opened_at,
            header.pid,
            header.key,
            preceding.map(|preceding| &preceding.chain_id),
            preceding.map(|preceding| preceding.sequence),
            preceding.map(|preceding| &preceding.hash),
        ])?;
    Ok(number)
}

/// Returns the newest chain that has a receipt, and whose ends are as keys of the home signed them. What
/// the journal of one that is not continued promises does not count.
fn preceding(
    db: &Connection,
    writers: &Path,
    (current, ended_here): (&PublicKey, Option<&str>),
) -> Result<Option<PrecedingChain>, StoreError> {
    let folder = writers.parent().unwrap_or(writers).join(keys::FOLDER);
    let mut known = keys::all_public(&folder);
    known.push(current.clone());
    let mut statement = db.prepare_cached(
        "SELECT chain_id FROM chains WHERE status <> 'expired' ORDER BY chain DESC",
    )?;
    let mut chains = statement.query([])?;
    while let Some(row) = chains.next()? {
        let chain_id: String = row.get(0)?;
        let ends = match SignedEnds::read(db, &known, &chain_id)? {
            Ok(ends) => ends,
            Err(words) => {
                tracing::error!("no chain names chain {chain_id} as the one before it: {words}");
                continue;
            }
        };
        // Nothing of its journal follows the receipt that ended a chain.
        let end = match ends.last.as_ref().and_then(ended) {
            Some(_) => filed_end_of(db, &chain_id)?,
            None if ended_here == Some(&*chain_id) => filed_end_of(db, &chain_id)?,
            None => end_of(db, writers, &chain_id)?,
        };
        if let Some(hash) = end.hash {
            return Ok(Some(PrecedingChain { chain_id, sequence: end.sequence, hash }));
        }
    }
    Ok(None)
}

/// Returns the beginning of a chain as its row has it.
fn beginning(db: &Connection, number: i64) -> Result<ChainBeginning, StoreError> {
    let words = "SELECT opened_at, pid, preceding, preceding_sequence, preceding_hash FROM chains
                 WHERE chain = ?1";
    let (beginning, before) = db.query_row(words, [number], |row| {
        let named: (Option<String>, Option<u64>, Option<String>) =
            (row.get(2)?, row.get(3)?, row.get(4)?);
        let (opened_at, pid) = (row.get(0)?, row.get(1)?);
        Ok((ChainBeginning { opened_at, pid, preceding: None }, named))
    })?;
    let (Some(chain_id), Some(sequence), Some(hash)) = before else { return Ok(beginning) };
    let hash = parsed(&hash, &chain_id, sequence)?;
    Ok(ChainBeginning { preceding: Some(PrecedingChain { chain_id, sequence, hash }), ..beginning })
}

/// Returns the last entry of a chain's journal that is in the tables, if they know the chain.
pub(crate) fn filed(db: &Connection, chain_id: &str) -> Result<Option<i64>, StoreError> {
    let mut statement = db.prepare_cached("SELECT filed FROM chains WHERE chain_id = ?1")?;
    Ok(statement.query_row([chain_id], |row| row.get(0)).optional()?)
}

/// Returns the last receipt of a chain, filed or not.
pub(crate) fn end_of(
    db: &Connection,
    writers: &Path,
    chain_id: &str,
) -> Result<ChainEnd, StoreError> {
    let committed = journal::end_of(writers, chain_id).unwrap_or_default();
    let filed = filed_end_of(db, chain_id)?;
    Ok(if committed.sequence > filed.sequence { committed } else { filed })
}

/// Returns the number of the last receipt of a chain, filed or not; `None` if the chain has expired.
pub(crate) fn reach(
    db: &Connection,
    writers: &Path,
    chain_id: &str,
) -> Result<Option<u64>, StoreError> {
    let words = "SELECT 1 FROM chains WHERE chain_id = ?1 AND status = 'expired'";
    let is_expired = db.prepare_cached(words)?.exists([chain_id])?;
    Ok(if is_expired { None } else { Some(end_of(db, writers, chain_id)?.sequence) })
}

/// Returns the hash of the receipt in a place of a chain.
pub(crate) fn hash_at(
    db: &Connection,
    chain_id: &str,
    sequence: u64,
) -> Result<Option<String>, StoreError> {
    let words = "SELECT receipt_hash FROM receipts WHERE chain_id = ?1 AND sequence = ?2";
    let mut statement = db.prepare_cached(words)?;
    Ok(statement.query_row(params![chain_id, sequence], |row| row.get(0)).optional()?)
}

/// Returns the last filed receipt of a chain.
pub(crate) fn filed_end_of(db: &Connection, chain_id: &str) -> Result<ChainEnd, StoreError> {
    let found = db
        .query_row(
            "SELECT sequence, receipt_hash FROM receipts WHERE chain_id = ?1
             ORDER BY sequence DESC LIMIT 1",
            [chain_id],
            |row| Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?)),
        )
        .optional()?;
    let Some((sequence, hash)) = found else {
        return Ok(ChainEnd::default());
    };
    Ok(ChainEnd { sequence, hash: Some(parsed(&hash, chain_id, sequence)?) })
}

fn parsed(hash: &str, chain_id: &str, sequence: u64) -> Result<Hash, StoreError> {
    hash.parse().map_err(|_| {
        StoreError::Corrupt(format!("chain {chain_id}, receipt {sequence}: '{hash}' is not a hash"))
    })
}
