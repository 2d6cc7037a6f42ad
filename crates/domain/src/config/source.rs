//! Parses the text of a config into a tree: JSON with comments and trailing commas, limited in
//! size.

use std::rc::Rc;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use text::document::{Content, Mark, MemberKey, Scalar, ScalarKind, Tree};

/// A config of a thousand servers takes well under 1 MiB; anything larger is another kind of file.
const SIZE_MAX_BYTES: usize = 4 * 1024 * 1024;

/// The parser and readers recurse. Our own keys nest to depth six; a plugin's `config` may nest
/// deeper.
const DEPTH_MAX: usize = 64;

/// Only comments and trailing commas are allowed beyond JSON; other deviations are likely mistakes.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The reason that text cannot be parsed, and its position.
#[derive(Debug, PartialEq)]
pub(super) struct Unreadable {
    pub(super) mark: Mark,
    pub(super) message: String,
}

/// Parses a text. A duplicate key appears twice in the tree.
pub(super) fn tree(text: &str) -> Result<Tree, Unreadable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = Lines::new(text);
    if text.len() > SIZE_MAX_BYTES {
        let message = "larger than 4 MiB, which is too large for a configuration".to_owned();
        return Err(Unreadable { mark: Mark::START, message });
    }
    if let Some(at) = too_deep(text.as_bytes()) {
        let message = format!("nested more than {DEPTH_MAX} levels deep");
        return Err(Unreadable { mark: lines.mark(at), message });
    }
    match parse_to_ast(text, &CollectOptions::default(), &OPTIONS) {
        Ok(parsed) => match &parsed.value {
            Some(value) => Ok(located(value, &mut lines)),
            None => {
                let message = "the file is empty; write {} to use the defaults".to_owned();
                Err(Unreadable { mark: Mark::START, message })
            }
        },
        Err(error) => Err(Unreadable {
            mark: lines.mark(error.range().start()),
            message: lower_first(&error.kind().to_string()),
        }),
    }
}

/// Adds positions to values in text order, so that the lines are scanned once.
fn located(value: &Value<'_>, lines: &mut Lines<'_>) -> Tree {
    let start = lines.mark(value.start());
    let scalar = |text: &str, kind| Content::Scalar(Scalar { text: text.to_owned(), kind });
    let content = match value {
        Value::StringLit(text) => scalar(&text.value, ScalarKind::Text),
        Value::NumberLit(number) => {
            scalar(number.value, ScalarKind::Number(number.value.parse().ok()))
        }
        Value::BooleanLit(flag) => scalar(&flag.value.to_string(), ScalarKind::Flag(flag.value)),
        Value::NullKeyword(_) => scalar("null", ScalarKind::Null),
        Value::Array(array) => {
            let elements = array.elements.iter().map(|value| Rc::new(located(value, lines)));
            Content::List(elements.collect())
        }
        Value::Object(object) => {
            let members = object.properties.iter().map(|property| {
                let name = property.name.as_str().to_owned();
                let key = MemberKey { name, mark: lines.mark(property.name.start()) };
                (key, Rc::new(located(&property.value, lines)))
            });
            Content::Map(members.collect())
        }
    };
    Tree { start, end: lines.mark(value.end()), content }
}

/// The lines of a text, to convert byte offsets to line and column.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
    /// A byte whose column is known. The next one is usually shortly after it, and a line may be as
    /// long as the text.
    known_at: usize,
    known_column: usize,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        Self { text, starts, known_at: 0, known_column: 1 }
    }

    fn mark(&mut self, at: usize) -> Mark {
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts[line - 1];
        if !(start..=at).contains(&self.known_at) {
            (self.known_at, self.known_column) = (start, 1);
        }
        let Some(between) = self.text.get(self.known_at..at) else { return Mark::new(line, 1) };
        self.known_column += between.chars().count();
        self.known_at = at;
        Mark::new(line, self.known_column)
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(chars).collect()
}

/// Finds the first bracket beyond the depth limit, without recursion.
fn too_deep(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'/' => at = comment_end(bytes, at),
            b'{' | b'[' if depth == DEPTH_MAX => return Some(at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the closing quote of the string that opens at `open`, or the end of the text.
fn string_end(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the last byte of the comment that opens at `open`, or `open` itself if there is none.
fn comment_end(bytes: &[u8], open: usize) -> usize {
    let rest = &bytes[open..];
    let length = match rest.get(1) {
        Some(b'/') => rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')),
        Some(b'*') => rest[2..].windows(2).position(|pair| pair == b"*/").map(|at| at + 3),
        _ => Some(0),
    };
    open + length.unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the column, from 0, at which a one-line text cannot be parsed, and the reason.
    fn unreadable(text: &str) -> Option<(usize, String)> {
        let error = tree(text).err()?;
        Some((error.mark.column as usize - 1, error.message))
    }

    #[test]
    fn depth_is_bounded_before_parsing() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(unreadable(&nested(DEPTH_MAX)), None);
        let fault = Some((DEPTH_MAX, "nested more than 64 levels deep".to_owned()));
        assert_eq!(unreadable(&nested(DEPTH_MAX + 1)), fault);
        assert_eq!(unreadable(&"[".repeat(1_000_000)), fault);
        assert_eq!(unreadable(&"{\"a\":".repeat(500_000)).map(|(at, _)| at), Some(5 * DEPTH_MAX));
    }

    #[test]
    fn brackets_in_strings_and_comments_are_not_depth() {
        let brackets = "[".repeat(100);
        for text in [
            format!("\"{brackets}\""),
            format!("\"\\\"{brackets}\""),
            format!("// {brackets}\n1"),
            format!("/* {brackets} */ 1"),
        ] {
            assert_eq!(unreadable(&text), None, "{text}");
        }
    }

    #[test]
    fn size_is_bounded() {
        let text = format!("{{}}{}", " ".repeat(SIZE_MAX_BYTES));
        assert_eq!(unreadable(&text).map(|(at, _)| at), Some(0));
    }

    #[test]
    fn positions_count_characters() {
        let mut lines = Lines::new("{\r\n \"größe\": 1 }");
        assert_eq!(lines.mark(0), Mark::new(1, 1));
        assert_eq!(lines.mark(4), Mark::new(2, 2));
        assert_eq!(lines.mark("{\r\n \"größe\": ".len()), Mark::new(2, 11));
        assert_eq!(lines.mark(4), Mark::new(2, 2));
        assert_eq!(lines.mark(1_000), Mark::new(2, 1));
        let tree = tree("\u{feff}{\r\n \"größe\": 1 }").expect("a tree");
        assert_eq!((tree.start, tree.end), (Mark::new(1, 1), Mark::new(2, 14)));
    }
}
