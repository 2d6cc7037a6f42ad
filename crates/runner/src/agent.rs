//! The agent programs: how each is started so that our server is its source of tools, and how its
//! output is read. Starts nothing but the short questions of `Installed::detect`; processes, their
//! groups and their end are the driver's.

mod claude;
mod codex;
mod detect;
mod gemini;
mod ground;
mod guard;
mod launch;
mod opencode;
mod person;
mod stream;
mod toml;

use std::path::PathBuf;
use std::time::Duration;

use domain::Code;
use serde_json::Value;

pub use detect::{Installed, Search};
pub use launch::{Launch, prepare};
pub use person::Person;
pub use stream::{Cause, Event, Failed, LINE_BYTES_MAX, NativeCall, Report, Stream, Tokens};

/// What the agents know our server as; it is part of the names of its tools.
pub const SERVER_NAME: &str = "awf-proxy";

/// What a model is told where its program's own tools cannot be taken away.
pub const COEXISTENCE_LINE: &str = "Use only MCP tools, never built-in tools.";

/// The agent programs that can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provider {
    Claude,
    Gemini,
    Codex,
    OpenCode,
}

impl Provider {
    pub const ALL: [Provider; 4] =
        [Provider::Claude, Provider::Gemini, Provider::Codex, Provider::OpenCode];

    /// As workflows spell it; the program has the same name.
    pub fn as_str(self) -> &'static str {
        match self {
            Provider::Claude => "claude",
            Provider::Gemini => "gemini",
            Provider::Codex => "codex",
            Provider::OpenCode => "opencode",
        }
    }

    pub fn parse(name: &str) -> Option<Provider> {
        Provider::ALL.into_iter().find(|provider| provider.as_str() == name)
    }

    /// How long a prompt is as the program counts it, what it takes at most, and in which unit.
    /// Claude and Codex refuse more; Gemini would cut it.
    fn prompt_size(self, prompt: &str) -> (usize, usize, &'static str) {
        match self {
            Provider::Claude => (prompt.len(), 10_000_000, "bytes"),
            Provider::Gemini => (prompt.len(), 8 * 1024 * 1024, "bytes"),
            Provider::Codex => (prompt.chars().count(), 1024 * 1024, "characters"),
            Provider::OpenCode => (prompt.len(), 64 * 1024 * 1024, "bytes"),
        }
    }
}

/// Whether the program's own tools can be taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Isolation {
    Full,
    Coexistence { reason: String },
}

impl Isolation {
    /// What people are told of a step that could not be isolated.
    pub fn warning(&self, provider: Provider) -> Option<String> {
        match self {
            Isolation::Full => None,
            Isolation::Coexistence { .. } => Some(format!(
                "mcp_proxy on provider={} runs in coexistence mode. Built-in tools cannot be \
                 disabled and may bypass the proxy. Use 'claude' or 'openai_compatible' for \
                 guaranteed MCP-only isolation.",
                provider.as_str()
            )),
        }
    }
}

/// Which tools a step is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tools {
    /// The program's own, as the person has set it up: `mcp_proxy` is off.
    None,
    /// Ours alone: `intercept_builtins`.
    Only,
    /// Ours beside the program's own.
    Beside,
}

/// How the agent starts our server.
#[derive(Clone, Debug)]
pub struct Server {
    pub program: PathBuf,
    pub args: Vec<String>,
}

/// What a step asks of an agent. It may hold keys, so it is never shown.
#[derive(Clone)]
pub struct Request {
    pub prompt: String,
    pub system_prompt: Option<String>,
    pub model: Option<String>,
    /// Added to the program's arguments.
    pub args: Vec<String>,
    /// Added to the program's environment.
    pub env: Vec<(String, String)>,
    /// Of the program's own config, laid under ours. Codex and OpenCode only.
    pub config: Option<Value>,
    /// Where the tools work, and the program too unless it is isolated.
    pub dir: PathBuf,
    /// The step's own folder, 0700, which is there already.
    pub private: PathBuf,
    pub server: Server,
    pub tools: Tools,
    /// How long the program must wait for one tool call.
    pub call_timeout: Duration,
}

/// Why an agent cannot be started as asked.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("no program '{program}' on PATH: install it, or name it in options.command")]
    Missing { program: String },
    #[error("{} cannot be run: {cause}", .program.display())]
    NotRunnable { program: PathBuf, cause: String },
    #[error("{} did not answer {question} within {} s", .program.display(), .after.as_secs())]
    Hangs { program: PathBuf, question: String, after: Duration },
    #[error("{} failed on {question}: {words}", .program.display())]
    Crashes { program: PathBuf, question: String, words: String },
    #[error("{} {version} is too old: it has no {}", .program.display(), .lacks.join(", "))]
    TooOld { program: PathBuf, version: String, lacks: Vec<String> },
    /// All of them at once.
    #[error("options would undo the isolation of {provider}: {faults}", provider = .provider.as_str(), faults = .faults.join("; "))]
    LoosensIsolation { provider: Provider, faults: Vec<String> },
    #[error("{0}")]
    BadOption(String),
    #[error("the prompt is empty")]
    EmptyPrompt,
    #[error("the prompt has {size} {unit}, and {provider} takes {max}: put the text into a file", provider = .provider.as_str())]
    PromptTooLarge { provider: Provider, size: usize, max: usize, unit: &'static str },
    #[error("{} cannot be read: {cause}", .path.display())]
    Unreadable { path: PathBuf, cause: String },
}

impl AgentError {
    /// The stable code of the fault.
    pub fn code(&self) -> Code {
        match self {
            AgentError::Missing { .. }
            | AgentError::NotRunnable { .. }
            | AgentError::Hangs { .. }
            | AgentError::Crashes { .. }
            | AgentError::TooOld { .. }
            | AgentError::Unreadable { .. } => Code::AgentFailed,
            AgentError::LoosensIsolation { .. } => Code::WorkflowIsolation,
            AgentError::BadOption(_)
            | AgentError::EmptyPrompt
            | AgentError::PromptTooLarge { .. } => Code::InvalidArguments,
        }
    }
}

/// Whether a tool, as the program names it, is one of ours.
fn is_ours(provider: Provider, name: &str) -> bool {
    let prefix = match provider {
        Provider::Claude => "mcp__awf-proxy__",
        Provider::Gemini => "mcp_awf-proxy_",
        Provider::Codex => "awf-proxy.",
        Provider::OpenCode => "awf-proxy_",
    };
    name.starts_with(prefix)
}
