//! The moments of a run, one after the other: the lines of `-o jsonl`, from which the screen is
//! drawn as well. The members are documented in `docs/workflows.md`.

use serde::Serialize;
use store::RecordStatus;
use store::read::Record;
use store::run::{RunRecord, StepRecord};

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Moment {
    Run(RunStart),
    StepBegan(StepStart),
    /// An agent's program is probed before it starts for the first time.
    Probe {
        /// None before the run begins.
        step: Option<u32>,
        agent: Option<String>,
        version: String,
    },
    /// A piece of the agent's text.
    Text {
        step: u32,
        text: String,
        /// It is the beginning of a new text.
        begins: bool,
    },
    /// An error that the agent's program reported; it may go on.
    Error {
        step: u32,
        message: String,
    },
    /// A call began, or ended.
    Call(SeenCall),
    /// The work of the agent so far.
    Usage {
        step: u32,
        turns: u32,
        tokens: Option<u64>,
        cost_usd: Option<f64>,
    },
    StepEnded(Box<EndedStep>),
    End(RunFinish),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RunStart {
    pub(crate) id: String,
    pub(crate) workflow: String,
    pub(crate) version: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) resumed_from: Option<String>,
    pub(crate) started_at: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct StepStart {
    pub(crate) step: u32,
    pub(crate) state: String,
    /// The parallel state that it is a branch of, or its own name.
    pub(crate) root: Option<String>,
    pub(crate) kind: String,
    pub(crate) attempt: u32,
    pub(crate) provider: Option<String>,
    pub(crate) started_at: String,
}

/// A call of a step, as the ledger has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SeenCall {
    pub(crate) step: u32,
    pub(crate) id: String,
    pub(crate) server: String,
    pub(crate) tool: String,
    /// The resource that it touches; the first of several.
    pub(crate) target: Option<String>,
    /// `pending`, or the outcome.
    pub(crate) status: String,
    pub(crate) error_code: Option<String>,
    pub(crate) duration_ms: Option<f64>,
}

/// A step that has ended, also in the output of `-o json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct EndedStep {
    pub(crate) step: u32,
    pub(crate) state: String,
    pub(crate) kind: String,
    pub(crate) attempt: u32,
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) isolation: Option<String>,
    pub(crate) status: String,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) calls: u64,
    pub(crate) tokens: Option<u64>,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) error_code: Option<String>,
    pub(crate) error_message: Option<String>,
    pub(crate) output: Option<String>,
    pub(crate) stderr: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RunFinish {
    pub(crate) id: String,
    pub(crate) workflow: String,
    pub(crate) status: String,
    /// The state in which the run ended; null in `runs watch`.
    pub(crate) state: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) error_code: Option<&'static str>,
    pub(crate) exit_code: Option<u8>,
}

impl Moment {
    /// Formats it for programs; characters that a terminal would obey are escaped.
    pub(crate) fn json_line(&self) -> String {
        crate::json::escaped_json(&serde_json::to_string(self).unwrap_or_default())
    }

    /// Returns the length of its text, of which there may be much.
    pub(super) fn text_bytes(&self) -> usize {
        match self {
            Moment::Text { text, .. } => text.len(),
            Moment::Error { message, .. } => message.len(),
            Moment::Run(_)
            | Moment::StepBegan(_)
            | Moment::Probe { .. }
            | Moment::Call(_)
            | Moment::Usage { .. }
            | Moment::StepEnded(_)
            | Moment::End(_) => 0,
        }
    }
}

/// Describes a probe to a person.
pub(super) fn probe_words(agent: &str, version: &str) -> String {
    format!("checking that {agent} {version} is isolated")
}

impl From<&RunRecord> for RunStart {
    fn from(run: &RunRecord) -> RunStart {
        RunStart {
            id: run.id.clone(),
            workflow: run.workflow.clone(),
            version: run.version.clone(),
            file: run.file.clone(),
            resumed_from: run.resumed_from.clone(),
            started_at: run.started_at.to_string(),
        }
    }
}

impl From<&StepRecord> for StepStart {
    fn from(step: &StepRecord) -> StepStart {
        StepStart {
            step: step.number,
            state: step.state.clone(),
            root: step.root.clone(),
            kind: step.kind.clone(),
            attempt: step.attempt,
            provider: step.provider.clone(),
            started_at: step.started_at.to_string(),
        }
    }
}

impl SeenCall {
    pub(super) fn of(step: u32, record: &Record) -> SeenCall {
        SeenCall {
            step,
            id: record.id.clone(),
            server: record.server.clone(),
            tool: record.tool.clone(),
            target: record.targets.first().map(|touch| touch.resource.to_string()),
            status: record.status.as_str().to_owned(),
            error_code: record.error_code.clone(),
            duration_ms: record.duration.map(|took| took.as_secs_f64() * 1_000.0),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.status != RecordStatus::Pending.as_str()
    }
}

impl EndedStep {
    pub(super) fn of(step: &StepRecord, calls: u64) -> EndedStep {
        let took = step.ended_at.map(|end| end.duration_since(step.started_at).as_millis());
        EndedStep {
            step: step.number,
            state: step.state.clone(),
            kind: step.kind.clone(),
            attempt: step.attempt,
            provider: step.provider.clone(),
            model: step.model.clone(),
            isolation: step.isolation.clone(),
            status: step.status.as_str().to_owned(),
            duration_ms: took.map(|took| u64::try_from(took).unwrap_or_default()),
            exit_code: step.exit_code,
            calls,
            tokens: step.tokens,
            cost_usd: step.cost_usd,
            error_code: step.error_code.clone(),
            error_message: step.error.clone(),
            output: step.output.clone(),
            stderr: step.stderr.clone(),
        }
    }

    /// Returns the output of the step, if it succeeded.
    pub(super) fn said(&self) -> Option<&str> {
        self.output.as_deref().filter(|_| self.status == "success")
    }
}
