//! Settings that the process keeps beside its records, such as which key signs.

use rusqlite::{Connection, OptionalExtension};

use crate::error::StoreError;

/// The value of a setting, if it was ever written.
pub(crate) fn get(db: &Connection, name: &str) -> Result<Option<String>, StoreError> {
    let found = db
        .query_row("SELECT value FROM settings WHERE name = ?1", [name], |row| row.get(0))
        .optional()?;
    Ok(found)
}

/// Writes a setting, in place of what it was.
pub(crate) fn set(db: &Connection, name: &str, value: &str) -> Result<(), StoreError> {
    db.execute(
        "INSERT INTO settings (name, value) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [name, value],
    )?;
    Ok(())
}
