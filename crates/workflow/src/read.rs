//! From the tree to the checked workflow. Each part reads its keys and reports all that is wrong
//! with them; what parts say of each other is checked once all are known (`check`).

mod agent;
mod inputs;
mod mapping;
mod proxy;
mod reader;
mod state;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use self::reader::Reader;
use super::fault::{Remarks, Report, WorkflowFault};
use super::mention::{Mentions, ReferenceMention};
use super::plan::{State, StateKind, Workflow};
use super::reference::{Names, Reference};
use super::source::{Source, SyntaxFault};
use super::{Inventory, check};
use domain::code::Code;
use domain::document::{Location, Node, Syntax};

/// A plan of more is made by a program, which can make several.
const STATES_MAX: usize = 1_000;

/// The result of a reading.
#[derive(Debug)]
pub struct Reading {
    /// Only where there are no errors.
    pub workflow: Option<Workflow>,
    /// The workflow's name, as far as it could be read.
    pub name: Option<String>,
    pub errors: Vec<WorkflowFault>,
    pub warnings: Vec<WorkflowFault>,
}

impl Reading {
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    /// The answer of `validate`: `{valid, workflow, errors, warnings}`.
    pub fn json(&self) -> Value {
        json!({
            "valid": self.is_valid(),
            "workflow": self.name,
            "errors": self.errors,
            "warnings": self.warnings,
        })
    }
}

/// Reads a workflow and checks all of it against what is known outside.
pub fn read(text: &str, known: &Inventory) -> Reading {
    let source = Source::new(text);
    let mut report = Report::default();
    let (tree, repeated) = match source.tree() {
        Ok(tree) => tree,
        Err(fault) => {
            syntax(&fault, &mut report);
            let Remarks { errors, warnings } = report.finish();
            return Reading { workflow: None, name: None, errors, warnings };
        }
    };
    for fault in &repeated {
        syntax(fault, &mut report);
    }
    let mentions = Mentions::default();
    let mut reader = Reader { source: &source, known, report, mentions };
    let (name, workflow) = reader.workflow(&Node::root(&tree, Syntax::Yaml));
    let Remarks { errors, warnings } = reader.report.finish();
    let workflow = workflow.filter(|_| errors.is_empty());
    Reading { workflow, name, errors, warnings }
}

fn syntax(fault: &SyntaxFault, report: &mut Report) {
    report.error(&Location::root(fault.mark), Code::WorkflowSyntax, fault.message.as_str());
}

impl<'a> Reader<'a> {
    fn workflow(&mut self, root: &Node<'a>) -> (Option<String>, Option<Workflow>) {
        let keys = ["name", "version", "description", "inputs", "states"];
        let Some(members) = self.mapping(root, &keys) else { return (None, None) };
        let name = self.required(&members, "name").and_then(|node| self.text(node));
        if let (Some(name), Some(node)) = (name, members.get("name"))
            && (name.trim().is_empty() || name.chars().any(char::is_control))
        {
            self.report.error(&node.location, Code::WorkflowBadName, "a name is a line of text");
        }
        let name = name.map(str::to_owned);
        let version = members.get("version").and_then(|node| self.word(node));
        let description = members.get("description").and_then(|node| self.text(node));
        let inputs = members.get("inputs").map(|node| self.inputs(node)).unwrap_or_default();
        let Some(states_node) = self.required(&members, "states") else { return (name, None) };
        let Some(states) = self.states(states_node) else { return (name, None) };
        let declared: BTreeSet<&str> = states.declared.iter().map(String::as_str).collect();
        let is_terminal = |state: &&State| matches!(state.kind, StateKind::Terminal(_));
        let terminals = states.read.iter().filter(is_terminal).map(|state| state.name.as_str());
        let terminals: BTreeSet<&str> = terminals.collect();
        let names = Names { inputs: &inputs, states: &declared, terminals: &terminals };
        check::references(&self.mentions, &names, self.source, &mut self.report);
        let workflow = name.clone().zip(states.initial).map(|(name, initial)| Workflow {
            name,
            version: version.map(str::to_owned),
            description: description.map(str::to_owned),
            inputs,
            initial,
            states: states.read,
            env_names: env_names(&self.mentions.references),
        });
        if let Some(workflow) = workflow.as_ref().filter(|_| states.is_complete) {
            check::plan(workflow, &mut self.report);
        }
        (name, workflow)
    }

    fn states(&mut self, node: &Node<'a>) -> Option<States> {
        let members = self.any_mapping(node)?;
        let initial = self.required(&members, "initial").and_then(|node| self.goto(node));
        let entries: Vec<_> = members.other_than(&["initial"]).collect();
        if entries.len() > STATES_MAX {
            let message = format!("more than {STATES_MAX} states");
            self.report.error(&node.location, Code::WorkflowBadValue, message);
            return None;
        }
        let declared: Vec<String> = entries.iter().map(|entry| entry.name.to_owned()).collect();
        let mut read = Vec::new();
        for entry in &entries {
            self.name(entry.name, &entry.key);
            read.extend(self.state(entry));
        }
        let is_complete = read.len() == declared.len();
        Some(States { declared, read, initial, is_complete })
    }
}

struct States {
    declared: Vec<String>,
    read: Vec<State>,
    initial: Option<String>,
    /// Every declared state could be read.
    is_complete: bool,
}

fn env_names(mentions: &[ReferenceMention]) -> Vec<String> {
    let names: BTreeSet<&String> = mentions
        .iter()
        .filter_map(|mention| match &mention.reference {
            Reference::Env(name) => Some(name),
            Reference::Input(_)
            | Reference::State { .. }
            | Reference::WorkflowId
            | Reference::WorkflowName => None,
        })
        .collect();
    names.into_iter().cloned().collect()
}
