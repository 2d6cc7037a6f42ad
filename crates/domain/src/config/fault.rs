//! What a person is told about a config: faults, which refuse it, and notes, which do not.

use std::fmt;

use crate::document::Location;

/// Something wrong at one place of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFault {
    pub location: Location,
    pub message: String,
}

/// Something to know about one place of the text; the config holds all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub location: Location,
    pub message: String,
}

/// Every fault of a text, in its order; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    pub list: Vec<ConfigFault>,
    /// Faults beyond the bound on the list.
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
