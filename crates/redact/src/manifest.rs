//! The values of Secrets of Kubernetes, in YAML and JSON: their keys are anything, and so are their
//! values.

use std::ops::Range;

use super::shapes::floor;
use super::{REDACTED, Span, marker};

/// The kind of such a manifest.
pub(super) const KIND: &str = "Secret";

/// The member that names the kind.
pub(super) const CLUE: &str = "kind";

/// The members that hold the values.
pub(super) const SECTIONS: &[&str] = &["data", "stringData"];

/// The first member of every manifest.
const FIRST: &str = "apiVersion";

/// The distance from the kind within which values are searched for.
const BESIDE_BYTES: usize = 16 * 1024;

/// Returns where the kind that begins at a clue ends, if it is that of a Secret. Quotes may be
/// escaped any number of times.
pub(super) fn kind(text: &str, clue: Range<usize>) -> Option<Range<usize>> {
    let quotes = ['"', '\'', '\\', ' ', '\t'];
    let rest = text[clue.end..].trim_start_matches(quotes).strip_prefix(':')?;
    let rest = rest.trim_start_matches(quotes).strip_prefix(KIND)?;
    let is_whole = !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
    is_whole.then(|| clue.start..text.len() - rest.len())
}

/// Finds the values of the Secrets whose kinds are at these places.
pub(super) fn values(text: &str, kinds: &[Range<usize>], spans: &mut Vec<Span>) {
    let mut searched = 0;
    for kind in kinds {
        if kind.start < searched {
            continue;
        }
        let from = floor(text, kind.start.saturating_sub(BESIDE_BYTES)).max(searched);
        let until = floor(text, (kind.end + BESIDE_BYTES).min(text.len()));
        let from = text[from..kind.start].rfind(FIRST).map_or(from, |found| from + found);
        let until = text[kind.end..until].find(FIRST).map_or(until, |found| kind.end + found);
        for section in SECTIONS {
            let mut read = from;
            for (at, _) in text[from..until].match_indices(section) {
                let name = from + at..from + at + section.len();
                // What is a value is no section, and is read once.
                if name.start >= read {
                    read = section_values(text, name, until, spans);
                }
            }
        }
        searched = until;
    }
}

/// Finds the values of the section with this name, if it is one; returns where it ends.
fn section_values(text: &str, name: Range<usize>, until: usize, spans: &mut Vec<Span>) -> usize {
    let before = text[..name.start].chars().next_back();
    let joins = before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    // A line feed that is written as `\n` also ends in a letter.
    if joins && !text[..name.start].ends_with("\\n") {
        return name.end;
    }
    let rest = &text[name.end..until];
    let quote = rest.trim_start_matches('\\');
    let rest = if quote.starts_with(['"', '\'']) { &quote[1..] } else { rest };
    let Some(rest) = rest.trim_start_matches([' ', '\t']).strip_prefix(':') else {
        return name.end;
    };
    let open = until - rest.trim_start_matches([' ', '\t']).len();
    if text[open..until].starts_with('{') {
        members(text, open + 1, until, spans)
    } else {
        lines(text, name.start, open, until, spans)
    }
}

/// Finds the values in `{"name": "value", …}`; quotes may be escaped.
fn members(text: &str, from: usize, until: usize, spans: &mut Vec<Span>) -> usize {
    let mut at = from;
    let mut is_value = false;
    while let Some(byte) = text.as_bytes()[..until].get(at) {
        match byte {
            b'}' => return at,
            b':' => is_value = true,
            b',' => is_value = false,
            b'"' | b'\'' => {
                let escapes = text[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
                let start = at + 1;
                let end = string_end(&text[..until], start, *byte, escapes);
                if is_value {
                    push(text, start..end, spans);
                }
                at = (end + escapes).min(until);
            }
            b' ' | b'\t' | b'\n' | b'\r' | b'\\' => {}
            _ => {
                // A value of YAML needs no quotes.
                let rest = &text[at..until];
                let end = at + rest.find([',', '}', '\n', ':']).unwrap_or(rest.len());
                if is_value {
                    push(text, at..end, spans);
                }
                at = end.max(at + 1) - 1;
            }
        }
        at += 1;
    }
    until
}

/// Returns the end of a string whose quotes have this number of backslashes before them.
fn string_end(text: &str, start: usize, quote: u8, escapes: usize) -> usize {
    let mut seen = 0;
    for (offset, byte) in text.as_bytes()[start..].iter().enumerate() {
        match byte {
            b'\\' => seen += 1,
            _ if *byte == quote && seen <= escapes => return start + offset - seen,
            _ => seen = 0,
        }
    }
    text.len()
}

/// Finds the values in the lines below a section of YAML that are indented further; a line feed may
/// be written as `\n`.
fn lines(text: &str, section: usize, from: usize, until: usize, spans: &mut Vec<Span>) -> usize {
    let indent = indent(text, section);
    let Some(mut at) = next_line(text, from, until).filter(|at| blank_until(text, from, *at))
    else {
        return from;
    };
    // The indentation of the line that began a text over several lines.
    let mut block: Option<usize> = None;
    loop {
        let next = next_line(text, at, until);
        let end = next.map_or(until, |next| line_end(text, at, next));
        let line = &text[at..end];
        let content = line.trim_start();
        let depth = line.len() - content.len();
        if !content.is_empty() {
            if depth <= indent {
                return at;
            }
            let start = at + depth;
            block = block.filter(|outer| depth > *outer);
            if block.is_some() {
                push(text, start..end, spans);
            } else if let Some((name, value)) = content.split_once(':') {
                let start = start + name.len() + 1 + (value.len() - value.trim_start().len());
                match value.trim() {
                    text if text.starts_with(['|', '>']) => block = Some(depth),
                    _ => push(text, start..end, spans),
                }
            }
        }
        match next {
            Some(next) => at = next,
            None => return until,
        }
    }
}

fn indent(text: &str, at: usize) -> usize {
    let before = &text[..at];
    let line = &before[before.rfind('\n').map_or(0, |feed| feed + 1)..];
    let line = &line[line.rfind("\\n").map_or(0, |feed| feed + 2)..];
    line.len() - line.trim_start().len()
}

fn next_line(text: &str, from: usize, until: usize) -> Option<usize> {
    let rest = &text[from..until];
    let feed = rest.find('\n').map(|feed| feed + 1);
    let line = &rest[..feed.unwrap_or(rest.len())];
    let next = line.find("\\n").map(|feed| feed + 2).or(feed);
    next.map(|next| from + next)
}

/// Returns the end of the line before the next one begins.
fn line_end(text: &str, at: usize, next: usize) -> usize {
    let line = &text[at..next];
    let line = line.strip_suffix("\\n").or(line.strip_suffix('\n')).unwrap_or(line);
    at + line.trim_end_matches(['\r', '\\']).len()
}

fn blank_until(text: &str, from: usize, next: usize) -> bool {
    text[from..line_end(text, from, next)].trim().is_empty()
}

fn push(text: &str, value: Range<usize>, spans: &mut Vec<Span>) {
    let written = text[value.clone()].trim_matches(['"', '\'', '\\', ' ', '\r', '\t']);
    let skipped = text[value.clone()].find(written).unwrap_or(0);
    let (start, end) = (value.start + skipped, value.start + skipped + written.len());
    if !written.is_empty() && !marker(written) {
        spans.push(Span { start, end, replacement: REDACTED });
    }
}
