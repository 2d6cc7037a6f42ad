//! Compares the columns of `receipts` with the signed text that they repeat.

use receipt::audit::ReadReceipt;
use rusqlite::Row;
use serde_json::Value;

use crate::error::StoreError;

/// The columns that are compared, in the order of the query, after the sequence and the text.
pub(super) const RECEIPT_COLUMNS: &str = "receipts.id, receipts.action_type, receipts.tool_name, \
    receipts.risk_level, receipts.status, receipts.timestamp, receipts.issuer_id, \
    receipts.principal_id, receipts.receipt_hash, receipts.previous_receipt_hash, \
    receipts.created_at";

const FIRST: usize = 2;
pub(super) const COUNT: usize = 11;

/// Returns the names of the columns that differ from the text.
pub(super) fn differing(
    row: &Row<'_>,
    chain_id: &str,
    read: &ReadReceipt,
) -> Result<Vec<&'static str>, StoreError> {
    let (members, hash) = (&read.members, read.hash.to_string());
    let (issuer, subject) = (&members["issuer"], &members["credentialSubject"]);
    let (action, chain) = (&subject["action"], &subject["chain"]);
    let tool = issuer["runtime"]["tool"].as_str().unwrap_or_default();
    let signed: [(&str, Option<&str>); COUNT] = [
        ("id", members["id"].as_str()),
        ("action_type", action["type"].as_str()),
        ("tool_name", Some(tool)),
        ("risk_level", action["risk_level"].as_str()),
        ("status", subject["outcome"]["status"].as_str()),
        ("timestamp", action["timestamp"].as_str()),
        ("issuer_id", issuer["id"].as_str()),
        ("principal_id", subject["principal"]["id"].as_str()),
        ("receipt_hash", Some(&hash)),
        ("previous_receipt_hash", chain["previous_receipt_hash"].as_str()),
        ("created_at", members["issuanceDate"].as_str()),
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
