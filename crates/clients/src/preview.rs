//! Shows a person a change: references as they are written, secrets hidden. A text that would be
//! hidden is not stored in the clear either.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use domain::config::is_secret;
use domain::trust::{DifferenceLine, LineChange, line_difference};
use redact::{REDACTED, Redactor};
use serde_json::{Value, json};

use crate::client::Syntax;
use crate::scalar::{self, Scalar};
use crate::{edit, import};

static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::builtin);

/// Words that may precede a reference to a token.
const SCHEMES: &[&str] = &["Bearer ", "bearer ", "Basic ", "basic ", "Token ", "token "];

/// The kinds of references that programs write before the name.
const KINDS: &[&str] = &["env", "secret", "input", "keyring"];

/// The start of a hidden value while texts are compared; its number follows.
const NUMBERED: &str = "[redacted#";

/// The first of the placeholder characters for references while a text is searched for secrets.
const STAND_IN: u32 = 0xE000;

/// Shows texts of one file, and hides the values that an import would not store in the clear.
pub struct Preview {
    syntax: Syntax,
    /// The texts shown instead of such values, by the value as the file has it.
    shown: BTreeMap<String, String>,
    /// The secrets in such values that are too long to be a word elsewhere.
    secrets: Vec<String>,
}

impl Preview {
    /// Finds the secrets among the servers in some texts of a file.
    pub fn new(texts: &[&str], syntax: Syntax, section: &str) -> Preview {
        let mut preview = Preview { syntax, shown: BTreeMap::new(), secrets: Vec::new() };
        let servers = texts.iter().map(|text| edit::servers(text, syntax, section));
        for (name, entry) in servers.flat_map(Result::unwrap_or_default) {
            let hidden = import::hidden(&name, &entry);
            preview.shown.extend(hidden.shown);
            preview.secrets.extend(hidden.secrets);
        }
        preview.secrets.retain(|secret| secret.len() > REDACTED.len());
        preview
    }

    /// Formats the difference of two texts as lines with signs.
    pub fn lines(&self, title: String, before: &str, after: &str) -> Vec<String> {
        let sign = |line: &DifferenceLine| {
            let sign = match line.mark {
                LineChange::Added => '+',
                LineChange::Removed => '-',
                LineChange::Same | LineChange::Skipped(_) => ' ',
            };
            format!("{sign} {}", line_shown(&without_numbers(&line.text)))
        };
        let difference = line_difference(&self.text(before), &self.text(after));
        std::iter::once(title).chain(difference.iter().map(sign)).collect()
    }

    /// Returns a text with its secrets hidden. Different ones look different, so that a line in
    /// which nothing else changed is not the same.
    fn text(&self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let mut at = 0;
        for Scalar { place, value } in scalar::all(text, self.syntax) {
            let number = self.shown.range(..value.clone()).count();
            if let Some(hidden) = self.shown.get(&value) {
                let numbered = hidden.replace(REDACTED, &format!("{NUMBERED}{number}]"));
                shown.push_str(&self.without_copies(&text[at..place.start]));
                shown.push_str(&Value::from(numbered).to_string());
                at = place.end;
            }
        }
        shown + &self.without_copies(&text[at..])
    }

    /// Hides secrets that stand elsewhere, such as in a remark.
    fn without_copies(&self, text: &str) -> String {
        let hidden = |text: String, secret: &String| text.replace(secret.as_str(), REDACTED);
        self.secrets.iter().fold(text.to_owned(), hidden)
    }
}

/// Takes the numbers out of hidden values.
fn without_numbers(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(NUMBERED) {
        shown.push_str(before);
        shown.push_str(REDACTED);
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        rest = rest.strip_prefix(']').unwrap_or(rest);
    }
    shown + rest
}

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

/// Hides the secrets in a line of a file.
fn line_shown(text: &str) -> String {
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
            assert_eq!(line_shown(text), text);
        }
        for (text, secret) in [
            (r#""GITHUB_TOKEN": "t0psecret-value", "A": "${env:A}""#, "t0psecret"),
            (r#""A_TOKEN": "${env:A:-hunter2hunter2}""#, "hunter2"),
            (r#""A": "${env:A}", "PASSWORD": "hunter2hunter2""#, "hunter2"),
            (r#""DB": "postgres://me:hunter2@db/${env:X}""#, "hunter2"),
        ] {
            let shown = line_shown(text);
            assert!(shown.contains(REDACTED) && !shown.contains(secret), "{shown}");
        }
    }

    fn lines(syntax: Syntax, text: &str) -> String {
        Preview::new(&[text], syntax, "s").lines(String::new(), "", text).join("\n")
    }

    #[test]
    fn a_value_is_hidden_however_it_is_spelled() {
        for (syntax, text, expected) in [
            (Syntax::Json, r#"{"PASSWORD": "a\"b and more"}"#, r#"{"PASSWORD": "[redacted]"}"#),
            (
                Syntax::Json,
                r#"{"PASSWORD": "hun\u0074er2", "B": "pwd"}"#,
                r#"{"PASSWORD": "[redacted]", "B": "pwd"}"#,
            ),
            (Syntax::Json, r#"{"PASSWORD": "hunter\u200b2"}"#, r#"{"PASSWORD": "[redacted]"}"#),
            (Syntax::Json, "{\"PASSWORD\": \"hunter\u{200b}2\"}", r#"{"PASSWORD": "[redacted]"}"#),
            (
                Syntax::Json,
                r#"{"PASSWORD": 12345678, "SIZE": 8}"#,
                r#"{"PASSWORD": "[redacted]", "SIZE": 8}"#,
            ),
            (Syntax::Toml, r"{ PASSWORD = 'hunter\2' }", r#"{ PASSWORD = "[redacted]" }"#),
            (Syntax::Toml, r#"{ PASSWORD = "hunter\\2" }"#, r#"{ PASSWORD = "[redacted]" }"#),
            (
                Syntax::Toml,
                "{ PASSWORD = \"\"\"hunter\n2\"\"\" }",
                r#"{ PASSWORD = "[redacted]" }"#,
            ),
        ] {
            let entry = |env: &str| match syntax {
                Syntax::Json => format!(r#"{{"s": {{"x": {{"command": "x", "env": {env}}}}}}}"#),
                Syntax::Toml => format!("[s.x]\ncommand = \"x\" # it's\nenv = {env}"),
            };
            let shown = lines(syntax, &entry(text));
            assert!(shown.ends_with(entry(expected).lines().last().unwrap()), "{shown}");
        }
    }

    #[test]
    fn a_secret_that_changed_is_a_difference() {
        let text = |secret: &str| {
            format!(r#"{{"s": {{"x": {{"command": "x", "env": {{"PASSWORD": "{secret}"}}}}}}}}"#)
        };
        let (before, after) = (text("hunter2"), text("hunter3"));
        let preview = Preview::new(&[&before, &after], Syntax::Json, "s");
        let shown = preview.lines(String::new(), &before, &after);
        assert_eq!((&shown[1][..1], &shown[2][..1]), ("-", "+"), "{shown:?}");
        assert_eq!(shown[1][1..], shown[2][1..]);
        assert!(shown[1].contains("\"[redacted]\""), "{shown:?}");
    }

    #[test]
    fn secrets_of_86_families_are_shown_if_and_only_if_they_are_stored_in_the_clear() {
        let planted = testkit::planted::planted();
        let (mut clear, mut hidden) = (0, 0);
        for testkit::planted::Planted { written, core } in &planted {
            for entry in [
                json!({"command": "x", "args": [written]}),
                json!({"command": "x", "args": ["--value", written, "--then"]}),
                json!({"command": "x", "env": {"VALUE": written, "API_KEY": written}}),
                json!({"url": "https://x/mcp", "headers": {"X-Value": written}}),
                json!({"url": format!("https://x/mcp?value={written}")}),
            ] {
                let keep = &mut |name: &str, _: &str| name.to_owned();
                let server = import::server("x", &entry, keep).expect("a server");
                let ours = format!("{:#}", json!({"s": {"x": server.entry}}));
                let theirs = format!("{:#}", json!({"s": {"x": entry}}));
                let is_clear = ours.contains(core.as_str());
                for (whose, text) in [("ours", &ours), ("theirs", &theirs)] {
                    let shown = lines(Syntax::Json, text);
                    assert_eq!(
                        shown.contains(core.as_str()),
                        is_clear,
                        "{whose}: {entry}: {shown}"
                    );
                }
                if is_clear { clear += 1 } else { hidden += 1 }
            }
        }
        assert!(hidden > 4 * clear, "{hidden} hidden, {clear} clear");
    }
}
