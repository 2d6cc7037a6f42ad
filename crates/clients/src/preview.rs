//! Shows a person a change: references as they are written, secrets hidden. A text that would be
//! hidden is not stored in the clear either.

use std::collections::BTreeMap;

use domain::trust::{DifferenceLine, LineChange, line_difference};
use redact::REDACTED;
use serde_json::Value;

use crate::client::SettingsSyntax;
use crate::hidden::{REDACTOR, is_reference, with_stand_ins, without_references};
use crate::scalar::{self, TextScalar};
use crate::{edit, import};

/// The start of a hidden value while texts are compared; its number follows.
const NUMBERED: &str = "[redacted#";

/// Shows texts of one file, and hides the values that an import would not store in the clear.
pub struct Preview {
    syntax: SettingsSyntax,
    /// The texts shown instead of such values, by the value as the file has it.
    shown: BTreeMap<String, String>,
    /// The secrets in such values that are too long to be a word elsewhere.
    secrets: Vec<String>,
}

impl Preview {
    /// Finds the secrets among the servers in some texts of a file.
    pub fn new(texts: &[&str], syntax: SettingsSyntax, section: &str) -> Preview {
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
        for TextScalar { place, value } in scalar::all(text, self.syntax) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    fn lines(syntax: SettingsSyntax, text: &str) -> String {
        Preview::new(&[text], syntax, "s").lines(String::new(), "", text).join("\n")
    }

    #[test]
    fn a_value_is_hidden_however_it_is_spelled() {
        for (syntax, text, expected) in [
            (
                SettingsSyntax::Json,
                r#"{"PASSWORD": "a\"b and more"}"#,
                r#"{"PASSWORD": "[redacted]"}"#,
            ),
            (
                SettingsSyntax::Json,
                r#"{"PASSWORD": "hun\u0074er2", "B": "pwd"}"#,
                r#"{"PASSWORD": "[redacted]", "B": "pwd"}"#,
            ),
            (
                SettingsSyntax::Json,
                r#"{"PASSWORD": "hunter\u200b2"}"#,
                r#"{"PASSWORD": "[redacted]"}"#,
            ),
            (
                SettingsSyntax::Json,
                "{\"PASSWORD\": \"hunter\u{200b}2\"}",
                r#"{"PASSWORD": "[redacted]"}"#,
            ),
            (
                SettingsSyntax::Json,
                r#"{"PASSWORD": 12345678, "SIZE": 8}"#,
                r#"{"PASSWORD": "[redacted]", "SIZE": 8}"#,
            ),
            (SettingsSyntax::Toml, r"{ PASSWORD = 'hunter\2' }", r#"{ PASSWORD = "[redacted]" }"#),
            (
                SettingsSyntax::Toml,
                r#"{ PASSWORD = "hunter\\2" }"#,
                r#"{ PASSWORD = "[redacted]" }"#,
            ),
            (
                SettingsSyntax::Toml,
                "{ PASSWORD = \"\"\"hunter\n2\"\"\" }",
                r#"{ PASSWORD = "[redacted]" }"#,
            ),
        ] {
            let entry = |env: &str| match syntax {
                SettingsSyntax::Json => {
                    format!(r#"{{"s": {{"x": {{"command": "x", "env": {env}}}}}}}"#)
                }
                SettingsSyntax::Toml => format!("[s.x]\ncommand = \"x\" # it's\nenv = {env}"),
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
        let preview = Preview::new(&[&before, &after], SettingsSyntax::Json, "s");
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
                    let shown = lines(SettingsSyntax::Json, text);
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
