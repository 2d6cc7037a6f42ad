//! Finds the values in the text of a settings file, however they are spelled. Names of members and
//! remarks are left out.

use std::ops::Range;

use crate::client::SettingsSyntax;
use crate::edit;

/// A text, number or word, with its place in the file.
#[derive(Debug, PartialEq)]
pub struct TextScalar {
    pub place: Range<usize>,
    /// The value as a reader of the file gets it.
    pub value: String,
}

/// Returns the values of a file in their order.
pub fn all(text: &str, syntax: SettingsSyntax) -> Vec<TextScalar> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if let Some(length) = remark(rest, syntax) {
            length
        } else if matches!(first, '"' | '\'') {
            quoted(rest, syntax)
        } else if is_of_word(first) {
            rest.find(|c| !is_of_word(c)).unwrap_or(rest.len())
        } else {
            at += first.len_utf8();
            continue;
        };
        let place = at..at + length;
        at = place.end;
        let is_value = remark(rest, syntax).is_none() && !is_name(&text[at..], syntax);
        if let Some(value) = edit::scalar(&text[place.clone()], syntax).filter(|_| is_value) {
            found.push(TextScalar { place, value });
        }
    }
    found
}

/// Returns the length of a remark at the start of the text, if there is one.
fn remark(text: &str, syntax: SettingsSyntax) -> Option<usize> {
    let line = || text.find('\n').unwrap_or(text.len());
    match syntax {
        SettingsSyntax::Json if text.starts_with("//") => Some(line()),
        SettingsSyntax::Json if text.starts_with("/*") => {
            Some(text.find("*/").map_or(text.len(), |end| end + 2))
        }
        SettingsSyntax::Toml if text.starts_with('#') => Some(line()),
        SettingsSyntax::Json | SettingsSyntax::Toml => None,
    }
}

/// Returns the length of the quoted text that the text starts with.
fn quoted(text: &str, syntax: SettingsSyntax) -> usize {
    let quote = &text[..1];
    let long = quote.repeat(3);
    let mark =
        if syntax == SettingsSyntax::Toml && text.starts_with(&long) { &*long } else { quote };
    let has_escapes = syntax == SettingsSyntax::Json || quote == "\"";
    let mut at = mark.len();
    while let Some(character) = text[at..].chars().next() {
        if text[at..].starts_with(mark) {
            // Up to two more quotes are the last of a long text.
            let more =
                text[at + mark.len()..].chars().take_while(|c| quote.starts_with(*c)).count();
            return at + mark.len() + if mark.len() > 1 { more.min(2) } else { 0 };
        }
        let is_escape = has_escapes && character == '\\';
        let escaped = text[at + character.len_utf8()..].chars().next().filter(|_| is_escape);
        at += character.len_utf8() + escaped.map_or(0, char::len_utf8);
    }
    text.len()
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '+' | '.')
}

/// Reports whether what stands before this is the name of a member.
fn is_name(after: &str, syntax: SettingsSyntax) -> bool {
    let after = after.trim_start();
    match syntax {
        SettingsSyntax::Json => after.starts_with(':'),
        SettingsSyntax::Toml => after.starts_with(['=', '.']),
    }
}
