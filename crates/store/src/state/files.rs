//! Files that a person trusts, as they were then. A file that has changed since is another one.

use rusqlite::OptionalExtension;

use super::OperatorState;
use crate::error::StoreError;

impl OperatorState {
    /// Takes the place of what was trusted under this path before.
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

    /// Returns whether it was trusted.
    pub fn forget_file(&self, path: &str) -> Result<bool, StoreError> {
        self.decide(|db| Ok(db.execute("DELETE FROM trusted_files WHERE path = ?1", [path])? > 0))
    }

    /// The paths of all files that were trusted, whatever became of them since.
    pub fn trusted_files(&self) -> Result<Vec<String>, StoreError> {
        self.ask(|db| {
            let mut statement = db.prepare_cached("SELECT path FROM trusted_files")?;
            let paths = statement.query_map([], |row| row.get(0))?;
            Ok(paths.collect::<Result<_, _>>()?)
        })
    }

    /// The hash that a trusted file had.
    pub fn trusted_file(&self, path: &str) -> Result<Option<String>, StoreError> {
        self.ask(|db| {
            let mut statement =
                db.prepare_cached("SELECT sha256 FROM trusted_files WHERE path = ?1")?;
            Ok(statement.query_row([path], |row| row.get(0)).optional()?)
        })
    }
}
