//! Values that are known to be secret, whatever they look like: the keys of the home, and what the
//! gate itself handed to a server.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use memchr::memmem::Finder;

use super::REDACTED;

/// Shorter values also occur in ordinary text, which would lose its meaning.
const VALUE_BYTES_MIN: usize = 6;

/// A line of a longer value counts as a value if it has this many bytes: text that passes line by
/// line never has all of it.
const LINE_BYTES_MIN: usize = 16;

/// Values to keep besides those of the home; each is searched for in every text. Beyond it the oldest
/// are forgotten.
const VALUES_MAX: usize = 256;

/// The known values. Clones share them.
#[derive(Clone, Default)]
pub struct KnownSecrets {
    inner: Arc<Known>,
}

#[derive(Default)]
struct Known {
    /// Most gates know none, and then nothing is searched for.
    is_any: AtomicBool,
    values: RwLock<Values>,
}

#[derive(Default)]
struct Values {
    /// The keys of the home, which are never forgotten.
    lasting: Vec<KnownValue>,
    passing: Vec<KnownValue>,
}

struct KnownValue {
    text: String,
    /// Prepared once: it is searched for in every text.
    finder: Finder<'static>,
}

impl KnownSecrets {
    /// Adds a value, which is removed from every text from here on.
    pub fn add(&self, value: &str) {
        let mut values = self.inner.values.write().unwrap_or_else(PoisonError::into_inner);
        self.push(&mut values.passing, value);
        let excess = values.passing.len().saturating_sub(VALUES_MAX);
        values.passing.drain(..excess);
    }

    /// Adds a value that stays, however many others are added.
    pub fn keep(&self, value: &str) {
        let mut values = self.inner.values.write().unwrap_or_else(PoisonError::into_inner);
        self.push(&mut values.lasting, value);
    }

    fn push(&self, values: &mut Vec<KnownValue>, value: &str) {
        let lines = value.lines().filter(|line| line.len() >= LINE_BYTES_MIN && *line != value);
        let whole = Some(value).filter(|value| value.len() >= VALUE_BYTES_MIN);
        // The whole comes first: it has its lines in it.
        for value in whole.into_iter().chain(lines) {
            if !values.iter().any(|known| known.text == value) {
                let finder = Finder::new(value).into_owned();
                values.push(KnownValue { text: value.to_owned(), finder });
                self.inner.is_any.store(true, Ordering::Release);
            }
        }
    }

    /// Forgets a value that is of no use any more, such as a token that was replaced.
    pub fn remove(&self, value: &str) {
        let mut values = self.inner.values.write().unwrap_or_else(PoisonError::into_inner);
        values.passing.retain(|known| known.text != value);
    }

    /// Reports whether there may be any.
    pub(super) fn is_any(&self) -> bool {
        self.inner.is_any.load(Ordering::Acquire)
    }

    /// Returns the text without the values; `None` if it has none.
    pub fn redact(&self, text: &str) -> Option<String> {
        if !self.is_any() {
            return None;
        }
        let values = self.inner.values.read().unwrap_or_else(PoisonError::into_inner);
        let mut redacted: Option<String> = None;
        for value in values.lasting.iter().chain(&values.passing) {
            let now = redacted.as_deref().unwrap_or(text);
            if value.finder.find(now.as_bytes()).is_some() {
                redacted = Some(now.replace(&value.text, REDACTED));
            }
        }
        redacted
    }
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KnownSecrets")
    }
}

#[cfg(test)]
mod tests {
    use super::super::Redactor;
    use super::*;

    #[test]
    fn known_values_are_removed_from_every_text() {
        let redactor = Redactor::builtin();
        let plain = "tuesday-lunch at noon";
        assert_eq!(redactor.text(plain), plain);
        redactor.known().add("tuesday-lunch");
        redactor.known().add("noon");
        assert_eq!(redactor.text(plain), "[redacted] at noon", "short ones are words");
        let mut value = serde_json::json!({"a": ["x tuesday-lunch"], "b": 7});
        assert!(redactor.value(&mut value));
        assert_eq!(value, serde_json::json!({"a": ["x [redacted]"], "b": 7}));
        let mut other = Redactor::builtin();
        other.share(redactor.known());
        assert_eq!(other.text(plain), "[redacted] at noon");
    }

    #[test]
    fn lines_of_a_known_value_are_removed_too() {
        let known = KnownSecrets::default();
        let value = "first-line-of-a-key\nsecond-line-of-key\nshort";
        known.add(value);
        assert_eq!(known.redact(&format!("<{value}>")).as_deref(), Some("<[redacted]>"));
        assert_eq!(known.redact("> second-line-of-key").as_deref(), Some("> [redacted]"));
        assert_eq!(known.redact("short"), None);
    }

    #[test]
    fn the_number_of_known_values_is_bounded() {
        let known = KnownSecrets::default();
        known.keep("key-of-the-home");
        for number in 0..=VALUES_MAX {
            known.add(&format!("value-{number:04}"));
        }
        assert_eq!(known.redact("key-of-the-home").as_deref(), Some(REDACTED));
        assert_eq!(known.redact("value-0000"), None);
        assert_eq!(known.redact("value-0001").as_deref(), Some(REDACTED));
    }
}
