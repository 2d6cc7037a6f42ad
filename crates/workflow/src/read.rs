//! From the tree to the checked workflow. Each part reads its keys and tells all that is wrong
//! with them; what parts say of each other is looked at once all are known (`check`).

mod agent;
mod inputs;
mod node;
mod proxy;
mod state;

use std::collections::BTreeSet;
use std::rc::Rc;

pub(super) use self::agent::AgentPlaces;
pub(super) use self::node::shown;
use self::node::{Members, Node};
use super::fault::{Place, Read, Report};
use super::plan::{Kind, State, Workflow};
use super::reference::{Names, Reference, is_name};
use super::template::Malformed;
use super::tree::{Mark, Source, Unreadable};
use super::{Condition, Known, Template, check, shell};
use domain::code::Code;
use domain::near;

/// A plan of more is made by a program, which can make several.
const STATES_MAX: usize = 1_000;

/// As long as clients allow for the names of tools.
const NAME_CHARS_MAX: usize = 64;

pub(super) struct Reader<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) known: &'a Known,
    pub(super) report: Report,
    /// What templates and conditions name.
    pub(super) uses: Vec<Use>,
    /// States that others go to.
    pub(super) targets: Vec<(String, Place)>,
}

/// Its exact place is looked for only where there is something to say about it: that takes a walk
/// along its line, and there may be many on one.
pub(super) struct Use {
    pub(super) reference: Reference,
    pub(super) by: User,
    path: String,
    start: Mark,
    text: Rc<str>,
    at: usize,
}

impl Use {
    pub(super) fn place(&self, source: &Source<'_>) -> Place {
        let mark = source.inside(self.start, &self.text, self.at);
        Place { path: self.path.clone(), line: mark.line, column: mark.column }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    Template,
    Condition,
    /// A condition of its own, which must be true or false.
    Alone,
}

pub(super) fn read(text: &str, known: &Known) -> Read {
    let source = Source::new(text);
    let mut report = Report::default();
    let (tree, twice) = match source.tree() {
        Ok(tree) => tree,
        Err(unreadable) => {
            syntax(&unreadable, &mut report);
            let (errors, warnings) = report.finish();
            return Read { workflow: None, name: None, errors, warnings };
        }
    };
    for key in &twice {
        syntax(key, &mut report);
    }
    let (uses, targets) = (Vec::new(), Vec::new());
    let mut reader = Reader { source: &source, known, report, uses, targets };
    let (name, workflow) = reader.workflow(&Node::root(&tree));
    let (errors, warnings) = reader.report.finish();
    let workflow = workflow.filter(|_| errors.is_empty());
    Read { workflow, name, errors, warnings }
}

fn syntax(unreadable: &Unreadable, report: &mut Report) {
    let Unreadable { mark, message } = unreadable;
    let place = Place { path: String::new(), line: mark.line, column: mark.column };
    report.error(&place, Code::WorkflowSyntax, message.as_str());
}

impl<'a> Reader<'a> {
    fn workflow(&mut self, root: &Node<'a>) -> (Option<String>, Option<Workflow>) {
        let keys = ["name", "version", "description", "inputs", "states"];
        let Some(members) = self.members(root, &keys) else { return (None, None) };
        let name = self.required(&members, "name").and_then(|node| self.text(node));
        if let (Some(name), Some(node)) = (&name, members.get("name"))
            && (name.trim().is_empty() || name.chars().any(char::is_control))
        {
            self.report.error(&node.place, Code::WorkflowBadName, "a name is a line of text");
        }
        let version = members.get("version").and_then(|node| self.word(node));
        let description = members.get("description").and_then(|node| self.text(node));
        let inputs = members.get("inputs").map(|node| self.inputs(node)).unwrap_or_default();
        let Some(states_node) = self.required(&members, "states") else { return (name, None) };
        let Some(states) = self.states(states_node) else { return (name, None) };
        let declared: BTreeSet<&str> = states.declared.iter().map(String::as_str).collect();
        let is_terminal = |state: &&State| matches!(state.kind, Kind::Terminal(_));
        let terminals = states.read.iter().filter(is_terminal).map(|state| state.name.as_str());
        let terminals: BTreeSet<&str> = terminals.collect();
        let names = Names { inputs: &inputs, states: &declared, terminals: &terminals };
        check::references(self, &names);
        let workflow = name.clone().zip(states.initial).map(|(name, initial)| Workflow {
            name,
            version,
            description,
            inputs,
            initial,
            states: states.read,
            env_names: env_names(&self.uses),
        });
        if let Some(workflow) = workflow.as_ref().filter(|_| states.is_complete) {
            check::plan(workflow, &mut self.report);
        }
        (name, workflow)
    }

    fn states(&mut self, node: &Node<'a>) -> Option<States> {
        let members = node.any_members(&mut self.report)?;
        let initial = self.required(&members, "initial").and_then(|node| self.goto(node));
        let entries: Vec<_> = members.entries().filter(|entry| entry.name != "initial").collect();
        if entries.len() > STATES_MAX {
            let message = format!("more than {STATES_MAX} states");
            self.report.error(&node.place, Code::WorkflowBadValue, message);
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

    /// A name of a state or an input: it is part of paths, which are parted by dots.
    fn name(&mut self, name: &str, place: &Place) {
        if !is_name(name) || name.len() > NAME_CHARS_MAX {
            let message =
                format!("a name consists of 1 to {NAME_CHARS_MAX} letters, digits, '_' and '-'");
            self.report.error(place, Code::WorkflowBadName, message);
        }
    }

    /// The name of a state to go to.
    fn goto(&mut self, node: &Node<'a>) -> Option<String> {
        let name = self.text(node)?;
        self.targets.push((name.clone(), node.place.clone()));
        Some(name)
    }

    fn template(&mut self, node: &Node<'a>) -> Option<Template> {
        let text = self.text(node)?;
        self.template_of(node, &text)
    }

    /// A text with values in it, which may be written as a number too.
    fn word_template(&mut self, node: &Node<'a>) -> Option<Template> {
        let text = self.word(node)?;
        self.template_of(node, &text)
    }

    fn command(&mut self, node: &Node<'a>) -> Option<Template> {
        let command = self.template(node)?;
        let faults = shell::faults(&command);
        self.malformed(node, command.as_written(), faults, Code::WorkflowBadTemplate);
        Some(command)
    }

    fn template_of(&mut self, node: &Node<'a>, text: &str) -> Option<Template> {
        match Template::parse(text) {
            Ok(template) => {
                self.uses(node, text, template.references(), User::Template);
                Some(template)
            }
            Err(faults) => {
                self.malformed(node, text, faults, Code::WorkflowBadTemplate);
                None
            }
        }
    }

    fn condition(&mut self, node: &Node<'a>) -> Option<Condition> {
        let text = self.word(node)?;
        match Condition::parse(&text) {
            Ok(condition) => {
                self.uses(node, &text, condition.references().into_iter(), User::Condition);
                self.uses(node, &text, condition.alone().into_iter(), User::Alone);
                Some(condition)
            }
            Err(fault) => {
                self.malformed(node, &text, vec![fault], Code::WorkflowBadExpression);
                None
            }
        }
    }

    fn uses<'r>(
        &mut self,
        node: &Node<'a>,
        text: &str,
        references: impl Iterator<Item = (&'r Reference, usize)>,
        by: User,
    ) {
        let text: Rc<str> = text.into();
        self.uses.extend(references.map(|(reference, at)| Use {
            reference: reference.clone(),
            by,
            path: node.place.path.clone(),
            start: node.tree.mark,
            text: Rc::clone(&text),
            at,
        }));
    }

    fn malformed(&mut self, node: &Node<'a>, text: &str, faults: Vec<Malformed>, code: Code) {
        for fault in faults {
            let place = if self.report.is_full() {
                node.place.clone()
            } else {
                self.inside(node, text, fault.at)
            };
            self.report.error(&place, code, fault.message);
        }
    }

    /// The place of a byte of a node's text.
    fn inside(&self, node: &Node<'a>, text: &str, at: usize) -> Place {
        let mark = self.source.inside(node.tree.mark, text, at);
        Place { path: node.place.path.clone(), line: mark.line, column: mark.column }
    }

    fn members(&mut self, node: &Node<'a>, keys: &[&str]) -> Option<Members<'a>> {
        let members = node.any_members(&mut self.report)?;
        for entry in members.entries().filter(|entry| !keys.contains(&entry.name)) {
            self.unknown(entry.name, &entry.key, keys, Code::WorkflowUnknownKey);
        }
        Some(members)
    }

    fn unknown(&mut self, name: &str, place: &Place, keys: &[&str], code: Code) {
        // Searching for near names is the dearest part of a fault that nobody will see.
        let near = if self.report.is_full() {
            Vec::new()
        } else {
            near::names(name, keys.iter().copied(), 1)
        };
        let message = if near.is_empty() {
            format!("unknown key; there are {}", keys.join(", "))
        } else {
            format!("unknown key{}", near::hint(&near))
        };
        self.report.error(place, code, message);
    }

    fn required<'m>(&mut self, members: &'m Members<'a>, key: &str) -> Option<&'m Node<'a>> {
        let node = members.get(key);
        if node.is_none() {
            let message = format!("'{key}' is missing");
            self.report.error(&members.place, Code::WorkflowMissingKey, message);
        }
        node
    }

    fn text(&mut self, node: &Node<'a>) -> Option<String> {
        node.text(self.source, &mut self.report)
    }

    fn word(&mut self, node: &Node<'a>) -> Option<String> {
        node.word(self.source, &mut self.report)
    }

    fn flag(&mut self, members: &Members<'a>, key: &str) -> Option<bool> {
        members.get(key).and_then(|node| node.flag(&mut self.report))
    }

    /// One word out of a few.
    fn choice<T>(
        &mut self,
        node: &Node<'a>,
        names: &[&str],
        named: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let word = self.word(node)?;
        let choice = named(&word);
        if choice.is_none() {
            let near = near::hint(&near::names(&word, names.iter().copied(), 1));
            let message = format!("expected {}, found {}{near}", names.join(" or "), shown(&word));
            self.report.error(&node.place, Code::WorkflowBadValue, message);
        }
        choice
    }
}

struct States {
    declared: Vec<String>,
    read: Vec<State>,
    initial: Option<String>,
    /// Every declared state could be read.
    is_complete: bool,
}

fn env_names(uses: &[Use]) -> Vec<String> {
    let names: BTreeSet<&String> = uses
        .iter()
        .filter_map(|one| match &one.reference {
            Reference::Env(name) => Some(name),
            Reference::Input(_)
            | Reference::State { .. }
            | Reference::WorkflowId
            | Reference::WorkflowName => None,
        })
        .collect();
    names.into_iter().cloned().collect()
}
