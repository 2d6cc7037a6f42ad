//! A model behind an OpenAI-compatible server, called by this process: no program runs between the
//! model and the gate, so the gate's tools are the only ones.

mod answer;
mod dialogue;
mod key;
mod retry;
mod server;
mod settings;
mod tools;

use std::collections::HashSet;

use domain::Code;
use tokio::io::DuplexStream;
use tokio::time::Instant;

use self::answer::{ModelAnswer, ModelCall};
use self::dialogue::Dialogue;
use self::server::ModelServer;
use self::tools::ModelTools;
use crate::agent::WorkUsage;

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
    /// Receives each answer's text and what the conversation cost so far; ends it with an error.
    pub on_answer: &'a (dyn Fn(&str, &WorkUsage) -> Result<(), ConversationError> + Sync),
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
    pub(crate) fn new(code: Code, message: impl Into<String>) -> ConversationError {
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
            let opened = ModelTools::open(gate, task.settings.api, patience).await;
            opened.map_err(ConversationError::agent)?
        }
        None => ModelTools::default(),
    };
    let mut dialogue = Dialogue::new(task.settings.api, task.system_prompt, task.prompt);
    let turns_max = task.settings.max_turns;
    for turn in 1..=turns_max {
        let asked = server.ask(dialogue.messages(), &tools.definitions, task.deadline).await;
        let mut answer = asked.map_err(ConversationError::agent)?;
        spent.add(&answer);
        (task.on_answer)(&answer.text, &spent.usage(turn))?;
        if answer.calls.is_empty() {
            return last_words(answer);
        }
        // The model would never see the results of calls in the last turn, so they are not made.
        if turn < turns_max {
            name_calls(&mut answer.calls, turn);
            let results = tools.answer(&answer.calls).await;
            dialogue.add(answer, &results);
        }
    }
    let message = format!(
        "the model still calls tools after {turns_max} turns: raise max_turns to allow more"
    );
    Err(ConversationError::new(Code::ProxyLoopGuard, message))
}

impl ConversationCost {
    fn usage(&self, turns: u32) -> WorkUsage {
        WorkUsage { turns, tokens: self.tokens, cost_usd: self.cost_usd }
    }

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
