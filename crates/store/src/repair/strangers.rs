//! Rows that nobody signed, and that nothing in the home accounts for. A repair moves them into a file,
//! so that they are kept and count no more.

use std::path::Path;

use receipt::PublicKey;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value, json};

use crate::database::aside::keep_lines;
use crate::database::transaction;
use crate::error::StoreError;
use crate::upkeep::tally;

/// Calls without an end in chains that have ended: each call that began has a receipt by then.
const PENDING: &str = "FROM activity WHERE status = 'pending' AND receipt_id IS NULL
    AND chain IN (SELECT chain FROM chains WHERE status IN ('complete', 'interrupted'))";

/// Moves them; returns what was moved, in words.
pub(super) fn remove(
    db: &Connection,
    home: &Path,
    keys: &[PublicKey],
) -> Result<Vec<String>, StoreError> {
    let mut lines = rows(db, &format!("SELECT * {PENDING}"))?;
    if tally::unsigned(db, keys)?.is_some() {
        lines.extend(rows(db, "SELECT * FROM settings WHERE name = 'expired_records'")?);
    }
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let (name, hash) = keep_lines(home, "rows", &lines)?;
    transaction::whole(db, |db| {
        db.execute(&format!("DELETE FROM touches WHERE number IN (SELECT number {PENDING})"), [])?;
        db.execute(&format!("DELETE FROM meetings WHERE number IN (SELECT number {PENDING})"), [])?;
        db.execute(&format!("DELETE FROM payloads WHERE number IN (SELECT number {PENDING})"), [])?;
        db.execute(&format!("DELETE {PENDING}"), [])?;
        if tally::unsigned(db, keys)?.is_some() {
            tally::clear(db)?;
        }
        Ok(())
    })?;
    let count = lines.len();
    Ok(vec![format!("moved {count} rows that nobody signed into '{name}' ({hash})")])
}

/// Returns the rows of a query, each as an object.
fn rows(db: &Connection, sql: &str) -> Result<Vec<String>, StoreError> {
    let mut statement = db.prepare(sql)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query([])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        let mut object = Map::new();
        for (at, name) in names.iter().enumerate() {
            let value = match row.get_ref(at)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => json!(number),
                ValueRef::Real(number) => json!(number),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    json!(String::from_utf8_lossy(bytes))
                }
            };
            object.insert(name.clone(), value);
        }
        lines.push(Value::Object(object).to_string());
    }
    Ok(lines)
}
