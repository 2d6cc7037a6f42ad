//! JSON as the program prints it: characters that a terminal would obey are escaped, which keeps the
//! meaning.

use serde::Serialize;
use serde_json::Value;
use text::is_hidden;

/// Formats JSON for people and programs; characters that a terminal would obey are escaped, which
/// keeps the meaning.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    escaped_json(&indented(value))
}

/// Formats JSON in several lines, as it is.
pub(crate) fn indented(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Formats JSON the same way, in one line.
pub(crate) fn compact(value: &Value) -> String {
    escaped_json(&value.to_string())
}

/// Escapes hidden characters. In JSON they occur only within strings, where an escape means the
/// same.
pub(crate) fn escaped_json(json: &str) -> String {
    escaped(json, |character| {
        let mut units = [0; 2];
        let units = character.encode_utf16(&mut units).iter();
        units.map(|unit| format!("\\u{unit:04x}")).collect()
    })
}

/// Escapes the hidden characters of a text.
pub(crate) fn escaped(json: &str, escape: impl Fn(char) -> String) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if is_hidden(character) {
            text.push_str(&escape(character));
        } else {
            text.push(character);
        }
    }
    text
}
