//! JSON as text: what is not understood is kept and passed on to the letter.

use serde_json::value::RawValue;

/// JSON text that is passed on as it is.
pub type Raw = Box<RawValue>;

/// Text that is known to be JSON because this program wrote it.
pub fn raw(text: String) -> Raw {
    RawValue::from_string(text).expect("written by us as JSON")
}

/// Any value as raw JSON; the value's `Serialize` must not fail.
pub fn to_raw(value: &impl serde::Serialize) -> Raw {
    serde_json::value::to_raw_value(value).expect("plain data serialises")
}
