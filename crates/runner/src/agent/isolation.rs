//! Whether a program can be left with no tools but ours.

use crate::agent::program::Provider;

/// What a model is told where its program's own tools cannot be taken away.
pub const COEXISTENCE_LINE: &str = "Use only MCP tools, never built-in tools.";

/// Whether the program's own tools can be taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Isolation {
    Full,
    Coexistence { reason: String },
}

impl Isolation {
    /// What people are told of a step that could not be isolated.
    pub fn warning(&self, provider: Provider) -> Option<String> {
        match self {
            Isolation::Full => None,
            Isolation::Coexistence { .. } => Some(workflow::coexistence(provider.into())),
        }
    }
}
