//! What a run is handed to reach tools with: a gate of its own for each step.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::tool::ToolName;
use domain::{Caller, Refusal};
use futures_util::future::BoxFuture;
use provider::{Gate, TraceContext};
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;
use workflow::PluginTools;

/// What is wanted of a step's gate.
#[derive(Clone, Debug)]
pub struct GateRequest {
    /// Workflow, step and provider: who calls, in the records.
    pub agent: String,
    /// The folder that built-in tools work in.
    pub root: PathBuf,
    pub builtins: bool,
    /// Those of the configuration that the step may use as well.
    pub servers: Vec<String>,
    pub plugins: Vec<PluginGrant>,
    /// The longest that one call of Bash may be given.
    pub patience: Duration,
    /// Variables of the environment that commands are not to see.
    pub withheld: Vec<String>,
    /// The span that calls belong under.
    pub trace: TraceContext,
    /// Nobody waits for the gate any more.
    pub cancel: CancellationToken,
}

/// What a step may use of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginGrant {
    pub plugin: String,
    pub operations: BTreeSet<String>,
}

impl PluginGrant {
    pub fn one(plugin: &str, operation: &str) -> PluginGrant {
        PluginGrant { plugin: plugin.to_owned(), operations: [operation.to_owned()].into() }
    }

    /// What a workflow says of a step, each plugin once.
    pub fn of(tools: &[PluginTools]) -> Vec<PluginGrant> {
        let mut by_name: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for tools in tools {
            by_name.entry(&tools.plugin).or_default().extend(tools.expose.iter().cloned());
        }
        let grants = by_name.into_iter();
        grants
            .map(|(plugin, operations)| PluginGrant { plugin: plugin.to_owned(), operations })
            .collect()
    }
}

/// Opens gates.
pub trait Gates: Send + Sync {
    fn open(&self, request: GateRequest) -> BoxFuture<'_, Result<Arc<dyn StepGate>, Refusal>>;
}

/// A step's own gate. Nothing of it is shared with other steps but the ledger.
pub trait StepGate: Send + Sync {
    /// A folder that only the person can enter, for the step's files; gone when the gate is closed.
    fn private(&self) -> &Path;

    /// The program and the arguments with which an agent starts its end of the connection.
    fn server(&self) -> (PathBuf, Vec<String>);

    /// A new connection to it for an agent in this process, which is served like those of others.
    fn connect(&self) -> DuplexStream;

    fn gate(&self) -> &dyn Gate;

    /// The tool that runs commands, where built-in tools were wanted.
    fn shell(&self) -> ToolName;

    /// The tool that a plugin's operation is.
    fn operation(&self, plugin: &str, operation: &str) -> ToolName;

    /// The longest that one call may take.
    fn call_timeout(&self) -> Duration;

    /// Who calls.
    fn caller(&self) -> Arc<Caller>;

    /// Whether an agent has asked which tools there are.
    fn was_listed(&self) -> bool;

    /// Calls so far.
    fn calls(&self) -> u64;

    /// The sessions under which calls were recorded.
    fn sessions(&self) -> Vec<String>;

    /// Records that the agent's program used a tool of its own, past the gate.
    fn bypassed<'a>(&'a self, program: &'a str, tool: &'a str) -> BoxFuture<'a, ()>;

    /// Ends what still runs, and removes the files.
    fn close(&self) -> BoxFuture<'_, ()>;
}
