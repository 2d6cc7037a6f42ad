//! Secrets among the values of a server, and references to values that are elsewhere.

use std::sync::LazyLock;

use domain::config::is_secret;
use redact::Redactor;
use serde_json::{Value, json};

pub(crate) static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::builtin);

/// Words that may precede a reference to a token.
const SCHEMES: &[&str] = &["Bearer ", "bearer ", "Basic ", "basic ", "Token ", "token "];

/// The kinds of references that programs write before the name.
const KINDS: &[&str] = &["env", "secret", "input", "keyring"];

/// The first of the placeholder characters for references while a text is searched for secrets.
const STAND_IN: u32 = 0xE000;

/// Reports whether a value is shown only in part, under the name of its variable, header or flag.
pub(crate) fn is_hidden(name: &str, value: &str) -> bool {
    if is_reference(value) {
        return false;
    }
    let plain = without_references(value);
    let written = json!({ name: plain }).to_string();
    is_secret(name, &plain) || REDACTOR.text(&written) != written
}

/// Reports for each argument whether it is a secret because of those around it.
pub(crate) fn are_hidden(command: &Value, args: &[Value]) -> Vec<bool> {
    let plain: Vec<Value> = args
        .iter()
        .map(|arg| Value::from(arg.as_str().map(without_references).unwrap_or_default()))
        .collect();
    let mut shown = json!({"command": command, "args": plain});
    REDACTOR.value(&mut shown);
    let shown = shown["args"].as_array().cloned().unwrap_or_default();
    plain.iter().zip(&shown).map(|(plain, shown)| plain != shown).collect()
}

/// Returns the text with a character in place of each reference, and both.
pub(crate) fn with_stand_ins(text: &str) -> (String, Vec<(char, &str)>) {
    let mut plain = String::with_capacity(text.len());
    let mut references = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let length = rest[at..].find('}').map_or(rest.len() - at, |length| length + 1);
        let reference = &rest[at..at + length];
        plain.push_str(&rest[..at]);
        match stand_in(references.len()).filter(|_| is_reference(reference)) {
            Some(stand_in) => {
                plain.push(stand_in);
                references.push((stand_in, reference));
            }
            None => plain.push_str(reference),
        }
        rest = &rest[at + length..];
    }
    (plain + rest, references)
}

fn stand_in(number: usize) -> Option<char> {
    char::from_u32(STAND_IN + u32::try_from(number).ok()?)
}

pub(crate) fn without_references(text: &str) -> String {
    let (mut plain, references) = with_stand_ins(text);
    plain.retain(|c| !references.iter().any(|(stand_in, _)| *stand_in == c));
    plain
}

/// Returns the value in `--name=value` or `Name: value`, or else the whole.
fn assigned(text: &str) -> &str {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match text.split_once('=').or_else(|| text.split_once(": ")) {
        Some((name, value)) if name.chars().all(is_fit) => value,
        Some(_) | None => text,
    }
}

/// Reports whether a text is nothing but references to values that are elsewhere, under a name or
/// after a scheme if it has one.
pub(crate) fn is_reference(text: &str) -> bool {
    let mut rest = assigned(text);
    let scheme = SCHEMES.iter().find(|scheme| rest.starts_with(**scheme));
    rest = &rest[scheme.map_or(0, |scheme| scheme.len())..];
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let opened = rest.strip_prefix("${").or_else(|| rest.strip_prefix('{'));
        let Some((inner, after)) = opened.and_then(|opened| opened.split_once('}')) else {
            return false;
        };
        let name = match inner.split_once(':') {
            Some((kind, name)) if KINDS.contains(&kind) => name,
            None if rest.starts_with('$') => inner,
            Some(_) | None => return false,
        };
        let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || !name.chars().all(is_fit) {
            return false;
        }
        rest = after;
    }
    true
}
