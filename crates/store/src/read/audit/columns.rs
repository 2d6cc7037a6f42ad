//! Compares the columns of `signed_receipts` with the signed text that they repeat.

use receipt::audit::ReadReceipt;
use rusqlite::Row;
use serde_json::Value;

use crate::error::StoreError;
use crate::write::link::own_type;

/// The columns that are compared, in the order of the query, after the sequence and the text.
pub(super) const RECEIPT_COLUMNS: &str = "receipts.id, receipts.own, receipts.receipt_hash";

const FIRST: usize = 2;
pub(super) const COUNT: usize = 3;

/// Returns the names of the columns that differ from the text.
pub(super) fn differing(
    row: &Row<'_>,
    chain_id: &str,
    read: &ReadReceipt,
) -> Result<Vec<&'static str>, StoreError> {
    let (members, hash) = (&read.members, read.hash.to_string());
    let subject = &members["credentialSubject"];
    let chain = &subject["chain"];
    let signed: [(&str, Option<&str>); COUNT] = [
        ("id", members["id"].as_str()),
        ("own", subject["action"]["type"].as_str().and_then(own_type)),
        ("hash", Some(&hash)),
    ];
    let mut found = Vec::new();
    for (index, (name, signed)) in signed.into_iter().enumerate() {
        if text(row, FIRST + index)? != signed {
            found.push(name);
        }
    }
    if chain["chain_id"].as_str() != Some(chain_id) {
        found.push("chain_id");
    }
    if chain["sequence"].as_i64() != row.get::<_, Option<i64>>(0)? {
        found.push("sequence");
    }
    Ok(found)
}

/// Returns the text of a column; none for a value that is not text.
pub(super) fn text<'a>(row: &'a Row<'_>, index: usize) -> Result<Option<&'a str>, StoreError> {
    Ok(row.get_ref(index)?.as_str().ok())
}

/// Returns a member's text; empty if there is none.
pub(super) fn member<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}
