//! The environment of a run, which its caller provides.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use provider::Tracer;
use store::run::{RunEnd, RunRecord, StepRecord};
use workflow::StepOutcome;

use crate::agent::{AgentEvent, Person};
use crate::gate::Gates;

/// The services and settings that a run uses.
pub struct RunEnvironment {
    pub gates: Arc<dyn Gates>,
    pub watch: Arc<dyn Watch>,
    pub tracer: Option<Arc<dyn Tracer>>,
    /// Our own program, which runs between us and each agent.
    pub supervisor: Option<PathBuf>,
    /// The folder for probes of agent programs.
    pub probes: Option<PathBuf>,
    /// The folder to which steps' folders are relative.
    pub dir: PathBuf,
    /// The person's environment, which agents inherit.
    pub env: Vec<(OsString, OsString)>,
    pub person: Person,
}

/// Receives the progress of a run.
pub trait Watch: Send + Sync {
    fn run_began(&self, run: &RunRecord);

    fn run_ended(&self, run: &RunRecord, end: &RunEnd);

    fn step_began(&self, step: &StepRecord);

    /// Called when a step has its gate; `sessions` returns those opened so far that its calls are
    /// recorded under.
    fn step_at_work(&self, step: &StepRecord, sessions: SessionList);

    /// Called for everything that a step's agent reports.
    fn step_said(&self, step: &StepRecord, event: &AgentEvent);

    fn step_ended(&self, step: &StepRecord, calls: u64);

    /// Called with the outcome of a step, and of a parallel state as a whole.
    fn state_settled(&self, run: &RunRecord, state: &str, outcome: &StepOutcome);
}

/// Returns the sessions of a step so far.
pub type SessionList = Arc<dyn Fn() -> Vec<String> + Send + Sync>;
