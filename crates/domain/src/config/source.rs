//! The text of a config: bounded, parsed to a tree with places, and places told as line and
//! column. It knows JSON, not the configuration.

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// A config of a thousand servers takes well under one; more is some other file.
const SIZE_MAX_BYTES: usize = 4 * 1024 * 1024;

/// The parser and the readers recurse; our own keys nest to six, a plugin's `config` may go on.
const DEPTH_MAX: usize = 64;

/// Only comments and trailing commas are added to JSON; what looks like a slip is one.
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

pub(super) struct Source<'t> {
    text: &'t str,
    line_starts: Vec<usize>,
}

/// Why a text is no tree, and the byte where that shows.
#[derive(Debug, PartialEq)]
pub(super) struct Unreadable {
    pub(super) at: usize,
    pub(super) message: String,
}

impl<'t> Source<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        Self { text, line_starts }
    }

    /// Line and column of a byte, in characters from 1.
    pub(super) fn position(&self, at: usize) -> (u32, u32) {
        let line = self.line_starts.partition_point(|start| *start <= at);
        let start = self.line_starts[line - 1];
        let before = self.text.get(start..at).map_or(0, |text| text.chars().count());
        (bounded(line), bounded(before + 1))
    }

    pub(super) fn tree(&self) -> Result<Value<'t>, Unreadable> {
        if self.text.len() > SIZE_MAX_BYTES {
            let message = "larger than 4 MiB: this is not a configuration".to_owned();
            return Err(Unreadable { at: 0, message });
        }
        if let Some(at) = too_deep(self.text.as_bytes()) {
            return Err(Unreadable { at, message: format!("nested deeper than {DEPTH_MAX}") });
        }
        let parsed = parse_to_ast(self.text, &CollectOptions::default(), &OPTIONS);
        match parsed {
            Ok(tree) => tree.value.ok_or_else(|| Unreadable {
                at: 0,
                message: "empty: write {} for the defaults".to_owned(),
            }),
            Err(error) => Err(Unreadable {
                at: error.range().start(),
                message: lower_first(&error.kind().to_string()),
            }),
        }
    }
}

fn bounded(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(chars).collect()
}

/// The first bracket beyond the bound, found without recursion.
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

/// The closing quote of the string that opens at `open`, or the end of the text.
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

/// The last byte of the comment that opens at `open`; `open` itself when none does.
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

    fn unreadable(text: &str) -> Option<(usize, String)> {
        Source::new(text).tree().err().map(|error| (error.at, error.message))
    }

    #[test]
    fn depth_is_bounded_before_parsing() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(unreadable(&nested(DEPTH_MAX)), None);
        let fault = Some((DEPTH_MAX, "nested deeper than 64".to_owned()));
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
        let source = Source::new("\u{feff}{\r\n \"größe\": 1 }");
        assert_eq!(source.position(0), (1, 1));
        assert_eq!(source.position(4), (2, 2));
        assert_eq!(source.position("{\r\n \"größe\": ".len()), (2, 11));
        assert_eq!(source.position(1_000), (2, 1));
    }
}
