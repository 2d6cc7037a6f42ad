//! What is told to the person about a config: faults, which refuse it, and notes, which do not.

use std::fmt;

/// Something wrong at one place of the text. Line and column count characters from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The key, as `mcpServers.github.args[1]`; empty for the text as a whole.
    pub path: String,
    pub line: u32,
    pub column: u32,
    pub message: String,
}

/// Something to know about one place of the text; the config holds all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub path: String,
    pub line: u32,
    pub column: u32,
    pub message: String,
}

/// Every fault of a text, in its order; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    pub list: Vec<Fault>,
    /// Faults beyond the bound on the list.
    pub left_out: usize,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        told(f, (self.line, self.column), &self.path, &self.message)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        told(f, (self.line, self.column), &self.path, &self.message)
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

fn told(
    f: &mut fmt::Formatter<'_>,
    (line, column): (u32, u32),
    path: &str,
    message: &str,
) -> fmt::Result {
    write!(f, "line {line}, column {column}: ")?;
    if !path.is_empty() {
        write!(f, "{path}: ")?;
    }
    f.write_str(message)
}
