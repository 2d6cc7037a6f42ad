//! Files that a person trusts, in the version they had then. A file that has changed since is not
//! trusted.

use rusqlite::OptionalExtension;

use super::OperatorState;
use crate::error::StoreError;

impl OperatorState {
    /// Trusts a file, replacing earlier trust in this path.
    pub fn trust_file(&self, path: &str, sha256: &str) -> Result<(), StoreError> {
        self.decide(|db| {
            db.execute(
                "INSERT INTO trusted_files (path, sha256) VALUES (?1, ?2)
                 ON CONFLICT (path) DO UPDATE SET sha256 = excluded.sha256
                 WHERE sha256 <> excluded.sha256",
                [path, sha256],
            )?;
            Ok(())
        })
    }

    /// Withdraws trust in a file; returns whether it was trusted.
    pub fn forget_file(&self, path: &str) -> Result<bool, StoreError> {
        self.decide(|db| Ok(db.execute("DELETE FROM trusted_files WHERE path = ?1", [path])? > 0))
    }

    /// Returns the paths of all trusted files, even if they have changed since.
    pub fn trusted_files(&self) -> Result<Vec<String>, StoreError> {
        self.ask(|db| {
            let mut statement = db.prepare_cached("SELECT path FROM trusted_files")?;
            let paths = statement.query_map([], |row| row.get(0))?;
            Ok(paths.collect::<Result<_, _>>()?)
        })
    }

    /// Returns the hash of a file when it was trusted.
    pub fn trusted_file(&self, path: &str) -> Result<Option<String>, StoreError> {
        self.ask(|db| {
            let mut statement =
                db.prepare_cached("SELECT sha256 FROM trusted_files WHERE path = ?1")?;
            Ok(statement.query_row([path], |row| row.get(0)).optional()?)
        })
    }
}
