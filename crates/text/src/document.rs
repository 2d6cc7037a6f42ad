//! Text as a tree of values with positions, and the types that keys take. The config, workflows and
//! plugin manifests are read through it; it does not know any of their keys.

use std::fmt;

mod node;
mod shortlist;
mod tree;
pub mod yaml;

pub use node::{Member, Mismatch, Node, Syntax};
pub use shortlist::Shortlist;
pub use tree::{Content, MemberKey, Scalar, ScalarKind, Tree};

/// Longer text is truncated in messages and paths.
const SHOWN_CHARS_MAX: usize = 80;

/// A line and column of a text, in characters from 1. Line 0 is not in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    pub line: u32,
    pub column: u32,
}

/// A mark and the path of the value there, such as `mcpServers.github.args[1]`; the path of the
/// text as a whole is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    pub path: String,
    pub mark: Mark,
}

impl Mark {
    pub const START: Mark = Mark { line: 1, column: 1 };

    /// Creates a mark from numbers that count from 1.
    pub fn new(line: usize, column: usize) -> Mark {
        let bounded = |count| u32::try_from(count).unwrap_or(u32::MAX);
        Mark { line: bounded(line), column: bounded(column) }
    }
}

impl Location {
    /// Returns the location of the text as a whole, with a mark in it.
    pub fn root(mark: Mark) -> Location {
        Location { path: String::new(), mark }
    }
}

/// Formats the location as a message prefix: `line 3, column 7: states.s: `.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Location { path, mark: Mark { line, column } } = self;
        if *line > 0 {
            write!(f, "line {line}, column {column}: ")?;
        }
        if path.is_empty() { Ok(()) } else { write!(f, "{path}: ") }
    }
}

/// Formats document text for a message: quoted, escaped and truncated.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{:?}", format!("{}…", &text[..end])),
        None => format!("{text:?}"),
    }
}
