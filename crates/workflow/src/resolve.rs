//! A step's work, with the values of a run filled in.

use std::fmt;

use serde_json::{Map, Value};

use super::plan::{AgentState, ModelApi, Options, Provider, StateKind, Workflow};
use super::values::Values;
use super::{Template, WorkflowFault};
use domain::code::Code;
use text::document::Location;

/// A step, ready to run.
#[derive(Clone, Debug, PartialEq)]
pub enum ResolvedStep {
    /// For `sh -c`. Each value is assigned, quoted, to a variable in the lines before the command,
    /// which refers to it as `"${…}"`: no value is read as code.
    Command {
        command: String,
        dir: Option<String>,
    },
    Agent(Box<ResolvedAgent>),
    Operation {
        plugin: String,
        operation: String,
        inputs: Map<String, Value>,
        dir: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedAgent {
    pub provider: Provider,
    pub prompt: String,
    pub system_prompt: Option<String>,
    pub options: ResolvedOptions,
    pub dir: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResolvedOptions {
    pub model: Option<String>,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub config: Option<Map<String, Value>>,
    pub command: Option<String>,
    pub api: Option<ModelApi>,
    pub base_url: Option<String>,
    pub api_key: Option<HiddenText>,
    pub headers: Vec<(String, HiddenText)>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub max_completion_tokens: Option<u32>,
    pub stream: Option<bool>,
    pub max_turns: Option<u32>,
    pub max_tokens: Option<u32>,
    pub max_cost_usd: Option<f64>,
}

/// A secret that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct HiddenText(String);

impl HiddenText {
    pub fn new(text: String) -> HiddenText {
        HiddenText(text)
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for HiddenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HiddenText(…)")
    }
}

pub(super) fn resolve(
    workflow: &Workflow,
    name: &str,
    values: &Values,
) -> Result<ResolvedStep, WorkflowFault> {
    let Some(state) = workflow.state(name) else {
        let message = format!("state '{name}' not found");
        return Err(WorkflowFault::new(&Location::default(), Code::WorkflowUnknownState, message));
    };
    let filler = Filler { values, location: &state.location };
    let dir = filler.maybe("dir", state.dir.as_ref())?;
    match &state.kind {
        StateKind::Command(command) => {
            let command = command.render_for_shell(values);
            let command = command.map_err(|why| filler.fault("command", why))?;
            Ok(ResolvedStep::Command { command, dir })
        }
        StateKind::Agent(agent) => {
            let filler = Filler { values, location: &agent.location };
            Ok(ResolvedStep::Agent(Box::new(filler.agent(agent, dir)?)))
        }
        StateKind::Operation(operation) => Ok(ResolvedStep::Operation {
            plugin: operation.plugin.clone(),
            operation: operation.operation.clone(),
            inputs: filler.members("inputs", &operation.inputs, Whole::AsItIs)?,
            dir,
        }),
        StateKind::Parallel(_) | StateKind::Terminal(_) => {
            let message = format!("a {} state cannot be run on its own", state.type_name());
            Err(WorkflowFault::new(&state.location, Code::WorkflowBadValue, message))
        }
    }
}

/// The treatment of text that consists of a single value.
#[derive(Clone, Copy)]
enum Whole {
    AsText,
    /// Numbers keep their type: an operation's inputs are typed.
    AsItIs,
}

struct Filler<'v> {
    values: &'v Values,
    location: &'v Location,
}

impl Filler<'_> {
    fn fault(&self, key: &str, why: String) -> WorkflowFault {
        let path = format!("{}.{key}", self.location.path);
        let location = Location { path, mark: self.location.mark };
        WorkflowFault::new(&location, Code::WorkflowBadTemplate, why)
    }

    fn text(&self, key: &str, template: &Template) -> Result<String, WorkflowFault> {
        template.render(self.values).map_err(|why| self.fault(key, why))
    }

    fn maybe(
        &self,
        key: &str,
        template: Option<&Template>,
    ) -> Result<Option<String>, WorkflowFault> {
        template.map(|template| self.text(key, template)).transpose()
    }

    fn agent(
        &self,
        agent: &AgentState,
        dir: Option<String>,
    ) -> Result<ResolvedAgent, WorkflowFault> {
        Ok(ResolvedAgent {
            provider: agent.provider,
            prompt: self.text("prompt", &agent.prompt)?,
            system_prompt: self.maybe("system_prompt", agent.system_prompt.as_ref())?,
            options: self.options(&agent.options)?,
            dir,
        })
    }

    fn options(&self, options: &Options) -> Result<ResolvedOptions, WorkflowFault> {
        let args = options.args.iter().map(|arg| self.text("options.args", arg));
        let env = options.env.iter().map(|(name, value)| {
            Ok((name.clone(), self.text(&format!("options.env.{name}"), value)?))
        });
        let config = options.config.as_ref();
        let openai = &options.openai;
        let headers = openai.headers.iter().map(|(name, value)| {
            let value = self.text(&format!("options.headers.{name}"), value)?;
            Ok((name.clone(), HiddenText(value)))
        });
        Ok(ResolvedOptions {
            model: self.maybe("options.model", options.model.as_ref())?,
            args: args.collect::<Result<_, _>>()?,
            env: env.collect::<Result<_, _>>()?,
            config: config
                .map(|all| self.members("options.config", all, Whole::AsText))
                .transpose()?,
            command: options.command.clone(),
            api: openai.api,
            base_url: self.maybe("options.base_url", openai.base_url.as_ref())?,
            api_key: self.maybe("options.api_key", openai.api_key.as_ref())?.map(HiddenText),
            headers: headers.collect::<Result<_, _>>()?,
            temperature: openai.temperature,
            top_p: openai.top_p,
            max_completion_tokens: openai.max_completion_tokens,
            stream: openai.stream,
            max_turns: options.max_turns,
            max_tokens: options.max_tokens,
            max_cost_usd: options.max_cost_usd,
        })
    }

    fn members(
        &self,
        key: &str,
        members: &Map<String, Value>,
        whole: Whole,
    ) -> Result<Map<String, Value>, WorkflowFault> {
        let filled = members.iter().map(|(name, value)| {
            let value = self.value(value, whole).map_err(|why| self.fault(key, why))?;
            Ok((name.clone(), value))
        });
        filled.collect()
    }

    fn value(&self, value: &Value, whole: Whole) -> Result<Value, String> {
        match value {
            Value::String(text) => self.filled(text, whole),
            Value::Array(elements) => {
                elements.iter().map(|element| self.value(element, whole)).collect()
            }
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| Ok((name.clone(), self.value(value, whole)?)))
                .collect::<Result<Map<String, Value>, String>>()
                .map(Value::Object),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
        }
    }

    fn filled(&self, text: &str, whole: Whole) -> Result<Value, String> {
        let template = Template::parse(text).map_err(|faults| {
            faults.into_iter().next().map_or_else(String::new, |fault| fault.message)
        })?;
        match (whole, template.sole().and_then(|reference| self.values.value(reference))) {
            (Whole::AsItIs, Some(value)) => Ok(value),
            (Whole::AsItIs, None) | (Whole::AsText, _) => {
                template.render(self.values).map(Value::String)
            }
        }
    }
}
