//! The values of a run, as templates and conditions see them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::inputs::Inputs;
use super::outcome::StepOutcome;
use super::reference::{Field, Reference};

#[derive(Clone, Debug)]
pub(super) struct Values {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) inputs: Inputs,
    /// The environment variables that the workflow names, if set.
    pub(super) env: BTreeMap<String, String>,
    /// The outcome of each state's latest run.
    pub(super) outcomes: BTreeMap<String, StepOutcome>,
}

impl Values {
    /// Returns `None` for a missing value, such as a state that has not run or an unset variable.
    pub(super) fn value(&self, reference: &Reference) -> Option<Value> {
        match reference {
            Reference::Input(name) => self.inputs.get(name).cloned(),
            Reference::Env(name) => self.env.get(name).cloned().map(Value::String),
            Reference::WorkflowId => Some(Value::String(self.id.clone())),
            Reference::WorkflowName => Some(Value::String(self.name.clone())),
            Reference::State { state, field } => field_of(self.outcomes.get(state)?, field),
        }
    }

    /// Reports whether a value is whole. The middle of a long output is left out.
    pub(super) fn is_whole(&self, reference: &Reference) -> bool {
        match reference {
            Reference::State { state, field: Field::Output | Field::Stderr } => {
                !self.outcomes.get(state).is_some_and(|outcome| outcome.is_cut)
            }
            Reference::State { .. }
            | Reference::Input(_)
            | Reference::Env(_)
            | Reference::WorkflowId
            | Reference::WorkflowName => true,
        }
    }

    /// Returns the value as text for a template, or the reason that there is none.
    pub(super) fn text(&self, reference: &Reference) -> Result<String, String> {
        match (self.value(reference), reference) {
            (Some(value), _) => Ok(text_of(value)),
            // An optional input that was not given.
            (None, Reference::Input(_)) => Ok(String::new()),
            (None, Reference::Env(name)) => Err(format!("environment variable {name} is not set")),
            (None, Reference::State { state, .. }) if !self.outcomes.contains_key(state) => {
                Err(format!("state '{state}' has not run"))
            }
            (None, Reference::State { state, field: Field::Json(_) }) => Err(format!(
                "the output of state '{state}' is not JSON or does not have this field"
            )),
            (None, Reference::State { state, .. }) => {
                Err(format!("state '{state}' does not have this value"))
            }
            (None, Reference::WorkflowId | Reference::WorkflowName) => Ok(String::new()),
        }
    }
}

fn field_of(outcome: &StepOutcome, field: &Field) -> Option<Value> {
    match field {
        Field::Output => Some(trimmed(&outcome.output)),
        Field::Stderr => Some(trimmed(&outcome.stderr)),
        Field::ExitCode => outcome.exit_code.map(Value::from),
        Field::Status => Some(Value::from(outcome.status.name())),
        Field::TokensUsed => Some(Value::from(outcome.tokens.unwrap_or(0))),
        Field::Json(path) => path.iter().try_fold(outcome.json.as_ref()?, step_into).cloned(),
    }
}

fn step_into<'v>(value: &'v Value, part: &String) -> Option<&'v Value> {
    match value {
        Value::Object(members) => members.get(part),
        Value::Array(elements) => elements.get(part.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Removes trailing line breaks, as `$(…)` does.
fn trimmed(text: &str) -> Value {
    Value::from(text.trim_end_matches(['\n', '\r']))
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
