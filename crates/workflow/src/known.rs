//! The facts from outside that a workflow is checked against, as plain values.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Provider;

/// Known servers, plugins, agents and folders. The default knows no server or plugin; every agent
/// is installed and can be isolated, and every step's folder can be used.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// The servers of the config.
    pub servers: BTreeMap<String, ServerAvailability>,
    pub plugins: BTreeMap<String, KnownPlugin>,
    /// The programs of agents, by provider, and by `options.command` if a step names the program.
    /// Providers not listed can be isolated.
    pub agents: BTreeMap<(Provider, Option<String>), AgentSupport>,
    /// Faults of single steps, by the name of their state.
    pub steps: BTreeMap<String, StepFaults>,
}

/// The availability of a server in the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAvailability {
    Usable,
    /// A step that names it would fail, for this reason.
    Unusable(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum KnownPlugin {
    /// Its operations by name.
    Approved { operations: BTreeMap<String, KnownOperation> },
    /// Found in the project but never started, so its operations are unknown.
    NotApproved,
    /// Found but unusable, for this reason.
    Unusable(String),
}

/// An operation of a plugin.
#[derive(Clone, Debug, PartialEq)]
pub enum KnownOperation {
    /// It can be a tool, with this JSON Schema of its inputs.
    Usable { inputs: Value },
    /// It cannot be a tool, for this reason, which matters only to steps that use it.
    Unusable(String),
}

/// An agent's program on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentSupport {
    /// The agent's own tools can be removed.
    Full,
    /// The agent's own tools remain available next to ours, for this reason.
    Coexistence(String),
    /// The program is missing, too old or does not answer.
    Unusable(String),
}

/// The reasons that a step cannot start here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepFaults {
    pub folder: Option<FolderFault>,
    /// The options of `openai_compatible` that are missing or invalid.
    pub options: Vec<SettingFault>,
}

/// The reason that a step's folder cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderFault {
    /// It does not exist. An earlier step may create it.
    Missing(String),
    Unusable(String),
}

/// An option of a step, such as `base_url`, with the fault in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingFault {
    pub option: &'static str,
    pub message: String,
}

impl Inventory {
    /// Returns the reason that the provider, or the program that replaces it, keeps its own tools.
    pub fn coexistence(&self, provider: Provider, command: Option<&str>) -> Option<&str> {
        match self.agent(provider, command) {
            Some(AgentSupport::Coexistence(reason)) => Some(reason),
            Some(AgentSupport::Full | AgentSupport::Unusable(_)) | None => None,
        }
    }

    pub(super) fn agent(&self, provider: Provider, command: Option<&str>) -> Option<&AgentSupport> {
        self.agents.get(&(provider, command.map(str::to_owned)))
    }
}
