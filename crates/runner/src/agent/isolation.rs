//! Isolation: an agent program without any tools but ours.

use crate::agent::program::Provider;

/// The instruction to a model whose program's own tools cannot be disabled.
pub const COEXISTENCE_LINE: &str = "Use only MCP tools, never built-in tools.";

/// The degree to which a program's own tools can be disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Isolation {
    Full,
    Coexistence { reason: String },
}

impl Isolation {
    /// The warning about a step that could not be isolated.
    pub fn warning(&self, provider: Provider) -> Option<String> {
        match self {
            Isolation::Full => None,
            Isolation::Coexistence { reason } => {
                Some(workflow::coexistence(provider.into(), reason))
            }
        }
    }
}
