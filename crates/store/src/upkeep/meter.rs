//! Measures what retention may delete: the pages of its tables and indexes, the records of the last
//! day by token, and who must lose how much. That reads much of the file, so it runs on its own
//! thread and connection, and only when cheap bounds say that a limit may be exceeded.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use rusqlite::{Connection, InterruptHandle};

use super::deletion::used_bytes;
use super::plan::{DeletionPlan, TablePages};
use super::rules::RetentionRules;
use crate::database::connection::ReadOnlyFile;
use crate::error::StoreError;

/// The size of the data that retention may delete.
#[derive(Debug)]
pub(crate) struct Measure {
    /// The bytes of the pages of records, payloads, names and runs.
    pub(crate) bytes: u64,
    /// The bytes in use in the whole file.
    pub(crate) used: u64,
    pub(crate) day: DayUse,
    /// The rows that leave, if a limit is exceeded.
    pub(crate) plan: DeletionPlan,
}

/// The records of the last day, which are not deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DayUse {
    pub(crate) records: u64,
    /// Without payloads.
    pub(crate) bytes: u64,
    /// The part of each token, if the day exceeds a limit.
    pub(crate) tokens: Vec<TokenUse>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenUse {
    pub(crate) token: String,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

pub(crate) struct Meter {
    file: PathBuf,
    running: Option<Measuring>,
}

/// A measurement in progress.
struct Measuring {
    thread: JoinHandle<Result<Measure, StoreError>>,
    interrupt: InterruptHandle,
}

impl Meter {
    pub(crate) fn new(file: &Path) -> Meter {
        Meter { file: file.to_owned(), running: None }
    }

    /// Returns a new measure once it is complete; starts measuring if it has not begun.
    pub(crate) fn poll(
        &mut self,
        rules: RetentionRules,
        day_us: i64,
    ) -> Result<Option<Measure>, StoreError> {
        let Some(running) = self.running.take() else {
            let db = ReadOnlyFile::live(&self.file).connect()?;
            let interrupt = db.get_interrupt_handle();
            let work = move || measure(&db, &rules, day_us);
            let thread = std::thread::Builder::new().name("ledger-meter".to_owned()).spawn(work);
            let cannot = |error| StoreError::Write(format!("cannot start a thread: {error}"));
            self.running = Some(Measuring { thread: thread.map_err(cannot)?, interrupt });
            return Ok(None);
        };
        if !running.thread.is_finished() {
            self.running = Some(running);
            return Ok(None);
        }
        let stopped = |_| StoreError::Read("measuring the ledger stopped early".to_owned());
        running.thread.join().map_err(stopped)?.map(Some)
    }

    /// Ends a measurement, so that nothing holds the file any more.
    pub(crate) fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.interrupt.interrupt();
            let _ = running.thread.join();
        }
    }
}

/// Measures the ledger, all of it at one moment.
pub(crate) fn measure(
    db: &Connection,
    rules: &RetentionRules,
    day_us: i64,
) -> Result<Measure, StoreError> {
    // If mapped, all that is read once would stay in memory.
    db.pragma_update(None, "mmap_size", 0)?;
    let moment = db.unchecked_transaction()?;
    let records = moment.query_row("SELECT COUNT(*) FROM activity", [], |row| row.get(0))?;
    let of_records = pages(&moment, &["activity", "agents", "targets", "touches", "meetings"])?;
    let day_records = moment.query_row(
        "SELECT COUNT(*) FROM activity INDEXED BY activity_started WHERE started_us >= ?1",
        [day_us],
        |row| row.get(0),
    )?;
    let mut day = DayUse {
        records: day_records,
        bytes: part(of_records, day_records, records),
        tokens: Vec::new(),
    };
    if day.exceeds(rules) {
        day.tokens = tokens(&moment, day_us, day.bytes)?;
    }
    let parts = TablePages {
        records: of_records,
        payloads: pages(&moment, &["payloads"])?,
        runs: pages(&moment, &["runs", "run_steps", "run_outcomes", "run_texts"])?,
    };
    let bytes = parts.records + parts.payloads + parts.runs;
    let plan = if records > rules.records_max || bytes > rules.bytes_max() {
        DeletionPlan::new(&moment, rules, day_us, parts)?
    } else {
        DeletionPlan::default()
    };
    Ok(Measure { bytes, used: used_bytes(&moment)?, day, plan })
}

impl DayUse {
    /// Reports whether the last day alone exceeds a limit.
    pub(crate) fn exceeds(&self, rules: &RetentionRules) -> bool {
        self.records > rules.records_max || self.bytes > rules.bytes_max()
    }
}

/// Returns the bytes of the pages of these tables and their indexes.
fn pages(db: &Connection, tables: &[&str]) -> Result<u64, StoreError> {
    let mut names = db.prepare(
        "SELECT name FROM sqlite_schema WHERE tbl_name = ?1 AND type IN ('table', 'index')",
    )?;
    let mut size = db.prepare(
        "SELECT COALESCE(SUM(pgsize), 0) FROM dbstat WHERE aggregate = TRUE AND name = ?1",
    )?;
    let mut bytes = 0;
    for table in tables {
        let names: Vec<String> =
            names.query_map([table], |row| row.get(0))?.collect::<Result<_, _>>()?;
        for name in names {
            bytes += size.query_row([name], |row| row.get::<_, u64>(0))?;
        }
    }
    Ok(bytes)
}

/// Divides the bytes of the last day among the tokens, by the texts of their records.
fn tokens(db: &Connection, day_us: i64, bytes: u64) -> Result<Vec<TokenUse>, StoreError> {
    let mut statement = db.prepare(
        "SELECT token, COUNT(*), SUM(octet_length(concat(id, source, surface, server, tool,
           session_id, request_id, error_message, reason, receipt_id, trace_id, warnings)))
         FROM activity INDEXED BY activity_started JOIN agents USING (agent)
         WHERE started_us >= ?1 GROUP BY token",
    )?;
    let rows = statement.query_map([day_us], |row| {
        Ok(TokenUse { token: row.get(0)?, records: row.get(1)?, bytes: row.get(2)? })
    })?;
    let mut tokens: Vec<TokenUse> = rows.collect::<Result<_, _>>()?;
    let texts = tokens.iter().map(|token| token.bytes).sum();
    for token in &mut tokens {
        token.bytes = part(bytes, token.bytes, texts);
    }
    Ok(tokens)
}

/// Returns the part of a number that some of all have.
pub(super) fn part(number: u64, some: u64, all: u64) -> u64 {
    let part = u128::from(number) * u128::from(some) / u128::from(all.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        crate::database::schema::migrate(&mut db).unwrap();
        db.execute_batch(
            "INSERT INTO agents (agent, name, client, token)
               VALUES (1, 'a', '', 'one'), (2, 'b', '', 'two');
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
             INSERT INTO activity (number, id, changed, chain, type, source, surface, server, tool,
                 agent, reason, started_us, status)
               SELECT i, i, i, 1, 'tool_call', '', '', '', '', 1 + (i % 4 = 0),
                 printf('%.*c', 200, 'x'), i, 'success' FROM n;",
        )
        .unwrap();
        db
    }

    const RULES: RetentionRules =
        RetentionRules { days: 1, records_max: 1_000, megabytes_max: 1, receipt_days: 0 };

    #[test]
    fn only_what_retention_may_delete_is_measured() {
        let db = ledger();
        let before = measure(&db, &RULES, 201).unwrap();
        assert_eq!((before.day.records, before.day.tokens.len()), (200, 0));
        assert!(before.bytes > 400 * 200 && before.bytes < before.used, "{before:?}");
        let text = "x".repeat(900);
        for name in 0..3_000 {
            db.execute(
                "INSERT INTO items (server, kind, name, approved_fingerprint, approved_text,
                   pending_text) VALUES ('git', 'tool', ?1, '', ?2, ?2)",
                (name, &text),
            )
            .unwrap();
        }
        let after = measure(&db, &RULES, 201).unwrap();
        assert_eq!(after.bytes, before.bytes, "decisions do not count");
        assert!(after.used > before.used + 5_000_000, "{after:?}");
        db.execute("DELETE FROM activity", []).unwrap();
        let emptied = measure(&db, &RULES, 201).unwrap();
        assert!(emptied.bytes + 400 * 200 < before.bytes, "freed pages do not count: {emptied:?}");
    }

    #[test]
    fn a_day_beyond_a_limit_is_divided_among_tokens() {
        let rules = RetentionRules { records_max: 100, ..RULES };
        let day = measure(&ledger(), &rules, 1).unwrap().day;
        let [one, two] = &day.tokens[..] else { panic!("{day:?}") };
        assert_eq!((one.token.as_str(), one.records, two.records), ("one", 300, 100));
        assert!(one.bytes > 2 * two.bytes && one.bytes + two.bytes <= day.bytes, "{day:?}");
    }
}
