//! `run --resume`: an earlier run that failed, was stopped or was killed, and what it left for
//! another to go on.

use std::collections::BTreeMap;
use std::path::PathBuf;

use domain::Code;
use mcp::task;
use receipt::Hash;
use serde_json::Value;
use store::read::IdKind;
use store::run::{RunRecord, RunSource, RunStatus, StateOutcome, StepRecord, StepStatus};
use store::{Store, StoreError};
use workflow::{PastStatus, PastStep, Resumption, Status, StepOutcome, Workflow};

use crate::exit::Failure;
use crate::site::Site;

/// A run to go on from.
pub(super) struct EarlierRun {
    record: RunRecord,
    source: RunSource,
    steps: Vec<StepRecord>,
    outcomes: Vec<StateOutcome>,
}

impl EarlierRun {
    /// Reads a run by its id or an unambiguous part of it.
    pub(super) async fn read(site: &Site, id: &str) -> Result<EarlierRun, Failure> {
        site.home()?.must_exist()?;
        let store = site.store()?;
        let (reading, asked) = (store.clone(), id.to_ascii_lowercase());
        let found = task::spawn_blocking(move || find(&reading, &asked)).await;
        let _ = store.close().await;
        let found = found
            .map_err(|error| Failure::system(format!("cannot read the run: {error}")))?
            .map_err(Failure::store)?;
        let KeptRun { record, source, steps, outcomes } = match found {
            Found::Run(found) => *found,
            Found::None => {
                return Err(Failure::input(format!("{}: run '{id}' not found", Code::NotFound)));
            }
            Found::Several(ids) => {
                let ids = ids.join(", ");
                return Err(Failure::input(format!("'{id}' matches several runs: {ids}")));
            }
        };
        match record.status {
            RunStatus::Failure | RunStatus::Cancelled | RunStatus::Interrupted => {}
            RunStatus::Running => return Err(refused("the run is still running")),
            RunStatus::Success => return Err(refused("the run succeeded: start it again instead")),
        }
        let Some(source) = source else {
            return Err(refused("it ended before its inputs were recorded: start it again"));
        };
        Ok(EarlierRun { record, source, steps, outcomes })
    }

    pub(super) fn id(&self) -> &str {
        &self.record.id
    }

    /// Returns the file of the workflow.
    pub(super) fn file(&self) -> Result<PathBuf, Failure> {
        let file = self.record.file.as_ref().map(PathBuf::from);
        file.ok_or_else(|| refused("it has no workflow file: start it again with --provider"))
    }

    /// Checks that the workflow and the folder are the same.
    pub(super) fn check(&self, text: &str) -> Result<(), Failure> {
        if hash(text) != self.source.hash {
            return Err(refused(
                "the workflow file has changed since: start it from the beginning",
            ));
        }
        let (then, now) = (&self.source.dir, current_dir()?);
        if now.to_str() != Some(then) {
            return Err(refused(&format!("it ran in '{then}': resume it in that folder")));
        }
        Ok(())
    }

    /// Returns the inputs of that run. Those that hold secrets were not kept and must be given
    /// again; others may be given again, but not changed.
    pub(super) fn inputs(
        &self,
        given: &[(String, String)],
    ) -> Result<Vec<(String, String)>, Failure> {
        let mut inputs = Vec::new();
        let mut faults = Vec::new();
        for (name, kept) in &self.source.inputs {
            let again = given.iter().find(|(other, _)| other == name).map(|(_, text)| text);
            match (kept.as_ref().map(text_of), again) {
                (Some(kept), Some(again)) if kept != *again => {
                    faults.push(format!("input '{name}' differs from that of the run"));
                }
                (Some(kept), _) => inputs.push((name.clone(), kept)),
                (None, Some(again)) => inputs.push((name.clone(), again.clone())),
                (None, None) => faults.push(format!(
                    "input '{name}' holds a secret and was not kept: pass -i {name}=…"
                )),
            }
        }
        let is_kept = |name: &String| self.source.inputs.iter().any(|(kept, _)| kept == name);
        for (name, _) in given.iter().filter(|(name, _)| !is_kept(name)) {
            faults.push(format!("input '{name}' was not given to the run"));
        }
        if faults.is_empty() { Ok(inputs) } else { Err(refused(&faults.join("; "))) }
    }

    /// Returns the point at which the run continues.
    pub(super) fn resumption(self, workflow: &Workflow, text: &str) -> Result<Resumption, Failure> {
        let steps: Vec<PastStep> = self.steps.iter().map(past).collect();
        let altered: Vec<String> = self
            .outcomes
            .iter()
            .filter(|outcome| !outcome.is_whole)
            .map(|outcome| outcome.state.clone())
            .collect();
        let outcomes: BTreeMap<String, StepOutcome> =
            self.outcomes.into_iter().filter_map(outcome).collect();
        let found = Resumption::find(workflow, &self.source.began_at, &steps, outcomes);
        let is_needed = |state: &&String| **state != found.at && is_read(text, state);
        if let Some(state) = altered.iter().find(is_needed) {
            return Err(refused(&format!(
                "the output of '{state}' was too long to be kept, or held a secret: start it from \
                 the beginning"
            )));
        }
        Ok(found)
    }
}

/// A run as it is kept; one that ended at once has no source.
struct KeptRun {
    record: RunRecord,
    source: Option<RunSource>,
    steps: Vec<StepRecord>,
    outcomes: Vec<StateOutcome>,
}

/// The runs whose id has the given part.
enum Found {
    Run(Box<KeptRun>),
    None,
    Several(Vec<String>),
}

fn find(store: &Store, id: &str) -> Result<Found, StoreError> {
    store.state().end_lost_runs()?;
    let reader = store.read();
    let mut ids = reader.ids(IdKind::Run, id)?;
    if ids.len() > 1 {
        return Ok(Found::Several(ids));
    }
    let Some(id) = ids.pop() else { return Ok(Found::None) };
    let Some((run, steps)) = reader.run(&id)? else { return Ok(Found::None) };
    let (source, outcomes) = (reader.run_source(&id)?, reader.run_outcomes(&id)?);
    Ok(Found::Run(Box::new(KeptRun { record: run.record, source, steps, outcomes })))
}

fn past(step: &StepRecord) -> PastStep {
    let status = match step.status {
        StepStatus::Success => PastStatus::Success,
        StepStatus::Failure | StepStatus::Cancelled | StepStatus::TimedOut => PastStatus::Failure,
        StepStatus::Running | StepStatus::Interrupted => PastStatus::Unfinished,
    };
    let root = step.root.clone().unwrap_or_else(|| step.state.clone());
    PastStep { state: step.state.clone(), root, visit: step.visit, status }
}

fn outcome(kept: StateOutcome) -> Option<(String, StepOutcome)> {
    let outcome = StepOutcome {
        status: Status::named(&kept.status)?,
        output: kept.output,
        stderr: kept.stderr,
        exit_code: kept.exit_code,
        json: kept.json,
        tokens: kept.tokens,
        // What was cut is not kept.
        is_cut: false,
        is_unclear: false,
    };
    Some((kept.state, outcome))
}

/// Reports whether the workflow may read the texts of a state.
fn is_read(text: &str, state: &str) -> bool {
    let fields = ["Output", "Stderr", "JSON"];
    fields.iter().any(|field| text.contains(&format!("states.{state}.{field}")))
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn refused(why: &str) -> Failure {
    Failure::input(format!("{}: {why}", Code::RunNotResumable))
}

/// Returns the hash by which a workflow is recognized.
pub(super) fn hash(text: &str) -> String {
    Hash::of(text.as_bytes()).to_string()
}

/// Returns the folder that a run works in.
pub(super) fn current_dir() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::system(format!("cannot use the current folder: {error}")))
}
