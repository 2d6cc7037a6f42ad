//! The text of a workflow: its parsing into a tree, its syntax errors, and positions inside its
//! scalars.

use std::rc::Rc;

use text::document::yaml::{self, Features, Flaw, FlawKind, Rules};
use text::document::{Mark, Tree, shown};

/// A workflow of a thousand states is smaller; anything larger is another kind of file.
const SIZE_MAX_BYTES: usize = 1024 * 1024;

/// Our own keys nest to depth six; an agent's `config` may nest deeper.
const DEPTH_MAX: usize = 64;

/// A thousand states with twenty keys each take half of this.
const VALUES_MAX: usize = 50_000;

/// Texts and lines up to this length are scanned to find a position. Columns beyond it are of no
/// use, and a thousand faults would each scan a megabyte.
const WALKED_MAX_BYTES: usize = 16 * 1024;

pub(super) const BARE_TEMPLATE: &str = "a value that begins with {{ must be in quotes";

pub(super) struct Source<'t> {
    text: &'t str,
    lines: Vec<&'t str>,
}

/// A reason that text cannot be parsed, or a fault in text that can.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxFault {
    pub(super) mark: Mark,
    pub(super) message: String,
}

impl<'t> Source<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
        Self { text, lines }
    }

    /// Parses the tree and lists its duplicate keys, of which the first counts.
    pub(super) fn tree(&self) -> Result<(Rc<Tree>, Vec<SyntaxFault>), SyntaxFault> {
        if self.text.len() > SIZE_MAX_BYTES {
            return Err(fault(Mark::START, "the file is larger than 1 MiB"));
        }
        if let Some(mark) = self.find('\0') {
            return Err(fault(mark, "the file contains a NUL character and is not text"));
        }
        let rules = Rules { features: Features::All, depth_max: DEPTH_MAX, values_max: VALUES_MAX };
        let yaml = yaml::parse(self.text, rules).map_err(|flaw| self.explained(flaw))?;
        let repeated = yaml.repeated.iter().map(|key| fault(key.mark, repeated(&key.name)));
        Ok((yaml.root, repeated.collect()))
    }

    /// Returns the position of a byte of a scalar's text, as exactly as the scalar's style allows.
    pub(super) fn inside(&self, start: Mark, text: &str, at: usize) -> Mark {
        let before = &text[..at];
        let line = self.line(start.line);
        if text.len().max(line.len()) > WALKED_MAX_BYTES {
            return start;
        }
        let (start_line, start_column) = (start.line as usize, start.column as usize);
        let opening: String = line.chars().skip(start_column - 1).collect();
        for quote in ["", "\"", "'"] {
            let body = opening.strip_prefix(quote).unwrap_or_default();
            if body.starts_with(text.lines().next().unwrap_or_default()) && !before.contains('\n') {
                let shift = quote.len() + before.chars().count();
                return Mark::new(start_line, start_column + shift);
            }
        }
        // Each line of a literal block is a line of the text after the block's indentation.
        let index = before.matches('\n').count();
        let mark = Mark::new(start_line + index, 1);
        let content = text.split('\n').nth(index).unwrap_or_default();
        match self.line(mark.line).strip_suffix(content) {
            Some(indent) if index > 0 => {
                let in_line = before.rsplit('\n').next().unwrap_or_default();
                let column = indent.chars().count() + in_line.chars().count() + 1;
                Mark::new(start_line + index, column)
            }
            _ => start,
        }
    }

    /// Reports whether an unquoted template stands here that YAML parsed as a mapping.
    pub(super) fn is_bare_template(&self, mark: Mark) -> bool {
        let line = self.line(mark.line);
        let mut rest = line.chars().skip(mark.column as usize - 1);
        line.len() <= WALKED_MAX_BYTES && rest.next() == Some('{') && rest.next() == Some('{')
    }

    fn line(&self, number: u32) -> &'t str {
        self.lines.get((number as usize).wrapping_sub(1)).copied().unwrap_or_default()
    }

    fn find(&self, wanted: char) -> Option<Mark> {
        self.lines.iter().enumerate().find_map(|(index, line)| {
            let at = line.chars().position(|character| character == wanted)?;
            Some(Mark::new(index + 1, at + 1))
        })
    }

    fn explained(&self, Flaw { mark, kind }: Flaw) -> SyntaxFault {
        match kind {
            FlawKind::NotYaml(error) => self.not_yaml(mark, error.info()),
            FlawKind::Empty => fault(mark, "the file is empty: a workflow needs a name and states"),
            FlawKind::SecondDocument => fault(
                mark,
                "the file has a second YAML document: put each workflow in its own file",
            ),
            FlawKind::Alias | FlawKind::AliasInItself => {
                fault(mark, "an alias refers to a value that contains it")
            }
            FlawKind::ForeignTag => fault(mark, "custom YAML tags are not supported"),
            FlawKind::MergeKey => {
                fault(mark, "merge keys (<<) are not supported: write the keys out")
            }
            FlawKind::KeyIsNoScalar { .. } => {
                let outer = Mark { column: mark.column.saturating_sub(1).max(1), ..mark };
                if self.is_bare_template(outer) {
                    fault(outer, BARE_TEMPLATE)
                } else {
                    fault(mark, "a key must be a string")
                }
            }
            FlawKind::RepeatedKey(name) => fault(mark, repeated(&name)),
            FlawKind::TooDeep => too_deep(mark),
            FlawKind::TooManyValues => {
                fault(mark, "too many values; each alias counts as all the values it expands to")
            }
        }
    }

    /// Reports the parser's error; tabs get their own message, since they are invisible.
    fn not_yaml(&self, mark: Mark, complaint: &str) -> SyntaxFault {
        for number in [mark.line, mark.line.saturating_sub(1)] {
            let line = self.line(number);
            let indent = &line[..line.len() - line.trim_start().len()];
            if let Some(at) = indent.find('\t') {
                let mark = Mark::new(number as usize, at + 1);
                return fault(mark, "the line is indented with a tab: YAML requires spaces");
            }
        }
        // The parser may reach its own limit first.
        match complaint {
            "recursion limit exceeded" => too_deep(mark),
            complaint => fault(mark, format!("not valid YAML: {complaint}")),
        }
    }
}

fn repeated(name: &str) -> String {
    format!("duplicate key {}", shown(name))
}

fn too_deep(mark: Mark) -> SyntaxFault {
    fault(mark, format!("nested deeper than {DEPTH_MAX} levels"))
}

fn fault(mark: Mark, message: impl Into<String>) -> SyntaxFault {
    SyntaxFault { mark, message: message.into() }
}
