//! The text of a tool that its vector is made from. The model was trained on texts of this form.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The lengths read of a description and of a parameter's description, in characters, and the
/// number of parameters.
const DESCRIPTION_CHARS_MAX: usize = 500;
const PARAMETER_CHARS_MAX: usize = 60;
const PARAMETERS_MAX: usize = 10;

/// Parameters nested deeper are not read.
const DEPTH_MAX: usize = 3;

/// A tool as the model reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolText {
    pub text: String,
}

impl ToolText {
    pub fn new(server: &str, document: &super::Document<'_>) -> ToolText {
        let (name, server) = (spaced(document.name), spaced(server));
        let is_named = name.to_lowercase().contains(&server.to_lowercase());
        let name = if is_named { name } else { format!("{server} {name}") };
        let description = cut(document.description, DESCRIPTION_CHARS_MAX);
        let mut parameters = Vec::new();
        if let Some(schema) = document.input_schema.and_then(|text| serde_json::from_str(text).ok())
        {
            read_parameters(&schema, 0, &mut parameters);
        }
        let text = match parameters.join("; ") {
            none if none.is_empty() => format!("{name}. {description}"),
            parameters => format!("{name}. {description} ({parameters})"),
        };
        ToolText { text }
    }

    /// Returns the key under which the vector of this text is stored.
    pub fn key(&self) -> [u8; 32] {
        Sha256::digest(&self.text).into()
    }
}

fn read_parameters(schema: &Value, depth: usize, found: &mut Vec<String>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    if depth > DEPTH_MAX {
        return;
    }
    for (name, property) in properties.into_iter().flatten() {
        if found.len() >= PARAMETERS_MAX {
            return;
        }
        let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let text = format!("{} {}", spaced(name), cut(description, PARAMETER_CHARS_MAX));
        found.push(text.trim().to_owned());
        read_parameters(property, depth + 1, found);
        if let Some(items) = property.get("items") {
            read_parameters(items, depth + 1, found);
        }
    }
}

/// Returns the beginning of a text, with single spaces.
fn cut(text: &str, chars_max: usize) -> String {
    let mut cut = String::new();
    let mut left = chars_max;
    for word in text.split_whitespace() {
        if !cut.is_empty() && left > 0 {
            cut.push(' ');
            left -= 1;
        }
        let length = word.chars().count().min(left);
        cut.extend(word.chars().take(length));
        left -= length;
        if left == 0 {
            break;
        }
    }
    cut
}

/// Splits an identifier into words, at changes of case and at punctuation.
fn spaced(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut spaced = String::with_capacity(name.len() + 8);
    for (place, &letter) in letters.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(place + 1);
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase)
            });
        let is_gap = matches!(letter, '_' | '-' | '.' | '/' | ':');
        if (begins || is_gap) && !spaced.is_empty() && !spaced.ends_with(' ') {
            spaced.push(' ');
        }
        if !is_gap {
            spaced.push(letter);
        }
    }
    spaced.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Document;

    #[test]
    fn a_tool_reads_like_a_sentence() {
        let schema = r#"{"properties":{"issueNumber":{"description":"The number"},
            "filter":{"type":"object","properties":{"state":{}}},
            "labels":{"type":"array","items":{"properties":{"label_name":{"description":"x"}}}}}}"#;
        let issue = Document {
            name: "getIssue",
            description: "Returns\n an  issue.",
            input_schema: Some(schema),
        };
        let text = |server, document: &Document<'_>| ToolText::new(server, document).text;
        let expected = "git Hub get Issue. Returns an issue. (issue Number The number; filter; \
                        state; labels; label name x)";
        assert_eq!(text("gitHub", &issue), expected);
        let plain = Document { name: "git_log", description: "", input_schema: Some("[") };
        assert_eq!(text("git", &plain), "git log. ");
        let long = "ab ".repeat(400);
        let wordy = Document { name: "HTTPServer2x", description: &long, input_schema: None };
        assert_eq!(text("", &wordy).chars().count(), "HTTP Server2x. ".len() + 500);
    }

    #[test]
    fn the_key_depends_on_the_text_alone() {
        let document = Document::named("a");
        let key = |server| ToolText::new(server, &document).key();
        assert_eq!(key("s"), key("s"));
        assert_ne!(key("s"), key("t"));
    }
}
