//! The inputs of a run: text from the command line, checked against the workflow's declarations.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use super::WorkflowFault;
use domain::choice;
use domain::code::Code;
use text::document::{self, Location, Mark};
use text::near;

choice! {
    InputType {
        String = "string",
        Integer = "integer",
        Boolean = "boolean",
    }
}

/// An input that a workflow declares.
#[derive(Clone, Debug)]
pub struct WorkflowInput {
    pub name: String,
    pub kind: InputType,
    pub required: bool,
    pub default: Option<Value>,
    pub description: Option<String>,
    pub validation: Validation,
    pub(super) location: Location,
}

#[derive(Clone, Debug, Default)]
pub struct Validation {
    /// Matches anywhere in the text, unless anchored with `^` and `$`.
    pub pattern: Option<Regex>,
    /// The allowed values; empty allows every value.
    pub one_of: Vec<Value>,
    pub min: Option<i64>,
    pub max: Option<i64>,
}

/// The checked values of a run's inputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs(BTreeMap<String, Value>);

impl Inputs {
    /// Returns the values of a run, or every fault in the given inputs.
    pub(super) fn check(
        declared: &[WorkflowInput],
        given: &[(String, String)],
    ) -> Result<Inputs, Vec<WorkflowFault>> {
        let mut faults = Vec::new();
        let mut values = BTreeMap::new();
        for (name, text) in given {
            let Some(input) = declared.iter().find(|input| input.name == *name) else {
                faults.push(unknown(name, declared));
                continue;
            };
            match input.value(text).and_then(|value| input.checked(value)) {
                Ok(value) => {
                    if values.insert(name.clone(), value).is_some() {
                        faults.push(input.fault("given twice"));
                    }
                }
                Err(message) => faults.push(input.fault(message)),
            }
        }
        let is_given = |input: &WorkflowInput| given.iter().any(|(name, _)| *name == input.name);
        for input in declared.iter().filter(|input| !is_given(input)) {
            match &input.default {
                Some(value) => {
                    values.insert(input.name.clone(), value.clone());
                }
                None if input.required => {
                    faults.push(input.fault(format!("required: pass -i {}=…", input.name)));
                }
                None => {}
            }
        }
        if faults.is_empty() { Ok(Inputs(values)) } else { Err(faults) }
    }

    /// Returns `None` for an input that is optional, was not given, and has no default.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl WorkflowInput {
    fn fault(&self, message: impl Into<String>) -> WorkflowFault {
        let path = format!("inputs.{}", self.name);
        let location = Location { path, mark: self.location.mark };
        WorkflowFault::new(&location, Code::WorkflowBadInput, message)
    }

    /// Converts text to the input's type.
    pub(super) fn value(&self, text: &str) -> Result<Value, String> {
        let found = document::shown(text);
        match self.kind {
            InputType::String => Ok(Value::from(text)),
            InputType::Integer => match text.trim().parse::<i64>() {
                Ok(number) => Ok(Value::from(number)),
                Err(_) => Err(format!("expected a whole number, found {found}")),
            },
            InputType::Boolean => match text.trim() {
                "true" => Ok(Value::Bool(true)),
                "false" => Ok(Value::Bool(false)),
                _ => Err(format!("expected true or false, found {found}")),
            },
        }
    }

    pub(super) fn checked(&self, value: Value) -> Result<Value, String> {
        let Validation { pattern, one_of, min, max } = &self.validation;
        if !one_of.is_empty() && !one_of.contains(&value) {
            let list: Vec<String> = one_of.iter().map(Value::to_string).collect();
            return Err(format!("expected {}, found {}", list.join(" or "), shown(&value)));
        }
        if let (Some(pattern), Some(text)) = (pattern, value.as_str())
            && !pattern.is_match(text)
        {
            return Err(format!("{} does not match {}", shown(&value), pattern.as_str()));
        }
        if let Some(number) = value.as_i64() {
            if let Some(min) = min.filter(|min| number < *min) {
                return Err(format!("expected {min} or more, found {number}"));
            }
            if let Some(max) = max.filter(|max| number > *max) {
                return Err(format!("expected {max} or less, found {number}"));
            }
        }
        Ok(value)
    }
}

fn unknown(name: &str, inputs: &[WorkflowInput]) -> WorkflowFault {
    let names = || inputs.iter().map(|input| input.name.as_str());
    let near = near::hint(&near::names(name, names(), 1));
    let path = format!("inputs.{}", name.chars().take(80).collect::<String>());
    let known: Vec<&str> = names().collect();
    let message = match (near.is_empty(), known.is_empty()) {
        (_, true) => "unknown input: the workflow has no inputs".to_owned(),
        (false, false) => format!("unknown input{near}"),
        (true, false) => format!("unknown input; expected one of {}", known.join(", ")),
    };
    let location = Location { path, mark: Mark::default() };
    WorkflowFault::new(&location, Code::WorkflowBadInput, message)
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => document::shown(text),
        other => other.to_string(),
    }
}
