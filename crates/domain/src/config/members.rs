//! An object of the file, read against its table of keys: unknown and duplicate keys are found here.

use std::collections::HashSet;

use super::keys::{KeyTreatment, Table};
use super::kind::{FLAG, Kind, TEXT};
use super::name::did_you_mean;
use super::report::Report;
use text::document::{Location, Member, Node};

/// An object of the file, with the members that its table knows.
pub(super) struct Members<'a> {
    pub(super) location: Location,
    entries: Vec<Member<'a>>,
}

impl<'a> Members<'a> {
    pub(super) fn open(
        node: &Node<'a>,
        table: &'static Table,
        report: &mut Report,
    ) -> Option<Self> {
        let mut entries = entries(node, report)?;
        entries.retain(|entry| known(entry, table, report));
        Some(Self { location: node.location.clone(), entries })
    }

    pub(super) fn get(&self, name: &str) -> Option<&Member<'a>> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.entries.iter().map(|entry| entry.name)
    }

    pub(super) fn read<T>(
        &self,
        name: &str,
        report: &mut Report,
        read: impl FnOnce(&Node<'a>, &mut Report) -> Option<T>,
    ) -> Option<T> {
        read(&self.get(name)?.node, report)
    }

    pub(super) fn text(&self, name: &str, report: &mut Report) -> Option<String> {
        self.read(name, report, |node, report| TEXT.read(node, report))
    }

    pub(super) fn flag(&self, name: &str, report: &mut Report) -> Option<bool> {
        self.read(name, report, |node, report| FLAG.read(node, report))
    }

    /// Sets the field of a key, if the object has the key.
    pub(super) fn set<T>(
        &self,
        name: &str,
        kind: &impl Kind<T>,
        field: &mut T,
        report: &mut Report,
    ) {
        if let Some(entry) = self.get(name) {
            kind.set(field, &entry.node, report);
        }
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
        let names = table.keys().map(|key| key.name);
        // Searching for near names is the most expensive part, and this fault will not be shown.
        let near = if report.is_full() { String::new() } else { did_you_mean(entry.name, names) };
        report.fault(&entry.key, format!("unknown key{near}"));
        return false;
    }
    true
}

/// Replaces the item of the same name, or appends.
pub(super) fn put<T>(list: &mut Vec<T>, item: T, name: impl Fn(&T) -> &String) {
    match list.iter_mut().find(|known| name(known) == name(&item)) {
        Some(known) => *known = item,
        None => list.push(item),
    }
}
