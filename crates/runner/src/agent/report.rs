//! The report on an agent's work: text, tokens, cost, errors, and calls of tools that are not ours.

use std::collections::HashSet;

use serde_json::Value;

use crate::agent::program::Provider;

/// Maximum stored size of the final text.
pub(super) const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Calls of native tools that are stored individually; one is enough to fail a step.
pub(super) const NATIVE_CALLS_MAX: usize = 100;

pub(super) const ERRORS_MAX: usize = 20;
pub(super) const ERROR_BYTES_MAX: usize = 4 * 1024;

/// An event to report while the agent works.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// The program is probed before it starts.
    Probed {
        version: String,
    },
    Model(String),
    /// The text that follows is a new one.
    TextBegins,
    Text(String),
    /// The text is complete. Programs that send only pieces do not say so.
    TextEnds,
    /// The work so far, as the program reports it.
    Usage(WorkUsage),
    /// One of our tools was called.
    Called {
        id: String,
        tool: String,
    },
    /// One of the program's own tools was called.
    Native {
        id: String,
        name: String,
    },
    /// The program rejected that call: nothing happened.
    Refused {
        id: String,
    },
    Error(String),
}

/// The work of an agent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkUsage {
    /// Answers of the model.
    pub turns: u32,
    pub tokens: Option<u64>,
    pub cost_usd: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    pub input: u64,
    pub output: u64,
    pub total: u64,
}

impl TokenUsage {
    pub(super) fn of(input: u64, output: u64) -> TokenUsage {
        TokenUsage { input, output, total: input.saturating_add(output) }
    }
}

/// A call of a tool that is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeCall {
    pub id: String,
    pub name: String,
    /// The program does not have the tool, or may not use it: the model's call had no effect.
    pub refused: bool,
}

/// The result of an agent's work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentReport {
    /// The model's final text.
    pub text: String,
    /// Part of the text is missing because of its length.
    pub text_cut: bool,
    pub tokens: Option<TokenUsage>,
    pub cost_usd: Option<f64>,
    pub model: Option<String>,
    pub native: Vec<NativeCall>,
    pub errors: Vec<String>,
}

/// The reason the work did not finish.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    #[error("the agent failed: {0}")]
    Reported(String),
    #[error("the agent exited without a result")]
    Unfinished,
}

/// Failed work, with its partial report.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{cause}")]
pub struct AgentFailure {
    pub cause: Cause,
    pub report: Box<AgentReport>,
}

/// The report under construction, filled in by each program's reader.
#[derive(Debug, Default)]
pub(super) struct ReportBuilder {
    report: AgentReport,
    /// The outcome as the program reports it. A failure is final.
    outcome: Option<Result<(), String>>,
    /// Set when the next piece of text starts the final text over.
    anew: bool,
    /// Set while a text arrives in pieces that will also arrive as a whole.
    in_pieces: bool,
    /// Calls already reported; some programs report each more than once.
    told: HashSet<String>,
    turns: u32,
    /// Set while the model's answer is arriving.
    in_turn: bool,
    /// The last message by its id, with its tokens, of a program that reports them by message.
    message: Option<(String, TokenUsage)>,
}

impl ReportBuilder {
    /// Finishes the report, or returns the reason the work failed.
    pub(super) fn finish(self) -> Result<AgentReport, AgentFailure> {
        let ReportBuilder { report, outcome, .. } = self;
        let cause = match outcome {
            Some(Ok(())) => return Ok(report),
            Some(Err(words)) => Cause::Reported(words),
            None => match report.errors.last() {
                Some(words) => Cause::Reported(words.clone()),
                None => Cause::Unfinished,
            },
        };
        Err(AgentFailure { cause, report: Box::new(report) })
    }

    pub(super) fn model(&mut self, name: &str) -> Vec<AgentEvent> {
        if name.is_empty() {
            return Vec::new();
        }
        self.report.model = Some(name.to_owned());
        vec![AgentEvent::Model(name.to_owned())]
    }

    /// Marks the start of a new answer.
    pub(super) fn text_begins(&mut self) {
        self.anew = true;
    }

    /// Adds a piece of an answer.
    pub(super) fn text(&mut self, piece: &str) -> Vec<AgentEvent> {
        if piece.is_empty() {
            return Vec::new();
        }
        let mut events = Vec::new();
        if std::mem::take(&mut self.anew) || self.report.text.is_empty() {
            self.report.text.clear();
            self.report.text_cut = false;
            events.push(AgentEvent::TextBegins);
        }
        let room = TEXT_BYTES_MAX - self.report.text.len();
        let kept = cut(piece, room);
        self.report.text_cut |= kept.len() < piece.len();
        self.report.text.push_str(kept);
        events.push(AgentEvent::Text(piece.to_owned()));
        events
    }

    /// Adds a piece of an answer that will also arrive as a whole.
    pub(super) fn piece(&mut self, piece: &str) -> Vec<AgentEvent> {
        let events = self.text(piece);
        self.in_pieces |= !events.is_empty();
        events
    }

    /// Adds the pieces of a whole answer that have not arrived.
    pub(super) fn whole_text(&mut self, text: &str) -> Vec<AgentEvent> {
        let has_pieces = std::mem::take(&mut self.in_pieces) && !self.anew;
        let mut events = match text.strip_prefix(self.report.text.as_str()) {
            Some(_) if has_pieces && self.report.text_cut => Vec::new(),
            Some(rest) if has_pieces => self.text(rest),
            // The pieces were of an answer that broke off.
            _ => return self.text_of_its_own(text),
        };
        events.push(AgentEvent::TextEnds);
        events
    }

    /// Adds a whole answer.
    pub(super) fn text_of_its_own(&mut self, text: &str) -> Vec<AgentEvent> {
        self.text_begins();
        let mut events = self.text(text);
        if !events.is_empty() {
            events.push(AgentEvent::TextEnds);
        }
        events
    }

    /// Sets the final text from the program's own summary, without another event.
    pub(super) fn final_text(&mut self, text: &str) {
        self.text_of_its_own(text);
    }

    pub(super) fn call(&mut self, provider: Provider, id: &str, name: &str) -> Vec<AgentEvent> {
        self.text_begins();
        if self.told.len() < NATIVE_CALLS_MAX * 100 && !self.told.insert(id.to_owned()) {
            return Vec::new();
        }
        let (id, name) = (id.to_owned(), name.to_owned());
        if provider.names_ours(&name) {
            return vec![AgentEvent::Called { id, tool: name }];
        }
        if self.report.native.len() < NATIVE_CALLS_MAX {
            let call = NativeCall { id: id.clone(), name: name.clone(), refused: false };
            self.report.native.push(call);
        }
        vec![AgentEvent::Native { id, name }]
    }

    pub(super) fn refused(&mut self, id: &str) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        for call in self.report.native.iter_mut().filter(|call| call.id == id && !call.refused) {
            call.refused = true;
            events.push(AgentEvent::Refused { id: id.to_owned() });
        }
        events
    }

    /// Reports the work so far.
    pub(super) fn usage(&self) -> Vec<AgentEvent> {
        vec![AgentEvent::Usage(self.work())]
    }

    pub(super) fn work(&self) -> WorkUsage {
        let tokens = self.report.tokens.map(|tokens| tokens.total);
        WorkUsage { turns: self.turns, tokens, cost_usd: self.report.cost_usd }
    }

    /// Notes output of the model, which begins a turn unless one has begun.
    pub(super) fn in_turn(&mut self) -> Vec<AgentEvent> {
        if std::mem::replace(&mut self.in_turn, true) {
            return Vec::new();
        }
        self.turns = self.turns.saturating_add(1);
        self.usage()
    }

    /// Notes the result of a call: what the model says next is another turn.
    pub(super) fn turn_ends(&mut self) {
        self.in_turn = false;
    }

    /// Counts a message of the model, which may arrive in several parts, each with the tokens so
    /// far.
    pub(super) fn message(&mut self, id: &str, tokens: TokenUsage) -> Vec<AgentEvent> {
        let (same, before) = match self.message.take() {
            Some((last, before)) if last == id => (true, before),
            _ => (false, TokenUsage::default()),
        };
        if !same {
            self.turns = self.turns.saturating_add(1);
        }
        let more = |now: u64, before: u64| now.saturating_sub(before);
        self.add_tokens(TokenUsage {
            input: more(tokens.input, before.input),
            output: more(tokens.output, before.output),
            total: more(tokens.total, before.total),
        });
        self.message = Some((id.to_owned(), tokens));
        self.usage()
    }

    /// Counts the output of the last message, which the program reports once it is complete.
    pub(super) fn message_grows(&mut self, output: u64) -> Vec<AgentEvent> {
        let Some((_, counted)) = &mut self.message else { return Vec::new() };
        let more = output.saturating_sub(counted.output);
        if more == 0 {
            return Vec::new();
        }
        *counted = TokenUsage::of(counted.input, output);
        self.add_tokens(TokenUsage::of(0, more));
        self.usage()
    }

    pub(super) fn tokens(&mut self, tokens: TokenUsage) {
        self.report.tokens = Some(tokens);
    }

    pub(super) fn add_tokens(&mut self, more: TokenUsage) {
        let sum = self.report.tokens.get_or_insert_default();
        sum.input = sum.input.saturating_add(more.input);
        sum.output = sum.output.saturating_add(more.output);
        sum.total = sum.total.saturating_add(more.total);
    }

    pub(super) fn cost(&mut self, cost_usd: Option<f64>) {
        self.report.cost_usd = cost_usd;
    }

    pub(super) fn add_cost(&mut self, cost_usd: Option<f64>) {
        if let Some(more) = cost_usd {
            *self.report.cost_usd.get_or_insert(0.0) += more;
        }
    }

    pub(super) fn finished(&mut self) {
        self.outcome.get_or_insert(Ok(()));
    }

    /// Records that the program reports failure.
    pub(super) fn failed(&mut self, words: &str) -> Vec<AgentEvent> {
        let words = if words.is_empty() { "no reason given" } else { cut(words, ERROR_BYTES_MAX) };
        self.outcome = Some(Err(words.to_owned()));
        self.error(words)
    }

    /// Records an error; the work may continue.
    pub(super) fn error(&mut self, words: &str) -> Vec<AgentEvent> {
        if self.report.errors.len() < ERRORS_MAX {
            self.report.errors.push(cut(words, ERROR_BYTES_MAX).to_owned());
        }
        vec![AgentEvent::Error(cut(words, ERROR_BYTES_MAX).to_owned())]
    }

    /// Records a warning, which does not fail the work.
    pub(super) fn warning(&mut self, words: &str) -> Vec<AgentEvent> {
        vec![AgentEvent::Error(cut(words, ERROR_BYTES_MAX).to_owned())]
    }
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
