//! A refusal: the rejected action, as text for the caller and as members for programs.

use serde_json::{Value, json};

use crate::code::Code;

#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub code: Code,
    pub message: String,
    pub details: Value,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Refusal { code, message: message.into(), details: json!({}) }
    }

    pub fn with(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Refusal::new(Code::InvalidArguments, message)
    }

    /// Returns `{"error": {"code", "message", "details"}}`, the shape on every surface.
    pub fn to_json(&self) -> Value {
        let Refusal { code, message, details } = self;
        json!({"error": {"code": code.as_str(), "message": message, "details": details}})
    }
}
