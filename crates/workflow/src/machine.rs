//! A run as a state machine: events in, actions out. The driver carries out the actions and reports
//! how they ended. Every [`MachineAction::Start`] is answered by one [`MachineEvent::Ended`], even
//! after a cancel, so that nothing still runs when the next state starts.

mod event;
mod job;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use self::event::{Ending, Finish, MachineAction, MachineEvent};
use self::job::{Job, Stage, Started, StateEnd};
use super::plan::{OnFailure, StateKind, TerminalStatus};
use super::values::Values;
use super::{
    EXIT_CANCELLED, EXIT_FAILURE, Inputs, ResolvedStep, Resumption, StepOutcome, Template,
    Workflow, WorkflowFault, resolve,
};
use domain::code::Code;

/// The number of states that a run may visit, including branches. Loops are allowed; this stops
/// endless ones.
const VISITS_MAX: u32 = 1_000;

pub struct Machine {
    workflow: Arc<Workflow>,
    values: Values,
    job: Option<Job>,
    visits: u32,
    /// The outermost state that is running or ran last.
    at: String,
    /// Branches of the first state that need not run again.
    done: BTreeSet<String>,
    /// States whose outcome the driver has not collected yet.
    settled: Vec<String>,
    is_cancelled: bool,
    is_finished: bool,
}

impl Machine {
    /// Creates a machine. `env` is queried once, here, for the variables that the workflow names.
    pub fn new(
        workflow: Arc<Workflow>,
        inputs: Inputs,
        id: impl Into<String>,
        env: impl Fn(&str) -> Option<String>,
    ) -> Machine {
        let names = workflow.env_names.iter();
        let env = names.filter_map(|name| Some((name.clone(), env(name)?))).collect();
        let (id, name) = (id.into(), workflow.name.clone());
        let values = Values { id, name, inputs, env, outcomes: BTreeMap::new() };
        let at = workflow.initial.clone();
        Machine {
            workflow,
            values,
            job: None,
            visits: 0,
            at,
            done: BTreeSet::new(),
            settled: Vec::new(),
            is_cancelled: false,
            is_finished: false,
        }
    }

    /// Makes the run begin where an earlier one stopped.
    #[must_use]
    pub fn resumed(mut self, from: Resumption) -> Machine {
        self.at = from.at;
        self.done = from.done;
        self.values.outcomes = from.outcomes;
        self
    }

    pub fn workflow(&self) -> &Arc<Workflow> {
        &self.workflow
    }

    /// Returns the outcome of a state's latest run.
    pub fn outcome(&self, state: &str) -> Option<&StepOutcome> {
        self.values.outcomes.get(state)
    }

    /// Returns the outermost state that is running or ran last.
    pub fn at(&self) -> &str {
        &self.at
    }

    /// Returns the number of states visited so far, which tells two visits of a state apart.
    pub fn visits(&self) -> u32 {
        self.visits
    }

    /// Returns the states that got an outcome since the last call.
    pub fn take_settled(&mut self) -> Vec<String> {
        std::mem::take(&mut self.settled)
    }

    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Resolves the work of a state that is about to start, with the current values filled in.
    pub fn resolve(&self, state: &str) -> Result<ResolvedStep, WorkflowFault> {
        resolve::resolve(&self.workflow, state, &self.values)
    }

    pub fn on(&mut self, event: MachineEvent) -> Vec<MachineAction> {
        if self.is_finished {
            return Vec::new();
        }
        match event {
            MachineEvent::Begin if self.visits == 0 => self.enter(self.at.clone()),
            MachineEvent::Begin => Vec::new(),
            MachineEvent::Ended { state, outcome } => self.ended(&state, outcome),
            MachineEvent::Cancel => self.cancel(),
        }
    }

    fn cancel(&mut self) -> Vec<MachineAction> {
        if std::mem::replace(&mut self.is_cancelled, true) {
            return Vec::new();
        }
        match &mut self.job {
            Some(job) => job.cancel(),
            None => self.finish_cancelled(),
        }
    }

    fn ended(&mut self, state: &str, outcome: StepOutcome) -> Vec<MachineAction> {
        // An event for a state that is not running is the driver's mistake and changes nothing.
        if !self.job.as_ref().is_some_and(|job| job.runs(state)) {
            return Vec::new();
        }
        let Some(mut job) = self.job.take() else { return Vec::new() };
        let workflow = Arc::clone(&self.workflow);
        let mut stage = Stage::new(&workflow, &mut self.values.outcomes);
        let end = job.advance(state, outcome.kept(), &mut stage);
        let left = stage.end();
        let mut actions = self.keep(left);
        match end {
            None => {
                self.job = Some(job);
                actions
            }
            Some(_) if self.is_cancelled => self.finish_cancelled(),
            Some(end) => {
                actions.extend(self.follow(&end));
                actions
            }
        }
    }

    fn enter(&mut self, name: String) -> Vec<MachineAction> {
        self.at = name;
        let workflow = Arc::clone(&self.workflow);
        let Some(state) = workflow.state(&self.at) else {
            let message = format!("state '{}' not found", self.at);
            return self.fail(message, EXIT_FAILURE, Some(Code::WorkflowUnknownState));
        };
        if let StateKind::Terminal(terminal) = &state.kind {
            return self.terminal(terminal.status, terminal.message.as_ref());
        }
        self.visits = self.visits.saturating_add(workflow.weight(state));
        if self.visits > VISITS_MAX {
            let message =
                format!("the run visited {VISITS_MAX} states without reaching a terminal state");
            return self.fail(message, EXIT_FAILURE, Some(Code::WorkflowVisitLimit));
        }
        let done = std::mem::take(&mut self.done);
        let mut stage = Stage::new(&workflow, &mut self.values.outcomes);
        stage.done = done;
        let started = Job::start(state, &mut stage);
        let left = stage.end();
        let mut actions = self.keep(left);
        match started {
            Started::Running(job) => self.job = Some(job),
            Started::Ended(end) => actions.extend(self.follow(&end)),
        }
        actions
    }

    /// Keeps the names of states that got an outcome; returns the actions.
    fn keep(
        &mut self,
        (actions, settled): (Vec<MachineAction>, Vec<String>),
    ) -> Vec<MachineAction> {
        self.settled.extend(settled);
        actions
    }

    /// Moves the run on from a state that has ended.
    fn follow(&mut self, end: &StateEnd) -> Vec<MachineAction> {
        let workflow = Arc::clone(&self.workflow);
        let Some(state) = workflow.state(&end.state) else { return Vec::new() };
        let holds = |when: &Option<super::Condition>| {
            when.as_ref().is_none_or(|when| when.holds(&self.values))
        };
        if let Some(transition) = state.transitions.iter().find(|one| holds(&one.when)) {
            return self.enter(transition.goto.clone());
        }
        if end.is_success {
            return match &state.on_success {
                Some(next) => self.enter(next.clone()),
                None => {
                    let message = format!(
                        "no transition of '{}' applies, and it has no on_success",
                        state.name
                    );
                    self.fail(message, EXIT_FAILURE, None)
                }
            };
        }
        match &state.on_failure {
            Some(OnFailure::Goto(next)) => self.enter(next.clone()),
            Some(OnFailure::End { message, exit_status }) => self
                .told(Some(message), |machine, message| {
                    machine.finish(Ending::Failure, message, *exit_status, None)
                }),
            None => {
                let message =
                    format!("state '{}' ended with status {}", state.name, end.status.name());
                self.fail(message, EXIT_FAILURE, None)
            }
        }
    }

    fn terminal(
        &mut self,
        status: TerminalStatus,
        message: Option<&Template>,
    ) -> Vec<MachineAction> {
        let (ending, exit_status) = match status {
            TerminalStatus::Success => (Ending::Success, 0),
            TerminalStatus::Failure => (Ending::Failure, EXIT_FAILURE),
        };
        self.told(message, |machine, message| machine.finish(ending, message, exit_status, None))
    }

    /// Renders the final message with the current values. If that fails, the run has failed.
    fn told(
        &mut self,
        message: Option<&Template>,
        finish: impl FnOnce(&mut Machine, Option<String>) -> Vec<MachineAction>,
    ) -> Vec<MachineAction> {
        match message.map(|message| message.render(&self.values)).transpose() {
            Ok(message) => finish(self, message),
            Err(why) => {
                let message = format!("cannot fill in the message of '{}': {why}", self.at);
                self.fail(message, EXIT_FAILURE, Some(Code::WorkflowBadTemplate))
            }
        }
    }

    fn fail(&mut self, message: String, exit_status: u8, code: Option<Code>) -> Vec<MachineAction> {
        self.finish(Ending::Failure, Some(message), exit_status, code)
    }

    fn finish_cancelled(&mut self) -> Vec<MachineAction> {
        self.finish(Ending::Cancelled, Some("cancelled".to_owned()), EXIT_CANCELLED, None)
    }

    fn finish(
        &mut self,
        ending: Ending,
        message: Option<String>,
        exit_status: u8,
        code: Option<Code>,
    ) -> Vec<MachineAction> {
        self.is_finished = true;
        self.job = None;
        let state = self.at.clone();
        vec![MachineAction::Finish(Finish { ending, state, message, exit_status, code })]
    }
}
