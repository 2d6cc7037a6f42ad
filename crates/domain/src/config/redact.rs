//! `redact`: additions to the built-in redaction.

use super::declare::section;
use super::kind::{Kind, Shape, TEXTS, as_json};
use super::report::Report;
use redact::Redactor;
use text::document::Node;

section! {
    /// Additions to the built-in redaction.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Redact at "redact" {
        Hot keys: Vec<String> = Vec::new(), TEXTS,
            "Names of JSON members whose values are redacted.";
        Hot patterns: Vec<String> = Vec::new(), PATTERNS,
            "Regular expressions; matching text is redacted.";
    }
}

impl Redact {
    /// Builds the redactor. Patterns are checked when the configuration is read; one that is not
    /// valid all the same leaves the built-in rules.
    pub fn redactor(&self) -> Redactor {
        Redactor::new(&self.keys, &self.patterns).unwrap_or_else(|_| Redactor::builtin())
    }

    /// Adds the redaction of another file.
    pub(super) fn add(&mut self, more: Redact) {
        add(&mut self.keys, more.keys);
        add(&mut self.patterns, more.patterns);
    }

    /// Checks that the patterns of two files can still be built into one redaction.
    pub(super) fn check_together(&self, more: &Redact, node: &Node<'_>, report: &mut Report) {
        let patterns = [self.patterns.as_slice(), &more.patterns].concat();
        for fault in Redactor::new(&[], &patterns).err().into_iter().flatten() {
            report.fault(&node.location, format!("combined with your own patterns: {fault}"));
        }
    }
}

fn add(list: &mut Vec<String>, more: Vec<String>) {
    for text in more {
        if !list.contains(&text) {
            list.push(text);
        }
    }
}

/// Regular expressions, checked but not kept compiled.
const PATTERNS: Shape<Vec<String>> = Shape {
    words: TEXTS.words,
    read: |node, report| {
        let patterns = TEXTS.read(node, report)?;
        let faults = Redactor::new(&[], &patterns).err();
        for fault in faults.iter().flatten() {
            report.fault(&node.location, fault.to_string());
        }
        faults.is_none().then_some(patterns)
    },
    show: as_json,
};
