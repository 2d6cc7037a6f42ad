//! Compares what was measured of a call, its warnings, and the texts that are kept of it with what is
//! signed.

use receipt::Hash;
use receipt::canonical::Digest;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use serde_json::Value;

use super::columns::{member, text};
use super::records::{EVENTS, FIRST};
use crate::error::StoreError;

const DURATION: usize = FIRST + 27;
const ARGUMENTS_BYTES: usize = FIRST + 28;
const RESPONSE_BYTES: usize = FIRST + 29;
const WARNINGS: usize = FIRST + 30;
const TRUNCATED: usize = FIRST + 31;
const ARGUMENTS: usize = FIRST + 32;
const RESPONSE: usize = FIRST + 33;

/// Returns the names of what differs from the signed text.
pub(super) fn differing(row: &Row<'_>, receipt: &Value) -> Result<Vec<&'static str>, StoreError> {
    let (runtime, subject) = (&receipt["issuer"]["runtime"], &receipt["credentialSubject"]);
    let (action, outcome) = (&subject["action"], &subject["outcome"]);
    let mut found = Vec::new();
    // An announced action takes its duration later, from the record of its end.
    let is_announced = member(&subject["principal"], "id").strip_prefix("token:") == Some(EVENTS)
        && member(outcome, "status") == "pending";
    for (name, column) in [
        ("duration_us", DURATION),
        ("arguments_bytes", ARGUMENTS_BYTES),
        ("response_bytes", RESPONSE_BYTES),
    ] {
        let is_later = is_announced && column == DURATION;
        // A receipt says nothing of a zero, and a record that has one always has a number.
        let stored: Option<i64> = row.get(column)?;
        if !is_later && stored != Some(runtime[name].as_i64().unwrap_or_default()) {
            found.push(name);
        }
    }
    if !has_same_warnings(text(row, WARNINGS)?, &runtime["warnings"]) {
        found.push("warnings");
    }
    // Without a row of its texts nothing says that one was cut.
    let is_truncated = row.get::<_, Option<bool>>(TRUNCATED)?;
    if is_truncated.is_some_and(|is| is != (runtime["response_truncated"] == true)) {
        found.push("response_truncated");
    }
    for (name, column, hash, exact, kept) in [
        (
            "arguments",
            ARGUMENTS,
            &action["parameters_hash"],
            "parameters_exact_hash",
            "arguments_kept_hash",
        ),
        (
            "response",
            RESPONSE,
            &outcome["response_hash"],
            "response_exact_hash",
            "response_kept_hash",
        ),
    ] {
        let hashes = [&runtime[kept], hash, &runtime[exact]].map(Value::as_str);
        let is_signed = match row.get_ref(column)? {
            ValueRef::Null => true,
            ValueRef::Text(text) => is_signed(text, hashes),
            _ => false,
        };
        if !is_signed {
            found.push(name);
        }
    }
    Ok(found)
}

/// Reports whether a text is the one whose hash is signed: that of what is kept, where it differs
/// from the whole, else that of the canonical form or of the exact text.
fn is_signed(text: &[u8], [kept, canonical, exact]: [Option<&str>; 3]) -> bool {
    let of_text = Hash::of(text).to_string();
    if let Some(kept) = kept.or(exact) {
        return of_text == kept;
    }
    let Some(canonical) = canonical else { return false };
    // What was written anew is in canonical order already.
    of_text == canonical
        || std::str::from_utf8(text)
            .is_ok_and(|text| matches!(Digest::of_text(text), Digest::Canonical(hash) if hash.to_string() == canonical))
}

fn has_same_warnings(stored: Option<&str>, signed: &Value) -> bool {
    let stored = stored.map(serde_json::from_str::<Vec<String>>);
    let signed = signed.as_array().map(Vec::as_slice).unwrap_or_default();
    match stored {
        None => signed.is_empty(),
        Some(Ok(stored)) => stored == signed,
        Some(Err(_)) => false,
    }
}
