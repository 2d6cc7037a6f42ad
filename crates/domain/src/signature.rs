//! A tool's parameters on one line: `(title*:str, state:enum[open|closed], labels:[str])`, where
//! `*` marks required ones.

use serde_json::Value;

/// Enum values listed; further ones become `…`.
const ENUM_VALUES_MAX: usize = 5;

/// Parameters listed; further ones become `…`.
const PARAMETERS_MAX: usize = 10;

/// A longer first sentence is truncated.
const SENTENCE_CHARS_MAX: usize = 100;

pub fn of(input_schema: Option<&str>) -> String {
    let schema: Value =
        input_schema.and_then(|schema| serde_json::from_str(schema).ok()).unwrap_or_default();
    let required: Vec<&str> = schema["required"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let Some(properties) = schema["properties"].as_object() else {
        return "()".to_owned();
    };
    let mut parts: Vec<String> = properties
        .iter()
        .take(PARAMETERS_MAX)
        .map(|(name, property)| {
            let mark = if required.contains(&name.as_str()) { "*" } else { "" };
            format!("{name}{mark}:{}", kind(property))
        })
        .collect();
    if properties.len() > PARAMETERS_MAX {
        parts.push("…".to_owned());
    }
    format!("({})", parts.join(", "))
}

fn kind(property: &Value) -> String {
    if let Some(values) = property["enum"].as_array() {
        let mut words: Vec<String> = values
            .iter()
            .take(ENUM_VALUES_MAX)
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .collect();
        if values.len() > ENUM_VALUES_MAX {
            words.push("…".to_owned());
        }
        return format!("enum[{}]", words.join("|"));
    }
    let word = match &property["type"] {
        Value::String(word) => word.as_str(),
        // `["string", "null"]`: the first meaningful type.
        Value::Array(words) => {
            words.iter().filter_map(Value::as_str).find(|word| *word != "null").unwrap_or("any")
        }
        _ => "any",
    };
    match word {
        "string" => "str".to_owned(),
        "integer" => "int".to_owned(),
        "number" => "num".to_owned(),
        "boolean" => "bool".to_owned(),
        // One level is enough for a hint; describe_tool shows deeper arrays.
        "array" if property["items"]["type"] != "array" => {
            format!("[{}]", kind(&property["items"]))
        }
        "array" => "[[…]]".to_owned(),
        "object" => "obj".to_owned(),
        other => other.to_owned(),
    }
}

/// Returns the first sentence or line of a description.
pub fn first_sentence(description: &str) -> String {
    let line = description.trim().lines().next().unwrap_or_default().trim();
    let end = line.find(". ").map_or(line.len(), |end| end + 1);
    let sentence = &line[..end];
    match sentence.char_indices().nth(SENTENCE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &sentence[..end]),
        None => sentence.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_fit_on_a_line() {
        for (schema, expected) in [
            (
                r#"{"properties":{"labels":{"type":"array","items":{"type":"string"}},"state":{"enum":["open","closed"]},"title":{"type":"string"}},"required":["title"]}"#,
                "(labels:[str], state:enum[open|closed], title*:str)",
            ),
            (
                r#"{"properties":{"n":{"type":["null","integer"]},"o":{},"p":{"type":"object"}}}"#,
                "(n:int, o:any, p:obj)",
            ),
            (r#"{"properties":{"m":{"type":"array","items":{"type":"array"}}}}"#, "(m:[[…]])"),
            (r#"{"type":"object"}"#, "()"),
            ("[]", "()"),
        ] {
            assert_eq!(of(Some(schema)), expected);
        }
        assert_eq!(of(None), "()");
    }

    #[test]
    fn a_description_is_cut_at_its_first_sentence() {
        assert_eq!(first_sentence("Reads a file. Then more."), "Reads a file.");
        assert_eq!(first_sentence("  One line\nTwo"), "One line");
        assert_eq!(first_sentence(&"x".repeat(500)).chars().count(), SENTENCE_CHARS_MAX + 1);
        assert_eq!(first_sentence(""), "");
    }
}
