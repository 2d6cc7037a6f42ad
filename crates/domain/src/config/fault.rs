//! The reports on a config: faults, which reject it, and notes, which do not.

use std::fmt;

use text::document::Location;

/// A fault at one position of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFault {
    pub location: Location,
    pub message: String,
}

/// A remark on one position of the text; the config is still valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub location: Location,
    pub message: String,
}

/// Every fault of a text, in text order; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    pub list: Vec<ConfigFault>,
    /// The number of faults beyond the limit.
    pub left_out: usize,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.location, self.message)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.location, self.message)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.list.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(f, "{newline}{fault}")?;
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Faults {}
