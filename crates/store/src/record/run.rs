//! A run of a workflow and its steps, as stored. The store does not interpret workflows.

use jiff::Timestamp;
use redact::Redactor;
use serde_json::Value;

use crate::limits::OUTCOME_BYTES_MAX;

/// A run of a workflow. Times have microsecond precision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// A UUID of version 7.
    pub id: String,
    pub workflow: String,
    pub version: Option<String>,
    /// The file that the workflow was read from, if any.
    pub file: Option<String>,
    pub pid: u32,
    pub started_at: Timestamp,
    /// None while it runs, and if its process died before the run had ended.
    pub ended_at: Option<Timestamp>,
    pub status: RunStatus,
    pub message: Option<String>,
    pub exit_code: Option<u8>,
    pub trace_id: Option<String>,
    /// The run that this one went on from.
    pub resumed_from: Option<String>,
}

/// The makings of a run, kept so that another can go on from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSource {
    /// The hash of the workflow's text.
    pub hash: String,
    /// The folder that it ran in.
    pub dir: String,
    /// The state in which it began.
    pub began_at: String,
    /// Each input; none in place of a value that holds a secret.
    pub inputs: Vec<(String, Option<Value>)>,
}

impl RunSource {
    /// Returns the source as it may be written, without inputs that hold secrets.
    #[must_use]
    pub fn redacted(mut self, redactor: &Redactor) -> RunSource {
        for (name, input) in &mut self.inputs {
            // Together, so that the name counts as well.
            let mut pair =
                Value::Object([(name.clone(), input.clone().into())].into_iter().collect());
            if redactor.value(&mut pair) {
                *input = None;
            }
        }
        self
    }
}

/// The outcome of a state, kept so that another run can go on from it.
#[derive(Clone, Debug, PartialEq)]
pub struct StateOutcome {
    pub run: String,
    pub state: String,
    pub status: String,
    pub output: String,
    pub stderr: String,
    pub exit_code: Option<i32>,
    pub json: Option<Value>,
    pub tokens: Option<u64>,
    /// The texts are as they were: not cut, and without secrets that had to be removed.
    pub is_whole: bool,
}

impl StateOutcome {
    /// Returns the outcome as it may be written: bounded, and without secrets.
    #[must_use]
    pub fn redacted(mut self, redactor: &Redactor) -> StateOutcome {
        for text in [&mut self.output, &mut self.stderr] {
            if text.len() > OUTCOME_BYTES_MAX {
                text.truncate(text.floor_char_boundary(OUTCOME_BYTES_MAX));
                self.is_whole = false;
            }
            self.is_whole &= !redactor.line(text);
        }
        if let Some(json) = &mut self.json {
            self.is_whole &= !redactor.value(json);
        }
        if self.json.as_ref().is_some_and(|json| json.to_string().len() > OUTCOME_BYTES_MAX) {
            self.json = None;
            self.is_whole = false;
        }
        self
    }
}

/// A text that the agent of a step wrote while it worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepText {
    /// The place among the texts of the step, counted from 1.
    pub position: u32,
    pub at: Timestamp,
    /// `text`, or `error` for one that the agent's program reported.
    pub kind: String,
    pub text: String,
}

impl StepText {
    /// Returns the text as it may be written, without secrets.
    #[must_use]
    pub fn redacted(mut self, redactor: &Redactor) -> StepText {
        redactor.line(&mut self.text);
        self
    }
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    pub status: RunStatus,
    pub message: Option<String>,
    pub exit_code: Option<u8>,
    pub at: Timestamp,
}

impl RunEnd {
    /// Returns the end as it may be written, without secrets.
    #[must_use]
    pub fn redacted(mut self, redactor: &Redactor) -> RunEnd {
        if let Some(message) = &mut self.message {
            redactor.line(message);
        }
        self
    }
}

/// One attempt at a state of the workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRecord {
    /// The id of the run.
    pub run: String,
    /// The position in the order in which the steps of a run began; unique in the run.
    pub number: u32,
    pub state: String,
    /// `command`, `agent`, `operation` or `parallel`.
    pub kind: String,
    pub attempt: u32,
    /// The outermost state that it belongs to: itself, or a parallel state.
    pub root: Option<String>,
    /// Tells two visits of that state apart.
    pub visit: u32,
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
    /// The part of the output that the caller wants kept.
    pub output: Option<String>,
    /// The end of its stderr.
    pub stderr: Option<String>,
    /// The sessions under which its calls are recorded.
    pub sessions: Vec<String>,
}

impl StepRecord {
    /// Returns a step that begins: its first attempt, without results yet.
    pub fn begun(run: &str, number: u32, kind: &str, state: &str, at: Timestamp) -> StepRecord {
        StepRecord {
            run: run.to_owned(),
            number,
            state: state.to_owned(),
            kind: kind.to_owned(),
            attempt: 1,
            root: None,
            visit: 0,
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
            stderr: None,
            sessions: Vec::new(),
        }
    }

    /// Returns the step as it may be written, without the secrets that it printed.
    #[must_use]
    pub fn redacted(mut self, redactor: &Redactor) -> StepRecord {
        for text in [&mut self.error, &mut self.output, &mut self.stderr].into_iter().flatten() {
            redactor.line(text);
        }
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    Running,
    Success,
    Failure,
    Cancelled,
    /// Its process died before it had ended.
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
    /// The process of its run died before it had ended.
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
