//! Keys and their values inside text: `password=…`, `"password": "…"` (also escaped once or more,
//! as in JSON within JSON), `--token …`, `<password>…</password>`, header lines.

use std::ops::Range;
use std::sync::LazyLock;

use super::keys::{self, KeyKind, Keys};
use super::list::{Words, rows};
use super::ordinary;
use super::shapes::floor;
use super::{REDACTED, Span, marker, marker_length};

/// The longest part of a key on either side of its clue.
const KEY_BYTES_MAX: usize = 64;

/// Spaces around the sign between key and value.
const BLANKS_MAX: usize = 4;

/// The distance from `machine` to `password` in a `.netrc`.
const NETRC_BYTES_MAX: usize = 300;

static TYPES: Words = LazyLock::new(|| rows(include_str!("pairs/types.txt")).collect());

/// An unquoted value that is shorter than this and has no digit may be prose or code.
const PLAIN_BYTES_MIN: usize = 16;

/// Returns the name of a flag that takes the next argument as its value.
pub(super) fn flag(argument: &str) -> Option<&str> {
    let name = argument.strip_prefix('-')?;
    let name = name.strip_prefix('-').unwrap_or(name);
    (!name.is_empty() && name.bytes().all(|byte| in_key(&byte))).then_some(name)
}

/// Reports whether a clue of another kind may be part of a key that names a secret.
pub(super) fn within_key(clue: &str) -> bool {
    let names = ["key", "secret", "KEY", "SECRET"].iter().any(|part| clue.contains(part));
    names && clue.bytes().all(|byte| in_key(&byte))
}

fn in_key(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

pub(super) fn find(text: &str, clue: Range<usize>, keys: &Keys) -> Option<Span> {
    let name = name(text, clue);
    let key = text[name.clone()].trim_start_matches('-');
    // Most words of prose have no value after them, which is the cheaper check.
    let place = place(text, &name)?;
    let kind = keys.kind_of_hint(key)?;
    let span = match place.kind {
        ValueForm::Quoted => quoted(text, &place),
        ValueForm::Element => until(text, place.start, |c| c == '<' || c == '\n'),
        ValueForm::Line => until(text, place.start, |c| matches!(c, '\n' | '\r' | '"' | '\'')),
        ValueForm::Tight | ValueForm::Loose => plain(text, place.start),
    };
    let span = match place.kind {
        ValueForm::Tight | ValueForm::Loose if !kind.hides(&text[span.clone()]) => {
            let token = token(&text[span.clone()]);
            if kind.hides(token) { span.start..span.start + token.len() } else { span }
        }
        _ => span,
    };
    let value = &text[span.clone()];
    let is_secret = match (kind, place.kind) {
        (KeyKind::Secret, ValueForm::Tight) => !ordinary::is_literal(value),
        _ => kind.hides(value),
    };
    let kept = value.is_empty()
        || marker(value)
        || keys::spared(key, value)
        || !is_secret
        || harmless(value, place.kind, word_of_prose(key))
        || place.kind == ValueForm::Element && !text[span.end..].starts_with("</")
        || refers(value, place.kind, keys)
        || matches!(place.kind, ValueForm::Loose | ValueForm::Line) && is_type(&text[span.start..]);
    let replacement = if place.bare_in_json { "\"[redacted]\"" } else { REDACTED };
    (!kept).then_some(Span { start: span.start, end: span.end, replacement })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueForm {
    Quoted,
    /// `key=value`, `--key value`: not found in prose.
    Tight,
    /// `key: value`, `key = value`.
    Loose,
    /// A header, whose value extends to the end of the line.
    Line,
    /// `<key>value</key>`
    Element,
}

struct ValueStart {
    kind: ValueForm,
    start: usize,
    /// The number of backslashes that escape the quote.
    escapes: usize,
    quote: u8,
    /// True for a number under a quoted key: a marker there needs quotes to keep the JSON valid.
    bare_in_json: bool,
}

fn name(text: &str, clue: Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let before = bytes[..clue.start].iter().rev().take(KEY_BYTES_MAX).take_while(|b| in_key(b));
    let after = bytes[clue.end..].iter().take(KEY_BYTES_MAX).take_while(|b| in_key(b));
    clue.start - before.count()..clue.end + after.count()
}

/// Finds the start of the key's value and how it is written.
fn place(text: &str, name: &Range<usize>) -> Option<ValueStart> {
    let bytes = text.as_bytes();
    let byte = |at: usize| bytes.get(at).copied();
    let key_quote = quote(bytes, name.end);
    let bare_in_json = key_quote.as_ref().is_some_and(|it| it.escapes == 0 && it.quote == b'"');
    let place = |kind, start| Some(ValueStart { kind, start, escapes: 0, quote: 0, bare_in_json });
    let element = name.start > 0 && bytes[name.start - 1] == b'<';
    if element && byte(name.end) == Some(b'>') {
        return place(ValueForm::Element, name.end + 1);
    }
    let flag = is_flag(text, name);
    let after_key = key_quote.map_or(name.end, |quote| quote.end);
    let sign = blanks(bytes, after_key);
    let (sign_end, tight) = match (byte(sign), byte(sign + 1)) {
        (Some(b'='), Some(b'=' | b'~')) | (Some(b':'), Some(b':')) => return None,
        // The name of a secret, without a value.
        (Some(b':'), _) if is_reference(&text[..name.start], &text[name.start..]) => return None,
        // An identifier of a public key: `did:key:…`.
        (Some(b':'), _) if text[..name.start].ends_with("did:") => return None,
        (Some(b'='), Some(b'>')) | (Some(b':'), Some(b'=')) => (sign + 2, false),
        (Some(b'='), _) => (sign + 1, sign == after_key),
        (Some(b':'), _) => (sign + 1, false),
        // `"--password", "x"`: a list of arguments.
        (Some(b','), _) if flag && after_key > name.end => {
            let next = after_blanks(bytes, sign + 1);
            quote(bytes, next)?;
            (next, true)
        }
        // `key="Password" value="x"`: an element of XML.
        (Some(b'v'), _) if after_key > name.end && text[sign..].starts_with("value=\"") => {
            (sign + "value=".len(), true)
        }
        _ if flag && sign > after_key && byte(sign) != Some(b'-') => (sign, true),
        _ if sign > after_key && in_netrc(text, name) => (sign, true),
        _ => return None,
    };
    let start = blanks(bytes, sign_end);
    let start = start + literal_prefix(&bytes[start.min(bytes.len())..]);
    if let Some(open) = quote(bytes, start) {
        let Quote { end, escapes, quote } = open;
        let kind = ValueForm::Quoted;
        return Some(ValueStart { kind, start: end, escapes, quote, bare_in_json: false });
    }
    match (
        header(&text[name.clone()]) && byte(sign) == Some(b':'),
        tight && (flag || start == sign_end),
    ) {
        (true, _) => place(ValueForm::Line, start),
        (false, true) => place(ValueForm::Tight, start),
        (false, false) => place(ValueForm::Loose, start),
    }
}

/// Returns the length of the letters that mark a text as a kind of literal: `N'…'` in SQL, `b"…"` in
/// Python.
fn literal_prefix(bytes: &[u8]) -> usize {
    let letters = bytes.iter().take_while(|byte| b"bBrRuUfFnNeE".contains(byte)).count();
    let is_prefix = letters <= 2 && matches!(bytes.get(letters), Some(b'"' | b'\''));
    if is_prefix { letters } else { 0 }
}

/// Reports whether the name stands where a command line has a flag.
fn is_flag(text: &str, name: &Range<usize>) -> bool {
    let before = name.start.checked_sub(1).and_then(|at| text.as_bytes().get(at));
    let begins = before.is_none_or(|byte| byte.is_ascii_whitespace() || b"\"'`=".contains(byte));
    let name = &text[name.clone()];
    name.starts_with("--") || (begins && name.starts_with('-') && name.len() > 4)
}

/// Reports whether the name follows `machine HOST login USER`, as in `.netrc`.
fn in_netrc(text: &str, name: &Range<usize>) -> bool {
    let escaped = text[..name.start].ends_with('\\');
    let name_bytes = text[name.clone()].as_bytes();
    // After `\n` within a string the name has one letter more.
    let word = name_bytes.get(usize::from(escaped)..).unwrap_or_default();
    if !word.eq_ignore_ascii_case(b"password") {
        return false;
    }
    let before = &text[floor(text, name.start.saturating_sub(NETRC_BYTES_MAX))..name.start];
    let mut words = before.split_whitespace().rev();
    let mut pairs = 0;
    while let Some(value) = words.next() {
        let key = words.next().unwrap_or_default();
        // The text may be quoted, or follow the name of its file, or `\n` within a string.
        match key {
            _ if key.ends_with("login") || key.ends_with("account") => pairs += 1,
            _ if key.ends_with("machine") => return pairs > 0,
            _ => return pairs > 0 && value.ends_with("default"),
        }
    }
    false
}

fn header(key: &str) -> bool {
    ["authorization", "cookie"].iter().any(|name| {
        let start = key.len().checked_sub(name.len());
        start.is_some_and(|at| key.as_bytes()[at..].eq_ignore_ascii_case(name.as_bytes()))
    })
}

fn blanks(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take(BLANKS_MAX).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Skips any white space, for lists that are laid out over lines.
fn after_blanks(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take(KEY_BYTES_MAX).take_while(|byte| byte.is_ascii_whitespace()).count()
}

struct Quote {
    end: usize,
    escapes: usize,
    quote: u8,
}

/// Reads a quotation mark and the backslashes before it.
fn quote(bytes: &[u8], at: usize) -> Option<Quote> {
    let rest = bytes.get(at..).unwrap_or_default();
    let escapes = rest.iter().take(8).take_while(|byte| **byte == b'\\').count();
    let quote = *rest.get(escapes).filter(|byte| matches!(byte, b'"' | b'\''))?;
    Some(Quote { end: at + escapes + 1, escapes, quote })
}

/// Returns the range up to a quotation mark that is escaped no more than the opening one, or to the
/// end if cut off.
fn quoted(text: &str, place: &ValueStart) -> Range<usize> {
    let mut escapes = 0;
    for (offset, byte) in text.as_bytes()[place.start..].iter().enumerate() {
        if *byte == b'\\' {
            escapes += 1;
            continue;
        }
        if *byte == place.quote && escapes <= place.escapes {
            return place.start..place.start + offset - escapes;
        }
        escapes = 0;
    }
    place.start..text.len()
}

fn until(text: &str, start: usize, ends: impl Fn(char) -> bool) -> Range<usize> {
    let rest = &text[start..];
    start..start + rest.find(ends).unwrap_or(rest.len()).min(rest.trim_end().len())
}

/// Returns the range of an unquoted value. It includes a marker: `[redacted]more` is not a marker.
fn plain(text: &str, start: usize) -> Range<usize> {
    let ends = |c: char| c.is_whitespace() || ",;&\"'`<>)}]\\".contains(c);
    let skip = marker_length(&text[start..]).unwrap_or(0);
    start..until(text, start + skip, ends).end.max(start + skip)
}

/// Returns the token at the start of a value, to which something else may be joined: `<token>#2`.
fn token(value: &str) -> &str {
    let joins = |c: char| !(c.is_ascii_alphanumeric() || "+/_-.~%=".contains(c));
    &value[..value.find(joins).unwrap_or(value.len())]
}

/// Reports whether an unquoted value is code: a type, or a name that itself names a secret, as in
/// `password=args.password`.
fn refers(value: &str, kind: ValueForm, keys: &Keys) -> bool {
    if !matches!(kind, ValueForm::Tight | ValueForm::Loose) {
        return false;
    }
    let identifier = |byte: u8| byte.is_ascii_alphabetic() || b"_.:&$?!".contains(&byte);
    value.bytes().all(identifier) && keys.kind(value).is_some()
}

/// Reports whether the text begins with a type or a closure: `&str`, `Option<&str>`, `|c| …`.
fn is_type(text: &str) -> bool {
    let text = text.strip_prefix('&').unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    let is_known = TYPES.contains(&word) && !after.starts_with(['-', '_', '=', '.', '@']);
    let is_named = word.starts_with(|c: char| c.is_ascii_uppercase()) && after.starts_with('<');
    is_known || is_named || text.starts_with(['|', '\''])
}

/// Reports whether the value is a variable of a shell (`$NAME`) or a place in a query (`?1`, `$1`).
fn variable(value: &str) -> bool {
    let name = value.strip_prefix(['$', '?']);
    let part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = |name: &str| name.bytes().all(|byte| part(byte) && !byte.is_ascii_lowercase());
    name.is_some_and(|name| name.len() < PLAIN_BYTES_MIN * 2 && is_name(name))
}

/// Reports whether the key on its own is a common word in prose and code; `password` is not.
fn word_of_prose(key: &str) -> bool {
    ["token", "secret", "secrets", "credential", "credentials"]
        .iter()
        .any(|word| key.eq_ignore_ascii_case(word))
}

/// Reports whether the value is a reference with a default value: `${NAME:-secret}`. An unquoted
/// value ends before the brace.
fn has_default(value: &str) -> bool {
    let Some(rest) = value.strip_prefix("${") else { return false };
    let inner = rest.split_once('}').map_or(rest, |(inner, _)| inner);
    let default = [":-", ":=", ":+"].iter().find_map(|sign| inner.split_once(sign));
    default.is_some_and(|(_, default)| default.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Reports whether the text continues as the reference `${secret:NAME}`.
fn is_reference(before: &str, text: &str) -> bool {
    let name = before.ends_with("${").then(|| text.strip_prefix("secret:")).flatten();
    let name = name.and_then(|rest| rest.split_once('}')).map_or("", |(name, _)| name);
    !name.is_empty() && name.bytes().all(|byte| in_key(&byte)) && !name.starts_with('-')
}

fn harmless(value: &str, kind: ValueForm, prose: bool) -> bool {
    if has_default(value) {
        return false;
    }
    if kind == ValueForm::Quoted {
        let within = |open, close| value.starts_with(open) && value.ends_with(close);
        return within("${", "}") || within("{{", "}}") || within("$(", ")") || variable(value);
    }
    let reference = ["${", "$(", "{{", "<", "…", "process.env", "os.environ"];
    if kind == ValueForm::Line {
        let credential = value.split_once(' ').map_or(value, |(_, credential)| credential);
        return ordinary::is_sentence(value)
            || credential.starts_with(['<', '$', '{', '…']) && !credential.contains("[redacted");
    }
    let nested = value.starts_with(['{', '[']) && marker_length(value).is_none();
    if reference.iter().any(|start| value.starts_with(start)) || nested && kind != ValueForm::Tight
    {
        return true;
    }
    if variable(value) || value.bytes().all(|byte| byte == b'*') {
        return true;
    }
    let wordy = value.len() < PLAIN_BYTES_MIN && !value.bytes().any(|byte| byte.is_ascii_digit());
    kind == ValueForm::Loose && (value.contains('(') || prose && wordy)
}
