//! Receipts as queries see them: a view of each connection, in which their texts are not packed.

use std::borrow::Cow;

use receipt::packed::unpack;
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::{Value, ValueRef};

use crate::database::schema;
use crate::error::StoreError;

/// Receipts of our ledger.
const OURS: &str = "CREATE TEMP VIEW receipts AS
  SELECT number AS receipt_number, id, chain_id, sequence, own, NULL AS tool_name,
    'sha256:' || lower(hex(hash)) AS receipt_hash, receipt_text(packed) AS receipt_json
  FROM main.signed_receipts";

/// Receipts of another program's file, whose table is the published one.
const THEIRS: &str = "CREATE TEMP VIEW receipts AS
  SELECT rowid AS receipt_number, id, chain_id, sequence, action_type AS own, tool_name, receipt_hash,
    receipt_json
  FROM main.receipts";

/// Reports whether the file has a table of receipts, ours or the published one.
pub(crate) fn has_any(db: &Connection) -> Result<bool, StoreError> {
    Ok(schema::has_table(db, "signed_receipts")? || schema::has_table(db, "receipts")?)
}

/// Makes the view of our ledger, whose tables may be created later.
pub(crate) fn view_ours(db: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    db.create_scalar_function("receipt_text", 1, flags, |context| {
        let text = String::from_utf8(text(context.get_raw(0)).into_owned());
        Ok(text.map_or_else(|error| Value::Blob(error.into_bytes()), Value::Text))
    })?;
    db.execute_batch(OURS)
}

/// Makes the view of any file with receipts.
pub(crate) fn view(db: &Connection) -> Result<(), StoreError> {
    if schema::has_table(db, "signed_receipts")? {
        view_ours(db)?;
    } else if schema::has_table(db, "receipts")? {
        db.execute_batch(THEIRS)?;
    }
    Ok(())
}

/// Returns the SQL for a member of a receipt's text; a text that is not JSON has none.
pub(crate) fn member(path: &str) -> String {
    format!("CASE WHEN json_valid(receipt_json) THEN json_extract(receipt_json, '{path}') END")
}

/// Returns the text of a receipt as it is stored. A value that is not a packed text is returned as it
/// is, so that its reader finds no receipt.
pub(crate) fn text(value: ValueRef<'_>) -> Cow<'_, [u8]> {
    match value {
        ValueRef::Blob(packed) => unpack(packed).map_or(Cow::Borrowed(packed), Cow::Owned),
        ValueRef::Text(text) => Cow::Borrowed(text),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => Cow::Borrowed(b""),
    }
}
