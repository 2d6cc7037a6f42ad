//! The text of a workflow as a tree with places. It knows YAML, not workflows: documents, anchors,
//! keys that come twice, and the bounds on all of it.
//!
//! Made of the parser's events: serde would stop at the first fault, and would not tell `1.0` from
//! `"1.0"` nor a template's place inside of a text.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};

/// A workflow of a thousand states takes less; more is some other file.
const SIZE_MAX_BYTES: usize = 1024 * 1024;

/// Our own keys nest to six; an agent's `config` may go on. The readers recurse.
const DEPTH_MAX: usize = 64;

/// Values in the tree, aliases counted as often as they are used: a few lines of anchors can stand
/// for billions. A thousand states of twenty keys take half of it.
const VALUES_MAX: usize = 50_000;

/// Texts and lines up to this are walked along to find a place in them; nobody counts columns
/// beyond, and a thousand faults would each walk a megabyte.
const WALKED_MAX_BYTES: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) line: u32,
    pub(super) column: u32,
}

/// Why a text is no tree, or what is wrong in one that is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) mark: Mark,
    pub(super) message: String,
}

#[derive(Debug)]
pub(super) struct Tree {
    pub(super) mark: Mark,
    pub(super) content: Content,
    /// Values in it, itself counted.
    values: usize,
    depth: usize,
}

#[derive(Debug)]
pub(super) enum Content {
    Scalar { text: String, is_plain: bool },
    List(Vec<Rc<Tree>>),
    Map(Vec<(Key, Rc<Tree>)>),
}

#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) mark: Mark,
}

pub(super) struct Source<'t> {
    text: &'t str,
    lines: Vec<&'t str>,
}

impl<'t> Source<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
        Self { text, lines }
    }

    /// The tree, and keys that come twice in it: the first of them counts.
    pub(super) fn tree(&self) -> Result<(Rc<Tree>, Vec<Unreadable>), Unreadable> {
        if self.text.len() > SIZE_MAX_BYTES {
            return Err(unreadable(START, "larger than 1 MiB: this is not a workflow"));
        }
        if let Some(mark) = self.find('\0') {
            return Err(unreadable(mark, "a NUL character: this is not text"));
        }
        let mut builder = Builder::default();
        for event in Parser::new_from_str(self.text) {
            let (event, span) = event.map_err(|error| self.explained(&error))?;
            builder.take(event, mark(span.start), self)?;
        }
        match builder.root {
            Some(root) => Ok((root, builder.twice)),
            None => Err(unreadable(START, "empty: a workflow has a name and states")),
        }
    }

    /// Where a byte of a scalar's text stands, as nearly as the style of the scalar lets us know.
    pub(super) fn inside(&self, start: Mark, text: &str, at: usize) -> Mark {
        let before = &text[..at];
        let line = self.line(start.line);
        if text.len().max(line.len()) > WALKED_MAX_BYTES {
            return start;
        }
        let opening: String = line.chars().skip(start.column as usize - 1).collect();
        for quote in ["", "\"", "'"] {
            let body = opening.strip_prefix(quote).unwrap_or_default();
            if body.starts_with(text.lines().next().unwrap_or_default()) && !before.contains('\n') {
                let shift = quote.len() + before.chars().count();
                return Mark { column: start.column + count(shift), ..start };
            }
        }
        // Each line of a literal block is one of the text, behind the block's indentation.
        let index = before.matches('\n').count();
        let number = start.line + count(index);
        let content = text.split('\n').nth(index).unwrap_or_default();
        match self.line(number).strip_suffix(content) {
            Some(indent) if index > 0 => {
                let in_line = before.rsplit('\n').next().unwrap_or_default();
                let column = count(indent.chars().count() + in_line.chars().count() + 1);
                Mark { line: number, column }
            }
            _ => start,
        }
    }

    fn line(&self, number: u32) -> &'t str {
        self.lines.get((number as usize).wrapping_sub(1)).copied().unwrap_or_default()
    }

    fn find(&self, wanted: char) -> Option<Mark> {
        self.lines.iter().enumerate().find_map(|(index, line)| {
            let at = line.chars().position(|character| character == wanted)?;
            Some(Mark { line: count(index + 1), column: count(at + 1) })
        })
    }

    /// The parser's complaint; tabs get a word of their own, since they cannot be seen.
    fn explained(&self, error: &ScanError) -> Unreadable {
        let at = mark(*error.marker());
        for number in [at.line, at.line.saturating_sub(1)] {
            let line = self.line(number);
            let indent = &line[..line.len() - line.trim_start().len()];
            if let Some(column) = indent.find('\t') {
                let mark = Mark { line: number, column: count(column + 1) };
                return unreadable(mark, "a tab: YAML is indented with spaces only");
            }
        }
        // The parser has a bound of its own, which it may come to first.
        match error.info() {
            "recursion limit exceeded" => too_deep(at),
            complaint => unreadable(at, &format!("not YAML: {complaint}")),
        }
    }

    /// Whether a template stands here that YAML took for a mapping, for want of quotes.
    pub(super) fn is_bare_template(&self, mark: Mark) -> bool {
        let line = self.line(mark.line);
        let mut rest = line.chars().skip(mark.column as usize - 1);
        line.len() <= WALKED_MAX_BYTES && rest.next() == Some('{') && rest.next() == Some('{')
    }
}

const START: Mark = Mark { line: 1, column: 1 };

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Rc<Tree>>,
    root: Option<Rc<Tree>>,
    documents: usize,
    twice: Vec<Unreadable>,
}

/// A list or mapping whose end has not come yet.
struct Open {
    mark: Mark,
    anchor: usize,
    items: Items,
    values: usize,
    depth: usize,
}

enum Items {
    List(Vec<Rc<Tree>>),
    Map { entries: Vec<(Key, Rc<Tree>)>, names: HashSet<String>, key: Option<Key> },
}

impl Builder {
    fn take(
        &mut self,
        event: Event<'_>,
        mark: Mark,
        source: &Source<'_>,
    ) -> Result<(), Unreadable> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(unreadable(mark, "a second document: a file holds one workflow"));
                }
                Ok(())
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(tree) => self.add(tree, mark, source),
                None => Err(unreadable(mark, "an alias inside of what it stands for")),
            },
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = is_text(tag.as_deref(), mark)?;
                let is_plain = style == ScalarStyle::Plain && !is_text;
                let content = Content::Scalar { text: text.into_owned(), is_plain };
                self.close(Tree { mark, content, values: 1, depth: 1 }, anchor, source)
            }
            Event::SequenceStart(anchor, tag) => {
                is_text(tag.as_deref(), mark)?;
                self.open(mark, anchor, Items::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                is_text(tag.as_deref(), mark)?;
                let (entries, names) = (Vec::new(), HashSet::new());
                self.open(mark, anchor, Items::Map { entries, names, key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(source),
        }
    }

    fn open(&mut self, mark: Mark, anchor: usize, items: Items) -> Result<(), Unreadable> {
        if self.open.len() >= DEPTH_MAX {
            return Err(too_deep(mark));
        }
        self.open.push(Open { mark, anchor, items, values: 1, depth: 1 });
        Ok(())
    }

    fn end(&mut self, source: &Source<'_>) -> Result<(), Unreadable> {
        let Some(Open { mark, anchor, items, values, depth }) = self.open.pop() else {
            return Ok(());
        };
        let content = match items {
            Items::List(list) => Content::List(list),
            Items::Map { entries, .. } => Content::Map(entries),
        };
        self.close(Tree { mark, content, values, depth }, anchor, source)
    }

    fn close(&mut self, tree: Tree, anchor: usize, source: &Source<'_>) -> Result<(), Unreadable> {
        let (mark, tree) = (tree.mark, Rc::new(tree));
        if anchor > 0 {
            self.anchors.insert(anchor, Rc::clone(&tree));
        }
        self.add(tree, mark, source)
    }

    /// Puts a finished value where it belongs. `mark` is where it is used, which for an alias is
    /// not where it is written.
    fn add(&mut self, tree: Rc<Tree>, mark: Mark, source: &Source<'_>) -> Result<(), Unreadable> {
        if self.open.len() + tree.depth > DEPTH_MAX {
            return Err(too_deep(mark));
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(tree);
            return Ok(());
        };
        open.values = open.values.saturating_add(tree.values);
        open.depth = open.depth.max(tree.depth + 1);
        if open.values > VALUES_MAX {
            return Err(unreadable(mark, "too many values; an alias counts for all it stands for"));
        }
        match &mut open.items {
            Items::List(list) => list.push(tree),
            Items::Map { entries, names, key } => match key.take() {
                Some(key) if names.insert(key.name.clone()) => entries.push((key, tree)),
                Some(Key { name, mark }) => {
                    let message = format!("{} comes twice", super::read::shown(&name));
                    self.twice.push(Unreadable { mark, message });
                }
                None => *key = Some(Key { name: key_name(&tree, mark, source)?, mark }),
            },
        }
        Ok(())
    }
}

fn key_name(tree: &Tree, mark: Mark, source: &Source<'_>) -> Result<String, Unreadable> {
    match &tree.content {
        Content::Scalar { text, is_plain: true } if text == "<<" => {
            Err(unreadable(mark, "merge keys (<<) are not known here: write the keys out"))
        }
        Content::Scalar { text, .. } => Ok(text.clone()),
        Content::List(_) | Content::Map(_) => {
            let outer = Mark { column: mark.column.saturating_sub(1).max(1), ..mark };
            if source.is_bare_template(outer) {
                let message = "a value that begins with {{ must stand in quotes";
                return Err(unreadable(outer, message));
            }
            Err(unreadable(mark, "a key must be a word"))
        }
    }
}

/// Whether the tag says that a scalar is text; only YAML's own tags are known.
fn is_text(tag: Option<&Tag>, mark: Mark) -> Result<bool, Unreadable> {
    match tag {
        None => Ok(false),
        Some(tag) if tag.is_yaml_core_schema() => Ok(tag.suffix == "str"),
        Some(_) => Err(unreadable(mark, "tags of its own are not known in a workflow")),
    }
}

fn too_deep(mark: Mark) -> Unreadable {
    unreadable(mark, &format!("nested deeper than {DEPTH_MAX}"))
}

fn unreadable(mark: Mark, message: &str) -> Unreadable {
    Unreadable { mark, message: message.to_owned() }
}

fn mark(marker: Marker) -> Mark {
    Mark { line: count(marker.line()).max(1), column: count(marker.col() + 1) }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
