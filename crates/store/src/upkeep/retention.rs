//! Retention of activity and payloads by age, number and size, and of runs by age. Receipts stay,
//! unless the operator configures otherwise.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension};

use crate::database::timestamp;
use crate::error::StoreError;
use crate::limits::RETENTION_CHUNK;
use crate::state;

/// Bytes that one receipt takes in the file, its index entries included (measured).
const RECEIPT_BYTES: u64 = 2_400;

const MEGABYTE: u64 = 1024 * 1024;

/// Limits on the age and the amount of kept data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetentionRules {
    pub(crate) days: u32,
    pub(crate) records_max: u64,
    pub(crate) megabytes_max: u64,
    /// 0: receipts are kept.
    pub(crate) receipt_days: u32,
}

impl RetentionRules {
    /// Returns the oldest closed chain that is old enough to expire.
    pub(crate) fn expired_chain(&self, db: &Connection) -> Result<Option<String>, StoreError> {
        if self.receipt_days == 0 {
            return Ok(None);
        }
        let cutoff = timestamp::text(days_ago(self.receipt_days));
        let found = db
            .query_row(
                "SELECT chain_id FROM chains
                 WHERE status NOT IN ('open', 'expired', 'damaged')
                   AND NOT EXISTS (SELECT 1 FROM receipts WHERE receipts.chain_id = chains.chain_id
                     AND receipts.timestamp >= ?1)
                 ORDER BY chain LIMIT 1",
                [cutoff],
                |row| row.get(0),
            )
            .optional()?;
        Ok(found)
    }

    /// Deletes some of the data beyond the limits; returns whether there may be more.
    pub(crate) fn let_go(&self, db: &mut Connection) -> Result<bool, StoreError> {
        let oldest = days_ago(self.days).as_microsecond();
        if delete_runs(db, oldest)? {
            return Ok(true);
        }
        let Some(Numbers { first, last }) = Numbers::of_activity(db)? else {
            return Ok(false);
        };
        let records = u64::try_from(last - first + 1).unwrap_or(0);
        let is_old: bool = db.query_row(
            "SELECT started_us < ?1 FROM activity WHERE number = ?2",
            [oldest, first],
            |row| row.get(0),
        )?;
        if records > self.records_max || is_old {
            let surplus = records.saturating_sub(self.records_max);
            let surplus = i64::try_from(surplus).unwrap_or(i64::MAX).min(chunk());
            let upto = if is_old { first + chunk() - 1 } else { first + surplus - 1 };
            return delete_activity(db, upto, (is_old && surplus < chunk()).then_some(oldest));
        }
        if activity_bytes(db)? > self.megabytes_max * MEGABYTE {
            return delete_payloads(db, first);
        }
        Ok(false)
    }
}

/// The numbers of the oldest and the newest record.
struct Numbers {
    first: i64,
    last: i64,
}

impl Numbers {
    /// Returns none if there are no records.
    fn of_activity(db: &Connection) -> Result<Option<Numbers>, StoreError> {
        let numbers = db.query_row("SELECT MIN(number), MAX(number) FROM activity", [], |row| {
            let first: Option<i64> = row.get(0)?;
            let last: Option<i64> = row.get(1)?;
            Ok(first.zip(last).map(|(first, last)| Numbers { first, last }))
        })?;
        Ok(numbers)
    }
}

fn chunk() -> i64 {
    i64::try_from(RETENTION_CHUNK).expect("a chunk is small")
}

fn days_ago(days: u32) -> Timestamp {
    let age = SignedDuration::from_hours(i64::from(days) * 24);
    Timestamp::now().checked_sub(age).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Deletes records up to a number; with a time, only those older than it.
fn delete_activity(
    db: &mut Connection,
    upto: i64,
    older_than: Option<i64>,
) -> Result<bool, StoreError> {
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let older_than = older_than.unwrap_or(i64::MAX);
    transaction.execute(
        "DELETE FROM payloads WHERE number IN
           (SELECT number FROM activity WHERE number <= ?1 AND started_us < ?2)",
        [upto, older_than],
    )?;
    let deleted = transaction.execute(
        "DELETE FROM activity WHERE number <= ?1 AND started_us < ?2",
        [upto, older_than],
    )?;
    transaction.commit()?;
    Ok(deleted > 0)
}

/// Deletes ended runs that began before a time, each once its steps are gone; returns whether there
/// were any.
fn delete_runs(db: &mut Connection, older_than: i64) -> Result<bool, StoreError> {
    const OLD: &str = "SELECT number FROM runs
        WHERE started_us < ?1 AND status <> 'running' ORDER BY started_us LIMIT ?2";
    let has_old: bool =
        db.query_row(&format!("SELECT EXISTS ({OLD})"), [older_than, 1], |row| row.get(0))?;
    if !has_old {
        return Ok(false);
    }
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let steps = transaction.execute(
        &format!(
            "DELETE FROM run_steps WHERE rowid IN
               (SELECT rowid FROM run_steps WHERE run IN ({OLD}) LIMIT ?2)"
        ),
        [older_than, chunk()],
    )?;
    let runs = transaction.execute(
        &format!(
            "DELETE FROM runs WHERE number IN ({OLD})
               AND NOT EXISTS (SELECT 1 FROM run_steps WHERE run = runs.number)"
        ),
        [older_than, chunk()],
    )?;
    transaction.commit()?;
    Ok(steps + runs > 0)
}

/// Deletes outputs of steps that are older than every kept payload; returns their number.
fn forget_outputs(db: &Connection) -> Result<usize, StoreError> {
    let words =
        "SELECT started_us FROM payloads JOIN activity USING (number) ORDER BY number LIMIT 1";
    let oldest: Option<i64> = db.query_row(words, [], |row| row.get(0)).optional()?;
    let forgotten = db.execute(
        "UPDATE run_steps SET output = NULL WHERE rowid IN
           (SELECT rowid FROM run_steps WHERE output IS NOT NULL AND started_us < ?1
            ORDER BY started_us LIMIT ?2)",
        [oldest.unwrap_or(i64::MAX), chunk()],
    )?;
    Ok(forgotten)
}

/// Deletes payloads, the largest and least missed part; if none are left, deletes whole records.
fn delete_payloads(db: &mut Connection, first: i64) -> Result<bool, StoreError> {
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let deleted = transaction.execute(
        "DELETE FROM payloads WHERE number IN (SELECT number FROM payloads ORDER BY number LIMIT ?1)",
        [chunk()],
    )?;
    let forgotten = forget_outputs(&transaction)?;
    transaction.commit()?;
    if deleted + forgotten > 0 {
        return Ok(true);
    }
    delete_activity(db, first + chunk() - 1, None)
}

/// Returns the bytes in use in the file, less those of receipts and decisions, which deleting
/// records would not reduce.
fn activity_bytes(db: &Connection) -> Result<u64, StoreError> {
    let pragma = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let pages = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
    let receipts: u64 = db.query_row("SELECT COUNT(*) FROM receipts", [], |row| row.get(0))?;
    let others = receipts * RECEIPT_BYTES + state::bytes(db)?;
    Ok((pages * pragma("page_size")?).saturating_sub(others))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_outputs_are_deleted_with_payloads_of_their_age_before_records() {
        let mut db = Connection::open_in_memory().unwrap();
        crate::database::schema::migrate(&mut db).unwrap();
        db.execute_batch(
            "INSERT INTO agents (agent, name, client, token) VALUES (1, '', '', '');
             INSERT INTO runs (number, id, changed, workflow, pid, started_us, status)
               VALUES (1, 'run', 1, 'w', 1, 0, 'success');",
        )
        .unwrap();
        for at in 1..=2 * chunk() {
            db.execute(
                "INSERT INTO activity (number, id, changed, chain, type, source, surface, server,
                   tool, agent, started_us, status)
                 VALUES (?1, ?1, ?1, 1, 'tool_call', '', '', '', '', 1, ?1, 'success')",
                [at],
            )
            .unwrap();
            db.execute("INSERT INTO payloads (number, arguments) VALUES (?1, '{}')", [at]).unwrap();
        }
        for at in [1, chunk(), chunk() + 1, 3 * chunk()] {
            db.execute(
                "INSERT INTO run_steps (run, number, changed, state, kind, attempt, status,
                   started_us, sessions, output)
                 VALUES (1, ?1, ?1, 's', 'command', 1, 'success', ?1, '[]', 'words')",
                [at],
            )
            .unwrap();
        }
        let count = |db: &Connection, of: &str| -> i64 {
            db.query_row(&format!("SELECT COUNT(*) FROM {of}"), [], |row| row.get(0)).unwrap()
        };
        let outputs = "run_steps WHERE output IS NOT NULL";
        for (payloads, left) in [(chunk(), 2), (0, 0)] {
            assert!(delete_payloads(&mut db, 1).unwrap());
            assert_eq!((count(&db, "payloads"), count(&db, outputs)), (payloads, left));
            assert_eq!(count(&db, "activity"), 2 * chunk(), "no record left");
        }
        assert_eq!(count(&db, "run_steps"), 4);
        assert!(delete_payloads(&mut db, 1).unwrap());
        assert_eq!(count(&db, "activity"), chunk());
    }

    #[test]
    fn decisions_do_not_count_towards_the_size_of_activity() {
        let mut db = Connection::open_in_memory().unwrap();
        crate::database::schema::migrate(&mut db).unwrap();
        let before = activity_bytes(&db).unwrap();
        let text = "x".repeat(900);
        for name in 0..3_000 {
            db.execute(
                "INSERT INTO items (server, kind, name, approved_fingerprint, approved_text,
                   pending_text) VALUES ('git', 'tool', ?1, '', ?2, ?2)",
                (name, &text),
            )
            .unwrap();
        }
        let more = activity_bytes(&db).unwrap() - before;
        assert!(more < MEGABYTE, "{more} bytes beside 5.4 million of texts");
    }
}
