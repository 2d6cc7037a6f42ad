//! Rows that nobody signed, and those that are no longer as they were signed. A repair moves them into a
//! file, so that they are kept and count no more.

use std::path::Path;

use receipt::PublicKey;
use receipt::verify::SignedReceipt;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde_json::{Map, Value, json};

use crate::database::aside::keep_lines;
use crate::database::transaction;
use crate::error::StoreError;
use crate::upkeep::tally;
use crate::write::heads;

/// Calls without an end in chains that have ended: each call that began has a receipt by then.
const PENDING: &str = "FROM activity WHERE status = 'pending' AND receipt_id IS NULL
    AND chain IN (SELECT chain FROM chains WHERE status IN ('complete', 'interrupted', 'unclosed'))";

/// Touches of records that are gone. They are made again with the records.
const LONE_TOUCHES: &str = "FROM touches WHERE number NOT IN (SELECT number FROM activity)";

/// Moves such calls, and a count of deletions that is not signed; returns what was moved, in words.
pub(super) fn remove(
    db: &Connection,
    home: &Path,
    keys: &[PublicKey],
) -> Result<Option<String>, StoreError> {
    let mut lines = rows(db, &format!("SELECT * {PENDING}"))?;
    let is_unsigned = tally::unsigned(db, keys)?.is_some();
    if is_unsigned {
        lines.extend(rows(db, "SELECT * FROM settings WHERE name = 'expired_records'")?);
    }
    let of_them = |table: &str| {
        db.execute(&format!("DELETE FROM {table} WHERE number IN (SELECT number {PENDING})"), [])
    };
    kept(db, home, ("rows that nobody signed", &lines), || {
        for table in ["touches", "meetings", "payloads", "activity"] {
            of_them(table)?;
        }
        if is_unsigned { tally::clear(db) } else { Ok(()) }
    })
}

/// Moves the touches of records that are gone; returns what was moved, in words.
pub(super) fn remove_lone_touches(
    db: &Connection,
    home: &Path,
) -> Result<Option<String>, StoreError> {
    let lines = rows(db, &format!("SELECT * {LONE_TOUCHES}"))?;
    kept(db, home, ("touches of records that are gone", &lines), || {
        Ok(db.execute(&format!("DELETE {LONE_TOUCHES}"), []).map(drop)?)
    })
}

/// Moves receipts that are not as they were signed, whoever signed them, so that their places are free
/// for the right ones; returns what was moved, in words.
pub(super) fn remove_altered_receipts(
    db: &Connection,
    home: &Path,
) -> Result<Option<String>, StoreError> {
    db.execute_batch("CREATE TEMP TABLE altered (number INTEGER PRIMARY KEY)")?;
    let mut statement = db.prepare(
        "SELECT receipt_number, id, chain_id, sequence, receipt_hash, CAST(receipt_json AS BLOB)
         FROM receipts",
    )?;
    let mut receipts = statement.query([])?;
    while let Some(row) = receipts.next()? {
        if !is_as_signed(row).unwrap_or(false) {
            let words = "INSERT INTO temp.altered VALUES (?1)";
            db.prepare_cached(words)?.execute([row.get::<_, i64>(0)?])?;
        }
    }
    let lines = rows(
        db,
        "SELECT number, id, chain_id, sequence, own, hex(hash) AS hash, hex(packed) AS packed
         FROM signed_receipts JOIN temp.altered USING (number)",
    )?;
    let done = kept(db, home, ("receipts that are not as they were signed", &lines), || {
        let words = "DELETE FROM signed_receipts WHERE number IN (SELECT number FROM temp.altered)";
        db.execute(words, [])?;
        heads::recount(db)
    })?;
    drop(receipts);
    drop(statement);
    db.execute_batch("DROP TABLE temp.altered")?;
    Ok(done)
}

/// Reports whether a row has what its receipt says, and the key that the receipt names signed it.
fn is_as_signed(row: &Row<'_>) -> rusqlite::Result<bool> {
    let (id, chain): (String, String) = (row.get(1)?, row.get(2)?);
    let (sequence, hash): (u64, String) = (row.get(3)?, row.get(4)?);
    let text = String::from_utf8_lossy(row.get_ref(5)?.as_bytes()?);
    let Ok((signed, members)) = SignedReceipt::read(&text) else { return Ok(false) };
    let key = members["issuer"]["id"].as_str().and_then(|did| PublicKey::from_did(did).ok());
    let is_signed = key.is_some_and(|key| signed.verify(&key).is_ok());
    let is_in_place = (&signed.link.chain_id, signed.link.sequence) == (&chain, sequence);
    Ok(is_signed && is_in_place && signed.id == id && signed.hash.to_string() == hash)
}

/// Writes rows to a file of the home, and then removes them; returns what was moved, in words.
pub(super) fn kept(
    db: &Connection,
    home: &Path,
    (what, lines): (&str, &[String]),
    remove: impl FnOnce() -> Result<(), StoreError>,
) -> Result<Option<String>, StoreError> {
    if lines.is_empty() {
        return Ok(None);
    }
    let (name, hash) = keep_lines(home, "rows", lines)?;
    transaction::whole(db, |_| remove())?;
    Ok(Some(format!("moved {} {what} into '{name}' ({hash})", lines.len())))
}

/// Returns the rows of a query, each as an object.
pub(super) fn rows(db: &Connection, sql: &str) -> Result<Vec<String>, StoreError> {
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
