//! Settings that the process keeps in the ledger, such as the key that signs.

use rusqlite::{Connection, OptionalExtension};

use crate::error::StoreError;

/// Returns the value of a setting, if it was ever written.
pub(crate) fn get(db: &Connection, name: &str) -> Result<Option<String>, StoreError> {
    let found = db
        .prepare_cached("SELECT value FROM settings WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    Ok(found)
}

/// Writes a setting, replacing its earlier value.
pub(crate) fn set(db: &Connection, name: &str, value: &str) -> Result<(), StoreError> {
    db.execute(
        "INSERT INTO settings (name, value) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [name, value],
    )?;
    Ok(())
}

/// Removes a setting.
pub(crate) fn remove(db: &Connection, name: &str) -> Result<(), StoreError> {
    db.execute("DELETE FROM settings WHERE name = ?1", [name])?;
    Ok(())
}
