//! One attempt at a step: its gate is opened, the work is done, and everything is closed again,
//! however it ends.

mod agent;
mod command;

pub use agent::{command_in, request, tools};

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::Code;
use domain::workflow::{Fault, Resolved, Workflow};
use domain::workflow::{Outcome, Status};
use provider::TraceContext;
use store::run::StepRecord;
use tokio_util::sync::CancellationToken;

use crate::gate::{StepGate, Wanted};
use crate::run::Surroundings;

/// How long an attempt may take where its state does not say.
const TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// What is kept of a step's output in the record of its run.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// One attempt at a state.
pub(crate) struct Attempt {
    pub(crate) around: Arc<Surroundings>,
    pub(crate) workflow: Arc<Workflow>,
    pub(crate) state: String,
    pub(crate) resolved: Result<Resolved, Fault>,
    pub(crate) cancel: CancellationToken,
}

pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) calls: u64,
}

/// Why an attempt did not succeed, beside what there is of its outcome.
struct Failure {
    code: Code,
    message: String,
    outcome: Box<Outcome>,
}

impl Failure {
    fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure::with(code, message, Outcome::new(Status::Failure))
    }

    fn with(code: Code, message: impl Into<String>, outcome: Outcome) -> Failure {
        Failure { code, message: message.into(), outcome: Box::new(outcome) }
    }

    /// It did not fail: somebody wanted it to end.
    fn cancelled() -> Failure {
        let outcome = Outcome::new(Status::Cancelled);
        Failure::with(Code::Cancelled, "the step was cancelled", outcome)
    }

    fn timed_out(within: Duration) -> Failure {
        let message = format!("the step was not done within {}", words(within));
        Failure::with(Code::Timeout, message, Outcome::new(Status::TimedOut))
    }
}

fn words(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

impl Attempt {
    /// Fills in what the record is to say.
    pub(crate) async fn make(&self, record: &mut StepRecord, trace: TraceContext) -> Ended {
        let mut gate = None;
        let made = match &self.resolved {
            Err(fault) => Err(Failure::new(fault.code, fault.to_string())),
            Ok(Resolved::Command { command, dir }) => {
                self.command((command, dir.as_deref()), record, trace, &mut gate).await
            }
            Ok(Resolved::Agent(agent)) => self.agent(agent, record, trace, &mut gate).await,
            Ok(Resolved::Operation { plugin, .. }) => {
                let message = format!("there is no plugin '{plugin}'");
                Err(Failure::new(Code::ProxyUnknownPlugin, message))
            }
        };
        let calls = gate.as_ref().map_or(0, |gate| gate.calls());
        if let Some(gate) = gate {
            record.sessions.extend(gate.sessions());
            gate.close().await;
        }
        let outcome = made.unwrap_or_else(|failure| {
            record.error_code = Some(failure.code.as_str().to_owned());
            record.error = Some(failure.message.clone());
            let mut outcome = *failure.outcome;
            if outcome.stderr.is_empty() {
                outcome.stderr = failure.message;
            }
            outcome
        });
        if !outcome.output.is_empty() {
            let end = outcome.output.floor_char_boundary(KEPT_BYTES_MAX);
            record.output = Some(outcome.output[..end].to_owned());
        }
        Ended { outcome, calls }
    }

    fn within(&self) -> Duration {
        self.workflow.state(&self.state).and_then(|state| state.timeout).unwrap_or(TIMEOUT)
    }

    fn dir(&self, dir: Option<&str>) -> Result<PathBuf, Failure> {
        let dir = self.around.dir.join(dir.unwrap_or("."));
        dir.canonicalize().map_err(|error| {
            let message = format!("cannot use the folder '{}': {error}", dir.display());
            Failure::new(Code::AgentFailed, message)
        })
    }

    /// Opens the step's gate; what was wanted of it stays known to the record.
    async fn open(
        &self,
        wanted: Wanted,
        record: &StepRecord,
        opened: &mut Option<Arc<dyn StepGate>>,
    ) -> Result<Arc<dyn StepGate>, Failure> {
        let open = self.around.gates.open(wanted).await;
        let gate = open.map_err(|message| Failure::new(Code::AgentFailed, message))?;
        *opened = Some(gate.clone());
        let counted = gate.clone();
        self.around.watch.step_at_work(record, Arc::new(move || counted.calls()));
        Ok(gate)
    }

    /// Who calls, in the records.
    fn identity(&self, provider: &str) -> String {
        format!("{}/{}/{provider}", self.workflow.name, self.state)
    }
}
