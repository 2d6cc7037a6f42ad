//! A value of the tree with its path, read as one of the types that keys take.

use std::time::Duration;

use super::tree::{Content, Scalar, ScalarKind, Tree};
use super::{Location, SHOWN_CHARS_MAX, shown};
use crate::duration;

/// Beyond this length, a path names an enclosing value: aliases can make paths longer than the
/// text.
const PATH_MAX_BYTES: usize = 1_000;

#[derive(Clone)]
pub struct Node<'a> {
    pub location: Location,
    pub tree: &'a Tree,
    syntax: Syntax,
}

/// One member of a mapping; `key` is the location of its name.
pub struct Member<'a> {
    pub name: &'a str,
    pub key: Location,
    pub node: Node<'a>,
}

/// The language of a document, which has its own names for types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    Json,
    Yaml,
}

/// A value of the wrong type for its key. The message names the type found, not the value, which
/// may be a secret.
#[derive(Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub location: Location,
    pub message: String,
}

impl Syntax {
    fn map(self) -> &'static str {
        match self {
            Syntax::Json => "an object",
            Syntax::Yaml => "a mapping",
        }
    }

    fn null(self) -> &'static str {
        match self {
            Syntax::Json => "null",
            Syntax::Yaml => "nothing",
        }
    }
}

impl<'a> Node<'a> {
    pub fn root(tree: &'a Tree, syntax: Syntax) -> Node<'a> {
        Node { location: Location::root(tree.start), tree, syntax }
    }

    pub fn mismatch(&self, expected: &str) -> Mismatch {
        let found = match &self.tree.content {
            Content::List(_) => "a list",
            Content::Map(_) => self.syntax.map(),
            Content::Scalar(Scalar { kind, .. }) => match kind {
                ScalarKind::Null => self.syntax.null(),
                ScalarKind::Flag(true) => "true",
                ScalarKind::Flag(false) => "false",
                ScalarKind::Number(_) => "a number",
                ScalarKind::Text => "a string",
            },
        };
        let message = format!("expected {expected}, found {found}");
        Mismatch { location: self.location.clone(), message }
    }

    pub fn is_text(&self) -> bool {
        self.tree.scalar().is_some_and(|scalar| scalar.kind == ScalarKind::Text)
    }

    pub fn text(&self) -> Result<&'a str, Mismatch> {
        match self.tree.scalar() {
            Some(Scalar { text, kind: ScalarKind::Text }) => Ok(text),
            _ => Err(self.mismatch("a string")),
        }
    }

    /// Reads text that may look like a number: a version `1.0` stays as written.
    pub fn word(&self) -> Result<&'a str, Mismatch> {
        match self.tree.scalar() {
            Some(scalar) if scalar.kind != ScalarKind::Null => Ok(&scalar.text),
            _ => Err(self.mismatch("a string")),
        }
    }

    pub fn flag(&self) -> Result<bool, Mismatch> {
        match self.tree.scalar() {
            Some(Scalar { kind: ScalarKind::Flag(flag), .. }) => Ok(*flag),
            _ => Err(self.mismatch("true or false")),
        }
    }

    /// Reads any number, as written.
    pub fn digits(&self) -> Result<&'a str, Mismatch> {
        match self.tree.scalar() {
            Some(Scalar { text, kind: ScalarKind::Number(_) }) => Ok(text),
            _ => Err(self.mismatch("a number")),
        }
    }

    pub fn integer(&self) -> Result<i64, Mismatch> {
        let integer = match self.tree.scalar() {
            Some(Scalar { kind: ScalarKind::Number(Some(number)), .. }) => number.as_i64(),
            _ => None,
        };
        integer.ok_or_else(|| self.mismatch("a whole number"))
    }

    pub fn number(&self) -> Result<f64, Mismatch> {
        let number = match self.tree.scalar() {
            Some(Scalar { kind: ScalarKind::Number(Some(number)), .. }) => number.as_f64(),
            _ => None,
        };
        number.ok_or_else(|| self.mismatch("a number"))
    }

    /// Reads text such as `30s`, or a number of seconds. Returns `None` if it has the right type
    /// but is not a duration. `expected` describes a valid value.
    pub fn duration(&self, expected: &str) -> Result<Option<Duration>, Mismatch> {
        let seconds = |seconds| Duration::try_from_secs_f64(seconds).ok();
        match self.tree.scalar() {
            Some(Scalar { text, kind: ScalarKind::Text }) => Ok(duration::parse(text)),
            Some(Scalar { kind: ScalarKind::Number(number), .. }) => {
                Ok(number.as_ref().and_then(|number| number.as_f64()).and_then(seconds))
            }
            _ => Err(self.mismatch(expected)),
        }
    }

    /// Returns the elements of a list; `expected` describes them.
    pub fn items(
        &self,
        expected: &str,
    ) -> Result<impl ExactSizeIterator<Item = Node<'a>> + use<'a>, Mismatch> {
        let Content::List(list) = &self.tree.content else {
            return Err(self.mismatch(expected));
        };
        let (path, syntax) = (self.location.path.clone(), self.syntax);
        Ok(list.iter().enumerate().map(move |(index, tree)| {
            let location = Location { path: element(&path, index), mark: tree.start };
            Node { location, tree, syntax }
        }))
    }

    /// Returns the members of a mapping, in text order.
    pub fn entries(&self) -> Result<impl ExactSizeIterator<Item = Member<'a>> + use<'a>, Mismatch> {
        let Content::Map(entries) = &self.tree.content else {
            return Err(self.mismatch(self.syntax.map()));
        };
        let (path, syntax) = (self.location.path.clone(), self.syntax);
        Ok(entries.iter().map(move |(key, tree)| {
            let path = member(&path, &key.name);
            let location = Location { path: path.clone(), mark: tree.start };
            let node = Node { location, tree, syntax };
            Member { name: &key.name, key: Location { path, mark: key.mark }, node }
        }))
    }
}

fn element(path: &str, index: usize) -> String {
    if path.len() > PATH_MAX_BYTES { path.to_owned() } else { format!("{path}[{index}]") }
}

fn member(path: &str, name: &str) -> String {
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
