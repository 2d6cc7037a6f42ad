//! What the outside knows and a workflow is checked against, as plain values.

use std::collections::{BTreeMap, BTreeSet};

use super::Provider;

/// Empty, it knows no server and no plugin, and every provider can be isolated.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// The servers of the config.
    pub servers: BTreeSet<String>,
    pub plugins: BTreeMap<String, KnownPlugin>,
    /// By the provider, and by `options.command` where a step names the program; those that are not
    /// in it can be isolated.
    pub isolation: BTreeMap<(Provider, Option<String>), IsolationSupport>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownPlugin {
    Approved {
        operations: BTreeSet<String>,
    },
    /// Found in the project and never started, so that nothing is known of its operations.
    NotApproved,
    /// Found, and not of any use, for this reason.
    Unusable(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IsolationSupport {
    /// The agent's own tools can be taken away.
    Full,
    /// They stay beside ours, for this reason.
    Coexistence(String),
}

impl Inventory {
    /// Why the provider, or the program that stands for it, keeps its own tools, if it does.
    pub fn coexistence(&self, provider: Provider, command: Option<&str>) -> Option<&str> {
        match self.isolation.get(&(provider, command.map(str::to_owned))) {
            Some(IsolationSupport::Coexistence(reason)) => Some(reason),
            Some(IsolationSupport::Full) | None => None,
        }
    }
}
