//! Foreign JSON, passed on byte for byte.

use mcp::Raw;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// JSON exactly as it was written. Only its sender knows what the bytes mean, so numbers are not
/// reformatted and members are not sorted.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Verbatim(Raw);

impl Verbatim {
    /// Takes JSON text, or quotes it as a string if it is not JSON.
    pub fn of(text: &str) -> Verbatim {
        match serde_json::value::RawValue::from_string(text.to_owned()) {
            Ok(raw) => Verbatim(raw),
            Err(_) => Verbatim(mcp::message::to_raw(&text)),
        }
    }

    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Parses the text, for display.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or_default()
    }
}

impl From<Raw> for Verbatim {
    fn from(raw: Raw) -> Verbatim {
        Verbatim(raw)
    }
}

/// Reads by way of a value, which also works where serde buffers a response.
impl<'de> Deserialize<'de> for Verbatim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Verbatim, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(Verbatim(mcp::message::to_raw(&value)))
    }
}
