//! A run's access to tools: a separate gate for each step.

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

/// The requirements for a step's gate.
#[derive(Clone, Debug)]
pub struct GateRequest {
    /// Workflow, step and provider: the caller in the records.
    pub agent: String,
    /// The folder that built-in tools work in.
    pub root: PathBuf,
    pub builtins: bool,
    /// Configured servers that the step may also use.
    pub servers: Vec<String>,
    pub plugins: Vec<PluginGrant>,
    /// The longest timeout of one Bash call.
    pub patience: Duration,
    /// Bytes of a command's output to keep, if not those that an agent would read.
    pub kept_bytes: Option<usize>,
    /// Environment variables withheld from commands.
    pub withheld: Vec<String>,
    /// The parent span of the calls.
    pub trace: TraceContext,
    /// Cancelled when nothing waits for the gate any more.
    pub cancel: CancellationToken,
}

/// The operations of a plugin that a step may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginGrant {
    pub plugin: String,
    pub operations: BTreeSet<String>,
}

impl PluginGrant {
    pub fn one(plugin: &str, operation: &str) -> PluginGrant {
        PluginGrant { plugin: plugin.to_owned(), operations: [operation.to_owned()].into() }
    }

    /// Collects a step's plugin tools from the workflow, each plugin once.
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

/// Opens the gates of steps.
pub trait Gates: Send + Sync {
    fn open(&self, request: GateRequest) -> BoxFuture<'_, Result<Arc<dyn StepGate>, Refusal>>;
}

/// A step's own gate. It shares only the ledger with other steps.
pub trait StepGate: Send + Sync {
    /// Returns a folder that only the person can enter, for the step's files; removed when the gate
    /// is closed.
    fn private(&self) -> &Path;

    /// Returns the program and arguments with which an agent starts its end of the connection.
    fn server(&self) -> (PathBuf, Vec<String>);

    /// Opens a connection for an agent in this process, served like any other.
    fn connect(&self) -> DuplexStream;

    fn gate(&self) -> &dyn Gate;

    /// Returns the tool that runs commands, if built-in tools were requested.
    fn shell(&self) -> ToolName;

    /// Returns the tool for a plugin's operation.
    fn operation(&self, plugin: &str, operation: &str) -> ToolName;

    /// Returns the time limit of one call.
    fn call_timeout(&self) -> Duration;

    fn caller(&self) -> Arc<Caller>;

    /// Reports whether an agent has requested the list of tools.
    fn was_listed(&self) -> bool;

    /// Returns the number of calls so far.
    fn calls(&self) -> u64;

    /// Returns the sessions under which calls were recorded.
    fn sessions(&self) -> Vec<String>;

    /// Records that the agent's program used one of its own tools, bypassing the gate.
    fn bypassed<'a>(&'a self, program: &'a str, tool: &'a str) -> BoxFuture<'a, ()>;

    /// Ends whatever still runs, and removes the files.
    fn close(&self) -> BoxFuture<'_, ()>;
}
