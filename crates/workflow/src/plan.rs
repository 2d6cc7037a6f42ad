//! A checked workflow: its inputs and its states.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{Condition, Inputs, Retry, Template, WorkflowFault, WorkflowInput};
use domain::choice;
use domain::document::Location;

choice! {
    /// Who runs the prompt. In a file `openai-compatible` is the same as `openai_compatible`.
    Provider {
        Claude = "claude",
        Gemini = "gemini",
        Codex = "codex",
        OpenCode = "opencode",
        OpenAiCompatible = "openai_compatible",
    }
}

choice! {
    /// When a parallel state has succeeded.
    Strategy {
        /// All did; the first failure cancels the rest.
        AllSucceed = "all_succeed",
        /// One did; it cancels the rest.
        AnySucceed = "any_succeed",
        /// All ended, however.
        BestEffort = "best_effort",
    }
}

choice! {
    TerminalStatus {
        Success = "success",
        Failure = "failure",
    }
}

choice! {
    /// What a step asks of the isolation of its agent.
    Demand {
        Preferred = "preferred",
        Required = "required",
    }
}

#[derive(Clone, Debug)]
pub struct Workflow {
    pub name: String,
    pub version: Option<String>,
    pub description: Option<String>,
    pub inputs: Vec<WorkflowInput>,
    /// The state that a run begins with.
    pub initial: String,
    /// In the order of the file.
    pub states: Vec<State>,
    /// Environment variables that templates and conditions name, sorted.
    pub env_names: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct State {
    pub name: String,
    pub description: Option<String>,
    pub kind: StateKind,
    /// Where it runs; the driver's own directory where it is not said.
    pub dir: Option<Template>,
    /// For one attempt.
    pub timeout: Option<Duration>,
    pub retry: Retry,
    /// A failure goes on like a success.
    pub continue_on_error: bool,
    pub on_success: Option<String>,
    pub on_failure: Option<OnFailure>,
    /// The first that holds is taken, before the two above.
    pub transitions: Vec<Transition>,
    pub(super) location: Location,
}

#[derive(Clone, Debug)]
pub enum StateKind {
    Command(Template),
    Agent(Box<AgentState>),
    Operation(OperationState),
    Parallel(Parallel),
    Terminal(Terminal),
}

#[derive(Clone, Debug)]
pub struct AgentState {
    pub provider: Provider,
    pub prompt: Template,
    pub system_prompt: Option<Template>,
    pub options: Options,
    pub isolation: Demand,
    pub proxy: Proxy,
    /// Of the block that holds its keys.
    pub(super) location: Location,
}

/// The locations of the parts of an agent that are checked together.
#[derive(Default)]
pub(super) struct AgentPlaces {
    pub(super) provider: Location,
    pub(super) isolation: Location,
    pub(super) args: Vec<Location>,
    pub(super) env: Vec<Location>,
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub model: Option<Template>,
    /// Appended to the agent's own arguments.
    pub args: Vec<Template>,
    pub env: Vec<(String, Template)>,
    /// For codex and opencode: laid under ours. Its strings are templates.
    pub config: Option<Map<String, Value>>,
    /// Where the agent's program is, if not on the `PATH`.
    pub command: Option<String>,
    pub openai: OpenAi,
}

/// What only `openai_compatible` takes.
#[derive(Clone, Debug, Default)]
pub struct OpenAi {
    pub base_url: Option<Template>,
    pub api_key: Option<Template>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub max_completion_tokens: Option<u32>,
    pub stream: Option<bool>,
    pub max_turns: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct Proxy {
    pub enable: bool,
    pub intercept_builtins: bool,
    pub plugin_tools: Vec<PluginTools>,
    pub mcp_servers: Vec<String>,
    pub(super) location: Location,
    /// Of each in `mcp_servers`.
    pub(super) server_locations: Vec<Location>,
}

impl Default for Proxy {
    fn default() -> Self {
        Proxy {
            enable: false,
            intercept_builtins: true,
            plugin_tools: Vec::new(),
            mcp_servers: Vec::new(),
            location: Location::default(),
            server_locations: Vec::new(),
        }
    }
}

impl Proxy {
    /// Whether the agent is to have no tools but ours.
    pub fn is_isolating(&self) -> bool {
        self.enable && self.intercept_builtins
    }
}

#[derive(Clone, Debug)]
pub struct PluginTools {
    pub plugin: String,
    pub expose: Vec<String>,
    /// Of the plugin's name.
    pub(super) location: Location,
    /// Of each operation in `expose`.
    pub(super) locations: Vec<Location>,
}

#[derive(Clone, Debug)]
pub struct OperationState {
    pub plugin: String,
    pub operation: String,
    /// Strings in it are templates.
    pub inputs: Map<String, Value>,
}

#[derive(Clone, Debug)]
pub struct Parallel {
    pub branches: Vec<String>,
    pub strategy: Strategy,
    /// How many run at once; all of them where it is not said.
    pub max_concurrent: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct Terminal {
    pub status: TerminalStatus,
    pub message: Option<Template>,
}

#[derive(Clone, Debug)]
pub enum OnFailure {
    Goto(String),
    /// Ends the run.
    End {
        message: Template,
        exit_status: u8,
    },
}

#[derive(Clone, Debug)]
pub struct Transition {
    /// Without one it always holds.
    pub when: Option<Condition>,
    pub goto: String,
}

impl Workflow {
    /// The values of a run, or all that is wrong with what was given.
    pub fn inputs(&self, given: &[(String, String)]) -> Result<Inputs, Vec<WorkflowFault>> {
        Inputs::check(&self.inputs, given)
    }

    pub fn state(&self, name: &str) -> Option<&State> {
        self.states.iter().find(|state| state.name == name)
    }

    /// How many states are gone through with this one: itself, and its branches with theirs.
    pub(super) fn weight(&self, state: &State) -> u32 {
        let StateKind::Parallel(parallel) = &state.kind else { return 1 };
        let branches = parallel.branches.iter().filter_map(|name| self.state(name));
        branches.fold(1, |sum: u32, branch| sum.saturating_add(self.weight(branch)))
    }
}

impl State {
    /// The word of the file for what it is; both spellings of an agent are `agent`.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            StateKind::Command(_) => "step",
            StateKind::Agent(_) => "agent",
            StateKind::Operation(_) => "operation",
            StateKind::Parallel(_) => "parallel",
            StateKind::Terminal(_) => "terminal",
        }
    }

    /// The agent in it, if it is a step with one.
    pub fn agent(&self) -> Option<&AgentState> {
        match &self.kind {
            StateKind::Agent(agent) => Some(agent),
            StateKind::Command(_)
            | StateKind::Operation(_)
            | StateKind::Parallel(_)
            | StateKind::Terminal(_) => None,
        }
    }
}
