//! Deletes records, payloads and runs, a few in one transaction, and counts them in the same
//! transaction.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use super::tally::{self, ExpiredData, ExpiredKind, ExpiryReason};
use crate::database::transaction;
use crate::error::StoreError;

/// The result of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deleted {
    pub(crate) rows: usize,
    /// The bytes of the pages that became free.
    pub(crate) bytes: u64,
}

/// A row to delete: a record, a payload or a step.
#[derive(Clone, Debug)]
pub(crate) struct ExpiringRow {
    pub(crate) number: i64,
    /// The time of its record.
    pub(crate) at_us: Option<i64>,
    /// The bytes of its texts that were measured.
    pub(crate) bytes: u64,
    /// The token or workflow that it leaves for; none if it leaves for its age.
    pub(crate) holder: Option<Arc<str>>,
}

/// Deletes the oldest records from before a time, with their payloads and touches.
pub(crate) fn records(db: &Connection, before_us: i64, most: usize) -> Result<Deleted, StoreError> {
    step(db, |db| {
        let old = old_rows(
            db,
            "SELECT number, started_us FROM activity INDEXED BY activity_started
             WHERE started_us < ?1 ORDER BY started_us LIMIT ?2",
            before_us,
            most,
        )?;
        delete_records(db, &old, ExpiryReason::Age)
    })
}

/// Deletes these records, with their payloads and touches.
pub(crate) fn planned_records(
    db: &Connection,
    rows: &[ExpiringRow],
    reason: ExpiryReason,
) -> Result<Deleted, StoreError> {
    step(db, |db| delete_records(db, rows, reason))
}

/// Deletes those of the records that are still there, and returns their number.
fn delete_records(
    db: &Connection,
    rows: &[ExpiringRow],
    reason: ExpiryReason,
) -> Result<usize, StoreError> {
    let mut known =
        db.prepare_cached("SELECT 1 FROM activity WHERE number = ?1 AND started_us IS ?2")?;
    let mut touches = db.prepare_cached("DELETE FROM touches WHERE number = ?1")?;
    let mut meetings = db.prepare_cached("DELETE FROM meetings WHERE number = ?1")?;
    let mut record = db.prepare_cached("DELETE FROM activity WHERE number = ?1")?;
    let (mut payloads, mut records) = (Vec::new(), Vec::new());
    for row in rows {
        if !known.exists(params![row.number, row.at_us])? {
            continue;
        }
        payloads.extend(delete_payload(db, row)?);
        touches.execute([row.number])?;
        meetings.execute([row.number])?;
        record.execute([row.number])?;
        records.push(row.clone());
    }
    count(db, ExpiredKind::Payloads, reason, &payloads)?;
    count(db, ExpiredKind::Records, reason, &records)?;
    Ok(records.len())
}

/// Deletes the payload of a record, and returns what was deleted; none if there is none any more.
fn delete_payload(db: &Connection, row: &ExpiringRow) -> Result<Option<ExpiringRow>, StoreError> {
    let mut payload = db.prepare_cached(
        "DELETE FROM payloads WHERE number = ?1
           AND (SELECT started_us FROM activity WHERE activity.number = ?1) IS ?2
         RETURNING COALESCE(octet_length(arguments), 0) + COALESCE(octet_length(response), 0)",
    )?;
    let bytes = payload.query_row(params![row.number, row.at_us], |row| row.get(0)).optional()?;
    Ok(bytes.map(|bytes| ExpiringRow { bytes, ..row.clone() }))
}

/// Deletes these payloads.
pub(crate) fn planned_payloads(
    db: &Connection,
    rows: &[ExpiringRow],
) -> Result<Deleted, StoreError> {
    step(db, |db| {
        let mut deleted = Vec::new();
        for row in rows {
            deleted.extend(delete_payload(db, row)?);
        }
        count(db, ExpiredKind::Payloads, ExpiryReason::Size, &deleted)?;
        Ok(deleted.len())
    })
}

/// Deletes the outputs of these steps, with the texts and outcomes of the same time.
pub(crate) fn planned_outputs(
    db: &Connection,
    rows: &[ExpiringRow],
) -> Result<Deleted, StoreError> {
    step(db, |db| {
        let mut output = db.prepare_cached(
            "UPDATE run_steps SET output = NULL, stderr = NULL
             WHERE rowid = ?1 AND (output IS NOT NULL OR stderr IS NOT NULL)",
        )?;
        let mut texts = db.prepare_cached(
            "DELETE FROM run_texts WHERE (run, step) IN
               (SELECT run, number FROM run_steps WHERE rowid = ?1)",
        )?;
        let mut outcomes = db.prepare_cached(
            "DELETE FROM run_outcomes WHERE run = (SELECT run FROM run_steps WHERE rowid = ?1)",
        )?;
        let mut deleted = Vec::new();
        for row in rows {
            if output.execute([row.number])? > 0 {
                texts.execute([row.number])?;
                outcomes.execute([row.number])?;
                deleted.push(row.clone());
            }
        }
        count(db, ExpiredKind::StepOutputs, ExpiryReason::Size, &deleted)?;
        Ok(deleted.len())
    })
}

/// Deletes ended runs that began before a time, each once its steps are gone.
pub(crate) fn runs(db: &Connection, before_us: i64, most: usize) -> Result<Deleted, StoreError> {
    const OLD: &str = "SELECT number, started_us FROM runs
        WHERE started_us < ?1 AND status <> 'running' ORDER BY started_us LIMIT ?2";
    if old_rows(db, OLD, before_us, 1)?.is_empty() {
        return Ok(Deleted::default());
    }
    step(db, |db| {
        let mut left = most;
        let mut ended = Vec::new();
        let mut steps = db.prepare_cached(
            "DELETE FROM run_steps WHERE rowid IN
               (SELECT rowid FROM run_steps WHERE run = ?1 LIMIT ?2)",
        )?;
        for run in old_rows(db, OLD, before_us, most)? {
            for table in ["run_texts", "run_outcomes", "run_sources"] {
                let sql = format!("DELETE FROM {table} WHERE run = ?1");
                db.prepare_cached(&sql)?.execute([run.number])?;
            }
            let deleted = steps.execute(params![run.number, limit(left)])?;
            left = left.saturating_sub(deleted.max(1));
            let is_empty = "NOT EXISTS (SELECT 1 FROM run_steps WHERE run = runs.number)";
            let sql = format!("DELETE FROM runs WHERE number = ?1 AND {is_empty}");
            if db.prepare_cached(&sql)?.execute([run.number])? > 0 {
                ended.push(run);
            }
            if left == 0 {
                break;
            }
        }
        count(db, ExpiredKind::Runs, ExpiryReason::Age, &ended)?;
        Ok(most - left)
    })
}

/// Runs one step in a transaction, and measures the pages that it freed.
fn step(
    db: &Connection,
    work: impl FnOnce(&Connection) -> Result<usize, StoreError>,
) -> Result<Deleted, StoreError> {
    transaction::whole(db, |db| {
        let before = free_bytes(db)?;
        let rows = work(db)?;
        Ok(Deleted { rows, bytes: free_bytes(db)?.saturating_sub(before) })
    })
}

fn old_rows(
    db: &Connection,
    sql: &str,
    before_us: i64,
    most: usize,
) -> Result<Vec<ExpiringRow>, StoreError> {
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map(params![before_us, limit(most)], |row| {
        Ok(ExpiringRow { number: row.get(0)?, at_us: row.get(1)?, bytes: 0, holder: None })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn count(
    db: &Connection,
    kind: ExpiredKind,
    reason: ExpiryReason,
    rows: &[ExpiringRow],
) -> Result<(), StoreError> {
    tally::add(db, rows.iter().map(|row| ExpiredData::of_row(kind, reason, row)))
}

fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

fn pragma(db: &Connection, name: &str) -> Result<u64, StoreError> {
    Ok(db.pragma_query_value(None, name, |row| row.get(0))?)
}

fn free_bytes(db: &Connection) -> Result<u64, StoreError> {
    Ok(pragma(db, "freelist_count")? * pragma(db, "page_size")?)
}

/// Returns the bytes in use in the file; free pages do not count.
pub(crate) fn used_bytes(db: &Connection) -> Result<u64, StoreError> {
    let all = pragma(db, "page_count")? * pragma(db, "page_size")?;
    Ok(all.saturating_sub(free_bytes(db)?))
}
