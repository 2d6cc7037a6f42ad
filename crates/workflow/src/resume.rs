//! The point at which a run that stopped continues: the last state that failed, with the outcomes
//! of the others.

use std::collections::{BTreeMap, BTreeSet};

use super::{Status, StepOutcome, Workflow};

/// The way a recorded step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastStatus {
    Success,
    Failure,
    /// Its process died while it ran.
    Unfinished,
}

/// A recorded attempt of an earlier run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastStep {
    pub state: String,
    /// The outermost state that it belonged to: itself, or a parallel state.
    pub root: String,
    /// Tells two visits of that state apart.
    pub visit: u32,
    pub status: PastStatus,
}

/// The point at which a run continues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resumption {
    pub at: String,
    /// The outcomes that earlier states left.
    pub outcomes: BTreeMap<String, StepOutcome>,
    /// Branches of `at` that succeeded and need not run again.
    pub done: BTreeSet<String>,
}

impl Resumption {
    /// Finds the last state that failed or was interrupted; without one, the last state. `steps`
    /// are in the order in which they began; `began_at` is the state in which that run began.
    pub fn find(
        workflow: &Workflow,
        began_at: &str,
        steps: &[PastStep],
        outcomes: BTreeMap<String, StepOutcome>,
    ) -> Resumption {
        let newest = newest_visits(steps);
        let failed = newest.iter().find(|visit| has_failed(workflow, steps, visit, &outcomes));
        let Some(visit) = failed.or(newest.first()) else {
            return Resumption { at: began_at.to_owned(), outcomes, done: BTreeSet::new() };
        };
        let mut done = BTreeSet::new();
        for step in of_visit(steps, visit).filter(|step| step.state != step.root) {
            // A later attempt replaces an earlier one.
            let is_done = step.status == PastStatus::Success && outcomes.contains_key(&step.state);
            if is_done {
                done.insert(step.state.clone());
            } else {
                done.remove(&step.state);
            }
        }
        Resumption { at: visit.0.to_owned(), outcomes, done }
    }
}

/// A state and its visit.
type Visit<'s> = (&'s str, u32);

/// Returns the latest visit of each outermost state, the newest first.
fn newest_visits(steps: &[PastStep]) -> Vec<Visit<'_>> {
    let mut visits: Vec<Visit<'_>> = Vec::new();
    for step in steps.iter().rev() {
        if !visits.iter().any(|(root, _)| *root == step.root) {
            visits.push((&step.root, step.visit));
        }
    }
    visits
}

fn of_visit<'s>(
    steps: &'s [PastStep],
    visit: &'s Visit<'s>,
) -> impl DoubleEndedIterator<Item = &'s PastStep> {
    steps.iter().filter(|step| (step.root.as_str(), step.visit) == *visit)
}

fn has_failed(
    workflow: &Workflow,
    steps: &[PastStep],
    visit: &Visit<'_>,
    outcomes: &BTreeMap<String, StepOutcome>,
) -> bool {
    let unfinished = |step: &PastStep| step.status == PastStatus::Unfinished;
    if of_visit(steps, visit).any(unfinished) {
        return true;
    }
    let goes_on = workflow.state(visit.0).is_some_and(|state| state.continue_on_error);
    match outcomes.get(visit.0).map(|outcome| outcome.status) {
        Some(Status::Success) => false,
        Some(Status::Failure | Status::TimedOut) => !goes_on,
        // It never ended, or a person stopped it.
        Some(Status::Cancelled) | None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Inventory, read};

    const FLOW: &str = "
name: f
states:
  initial: test
  test: {type: step, command: a, on_success: both, on_failure: fix}
  fix: {type: step, command: b, on_success: test, on_failure: tidy}
  both: {type: parallel, parallel: [left, right], on_success: done, on_failure: tidy}
  left: {type: step, command: l}
  right: {type: step, command: r}
  tidy: {type: step, command: t, continue_on_error: true, on_success: bad}
  done: {type: terminal, status: success}
  bad: {type: terminal, status: failure}
";

    /// Reads steps written as `state/root#visit` and a mark: `+` succeeded, `-` failed, `?`
    /// unfinished.
    fn past(words: &str) -> Vec<PastStep> {
        let step = |word: &str| {
            let (name, status) = word.split_at(word.len() - 1);
            let (name, visit) = name.split_once('#').unwrap();
            let (state, root) = name.split_once('/').unwrap_or((name, name));
            let status = match status {
                "+" => PastStatus::Success,
                "-" => PastStatus::Failure,
                _ => PastStatus::Unfinished,
            };
            let (state, root) = (state.to_owned(), root.to_owned());
            PastStep { state, root, visit: visit.parse().unwrap(), status }
        };
        words.split_whitespace().map(step).collect()
    }

    fn outcomes(words: &str) -> BTreeMap<String, StepOutcome> {
        let outcome = |word: &str| {
            let (name, status) = word.split_once('=').unwrap();
            (name.to_owned(), StepOutcome::new(Status::named(status).unwrap()))
        };
        words.split_whitespace().map(outcome).collect()
    }

    #[test]
    fn a_run_goes_on_at_the_last_state_that_failed() {
        let read = read(FLOW, &Inventory::default());
        let workflow = read.workflow.unwrap_or_else(|| panic!("{:?}", read.errors));
        for (steps, left, at, done) in [
            // Killed before any step.
            ("", "", "began", ""),
            // Killed in a step, after its first visit had ended.
            ("test#1- fix#2+ test#3?", "test=failure fix=success", "test", ""),
            // Failed, and then something was tidied up.
            ("test#1- fix#2- tidy#3+", "test=failure fix=failure tidy=success", "fix", ""),
            ("test#1- fix#2- tidy#3-", "test=failure fix=failure tidy=failure", "fix", ""),
            // An attempt failed, the next one succeeded; killed between two states.
            ("test#1- test#1+", "test=success", "test", ""),
            // A branch failed and the other was cancelled, or had succeeded.
            (
                "test#1+ left/both#2- right/both#2-",
                "test=success left=failure right=cancelled both=failure",
                "both",
                "",
            ),
            (
                "test#1+ left/both#2+ right/both#2- right/both#2-",
                "test=success left=success right=failure both=failure",
                "both",
                "left",
            ),
            // Killed while a branch ran; the outcome of the whole is missing.
            ("test#1+ left/both#2+ right/both#2?", "test=success left=success", "both", "left"),
            // Killed between the branches and the end of the whole.
            ("left/both#2+ right/both#2+", "left=success right=success", "both", "left right"),
            // Stopped by a person.
            ("test#1-", "test=cancelled", "test", ""),
        ] {
            let found = Resumption::find(&workflow, "began", &past(steps), outcomes(left));
            let named: Vec<&str> = found.done.iter().map(String::as_str).collect();
            assert_eq!((found.at.as_str(), named.join(" ").as_str()), (at, done), "{steps}");
            assert_eq!(found.outcomes, outcomes(left));
        }
    }
}
