//! Refusals without a receipt: earlier versions signed none for a call to a tool that does not exist.
//! Their records stay sound, and a record that is added later needs a receipt.

use rusqlite::Connection;

use crate::database::settings;
use crate::error::StoreError;

/// The setting with the number of the last record that may lack a receipt.
pub(crate) const SETTING: &str = "unsigned_refusals";

/// Remembers which records earlier versions left, when this version opens the ledger first.
pub(crate) fn mark(db: &Connection) -> Result<(), StoreError> {
    if settings::get(db, SETTING)?.is_some() {
        return Ok(());
    }
    let last: Option<i64> =
        db.query_row("SELECT MAX(number) FROM activity", [], |row| row.get(0))?;
    settings::set(db, SETTING, &last.unwrap_or(0).to_string())
}
