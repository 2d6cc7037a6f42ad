//! Reads an object against its table of keys. Faults that any key can have (type, unknown,
//! duplicate, out of range) are found here.

use std::collections::HashSet;
use std::time::Duration;

use super::keys::{KeyTreatment, Kind, Table};
use super::report::Report;
use super::scalar;
use text::document::{Location, Member, Node};

/// An object of the file, with the members that its table knows.
pub(super) struct Section<'a> {
    pub(super) location: Location,
    table: &'static Table,
    entries: Vec<Member<'a>>,
}

impl<'a> Section<'a> {
    pub(super) fn open(
        node: &Node<'a>,
        table: &'static Table,
        report: &mut Report,
    ) -> Option<Self> {
        let mut entries = entries(node, report)?;
        entries.retain(|entry| known(entry, table, report));
        Some(Self { location: node.location.clone(), table, entries })
    }

    pub(super) fn get(&self, name: &str) -> Option<&Member<'a>> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    pub(super) fn read<T>(
        &self,
        name: &str,
        report: &mut Report,
        read: impl FnOnce(&Node<'a>, &mut Report) -> Option<T>,
    ) -> Option<T> {
        read(&self.get(name)?.node, report)
    }

    pub(super) fn section(&self, name: &str, report: &mut Report) -> Option<Section<'a>> {
        let Some(Kind::Section(table)) = self.kind(name) else { return None };
        self.read(name, report, |node, report| Section::open(node, table, report))
    }

    pub(super) fn text(&self, name: &str, report: &mut Report) -> Option<String> {
        report.take(self.get(name)?.node.text()).map(str::to_owned)
    }

    pub(super) fn texts(&self, name: &str, report: &mut Report) -> Option<Vec<String>> {
        self.read(name, report, scalar::texts)
    }

    pub(super) fn flag(&self, name: &str, report: &mut Report) -> Option<bool> {
        report.take(self.get(name)?.node.flag())
    }

    pub(super) fn count(&self, name: &str, report: &mut Report) -> Option<u32> {
        let kind = self.kind(name)?;
        self.read(name, report, |node, report| scalar::count(node, kind, report))
    }

    pub(super) fn span(&self, name: &str, report: &mut Report) -> Option<Duration> {
        let Some(Kind::Span { min, max }) = self.kind(name) else { return None };
        self.read(name, report, |node, report| scalar::span(node, min..=max, report))
    }

    pub(super) fn choice<T>(
        &self,
        name: &str,
        named: impl Fn(&str) -> Option<T>,
        report: &mut Report,
    ) -> Option<T> {
        let Some(Kind::OneOf(names)) = self.kind(name) else { return None };
        let node = &self.get(name)?.node;
        let word = report.take(node.text())?;
        named(word).or_else(|| scalar::no_choice(node, word, names, report))
    }

    fn kind(&self, name: &str) -> Option<Kind> {
        let key = self.table.key(name);
        debug_assert!(key.is_some(), "{name} is read but not declared in {:?}", self.table.path);
        key.map(|key| key.kind)
    }
}

/// Returns the members of an object, each name once.
pub(super) fn entries<'a>(node: &Node<'a>, report: &mut Report) -> Option<Vec<Member<'a>>> {
    let mut seen = HashSet::new();
    let mut entries: Vec<Member<'a>> = report.take(node.entries())?.collect();
    entries.retain(|entry| {
        let is_first = seen.insert(entry.name);
        if !is_first {
            report.fault(&entry.key, "duplicate key; keep one");
        }
        is_first
    });
    Some(entries)
}

/// Reports whether the table has the key; adds notes on foreign keys.
fn known(entry: &Member<'_>, table: &'static Table, report: &mut Report) -> bool {
    if let Some(treatment) = table.foreign(entry.name) {
        if let KeyTreatment::Ignored(_) = treatment {
            report.note(&entry.key, treatment.to_string());
        }
        return true;
    }
    if table.key(entry.name).is_none() {
        let names = table.keys.iter().map(|key| key.name);
        // Searching for near names is the most expensive part, and this fault will not be shown.
        let near =
            if report.is_full() { String::new() } else { scalar::did_you_mean(entry.name, names) };
        report.fault(&entry.key, format!("unknown key{near}"));
        return false;
    }
    true
}

/// Keeps the default if the file sets no value.
pub(super) fn set<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

/// Like `set`, for values without a default.
pub(super) fn give<T>(slot: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *slot = value;
    }
}
