//! Signs that `ledger.db` is not the database that the other files of the home belong to: it is
//! missing, empty, or older than the keys, the journals or the last checkpoint. A start would then
//! begin as if nothing had ever been recorded. Everything here only reads.

use std::path::Path;

use receipt::PublicKey;
use receipt::checkpoint::{Checkpoint, Head};
use receipt::verify::SignedReceipt;
use rusqlite::{Connection, OptionalExtension};

use crate::database::{FILE, WRITERS};
use crate::error::StoreError;
use crate::keys;
use crate::state::decisions;
use crate::write::adoption;
use crate::write::chain::end_of;
use crate::write::checkpoint_file::{CHECKPOINT_FILE, kept_checkpoint};
use crate::write::journal;

/// The state of the database file, judged by its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseFile {
    Missing,
    /// It exists and has no content.
    Empty,
    Present,
}

impl DatabaseFile {
    pub(crate) fn of(home: &Path) -> DatabaseFile {
        match std::fs::metadata(home.join(FILE)) {
            Err(_) => DatabaseFile::Missing,
            Ok(found) if found.len() == 0 => DatabaseFile::Empty,
            Ok(_) => DatabaseFile::Present,
        }
    }
}

/// Returns the reason not to create a database in this home, if it has been used before.
pub(crate) fn of_files(home: &Path) -> Option<String> {
    let state = match DatabaseFile::of(home) {
        DatabaseFile::Present => return None,
        DatabaseFile::Missing => "is missing",
        DatabaseFile::Empty => "is empty",
    };
    let traces = traces(home);
    let file = home.join(FILE);
    (!traces.is_empty()).then(|| {
        format!(
            "the ledger '{}' {state}, but the home has been used before: it has {}",
            file.display(),
            traces.join(", ")
        )
    })
}

/// Names the files that only a used home has.
pub(crate) fn traces(home: &Path) -> Vec<String> {
    let plural = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        more => format!("{more} {word}s"),
    };
    let counts = [
        (keys::count(&home.join(keys::FOLDER)), "signing key"),
        (journal::chains(&home.join(WRITERS)).len(), "journal"),
    ];
    let mut traces: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| plural(count, word))
        .collect();
    for (file, word) in [(CHECKPOINT_FILE, "a checkpoint"), (decisions::FILE, "operator decisions")]
    {
        if home.join(file).exists() {
            traces.push(word.to_owned());
        }
    }
    traces
}

/// Returns the signs that the tables are older than other files.
pub(crate) fn of_tables(db: &Connection, home: &Path) -> Result<Vec<String>, StoreError> {
    let writers = home.join(WRITERS);
    let mut doubts = Vec::new();
    doubts.extend(of_keys(db, home)?);
    for chain in adoption::unknown(db, &writers)? {
        if let Some(missing) = chain.missing {
            doubts.push(format!("the journal of chain {} is not in it: {missing}", chain.id));
        }
    }
    for chain in journal::chains(&writers) {
        doubts.extend(of_known_journal(db, &writers, &chain)?);
    }
    if let CheckpointFile::Valid(heads) = checkpoint(home) {
        for head in heads {
            doubts.extend(of_head(db, &writers, &head, "at the last checkpoint")?);
        }
    }
    Ok(doubts)
}

fn of_keys(db: &Connection, home: &Path) -> Result<Option<String>, StoreError> {
    let used = keys::used(&home.join(keys::FOLDER));
    let Some(last) = used.last() else {
        return Ok(None);
    };
    let named = keys::named(db)?;
    let is_old = named.as_ref().is_none_or(|named| named != last && used.contains(named));
    Ok(is_old.then(|| match named {
        Some(named) => format!("it names the key {named}, which was replaced by {last}"),
        None => format!("it names no signing key, but {last} has signed"),
    }))
}

/// Returns what the journal of a known chain says was filed and is not.
fn of_known_journal(
    db: &Connection,
    writers: &Path,
    chain_id: &str,
) -> Result<Option<String>, StoreError> {
    // In this order: a living writer files entries before it begins the journal anew.
    let header = journal::header(writers, chain_id);
    let filed: Option<i64> = db
        .prepare_cached("SELECT filed FROM chains WHERE chain_id = ?1")?
        .query_row([chain_id], |row| row.get(0))
        .optional()?;
    let (Some(filed), Some(header)) = (filed, header) else {
        return Ok(None);
    };
    Ok((header.filed > filed).then(|| {
        let beyond = header.filed;
        format!("chain {chain_id} is filed up to entry {filed}, but {beyond} were filed before")
    }))
}

/// Returns what a chain lacks of a head that it had then.
pub(crate) fn of_head(
    db: &Connection,
    writers: &Path,
    head: &Head,
    when: &str,
) -> Result<Option<String>, StoreError> {
    let Head { chain_id, length, .. } = head;
    let status: Option<String> = db
        .prepare_cached("SELECT status FROM chains WHERE chain_id = ?1")?
        .query_row([chain_id], |row| row.get(0))
        .optional()?;
    let found = end_of(db, writers, chain_id)?.sequence;
    let is_short = status.as_deref() != Some("expired") && found < *length;
    // Recovery signs for entries that are damaged in the journal.
    let is_gone = is_short && found + damaged(db, writers, chain_id)? < *length;
    Ok(is_gone.then(|| format!("chain {chain_id} has {found} receipts, but {length} {when}")))
}

/// Returns the number of entries in the journal of a chain that can no longer be read.
fn damaged(db: &Connection, writers: &Path, chain_id: &str) -> Result<u64, StoreError> {
    let filed: Option<i64> = db
        .prepare_cached("SELECT filed FROM chains WHERE chain_id = ?1")?
        .query_row([chain_id], |row| row.get(0))
        .optional()?;
    let scan = journal::scan(writers, chain_id).filter(|scan| !scan.damaged.is_empty());
    Ok(scan.map_or(0, |scan| scan.lost_after(filed.unwrap_or(0)).count()))
}

/// The state of a home's newest checkpoint, judged by its file.
#[derive(Debug)]
pub(crate) enum CheckpointFile {
    Missing,
    /// It cannot be trusted, for this reason.
    Invalid(String),
    Valid(Vec<Head>),
}

/// Reads the newest checkpoint, which one of the home's keys must have signed.
pub(crate) fn checkpoint(home: &Path) -> CheckpointFile {
    let Ok(Some(text)) = kept_checkpoint(home) else {
        return CheckpointFile::Missing;
    };
    let (signed, members) = match SignedReceipt::read(&text) {
        Ok(read) => read,
        Err(error) => return CheckpointFile::Invalid(error.to_string()),
    };
    let keys = keys::all_public(&home.join(keys::FOLDER));
    if !keys.iter().any(|key: &PublicKey| signed.verify(key).is_ok()) {
        return CheckpointFile::Invalid("no key of this home signed it".to_owned());
    }
    match Checkpoint::of(&members) {
        Some(checkpoint) => CheckpointFile::Valid(checkpoint.heads),
        None => CheckpointFile::Invalid("it names no chains".to_owned()),
    }
}
