//! The facts from outside that a workflow is checked against, as plain values.

use std::collections::{BTreeMap, BTreeSet};

use super::Provider;

/// Known servers, plugins and isolation support. The default knows no server or plugin, and every
/// provider can be isolated.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// The servers of the config.
    pub servers: BTreeSet<String>,
    pub plugins: BTreeMap<String, KnownPlugin>,
    /// Isolation support by provider, and by `options.command` if a step names the program.
    /// Providers not listed can be isolated.
    pub isolation: BTreeMap<(Provider, Option<String>), IsolationSupport>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownPlugin {
    Approved {
        operations: BTreeSet<String>,
    },
    /// Found in the project but never started, so its operations are unknown.
    NotApproved,
    /// Found but unusable, for this reason.
    Unusable(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IsolationSupport {
    /// The agent's own tools can be removed.
    Full,
    /// The agent's own tools remain available next to ours, for this reason.
    Coexistence(String),
}

impl Inventory {
    /// Returns the reason that the provider, or the program that replaces it, keeps its own tools.
    pub fn coexistence(&self, provider: Provider, command: Option<&str>) -> Option<&str> {
        match self.isolation.get(&(provider, command.map(str::to_owned))) {
            Some(IsolationSupport::Coexistence(reason)) => Some(reason),
            Some(IsolationSupport::Full) | None => None,
        }
    }
}
