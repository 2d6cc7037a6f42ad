//! Shows a person a change: references as they are written, secrets hidden. A text that would be
//! hidden is not stored in the clear either.

use std::sync::LazyLock;

use domain::config::is_secret;
use domain::trust::{DifferenceLine, LineChange};
use redact::{REDACTED, Redactor};
use serde_json::{Value, json};

use super::change::FileChange;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::builtin);

/// Words that may precede a reference to a token.
const SCHEMES: &[&str] = &["Bearer ", "bearer ", "Basic ", "basic ", "Token ", "token "];

/// The kinds of references that programs write before the name.
const KINDS: &[&str] = &["env", "secret", "input", "keyring"];

/// The first of the characters that stand for references while a text is searched for secrets.
const STAND_IN: u32 = 0xE000;

/// Shows changes in which these values are secrets, besides those that are recognised.
pub(super) struct Preview {
    values: Vec<String>,
}

impl Preview {
    pub(super) fn new(secrets: impl Iterator<Item = String>) -> Preview {
        // As they stand in a file, without the quotes.
        let written = |value: String| {
            let quoted = Value::from(value).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        };
        Preview { values: secrets.map(written).filter(|value| !value.is_empty()).collect() }
    }

    /// Formats a change as lines with signs.
    pub(super) fn change(&self, change: &FileChange) -> Vec<String> {
        let narrowed = change.narrowed_from();
        let title = narrowed.map_or(format!("--- {}", change.file.display()), |mode| {
            format!("--- {} (mode {mode:o}, will be 600)", change.file.display())
        });
        self.lines(title, &change.difference())
    }

    pub(super) fn lines(&self, title: String, difference: &[DifferenceLine]) -> Vec<String> {
        let sign = |line: &DifferenceLine| {
            let sign = match line.mark {
                LineChange::Added => '+',
                LineChange::Removed => '-',
                LineChange::Same | LineChange::Skipped(_) => ' ',
            };
            format!("{sign} {}", self.line(&line.text))
        };
        std::iter::once(title).chain(difference.iter().map(sign)).collect()
    }

    fn line(&self, text: &str) -> String {
        let hidden = |text: String, value: &String| {
            if value.len() > REDACTED.len() {
                return text.replace(value.as_str(), REDACTED);
            }
            // A short value is a word in other places.
            text.replace(&format!("\"{value}\""), &format!("\"{REDACTED}\""))
        };
        line(&self.values.iter().fold(text.to_owned(), hidden))
    }
}

/// Reports whether a value is shown only in part, under the name of its variable, header or flag.
pub(super) fn is_hidden(name: &str, value: &str) -> bool {
    if is_reference(value) {
        return false;
    }
    let plain = without_references(value);
    let written = json!({ name: plain }).to_string();
    is_secret(name, &plain) || REDACTOR.text(&written) != written
}

/// Reports for each argument whether it is a secret because of those around it.
pub(super) fn are_hidden(command: &Value, args: &[Value]) -> Vec<bool> {
    let plain: Vec<Value> = args
        .iter()
        .map(|arg| Value::from(arg.as_str().map(without_references).unwrap_or_default()))
        .collect();
    let mut shown = json!({"command": command, "args": plain});
    REDACTOR.value(&mut shown);
    let shown = shown["args"].as_array().cloned().unwrap_or_default();
    plain.iter().zip(&shown).map(|(plain, shown)| plain != shown).collect()
}

/// Hides the secrets in a line of a file.
fn line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, reference, after)) = quoted_reference(rest) {
        shown.push_str(&redacted(before));
        shown.push_str(reference);
        rest = after;
    }
    shown.push_str(&redacted(rest));
    shown
}

/// Finds the first quoted text that is nothing but a reference.
fn quoted_reference(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(at) = text[from..].find(['"', '\'']) {
        let start = from + at + 1;
        let quote = text.as_bytes()[start - 1] as char;
        let end = start + text[start..].find(quote)?;
        if is_reference(&text[start..end]) {
            return Some((&text[..start], &text[start..end], &text[end..]));
        }
        from = start;
    }
    None
}

/// Hides the secrets in a text whose references stay.
fn redacted(text: &str) -> String {
    let plain = without_references(text);
    if REDACTOR.text(&plain) == plain {
        return text.to_owned();
    }
    let (marked, references) = with_stand_ins(text);
    let shown = REDACTOR.text(&marked).into_owned();
    let back = |shown: String, (stand_in, reference): &(char, &str)| {
        shown.replacen(*stand_in, reference, 1)
    };
    references.iter().fold(shown, back)
}

/// Returns the text with a character in place of each reference, and both.
fn with_stand_ins(text: &str) -> (String, Vec<(char, &str)>) {
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

fn without_references(text: &str) -> String {
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
fn is_reference(text: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_shown_as_written_and_secrets_are_not() {
        for text in [
            r#"      "GITHUB_TOKEN": "${secret:GITHUB_TOKEN}","#,
            r#"      "Authorization": "Bearer ${secret:GITHUB_AUTHORIZATION}""#,
            r#"      "API_KEY": "${env:API_KEY}", "PASSWORD": "${input:my-key}""#,
            r#"    "args": ["--token", "${secret:T}", "--password=${env:P}"]"#,
            r#"    "url": "https://x/mcp?api_key=${secret:X_URL}""#,
            r#"    "DATABASE_URL": "postgres://${secret:DB}@db/x""#,
            r#"    "DATABASE_URL": "postgres://${env:U}:${env:P}@db/x""#,
            r#"bearer_token = "{env:TOKEN}""#,
            r#"    "MODE": "fast""#,
        ] {
            assert_eq!(line(text), text);
        }
        for (text, secret) in [
            (r#""GITHUB_TOKEN": "t0psecret-value", "A": "${env:A}""#, "t0psecret"),
            (r#""A_TOKEN": "${env:A:-hunter2hunter2}""#, "hunter2"),
            (r#""A": "${env:A}", "PASSWORD": "hunter2hunter2""#, "hunter2"),
            (r#""DB": "postgres://me:hunter2@db/${env:X}""#, "hunter2"),
        ] {
            let shown = line(text);
            assert!(shown.contains(REDACTED) && !shown.contains(secret), "{shown}");
        }
    }

    #[test]
    fn known_values_are_hidden_wherever_they_stand() {
        let preview = Preview::new(["a\"b and more".to_owned(), "pw".to_owned()].into_iter());
        assert_eq!(preview.line(r#"  "a\"b and more","#), r#"  "[redacted]","#);
        assert_eq!(preview.line(r#"  "pw", "pwd""#), r#"  "[redacted]", "pwd""#);
    }
}
