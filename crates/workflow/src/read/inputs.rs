//! The inputs that a workflow declares.

use regex::RegexBuilder;
use serde_json::Value;

use super::super::{InputType, Validation, WorkflowInput};
use super::mapping::Mapping;
use super::reader::Reader;
use domain::code::Code;
use text::document::Node;

/// More than anyone types on a command line.
const INPUTS_MAX: usize = 256;

const PATTERN_MAX_BYTES: usize = 1_000;

/// Limit on a compiled pattern: `(a{1000}){1000}` is short.
const PATTERN_COMPILED_MAX_BYTES: usize = 1024 * 1024;

impl<'a> Reader<'a> {
    pub(super) fn inputs(&mut self, node: &Node<'a>) -> Vec<WorkflowInput> {
        let mut inputs: Vec<WorkflowInput> = Vec::new();
        let Some(items) = self.items(node, "a list of inputs") else { return inputs };
        if items.len() > INPUTS_MAX {
            let message = format!("more than {INPUTS_MAX} inputs");
            self.report.error(&node.location, Code::WorkflowBadValue, message);
            return inputs;
        }
        for item in items {
            let Some(input) = self.input(&item) else { continue };
            if inputs.iter().any(|other| other.name == input.name) {
                let message = format!("duplicate input '{}'", input.name);
                self.report.error(&item.location, Code::WorkflowBadName, message);
            }
            inputs.push(input);
        }
        inputs
    }

    fn input(&mut self, node: &Node<'a>) -> Option<WorkflowInput> {
        let keys = ["name", "type", "required", "default", "description", "validation"];
        let members = self.mapping(node, &keys)?;
        let name = self.required(&members, "name").and_then(|node| {
            let name = self.word(node)?;
            self.name(name, &node.location);
            Some(name.to_owned())
        });
        let kind = members.get("type").map_or(Some(InputType::String), |node| {
            self.choice(node, InputType::NAMES, InputType::named)
        });
        let required = self.flag(&members, "required").unwrap_or(false);
        let description = members.get("description").and_then(|node| self.text(node));
        let description = description.map(str::to_owned);
        let mut input = WorkflowInput {
            name: name?,
            // An input of unreadable type is not checked further.
            kind: kind.unwrap_or(InputType::String),
            required,
            default: None,
            description,
            validation: Validation::default(),
            location: node.location.clone(),
        };
        if kind.is_none() {
            return Some(input);
        }
        if let Some(node) = members.get("validation") {
            input.validation = self.validation(&input, node).unwrap_or_default();
        }
        if let Some(node) = members.get("default") {
            input.default = self.default(&input, node, &members);
        }
        Some(input)
    }

    fn default(
        &mut self,
        input: &WorkflowInput,
        node: &Node<'a>,
        members: &Mapping<'a>,
    ) -> Option<Value> {
        let text = self.word(node)?;
        if input.required
            && let Some(required) = members.entry("required")
        {
            let message = "no effect: an input with a default is never required";
            self.report.warn(&required.key, Code::WorkflowNoEffect, message);
        }
        match input.value(text).and_then(|value| input.checked(value)) {
            Ok(value) => Some(value),
            Err(message) => {
                self.report.error(&node.location, Code::WorkflowBadInput, message);
                None
            }
        }
    }

    fn validation(&mut self, input: &WorkflowInput, node: &Node<'a>) -> Option<Validation> {
        let members = self.mapping(node, &["pattern", "enum", "min", "max"])?;
        let mut validation = Validation::default();
        for entry in &members.entries {
            let wanted = match entry.name {
                "pattern" => InputType::String,
                "min" | "max" => InputType::Integer,
                _ => input.kind,
            };
            if wanted != input.kind {
                let message =
                    format!("{} applies only to inputs of type {}", entry.name, wanted.name());
                self.report.error(&entry.key, Code::WorkflowBadInput, message);
            }
        }
        if let Some(node) = members.get("pattern") {
            validation.pattern = self.pattern(node);
        }
        if let Some(node) = members.get("enum") {
            validation.one_of = self.one_of(input, node);
        }
        validation.min = members.get("min").and_then(|node| self.integer(node));
        validation.max = members.get("max").and_then(|node| self.integer(node));
        if let (Some(min), Some(max)) = (validation.min, validation.max)
            && min > max
        {
            let message = format!("min {min} is greater than max {max}");
            self.report.error(&node.location, Code::WorkflowBadInput, message);
        }
        Some(validation)
    }

    fn one_of(&mut self, input: &WorkflowInput, node: &Node<'a>) -> Vec<Value> {
        let mut values = Vec::new();
        let Some(items) = self.items(node, "a list of values") else { return values };
        if items.len() == 0 {
            let message = "an empty list allows no value";
            self.report.error(&node.location, Code::WorkflowBadInput, message);
        }
        for item in items {
            let Some(text) = self.word(&item) else { continue };
            match input.value(text) {
                Ok(value) => values.push(value),
                Err(message) => {
                    self.report.error(&item.location, Code::WorkflowBadInput, message);
                }
            }
        }
        values
    }

    fn pattern(&mut self, node: &Node<'a>) -> Option<regex::Regex> {
        let text = self.word(node)?;
        if text.len() > PATTERN_MAX_BYTES {
            let message = format!("the pattern is longer than {PATTERN_MAX_BYTES} bytes");
            self.report.error(&node.location, Code::WorkflowBadInput, message);
            return None;
        }
        match RegexBuilder::new(text).size_limit(PATTERN_COMPILED_MAX_BYTES).build() {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                // The library draws the pattern with an arrow; the last line of its message states
                // the error.
                let error = error.to_string();
                let why = error.lines().last().unwrap_or_default();
                let why = why.trim_start_matches("error: ");
                let message = format!("not a valid pattern: {why}");
                self.report.error(&node.location, Code::WorkflowBadInput, message);
                None
            }
        }
    }
}
