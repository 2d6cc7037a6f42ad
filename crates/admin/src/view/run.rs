//! Runs of workflows, their steps and calls.

use serde::{Deserialize, Serialize};
use store::read::{Record, Run, Runs};
use store::run::{StepRecord, StepText};
use utoipa::ToSchema;

use super::{TouchedResource, lasted, milliseconds, moment, words};

/// Runs, newest first.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct RunPage {
    pub runs: Vec<RunEntry>,
    /// The cursor of the next page; null at the end.
    #[schema(required)]
    pub next_cursor: Option<String>,
    pub total: u64,
    pub total_is_exact: bool,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct RunEntry {
    pub id: String,
    pub workflow: String,
    #[schema(required)]
    pub version: Option<String>,
    #[schema(required)]
    pub file: Option<String>,
    pub pid: u32,
    #[schema(schema_with = words::run_status)]
    pub status: String,
    #[schema(required)]
    pub message: Option<String>,
    #[schema(required)]
    pub exit_code: Option<u8>,
    #[schema(schema_with = words::moment)]
    pub started_at: String,
    #[schema(schema_with = words::moment_or_null, required)]
    pub ended_at: Option<String>,
    #[schema(required, minimum = 0)]
    pub duration_ms: Option<f64>,
    #[schema(required)]
    pub trace_id: Option<String>,
    /// The run that this one went on from.
    #[schema(required)]
    pub resumed_from: Option<String>,
    pub steps_total: u64,
    #[schema(required)]
    pub tokens: Option<u64>,
    #[schema(required, minimum = 0)]
    pub cost_usd: Option<f64>,
    /// The steps, only in a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<StepEntry>>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct StepEntry {
    pub number: u32,
    pub state: String,
    pub kind: String,
    pub attempt: u32,
    /// The parallel state that it is a branch of, or its own name.
    #[schema(required)]
    pub root: Option<String>,
    #[schema(required)]
    pub provider: Option<String>,
    #[schema(required)]
    pub model: Option<String>,
    #[schema(required)]
    pub isolation: Option<String>,
    #[schema(schema_with = words::step_status)]
    pub status: String,
    #[schema(schema_with = words::moment)]
    pub started_at: String,
    #[schema(schema_with = words::moment_or_null, required)]
    pub ended_at: Option<String>,
    #[schema(required, minimum = 0)]
    pub duration_ms: Option<f64>,
    #[schema(required)]
    pub exit_code: Option<i32>,
    #[schema(required)]
    pub tokens: Option<u64>,
    #[schema(required, minimum = 0)]
    pub cost_usd: Option<f64>,
    #[schema(required)]
    pub error_code: Option<String>,
    #[schema(required)]
    pub error_message: Option<String>,
    pub sessions: Vec<String>,
    /// The output of the step or null, only in a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::text_or_null)]
    pub output: Option<Option<String>>,
    /// The end of its stderr or null, only in a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::text_or_null)]
    pub stderr: Option<Option<String>>,
    /// The texts of its agent, in order, only in a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<Vec<AgentText>>,
    /// The newest calls, newest last, only in a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<StepCall>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_total: Option<u64>,
}

/// A text that an agent wrote between its calls.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct AgentText {
    #[schema(schema_with = words::moment)]
    pub timestamp: String,
    /// `text`, or `error` for one that the agent's program reported.
    pub kind: String,
    pub text: String,
}

/// A summary of one call of a step.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct StepCall {
    pub id: String,
    pub server_name: String,
    pub tool_name: String,
    pub status: String,
    #[schema(required)]
    pub error_code: Option<String>,
    #[schema(required, minimum = 0)]
    pub duration_ms: Option<f64>,
    #[schema(schema_with = words::moment)]
    pub timestamp: String,
    #[schema(required)]
    pub target: Option<TouchedResource>,
}

impl From<Runs> for RunPage {
    fn from(page: Runs) -> RunPage {
        RunPage {
            runs: page.runs.iter().map(RunEntry::brief).collect(),
            next_cursor: page.next_cursor,
            total: page.total,
            total_is_exact: true,
        }
    }
}

impl RunEntry {
    /// Leaves out the steps.
    pub(crate) fn brief(run: &Run) -> RunEntry {
        let record = &run.record;
        RunEntry {
            id: record.id.clone(),
            workflow: record.workflow.clone(),
            version: record.version.clone(),
            file: record.file.clone(),
            pid: record.pid,
            status: record.status.as_str().to_owned(),
            message: record.message.clone(),
            exit_code: record.exit_code,
            started_at: moment(record.started_at),
            ended_at: record.ended_at.map(moment),
            duration_ms: lasted(record.started_at, record.ended_at),
            trace_id: record.trace_id.clone(),
            resumed_from: record.resumed_from.clone(),
            steps_total: run.steps_total,
            tokens: run.tokens,
            cost_usd: run.cost_usd,
            steps: None,
        }
    }
}

impl StepEntry {
    /// Leaves out the output, which may be long, and the calls.
    pub(crate) fn brief(step: &StepRecord) -> StepEntry {
        StepEntry {
            number: step.number,
            state: step.state.clone(),
            kind: step.kind.clone(),
            attempt: step.attempt,
            root: step.root.clone(),
            provider: step.provider.clone(),
            model: step.model.clone(),
            isolation: step.isolation.clone(),
            status: step.status.as_str().to_owned(),
            started_at: moment(step.started_at),
            ended_at: step.ended_at.map(moment),
            duration_ms: lasted(step.started_at, step.ended_at),
            exit_code: step.exit_code,
            tokens: step.tokens,
            cost_usd: step.cost_usd,
            error_code: step.error_code.clone(),
            error_message: step.error.clone(),
            sessions: step.sessions.clone(),
            output: None,
            stderr: None,
            texts: None,
            calls: None,
            calls_total: None,
        }
    }

    pub(crate) fn whole(
        step: &StepRecord,
        texts: Vec<AgentText>,
        calls: &[Record],
        calls_total: u64,
    ) -> StepEntry {
        StepEntry {
            output: Some(step.output.clone()),
            stderr: Some(step.stderr.clone()),
            texts: Some(texts),
            calls: Some(calls.iter().map(StepCall::from).collect()),
            calls_total: Some(calls_total),
            ..StepEntry::brief(step)
        }
    }
}

impl From<&StepText> for AgentText {
    fn from(text: &StepText) -> AgentText {
        let (kind, words) = (text.kind.clone(), text.text.clone());
        AgentText { timestamp: moment(text.at), kind, text: words }
    }
}

impl From<&Record> for StepCall {
    fn from(record: &Record) -> StepCall {
        StepCall {
            id: record.id.clone(),
            server_name: record.server.clone(),
            tool_name: record.tool.clone(),
            status: record.status.as_str().to_owned(),
            error_code: record.error_code.clone(),
            duration_ms: record.duration.map(milliseconds),
            timestamp: moment(record.timestamp),
            target: TouchedResource::of(record),
        }
    }
}
