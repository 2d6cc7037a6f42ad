//! Deletes records, payloads and runs, oldest first, a few in one transaction, and counts them in
//! the same transaction.

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

/// A row to delete: its number, and the time of its record.
struct OldRow {
    number: i64,
    at_us: Option<i64>,
}

/// Deletes the oldest records from before a time, with their payloads and touches.
pub(crate) fn records(
    db: &Connection,
    before_us: i64,
    most: usize,
    reason: ExpiryReason,
) -> Result<Deleted, StoreError> {
    step(db, |db| {
        let old = old_rows(
            db,
            "SELECT number, started_us FROM activity INDEXED BY activity_started
             WHERE started_us < ?1 ORDER BY started_us LIMIT ?2",
            before_us,
            most,
        )?;
        let mut payload = db.prepare_cached("DELETE FROM payloads WHERE number = ?1")?;
        let mut touches = db.prepare_cached("DELETE FROM touches WHERE number = ?1")?;
        let mut meetings = db.prepare_cached("DELETE FROM meetings WHERE number = ?1")?;
        let mut record = db.prepare_cached("DELETE FROM activity WHERE number = ?1")?;
        let mut payloads = Vec::new();
        for row in &old {
            if payload.execute([row.number])? > 0 {
                payloads.extend(row.at_us);
            }
            touches.execute([row.number])?;
            meetings.execute([row.number])?;
            record.execute([row.number])?;
        }
        count(db, ExpiredKind::Payloads, reason, &payloads)?;
        count(db, ExpiredKind::Records, reason, &times(&old))?;
        Ok(old.len())
    })
}

/// Deletes the oldest payloads, and outputs of steps that are older than every kept payload.
pub(crate) fn payloads(db: &Connection, most: usize) -> Result<Deleted, StoreError> {
    step(db, |db| {
        let old = old_rows(
            db,
            "SELECT payloads.number, started_us FROM payloads LEFT JOIN activity USING (number)
             WHERE payloads.number < ?1 ORDER BY payloads.number LIMIT ?2",
            i64::MAX,
            most,
        )?;
        let mut payload = db.prepare_cached("DELETE FROM payloads WHERE number = ?1")?;
        for row in &old {
            payload.execute([row.number])?;
        }
        count(db, ExpiredKind::Payloads, ExpiryReason::Size, &times(&old))?;
        Ok(old.len() + outputs(db, most)?)
    })
}

/// Deletes outputs of steps that are older than every kept payload, with the texts and outcomes of
/// the same time; returns their number.
fn outputs(db: &Connection, most: usize) -> Result<usize, StoreError> {
    let oldest: Option<i64> = db
        .prepare_cached(
            "SELECT started_us FROM payloads JOIN activity USING (number) ORDER BY number LIMIT 1",
        )?
        .query_row([], |row| row.get(0))
        .optional()?;
    let old = old_rows(
        db,
        "SELECT rowid, started_us FROM run_steps INDEXED BY run_steps_output
         WHERE (output IS NOT NULL OR stderr IS NOT NULL) AND started_us < ?1
         ORDER BY started_us LIMIT ?2",
        oldest.unwrap_or(i64::MAX),
        most,
    )?;
    let words = "UPDATE run_steps SET output = NULL, stderr = NULL WHERE rowid = ?1";
    let mut output = db.prepare_cached(words)?;
    let mut texts = db.prepare_cached(
        "DELETE FROM run_texts WHERE (run, step) IN
           (SELECT run, number FROM run_steps WHERE rowid = ?1)",
    )?;
    let mut outcomes = db.prepare_cached(
        "DELETE FROM run_outcomes WHERE run = (SELECT run FROM run_steps WHERE rowid = ?1)",
    )?;
    for row in &old {
        output.execute([row.number])?;
        texts.execute([row.number])?;
        outcomes.execute([row.number])?;
    }
    count(db, ExpiredKind::StepOutputs, ExpiryReason::Size, &times(&old))?;
    Ok(old.len())
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
                ended.extend(run.at_us);
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
) -> Result<Vec<OldRow>, StoreError> {
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map(params![before_us, limit(most)], |row| {
        Ok(OldRow { number: row.get(0)?, at_us: row.get(1)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn times(rows: &[OldRow]) -> Vec<i64> {
    rows.iter().filter_map(|row| row.at_us).collect()
}

fn count(
    db: &Connection,
    kind: ExpiredKind,
    reason: ExpiryReason,
    times: &[i64],
) -> Result<(), StoreError> {
    tally::add(db, ExpiredData::of_times(kind, reason, times.iter().copied()))
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
