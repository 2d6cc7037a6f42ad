//! The references in templates and conditions: `inputs.x`, `states.S.Output`, `workflow.id`,
//! `env.X`.

use std::collections::BTreeSet;

use super::{InputType, WorkflowInput};
use text::near;

/// Nesting of fields below `JSON`.
const JSON_FIELDS_MAX: usize = 32;

const ROOTS: [&str; 4] = ["inputs", "states", "workflow", "env"];
const FIELDS: [&str; 6] = ["Output", "Stderr", "ExitCode", "Status", "JSON", "TokensUsed"];

/// Prefix of the gate's own settings, some of them secret; agents and commands never receive them.
const OWN_VARIABLES: &str = "COUNTERSIGN_";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    Input(String),
    State { state: String, field: Field },
    WorkflowId,
    WorkflowName,
    Env(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Output,
    Stderr,
    ExitCode,
    Status,
    TokensUsed,
    /// Member names and element indexes, outermost first; empty for the whole value.
    Json(Vec<String>),
}

/// The names that references can use.
pub(super) struct Names<'n> {
    pub(super) inputs: &'n [WorkflowInput],
    pub(super) states: &'n BTreeSet<&'n str>,
    /// The names of terminal states.
    pub(super) terminals: &'n BTreeSet<&'n str>,
}

impl Reference {
    /// Parses `inputs.x`, with or without a leading dot.
    pub(super) fn parse(text: &str) -> Result<Reference, String> {
        let path = text.strip_prefix('.').unwrap_or(text);
        let mut parts = path.split('.');
        let root = parts.next().unwrap_or_default();
        let rest: Vec<&str> = parts.collect();
        if let Some(odd) = rest.iter().find(|part| !is_name(part)) {
            return Err(if odd.is_empty() {
                "there is one dot too many".to_owned()
            } else {
                "names consist of letters, digits, '_' and '-'".to_owned()
            });
        }
        match (root, rest.as_slice()) {
            ("inputs", [name]) => Ok(Reference::Input((*name).to_owned())),
            ("inputs", _) => Err("write inputs.NAME".to_owned()),
            ("env", [name]) if name.starts_with(OWN_VARIABLES) => {
                Err(format!("variables named {OWN_VARIABLES}… are not passed to steps"))
            }
            ("env", [name]) => Ok(Reference::Env((*name).to_owned())),
            ("env", _) => Err("write env.NAME".to_owned()),
            ("workflow", ["id"]) => Ok(Reference::WorkflowId),
            ("workflow", ["name"]) => Ok(Reference::WorkflowName),
            ("workflow", _) => Err("expected workflow.id or workflow.name".to_owned()),
            ("states", [state, field @ ..]) if !field.is_empty() => {
                let field = Field::parse(field)?;
                Ok(Reference::State { state: (*state).to_owned(), field })
            }
            ("states", _) => {
                Err(format!("write states.NAME.FIELD, where FIELD is one of {}", fields()))
            }
            (other, _) => {
                let near = near::hint(&near::names(other, ROOTS, 1));
                Err(format!("expected inputs, states, workflow or env{near}"))
            }
        }
    }

    /// Returns the fault of this reference in a workflow with these names.
    pub(super) fn fault(&self, names: &Names<'_>) -> Option<String> {
        match self {
            Reference::Input(name) => {
                let known = || names.inputs.iter().map(|input| input.name.as_str());
                (!known().any(|input| input == name)).then(|| {
                    format!(
                        "input '{name}' not found{}",
                        near::hint(&near::names(name, known(), 1))
                    )
                })
            }
            Reference::State { state, .. } if names.terminals.contains(state.as_str()) => {
                Some(format!("'{state}' is a terminal state and has no output"))
            }
            Reference::State { state, .. } => (!names.states.contains(state.as_str())).then(|| {
                let near = near::names(state, names.states.iter().copied(), 1);
                format!("state '{state}' not found{}", near::hint(&near))
            }),
            Reference::WorkflowId | Reference::WorkflowName | Reference::Env(_) => None,
        }
    }

    /// Reports whether the value can be a boolean; values from outside can be anything.
    pub(super) fn may_be_boolean(&self, inputs: &[WorkflowInput]) -> bool {
        match self {
            Reference::Input(name) => {
                let input = inputs.iter().find(|input| input.name == *name);
                input.is_none_or(|input| input.kind != InputType::Integer)
            }
            Reference::State { field, .. } => match field {
                Field::Output | Field::Stderr | Field::Json(_) => true,
                Field::ExitCode | Field::Status | Field::TokensUsed => false,
            },
            Reference::Env(_) => true,
            Reference::WorkflowId | Reference::WorkflowName => false,
        }
    }
}

impl Field {
    fn parse(parts: &[&str]) -> Result<Field, String> {
        let field = match parts {
            ["Output"] => Field::Output,
            ["Stderr"] => Field::Stderr,
            ["ExitCode"] => Field::ExitCode,
            ["Status"] => Field::Status,
            ["TokensUsed"] => Field::TokensUsed,
            ["JSON", path @ ..] if path.len() <= JSON_FIELDS_MAX => {
                Field::Json(path.iter().map(|part| (*part).to_owned()).collect())
            }
            ["JSON", ..] => return Err(format!("more than {JSON_FIELDS_MAX} fields after JSON")),
            [known, ..] if FIELDS.contains(known) => return Err(format!("{known} has no fields")),
            [other, ..] => {
                let near = near::hint(&near::names(other, FIELDS, 1));
                return Err(format!("unknown field; a state has {}{near}", fields()));
            }
            [] => return Err(format!("the field is missing; a state has {}", fields())),
        };
        Ok(field)
    }
}

/// Reports whether text is non-empty and has only letters, digits, '_' and '-'.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

fn fields() -> String {
    FIELDS.join(", ")
}
