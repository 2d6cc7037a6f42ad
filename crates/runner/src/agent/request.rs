//! A step's request to an agent.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

/// The tools that a step's agent gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentTools {
    /// The program's own, with the person's setup: `mcp_proxy` is off.
    None,
    /// Only ours: `intercept_builtins`.
    Only,
    /// Ours along with the program's own.
    Beside,
}

/// The command with which the agent starts our server.
#[derive(Clone, Debug)]
pub struct AgentServer {
    pub program: PathBuf,
    pub args: Vec<String>,
}

/// A step's request to an agent. It may hold keys, so it is never shown.
#[derive(Clone)]
pub struct AgentRequest {
    pub prompt: String,
    pub system_prompt: Option<String>,
    pub model: Option<String>,
    /// Added to the program's arguments.
    pub args: Vec<String>,
    /// Added to the program's environment.
    pub env: Vec<(String, String)>,
    /// Members of the program's own config; ours override them. Codex and OpenCode only.
    pub config: Option<Value>,
    /// The folder in which the tools work, and the program too unless it is isolated.
    pub dir: PathBuf,
    /// The step's own folder, 0700, which already exists.
    pub private: PathBuf,
    pub server: AgentServer,
    pub tools: AgentTools,
    /// The most that may be spent, if the program can enforce it.
    pub max_cost_usd: Option<f64>,
    /// The time the program must wait for one tool call.
    pub call_timeout: Duration,
}
