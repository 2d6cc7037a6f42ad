//! Parses YAML into a tree: one document with its aliases and duplicate keys, limited in size. Each
//! caller has its own messages for faults.
//!
//! Built from the parser's events: serde would stop at the first fault, could not tell `1.0` from
//! `"1.0"`, and would lose positions.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, Tag};
use serde_json::Number;

use super::Mark;
use super::tree::{Content, MemberKey, Scalar, ScalarKind, Tree};

/// The YAML features that a text may use, and the maximum size of its tree.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub features: Features,
    /// Depth of the tree; the readers recurse.
    pub depth_max: usize,
    /// Values and keys in the tree. An alias counts at each use: a few lines of anchors can expand
    /// to billions.
    pub values_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Features {
    /// Aliases are expanded. Duplicate keys are recorded, and reading continues.
    All,
    /// Aliases are not allowed, and the first duplicate key ends the reading.
    Plain,
}

#[derive(Debug)]
pub struct Yaml {
    pub root: Rc<Tree>,
    /// Duplicate keys, of which the first counts.
    pub repeated: Vec<MemberKey>,
}

/// The reason that a text cannot be read as a tree.
#[derive(Debug)]
pub struct Flaw {
    pub mark: Mark,
    pub kind: FlawKind,
}

#[derive(Debug)]
pub enum FlawKind {
    NotYaml(ScanError),
    Empty,
    SecondDocument,
    /// An alias where none are allowed.
    Alias,
    AliasInItself,
    /// A tag that is not one of YAML's own.
    ForeignTag,
    /// `<<`, where support for aliases suggests that it works.
    MergeKey,
    /// A key that is a list or a mapping, ending at this mark.
    KeyIsNoScalar {
        end: Mark,
    },
    RepeatedKey(String),
    TooDeep,
    TooManyValues,
}

pub fn parse(text: &str, rules: Rules) -> Result<Yaml, Flaw> {
    let mut builder = Builder {
        rules,
        open: Vec::new(),
        anchors: HashMap::new(),
        root: None,
        documents: 0,
        repeated: Vec::new(),
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| Flaw {
            mark: mark(*error.marker()),
            kind: FlawKind::NotYaml(error),
        })?;
        builder.take(event, span)?;
    }
    match builder.root {
        Some(root) => Ok(Yaml { root, repeated: builder.repeated }),
        None => flaw(Mark::START, FlawKind::Empty),
    }
}

struct Builder {
    rules: Rules,
    open: Vec<Open>,
    anchors: HashMap<usize, Branch>,
    root: Option<Rc<Tree>>,
    documents: usize,
    repeated: Vec<MemberKey>,
}

/// A finished value and its size.
#[derive(Clone)]
struct Branch {
    tree: Rc<Tree>,
    /// Includes the value itself.
    values: usize,
    depth: usize,
    /// True for `<<` without quotes.
    is_merge_key: bool,
}

/// A list or mapping that is not closed yet.
struct Open {
    start: Mark,
    anchor: usize,
    items: Items,
    values: usize,
    depth: usize,
}

enum Items {
    List(Vec<Rc<Tree>>),
    Map { entries: Vec<(MemberKey, Rc<Tree>)>, names: HashSet<String>, key: Option<MemberKey> },
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Flaw> {
        let (start, end) = (mark(span.start), mark(span.end));
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 { flaw(start, FlawKind::SecondDocument) } else { Ok(()) }
            }
            Event::Alias(_) if self.rules.features == Features::Plain => {
                flaw(start, FlawKind::Alias)
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(branch) => self.add(branch, start),
                None => flaw(start, FlawKind::AliasInItself),
            },
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = is_text(tag.as_deref(), start)?;
                let is_plain = style == ScalarStyle::Plain && !is_text;
                let kind = if is_plain { plain(&text) } else { ScalarKind::Text };
                let is_merge_key = is_plain && text == "<<";
                let content = Content::Scalar(Scalar { text: text.into_owned(), kind });
                let tree = Rc::new(Tree { start, end, content });
                self.close(Branch { tree, values: 1, depth: 1, is_merge_key }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                is_text(tag.as_deref(), start)?;
                self.open(start, anchor, Items::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                is_text(tag.as_deref(), start)?;
                let (entries, names) = (Vec::new(), HashSet::new());
                self.open(start, anchor, Items::Map { entries, names, key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(end),
        }
    }

    fn open(&mut self, start: Mark, anchor: usize, items: Items) -> Result<(), Flaw> {
        if self.open.len() >= self.rules.depth_max {
            return flaw(start, FlawKind::TooDeep);
        }
        self.open.push(Open { start, anchor, items, values: 1, depth: 1 });
        Ok(())
    }

    fn end(&mut self, end: Mark) -> Result<(), Flaw> {
        let Some(Open { start, anchor, items, values, depth }) = self.open.pop() else {
            return Ok(());
        };
        let content = match items {
            Items::List(list) => Content::List(list),
            Items::Map { entries, .. } => Content::Map(entries),
        };
        let tree = Rc::new(Tree { start, end, content });
        self.close(Branch { tree, values, depth, is_merge_key: false }, anchor)
    }

    fn close(&mut self, branch: Branch, anchor: usize) -> Result<(), Flaw> {
        if anchor > 0 {
            self.anchors.insert(anchor, branch.clone());
        }
        let start = branch.tree.start;
        self.add(branch, start)
    }

    /// Inserts a finished value. `mark` is the position of its use, which for an alias differs from
    /// its definition.
    fn add(&mut self, branch: Branch, mark: Mark) -> Result<(), Flaw> {
        let Branch { tree, values, depth, is_merge_key } = branch;
        if self.open.len() + depth > self.rules.depth_max {
            return flaw(mark, FlawKind::TooDeep);
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(tree);
            return Ok(());
        };
        open.values = open.values.saturating_add(values);
        open.depth = open.depth.max(depth + 1);
        if open.values > self.rules.values_max {
            return flaw(mark, FlawKind::TooManyValues);
        }
        match &mut open.items {
            Items::List(list) => list.push(tree),
            Items::Map { entries, names, key } => match key.take() {
                Some(key) if names.insert(key.name.clone()) => entries.push((key, tree)),
                Some(key) => self.repeated.push(key),
                None => {
                    let name = match tree.scalar() {
                        Some(scalar) => scalar.text.clone(),
                        None => return flaw(mark, FlawKind::KeyIsNoScalar { end: tree.end }),
                    };
                    match self.rules.features {
                        Features::All if is_merge_key => return flaw(mark, FlawKind::MergeKey),
                        Features::Plain if names.contains(&name) => {
                            return flaw(mark, FlawKind::RepeatedKey(name));
                        }
                        Features::All | Features::Plain => *key = Some(MemberKey { name, mark }),
                    }
                }
            },
        }
        Ok(())
    }
}

/// Reports whether the tag makes a scalar text; only YAML's own tags are known.
fn is_text(tag: Option<&Tag>, mark: Mark) -> Result<bool, Flaw> {
    match tag {
        None => Ok(false),
        Some(tag) if tag.is_yaml_core_schema() => Ok(tag.suffix == "str"),
        Some(_) => flaw(mark, FlawKind::ForeignTag),
    }
}

/// Returns the kind of an unquoted word under YAML's core schema.
fn plain(text: &str) -> ScalarKind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => ScalarKind::Null,
        "true" | "True" | "TRUE" => ScalarKind::Flag(true),
        "false" | "False" | "FALSE" => ScalarKind::Flag(false),
        _ => match number(text) {
            Some(number) => ScalarKind::Number(Some(number)),
            None => ScalarKind::Text,
        },
    }
}

fn number(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Some(integer.into());
    }
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    let number = text.parse::<f64>().ok().filter(|_| text.chars().all(is_number))?;
    Number::from_f64(number)
}

fn flaw<T>(mark: Mark, kind: FlawKind) -> Result<T, Flaw> {
    Err(Flaw { mark, kind })
}

fn mark(marker: Marker) -> Mark {
    Mark::new(marker.line().max(1), marker.col() + 1)
}
