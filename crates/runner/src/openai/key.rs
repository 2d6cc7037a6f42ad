//! The key of a model's server. It goes into one header and nowhere else: what the server says is
//! cleared of it before anybody reads it.

use http::HeaderValue;

/// What stands where a key was.
const REDACTED: &str = "[redacted]";

/// Shorter ones are what people put where a server wants any key at all ("test", "ollama"); those
/// words mean something else in an answer.
const SECRET_BYTES_MIN: usize = 16;

/// In errors nothing is lost by leaving out more, but for a letter that is everywhere.
const WORD_BYTES_MIN: usize = 4;

/// A secret: it has no `Debug`.
#[derive(Clone, Default)]
pub struct Key(Option<String>);

impl Key {
    /// Without the line break that a file leaves behind it.
    pub(super) fn new(key: Option<&str>) -> Key {
        Key(key.map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned))
    }

    pub fn is_given(&self) -> bool {
        self.0.is_some()
    }

    /// The header that lets us in, where there is a key.
    pub(super) fn header(&self) -> Result<Option<HeaderValue>, &'static str> {
        let Some(key) = &self.0 else { return Ok(None) };
        let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
            .map_err(|_| "the api_key has characters that cannot be sent")?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// An error without the key.
    pub(super) fn clear(&self, text: &str) -> String {
        self.without(text, WORD_BYTES_MIN)
    }

    /// What a model said, without the key.
    pub(super) fn clear_said(&self, text: &mut String) {
        if self.0.as_ref().is_some_and(|key| text.contains(key.as_str())) {
            *text = self.without(text, SECRET_BYTES_MIN);
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
    fn a_key_is_cleared_and_a_word_that_is_none_stays() {
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
        assert!(Key::new(Some("a\nb")).header().is_err());
        let header = Key::new(Some("abc")).header().unwrap().unwrap();
        assert!(header.is_sensitive() && header == "Bearer abc");
    }
}
