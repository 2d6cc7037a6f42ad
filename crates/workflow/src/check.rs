//! Checks across the parts of a workflow: names that must exist, transitions that must lead
//! somewhere, and what may run in parallel.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::fault::Report;
use super::mention::{Goto, Mentioner, Mentions};
use super::plan::{OnFailure, State, StateKind, Workflow};
use super::reference::Names;
use super::source::Source;
use super::{FolderFault, Inventory, SettingFault};
use domain::code::Code;
use text::document::Location;
use text::near;

/// Nesting of parallel states; code that walks them recurses.
const PARALLEL_DEPTH_MAX: usize = 16;

/// Checks that every name used in one place is defined in another.
pub(super) fn references(
    mentions: &Mentions,
    names: &Names<'_>,
    source: &Source<'_>,
    report: &mut Report,
) {
    for Goto { state, location } in &mentions.gotos {
        if report.is_full() {
            return;
        }
        if !names.states.contains(state.as_str()) {
            let near = near::hint(&near::names(state, names.states.iter().copied(), 1));
            let message = format!("state '{state}' not found{near}");
            report.error(location, Code::WorkflowUnknownState, message);
        }
    }
    for mention in &mentions.references {
        if report.is_full() {
            return;
        }
        let never_boolean = "this value is never true or false: compare it with another";
        let (code, message) = match mention.by {
            Mentioner::Template => (Code::WorkflowBadTemplate, mention.reference.fault(names)),
            Mentioner::Condition => (Code::WorkflowBadExpression, mention.reference.fault(names)),
            Mentioner::WholeCondition => {
                let is_wrong = !mention.reference.may_be_boolean(names.inputs);
                (Code::WorkflowBadExpression, is_wrong.then(|| never_boolean.to_owned()))
            }
        };
        if let Some(message) = message {
            report.error(&mention.location(source), code, message);
        }
    }
}

/// Checks that each step can start where the workflow is to run.
pub(super) fn environment(workflow: &Workflow, known: &Inventory, report: &mut Report) {
    for state in &workflow.states {
        let Some(faults) = known.steps.get(&state.name) else { continue };
        match &faults.folder {
            Some(FolderFault::Missing(reason)) if !runs_first(workflow, &state.name) => {
                let message = format!("{reason}; an earlier step must create it");
                report.warn(&state.dir_location, Code::WorkflowBadFolder, message);
            }
            Some(FolderFault::Missing(reason) | FolderFault::Unusable(reason)) => {
                report.error(&state.dir_location, Code::WorkflowBadFolder, reason.as_str());
            }
            None => {}
        }
        let Some(agent) = state.agent() else { continue };
        for SettingFault { option, message } in &faults.options {
            let block = agent.places.block.as_ref().unwrap_or(&agent.location);
            let place = agent.places.options.get(*option).unwrap_or(block);
            report.error(place, Code::WorkflowBadValue, message.as_str());
        }
    }
}

/// Reports whether a state runs before any other has ended.
fn runs_first(workflow: &Workflow, name: &str) -> bool {
    let mut first = vec![workflow.initial.as_str()];
    let mut seen = HashSet::new();
    while let Some(state) = first.pop() {
        if state == name {
            return true;
        }
        if seen.insert(state)
            && let Some(StateKind::Parallel(parallel)) =
                workflow.state(state).map(|state| &state.kind)
        {
            first.extend(parallel.branches.iter().map(String::as_str));
        }
    }
    false
}

/// Checks the plan as a whole, once all of its states have been read.
pub(super) fn plan(workflow: &Workflow, report: &mut Report) {
    let states: HashMap<&str, &State> =
        workflow.states.iter().map(|state| (state.name.as_str(), state)).collect();
    let plan = Plan { workflow, states };
    plan.branches(report);
    plan.idle_failures(report);
    plan.onward(report);
    // Paths through an incomplete plan would be reported wrongly.
    if !report.has_errors() {
        plan.ways(report);
    }
}

struct Plan<'w> {
    workflow: &'w Workflow,
    states: HashMap<&'w str, &'w State>,
}

impl<'w> Plan<'w> {
    /// Checks parallel states: no cycles, no state twice at once, nothing that cannot be a branch.
    fn branches(&self, report: &mut Report) {
        for state in &self.workflow.states {
            let StateKind::Parallel(parallel) = &state.kind else { continue };
            for name in &parallel.branches {
                let is_terminal = self.state(name).is_some_and(is_terminal);
                if is_terminal {
                    let message = format!("'{name}' is a terminal state and cannot be a branch");
                    report.error(&state.location, Code::WorkflowBadParallel, message);
                }
            }
            if let Err(message) = self.unfold(state, 1, &mut HashSet::from([state.name.as_str()])) {
                report.error(&state.location, Code::WorkflowBadParallel, message);
            }
        }
    }

    /// Visits everything that a parallel state runs; each state may occur once.
    fn unfold(
        &self,
        state: &'w State,
        depth: usize,
        seen: &mut HashSet<&'w str>,
    ) -> Result<(), String> {
        let StateKind::Parallel(parallel) = &state.kind else { return Ok(()) };
        if depth > PARALLEL_DEPTH_MAX {
            return Err(format!(
                "parallel states are nested deeper than {PARALLEL_DEPTH_MAX} levels"
            ));
        }
        for name in &parallel.branches {
            if !seen.insert(name) {
                return Err(format!("'{name}' would run twice at the same time"));
            }
            if let Some(branch) = self.state(name) {
                self.unfold(branch, depth + 1, seen)?;
            }
        }
        Ok(())
    }

    /// Checks that every state reached by a transition leads somewhere; states used only as
    /// branches need not.
    fn onward(&self, report: &mut Report) {
        let branches = self.branch_names();
        let goals = self.goals();
        for state in self.workflow.states.iter().filter(|state| !is_terminal(state)) {
            let is_branch = branches.contains(state.name.as_str());
            let is_goal = goals.contains(state.name.as_str());
            let leads_on = state.on_success.is_some()
                || state.transitions.iter().any(|transition| transition.when.is_none());
            if !leads_on && (is_goal || !is_branch) {
                let message = "'on_success' is missing: name the next state";
                report.error(&state.location, Code::WorkflowMissingKey, message);
            }
            let says_where = state.on_success.is_some()
                || state.on_failure.is_some()
                || !state.transitions.is_empty();
            if says_where && is_branch && !is_goal {
                let message = "no effect: after a branch, the run continues with its parallel \
                               state; on_success, on_failure and transitions are ignored";
                report.warn(&state.location, Code::WorkflowNoEffect, message);
            }
        }
    }

    fn idle_failures(&self, report: &mut Report) {
        let idle = |state: &&State| state.continue_on_error && state.on_failure.is_some();
        for state in self.workflow.states.iter().filter(idle) {
            let message = "no effect: with continue_on_error, a failure continues with on_success";
            let path = format!("{}.on_failure", state.location.path);
            let location = Location { path, mark: state.location.mark };
            report.warn(&location, Code::WorkflowNoEffect, message);
        }
    }

    fn ways(&self, report: &mut Report) {
        let reached = self.reached();
        let ends = |name: &&str| self.state(name).is_some_and(is_terminal);
        if !reached.iter().any(ends) {
            let message = "no terminal state can be reached from 'initial'";
            let location = Location { path: "states".to_owned(), ..self.initial_location() };
            report.error(&location, Code::WorkflowNoTerminal, message);
        }
        for state in &self.workflow.states {
            if !reached.contains(state.name.as_str()) {
                let message = "this state cannot be reached from 'initial'";
                report.warn(&state.location, Code::WorkflowUnreachable, message);
            }
        }
    }

    fn reached(&self) -> BTreeSet<&'w str> {
        let (mut entered, mut beside) = (BTreeSet::new(), BTreeSet::new());
        let mut ahead = vec![self.workflow.initial.as_str()];
        while let Some(name) = ahead.pop() {
            let Some(state) = self.state(name) else { continue };
            if entered.insert(name) {
                ahead.extend(next(state));
                self.mark(state, &mut beside);
            }
        }
        entered.append(&mut beside);
        entered
    }

    /// Marks the states that a state runs as branches; their own transitions are not taken.
    fn mark(&self, state: &'w State, beside: &mut BTreeSet<&'w str>) {
        let mut ahead = vec![state];
        while let Some(state) = ahead.pop() {
            let StateKind::Parallel(parallel) = &state.kind else { continue };
            for name in &parallel.branches {
                if beside.insert(name) {
                    ahead.extend(self.state(name));
                }
            }
        }
    }

    fn branch_names(&self) -> HashSet<&'w str> {
        let mut names = HashSet::new();
        for state in &self.workflow.states {
            if let StateKind::Parallel(parallel) = &state.kind {
                names.extend(parallel.branches.iter().map(String::as_str));
            }
        }
        names
    }

    /// Returns the states that a run enters in sequence.
    fn goals(&self) -> HashSet<&'w str> {
        let first = std::iter::once(self.workflow.initial.as_str());
        first.chain(self.workflow.states.iter().flat_map(next)).collect()
    }

    fn state(&self, name: &str) -> Option<&'w State> {
        self.states.get(name).copied()
    }

    fn initial_location(&self) -> Location {
        self.state(&self.workflow.initial).map(|state| state.location.clone()).unwrap_or_default()
    }
}

/// Returns every state that a state can lead to.
fn next(state: &State) -> Vec<&str> {
    let mut ways: Vec<&str> = state.on_success.as_deref().into_iter().collect();
    ways.extend(state.transitions.iter().map(|transition| transition.goto.as_str()));
    match &state.on_failure {
        Some(OnFailure::Goto(name)) => ways.push(name),
        Some(OnFailure::End { .. }) | None => {}
    }
    ways
}

fn is_terminal(state: &State) -> bool {
    matches!(state.kind, StateKind::Terminal(_))
}
