//! The receipts with which a person accepted losses. A verification reads them before the others.

use rusqlite::{Connection, OptionalExtension};

use crate::database::settings;
use crate::error::StoreError;

/// The setting that lists the ids of the receipts with which losses were accepted. It only says where
/// to look: the receipts are signed.
const SETTING: &str = "losses_accepted";

/// Adds a receipt to those that are read before the others.
pub(crate) fn list(db: &Connection, id: &str) -> Result<(), StoreError> {
    let mut ids = listed(db)?;
    ids.push(id.to_owned());
    settings::set(db, SETTING, &serde_json::to_string(&ids).unwrap_or_default())
}

fn listed(db: &Connection) -> Result<Vec<String>, StoreError> {
    let ids = settings::get(db, SETTING)?;
    Ok(ids.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

/// Returns the receipts with which losses were accepted, the oldest first.
pub(super) fn receipts(db: &Connection) -> Result<Vec<String>, StoreError> {
    let mut texts = Vec::new();
    let mut statement = db.prepare_cached("SELECT receipt_json FROM receipts WHERE id = ?1")?;
    for id in listed(db)? {
        texts.extend(statement.query_row([id], |row| row.get::<_, String>(0)).optional()?);
    }
    Ok(texts)
}
