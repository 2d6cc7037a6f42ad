//! A state of any type, and its transitions.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value};

use super::super::plan::{
    OnFailure, OperationState, Parallel, State, StateKind, Strategy, Terminal, TerminalStatus,
    Transition,
};
use super::super::{Backoff, EXIT_FAILURE, Retry, Template, table};
use super::STATES_MAX;
use super::mapping::Mapping;
use super::reader::Reader;
use domain::code::Code;
use text::document::{Content, Member, Node};

const TIMEOUTS: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(7 * 24 * 60 * 60);
const DELAYS: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(60 * 60);
const ATTEMPTS: RangeInclusive<u32> = 1..=100;
const CONCURRENT: RangeInclusive<u32> = 1..=1_000;
const TRANSITIONS_MAX: usize = 100;

/// The values of a state's `type`; `step` is a command or an agent.
const TYPES: [&str; 5] = ["step", "agent", "operation", "parallel", "terminal"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Command,
    /// A step with its agent in a block.
    AgentBlock,
    /// A step with the agent's keys next to its own.
    Agent,
    Operation,
    Parallel,
    Terminal,
}

impl Shape {
    const ALL: [Shape; 6] = [
        Shape::Command,
        Shape::AgentBlock,
        Shape::Agent,
        Shape::Operation,
        Shape::Parallel,
        Shape::Terminal,
    ];

    /// Returns the keys of this type, in addition to those below that it shares.
    fn own_keys(self) -> &'static [&'static str] {
        match self {
            Shape::Command => &["command"],
            Shape::AgentBlock => &["agent", "isolation", "mcp_proxy"],
            Shape::Agent => {
                &["provider", "prompt", "system_prompt", "options", "isolation", "mcp_proxy"]
            }
            Shape::Operation => &["operation", "inputs"],
            Shape::Parallel => &["parallel", "strategy", "max_concurrent"],
            Shape::Terminal => &["status", "message"],
        }
    }

    fn keys(self) -> Vec<&'static str> {
        let run: &[&str] = &["dir", "timeout", "retry"];
        let onward: &[&str] = &["on_success", "on_failure", "transitions", "continue_on_error"];
        let (run, onward) = match self {
            Shape::Command | Shape::AgentBlock | Shape::Agent | Shape::Operation => (run, onward),
            Shape::Parallel => (&[] as &[&str], onward),
            Shape::Terminal => (&[] as &[&str], &[] as &[&str]),
        };
        [&["type", "description"], self.own_keys(), run, onward].concat()
    }

    fn told(self) -> &'static str {
        match self {
            Shape::Command => "a step with a command",
            Shape::AgentBlock => "a step with an agent",
            Shape::Agent => "an agent state",
            Shape::Operation => "an operation state",
            Shape::Parallel => "a parallel state",
            Shape::Terminal => "a terminal state",
        }
    }
}

impl<'a> Reader<'a> {
    pub(super) fn state(&mut self, entry: &Member<'a>) -> Option<State> {
        let members = self.any_mapping(&entry.node)?;
        let shape = self.shape(&members)?;
        self.state_keys(&members, shape);
        let on_success = members.get("on_success").and_then(|node| self.goto(node));
        let on_failure = members.get("on_failure").and_then(|node| self.on_failure(node));
        let transitions = members.get("transitions").map(|node| self.transitions(node));
        let dir = members.get("dir").and_then(|node| self.template(node));
        let timeout = members.get("timeout").and_then(|node| self.span(node, TIMEOUTS));
        let retry = members.get("retry").and_then(|node| self.retry(node));
        let continue_on_error = self.flag(&members, "continue_on_error").unwrap_or(false);
        let description = members.get("description").and_then(|node| self.text(node));
        let kind = self.kind(&members, shape)?;
        Some(State {
            name: entry.name.to_owned(),
            description: description.map(str::to_owned),
            kind,
            dir,
            timeout,
            retry: retry.unwrap_or_default(),
            continue_on_error,
            on_success,
            on_failure,
            transitions: transitions.unwrap_or_default(),
            location: entry.key.clone(),
            dir_location: members.get("dir").map_or(&entry.key, |node| &node.location).clone(),
        })
    }

    fn shape(&mut self, members: &Mapping<'a>) -> Option<Shape> {
        let node = self.required(members, "type")?;
        let word = self.choice(node, &TYPES, |word| TYPES.iter().find(|one| **one == word))?;
        Some(match *word {
            "agent" => Shape::Agent,
            "operation" => Shape::Operation,
            "parallel" => Shape::Parallel,
            "terminal" => Shape::Terminal,
            _ => return self.step_shape(members),
        })
    }

    fn step_shape(&mut self, members: &Mapping<'a>) -> Option<Shape> {
        match (members.get("command"), members.entry("agent")) {
            (Some(_), None) => Some(Shape::Command),
            (None, Some(_)) => Some(Shape::AgentBlock),
            (Some(_), Some(agent)) => {
                let message = "a step cannot have both 'command' and 'agent'";
                self.report.error(&agent.key, Code::WorkflowBadValue, message);
                None
            }
            (None, None) => {
                let message = "a step requires 'command' or 'agent'";
                self.report.error(&members.location, Code::WorkflowMissingKey, message);
                None
            }
        }
    }

    fn state_keys(&mut self, members: &Mapping<'a>, shape: Shape) {
        let keys = shape.keys();
        for entry in members.other_than(&keys) {
            let elsewhere = Shape::ALL.iter().find(|other| other.keys().contains(&entry.name));
            match elsewhere {
                Some(other) => {
                    let message =
                        format!("{} does not have this key; {} does", shape.told(), other.told());
                    self.report.error(&entry.key, Code::WorkflowUnknownKey, message);
                }
                None => self.unknown(entry.name, &entry.key, &keys, Code::WorkflowUnknownKey),
            }
        }
    }

    fn kind(&mut self, members: &Mapping<'a>, shape: Shape) -> Option<StateKind> {
        match shape {
            Shape::Command => {
                let node = self.required(members, "command")?;
                if node.is_text() && self.text(node)?.trim().is_empty() {
                    self.report.error(
                        &node.location,
                        Code::WorkflowBadValue,
                        "the command is empty",
                    );
                }
                self.command(node).map(StateKind::Command)
            }
            Shape::AgentBlock => {
                let block = self.required(members, "agent")?.clone();
                let keys = ["provider", "prompt", "system_prompt", "options"];
                let block = self.mapping(&block, &keys)?;
                self.agent(&block, members).map(|agent| StateKind::Agent(Box::new(agent)))
            }
            Shape::Agent => {
                self.agent(members, members).map(|agent| StateKind::Agent(Box::new(agent)))
            }
            Shape::Operation => self.operation(members).map(StateKind::Operation),
            Shape::Parallel => self.parallel(members).map(StateKind::Parallel),
            Shape::Terminal => self.terminal(members).map(StateKind::Terminal),
        }
    }

    fn operation(&mut self, members: &Mapping<'a>) -> Option<OperationState> {
        let inputs = members.get("inputs").and_then(|node| self.json_members(node));
        let node = self.required(members, "operation")?;
        let text = self.text(node)?;
        let Some((plugin, operation)) = text.split_once('.') else {
            let message = "expected PLUGIN.OPERATION, such as kubernetes.kubectl_apply";
            self.report.error(&node.location, Code::WorkflowBadValue, message);
            return None;
        };
        if let Err((code, message)) = table::known_operation(plugin, operation, self.known) {
            self.report.error(&node.location, code, message);
        }
        let inputs = inputs.unwrap_or_default();
        if let Some(message) = table::input_fault(plugin, operation, &inputs, self.known) {
            let place = members.get("inputs").unwrap_or(node);
            self.report.error(&place.location, Code::WorkflowBadValue, message);
        }
        let (plugin, operation) = (plugin.to_owned(), operation.to_owned());
        Some(OperationState { plugin, operation, inputs })
    }

    /// Reads a mapping of any content, whose texts are templates.
    pub(super) fn json_members(&mut self, node: &Node<'a>) -> Option<Map<String, Value>> {
        self.any_mapping(node)?;
        self.templates(node);
        match node.tree.to_json() {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Reads each text leaf as a template, one at a time: there may be many, with long paths.
    fn templates(&mut self, node: &Node<'a>) {
        match node.tree.content {
            Content::Scalar(_) if node.is_text() => {
                self.template(node);
            }
            Content::Scalar(_) => {}
            Content::List(_) => {
                for item in node.items("a list").into_iter().flatten() {
                    self.templates(&item);
                }
            }
            Content::Map(_) => {
                for entry in node.entries().into_iter().flatten() {
                    self.templates(&entry.node);
                }
            }
        }
    }

    fn parallel(&mut self, members: &Mapping<'a>) -> Option<Parallel> {
        let strategy = members
            .get("strategy")
            .and_then(|node| self.choice(node, Strategy::NAMES, Strategy::named));
        let max_concurrent = members.get("max_concurrent");
        let max_concurrent = max_concurrent.and_then(|node| self.count(node, CONCURRENT));
        let node = self.required(members, "parallel")?;
        let items = self.items(node, "a list of states")?;
        if items.len() == 0 {
            let message = "a parallel state requires at least one state";
            self.report.error(&node.location, Code::WorkflowBadParallel, message);
        }
        if items.len() > STATES_MAX {
            let message = format!("more than {STATES_MAX} states");
            self.report.error(&node.location, Code::WorkflowBadParallel, message);
            return None;
        }
        let mut branches: Vec<String> = Vec::new();
        for item in items {
            let Some(name) = self.goto(&item) else { continue };
            if branches.contains(&name) {
                let message = format!("'{name}' is listed twice");
                self.report.error(&item.location, Code::WorkflowBadParallel, message);
            } else {
                branches.push(name);
            }
        }
        let strategy = strategy.unwrap_or(Strategy::AllSucceed);
        Some(Parallel { branches, strategy, max_concurrent })
    }

    fn terminal(&mut self, members: &Mapping<'a>) -> Option<Terminal> {
        let message = members.get("message").and_then(|node| self.template(node));
        let status = match members.get("status") {
            Some(node) => self.choice(node, TerminalStatus::NAMES, TerminalStatus::named)?,
            None => TerminalStatus::Success,
        };
        Some(Terminal { status, message })
    }

    fn on_failure(&mut self, node: &Node<'a>) -> Option<OnFailure> {
        if node.is_text() {
            return self.goto(node).map(OnFailure::Goto);
        }
        let members = self.mapping(node, &["message", "status"])?;
        let exit_status = match members.get("status") {
            Some(node) => self.count(node, 1..=255),
            None => Some(u32::from(EXIT_FAILURE)),
        };
        let message = self.required(&members, "message").and_then(|node| self.template(node));
        let exit_status = exit_status.and_then(|status| u8::try_from(status).ok());
        let (message, exit_status): (Template, u8) = message.zip(exit_status)?;
        Some(OnFailure::End { message, exit_status })
    }

    fn transitions(&mut self, node: &Node<'a>) -> Vec<Transition> {
        let Some(items) = self.items(node, "a list of {when, goto}") else { return Vec::new() };
        if items.len() > TRANSITIONS_MAX {
            let message = format!("more than {TRANSITIONS_MAX} transitions");
            self.report.error(&node.location, Code::WorkflowBadValue, message);
            return Vec::new();
        }
        let mut transitions: Vec<Transition> = Vec::new();
        for item in items {
            if transitions.last().is_some_and(|before| before.when.is_none()) {
                let message = "no effect: the transition before it always applies";
                self.report.warn(&item.location, Code::WorkflowNoEffect, message);
            }
            transitions.extend(self.transition(&item));
        }
        transitions
    }

    fn transition(&mut self, node: &Node<'a>) -> Option<Transition> {
        let members = self.mapping(node, &["when", "goto"])?;
        let when = members.get("when").map(|node| self.condition(node));
        let goto = self.required(&members, "goto").and_then(|node| self.goto(node))?;
        // An unreadable condition must not become one that always holds.
        let when = match when {
            Some(condition) => Some(condition?),
            None => None,
        };
        Some(Transition { when, goto })
    }

    fn retry(&mut self, node: &Node<'a>) -> Option<Retry> {
        let members = self.mapping(node, &["max_attempts", "initial_delay", "backoff"])?;
        let mut retry = Retry::default();
        let attempts = self.required(&members, "max_attempts");
        if let Some(count) = attempts.and_then(|node| self.count(node, ATTEMPTS)) {
            retry.max_attempts = count;
        }
        let delay = members.get("initial_delay");
        if let Some(delay) = delay.and_then(|node| self.span(node, DELAYS)) {
            retry.initial_delay = delay;
        }
        if let Some(backoff) = members
            .get("backoff")
            .and_then(|node| self.choice(node, Backoff::NAMES, Backoff::named))
        {
            retry.backoff = backoff;
        }
        Some(retry)
    }
}
