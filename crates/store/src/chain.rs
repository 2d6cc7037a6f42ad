//! The chain that this process writes. Whoever writes a chain holds a lock on a file of its name;
//! a chain whose lock can be taken has lost its writer.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use receipt::Hash;
use receipt::content::{Position, Receipt, Termination};
use receipt::key::SigningKey;
use rusqlite::{Connection, OptionalExtension, params};

use crate::columns::Columns;
use crate::compose::{self, Place};
use crate::filing::Owner;
use crate::journal::{self, Journal, Link};
use crate::limits::{MAINTENANCE_LOOK, MAINTENANCE_MAX};
use crate::{Durability, StoreError};

/// An open chain and where its next receipt goes.
pub(crate) struct Chain {
    pub(crate) number: i64,
    pub(crate) id: String,
    pub(crate) key: Arc<SigningKey>,
    pub(crate) end: End,
    /// Named in the first receipt, so that a chain which was deleted is missed.
    pub(crate) preceding: Option<Preceding>,
    pub(crate) journal: Journal,
    _lock: Lock,
}

/// The last receipt so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct End {
    pub(crate) sequence: u64,
    pub(crate) hash: Option<Hash>,
}

impl End {
    /// Links a receipt to what came before, and is the end from then on.
    pub(crate) fn link(
        &mut self,
        chain_id: &str,
        receipt: &Receipt<'_>,
        termination: Option<Termination>,
    ) -> Link {
        let sequence = self.sequence + 1;
        let position = Position { chain_id, sequence, previous: self.hash, termination };
        let (body, columns) = (receipt.body(&position), Columns::of(receipt, self.hash));
        *self = End { sequence, hash: Some(body.hash()) };
        Link { sequence, body, columns, signed: None }
    }
}

/// The newest chain at the time when another was opened.
#[derive(Clone)]
pub(crate) struct Preceding {
    pub(crate) chain_id: String,
    pub(crate) sequence: u64,
    pub(crate) hash: Hash,
}

impl Chain {
    /// Opens a chain of this process within the transaction that writes its first entry.
    pub(crate) fn open(
        db: &Connection,
        writers: &Path,
        key: Arc<SigningKey>,
        durability: Durability,
    ) -> Result<Chain, StoreError> {
        let id = uuid::Uuid::now_v7().to_string();
        let lock = Lock::take(writers, &id)?.ok_or_else(|| {
            StoreError::Write(format!("another process holds the lock of chain {id}"))
        })?;
        let journal = Journal::open(writers, &id, durability)?;
        let preceding = preceding(db, writers, i64::MAX)?;
        let number = db
            .prepare_cached(
                "INSERT INTO chains (chain_id, opened_at, pid, key, preceding, preceding_sequence,
                   preceding_hash)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .insert(params![
                id,
                compose::now(),
                std::process::id(),
                key.public().fingerprint().to_string(),
                preceding.as_ref().map(|preceding| &preceding.chain_id),
                preceding.as_ref().map(|preceding| preceding.sequence),
                preceding.as_ref().map(|preceding| preceding.hash.to_string()),
            ])?;
        Ok(Chain { number, id, key, end: End::default(), preceding, journal, _lock: lock })
    }

    /// The place after `end`, which is the chain's own once that has been committed.
    pub(crate) fn place<'a>(&'a self, end: &'a mut End) -> Place<'a> {
        let preceding = self.preceding.as_ref().filter(|_| end.sequence == 0);
        Place { chain_id: &self.id, key: &self.key, end, preceding }
    }

    pub(crate) fn owner(&self) -> Owner<'_> {
        Owner { chain: self.number, chain_id: &self.id }
    }

    /// Takes over a chain whose writer is gone.
    pub(crate) fn adopt(
        db: &Connection,
        writers: &Path,
        (number, id): (i64, String),
        key: Arc<SigningKey>,
        lock: Lock,
    ) -> Result<Chain, StoreError> {
        let (end, preceding) = (filed_end_of(db, &id)?, named_by(db, writers, number)?);
        let journal = Journal::open(writers, &id, Durability::Process)?;
        Ok(Chain { number, id, key, end, preceding, journal, _lock: lock })
    }
}

/// The newest chain before this one that has left a receipt.
fn preceding(
    db: &Connection,
    writers: &Path,
    before: i64,
) -> Result<Option<Preceding>, StoreError> {
    let mut statement = db.prepare_cached(
        "SELECT chain_id FROM chains WHERE chain < ?1 AND status <> 'expired' ORDER BY chain DESC",
    )?;
    let mut chains = statement.query([before])?;
    while let Some(row) = chains.next()? {
        let chain_id: String = row.get(0)?;
        let end = end_of(db, writers, &chain_id)?;
        if let Some(hash) = end.hash {
            return Ok(Some(Preceding { chain_id, sequence: end.sequence, hash }));
        }
    }
    Ok(None)
}

/// The chain that this one names as the one before it, as it stood then.
fn named_by(db: &Connection, writers: &Path, number: i64) -> Result<Option<Preceding>, StoreError> {
    let named: Option<(String, u64, String)> = db
        .query_row(
            "SELECT preceding, preceding_sequence, preceding_hash FROM chains
             WHERE chain = ?1 AND preceding_hash IS NOT NULL",
            [number],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()?;
    match named {
        Some((chain_id, sequence, hash)) => {
            let hash = parsed(&hash, &chain_id, sequence)?;
            Ok(Some(Preceding { chain_id, sequence, hash }))
        }
        // An older program kept no more than its name.
        None => preceding(db, writers, number),
    }
}

/// The last receipt of a chain, filed or not.
fn end_of(db: &Connection, writers: &Path, chain_id: &str) -> Result<End, StoreError> {
    let committed = journal::end_of(writers, chain_id).unwrap_or_default();
    let filed = filed_end_of(db, chain_id)?;
    Ok(if committed.sequence > filed.sequence { committed } else { filed })
}

/// The last one that is filed.
pub(crate) fn filed_end_of(db: &Connection, chain_id: &str) -> Result<End, StoreError> {
    let found = db
        .query_row(
            "SELECT sequence, receipt_hash FROM receipts WHERE chain_id = ?1
             ORDER BY sequence DESC LIMIT 1",
            [chain_id],
            |row| Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?)),
        )
        .optional()?;
    let Some((sequence, hash)) = found else {
        return Ok(End::default());
    };
    Ok(End { sequence, hash: Some(parsed(&hash, chain_id, sequence)?) })
}

fn parsed(hash: &str, chain_id: &str, sequence: u64) -> Result<Hash, StoreError> {
    hash.parse().map_err(|_| {
        StoreError::Corrupt(format!("chain {chain_id}, receipt {sequence}: '{hash}' is no hash"))
    })
}

/// A lock that the system lifts when the process ends, however it ends.
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
    remains: bool,
}

impl Lock {
    /// The lock of a chain; `None` where its writer lives. The file goes with the lock.
    pub(crate) fn take(writers: &Path, chain_id: &str) -> Result<Option<Lock>, StoreError> {
        let path = writers.join(format!("{chain_id}.lock"));
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { file, path, remains: false })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(cannot(&path, &error)),
        }
    }

    /// Migration, retention and recovery are one process's work at a time; others wait.
    pub(crate) fn maintenance(writers: &Path) -> Result<Lock, StoreError> {
        let deadline = Instant::now() + MAINTENANCE_MAX;
        loop {
            if let Some(lock) = Lock::try_maintenance(writers)? {
                return Ok(lock);
            }
            if Instant::now() >= deadline {
                let words = "another process has been putting it in order for too long";
                return Err(StoreError::Write(words.to_owned()));
            }
            std::thread::park_timeout(MAINTENANCE_LOOK);
        }
    }

    /// `None`: another process is at it.
    pub(crate) fn try_maintenance(writers: &Path) -> Result<Option<Lock>, StoreError> {
        let path = writers.join("maintenance.lock");
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { file, path, remains: true })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(cannot(&path, &error)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.remains {
            // While it is still held, so that nobody else can hold it by then.
            let _ = std::fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Write(format!("cannot lock '{}': {error}", path.display()))
}
