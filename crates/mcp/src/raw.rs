//! JSON as text: unknown content is kept and forwarded verbatim.

use serde_json::value::RawValue;

/// JSON text that is forwarded unchanged.
pub type Raw = Box<RawValue>;

/// Wraps text that is known to be JSON because this program wrote it.
pub fn raw(text: String) -> Raw {
    RawValue::from_string(text).expect("written by us as JSON")
}

/// Converts any value to raw JSON; the value's `Serialize` must not fail.
pub fn to_raw(value: &impl serde::Serialize) -> Raw {
    serde_json::value::to_raw_value(value).expect("plain data serialises")
}
