//! A model behind an OpenAI-compatible server, called by this process: no program runs between the
//! model and the gate, so the gate's tools are the only ones.

mod answer;
mod key;
mod retry;
mod server;
mod settings;
mod tools;

use std::collections::HashSet;

use domain::Code;
use mcp::object::{ObjectMembers, quote};
use tokio::io::DuplexStream;
use tokio::time::Instant;

use self::answer::{ModelAnswer, ModelCall};
use self::server::ModelServer;
use self::tools::ModelTools;

pub use settings::{KEY_VARIABLE, ModelSettings};

/// A model's task.
pub struct Task<'a> {
    pub settings: &'a ModelSettings,
    pub system_prompt: Option<&'a str>,
    pub prompt: &'a str,
    /// A connection to the step's gate, if the model gets tools.
    pub gate: Option<DuplexStream>,
    /// The time at which the step ends.
    pub deadline: Instant,
}

/// The total cost of a conversation's answers, however it ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConversationCost {
    pub model: Option<String>,
    pub tokens: Option<u64>,
    pub cost_usd: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConversationError {
    pub code: Code,
    pub message: String,
}

impl ConversationError {
    fn new(code: Code, message: impl Into<String>) -> ConversationError {
        ConversationError { code, message: message.into() }
    }

    fn agent(message: String) -> ConversationError {
        ConversationError::new(Code::AgentFailed, message)
    }
}

/// Talks to the model until it requests no more tools; returns its final text.
pub async fn converse(
    task: Task<'_>,
    spent: &mut ConversationCost,
) -> Result<String, ConversationError> {
    let mut server = ModelServer::new(task.settings).map_err(ConversationError::agent)?;
    let tools = match task.gate {
        Some(gate) => {
            let patience = task.deadline.saturating_duration_since(Instant::now());
            ModelTools::open(gate, patience).await.map_err(ConversationError::agent)?
        }
        None => ModelTools::default(),
    };
    let system = task.system_prompt.map(|text| message("system", text));
    let mut messages: Vec<String> = system.into_iter().collect();
    messages.push(message("user", task.prompt));
    let turns_max = task.settings.max_turns;
    for turn in 1..=turns_max {
        let asked = server.ask(&messages, &tools.definitions, task.deadline).await;
        let mut answer = asked.map_err(ConversationError::agent)?;
        spent.add(&answer);
        if answer.calls.is_empty() {
            return last_words(answer);
        }
        // The model would never see the results of calls in the last turn, so they are not made.
        if turn < turns_max {
            name_calls(&mut answer.calls, turn);
            messages.push(said(&answer));
            let results = tools.answer(&answer.calls).await;
            messages.extend(answer.calls.iter().zip(&results).map(|(call, it)| result(call, it)));
        }
    }
    let message = format!(
        "the model still calls tools after {turns_max} turns: raise max_turns to allow more"
    );
    Err(ConversationError::new(Code::ProxyLoopGuard, message))
}

impl ConversationCost {
    fn add(&mut self, answer: &ModelAnswer) {
        if let Some(model) = &answer.model {
            self.model = Some(model.clone());
        }
        let Some(usage) = answer.usage else { return };
        let tokens = self.tokens.get_or_insert(0);
        *tokens = tokens.saturating_add(usage.tokens);
        if let Some(cost_usd) = usage.cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost_usd;
        }
    }
}

/// Returns the text of an answer without calls.
fn last_words(answer: ModelAnswer) -> Result<String, ConversationError> {
    match answer.finish.as_deref() {
        Some("tool_calls" | "function_call") => {
            let message = "the model announced tool calls but made none: stopped to avoid a loop";
            return Err(ConversationError::new(Code::ProxyLoopGuard, message));
        }
        Some("content_filter") => {
            let message = "the model server's content filter stopped the response";
            return Err(ConversationError::new(Code::AgentFailed, message));
        }
        Some("length") => tracing::warn!("the model's response was truncated at its length limit"),
        Some(_) | None => {}
    }
    if answer.text.is_empty() && !answer.refusal.is_empty() {
        return Err(ConversationError::agent(format!("the model refused: {}", answer.refusal)));
    }
    Ok(answer.text)
}

/// Gives each call a unique id, so that its result can be matched.
fn name_calls(calls: &mut [ModelCall], turn: u32) {
    let mut taken = HashSet::new();
    for (number, call) in calls.iter_mut().enumerate() {
        if call.id.is_empty() || taken.contains(&call.id) {
            call.id = format!("call_{turn}_{number}");
        }
        taken.insert(call.id.clone());
    }
}

fn message(role: &str, content: &str) -> String {
    format!(r#"{{"role":{},"content":{}}}"#, quote(role), quote(content))
}

/// Formats the model's text with its calls. Arguments that are not valid JSON are left out: servers
/// that parse them reject the whole conversation. The response to the call quotes them.
fn said(answer: &ModelAnswer) -> String {
    let calls = answer.calls.iter().map(|call| {
        let name = if call.name.is_empty() { "unknown" } else { &call.name };
        let arguments = tools::arguments(&call.arguments).unwrap_or_else(|_| "{}".to_owned());
        let mut function = ObjectMembers::default();
        function.set("name", quote(name));
        function.set("arguments", quote(&arguments));
        let mut told = ObjectMembers::default();
        told.set("id", quote(&call.id));
        told.set("type", r#""function""#);
        told.set("function", function.write_text());
        told.write_text()
    });
    let calls: Vec<String> = calls.collect();
    let mut told = ObjectMembers::default();
    told.set("role", r#""assistant""#);
    let content = if answer.text.is_empty() { "null".to_owned() } else { quote(&answer.text) };
    told.set("content", content);
    if !answer.reasoning.is_empty() {
        told.set("reasoning_content", quote(&answer.reasoning));
    }
    told.set("tool_calls", format!("[{}]", calls.join(",")));
    told.write_text()
}

fn result(call: &ModelCall, text: &str) -> String {
    let mut told = ObjectMembers::default();
    told.set("role", r#""tool""#);
    told.set("tool_call_id", quote(&call.id));
    told.set("content", quote(text));
    told.write_text()
}
