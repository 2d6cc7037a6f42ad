//! Running work: a step with its attempts, or a parallel state with its branches.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde_json::{Map, Value};

use super::event::MachineAction;
use crate::outcome::{Status, StepOutcome};
use crate::plan::{State, StateKind, Strategy, Workflow};

/// A running state. Branches nest as deep as parallel states do, which is limited when a workflow
/// is read.
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
    /// True once the remaining branches cannot change the result.
    is_decided: bool,
    /// True once the job was cancelled from outside.
    is_cancelled: bool,
}

/// The end of a state, including all attempts and branches.
pub(super) struct StateEnd {
    pub(super) state: String,
    pub(super) status: Status,
    /// Determines the next state; `continue_on_error` makes a failure count as success.
    pub(super) is_success: bool,
}

/// The run around a job.
pub(super) struct Stage<'r> {
    workflow: &'r Workflow,
    outcomes: &'r mut BTreeMap<String, StepOutcome>,
    actions: Vec<MachineAction>,
    /// States that got an outcome.
    settled: Vec<String>,
    /// Branches that an earlier run completed.
    pub(super) done: BTreeSet<String>,
}

impl<'r> Stage<'r> {
    pub(super) fn new(
        workflow: &'r Workflow,
        outcomes: &'r mut BTreeMap<String, StepOutcome>,
    ) -> Stage<'r> {
        let (actions, settled, done) = (Vec::new(), Vec::new(), BTreeSet::new());
        Stage { workflow, outcomes, actions, settled, done }
    }

    /// Returns the actions, and the states that got an outcome.
    pub(super) fn end(self) -> (Vec<MachineAction>, Vec<String>) {
        (self.actions, self.settled)
    }

    fn settle(&mut self, state: &str, outcome: StepOutcome) {
        self.outcomes.insert(state.to_owned(), outcome);
        self.settled.push(state.to_owned());
    }
}

/// A state that was entered. One whose branches are all done has ended at once.
pub(super) enum Started {
    Running(Job),
    Ended(StateEnd),
}

impl Job {
    /// Starts a state that is not terminal.
    pub(super) fn start(state: &State, stage: &mut Stage<'_>) -> Started {
        let name = state.name.clone();
        let StateKind::Parallel(parallel) = &state.kind else {
            let (state, after) = (name.clone(), Duration::ZERO);
            stage.actions.push(MachineAction::Start { state, attempt: 1, after });
            return Started::Running(Job::Step { state: name, attempt: 1, is_cancelled: false });
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
        group.fill(stage);
        if group.running.is_empty() {
            return Started::Ended(group.end(stage));
        }
        Started::Running(Job::Group(group))
    }

    /// Handles the end of one of the job's steps; returns `Some` once the whole job has ended.
    pub(super) fn advance(
        &mut self,
        name: &str,
        outcome: StepOutcome,
        stage: &mut Stage<'_>,
    ) -> Option<StateEnd> {
        match self {
            Job::Step { attempt, is_cancelled, .. } => {
                let state = stage.workflow.state(name)?;
                let (status, is_unclear) = (outcome.status, outcome.is_unclear);
                stage.settle(name, outcome);
                let may_go_on =
                    !*is_cancelled && !is_unclear && *attempt < state.retry.max_attempts;
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

    /// Reports whether the job is waiting for this step to end.
    pub(super) fn runs(&self, name: &str) -> bool {
        match self {
            Job::Step { state, .. } => state == name,
            Job::Group(group) => group.running.iter().any(|job| job.runs(name)),
        }
    }

    /// Starts nothing more and cancels what is running.
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
    /// Starts as many branches as may run at once.
    fn fill(&mut self, stage: &mut Stage<'_>) {
        while self.running.len() < self.slots {
            let Some(name) = self.waiting.pop_front() else { break };
            let workflow = stage.workflow;
            let Some(branch) = workflow.state(&name) else { continue };
            let ended = if stage.done.contains(&name) {
                Started::Ended(StateEnd { state: name, status: Status::Success, is_success: true })
            } else {
                Job::start(branch, stage)
            };
            match ended {
                Started::Running(job) => self.running.push(job),
                Started::Ended(end) => self.count(end, stage),
            }
        }
    }

    /// Counts an ended branch; cancels the others if it decides the result.
    fn count(&mut self, end: StateEnd, stage: &mut Stage<'_>) {
        let decides = match self.strategy {
            Strategy::AllSucceed => !end.is_success,
            Strategy::AnySucceed => end.is_success,
            Strategy::BestEffort => false,
        };
        self.ended.push(end);
        if decides && !self.is_decided {
            stage.actions.extend(self.decided());
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
        self.count(end, stage);
        if !self.is_decided {
            self.fill(stage);
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
        stage.settle(&self.state, outcome);
        let goes_on = stage.workflow.state(&self.state);
        let goes_on = goes_on.is_some_and(|state| state.continue_on_error);
        let is_success = succeeds(status, goes_on);
        StateEnd { state: self.state.clone(), status, is_success }
    }

    /// Starts nothing more and cancels what is running.
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
