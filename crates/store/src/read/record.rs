//! One record as readers see it.

use std::time::Duration;

use domain::tool::Class;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::StoreError;
use crate::limits::SIGHTINGS_MAX;
use crate::record::{RecordAgent, RecordKind, RecordStatus};
use crate::touches::{self, RecordedTouch};

/// A call or another event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Newer records have higher numbers.
    pub number: i64,
    /// Counts every change to any record; a call changes when it ends.
    pub changed: i64,
    pub id: String,
    pub kind: RecordKind,
    pub source: String,
    pub surface: String,
    pub server: String,
    pub tool: String,
    pub status: RecordStatus,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    /// None while a call runs.
    pub duration: Option<Duration>,
    pub timestamp: Timestamp,
    pub session_id: Option<String>,
    pub request_id: Option<String>,
    pub agent: RecordAgent,
    /// The main resource.
    pub target: Option<RecordedTarget>,
    /// All resources, the main one first.
    pub targets: Vec<RecordedTouch>,
    /// The rule that found the resources, or the reason that there are none.
    pub target_basis: Option<String>,
    /// The record of the same call that has its touches.
    pub joined: Option<String>,
    /// Records of the same call whose touches this one has; read only for a single record.
    pub joined_by: Vec<String>,
    pub receipt_id: Option<String>,
    pub trace_id: Option<String>,
    /// The agent's declaration, on interfaces where it makes one.
    pub intent: Option<RecordedIntent>,
    pub tool_variant: Option<String>,
    pub effective_class: Option<Class>,
    pub unverified: bool,
    pub warnings: Vec<String>,
    pub arguments_bytes: u64,
    pub response_bytes: u64,
    pub response_truncated: bool,
    /// Present only if requested and still kept.
    pub payloads: Payloads,
}

/// The main resource, as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTarget {
    pub system: String,
    pub resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedIntent {
    /// None if it was missing, for which the call was refused.
    pub operation_type: Option<String>,
    pub data_sensitivity: Option<String>,
    pub reason: Option<String>,
}

/// JSON as stored: redacted, and possibly truncated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payloads {
    pub arguments: Option<String>,
    pub response: Option<String>,
}

/// The part of a record that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordDetail {
    /// Without arguments and response.
    Brief,
    Whole,
}

/// Selects a record; `read` relies on the order of the columns. A brief record must not touch the
/// text of payloads, which may lie on many pages.
macro_rules! select {
    ($payloads:literal, $which:literal) => {
        concat!(
            "SELECT activity.number, changed, id, type, source, surface, server, tool, status,
               error_code, error_message, duration_us, started_us, session_id, request_id,
               agents.name, agents.client, agents.token, targets.system, targets.resource,
               receipt_id, trace_id, intent_type, data_sensitivity, reason, tool_variant,
               effective_class, unverified, warnings, arguments_bytes, response_bytes,
               payloads.response_truncated, ",
            $payloads,
            ", target_basis, joined FROM activity JOIN agents USING (agent) LEFT JOIN targets USING (target)
               LEFT JOIN payloads USING (number) WHERE ",
            $which
        )
    };
}

/// Returns the record of a number, if it still exists.
pub(super) fn of_number(
    db: &Connection,
    number: i64,
    detail: RecordDetail,
) -> Result<Option<Record>, StoreError> {
    let mut statement = db.prepare_cached(match detail {
        RecordDetail::Brief => select!("NULL, NULL", "activity.number = ?1"),
        RecordDetail::Whole => select!("arguments, response", "activity.number = ?1"),
    })?;
    statement.query_row([number], |row| Ok(read(db, row))).optional()?.transpose()
}

pub(super) fn of_id(db: &Connection, id: &str) -> Result<Option<Record>, StoreError> {
    let mut statement = db.prepare_cached(select!("arguments, response", "id = ?1"))?;
    let found = statement.query_row([id], |row| Ok(read(db, row))).optional()?.transpose()?;
    let Some(mut record) = found else {
        return Ok(None);
    };
    let words = "SELECT id FROM activity WHERE joined = ?1 ORDER BY number LIMIT ?2";
    let mut joined = db.prepare_cached(words)?;
    let ids = joined.query_map(params![id, SIGHTINGS_MAX], |row| row.get(0))?;
    record.joined_by = ids.collect::<Result<_, _>>()?;
    Ok(Some(record))
}

/// Returns records in the order in which they changed.
pub(super) fn changed_after(
    db: &Connection,
    change: i64,
    limit: usize,
) -> Result<Vec<Record>, StoreError> {
    let words = select!("NULL, NULL", "changed > ?1 ORDER BY changed LIMIT ?2");
    let mut statement = db.prepare_cached(words)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query([change, limit])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(read(db, row)?);
    }
    Ok(records)
}

fn read(db: &Connection, row: &Row<'_>) -> Result<Record, StoreError> {
    let number = row.get(0)?;
    let damaged = |what: &str| StoreError::Corrupt(format!("record {number}: {what}"));
    let kind: String = row.get(3)?;
    let kind = RecordKind::ALL.into_iter().find(|known| known.as_str() == kind);
    let started_us = row.get(12)?;
    Ok(Record {
        number,
        changed: row.get(1)?,
        id: row.get(2)?,
        kind: kind.ok_or_else(|| damaged("unknown type"))?,
        source: row.get(4)?,
        surface: row.get(5)?,
        server: row.get(6)?,
        tool: row.get(7)?,
        status: RecordStatus::parse(&row.get::<_, String>(8)?)
            .ok_or_else(|| damaged("unknown status"))?,
        error_code: row.get(9)?,
        error_message: row.get(10)?,
        duration: row.get::<_, Option<u64>>(11)?.map(Duration::from_micros),
        timestamp: Timestamp::from_microsecond(started_us).map_err(|_| damaged("invalid time"))?,
        session_id: row.get(13)?,
        request_id: row.get(14)?,
        agent: RecordAgent { name: row.get(15)?, client: row.get(16)?, token: row.get(17)? },
        target: target(row)?,
        targets: touches::of_record(db, number)?,
        target_basis: row.get(34)?,
        joined: row.get(35)?,
        joined_by: Vec::new(),
        receipt_id: row.get(20)?,
        trace_id: row.get(21)?,
        intent: intent(row)?,
        tool_variant: row.get(25)?,
        effective_class: class(row)?,
        unverified: row.get(27)?,
        warnings: warnings(row)?,
        arguments_bytes: row.get(29)?,
        response_bytes: row.get(30)?,
        response_truncated: row.get::<_, Option<bool>>(31)?.unwrap_or(false),
        payloads: Payloads { arguments: row.get(32)?, response: row.get(33)? },
    })
}

fn target(row: &Row<'_>) -> Result<Option<RecordedTarget>, StoreError> {
    let system: Option<String> = row.get(18)?;
    let resource: Option<String> = row.get(19)?;
    Ok(system.zip(resource).map(|(system, resource)| RecordedTarget { system, resource }))
}

fn intent(row: &Row<'_>) -> Result<Option<RecordedIntent>, StoreError> {
    let operation_type: Option<String> = row.get(22)?;
    let reason: Option<String> = row.get(24)?;
    if operation_type.is_none() && reason.is_none() {
        return Ok(None);
    }
    Ok(Some(RecordedIntent { operation_type, data_sensitivity: row.get(23)?, reason }))
}

fn class(row: &Row<'_>) -> Result<Option<Class>, StoreError> {
    Ok(row.get::<_, Option<String>>(26)?.and_then(|text| Class::parse(&text)))
}

fn warnings(row: &Row<'_>) -> Result<Vec<String>, StoreError> {
    let text: Option<String> = row.get(28)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}
