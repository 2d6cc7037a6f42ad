//! Workflows. Text is read into a checked [`Workflow`], or into a list of every fault with its
//! position; the [`Machine`] then decides what runs next. This crate runs nothing: a driver carries
//! out the machine's actions and reports their outcome.

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
mod resume;
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
pub use isolation::{OptionFault, OptionPart, ProgramOptions, ProgramRules, coexistence};
pub use known::{
    AgentSupport, FolderFault, Inventory, KnownOperation, KnownPlugin, ServerAvailability,
    SettingFault, StepFaults,
};
pub use machine::{Ending, Finish, Machine, MachineAction, MachineEvent};
pub use outcome::{OUTPUT_BYTES_MAX, Status, StepOutcome};
pub use plan::{
    AgentState, Demand, ModelApi, OnFailure, OpenAi, OperationState, Options, Parallel,
    PluginTools, Provider, Proxy, State, StateKind, Strategy, Terminal, TerminalStatus, Transition,
    Workflow,
};
pub use read::{Reading, draft, read};
pub use resolve::{HiddenText, ResolvedAgent, ResolvedOptions, ResolvedStep};
pub use resume::{PastStatus, PastStep, Resumption};
pub use retry::{Backoff, Retry};
pub use shell::quoted;
pub use table::{BUILTINS, ToolSource, ToolTableEntry, not_approved, table, tool_name};
pub use template::Template;

/// The exit code of a failed run, unless the workflow sets another.
pub const EXIT_FAILURE: u8 = 3;

/// The exit code of a cancelled run: the one that shells use for a program ended by Ctrl+C.
pub const EXIT_CANCELLED: u8 = 130;
