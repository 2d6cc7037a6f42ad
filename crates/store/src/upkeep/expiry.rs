//! Expires old chains as a whole, if the operator configures that. A chain is first exported to a
//! file, and a receipt in the current chain names its last hash.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rusqlite::Connection;

use crate::error::StoreError;

/// The folder in the home for the exports.
pub(crate) const EXPORTS: &str = "exports";

/// Writes the receipts of a chain to a file, one a line.
pub(crate) fn export(db: &Connection, chain_id: &str, home: &Path) -> Result<(), StoreError> {
    let folder = &home.join(EXPORTS);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| cannot(folder, &error))?;
    let path = folder.join(format!("{chain_id}.jsonl"));
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| cannot(&path, &error))?;
    let mut file = BufWriter::new(file);
    let mut statement =
        db.prepare("SELECT receipt_json FROM receipts WHERE chain_id = ?1 ORDER BY sequence")?;
    let mut rows = statement.query([chain_id])?;
    while let Some(row) = rows.next()? {
        let receipt = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
        writeln!(file, "{receipt}").map_err(|error| cannot(&path, &error))?;
    }
    let file = file.into_inner().map_err(|error| cannot(&path, error.error()))?;
    file.sync_all().map_err(|error| cannot(&path, &error))
}

fn cannot(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Write(format!("cannot export to '{}': {error}", path.display()))
}
