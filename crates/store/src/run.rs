//! A run of a workflow and its steps, as they are kept: what they are, and how a row is read.
//! What a workflow means is for others to know.

use jiff::Timestamp;
use rusqlite::{Connection, Row};

use crate::{StoreError, filing};

/// Times are kept to the microsecond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// A UUID of version 7.
    pub id: String,
    pub workflow: String,
    pub version: Option<String>,
    /// Where the workflow was read from, if from a file.
    pub file: Option<String>,
    pub pid: u32,
    pub started_at: Timestamp,
    /// None while it runs, and where its process was gone before it had ended.
    pub ended_at: Option<Timestamp>,
    pub status: RunStatus,
    pub message: Option<String>,
    pub exit_code: Option<u8>,
    pub trace_id: Option<String>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    pub status: RunStatus,
    pub message: Option<String>,
    pub exit_code: Option<u8>,
    pub at: Timestamp,
}

/// One attempt at a state of the workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRecord {
    /// The id of the run.
    pub run: String,
    /// In the order in which the steps of a run began; no two are the same.
    pub number: u32,
    pub state: String,
    /// `command`, `agent`, `operation` or `parallel`.
    pub kind: String,
    pub attempt: u32,
    pub provider: Option<String>,
    pub model: Option<String>,
    /// `full`, `coexistence` or `none`.
    pub isolation: Option<String>,
    pub status: StepStatus,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub exit_code: Option<i32>,
    pub tokens: Option<u64>,
    pub cost_usd: Option<f64>,
    pub error_code: Option<String>,
    pub error: Option<String>,
    /// As much of it as the caller wants kept.
    pub output: Option<String>,
    /// Under which its calls are recorded.
    pub sessions: Vec<String>,
}

impl StepRecord {
    /// A step that begins: its first attempt, of which nothing is known yet.
    pub fn begun(run: &str, number: u32, kind: &str, state: &str, at: Timestamp) -> StepRecord {
        StepRecord {
            run: run.to_owned(),
            number,
            state: state.to_owned(),
            kind: kind.to_owned(),
            attempt: 1,
            provider: None,
            model: None,
            isolation: None,
            status: StepStatus::Running,
            started_at: at,
            ended_at: None,
            exit_code: None,
            tokens: None,
            cost_usd: None,
            error_code: None,
            error: None,
            output: None,
            sessions: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    Running,
    Success,
    Failure,
    Cancelled,
    /// Its process was gone before it had ended.
    Interrupted,
}

impl RunStatus {
    pub const ALL: [RunStatus; 5] = [
        RunStatus::Running,
        RunStatus::Success,
        RunStatus::Failure,
        RunStatus::Cancelled,
        RunStatus::Interrupted,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Success => "success",
            RunStatus::Failure => "failure",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Interrupted => "interrupted",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepStatus {
    Running,
    Success,
    Failure,
    Cancelled,
    TimedOut,
    /// The process of its run was gone before it had ended.
    Interrupted,
}

impl StepStatus {
    pub const ALL: [StepStatus; 6] = [
        StepStatus::Running,
        StepStatus::Success,
        StepStatus::Failure,
        StepStatus::Cancelled,
        StepStatus::TimedOut,
        StepStatus::Interrupted,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            StepStatus::Running => "running",
            StepStatus::Success => "success",
            StepStatus::Failure => "failure",
            StepStatus::Cancelled => "cancelled",
            StepStatus::TimedOut => "timed_out",
            StepStatus::Interrupted => "interrupted",
        }
    }
}

/// The order of these is known to `read`.
pub(crate) const COLUMNS: &str = "id, workflow, version, file, pid, started_us, ended_us, status,
    message, exit_code, trace_id";

pub(crate) fn read(row: &Row<'_>) -> Result<RunRecord, StoreError> {
    let id: String = row.get(0)?;
    let status: String = row.get(7)?;
    let status = RunStatus::ALL.into_iter().find(|known| known.as_str() == status);
    let damaged = |what: &str| StoreError::Corrupt(format!("run {id}: {what}"));
    Ok(RunRecord {
        workflow: row.get(1)?,
        version: row.get(2)?,
        file: row.get(3)?,
        pid: row.get(4)?,
        started_at: time(row.get(5)?)?,
        ended_at: row.get::<_, Option<i64>>(6)?.map(time).transpose()?,
        status: status.ok_or_else(|| damaged("unknown status"))?,
        message: row.get(8)?,
        exit_code: row.get(9)?,
        trace_id: row.get(10)?,
        id,
    })
}

/// The order of these is known to `read_step`; the id of the run and the output follow.
pub(crate) const STEP_COLUMNS: &str = "run_steps.number, state, kind, attempt, provider, model,
    isolation, run_steps.status, run_steps.started_us, run_steps.ended_us, run_steps.exit_code,
    tokens, cost_usd, error_code, error, sessions";

pub(crate) fn read_step(row: &Row<'_>) -> Result<StepRecord, StoreError> {
    let (number, run): (u32, String) = (row.get(0)?, row.get(16)?);
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
        started_at: time(row.get(8)?)?,
        ended_at: row.get::<_, Option<i64>>(9)?.map(time).transpose()?,
        exit_code: row.get(10)?,
        tokens: row.get(11)?,
        cost_usd: row.get(12)?,
        error_code: row.get(13)?,
        error: row.get(14)?,
        sessions: sessions.map_err(|_| damaged("no list of sessions"))?,
        output: row.get(17)?,
        run,
    })
}

/// Runs are told of among the records, and take their numbers from the same row.
pub(crate) fn next_change(db: &Connection) -> Result<i64, StoreError> {
    Ok(filing::latest_change(db)? + 1)
}

fn time(microseconds: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(microseconds)
        .map_err(|_| StoreError::Corrupt(format!("{microseconds} is no time")))
}
