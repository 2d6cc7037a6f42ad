//! Redacts data that must not be stored: values under keys that name secrets, and text that looks
//! like a secret. Arguments, results and messages pass through here before they are written
//! anywhere.

mod clues;
mod commands;
mod credential;
mod encoded;
mod keys;
mod known;
mod list;
mod manifest;
mod ordinary;
mod pairs;
mod randomness;
mod shapes;
mod statements;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use clues::{Clue, Clues};
use commands::Program;
use encoded::Encoding;
use keys::{KeyKind, Keys};
use shapes::Shape;

pub use credential::Credential;
pub use known::KnownSecrets;

/// Knows the built-in keys and shapes only.
pub static BUILTIN: LazyLock<Redactor> = LazyLock::new(Redactor::builtin);

/// Replaces a secret; shapes with a name are written as `[redacted:name]`.
pub const REDACTED: &str = "[redacted]";

/// Compiled size of one configured pattern. It is far above any sensible pattern's; patterns run
/// over everything that is stored.
const PATTERN_SIZE_MAX: usize = 1 << 20;

/// Configured patterns; each adds a pass over every text.
const PATTERNS_MAX: usize = 64;

/// Shorter names of nothing but small letters have no shape of a secret.
const SECRET_NAME_BYTES_MIN: usize = 16;

/// Removing a secret can join the text around it, so text with secrets is scanned again until
/// nothing is found. One more pass is usual; the limit is for text crafted to need many.
const PASSES_MAX: usize = 8;

/// Built once per configuration and shared.
pub struct Redactor {
    keys: Keys,
    /// Finds every place where a secret may begin; most texts have none.
    clues: Clues,
    /// The secrets that each clue may begin, by its number.
    leads: Vec<Lead>,
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
        let (words, leads): (Vec<Cow<'_, str>>, Vec<Lead>) = leads(&keys).unzip();
        let clues = Clues::new(words.iter().map(|word| &**word));
        Ok(Redactor { keys, clues, leads, patterns: compiled, known: KnownSecrets::default() })
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

    /// Redacts a value in place and reports whether anything changed. The number and order of members
    /// and items stay.
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

    /// Reports whether what is hidden in a list is hidden for what the list itself holds, rather than
    /// for its key.
    pub fn hides_alone(&self, sent: &[Value], redacted: &[Value]) -> bool {
        let mut alone = sent.to_vec();
        self.list(&mut alone);
        alone == redacted
    }

    fn members(&self, members: &mut Map<String, Value>) -> bool {
        let changed = self.values(members);
        // A name without its secret may be one that hides its value.
        let is_renamed = self.names(members);
        if is_renamed {
            self.values(members);
        }
        is_renamed || changed
    }

    fn values(&self, members: &mut Map<String, Value>) -> bool {
        let label = |label: &str| self.keys.kind(text_of(members, label)?);
        let labelled = label("name").or_else(|| label("key"));
        let command = text_of(members, "command").map(str::to_owned);
        let beside = command.is_some_and(|command| {
            let arguments = members.get_mut("args").and_then(Value::as_array_mut);
            arguments.is_some_and(|arguments| commands::redact_arguments(&command, arguments))
        });
        let beside = self.manifest(members) | beside;
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

    /// Redacts the values of a Secret of Kubernetes.
    fn manifest(&self, members: &mut Map<String, Value>) -> bool {
        if text_of(members, "kind") != Some(manifest::KIND) {
            return false;
        }
        let sections = manifest::SECTIONS.iter();
        sections.fold(false, |changed, section| {
            let values = members.get_mut(*section).filter(|values| values.is_object());
            values.is_some_and(|values| self.blank("", values)) | changed
        })
    }

    /// Redacts the names of members. Two that become the same are numbered, so that none is lost.
    fn names(&self, members: &mut Map<String, Value>) -> bool {
        let is_secret = |name: &String| matches!(self.name(name), Cow::Owned(_));
        if !members.keys().any(is_secret) {
            return false;
        }
        let mut renamed = Map::new();
        let mut counts: HashMap<String, usize> = HashMap::new();
        for (name, value) in std::mem::take(members) {
            let clean = self.name(&name).into_owned();
            let count = counts.entry(clean.clone()).or_default();
            *count += 1;
            let mut unique = if *count == 1 { clean.clone() } else { format!("{clean} {count}") };
            while renamed.contains_key(&unique) {
                *count += 1;
                unique = format!("{clean} {count}");
            }
            renamed.insert(unique, value);
        }
        *members = renamed;
        true
    }

    fn name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        let is_word = name.len() < SECRET_NAME_BYTES_MIN
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if is_word && self.patterns.is_empty() && !self.known.is_any() {
            return Cow::Borrowed(name);
        }
        self.text(name)
    }

    /// Redacts a value by what its key claims, otherwise by its own look.
    fn member(&self, kind: KeyKind, key: &str, value: &mut Value) -> bool {
        if kind.hides_value(value) { self.blank(key, value) } else { self.value(value) }
    }

    /// Redacts everything under a secret key, except values that cannot be secret, as in
    /// `has_password: true`.
    fn blank(&self, key: &str, value: &mut Value) -> bool {
        let is_secret = match value {
            Value::String(text) => !text.is_empty() && !marker(text) && !keys::spared(key, text),
            Value::Number(_) => true,
            Value::Array(items) => {
                return items
                    .iter_mut()
                    .fold(false, |changed, item| self.blank(key, item) | changed);
            }
            Value::Object(members) => {
                let values = members.values_mut();
                let changed = values.fold(false, |changed, value| self.blank(key, value) | changed);
                return self.names(members) | changed;
            }
            Value::Null | Value::Bool(_) => false,
        };
        if is_secret {
            *value = REDACTED.into();
        }
        is_secret
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

    /// Returns the text without the gate's own credentials and the known values, for an operator who
    /// wants everything else to stay.
    pub fn without_own<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let clean = match self.known.redact(text) {
            Some(redacted) => Cow::Owned(redacted),
            None => Cow::Borrowed(text),
        };
        let kinds = Credential::ALL.iter();
        let mut spans: Vec<Span> = kinds.flat_map(|kind| shapes::own(&clean, *kind)).collect();
        if spans.is_empty() {
            return clean;
        }
        spans.sort_by_key(|span| span.start);
        Cow::Owned(render(&clean, &spans))
    }

    fn spans(&self, text: &str) -> Vec<Span> {
        let (mut spans, mut manifests) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(Clue { number, start, end }) = self.clues.find(text, at) {
            let lead = &self.leads[number];
            if matches!(lead, Lead::Manifest) {
                manifests.extend(manifest::kind(text, start..end));
            }
            let found = self.examine(text, lead, start..end);
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
        manifest::values(text, &manifests, &mut spans);
        spans.sort_by_key(|span| (span.start, span.end));
        spans
    }

    /// Looks for the secret that a clue points at.
    fn examine(&self, text: &str, lead: &Lead, clue: Range<usize>) -> Option<Span> {
        match lead {
            Lead::Shape { word, shape, may_be_key } => {
                let found = shape.find(text, word, clue.clone());
                let is_key = found.is_none() && *may_be_key;
                if is_key { pairs::find(text, clue, &self.keys) } else { found }
            }
            Lead::Credential(kind) => shapes::credential(text, *kind, clue),
            Lead::Program(program) => program.find(text, clue),
            Lead::Twilio => shapes::twilio(text, clue),
            Lead::Okta => shapes::okta(text, clue),
            Lead::Encoded => {
                let Encoding { start, end, decoded } = encoded::find(text, clue)?;
                let is_secret = encoded::is_credential(&decoded)
                    || self.known.redact(&decoded).is_some()
                    || !self.spans(&decoded).is_empty();
                is_secret.then_some(Span { start, end, replacement: REDACTED })
            }
            Lead::Statement => statements::find(text, clue),
            Lead::Manifest => None,
            Lead::Key => pairs::find(text, clue, &self.keys),
        }
    }
}

/// Returns the text of a member. In the small objects of most calls, looking at each name takes less
/// than hashing this one.
fn text_of<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.iter().find(|(key, _)| *key == name)?.1.as_str()
}

/// A kind of secret that a clue may begin.
enum Lead {
    Shape {
        word: &'static str,
        shape: &'static Shape,
        /// The word may also be part of a key.
        may_be_key: bool,
    },
    Credential(Credential),
    /// A command line.
    Program(&'static Program),
    Twilio,
    Okta,
    Encoded,
    /// A statement of SQL.
    Statement,
    Manifest,
    Key,
}

/// Returns all clues with what they may be the beginning of. Of equal clues the first counts.
fn leads(keys: &Keys) -> impl Iterator<Item = (Cow<'_, str>, Lead)> {
    let shapes = shapes::CLUES.iter().map(|(word, shape)| {
        let may_be_key = pairs::within_key(word);
        (Cow::Borrowed(*word), Lead::Shape { word, shape, may_be_key })
    });
    let credentials = Credential::ALL.iter();
    let credentials = credentials.map(|kind| (kind.prefix().into(), Lead::Credential(*kind)));
    let programs = commands::PROGRAMS.iter();
    let programs = programs.map(|program| (program.name().into(), Lead::Program(program)));
    let twilio = shapes::twilio_clues().map(|word| (word.into(), Lead::Twilio));
    let okta = shapes::okta_clues().map(|word| (word.into(), Lead::Okta));
    let encoded = encoded::clues().map(|word| (word.into(), Lead::Encoded));
    let statements = statements::CLUES.iter().map(|word| ((*word).into(), Lead::Statement));
    let manifest = std::iter::once((manifest::CLUE.into(), Lead::Manifest));
    let keys = keys.clues().map(|word| (word.into(), Lead::Key));
    let fixed = shapes.chain(credentials).chain(programs).chain(twilio).chain(okta);
    fixed.chain(encoded).chain(statements).chain(manifest).chain(keys)
}

/// Reports whether the built-in keys hide every value of this key.
pub fn is_secret_key(key: &str) -> bool {
    keys::builtin_kind(key) == Some(KeyKind::Secret)
}

/// Reports whether the built-in keys hide this value of a key.
pub fn hides(key: &str, value: &Value) -> bool {
    keys::builtin_kind(key).is_some_and(|kind| kind.hides_value(value))
}

/// Redacts text that arrives line by line: a private key spans several.
#[derive(Default)]
pub struct LineRedaction {
    /// The words in the last line of the key that the lines are in.
    key_end: Option<&'static str>,
}

impl LineRedaction {
    pub fn next(&mut self, redactor: &Redactor, mut line: String) -> String {
        if let Some(end) = self.key_end {
            self.key_end = self.key_end.filter(|_| !line.contains(end));
            return shapes::PEM.to_owned();
        }
        let begun = shapes::KEY_FILES.iter().find(|(begin, _)| line.contains(begin));
        let end = begun.map(|(_, end)| *end).filter(|end| !line.contains(end));
        if redactor.line(&mut line) {
            self.key_end = end.filter(|_| line.contains(shapes::PEM));
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
/// so a made-up marker cannot hide a secret.
fn marker_length(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("[redacted")?;
    if rest.starts_with(']') {
        return Some(REDACTED.len());
    }
    let end = rest.find(']')? + "[redacted".len() + 1;
    shapes::NAMED.contains(&&text[..end]).then_some(end)
}
