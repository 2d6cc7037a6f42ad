//! Files that a person trusts, in the version they had then. A file that has changed since is not
//! trusted.

use rusqlite::OptionalExtension;

use super::OperatorState;
use super::decision::Scope;
use crate::error::StoreError;

impl OperatorState {
    /// Trusts a file, replacing earlier trust in this path.
    pub fn trust_file(&self, path: &str, sha256: &str) -> Result<(), StoreError> {
        self.decide(Scope::FILES, |db| {
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
        self.decide(Scope::FILES, |db| {
            Ok(db.execute("DELETE FROM trusted_files WHERE path = ?1", [path])? > 0)
        })
    }

    /// Returns the paths of all trusted files, even if they have changed since.
    pub fn trusted_files(&self) -> Result<Vec<String>, StoreError> {
        self.ask_decided(|db, signed| {
            let mut statement = db.prepare_cached("SELECT path, sha256 FROM trusted_files")?;
            let mut rows = statement.query([])?;
            let mut paths = Vec::new();
            while let Some(row) = rows.next()? {
                let (path, sha256): (String, String) = (row.get(0)?, row.get(1)?);
                if signed.is_none_or(|signed| signed.file(&path) == Some(&sha256)) {
                    paths.push(path);
                }
            }
            Ok(paths)
        })
    }

    /// Returns the hash of a file when it was trusted.
    pub fn trusted_file(&self, path: &str) -> Result<Option<String>, StoreError> {
        self.ask_decided(|db, signed| {
            let mut statement =
                db.prepare_cached("SELECT sha256 FROM trusted_files WHERE path = ?1")?;
            let found: Option<String> = statement.query_row([path], |row| row.get(0)).optional()?;
            Ok(found.filter(|sha256| signed.is_none_or(|signed| signed.file(path) == Some(sha256))))
        })
    }
}
