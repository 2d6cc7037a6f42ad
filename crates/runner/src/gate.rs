//! What a run is handed to reach tools with: a gate of its own for each step.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::Caller;
use domain::tool::ToolName;
use futures_util::future::BoxFuture;
use provider::{Gate, TraceContext};
use tokio::io::DuplexStream;

/// What is wanted of a step's gate.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Workflow, step and provider: who calls, in the records.
    pub agent: String,
    /// The folder that built-in tools work in.
    pub root: PathBuf,
    pub builtins: bool,
    /// Those of the configuration that the step may use as well.
    pub servers: Vec<String>,
    /// The longest that one call of Bash may be given.
    pub patience: Duration,
    /// The span that calls belong under.
    pub trace: TraceContext,
}

/// Opens gates.
pub trait Gates: Send + Sync {
    /// The words of an error are for people.
    fn open(&self, wanted: Wanted) -> BoxFuture<'_, Result<Arc<dyn StepGate>, String>>;
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
