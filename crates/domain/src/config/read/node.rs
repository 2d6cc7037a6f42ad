//! A value of the tree with the place it stands at, and an object opened against its table of
//! keys. The faults that any key can have (type, unknown, twice, out of range) are found here.

use std::collections::HashSet;
use std::time::Duration;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

use super::super::keys::{Kind, NOT_YET_NOTE, Table};
use super::report::Report;
use super::scalar;
use crate::near;

/// Longer names are cut where a message or path shows them.
const SHOWN_CHARS_MAX: usize = 80;

/// A byte of the text and the path of the key there.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) at: usize,
}

#[derive(Clone)]
pub(super) struct Node<'a> {
    pub(super) place: Place,
    pub(super) value: &'a Value<'a>,
}

/// One member of an object; `key` is the place of its name.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) key: Place,
    pub(super) node: Node<'a>,
}

/// The known members of an object.
pub(super) struct Members<'a> {
    pub(super) place: Place,
    table: &'static Table,
    found: Vec<Entry<'a>>,
}

impl Place {
    pub(super) fn root(at: usize) -> Self {
        Self { path: String::new(), at }
    }

    fn key(&self, name: &str, at: usize) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
        let plain = !name.is_empty() && name.len() <= SHOWN_CHARS_MAX && name.chars().all(is_plain);
        let path = match (plain, self.path.as_str()) {
            (false, path) => format!("{path}[{}]", shown(name)),
            (true, "") => name.to_owned(),
            (true, path) => format!("{path}.{name}"),
        };
        Self { path, at }
    }
}

/// Text of the file as a message shows it: quoted, escaped and not too long.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{:?}", format!("{}…", &text[..end])),
        None => format!("{text:?}"),
    }
}

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value<'a>) -> Self {
        Self { place: Place::root(value.start()), value }
    }

    /// A fault that names the type found, not the value: it may be a secret.
    pub(super) fn wrong<T>(&self, expected: &str, report: &mut Report) -> Option<T> {
        let found = match self.value {
            Value::StringLit(_) => "a string",
            Value::NumberLit(_) => "a number",
            Value::BooleanLit(flag) if flag.value => "true",
            Value::BooleanLit(_) => "false",
            Value::Object(_) => "an object",
            Value::Array(_) => "a list",
            Value::NullKeyword(_) => "null",
        };
        report.fault(&self.place, format!("expected {expected}, found {found}"));
        None
    }

    pub(super) fn text(&self, report: &mut Report) -> Option<&'a str> {
        match self.value {
            Value::StringLit(text) => Some(&text.value),
            _ => self.wrong("a string", report),
        }
    }

    pub(super) fn flag(&self, report: &mut Report) -> Option<bool> {
        match self.value {
            Value::BooleanLit(flag) => Some(flag.value),
            _ => self.wrong("true or false", report),
        }
    }

    /// The elements of a list; `expected` says of what.
    pub(super) fn items(
        &self,
        expected: &str,
        report: &mut Report,
    ) -> Option<impl Iterator<Item = Node<'a>> + use<'a>> {
        let Value::Array(array) = self.value else {
            return self.wrong(expected, report);
        };
        let path = self.place.path.clone();
        Some(array.elements.iter().enumerate().map(move |(index, value)| Node {
            place: Place { path: format!("{path}[{index}]"), at: value.start() },
            value,
        }))
    }

    pub(super) fn texts(&self, report: &mut Report) -> Option<Vec<String>> {
        let items = self.items("a list of strings", report)?;
        Some(items.filter_map(|item| item.text(report)).map(str::to_owned).collect())
    }

    /// The members of an object, each name once.
    pub(super) fn entries(&self, report: &mut Report) -> Option<Vec<Entry<'a>>> {
        let Value::Object(object) = self.value else {
            return self.wrong("an object", report);
        };
        let mut seen = HashSet::new();
        let mut entries = Vec::new();
        for property in &object.properties {
            let name = property.name.as_str();
            let key = self.place.key(name, property.name.start());
            if !seen.insert(name) {
                report.fault(&key, "stands here twice; keep one");
                continue;
            }
            let place = Place { path: key.path.clone(), at: property.value.start() };
            entries.push(Entry { name, key, node: Node { place, value: &property.value } });
        }
        Some(entries)
    }
}

impl<'a> Members<'a> {
    pub(super) fn open(
        node: &Node<'a>,
        table: &'static Table,
        report: &mut Report,
    ) -> Option<Self> {
        let mut found = node.entries(report)?;
        found.retain(|entry| known(entry, table, report));
        Some(Self { place: node.place.clone(), table, found })
    }

    pub(super) fn get(&self, name: &str) -> Option<&Entry<'a>> {
        self.found.iter().find(|entry| entry.name == name)
    }

    pub(super) fn read<T>(
        &self,
        name: &str,
        report: &mut Report,
        read: impl FnOnce(&Node<'a>, &mut Report) -> Option<T>,
    ) -> Option<T> {
        read(&self.get(name)?.node, report)
    }

    pub(super) fn section(&self, name: &str, report: &mut Report) -> Option<Members<'a>> {
        let Some(Kind::Section(table)) = self.kind(name) else { return None };
        self.read(name, report, |node, report| Members::open(node, table, report))
    }

    pub(super) fn text(&self, name: &str, report: &mut Report) -> Option<String> {
        self.read(name, report, Node::text).map(str::to_owned)
    }

    pub(super) fn texts(&self, name: &str, report: &mut Report) -> Option<Vec<String>> {
        self.read(name, report, Node::texts)
    }

    pub(super) fn flag(&self, name: &str, report: &mut Report) -> Option<bool> {
        self.read(name, report, Node::flag)
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
        let word = node.text(report)?;
        named(word).or_else(|| scalar::no_choice(node, word, names, report))
    }

    fn kind(&self, name: &str) -> Option<Kind> {
        let key = self.table.key(name);
        debug_assert!(key.is_some(), "{name} is read but not declared in {:?}", self.table.path);
        key.map(|key| key.kind)
    }
}

/// Whether the table has the key; tells of those that are unknown, foreign or not yet in effect.
fn known(entry: &Entry<'_>, table: &'static Table, report: &mut Report) -> bool {
    if let Some(fate) = table.foreign(entry.name) {
        report.note(&entry.key, fate);
        return true;
    }
    if table.key(entry.name).is_none() {
        let names = table.keys.iter().map(|key| key.name);
        // Searching for near names is the dearest part of a fault that nobody will see.
        let near = if report.is_full() { String::new() } else { did_you_mean(entry.name, names) };
        report.fault(&entry.key, format!("unknown key{near}"));
        return false;
    }
    if table.is_not_yet(entry.name) {
        report.note(&entry.key, NOT_YET_NOTE);
    }
    true
}

/// `, did you mean 'command'?`, or nothing when nothing is near.
pub(super) fn did_you_mean<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    match near::names(word, names, 1).first() {
        Some(name) => format!(", did you mean '{name}'?"),
        None => String::new(),
    }
}
