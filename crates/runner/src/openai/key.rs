//! The key of a model's server. It is sent in one header and appears nowhere else: it is removed
//! from the server's texts before anyone reads them.

use http::HeaderValue;
use serde_json::Value;

/// The replacement for a key.
const REDACTED: &str = "[redacted]";

/// Shorter keys are placeholders for servers that require any key at all ("test", "ollama"); in an
/// answer, those words mean something else.
const SECRET_BYTES_MIN: usize = 16;

/// In errors, redacting too much does no harm, except for very short texts that occur everywhere.
const WORD_BYTES_MIN: usize = 4;

/// A secret: it has no `Debug`.
#[derive(Clone, Default)]
pub struct Key(Option<String>);

impl Key {
    /// Trims the key, since a file may leave a line break after it.
    pub(super) fn new(key: Option<&str>) -> Key {
        Key(key.map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned))
    }

    pub fn is_given(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the authorization header, if there is a key.
    pub(super) fn bearer(&self) -> Result<Option<HeaderValue>, &'static str> {
        let Some(key) = &self.0 else { return Ok(None) };
        Key(Some(format!("Bearer {key}"))).header()
    }

    /// Returns the key as the value of a header.
    pub(super) fn header(&self) -> Result<Option<HeaderValue>, &'static str> {
        let Some(key) = &self.0 else { return Ok(None) };
        let mut value = HeaderValue::from_str(key).map_err(
            |_| "the api_key contains characters that are not allowed in an HTTP header",
        )?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// Removes the key from an error.
    pub(super) fn clear(&self, text: &str) -> String {
        self.without(text, WORD_BYTES_MIN)
    }

    /// Removes the key from a model's text.
    pub(super) fn clear_said(&self, text: &mut String) {
        if self.0.as_ref().is_some_and(|key| text.contains(key.as_str())) {
            *text = self.without(text, SECRET_BYTES_MIN);
        }
    }

    /// Removes the key from every text of a value.
    pub(super) fn clear_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.clear_said(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clear_value(item)),
            Value::Object(members) => {
                members.values_mut().for_each(|member| self.clear_value(member));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn without(&self, text: &str, bytes_min: usize) -> String {
        match &self.0 {
            Some(key) if key.len() >= bytes_min => text.replace(key.as_str(), REDACTED),
            Some(_) | None => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_redacted_and_ordinary_words_are_kept() {
        for (key, error, said) in [
            ("sk-0123456789abcdef", "bad [redacted]!", "bad [redacted]!"),
            ("hunter22", "bad [redacted]!", "bad hunter22!"),
            ("a", "bad a!", "bad a!"),
        ] {
            let key_given = Key::new(Some(&format!(" {key}\n")));
            let text = format!("bad {key}!");
            assert_eq!(key_given.clear(&text), error);
            let mut heard = text.clone();
            key_given.clear_said(&mut heard);
            assert_eq!(heard, said);
        }
        assert!(!Key::new(Some(" \n")).is_given());
        assert!(Key::new(Some("a\nb")).bearer().is_err());
        let header = Key::new(Some("abc")).bearer().unwrap().unwrap();
        assert!(header.is_sensitive() && header == "Bearer abc");
    }
}
