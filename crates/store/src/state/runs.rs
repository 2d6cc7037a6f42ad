//! Runs of workflows, recorded as they progress. They are not decisions, so they change no version.
//!
//! The process of a run holds a lock on a file of its name; a run whose lock can be taken has lost
//! its process, and is ended as interrupted.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::{Location, OperatorState};
use crate::database::lock::Lock;
use crate::database::{change, transaction};
use crate::error::StoreError;
use crate::limits::LOST_RUNS_CHUNK;
use crate::record::run::{
    RunEnd, RunRecord, RunSource, RunStatus, StateOutcome, StepRecord, StepStatus, StepText,
};

impl OperatorState {
    /// Records the start of a run. It counts as running until it is ended, or this process dies.
    pub fn begin_run(&self, run: &RunRecord) -> Result<(), StoreError> {
        let lock = match run.status {
            RunStatus::Running => self.lock_run(&run.id)?,
            RunStatus::Success
            | RunStatus::Failure
            | RunStatus::Cancelled
            | RunStatus::Interrupted => None,
        };
        self.change(|db| insert_run(db, run))?;
        if let Some(lock) = lock {
            self.running().insert(run.id.clone(), lock);
        }
        Ok(())
    }

    /// Keeps what a run is made of, so that another can go on from it.
    pub fn set_run_source(&self, id: &str, source: &RunSource) -> Result<(), StoreError> {
        self.change(|db| {
            let words = "INSERT OR REPLACE INTO run_sources (run, hash, dir, began_at, inputs)
                         SELECT number, ?2, ?3, ?4, ?5 FROM runs WHERE id = ?1";
            let inputs = serde_json::to_string(&source.inputs)
                .expect("a list of values can be written as JSON");
            let set = db.prepare_cached(words)?.execute(params![
                id,
                source.hash,
                source.dir,
                source.began_at,
                inputs
            ])?;
            is_there(set, || format!("run '{id}'"))
        })
    }

    /// Keeps the outcome of a state in place of an earlier one.
    pub fn set_outcome(&self, outcome: &StateOutcome) -> Result<(), StoreError> {
        self.change(|db| {
            let words =
                "INSERT OR REPLACE INTO run_outcomes (run, state, status, exit_code, tokens,
                   is_whole, output, stderr, json)
                 SELECT number, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM runs WHERE id = ?1";
            let set = db.prepare_cached(words)?.execute(params![
                outcome.run,
                outcome.state,
                outcome.status,
                outcome.exit_code,
                outcome.tokens,
                outcome.is_whole,
                outcome.output,
                outcome.stderr,
                outcome.json.as_ref().map(ToString::to_string),
            ])?;
            is_there(set, || format!("run '{}'", outcome.run))
        })
    }

    /// Copies the outcomes of a run to one that continues from it.
    pub fn copy_outcomes(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.change(|db| {
            let words = "INSERT OR REPLACE INTO run_outcomes (run, state, status, exit_code,
                   tokens, is_whole, output, stderr, json)
                 SELECT (SELECT number FROM runs WHERE id = ?2), state, status, exit_code, tokens,
                   is_whole, output, stderr, json
                 FROM run_outcomes WHERE run = (SELECT number FROM runs WHERE id = ?1)";
            db.prepare_cached(words)?.execute([from, to])?;
            Ok(())
        })
    }

    /// Adds texts to a step; this counts as a change of the step.
    pub fn add_step_texts(
        &self,
        run: &str,
        number: u32,
        texts: &[StepText],
    ) -> Result<(), StoreError> {
        self.change(|db| {
            let words = "UPDATE run_steps SET changed = ?3
                         WHERE run = (SELECT number FROM runs WHERE id = ?1) AND number = ?2";
            let values = (run, number, change::next(db)?);
            let changed = db.prepare_cached(words)?.execute(values)?;
            is_there(changed, || format!("step {number} of run '{run}'"))?;
            let mut add = db.prepare_cached(
                "INSERT INTO run_texts (run, step, position, at_us, kind, text)
                 SELECT number, ?2, ?3, ?4, ?5, ?6 FROM runs WHERE id = ?1",
            )?;
            for text in texts {
                let at_us = text.at.as_microsecond();
                add.execute(params![run, number, text.position, at_us, text.kind, text.text])?;
            }
            Ok(())
        })
    }

    pub fn end_run(&self, id: &str, end: &RunEnd) -> Result<(), StoreError> {
        self.change(|db| {
            let words = "UPDATE runs SET changed = ?2, status = ?3, message = ?4, exit_code = ?5,
                           ended_us = ?6 WHERE id = ?1";
            let ended = db.prepare_cached(words)?.execute(params![
                id,
                change::next(db)?,
                end.status.as_str(),
                end.message,
                end.exit_code,
                end.at.as_microsecond(),
            ])?;
            is_there(ended, || format!("run '{id}'"))
        })?;
        self.running().remove(id);
        Ok(())
    }

    /// Records the start of a step of an existing run.
    pub fn begin_step(&self, step: &StepRecord) -> Result<(), StoreError> {
        self.change(|db| insert_step(db, step))
    }

    /// Sets the sessions under which the calls of a step are recorded, once they are known.
    pub fn set_step_sessions(
        &self,
        run: &str,
        number: u32,
        sessions: &[String],
    ) -> Result<(), StoreError> {
        self.change(|db| {
            let words = "UPDATE run_steps SET changed = ?3, sessions = ?4
                         WHERE run = (SELECT number FROM runs WHERE id = ?1) AND number = ?2";
            let sessions =
                serde_json::to_string(sessions).expect("a list of strings can be written as JSON");
            let values = (run, number, change::next(db)?, sessions);
            let set = db.prepare_cached(words)?.execute(values)?;
            is_there(set, || format!("step {number} of run '{run}'"))
        })
    }

    /// Replaces the record of a step with its final one.
    pub fn end_step(&self, step: &StepRecord) -> Result<(), StoreError> {
        self.change(|db| update_step(db, step))
    }

    /// Ends runs of dead processes as interrupted; returns their number.
    pub fn end_lost_runs(&self) -> Result<usize, StoreError> {
        match self.place.writers() {
            Some(writers) => self.with(|db| end_lost_runs(db, &writers)),
            None => Ok(0),
        }
    }

    fn lock_run(&self, id: &str) -> Result<Option<Lock>, StoreError> {
        let Some(writers) = self.place.writers() else {
            return Ok(None);
        };
        // The id becomes a part of a path.
        if uuid::Uuid::parse_str(id).is_err() {
            return Err(StoreError::Write(format!("'{id}' is not a run id")));
        }
        match Lock::take(&writers, &lock_name(id))? {
            Some(lock) => Ok(Some(lock)),
            None => Err(StoreError::Write(format!("another process holds the lock of run {id}"))),
        }
    }
}

impl Location {
    /// Returns the folder of the locks, if this process may write.
    fn writers(&self) -> Option<std::path::PathBuf> {
        match self {
            Location::File(file, _) => Some(file.with_file_name(crate::database::WRITERS)),
            Location::Look(_) | Location::Memory => None,
        }
    }
}

/// Ends runs of dead processes, for callers with a writing connection.
pub(crate) fn end_lost_runs(db: &Connection, writers: &Path) -> Result<usize, StoreError> {
    let words = "SELECT id FROM runs WHERE status = 'running' LIMIT ?1";
    let mut statement = db.prepare_cached(words)?;
    let running = statement.query_map([LOST_RUNS_CHUNK], |row| row.get::<_, String>(0))?;
    let running: Vec<String> = running.collect::<Result<_, _>>()?;
    let mut ended = 0;
    for id in running {
        if let Some(_lock) = Lock::take(writers, &lock_name(&id))? {
            ended += usize::from(transaction::whole(db, |db| interrupt(db, &id))?);
        }
    }
    Ok(ended)
}

fn lock_name(id: &str) -> String {
    format!("run-{id}")
}

/// Returns whether it still ran: its process may have ended it just before its lock was taken.
fn interrupt(db: &Connection, id: &str) -> Result<bool, StoreError> {
    let words = "SELECT number FROM runs WHERE id = ?1 AND status = 'running'";
    let run: Option<i64> = db.query_row(words, [id], |row| row.get(0)).optional()?;
    let Some(run) = run else {
        return Ok(false);
    };
    let mut change = change::next(db)?;
    let mut statement =
        db.prepare("SELECT number FROM run_steps WHERE run = ?1 AND status = 'running'")?;
    let steps = statement.query_map([run], |row| row.get::<_, u32>(0))?;
    for number in steps.collect::<Result<Vec<_>, _>>()? {
        db.execute(
            "UPDATE run_steps SET status = ?3, changed = ?4 WHERE run = ?1 AND number = ?2",
            params![run, number, StepStatus::Interrupted.as_str(), change],
        )?;
        change += 1;
    }
    db.execute(
        "UPDATE runs SET status = ?2, changed = ?3 WHERE number = ?1",
        params![run, RunStatus::Interrupted.as_str(), change],
    )?;
    Ok(true)
}

fn insert_run(db: &Connection, run: &RunRecord) -> Result<(), StoreError> {
    db.prepare_cached(
        "INSERT INTO runs (id, changed, workflow, version, file, pid, started_us, ended_us, status,
           message, exit_code, trace_id, resumed_from)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        run.id,
        change::next(db)?,
        run.workflow,
        run.version,
        run.file,
        run.pid,
        run.started_at.as_microsecond(),
        run.ended_at.map(Timestamp::as_microsecond),
        run.status.as_str(),
        run.message,
        run.exit_code,
        run.trace_id,
        run.resumed_from,
    ])?;
    Ok(())
}

fn insert_step(db: &Connection, step: &StepRecord) -> Result<(), StoreError> {
    let words =
        "INSERT INTO run_steps (run, number, changed, state, kind, attempt, provider, model,
           isolation, status, started_us, ended_us, exit_code, tokens, cost_usd, error_code, error,
           sessions, output, root, visit, stderr)
         SELECT runs.number, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
           ?17, ?18, ?19, ?20, ?21, ?22 FROM runs WHERE id = ?1";
    put_step(db, step, words)
}

fn update_step(db: &Connection, step: &StepRecord) -> Result<(), StoreError> {
    let words = "UPDATE run_steps SET changed = ?3, state = ?4, kind = ?5, attempt = ?6,
           provider = ?7, model = ?8, isolation = ?9, status = ?10, started_us = ?11,
           ended_us = ?12, exit_code = ?13, tokens = ?14, cost_usd = ?15, error_code = ?16,
           error = ?17, sessions = ?18, output = ?19, root = ?20, visit = ?21, stderr = ?22
         WHERE run = (SELECT number FROM runs WHERE id = ?1) AND number = ?2";
    put_step(db, step, words)
}

fn put_step(db: &Connection, step: &StepRecord, words: &str) -> Result<(), StoreError> {
    let put = db.prepare_cached(words)?.execute(params![
        step.run,
        step.number,
        change::next(db)?,
        step.state,
        step.kind,
        step.attempt,
        step.provider,
        step.model,
        step.isolation,
        step.status.as_str(),
        step.started_at.as_microsecond(),
        step.ended_at.map(Timestamp::as_microsecond),
        step.exit_code,
        step.tokens,
        step.cost_usd,
        step.error_code,
        step.error,
        serde_json::to_string(&step.sessions).expect("a list of strings can be written as JSON"),
        step.output,
        step.root,
        step.visit,
        step.stderr,
    ])?;
    is_there(put, || format!("step {} of run '{}'", step.number, step.run))
}

fn is_there(rows: usize, what: impl FnOnce() -> String) -> Result<(), StoreError> {
    match rows {
        0 => Err(StoreError::Write(format!("{} does not exist", what()))),
        _ => Ok(()),
    }
}
