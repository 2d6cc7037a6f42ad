//! A value of the tree with its path, read as one of the types that keys take.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Number, Value};

use super::super::fault::{Place, Report};
use super::super::tree::{Content, Mark, Source, Tree};
use domain::code::Code;
use domain::config::duration;

/// Longer texts are cut where a message or path shows them.
const SHOWN_CHARS_MAX: usize = 80;

/// Beyond this, a path names what it is part of: aliases can make paths longer than the text.
const PATH_MAX_BYTES: usize = 1_000;

const DURATION: &str = "a number of seconds, or a duration such as 30s, 10m or 500ms";

#[derive(Clone)]
pub(super) struct Node<'a> {
    pub(super) place: Place,
    pub(super) tree: &'a Tree,
}

/// One member of a mapping; `key` is the place of its name.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) key: Place,
    pub(super) node: Node<'a>,
}

pub(super) struct Members<'a> {
    pub(super) place: Place,
    entries: Vec<Entry<'a>>,
}

/// What a scalar is by YAML's core schema; quotes make everything a text.
enum Scalar<'a> {
    Null,
    Flag(bool),
    Integer(i64),
    Number(f64),
    Text(&'a str),
}

/// Text of the file as a message shows it: quoted, escaped and not too long.
pub(in super::super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{:?}", format!("{}…", &text[..end])),
        None => format!("{text:?}"),
    }
}

fn place(path: String, mark: Mark) -> Place {
    Place { path, line: mark.line, column: mark.column }
}

impl<'a> Members<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&Node<'a>> {
        self.entry(name).map(|entry| &entry.node)
    }

    pub(super) fn entry(&self, name: &str) -> Option<&Entry<'a>> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter()
    }
}

impl<'a> Node<'a> {
    pub(super) fn root(tree: &'a Tree) -> Self {
        Node { place: place(String::new(), tree.mark), tree }
    }

    pub(super) fn any_members(&self, report: &mut Report) -> Option<Members<'a>> {
        let Content::Map(entries) = &self.tree.content else {
            return self.wrong("a mapping", report);
        };
        let entries = entries.iter().map(|(key, tree)| {
            let path = child(&self.place.path, &key.name);
            let node = Node { place: place(path.clone(), tree.mark), tree };
            Entry { name: &key.name, key: place(path, key.mark), node }
        });
        Some(Members { place: self.place.clone(), entries: entries.collect() })
    }

    /// The elements of a list; `expected` says of what.
    pub(super) fn items(&self, expected: &str, report: &mut Report) -> Option<Vec<Node<'a>>> {
        let Content::List(list) = &self.tree.content else {
            return self.wrong(expected, report);
        };
        let nodes = list.iter().enumerate().map(|(index, tree)| {
            let path = element(&self.place.path, index);
            Node { place: place(path, tree.mark), tree }
        });
        Some(nodes.collect())
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(self.scalar(), Some(Scalar::Text(_)))
    }

    pub(super) fn text(&self, source: &Source<'_>, report: &mut Report) -> Option<String> {
        match self.scalar() {
            Some(Scalar::Text(text)) => Some(text.to_owned()),
            _ => self.no_text(source, report),
        }
    }

    /// A text that may look like a number: `1.0` of a version stays as it is written.
    pub(super) fn word(&self, source: &Source<'_>, report: &mut Report) -> Option<String> {
        match (&self.tree.content, self.scalar()) {
            (_, Some(Scalar::Null) | None) => self.no_text(source, report),
            (Content::Scalar { text, .. }, Some(_)) => Some(text.clone()),
            (Content::List(_) | Content::Map(_), Some(_)) => None,
        }
    }

    fn no_text<T>(&self, source: &Source<'_>, report: &mut Report) -> Option<T> {
        if source.is_bare_template(self.tree.mark) {
            let message = "a value that begins with {{ must stand in quotes";
            report.error(&self.place, Code::WorkflowWrongType, message);
            return None;
        }
        self.wrong("a text", report)
    }

    pub(super) fn flag(&self, report: &mut Report) -> Option<bool> {
        match self.scalar() {
            Some(Scalar::Flag(flag)) => Some(flag),
            _ => self.wrong("true or false", report),
        }
    }

    pub(super) fn integer(&self, report: &mut Report) -> Option<i64> {
        match self.scalar() {
            Some(Scalar::Integer(number)) => Some(number),
            _ => self.wrong("a whole number", report),
        }
    }

    pub(super) fn count(&self, range: RangeInclusive<u32>, report: &mut Report) -> Option<u32> {
        let number = self.integer(report)?;
        match u32::try_from(number) {
            Ok(count) if range.contains(&count) => Some(count),
            _ => {
                let (min, max) = (range.start(), range.end());
                let message =
                    format!("expected a whole number from {min} to {max}, found {number}");
                report.error(&self.place, Code::WorkflowBadValue, message);
                None
            }
        }
    }

    pub(super) fn number(&self, range: RangeInclusive<f64>, report: &mut Report) -> Option<f64> {
        let number = match self.scalar() {
            Some(Scalar::Integer(number)) => number as f64,
            Some(Scalar::Number(number)) => number,
            _ => return self.wrong("a number", report),
        };
        if !range.contains(&number) {
            let message = format!("expected {} to {}, found {number}", range.start(), range.end());
            report.error(&self.place, Code::WorkflowBadValue, message);
            return None;
        }
        Some(number)
    }

    pub(super) fn span(
        &self,
        range: RangeInclusive<Duration>,
        report: &mut Report,
    ) -> Option<Duration> {
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
        let span = match self.scalar() {
            Some(Scalar::Integer(number)) => seconds(number as f64),
            Some(Scalar::Number(number)) => seconds(number),
            Some(Scalar::Text(text)) => duration(text),
            _ => return self.wrong(DURATION, report),
        };
        match span {
            Some(span) if range.contains(&span) => Some(span),
            Some(_) => {
                let (min, max) = (range.start().as_millis(), range.end().as_secs());
                let message = format!("expected {min} ms to {max} s");
                report.error(&self.place, Code::WorkflowBadValue, message);
                None
            }
            None => {
                report.error(&self.place, Code::WorkflowBadValue, format!("expected {DURATION}"));
                None
            }
        }
    }

    /// The value as JSON; numbers and the like keep their type.
    pub(super) fn json(&self) -> Value {
        json(self.tree)
    }

    /// Shows each leaf that is a text, one at a time: there may be many, with long paths.
    pub(super) fn each_text(&self, see: &mut impl FnMut(&Node<'a>)) {
        match &self.tree.content {
            Content::Scalar { .. } if self.is_text() => see(self),
            Content::Scalar { .. } => {}
            Content::List(list) => {
                for (index, tree) in list.iter().enumerate() {
                    let path = element(&self.place.path, index);
                    Node { place: place(path, tree.mark), tree }.each_text(see);
                }
            }
            Content::Map(entries) => {
                for (key, tree) in entries {
                    let path = child(&self.place.path, &key.name);
                    Node { place: place(path, tree.mark), tree }.each_text(see);
                }
            }
        }
    }

    fn scalar(&self) -> Option<Scalar<'a>> {
        scalar(self.tree)
    }

    /// A fault that names the type found, not the value: it may be a secret.
    fn wrong<T>(&self, expected: &str, report: &mut Report) -> Option<T> {
        let found = match (&self.tree.content, self.scalar()) {
            (Content::List(_), _) => "a list",
            (Content::Map(_), _) => "a mapping",
            (_, Some(Scalar::Null) | None) => "nothing",
            (_, Some(Scalar::Flag(true))) => "true",
            (_, Some(Scalar::Flag(false))) => "false",
            (_, Some(Scalar::Integer(_) | Scalar::Number(_))) => "a number",
            (_, Some(Scalar::Text(_))) => "a text",
        };
        let message = format!("expected {expected}, found {found}");
        report.error(&self.place, Code::WorkflowWrongType, message);
        None
    }
}

fn element(path: &str, index: usize) -> String {
    if path.len() > PATH_MAX_BYTES { path.to_owned() } else { format!("{path}[{index}]") }
}

fn child(path: &str, name: &str) -> String {
    if path.len() > PATH_MAX_BYTES {
        return path.to_owned();
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
    let plain = !name.is_empty() && name.len() <= SHOWN_CHARS_MAX && name.chars().all(is_plain);
    match (plain, path) {
        (false, path) => format!("{path}[{}]", shown(name)),
        (true, "") => name.to_owned(),
        (true, path) => format!("{path}.{name}"),
    }
}

fn scalar(tree: &Tree) -> Option<Scalar<'_>> {
    let (text, is_plain) = match &tree.content {
        Content::Scalar { text, is_plain } => (text.as_str(), *is_plain),
        Content::List(_) | Content::Map(_) => return None,
    };
    if !is_plain {
        return Some(Scalar::Text(text));
    }
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "true" | "True" | "TRUE" => Scalar::Flag(true),
        "false" | "False" | "FALSE" => Scalar::Flag(false),
        _ => number(text),
    })
}

fn number(text: &str) -> Scalar<'_> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Scalar::Text(text);
    }
    if let Ok(number) = text.parse::<i64>() {
        return Scalar::Integer(number);
    }
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    match text.parse::<f64>() {
        Ok(number) if text.chars().all(is_number) && number.is_finite() => Scalar::Number(number),
        _ => Scalar::Text(text),
    }
}

fn json(tree: &Tree) -> Value {
    match &tree.content {
        Content::List(list) => list.iter().map(|tree| json(tree)).collect(),
        Content::Map(entries) => {
            let members = entries.iter().map(|(key, tree)| (key.name.clone(), json(tree)));
            Value::Object(members.collect::<Map<String, Value>>())
        }
        Content::Scalar { .. } => match scalar(tree) {
            Some(Scalar::Flag(flag)) => Value::Bool(flag),
            Some(Scalar::Integer(number)) => Value::from(number),
            Some(Scalar::Number(number)) => {
                Number::from_f64(number).map_or(Value::Null, Value::Number)
            }
            Some(Scalar::Text(text)) => Value::from(text),
            Some(Scalar::Null) | None => Value::Null,
        },
    }
}
