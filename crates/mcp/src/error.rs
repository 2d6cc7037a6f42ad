//! JSON-RPC errors. A received error is forwarded as its original text, including members we do not
//! know.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::raw::{Raw, to_raw};

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;
/// From the range reserved for servers: the peer has too many requests in flight.
pub const OVERLOADED: i64 = -32000;

#[derive(Clone)]
pub struct ErrorObject {
    pub code: i64,
    pub message: String,
    text: Raw,
}

#[derive(Serialize, Deserialize)]
struct WireError<'a> {
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
}

impl ErrorObject {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        let message = message.into();
        let text = to_raw(&WireError { code, message: message.clone(), data: None });
        ErrorObject { code, message, text }
    }

    pub fn with_data(self, data: &impl Serialize) -> Self {
        let data = to_raw(data);
        let wire = WireError { code: self.code, message: self.message, data: Some(&data) };
        let text = to_raw(&wire);
        ErrorObject { code: wire.code, message: wire.message, text }
    }

    pub fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("method not found: {method}"))
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    /// The error as received, or as it will be written.
    pub fn text(&self) -> &RawValue {
        &self.text
    }

    /// Reads an error, whose text is kept.
    pub fn parse(text: &RawValue) -> Result<Self, serde_json::Error> {
        let wire: WireError<'_> = serde_json::from_str(text.get())?;
        Ok(ErrorObject { code: wire.code, message: wire.message, text: text.to_owned() })
    }
}

impl fmt::Debug for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.get())
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ErrorObject {}
