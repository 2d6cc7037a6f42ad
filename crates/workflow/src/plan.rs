//! A checked workflow: its inputs and its states.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::{Condition, Inputs, OptionPart, Retry, Template, WorkflowFault, WorkflowInput};
use domain::choice;
use text::document::Location;

choice! {
    /// The provider that runs the prompt. In a file, `openai-compatible` is the same as
    /// `openai_compatible`.
    Provider {
        Claude = "claude",
        Gemini = "gemini",
        Codex = "codex",
        OpenCode = "opencode",
        OpenAiCompatible = "openai_compatible",
    }
}

choice! {
    /// The rule for the success of a parallel state.
    Strategy {
        /// All branches must succeed; the first failure cancels the rest.
        AllSucceed = "all_succeed",
        /// One branch must succeed; it cancels the rest.
        AnySucceed = "any_succeed",
        /// All branches must end, whatever their outcome.
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
    /// The isolation that a step requires for its agent.
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
    /// The state in which a run begins.
    pub initial: String,
    /// In file order.
    pub states: Vec<State>,
    /// Environment variables used by templates and conditions, sorted.
    pub env_names: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct State {
    pub name: String,
    pub description: Option<String>,
    pub kind: StateKind,
    /// The working directory; by default, the driver's.
    pub dir: Option<Template>,
    /// The limit for one attempt.
    pub timeout: Option<Duration>,
    pub retry: Retry,
    /// Treats a failure as a success.
    pub continue_on_error: bool,
    pub on_success: Option<String>,
    pub on_failure: Option<OnFailure>,
    /// Checked before the two above; the first one that holds is taken.
    pub transitions: Vec<Transition>,
    pub(super) location: Location,
    /// The location of `dir`, or of the state if it has none.
    pub(super) dir_location: Location,
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
    /// The location of the block that holds the agent's keys.
    pub(super) location: Location,
    pub(super) places: AgentPlaces,
}

/// The locations of the parts of an agent that are checked together.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentPlaces {
    pub(super) provider: Location,
    pub(super) isolation: Location,
    /// The location of `options`, if the file has it.
    pub(super) block: Option<Location>,
    /// The location of each option that the file sets.
    pub(super) options: BTreeMap<String, Location>,
    pub(super) args: Vec<Location>,
    pub(super) env: Vec<Location>,
    pub(super) config: Vec<Location>,
}

impl AgentPlaces {
    /// Returns the location of an option.
    pub(super) fn of(&self, part: OptionPart) -> &Location {
        let location = match part {
            OptionPart::Model => self.options.get("model"),
            OptionPart::Arg(index) => self.args.get(index),
            OptionPart::Variable(index) | OptionPart::Env(index) => self.env.get(index),
            OptionPart::Config(index) => self.config.get(index),
        };
        location.unwrap_or(&self.provider)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub model: Option<Template>,
    /// Appended to the agent's own arguments.
    pub args: Vec<Template>,
    pub env: Vec<(String, Template)>,
    /// For codex and opencode: a base that our settings override. Its strings are templates.
    pub config: Option<Map<String, Value>>,
    /// The path of the agent's program, if it is not on the `PATH`.
    pub command: Option<String>,
    /// Limits on the whole work of the agent.
    pub max_turns: Option<u32>,
    pub max_tokens: Option<u32>,
    pub max_cost_usd: Option<f64>,
    pub openai: OpenAi,
}

/// The options that only `openai_compatible` takes.
#[derive(Clone, Debug, Default)]
pub struct OpenAi {
    pub api: Option<ModelApi>,
    pub base_url: Option<Template>,
    pub api_key: Option<Template>,
    /// Further headers of each request.
    pub headers: Vec<(String, Template)>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub max_completion_tokens: Option<u32>,
    pub stream: Option<bool>,
}

/// The API of a model's server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelApi {
    #[default]
    Chat,
    Responses,
}

impl ModelApi {
    pub(super) const NAMES: &[&str] = &["chat", "responses"];

    pub(super) fn named(name: &str) -> Option<ModelApi> {
        match name {
            "chat" => Some(ModelApi::Chat),
            "responses" => Some(ModelApi::Responses),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Proxy {
    pub enable: bool,
    pub intercept_builtins: bool,
    pub plugin_tools: Vec<PluginTools>,
    pub mcp_servers: Vec<String>,
    pub(super) location: Location,
    /// The location of each entry in `mcp_servers`.
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
    /// Reports whether the agent may use only our tools.
    pub fn is_isolating(&self) -> bool {
        self.enable && self.intercept_builtins
    }
}

#[derive(Clone, Debug)]
pub struct PluginTools {
    pub plugin: String,
    pub expose: Vec<String>,
    /// The location of the plugin's name.
    pub(super) location: Location,
    /// The location of each operation in `expose`.
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
    /// The number of branches that run at once; `None` runs all of them.
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
    /// `None` always holds.
    pub when: Option<Condition>,
    pub goto: String,
}

impl Workflow {
    /// Returns the values of a run, or every fault in the given inputs.
    pub fn inputs(&self, given: &[(String, String)]) -> Result<Inputs, Vec<WorkflowFault>> {
        Inputs::check(&self.inputs, given)
    }

    pub fn state(&self, name: &str) -> Option<&State> {
        self.states.iter().find(|state| state.name == name)
    }

    /// Counts the states visited by entering this one: itself and its branches, with theirs.
    pub(super) fn weight(&self, state: &State) -> u32 {
        let StateKind::Parallel(parallel) = &state.kind else { return 1 };
        let branches = parallel.branches.iter().filter_map(|name| self.state(name));
        branches.fold(1, |sum: u32, branch| sum.saturating_add(self.weight(branch)))
    }
}

impl State {
    /// Returns the state's type as the file names it; both spellings of an agent are `agent`.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            StateKind::Command(_) => "step",
            StateKind::Agent(_) => "agent",
            StateKind::Operation(_) => "operation",
            StateKind::Parallel(_) => "parallel",
            StateKind::Terminal(_) => "terminal",
        }
    }

    /// Returns the step's agent, if it has one.
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
