//! A token or client secret in memory.

/// A secret text, which cannot be printed by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    pub fn new(text: impl Into<String>) -> SecretText {
        SecretText(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}
