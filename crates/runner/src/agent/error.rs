//! Errors in starting an agent.

use std::path::PathBuf;
use std::time::Duration;

use domain::Code;

use crate::agent::program::Provider;

/// Reasons why an agent cannot be started as requested.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("program '{program}' not found: install it on PATH, or set options.command")]
    Missing { program: String },
    #[error("cannot run {}: {cause}", .program.display())]
    NotRunnable { program: PathBuf, cause: String },
    #[error("{} did not respond to {question} within {} s", .program.display(), .after.as_secs())]
    Hangs { program: PathBuf, question: String, after: Duration },
    #[error("{} {question} failed: {words}", .program.display())]
    Crashes { program: PathBuf, question: String, words: String },
    #[error("{} {version} is too old: it does not support {}", .program.display(), .lacks.join(", "))]
    TooOld { program: PathBuf, version: String, lacks: Vec<String> },
    /// Holds all faults at once.
    #[error("options would weaken the isolation of {provider}: {faults}", provider = .provider.as_str(), faults = .faults.join("; "))]
    LoosensIsolation { provider: Provider, faults: Vec<String> },
    /// A file that the program reads cannot be shut off.
    #[error("{provider} cannot be isolated here: {reason}", provider = .provider.as_str())]
    CannotIsolate { provider: Provider, reason: String },
    /// The program announced tools that are not ours, and was ended.
    #[error("{provider} started with tools that are not the gate's and was ended: {tools}", provider = .provider.as_str(), tools = .tools.join(", "))]
    NotIsolated { provider: Provider, tools: Vec<String> },
    #[error("{0}")]
    BadOption(String),
    #[error("the prompt is empty")]
    EmptyPrompt,
    #[error("the prompt has {size} {unit}, but {provider} accepts at most {max}: put the text into a file", provider = .provider.as_str())]
    PromptTooLarge { provider: Provider, size: usize, max: usize, unit: &'static str },
    #[error("cannot read {}: {cause}", .path.display())]
    Unreadable { path: PathBuf, cause: String },
}

impl AgentError {
    /// The stable code of the error.
    pub fn code(&self) -> Code {
        match self {
            AgentError::Missing { .. }
            | AgentError::NotRunnable { .. }
            | AgentError::Hangs { .. }
            | AgentError::Crashes { .. }
            | AgentError::TooOld { .. }
            | AgentError::Unreadable { .. } => Code::AgentFailed,
            AgentError::LoosensIsolation { .. } => Code::WorkflowIsolation,
            AgentError::CannotIsolate { .. } | AgentError::NotIsolated { .. } => {
                Code::AgentNotIsolated
            }
            AgentError::BadOption(_)
            | AgentError::EmptyPrompt
            | AgentError::PromptTooLarge { .. } => Code::InvalidArguments,
        }
    }
}
