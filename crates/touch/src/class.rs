//! The effect of a call on the world: the class that an agent declares, and the hints of a server.

use std::fmt;

/// The effect of a call on the world, from least to most severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    Read,
    Write,
    Destructive,
}

impl Class {
    pub const ALL: [Class; 3] = [Class::Read, Class::Write, Class::Destructive];

    pub fn as_str(self) -> &'static str {
        match self {
            Class::Read => "read",
            Class::Write => "write",
            Class::Destructive => "destructive",
        }
    }

    pub fn parse(text: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.as_str() == text)
    }

    /// Returns the gate's tool through which an agent declares this class.
    pub fn variant(self) -> &'static str {
        match self {
            Class::Read => "call_tool_read",
            Class::Write => "call_tool_write",
            Class::Destructive => "call_tool_destructive",
        }
    }

    pub fn from_variant(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.variant() == name)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A tool's own annotations. A hint that is not a boolean counts as absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub open_world: Option<bool>,
}

impl Hints {
    /// Returns the class; a tool with both hints true is destructive.
    pub fn class(self) -> Class {
        match (self.destructive, self.read_only) {
            (Some(true), _) => Class::Destructive,
            (_, Some(true)) => Class::Read,
            _ => Class::Write,
        }
    }

    /// Reports whether the server gave neither hint.
    pub fn unverified(self) -> bool {
        self.read_only.is_none() && self.destructive.is_none()
    }
}
