//! A tool's parameters on one line: `(title*:str, state:enum[open|closed], labels:[str])`, where
//! `*` marks required ones.

use serde_json::Value;

/// Enum values listed; further ones become `…`.
const ENUM_VALUES_MAX: usize = 5;

/// Parameters listed; further optional ones become `…`.
const PARAMETERS_MAX: usize = 10;

/// Required parameters listed; a call cannot be written without them, so only absurd schemas have
/// more.
const REQUIRED_MAX: usize = 50;

/// The longest name of a parameter and the longest value of an enum, in characters; real calls have
/// shorter ones.
const NAME_CHARS_MAX: usize = 64;

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
    let is_required = |name: &str| required.contains(&name);
    let required_count = properties.keys().filter(|name| is_required(name)).count();
    let mut optional_left = PARAMETERS_MAX.saturating_sub(required_count);
    let mut required_left = REQUIRED_MAX;
    let mut parts = Vec::new();
    for (name, property) in properties {
        let (left, mark) =
            if is_required(name) { (&mut required_left, "*") } else { (&mut optional_left, "") };
        if *left > 0 {
            *left -= 1;
            parts.push(format!("{}{mark}:{}", cut(name, NAME_CHARS_MAX), kind(property)));
        }
    }
    if parts.len() < properties.len() {
        parts.push(match required_count.saturating_sub(REQUIRED_MAX) {
            0 => "…".to_owned(),
            more => format!("… {more} more required"),
        });
    }
    format!("({})", parts.join(", "))
}

fn kind(property: &Value) -> String {
    if let Some(values) = property["enum"].as_array() {
        let mut words: Vec<String> = values
            .iter()
            .take(ENUM_VALUES_MAX)
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .map(|word| cut(&word, NAME_CHARS_MAX))
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
    cut(&line[..end], SENTENCE_CHARS_MAX)
}

/// Cuts a text to this many characters.
pub fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
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
    fn every_required_parameter_is_listed() {
        let schema = |required: usize, optional: usize| {
            let names: Vec<String> = (0..required).map(|n| format!("r{n:03}")).collect();
            let mut properties = serde_json::Map::new();
            for name in (0..optional).map(|n| format!("o{n:03}")).chain(names.iter().cloned()) {
                properties.insert(name, serde_json::json!({"type": "string"}));
            }
            of(Some(&serde_json::json!({"properties": properties, "required": names}).to_string()))
        };
        let signature = schema(12, 12);
        assert_eq!(signature.matches("*:str").count(), 12);
        assert!(!signature.contains("o000") && signature.ends_with(", …)"), "{signature}");
        let signature = schema(3, 12);
        assert_eq!(signature.matches("o0").count(), PARAMETERS_MAX - 3);
        let signature = schema(REQUIRED_MAX + 7, 0);
        assert!(signature.ends_with("… 7 more required)"), "{signature}");
    }

    #[test]
    fn a_description_is_cut_at_its_first_sentence() {
        assert_eq!(first_sentence("Reads a file. Then more."), "Reads a file.");
        assert_eq!(first_sentence("  One line\nTwo"), "One line");
        assert_eq!(first_sentence(&"x".repeat(500)).chars().count(), SENTENCE_CHARS_MAX + 1);
        assert_eq!(first_sentence(""), "");
    }
}
