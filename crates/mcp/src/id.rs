//! Request ids: a string or an integer, which are never equal to each other; nothing else is valid.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    Number(i64),
    Text(Box<str>),
}

impl From<i64> for Id {
    fn from(number: i64) -> Self {
        Id::Number(number)
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        Id::Text(text.into())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Number(number) => write!(f, "{number}"),
            Id::Text(text) => f.write_str(text),
        }
    }
}
