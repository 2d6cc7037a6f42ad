//! What is under way: one step with its attempts, or a parallel state with those of its branches.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::{Map, Value};

use super::event::MachineAction;
use crate::outcome::{Status, StepOutcome};
use crate::plan::{State, StateKind, Strategy, Workflow};

/// A state that is under way. Branches of branches nest as deep as parallel states do, which is
/// bounded when a workflow is read.
pub(super) enum Job {
    Step { state: String, attempt: u32, is_cancelled: bool },
    Group(Group),
}

pub(super) struct Group {
    state: String,
    strategy: Strategy,
    slots: usize,
    waiting: VecDeque<String>,
    running: Vec<Job>,
    ended: Vec<StateEnd>,
    /// What is still running cannot change the result any more.
    is_decided: bool,
    /// Somebody else decided that it is not wanted any more.
    is_cancelled: bool,
}

/// How a state ended, all attempts and branches included.
pub(super) struct StateEnd {
    pub(super) state: String,
    pub(super) status: Status,
    /// For what comes next: `continue_on_error` makes a failure one.
    pub(super) is_success: bool,
}

/// The run around a job.
pub(super) struct Stage<'r> {
    pub(super) workflow: &'r Workflow,
    pub(super) outcomes: &'r mut BTreeMap<String, StepOutcome>,
    pub(super) actions: Vec<MachineAction>,
}

impl Job {
    /// Begins a state that is no terminal one.
    pub(super) fn start(
        state: &State,
        workflow: &Workflow,
        actions: &mut Vec<MachineAction>,
    ) -> Job {
        let name = state.name.clone();
        let StateKind::Parallel(parallel) = &state.kind else {
            let (state, after) = (name.clone(), Duration::ZERO);
            actions.push(MachineAction::Start { state, attempt: 1, after });
            return Job::Step { state: name, attempt: 1, is_cancelled: false };
        };
        let slots = parallel.max_concurrent.map_or(usize::MAX, |most| most as usize);
        let mut group = Group {
            state: name,
            strategy: parallel.strategy,
            slots,
            waiting: parallel.branches.iter().cloned().collect(),
            running: Vec::new(),
            ended: Vec::new(),
            is_decided: false,
            is_cancelled: false,
        };
        group.fill(workflow, actions);
        Job::Group(group)
    }

    /// Takes the end of a step that the job runs; `Some` once the whole job has ended.
    pub(super) fn advance(
        &mut self,
        name: &str,
        outcome: StepOutcome,
        stage: &mut Stage<'_>,
    ) -> Option<StateEnd> {
        match self {
            Job::Step { attempt, is_cancelled, .. } => {
                let state = stage.workflow.state(name)?;
                let status = outcome.status;
                stage.outcomes.insert(name.to_owned(), outcome);
                let may_go_on = !*is_cancelled && *attempt < state.retry.max_attempts;
                if may_go_on && is_worth_another(status) {
                    let after = state.retry.delay(*attempt);
                    *attempt += 1;
                    let (state, attempt) = (name.to_owned(), *attempt);
                    stage.actions.push(MachineAction::Start { state, attempt, after });
                    return None;
                }
                let is_success = succeeds(status, state.continue_on_error);
                Some(StateEnd { state: name.to_owned(), status, is_success })
            }
            Job::Group(group) => group.advance(name, outcome, stage),
        }
    }

    /// Whether the end of this step is awaited in it.
    pub(super) fn runs(&self, name: &str) -> bool {
        match self {
            Job::Step { state, .. } => state == name,
            Job::Group(group) => group.running.iter().any(|job| job.runs(name)),
        }
    }

    /// Nothing new is begun; what runs is told to stop.
    pub(super) fn cancel(&mut self) -> Vec<MachineAction> {
        match self {
            Job::Step { is_cancelled: true, .. } => Vec::new(),
            Job::Step { state, is_cancelled, .. } => {
                *is_cancelled = true;
                vec![MachineAction::Cancel { state: state.clone() }]
            }
            Job::Group(group) => {
                group.is_cancelled = true;
                group.decided()
            }
        }
    }
}

impl Group {
    /// Begins as many branches as may run at once.
    fn fill(&mut self, workflow: &Workflow, actions: &mut Vec<MachineAction>) {
        while self.running.len() < self.slots {
            let Some(name) = self.waiting.pop_front() else { break };
            let Some(branch) = workflow.state(&name) else { continue };
            self.running.push(Job::start(branch, workflow, actions));
        }
    }

    fn advance(
        &mut self,
        name: &str,
        outcome: StepOutcome,
        stage: &mut Stage<'_>,
    ) -> Option<StateEnd> {
        let index = self.running.iter().position(|job| job.runs(name))?;
        let end = self.running[index].advance(name, outcome, stage)?;
        self.running.remove(index);
        let decides = match self.strategy {
            Strategy::AllSucceed => !end.is_success,
            Strategy::AnySucceed => end.is_success,
            Strategy::BestEffort => false,
        };
        self.ended.push(end);
        if decides && !self.is_decided {
            stage.actions.extend(self.decided());
        }
        if !self.is_decided {
            self.fill(stage.workflow, &mut stage.actions);
        }
        if self.running.is_empty() { Some(self.end(stage)) } else { None }
    }

    fn end(&self, stage: &mut Stage<'_>) -> StateEnd {
        let status = self.status();
        let branches: Map<String, Value> = self
            .ended
            .iter()
            .map(|end| (end.state.clone(), Value::from(end.status.name())))
            .collect();
        let outcome =
            StepOutcome { json: Some(Value::Object(branches)), ..StepOutcome::new(status) };
        stage.outcomes.insert(self.state.clone(), outcome);
        let goes_on = stage.workflow.state(&self.state);
        let goes_on = goes_on.is_some_and(|state| state.continue_on_error);
        let is_success = succeeds(status, goes_on);
        StateEnd { state: self.state.clone(), status, is_success }
    }

    /// Nothing new is begun, and what runs is told to stop.
    fn decided(&mut self) -> Vec<MachineAction> {
        self.is_decided = true;
        self.waiting.clear();
        self.running.iter_mut().flat_map(Job::cancel).collect()
    }

    fn status(&self) -> Status {
        let mut successes = self.ended.iter().map(|end| end.is_success);
        let is_success = match self.strategy {
            Strategy::AllSucceed => successes.all(|success| success),
            Strategy::AnySucceed => successes.any(|success| success),
            Strategy::BestEffort => true,
        };
        match (self.is_cancelled, is_success) {
            (true, _) => Status::Cancelled,
            (false, true) => Status::Success,
            (false, false) => Status::Failure,
        }
    }
}

fn is_worth_another(status: Status) -> bool {
    match status {
        Status::Failure | Status::TimedOut => true,
        Status::Success | Status::Cancelled => false,
    }
}

fn succeeds(status: Status, continue_on_error: bool) -> bool {
    match status {
        Status::Success => true,
        Status::Failure | Status::TimedOut => continue_on_error,
        Status::Cancelled => false,
    }
}
