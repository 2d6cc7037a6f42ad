//! The operations that a caller may perform, and the surfaces that it may use.

use crate::tool::Class;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operations {
    pub read: bool,
    pub write: bool,
    pub destructive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnannotatedRule {
    Allow,
    Deny,
}

/// A surface that a token must grant. Other surfaces do not accept tokens at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenSurface {
    /// The gate's own tools, with a declared intent.
    Discovery,
    /// The servers' own tools, without a declared intent.
    Passthrough,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surfaces {
    pub discovery: bool,
    pub passthrough: bool,
}

impl Operations {
    pub const ALL: Operations = Operations { read: true, write: true, destructive: true };
    pub const NONE: Operations = Operations { read: false, write: false, destructive: false };

    pub fn allow(self, class: Class) -> bool {
        match class {
            Class::Read => self.read,
            Class::Write => self.write,
            Class::Destructive => self.destructive,
        }
    }

    pub fn is_read_only(self) -> bool {
        self.read && !self.write && !self.destructive
    }
}

impl UnannotatedRule {
    pub const ALL: [UnannotatedRule; 2] = [UnannotatedRule::Allow, UnannotatedRule::Deny];

    pub fn as_str(self) -> &'static str {
        match self {
            UnannotatedRule::Allow => "allow",
            UnannotatedRule::Deny => "deny",
        }
    }
}

impl TokenSurface {
    pub const ALL: [TokenSurface; 2] = [TokenSurface::Discovery, TokenSurface::Passthrough];

    pub fn as_str(self) -> &'static str {
        match self {
            TokenSurface::Discovery => "discovery",
            TokenSurface::Passthrough => "passthrough",
        }
    }
}

impl Surfaces {
    pub const ALL: Surfaces = Surfaces { discovery: true, passthrough: true };
    pub const DISCOVERY: Surfaces = Surfaces { discovery: true, passthrough: false };

    pub fn include(self, surface: TokenSurface) -> bool {
        match surface {
            TokenSurface::Discovery => self.discovery,
            TokenSurface::Passthrough => self.passthrough,
        }
    }
}
