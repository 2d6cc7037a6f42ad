//! A value that is elsewhere, named in place of the value.

use std::fmt;
use std::str::FromStr;

/// A value that the gate would put into an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// An environment variable of the gate.
    Variable(String),
    /// A secret of the gate's store.
    Secret(String),
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Variable(name) => write!(f, "env:{name}"),
            Reference::Secret(name) => write!(f, "secret:{name}"),
        }
    }
}

impl FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Reference, String> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(Reference::Variable(name.to_owned())),
            Some(("secret", name)) if !name.is_empty() => Ok(Reference::Secret(name.to_owned())),
            Some(_) | None => Err("expected env:NAME or secret:NAME".to_owned()),
        }
    }
}
