//! Runs of workflows, newest first; one run with its steps; and changes of runs among those of
//! records.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use super::cursor::{self, List};
use super::meetings::{self, StoredMeeting};
use super::page::Page;
use super::reader::Reader;
use super::record::{self, Record};
use crate::database::timestamp;
use crate::error::StoreError;
use crate::limits::{STEPS_MAX, TEXTS_MAX};
use crate::record::run::{
    RunRecord, RunSource, RunStatus, StateOutcome, StepRecord, StepStatus, StepText,
};

/// Filters on runs; a run must match all that are given.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    pub status: Option<RunStatus>,
    pub workflow: Option<String>,
}

/// A run, with the totals of its steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub record: RunRecord,
    pub steps_total: u64,
    /// None if no step reported any.
    pub tokens: Option<u64>,
    pub cost_usd: Option<f64>,
}

/// One page, newest first.
#[derive(Clone, Debug)]
pub struct Runs {
    pub runs: Vec<Run>,
    /// Absent on the last page.
    pub next_cursor: Option<String>,
    /// The total of all pages.
    pub total: u64,
}

/// A start, an end, or new information. An item that changes twice appears once, in its present
/// state.
#[derive(Clone, Debug, PartialEq)]
pub enum LedgerChange {
    /// Without payloads.
    Record(Box<Record>),
    Run(Box<Run>),
    /// Without its output.
    Step(Box<Run>, Box<StepRecord>),
    /// A write that met another agent's recent touch.
    Meeting(Box<StoredMeeting>),
}

impl Reader {
    pub fn runs(&self, filter: &RunFilter, page: &Page) -> Result<Runs, StoreError> {
        let below = match &page.cursor {
            Some(text) => cursor::read(List::Runs, text)?,
            None => i64::MAX,
        };
        self.pool.ask_at_once(|db| list(db, filter, below, page.rows()))
    }

    /// Returns a run with its steps in order; of a very long run, only the newest.
    pub fn run(&self, id: &str) -> Result<Option<(Run, Vec<StepRecord>)>, StoreError> {
        self.pool.ask_at_once(|db| {
            let Some(run) = of_id(db, id)? else {
                return Ok(None);
            };
            Ok(Some((run, steps(db, id)?)))
        })
    }

    /// Returns what the agents of a run wrote, with the number of the step, in order; of a very long
    /// run, only the newest.
    pub fn step_texts(&self, id: &str) -> Result<Vec<(u32, StepText)>, StoreError> {
        self.pool.ask_at_once(|db| texts(db, id))
    }

    /// Returns what a run was made of; none if its process ended before it had said so.
    pub fn run_source(&self, id: &str) -> Result<Option<RunSource>, StoreError> {
        self.pool.ask_at_once(|db| source(db, id))
    }

    /// Returns the outcome of each state of a run.
    pub fn run_outcomes(&self, id: &str) -> Result<Vec<StateOutcome>, StoreError> {
        self.pool.ask_at_once(|db| outcomes(db, id))
    }

    /// Returns everything that changed after a change, by any process, in order and with its
    /// number.
    pub fn changes_after(
        &self,
        change: i64,
        limit: usize,
    ) -> Result<Vec<(i64, LedgerChange)>, StoreError> {
        self.pool.ask_at_once(|db| {
            let records = record::changed_after(db, change, limit)?.into_iter();
            let mut changes: Vec<(i64, LedgerChange)> = records
                .map(|found| (found.changed, LedgerChange::Record(Box::new(found))))
                .collect();
            changes.extend(changed_runs(db, change, limit)?);
            changes.extend(changed_steps(db, change, limit)?);
            changes.extend(meetings::changed_after(db, change, limit)?);
            changes.sort_by_key(|(number, _)| *number);
            changes.truncate(limit);
            Ok(changes)
        })
    }
}

/// Selects runs with sums. They read no output, which may lie on many pages: it is the last column
/// of its row.
fn select(which: &str) -> String {
    format!(
        "SELECT {}, (SELECT COUNT(*) FROM run_steps WHERE run = runs.number),
           (SELECT SUM(tokens) FROM run_steps WHERE run = runs.number),
           (SELECT SUM(cost_usd) FROM run_steps WHERE run = runs.number),
           changed, number
         FROM runs WHERE {which}",
        RUN_COLUMNS
    )
}

/// The index of the columns of `select` after those of the record.
const CHANGED: usize = 15;
const NUMBER: usize = 16;

fn read(row: &Row<'_>) -> Result<Run, StoreError> {
    Ok(Run {
        record: read_record(row)?,
        steps_total: row.get(12)?,
        tokens: row.get(13)?,
        cost_usd: row.get(14)?,
    })
}

fn list(db: &Connection, filter: &RunFilter, below: i64, limit: usize) -> Result<Runs, StoreError> {
    let mut conditions = vec!["TRUE"];
    let mut values: Vec<Value> = Vec::new();
    if let Some(status) = filter.status {
        conditions.push("status = ?");
        values.push(status.as_str().to_owned().into());
    }
    if let Some(workflow) = &filter.workflow {
        conditions.push("workflow = ?");
        values.push(workflow.clone().into());
    }
    let fits = conditions.join(" AND ");
    let mut count = db.prepare_cached(&format!("SELECT COUNT(*) FROM runs WHERE {fits}"))?;
    let total = count.query_row(params_from_iter(&values), |row| row.get(0))?;
    values.push(below.into());
    values.push(i64::try_from(limit + 1).unwrap_or(i64::MAX).into());
    let words = select(&format!("{fits} AND number < ? ORDER BY number DESC LIMIT ?"));
    let mut statement = db.prepare_cached(&words)?;
    let mut rows = statement.query(params_from_iter(&values))?;
    let (mut runs, mut last, mut next_cursor) = (Vec::new(), 0, None);
    while let Some(row) = rows.next()? {
        if runs.len() == limit {
            next_cursor = Some(cursor::write(List::Runs, last));
            break;
        }
        last = row.get(NUMBER)?;
        runs.push(read(row)?);
    }
    Ok(Runs { runs, next_cursor, total })
}

fn of_id(db: &Connection, id: &str) -> Result<Option<Run>, StoreError> {
    let mut statement = db.prepare_cached(&select("id = ?1"))?;
    statement.query_row([id], |row| Ok(read(row))).optional()?.transpose()
}

fn steps(db: &Connection, id: &str) -> Result<Vec<StepRecord>, StoreError> {
    let words = format!(
        "SELECT {}, runs.id, output, stderr FROM run_steps JOIN runs ON runs.number = run
         WHERE runs.id = ?1 ORDER BY run_steps.number DESC LIMIT ?2",
        STEP_COLUMNS
    );
    let mut statement = db.prepare_cached(&words)?;
    let mut rows = statement.query((id, STEPS_MAX))?;
    let mut steps = Vec::new();
    while let Some(row) = rows.next()? {
        steps.push(read_step(row)?);
    }
    steps.reverse();
    Ok(steps)
}

fn changed_runs(
    db: &Connection,
    change: i64,
    limit: usize,
) -> Result<Vec<(i64, LedgerChange)>, StoreError> {
    let words = select("changed > ?1 ORDER BY changed LIMIT ?2");
    let mut statement = db.prepare_cached(&words)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query([change, limit])?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        changes.push((row.get(CHANGED)?, LedgerChange::Run(Box::new(read(row)?))));
    }
    Ok(changes)
}

fn changed_steps(
    db: &Connection,
    change: i64,
    limit: usize,
) -> Result<Vec<(i64, LedgerChange)>, StoreError> {
    let words = format!(
        "SELECT {}, runs.id, NULL, NULL, run_steps.changed
         FROM run_steps JOIN runs ON runs.number = run
         WHERE run_steps.changed > ?1 ORDER BY run_steps.changed LIMIT ?2",
        STEP_COLUMNS
    );
    let mut statement = db.prepare_cached(&words)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query([change, limit])?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        let step = read_step(row)?;
        if let Some(run) = of_id(db, &step.run)? {
            changes.push((row.get(21)?, LedgerChange::Step(Box::new(run), Box::new(step))));
        }
    }
    Ok(changes)
}

/// The columns of a run; `read_record` relies on their order.
const RUN_COLUMNS: &str = "id, workflow, version, file, pid, started_us, ended_us, status,
    message, exit_code, trace_id, resumed_from";

fn read_record(row: &Row<'_>) -> Result<RunRecord, StoreError> {
    let id: String = row.get(0)?;
    let status: String = row.get(7)?;
    let status = RunStatus::ALL.into_iter().find(|known| known.as_str() == status);
    let damaged = |what: &str| StoreError::Corrupt(format!("run {id}: {what}"));
    Ok(RunRecord {
        workflow: row.get(1)?,
        version: row.get(2)?,
        file: row.get(3)?,
        pid: row.get(4)?,
        started_at: timestamp::read(row.get(5)?)?,
        ended_at: row.get::<_, Option<i64>>(6)?.map(timestamp::read).transpose()?,
        status: status.ok_or_else(|| damaged("unknown status"))?,
        message: row.get(8)?,
        exit_code: row.get(9)?,
        trace_id: row.get(10)?,
        resumed_from: row.get(11)?,
        id,
    })
}

fn texts(db: &Connection, id: &str) -> Result<Vec<(u32, StepText)>, StoreError> {
    let words = "SELECT step, position, at_us, kind, text FROM run_texts
                 WHERE run = (SELECT number FROM runs WHERE id = ?1)
                 ORDER BY step DESC, position DESC LIMIT ?2";
    let mut statement = db.prepare_cached(words)?;
    let mut rows = statement.query((id, TEXTS_MAX))?;
    let mut texts = Vec::new();
    while let Some(row) = rows.next()? {
        let at = timestamp::read(row.get(2)?)?;
        let (position, kind, text) = (row.get(1)?, row.get(3)?, row.get(4)?);
        texts.push((row.get(0)?, StepText { position, at, kind, text }));
    }
    texts.reverse();
    Ok(texts)
}

fn source(db: &Connection, id: &str) -> Result<Option<RunSource>, StoreError> {
    let words = "SELECT hash, dir, began_at, inputs FROM run_sources
                 WHERE run = (SELECT number FROM runs WHERE id = ?1)";
    let read = |row: &Row<'_>| -> Result<RunSource, StoreError> {
        let inputs = serde_json::from_str(&row.get::<_, String>(3)?)
            .map_err(|_| StoreError::Corrupt(format!("run {id}: inputs are not a list")))?;
        let (hash, dir, began_at) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(RunSource { hash, dir, began_at, inputs })
    };
    db.prepare_cached(words)?.query_row([id], |row| Ok(read(row))).optional()?.transpose()
}

fn outcomes(db: &Connection, id: &str) -> Result<Vec<StateOutcome>, StoreError> {
    let words = "SELECT state, status, output, stderr, exit_code, json, tokens, is_whole
                 FROM run_outcomes WHERE run = (SELECT number FROM runs WHERE id = ?1)";
    let mut statement = db.prepare_cached(words)?;
    let mut rows = statement.query([id])?;
    let mut outcomes = Vec::new();
    while let Some(row) = rows.next()? {
        let json: Option<String> = row.get(5)?;
        outcomes.push(StateOutcome {
            run: id.to_owned(),
            state: row.get(0)?,
            status: row.get(1)?,
            output: row.get(2)?,
            stderr: row.get(3)?,
            exit_code: row.get(4)?,
            json: json.and_then(|json| serde_json::from_str(&json).ok()),
            tokens: row.get(6)?,
            is_whole: row.get(7)?,
        });
    }
    Ok(outcomes)
}

/// The columns of a step; `read_step` relies on their order. The id of the run, the output and the
/// stderr follow.
const STEP_COLUMNS: &str = "run_steps.number, state, kind, attempt, provider, model,
    isolation, run_steps.status, run_steps.started_us, run_steps.ended_us, run_steps.exit_code,
    tokens, cost_usd, error_code, error, sessions, root, visit";

fn read_step(row: &Row<'_>) -> Result<StepRecord, StoreError> {
    let (number, run): (u32, String) = (row.get(0)?, row.get(18)?);
    let damaged = |what: &str| StoreError::Corrupt(format!("run {run}, step {number}: {what}"));
    let status: String = row.get(7)?;
    let status = StepStatus::ALL.into_iter().find(|known| known.as_str() == status);
    let sessions = serde_json::from_str(&row.get::<_, String>(15)?);
    Ok(StepRecord {
        number,
        state: row.get(1)?,
        kind: row.get(2)?,
        attempt: row.get(3)?,
        provider: row.get(4)?,
        model: row.get(5)?,
        isolation: row.get(6)?,
        status: status.ok_or_else(|| damaged("unknown status"))?,
        started_at: timestamp::read(row.get(8)?)?,
        ended_at: row.get::<_, Option<i64>>(9)?.map(timestamp::read).transpose()?,
        exit_code: row.get(10)?,
        tokens: row.get(11)?,
        cost_usd: row.get(12)?,
        error_code: row.get(13)?,
        error: row.get(14)?,
        sessions: sessions.map_err(|_| damaged("sessions are not a list"))?,
        root: row.get(16)?,
        visit: row.get(17)?,
        output: row.get(19)?,
        stderr: row.get(20)?,
        run,
    })
}
