//! Compares the records of `activity` with the signed receipts: a record repeats what its receipt
//! says, a receipt of a call has a record unless its deletion is stated, and only some records have
//! no receipt.

use jiff::Timestamp;
use receipt::audit::Audit;
use rusqlite::{Connection, Row};
use serde_json::Value;

use super::columns::{self, member, text};
use super::{measured, touches};
use crate::database::timestamp;
use crate::error::StoreError;
use crate::limits::SEARCH_STEP;
use crate::read::reader::Reader;
use crate::record::RecordKind;
use crate::write::compose::{OUTCOME, RECORD_TYPE};

/// The columns of a record, in the order of the query, after those of its receipt.
pub(super) const RECORD_COLUMNS: &str = "activity.server, activity.tool, activity.source, \
    activity.surface, activity.session_id, activity.request_id, activity.tool_variant, \
    activity.intent_type, activity.effective_class, activity.data_sensitivity, activity.reason, \
    activity.trace_id, activity.error_code, activity.error_message, activity.receipt_id, \
    activity.status, agents.name, agents.client, agents.token, targets.system, targets.resource, \
    activity.started_us, activity.unverified, activity.number, activity.correlation_id, \
    activity.target_basis, activity.joined, activity.duration_us, activity.arguments_bytes, \
    activity.response_bytes, activity.warnings, payloads.response_truncated, payloads.arguments, \
    payloads.response, activity.type, activity.target";

pub(super) const FIRST: usize = 2 + columns::COUNT;
pub(super) const STATUS: usize = FIRST + 15;
const STARTED: usize = FIRST + 21;
const TYPE: usize = FIRST + 34;
const TARGET: usize = FIRST + 35;
const NUMBER: usize = FIRST + 23;

/// The words of a receipt whose record is gone.
const MISSING: &str = "its record is missing from activity";

/// The token of events from outside, whose receipts name the agent as the sender does.
pub(super) const EVENTS: &str = "events";

/// The result of comparing a receipt with its record.
pub(super) enum RecordCheck {
    Sound,
    /// The record of a call of this token that began at this time is gone.
    Missing(String, Timestamp),
    /// These columns of the record are not what is signed.
    Differs(Vec<&'static str>),
    Fault(String),
}

/// Compares the record in a row with the members of its receipt.
pub(super) fn check(row: &Row<'_>, receipt: &Value) -> Result<RecordCheck, StoreError> {
    let subject = &receipt["credentialSubject"];
    let Some(token) = member(&subject["principal"], "id").strip_prefix("token:") else {
        return Ok(RecordCheck::Sound);
    };
    let started = member(&subject["action"], "timestamp");
    if text(row, STATUS)?.is_none() {
        return Ok(match started.parse() {
            Ok(started) => RecordCheck::Missing(token.to_owned(), started),
            Err(_) => RecordCheck::Fault(MISSING.to_owned()),
        });
    }
    let mut found = differing_texts(row, receipt, token)?;
    let microseconds = row.get::<_, Option<i64>>(STARTED)?.unwrap_or_default();
    if !is_same_time(microseconds, started) {
        found.push("started_us");
    }
    found.extend(measured::differing(row, receipt)?);
    let is_unverified = receipt["issuer"]["runtime"]["unverified"] == true;
    if row.get::<_, Option<bool>>(STARTED + 1)?.unwrap_or_default() != is_unverified {
        found.push("unverified");
    }
    Ok(if found.is_empty() { RecordCheck::Sound } else { RecordCheck::Differs(found) })
}

/// A record that is not what its receipt says.
pub(crate) struct AlteredRecord {
    pub(crate) number: i64,
    /// The names of what differs.
    pub(crate) columns: Vec<&'static str>,
    pub(crate) receipt: Value,
}

/// Returns the records of a chain that are not what their receipts say, whose signatures the caller has
/// verified. Records of events from outside follow other records and are left out.
pub(crate) fn altered(db: &Connection, chain_id: &str) -> Result<Vec<AlteredRecord>, StoreError> {
    let mut statement = db.prepare_cached(&super::page_query(true))?;
    let mut rows = statement.query((chain_id, i64::MIN, i64::MAX))?;
    let mut altered = Vec::new();
    while let Some(row) = rows.next()? {
        let receipt: Value =
            serde_json::from_str(text(row, 1)?.unwrap_or_default()).unwrap_or_default();
        let of_events = receipt["credentialSubject"]["principal"]["id"] == "token:events";
        let mut columns = match check(row, &receipt)? {
            RecordCheck::Differs(columns) => columns,
            RecordCheck::Sound => Vec::new(),
            RecordCheck::Missing(..) | RecordCheck::Fault(_) => continue,
        };
        columns.extend(touches::differing(db, row, &receipt)?);
        if let (false, false, Some(number)) = (columns.is_empty(), of_events, row.get(NUMBER)?) {
            altered.push(AlteredRecord { number, columns, receipt });
        }
    }
    Ok(altered)
}

/// Returns the names of the columns of a record whose text differs from its receipt.
fn differing_texts(
    row: &Row<'_>,
    receipt: &Value,
    token: &str,
) -> Result<Vec<&'static str>, StoreError> {
    let (issuer, subject) = (&receipt["issuer"], &receipt["credentialSubject"]);
    let (runtime, action) = (&issuer["runtime"], &subject["action"]);
    let outcome = &subject["outcome"];
    let of = |name| member(runtime, name);
    let mut found = Vec::new();
    let names: [(&'static str, &str); 13] = [
        ("server", of("server")),
        ("tool", of("tool")),
        ("source", of("source")),
        ("surface", of("surface")),
        ("session_id", member(issuer, "session_id")),
        ("request_id", member(action, "idempotency_key")),
        ("tool_variant", of("tool_variant")),
        ("intent_type", of("declared_class")),
        ("effective_class", of("effective_class")),
        ("data_sensitivity", of("data_sensitivity")),
        ("reason", of("reason")),
        ("trace_id", of("trace_id")),
        ("error_code", of("verdict")),
    ];
    for (index, (name, signed)) in names.into_iter().enumerate() {
        if text(row, FIRST + index)?.unwrap_or_default() != signed {
            found.push(name);
        }
    }
    let signed = runtime[RECORD_TYPE].as_str().unwrap_or(RecordKind::ToolCall.as_str());
    if text(row, TYPE)? != Some(signed) {
        found.push("type");
    }
    let (code, message) = (text(row, FIRST + 12)?, text(row, FIRST + 13)?);
    if !is_error(code, message, member(outcome, "error")) {
        found.push("error_message");
    }
    if text(row, FIRST + 14)? != receipt["id"].as_str() {
        found.push("receipt_id");
    }
    let is_own = token != EVENTS;
    let is_interrupted = runtime["interrupted"] == true;
    // The record of an announced call takes the outcome of the call.
    let is_announced = !is_own && member(outcome, "status") == "pending";
    let status = text(row, STATUS)?;
    let signed = member(outcome, "status");
    if !is_announced && !is_outcome(status, signed, (is_interrupted, of(OUTCOME))) {
        found.push("status");
    }
    let (name, client) = (text(row, FIRST + 16)?, text(row, FIRST + 17)?);
    let is_agent = name.unwrap_or_default() == of("agent_id")
        && client.unwrap_or_default() == member(issuer, "name");
    if (is_own && !is_agent) || text(row, FIRST + 18)? != Some(token) {
        found.push("agent");
    }
    let signed = action["target"].get("resource").and_then(Value::as_str);
    let system = signed.and_then(|_| action["target"]["system"].as_str());
    let is_named = row.get::<_, Option<i64>>(TARGET)?.is_some() == signed.is_some();
    if !is_named || (text(row, FIRST + 19)?, text(row, FIRST + 20)?) != (system, signed) {
        found.push("target");
    }
    Ok(found)
}

/// Reports whether a code and a message make up the error that is signed.
fn is_error(code: Option<&str>, message: Option<&str>, signed: &str) -> bool {
    match (code, message) {
        (Some(code), Some(message)) => signed
            .strip_prefix(code)
            .and_then(|rest| rest.strip_prefix(": "))
            .is_some_and(|rest| rest == message),
        (Some(one), None) | (None, Some(one)) => signed == one,
        (None, None) => signed.is_empty(),
    }
}

/// Reports whether a record's status agrees with the outcome that is signed.
fn is_outcome(
    status: Option<&str>,
    signed: &str,
    (is_interrupted, precisely): (bool, &str),
) -> bool {
    match status {
        Some("success") => signed == "success",
        Some("error") => signed == "failure" && precisely.is_empty(),
        Some("blocked" | "cancelled" | "unknown") => {
            signed == "failure" && status == Some(precisely)
        }
        Some("interrupted") => signed == "pending" && is_interrupted,
        Some("pending") => signed == "pending" && !is_interrupted,
        Some(_) | None => false,
    }
}

/// Reports whether a time in microseconds is written like this, with milliseconds.
fn is_same_time(microseconds: i64, signed: &str) -> bool {
    timestamp::read(microseconds).is_ok_and(|at| timestamp::text(at) == signed)
}

/// A record without a receipt.
struct LoneRecord {
    id: String,
    chain_id: Option<String>,
    has_receipt_id: bool,
}

impl Reader {
    /// Finds the records that should have a receipt and have none.
    pub(super) fn audit_records(&self, audit: &mut Audit) -> Result<(), StoreError> {
        let sql = "SELECT MIN(number), MAX(number) FROM activity";
        let (first, last): (Option<i64>, Option<i64>) =
            self.pool.ask(|db| Ok(db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?))?;
        let (Some(mut from), Some(last)) = (first, last) else {
            return Ok(());
        };
        let mut strangers = 0;
        while from <= last {
            let upto = from + SEARCH_STEP;
            for record in self.pool.ask_in_passing(|db| lone_records(db, from, upto))? {
                match &record.chain_id {
                    Some(chain_id) if audit.is_expired(chain_id) => {}
                    Some(chain_id) => audit.missing_receipt(chain_id, record.fault()),
                    None => strangers += 1,
                }
            }
            from = upto;
        }
        if strangers > 0 {
            audit.fault_of_ledger(format!("{strangers} records of activity belong to no chain"));
        }
        Ok(())
    }
}

impl LoneRecord {
    fn fault(&self) -> String {
        let id = &self.id;
        if self.has_receipt_id {
            format!("the receipt of record {id} is missing")
        } else {
            format!("record {id} names no receipt")
        }
    }
}

/// Returns ended records in a range whose receipt is not there, unless their chain is a foreign one.
fn lone_records(db: &Connection, from: i64, upto: i64) -> Result<Vec<LoneRecord>, StoreError> {
    let mut statement = db.prepare_cached(
        "SELECT activity.id, chains.chain_id, activity.receipt_id IS NOT NULL
         FROM activity LEFT JOIN chains USING (chain)
         WHERE activity.number >= ?1 AND activity.number < ?2
           AND (activity.receipt_id IS NOT NULL OR activity.status <> 'pending'
             OR chains.status IN ('complete', 'interrupted'))
           AND NOT EXISTS (SELECT 1 FROM receipts WHERE receipts.id = activity.receipt_id)",
    )?;
    let rows = statement.query_map((from, upto), |row| {
        Ok(LoneRecord { id: row.get(0)?, chain_id: row.get(1)?, has_receipt_id: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upkeep::stated::{RECORDS_EXPIRED, StatedDeletions};

    #[test]
    fn a_signed_receipt_can_state_that_records_were_deleted() {
        let mut stated = StatedDeletions::default();
        let deletion = serde_json::json!([
            {"kind": "payloads", "from": "2026-01-01T00:00:00Z", "to": "2026-01-09T00:00:00Z"},
            {"kind": "records", "from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"},
            {"kind": "records", "holder": "one", "from": "2026-02-01T00:00:00Z",
             "to": "2026-02-02T00:00:00Z"}]);
        let receipt = |kind: &str| {
            serde_json::json!({"credentialSubject": {"action": {"type": kind}},
                "issuer": {"runtime": {"expired_records": deletion}}})
        };
        let at = |text: &str| text.parse().unwrap();
        stated.add(&receipt("data.api.read"));
        assert!(!stated.cover("one", at("2026-01-01T12:00:00Z")), "a call states nothing");
        stated.add(&receipt(RECORDS_EXPIRED));
        assert!(stated.cover("one", at("2026-01-01T12:00:00Z")));
        assert!(!stated.cover("one", at("2026-01-03T00:00:00Z")));
        assert!(stated.cover("one", at("2026-02-01T12:00:00Z")));
        assert!(!stated.cover("two", at("2026-02-01T12:00:00Z")), "none of its were deleted");
    }

    #[test]
    fn the_error_and_the_status_are_those_of_the_receipt() {
        for (code, message, signed, expected) in [
            (None, None, "", true),
            (Some("TIMEOUT"), None, "TIMEOUT", true),
            (None, Some("it broke"), "it broke", true),
            (Some("TIMEOUT"), Some("too slow"), "TIMEOUT: too slow", true),
            (Some("TIMEOUT"), Some("too"), "TIMEOUT: too slow", false),
            (None, None, "TIMEOUT", false),
        ] {
            assert_eq!(is_error(code, message, signed), expected, "{signed}");
        }
        let (plain, interrupted) = ((false, ""), (true, ""));
        let [unknown, blocked] = ["unknown", "blocked"].map(|word| (false, word));
        for (status, signed, marks, expected) in [
            ("success", "success", plain, true),
            ("success", "failure", plain, false),
            ("error", "failure", plain, true),
            ("error", "success", plain, false),
            ("error", "failure", unknown, false),
            ("error", "failure", blocked, false),
            ("blocked", "failure", blocked, true),
            ("blocked", "failure", plain, false),
            ("cancelled", "failure", blocked, false),
            ("unknown", "failure", unknown, true),
            ("unknown", "failure", plain, false),
            ("unknown", "success", unknown, false),
            ("interrupted", "pending", interrupted, true),
            ("interrupted", "pending", plain, false),
            ("pending", "pending", plain, true),
            ("pending", "pending", interrupted, false),
            ("else", "success", plain, false),
        ] {
            assert_eq!(is_outcome(Some(status), signed, marks), expected, "{status} {signed}");
        }
    }
}
