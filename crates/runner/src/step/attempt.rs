//! One attempt at a step: its gate is opened, the work is done, and everything is closed again,
//! however it ends.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::Code;
use provider::TraceContext;
use store::run::StepRecord;
use tokio_util::sync::CancellationToken;
use workflow::{ResolvedStep, Status, StepOutcome, Workflow, WorkflowFault};

use crate::environment::RunEnvironment;
use crate::gate::{GateRequest, StepGate};

/// The time limit of an attempt if its state sets none.
const TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Bytes of a step's output, from its beginning, and of its stderr, from its end, that are kept in
/// the record of its run.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// One attempt at a state.
pub(crate) struct Attempt {
    pub(crate) around: Arc<RunEnvironment>,
    pub(crate) workflow: Arc<Workflow>,
    pub(crate) state: String,
    pub(crate) resolved: Result<ResolvedStep, WorkflowFault>,
    pub(crate) cancel: CancellationToken,
}

/// The outcome of an attempt, and the number of calls it made.
pub(crate) struct AttemptResult {
    pub(crate) outcome: StepOutcome,
    pub(crate) calls: u64,
}

/// The reason an attempt did not succeed, with its partial outcome.
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) outcome: Box<StepOutcome>,
}

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Failure {
        let outcome = Box::new(StepOutcome::new(Status::Failure));
        Failure { code, message: message.into(), outcome }
    }

    /// Not a failure of the step: it was cancelled.
    pub(super) fn cancelled() -> Failure {
        Failure::new(Code::Cancelled, "the step was cancelled")
            .with(StepOutcome::new(Status::Cancelled))
    }

    pub(super) fn timed_out(within: Duration) -> Failure {
        let message = format!("the step timed out after {}", words(within));
        Failure::new(Code::Timeout, message).with(StepOutcome::new(Status::TimedOut))
    }

    pub(super) fn with(self, outcome: StepOutcome) -> Failure {
        Failure { outcome: Box::new(outcome), ..self }
    }
}

fn words(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        1..60 if duration.subsec_millis() > 0 => format!("{:.1} s", duration.as_secs_f32()),
        seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

impl Attempt {
    /// Makes the attempt and fills in the record.
    pub(crate) async fn make(&self, record: &mut StepRecord, trace: TraceContext) -> AttemptResult {
        let mut work = Work { attempt: self, record, trace, gate: None, sessions: Arc::default() };
        let made = match &self.resolved {
            Err(fault) => Err(Failure::new(fault.code, fault.to_string())),
            Ok(ResolvedStep::Command { command, dir }) => {
                work.command(command, dir.as_deref()).await
            }
            Ok(ResolvedStep::Agent(agent)) => work.agent(agent).await,
            Ok(ResolvedStep::Operation { plugin, operation, inputs, dir }) => {
                work.operation(plugin, operation, inputs, dir.as_deref()).await
            }
        };
        let calls = work.close().await;
        let (mut outcome, failure) = match made {
            Ok(outcome) => (outcome, None),
            Err(failure) => (*failure.outcome, Some((failure.code, failure.message))),
        };
        if !outcome.output.is_empty() {
            let end = outcome.output.floor_char_boundary(KEPT_BYTES_MAX);
            record.output = Some(outcome.output[..end].to_owned());
        }
        if !outcome.stderr.is_empty() {
            let first = outcome.stderr.len().saturating_sub(KEPT_BYTES_MAX);
            let start = outcome.stderr.ceil_char_boundary(first);
            record.stderr = Some(outcome.stderr[start..].to_owned());
        }
        if let Some((code, message)) = failure {
            record.error_code = Some(code.as_str().to_owned());
            record.error = Some(message.clone());
            if outcome.stderr.is_empty() {
                outcome.stderr = message;
            }
        }
        AttemptResult { outcome, calls }
    }

    pub(super) fn within(&self) -> Duration {
        self.workflow.state(&self.state).and_then(|state| state.timeout).unwrap_or(TIMEOUT)
    }

    pub(super) fn dir(&self, dir: Option<&str>) -> Result<PathBuf, Failure> {
        let dir = self.around.dir.join(dir.unwrap_or("."));
        let unusable = |reason: &dyn std::fmt::Display| {
            let message = format!("cannot use the step's folder '{}': {reason}", dir.display());
            Failure::new(Code::WorkflowBadFolder, message)
        };
        let found = dir.canonicalize().map_err(|error| unusable(&error))?;
        if found.is_dir() { Ok(found) } else { Err(unusable(&"it is not a folder")) }
    }

    /// Returns the caller's name in the records.
    pub(super) fn identity(&self, provider: &str) -> String {
        format!("{}/{}/{provider}", self.workflow.name, self.state)
    }
}

/// An attempt in progress.
pub(super) struct Work<'a> {
    pub(super) attempt: &'a Attempt,
    pub(super) record: &'a mut StepRecord,
    /// The parent span of the work.
    pub(super) trace: TraceContext,
    gate: Option<Arc<dyn StepGate>>,
    /// The sessions of calls that the workflow itself makes.
    sessions: Arc<Mutex<Vec<String>>>,
}

impl Work<'_> {
    pub(super) async fn open(
        &mut self,
        request: GateRequest,
    ) -> Result<Arc<dyn StepGate>, Failure> {
        let around = &self.attempt.around;
        let gate = around.gates.open(request).await.map_err(|refusal| match refusal.code {
            Code::Cancelled => Failure::cancelled(),
            code => Failure::new(code, refusal.message),
        })?;
        self.gate = Some(gate.clone());
        let (agents, own) = (gate.clone(), self.sessions.clone());
        let sessions = move || {
            let own = own.lock().unwrap_or_else(PoisonError::into_inner);
            own.iter().cloned().chain(agents.sessions()).collect()
        };
        around.watch.step_at_work(self.record, Arc::new(sessions));
        Ok(gate)
    }

    /// Notes the session of a call that the workflow itself makes.
    pub(super) fn calls_in(&mut self, session: &str) {
        self.record.sessions.push(session.to_owned());
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(session.to_owned());
    }

    /// Closes the gate, if one was opened; returns the number of calls.
    async fn close(self) -> u64 {
        let Some(gate) = self.gate else { return 0 };
        let calls = gate.calls();
        self.record.sessions.extend(gate.sessions());
        gate.close().await;
        calls
    }
}
