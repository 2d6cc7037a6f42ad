//! Redacts data that must not be stored: values under keys that name secrets, and text that looks
//! like a secret. Arguments, results and messages pass through here before they are written
//! anywhere.

mod clues;
mod commands;
mod keys;
mod known;
mod pairs;
mod randomness;
mod shapes;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use clues::{Clue, Clues};
use keys::{KeyKind, Keys};

pub use known::KnownSecrets;

/// Replaces a secret; shapes with a name are written as `[redacted:name]`.
pub const REDACTED: &str = "[redacted]";

/// Compiled size of one configured pattern. It is far above any sensible pattern's; patterns run
/// over everything that is stored.
const PATTERN_SIZE_MAX: usize = 1 << 20;

/// Configured patterns; each adds a pass over every text.
const PATTERNS_MAX: usize = 64;

/// Removing a secret can join the text around it, so text with secrets is scanned again until
/// nothing is found. One more pass is usual; the limit is for text crafted to need many.
const PASSES_MAX: usize = 8;

/// Built once per configuration and shared.
pub struct Redactor {
    keys: Keys,
    /// Finds every place where a shape or key may begin; most texts have none.
    clues: Clues,
    /// The shapes whose clue may also be part of a key.
    may_be_keys: Vec<bool>,
    patterns: Vec<Regex>,
    known: KnownSecrets,
}

/// A configured pattern that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    #[error("pattern '{pattern}' is not a valid regular expression: {message}")]
    Syntax { pattern: String, message: String },
    #[error("pattern '{0}' matches the empty string, so it would match everywhere")]
    Empty(String),
    #[error("{0} patterns exceed the limit of {PATTERNS_MAX}")]
    TooMany(usize),
}

impl Redactor {
    /// Combines the built-in keys and shapes with the configured ones; returns all faults at once.
    pub fn new(keys: &[String], patterns: &[String]) -> Result<Redactor, Vec<PatternFault>> {
        if patterns.len() > PATTERNS_MAX {
            return Err(vec![PatternFault::TooMany(patterns.len())]);
        }
        let mut compiled = Vec::new();
        let mut faults = Vec::new();
        for pattern in patterns {
            match compile(pattern) {
                Ok(regex) => compiled.push(regex),
                Err(fault) => faults.push(fault),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let keys = Keys::new(keys);
        let shapes = shapes::CLUES.iter().map(|(clue, _)| *clue);
        let programs = commands::PROGRAMS.iter().map(|program| program.name());
        let twilio = shapes::twilio_clues();
        let twilio = twilio.iter().map(String::as_str);
        let clues = Clues::new(shapes.chain(programs).chain(twilio).chain(keys.clues()));
        let may_be_keys = shapes::CLUES.iter().map(|(clue, _)| pairs::within_key(clue)).collect();
        let known = KnownSecrets::default();
        Ok(Redactor { keys, clues, may_be_keys, patterns: compiled, known })
    }

    pub fn builtin() -> Redactor {
        Redactor::new(&[], &[]).expect("the built-in keys and shapes are sound")
    }

    /// Returns the values that this redactor knows, to which others can be added.
    pub fn known(&self) -> &KnownSecrets {
        &self.known
    }

    /// Uses the known values of another redactor from here on.
    pub fn share(&mut self, known: &KnownSecrets) {
        self.known = known.clone();
    }

    /// Redacts a value in place and reports whether anything changed. Members, items and keys stay;
    /// only leaves change.
    pub fn value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.line(text),
            Value::Array(items) => self.list(items),
            Value::Object(members) => self.members(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Redacts a list, which may be that of a program's arguments: a secret may follow its flag.
    fn list(&self, items: &mut [Value]) -> bool {
        let mut changed = commands::redact_list(items);
        let mut flag = None;
        for item in items {
            let kind = flag.take().and_then(|flag: String| self.keys.kind(&flag));
            flag = item.as_str().and_then(pairs::flag).map(str::to_owned);
            changed |= match kind {
                Some(kind) if flag.is_none() => self.member(kind, "", item),
                _ => self.value(item),
            };
        }
        changed
    }

    fn members(&self, members: &mut Map<String, Value>) -> bool {
        let label = |label: &str| {
            let label = members.get(label).and_then(Value::as_str)?;
            self.keys.kind(label)
        };
        let labelled = label("name").or_else(|| label("key"));
        let command = members.get("command").and_then(Value::as_str).map(str::to_owned);
        let arguments = members.get_mut("args").and_then(Value::as_array_mut);
        let beside = command
            .zip(arguments)
            .is_some_and(|(command, arguments)| commands::redact_arguments(&command, arguments));
        members.iter_mut().fold(beside, |changed, (key, value)| {
            let kind = match labelled {
                Some(kind) if key == "value" => Some(kind),
                _ => self.keys.kind(key),
            };
            let here = match kind {
                Some(kind) => self.member(kind, key, value),
                None => self.value(value),
            };
            here | changed
        })
    }

    /// Redacts a value by what its key claims, otherwise by its own look.
    fn member(&self, kind: KeyKind, key: &str, value: &mut Value) -> bool {
        let is_secret = match value {
            Value::String(text) => kind.hides(text),
            Value::Number(_) => kind.hides_numbers(),
            Value::Array(_) | Value::Object(_) => kind == KeyKind::Secret,
            Value::Null | Value::Bool(_) => false,
        };
        if is_secret { blank(key, value) } else { self.value(value) }
    }

    /// Redacts text in place and reports whether it changed.
    pub fn line(&self, text: &mut String) -> bool {
        match self.text(text) {
            Cow::Owned(redacted) => {
                *text = redacted;
                true
            }
            Cow::Borrowed(_) => false,
        }
    }

    /// Returns the text without likely secrets, borrowed if there were none.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = match self.known.redact(text) {
            Some(redacted) => Cow::Owned(redacted),
            None => Cow::Borrowed(text),
        };
        for _ in 0..PASSES_MAX {
            let spans = self.spans(&clean);
            if spans.is_empty() {
                break;
            }
            clean = Cow::Owned(render(&clean, &spans));
        }
        self.patterns.iter().fold(clean, |text, pattern| match apply(pattern, &text) {
            Some(redacted) => Cow::Owned(redacted),
            None => text,
        })
    }

    fn spans(&self, text: &str) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut at = 0;
        while let Some(Clue { number, start, end }) = self.clues.find(text, at) {
            let found = self.examine(text, number, start..end);
            at = match &found {
                Some(span) => span.end.max(end),
                // Another clue may begin within this one.
                None => start + 1,
            };
            spans.extend(found);
        }
        shapes::beside_aws_keys(text, &mut spans);
        shapes::dotted_tokens(text, &mut spans);
        shapes::azure_secrets(text, &mut spans);
        spans.sort_by_key(|span| (span.start, span.end));
        spans
    }

    /// Looks for the secret that a clue points at: a shape, a password on a command line, or the
    /// value of a key.
    fn examine(&self, text: &str, number: usize, clue: Range<usize>) -> Option<Span> {
        if let Some((word, shape)) = shapes::CLUES.get(number) {
            let found = shape.find(text, word, clue.clone());
            let may_be_key = found.is_none() && self.may_be_keys[number];
            return if may_be_key { pairs::find(text, clue, &self.keys) } else { found };
        }
        let number = number - shapes::CLUES.len();
        match commands::PROGRAMS.get(number) {
            Some(program) => program.find(text, clue),
            None if number < commands::PROGRAMS.len() + shapes::TWILIO_CLUES => {
                shapes::twilio(text, clue)
            }
            None => pairs::find(text, clue, &self.keys),
        }
    }
}

/// Reports whether the built-in keys hide every value of this key.
pub(crate) fn is_secret_key(key: &str) -> bool {
    keys::names_secret(key)
}

/// Redacts text that arrives line by line: a private key spans several.
#[derive(Default)]
pub struct LineRedaction {
    is_in_key: bool,
}

impl LineRedaction {
    pub fn next(&mut self, redactor: &Redactor, mut line: String) -> String {
        if self.is_in_key {
            self.is_in_key = !line.contains("-----END ");
            return shapes::PEM.to_owned();
        }
        let may_begin = line.contains("-----BEGIN ") && !line.contains("-----END ");
        if redactor.line(&mut line) {
            self.is_in_key = may_begin && line.contains(shapes::PEM);
        }
        line
    }
}

/// A range of text to replace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
    replacement: &'static str,
}

fn compile(pattern: &str) -> Result<Regex, PatternFault> {
    let regex = RegexBuilder::new(pattern)
        .size_limit(PATTERN_SIZE_MAX)
        .dfa_size_limit(PATTERN_SIZE_MAX)
        .build()
        .map_err(|error| syntax(pattern, &error.to_string()))?;
    if regex.is_match("") {
        return Err(PatternFault::Empty(pattern.to_owned()));
    }
    Ok(regex)
}

fn syntax(pattern: &str, message: &str) -> PatternFault {
    PatternFault::Syntax { pattern: pattern.to_owned(), message: message.to_owned() }
}

/// Redacts everything under a secret key, except values that cannot be secret, as in
/// `has_password: true`.
fn blank(key: &str, value: &mut Value) -> bool {
    let is_secret = match value {
        Value::String(text) => !text.is_empty() && !marker(text) && !keys::spared(key, text),
        Value::Number(_) => true,
        Value::Array(items) => {
            return items.iter_mut().fold(false, |changed, item| blank(key, item) | changed);
        }
        Value::Object(members) => {
            let members = members.values_mut();
            return members.fold(false, |changed, member| blank(key, member) | changed);
        }
        Value::Null | Value::Bool(_) => false,
    };
    if is_secret {
        *value = REDACTED.into();
    }
    is_secret
}

fn render(text: &str, spans: &[Span]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        if span.start >= at {
            out.push_str(&text[at..span.start]);
            out.push_str(span.replacement);
        }
        at = at.max(span.end);
    }
    out.push_str(&text[at..]);
    out
}

/// Applies a pattern to the text between markers: a pattern that matches `redacted` must not
/// consume them, and an existing marker must not hide its surroundings.
fn apply(pattern: &Regex, text: &str) -> Option<String> {
    let mut out = String::new();
    let mut changed = false;
    let mut rest = text;
    while !rest.is_empty() {
        let (stretch, mark) = next_marker(rest);
        let redacted = pattern.replace_all(stretch, REDACTED);
        changed |= matches!(redacted, Cow::Owned(_));
        out.push_str(&redacted);
        out.push_str(mark);
        rest = &rest[stretch.len() + mark.len()..];
    }
    changed.then_some(out)
}

/// Returns the text before the next marker, and that marker.
fn next_marker(text: &str) -> (&str, &str) {
    let mut from = 0;
    while let Some(found) = text[from..].find("[redacted") {
        let start = from + found;
        if let Some(length) = marker_length(&text[start..]) {
            return (&text[..start], &text[start..start + length]);
        }
        from = start + 1;
    }
    (text, "")
}

/// Reports whether the whole text is a marker.
fn marker(text: &str) -> bool {
    marker_length(text) == Some(text.len())
}

/// Returns the length of the marker at the start of the text. Only names that are used here count,
/// so nobody can hide a secret in a made-up marker.
fn marker_length(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("[redacted")?;
    if rest.starts_with(']') {
        return Some(REDACTED.len());
    }
    let end = rest.find(']')? + "[redacted".len() + 1;
    shapes::NAMED.contains(&&text[..end]).then_some(end)
}
