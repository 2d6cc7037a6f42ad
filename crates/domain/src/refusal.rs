//! A refusal: the rejected action, as text for the caller and as members for programs.

use serde_json::{Value, json};

use crate::code::Code;
use redact::BUILTIN;
use text::near;

/// Characters of an invalid value that a refusal repeats.
const PROVIDED_CHARS_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub code: Code,
    pub message: String,
    pub details: Value,
}

/// The rule that a parameter breaks.
pub struct ParameterRule<'a> {
    pub parameter: &'a str,
    /// A noun phrase, such as "a whole number from 1 to 100".
    pub expected: &'a str,
    /// Correct parameters of the same call.
    pub example: Value,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Refusal { code, message: message.into(), details: json!({}) }
    }

    pub fn with(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// Adds one member to the details.
    pub fn with_member(mut self, name: &str, value: Value) -> Self {
        if let Value::Object(details) = &mut self.details {
            details.insert(name.to_owned(), value);
        }
        self
    }

    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Refusal::new(Code::InvalidArguments, message)
    }

    /// Refuses a value that breaks the rule.
    pub fn wrong_parameter(rule: ParameterRule<'_>, provided: &Value) -> Self {
        let ParameterRule { parameter, expected, example } = rule;
        let provided = shown(provided);
        let message = match &provided {
            Value::String(text) => format!("{parameter} must be {expected}, got \"{text}\""),
            other => format!("{parameter} must be {expected}, got {other}"),
        };
        Refusal::invalid_arguments(message).with(json!({
            "parameter": parameter,
            "expected": expected,
            "provided": provided,
            "example": example,
        }))
    }

    /// Refuses a call without a parameter that it needs.
    pub fn missing_parameter(rule: ParameterRule<'_>) -> Self {
        let ParameterRule { parameter, expected, example } = rule;
        Refusal::invalid_arguments(format!("{parameter} is required: {expected}"))
            .with(json!({"parameter": parameter, "expected": expected, "example": example}))
    }

    /// Refuses a parameter that is not among the known ones.
    pub fn unknown_parameter(parameter: &str, known: &[&str], example: Value) -> Self {
        let near = near::names(parameter, known.iter().copied(), 1);
        let words = match near.as_slice() {
            [] => format!(": expected {}", known.join(", ")),
            near => near::hint(near),
        };
        let parameter = shorten(parameter);
        Refusal::invalid_arguments(format!("unknown parameter '{parameter}'{words}"))
            .with(json!({"parameter": parameter, "expected": known, "example": example}))
    }

    /// Returns `{"error": {"code", "message", "details"}}`, the shape on every surface.
    pub fn to_json(&self) -> Value {
        let Refusal { code, message, details } = self;
        json!({"error": {"code": code.as_str(), "message": message, "details": details}})
    }
}

/// Returns the value, or the start of its text if it is long.
pub(crate) fn shown(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => shorten(text).into(),
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            if text.chars().nth(PROVIDED_CHARS_MAX).is_none() {
                return value.clone();
            }
            shorten(&text).into()
        }
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(PROVIDED_CHARS_MAX) {
        // A secret is recognised only as a whole.
        Some(_) => {
            let text = BUILTIN.text(text);
            let end = text.char_indices().nth(PROVIDED_CHARS_MAX).map(|(end, _)| end);
            end.map_or_else(|| text.to_string(), |end| format!("{}…", &text[..end]))
        }
        None => text.to_owned(),
    }
}
