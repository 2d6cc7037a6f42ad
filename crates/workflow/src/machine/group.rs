//! What is under way: one step with its attempts, or a parallel state with those of its branches.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Map, Value};

use super::{Action, Machine, Outcome, Status};
use crate::plan::{Kind, State, Strategy};

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
    ended: Vec<Done>,
    /// What is still running cannot change the result any more.
    is_decided: bool,
    /// Somebody else decided that it is not wanted any more.
    is_cancelled: bool,
}

/// How a state ended, all attempts and branches included.
pub(super) struct Done {
    pub(super) state: String,
    pub(super) status: Status,
    /// For what comes next: `continue_on_error` makes a failure one.
    pub(super) is_success: bool,
}

impl Job {
    /// Whether the end of this step is awaited in it.
    pub(super) fn runs(&self, name: &str) -> bool {
        match self {
            Job::Step { state, .. } => state == name,
            Job::Group(group) => group.running.iter().any(|job| job.runs(name)),
        }
    }

    /// Nothing new is begun; what runs is told to stop.
    pub(super) fn cancel(&mut self) -> Vec<Action> {
        match self {
            Job::Step { is_cancelled: true, .. } => Vec::new(),
            Job::Step { state, is_cancelled, .. } => {
                *is_cancelled = true;
                vec![Action::Cancel { state: state.clone() }]
            }
            Job::Group(group) => {
                group.is_cancelled = true;
                group.decided()
            }
        }
    }
}

impl Group {
    /// Nothing new is begun, and what runs is told to stop.
    fn decided(&mut self) -> Vec<Action> {
        self.is_decided = true;
        self.waiting.clear();
        self.running.iter_mut().flat_map(Job::cancel).collect()
    }

    fn status(&self) -> Status {
        let mut successes = self.ended.iter().map(|done| done.is_success);
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

impl Machine {
    /// Begins a state that is no terminal one.
    pub(super) fn start(&self, state: &State, actions: &mut Vec<Action>) -> Job {
        let name = state.name.clone();
        let Kind::Parallel(parallel) = &state.kind else {
            let (state, after) = (name.clone(), Duration::ZERO);
            actions.push(Action::Start { state, attempt: 1, after });
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
        self.fill(&mut group, actions);
        Job::Group(group)
    }

    /// Begins as many branches as may run at once.
    fn fill(&self, group: &mut Group, actions: &mut Vec<Action>) {
        while group.running.len() < group.slots {
            let Some(name) = group.waiting.pop_front() else { break };
            let Some(branch) = self.state(&name) else { continue };
            group.running.push(self.start(branch, actions));
        }
    }

    /// Takes the end of a step that the job runs; `Some` once the whole job has ended.
    pub(super) fn advance(
        &mut self,
        job: &mut Job,
        name: &str,
        outcome: Outcome,
        actions: &mut Vec<Action>,
    ) -> Option<Done> {
        match job {
            Job::Step { attempt, is_cancelled, .. } => {
                let state = self.state(name)?;
                let (retry, goes_on) = (state.retry, state.continue_on_error);
                let status = outcome.status;
                self.values.outcomes.insert(name.to_owned(), outcome);
                let may_go_on = !*is_cancelled && *attempt < retry.max_attempts;
                if may_go_on && is_worth_another(status) {
                    let after = retry.delay(*attempt);
                    *attempt += 1;
                    let (state, attempt) = (name.to_owned(), *attempt);
                    actions.push(Action::Start { state, attempt, after });
                    return None;
                }
                let is_success = succeeds(status, goes_on);
                Some(Done { state: name.to_owned(), status, is_success })
            }
            Job::Group(group) => {
                let index = group.running.iter().position(|job| job.runs(name))?;
                let done = self.advance(&mut group.running[index], name, outcome, actions)?;
                group.running.remove(index);
                group.ended.push(done);
                self.branch_ended(group, actions)
            }
        }
    }

    fn branch_ended(&mut self, group: &mut Group, actions: &mut Vec<Action>) -> Option<Done> {
        let is_success = group.ended.last().is_some_and(|done| done.is_success);
        let decides = match group.strategy {
            Strategy::AllSucceed => !is_success,
            Strategy::AnySucceed => is_success,
            Strategy::BestEffort => false,
        };
        if decides && !group.is_decided {
            actions.extend(group.decided());
        }
        if !group.is_decided {
            self.fill(group, actions);
        }
        if group.running.is_empty() { Some(self.group_ended(group)) } else { None }
    }

    fn group_ended(&mut self, group: &Group) -> Done {
        let status = group.status();
        let branches: Map<String, Value> = group
            .ended
            .iter()
            .map(|done| (done.state.clone(), Value::from(done.status.name())))
            .collect();
        let outcome = Outcome { json: Some(Value::Object(branches)), ..Outcome::new(status) };
        self.values.outcomes.insert(group.state.clone(), outcome);
        let goes_on = self.state(&group.state).is_some_and(|state| state.continue_on_error);
        let is_success = succeeds(status, goes_on);
        Done { state: group.state.clone(), status, is_success }
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
