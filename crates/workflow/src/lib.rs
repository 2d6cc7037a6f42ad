//! Workflows: text in, a checked [`Workflow`] or every fault at once with its place out; then the
//! [`Machine`] that says what runs next. Nothing is run here: a driver does what the machine asks
//! for and tells it what came of it.

mod check;
mod condition;
mod fault;
mod inputs;
mod isolation;
mod known;
mod machine;
mod mention;
mod outcome;
mod plan;
mod read;
mod reference;
mod resolve;
mod retry;
mod shell;
mod source;
mod table;
mod template;
#[cfg(test)]
mod tests;
mod values;

pub use condition::Condition;
pub use fault::WorkflowFault;
pub use inputs::{InputType, Inputs, Validation, WorkflowInput};
pub use isolation::{ProgramRules, coexistence};
pub use known::{Inventory, IsolationSupport, KnownPlugin};
pub use machine::{Ending, Finish, Machine, MachineAction, MachineEvent};
pub use outcome::{Status, StepOutcome};
pub use plan::{
    AgentState, Demand, OnFailure, OpenAi, OperationState, Options, Parallel, PluginTools,
    Provider, Proxy, State, StateKind, Strategy, Terminal, TerminalStatus, Transition, Workflow,
};
pub use read::{Reading, read};
pub use resolve::{ApiKey, ResolvedAgent, ResolvedOptions, ResolvedStep};
pub use retry::{Backoff, Retry};
pub use shell::quoted;
pub use table::{BUILTINS, ToolSource, ToolTableEntry, not_approved, table, tool_name};
pub use template::Template;

/// What a run ends with when it failed and the workflow does not say otherwise.
pub const EXIT_FAILURE: u8 = 3;

/// What a run ends with that was cancelled: as a shell says of a program ended by Ctrl+C.
pub const EXIT_CANCELLED: u8 = 130;
