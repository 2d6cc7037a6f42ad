//! The steps of a run: a command, an agent, a model called by this process, or an operation of a
//! plugin.

mod agent;
mod attempt;
mod call;
mod command;
mod last_words;
mod limits;
mod openai;
mod operation;

pub use agent::{StepFolders, command_in, request, tools};
pub(crate) use attempt::{Attempt, AttemptResult};
