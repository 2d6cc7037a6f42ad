//! Reads the file's values as the types that keys take. Faults are reported; references to other
//! parts are collected and checked once all parts are known.

use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::Duration;

use super::super::fault::Report;
use super::super::mention::{Goto, Mentioner, Mentions, ReferenceMention};
use super::super::reference::{Reference, is_name};
use super::super::source::{BARE_TEMPLATE, Source};
use super::super::template::TextFault;
use super::super::{Condition, Inventory, Template, shell};
use super::mapping::Mapping;
use domain::code::Code;
use text::document::{Location, Mismatch, Node, shown};
use text::near;

/// The limit that clients set on tool names.
const NAME_CHARS_MAX: usize = 64;

const DURATION: &str = "a number of seconds, or a duration such as 500ms, 1.5s, 10m or 1h30m";

pub(super) struct Reader<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) known: &'a Inventory,
    pub(super) report: Report,
    pub(super) mentions: Mentions,
}

impl<'a> Reader<'a> {
    pub(super) fn text(&mut self, node: &Node<'a>) -> Option<&'a str> {
        let text = node.text();
        self.taken(node, text)
    }

    /// Reads text that may look like a number.
    pub(super) fn word(&mut self, node: &Node<'a>) -> Option<&'a str> {
        let word = node.word();
        self.taken(node, word)
    }

    fn taken(&mut self, node: &Node<'a>, text: Result<&'a str, Mismatch>) -> Option<&'a str> {
        if text.is_err() && self.source.is_bare_template(node.tree.start) {
            self.report.error(&node.location, Code::WorkflowWrongType, BARE_TEMPLATE);
            return None;
        }
        self.report.take(text)
    }

    pub(super) fn flag(&mut self, mapping: &Mapping<'a>, key: &str) -> Option<bool> {
        self.report.take(mapping.get(key)?.flag())
    }

    pub(super) fn integer(&mut self, node: &Node<'a>) -> Option<i64> {
        self.report.take(node.integer())
    }

    pub(super) fn count(&mut self, node: &Node<'a>, range: RangeInclusive<u32>) -> Option<u32> {
        let number = self.integer(node)?;
        let count = u32::try_from(number).ok().filter(|count| range.contains(count));
        if count.is_none() {
            let (min, max) = (range.start(), range.end());
            let message = format!("expected a whole number from {min} to {max}, found {number}");
            self.report.error(&node.location, Code::WorkflowBadValue, message);
        }
        count
    }

    pub(super) fn number(&mut self, node: &Node<'a>, range: RangeInclusive<f64>) -> Option<f64> {
        let number = self.report.take(node.number())?;
        if !range.contains(&number) {
            let message = format!("expected {} to {}, found {number}", range.start(), range.end());
            self.report.error(&node.location, Code::WorkflowBadValue, message);
            return None;
        }
        Some(number)
    }

    pub(super) fn span(
        &mut self,
        node: &Node<'a>,
        range: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let message = match self.report.take(node.duration(DURATION))? {
            Some(span) if range.contains(&span) => return Some(span),
            Some(_) => {
                let (min, max) = (range.start().as_millis(), range.end().as_secs());
                format!("expected a duration from {min} ms to {max} s")
            }
            None => format!("expected {DURATION}"),
        };
        self.report.error(&node.location, Code::WorkflowBadValue, message);
        None
    }

    /// Reads one of a fixed set of words.
    pub(super) fn choice<T>(
        &mut self,
        node: &Node<'a>,
        names: &[&str],
        named: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let word = self.word(node)?;
        let choice = named(word);
        if choice.is_none() {
            let near = near::hint(&near::names(word, names.iter().copied(), 1));
            let message = format!("expected {}, found {}{near}", names.join(" or "), shown(word));
            self.report.error(&node.location, Code::WorkflowBadValue, message);
        }
        choice
    }

    /// Reads the elements of a list; `expected` describes them.
    pub(super) fn items(
        &mut self,
        node: &Node<'a>,
        expected: &str,
    ) -> Option<impl ExactSizeIterator<Item = Node<'a>> + use<'a>> {
        self.report.take(node.items(expected))
    }

    /// Reads a mapping with any keys.
    pub(super) fn any_mapping(&mut self, node: &Node<'a>) -> Option<Mapping<'a>> {
        let entries = self.report.take(node.entries())?.collect();
        Some(Mapping { location: node.location.clone(), entries })
    }

    /// Reads a mapping with only these keys.
    pub(super) fn mapping(&mut self, node: &Node<'a>, keys: &[&str]) -> Option<Mapping<'a>> {
        self.mapping_or(node, keys, Code::WorkflowUnknownKey)
    }

    /// Like `mapping`, but with its own code for unknown keys.
    pub(super) fn mapping_or(
        &mut self,
        node: &Node<'a>,
        keys: &[&str],
        code: Code,
    ) -> Option<Mapping<'a>> {
        let mapping = self.any_mapping(node)?;
        for entry in mapping.other_than(keys) {
            self.unknown(entry.name, &entry.key, keys, code);
        }
        Some(mapping)
    }

    pub(super) fn unknown(&mut self, name: &str, location: &Location, keys: &[&str], code: Code) {
        // Searching for near names is the most expensive part, and this fault will not be shown.
        let near = if self.report.is_full() {
            Vec::new()
        } else {
            near::names(name, keys.iter().copied(), 1)
        };
        let message = if near.is_empty() {
            format!("unknown key; expected one of {}", keys.join(", "))
        } else {
            format!("unknown key{}", near::hint(&near))
        };
        self.report.error(location, code, message);
    }

    pub(super) fn required<'m>(
        &mut self,
        mapping: &'m Mapping<'a>,
        key: &str,
    ) -> Option<&'m Node<'a>> {
        let node = mapping.get(key);
        if node.is_none() {
            let message = format!("'{key}' is missing");
            self.report.error(&mapping.location, Code::WorkflowMissingKey, message);
        }
        node
    }

    /// Checks the name of a state or input: it is part of dot-separated paths.
    pub(super) fn name(&mut self, name: &str, location: &Location) {
        if !is_name(name) || name.len() > NAME_CHARS_MAX {
            let message = format!(
                "a name must consist of 1 to {NAME_CHARS_MAX} letters, digits, '_' and '-'"
            );
            self.report.error(location, Code::WorkflowBadName, message);
        }
    }

    /// Reads the name of a target state.
    pub(super) fn goto(&mut self, node: &Node<'a>) -> Option<String> {
        let state = self.text(node)?.to_owned();
        let location = node.location.clone();
        self.mentions.gotos.push(Goto { state: state.clone(), location });
        Some(state)
    }

    pub(super) fn template(&mut self, node: &Node<'a>) -> Option<Template> {
        let text = self.text(node)?;
        self.template_of(node, text)
    }

    /// Reads a template that may also be written as a number.
    pub(super) fn word_template(&mut self, node: &Node<'a>) -> Option<Template> {
        let text = self.word(node)?;
        self.template_of(node, text)
    }

    pub(super) fn command(&mut self, node: &Node<'a>) -> Option<Template> {
        let command = self.template(node)?;
        let faults = shell::faults(&command);
        self.malformed(node, command.as_written(), faults, Code::WorkflowBadTemplate);
        Some(command)
    }

    fn template_of(&mut self, node: &Node<'a>, text: &str) -> Option<Template> {
        match Template::parse(text) {
            Ok(template) => {
                self.mention(node, text, template.references(), Mentioner::Template);
                Some(template)
            }
            Err(faults) => {
                self.malformed(node, text, faults, Code::WorkflowBadTemplate);
                None
            }
        }
    }

    pub(super) fn condition(&mut self, node: &Node<'a>) -> Option<Condition> {
        let text = self.word(node)?;
        match Condition::parse(text) {
            Ok(condition) => {
                let references = condition.references().into_iter();
                self.mention(node, text, references, Mentioner::Condition);
                let alone = condition.alone().into_iter();
                self.mention(node, text, alone, Mentioner::WholeCondition);
                Some(condition)
            }
            Err(fault) => {
                self.malformed(node, text, vec![fault], Code::WorkflowBadExpression);
                None
            }
        }
    }

    fn mention<'r>(
        &mut self,
        node: &Node<'a>,
        text: &str,
        references: impl Iterator<Item = (&'r Reference, usize)>,
        by: Mentioner,
    ) {
        let text: Rc<str> = text.into();
        self.mentions.references.extend(references.map(|(reference, at)| ReferenceMention {
            reference: reference.clone(),
            by,
            path: node.location.path.clone(),
            start: node.tree.start,
            text: Rc::clone(&text),
            at,
        }));
    }

    fn malformed(&mut self, node: &Node<'a>, text: &str, faults: Vec<TextFault>, code: Code) {
        for fault in faults {
            let mut location = node.location.clone();
            if !self.report.is_full() {
                location.mark = self.source.inside(node.tree.start, text, fault.at);
            }
            self.report.error(&location, code, fault.message);
        }
    }
}
