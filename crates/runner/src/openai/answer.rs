//! An answer of a model's server, assembled from its bytes as they arrive, as events or one object.
//! Reads no socket; the boundaries of the chunks make no difference.

mod chat;
mod responses;

use std::collections::BTreeMap;

use mcp::sse;
use serde_json::Value;
use text::json;
use workflow::ModelApi;

/// One event, or a whole answer in one piece. Answers have some kB; the longest of any model have
/// one MiB.
const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// All events of an answer: each token arrives in some 300 bytes.
const STREAM_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Text and arguments together. The gate accepts no larger call.
const CONTENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Calls of one turn; models request a few.
const CALLS_MAX: usize = 128;

/// A model's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ModelAnswer {
    pub(super) text: String,
    /// Sent in place of a text.
    pub(super) refusal: String,
    pub(super) reasoning: ModelReasoning,
    /// In the order in which they are to be answered.
    pub(super) calls: Vec<ModelCall>,
    /// The items of a Responses answer, which go back as they came.
    pub(super) items: Vec<Value>,
    pub(super) finish: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) model: Option<String>,
}

/// The reasoning in a Chat Completions answer. Servers require it back, in the members in which they
/// sent it, with the calls it led to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ModelReasoning {
    /// The member `reasoning_content`.
    pub(super) content: String,
    /// The member `reasoning`.
    pub(super) text: String,
    /// The member `reasoning_details`, with signed and encrypted parts.
    pub(super) details: Vec<Value>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ModelCall {
    /// Empty if the server sent none.
    pub(super) id: String,
    pub(super) name: String,
    /// JSON, unless the model made a mistake.
    pub(super) arguments: String,
    /// A signature or the like, which goes back with the call.
    pub(super) extra_content: Option<Value>,
    pub(super) index: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usage {
    pub(super) tokens: u64,
    pub(super) cost_usd: Option<f64>,
}

/// The reason there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AnswerFault {
    #[error("the response has more than {0} bytes in one event")]
    LongPiece(usize),
    #[error("the response has more than {0} bytes")]
    Long(usize),
    #[error("the response has more than {CALLS_MAX} tool calls")]
    ManyCalls,
    #[error("the response has too many reasoning details")]
    ManyDetails,
    #[error("cannot parse the response: {0}")]
    Rubbish(String),
    #[error("the response is not a Chat Completions response: it has no choices")]
    NoChoices,
    #[error("the response is not a Responses response: it has no output")]
    NoOutput,
    #[error("the response ended early")]
    Unfinished,
    #[error("{message}")]
    Reported { status: Option<u16>, message: String },
}

/// An answer still arriving.
pub(super) struct Assembly {
    api: ModelApi,
    form: Form,
    bytes: usize,
    content_bytes: usize,
    answer: ModelAnswer,
    /// The items of a Responses answer by their place, until its end repeats them.
    items: BTreeMap<u64, Value>,
    /// Something of an answer has arrived.
    has_begun: bool,
    is_done: bool,
}

/// The form of the answer. Some servers send one object when events were requested, and vice versa:
/// the first byte shows which.
enum Form {
    Unknown,
    Object(Vec<u8>),
    Events(sse::Parser),
}

impl Assembly {
    pub(super) fn new(api: ModelApi) -> Assembly {
        Assembly {
            api,
            form: Form::Unknown,
            bytes: 0,
            content_bytes: 0,
            answer: ModelAnswer::default(),
            items: BTreeMap::new(),
            has_begun: false,
            is_done: false,
        }
    }

    /// Reports whether the server has announced the end.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Reports whether nothing more is needed except the usage.
    pub(super) fn is_finished(&self) -> bool {
        self.is_done || self.answer.finish.is_some()
    }

    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<(), AnswerFault> {
        self.bytes += bytes.len();
        if let Form::Unknown = self.form {
            bytes = bytes.trim_ascii_start();
            match bytes.first() {
                None => return Ok(()),
                Some(b'{') => self.form = Form::Object(Vec::new()),
                Some(_) => self.form = Form::Events(sse::Parser::new(EVENT_BYTES_MAX)),
            }
        }
        let events = match &mut self.form {
            Form::Unknown => return Ok(()),
            Form::Object(whole) if whole.len() + bytes.len() > EVENT_BYTES_MAX => {
                return Err(AnswerFault::LongPiece(EVENT_BYTES_MAX));
            }
            Form::Object(whole) => {
                whole.extend_from_slice(bytes);
                return Ok(());
            }
            Form::Events(_) if self.bytes > STREAM_BYTES_MAX => {
                return Err(AnswerFault::Long(STREAM_BYTES_MAX));
            }
            Form::Events(parser) => {
                parser.push(bytes).map_err(|_| AnswerFault::LongPiece(EVENT_BYTES_MAX))?
            }
        };
        events.iter().try_for_each(|event| self.event(&event.data))
    }

    /// Returns the complete answer, once the server has ended it.
    pub(super) fn end(mut self) -> Result<ModelAnswer, AnswerFault> {
        if let Form::Events(parser) = &mut self.form {
            // The last event may lack its empty line.
            let last = parser.push(b"\n\n").unwrap_or_default();
            last.iter().try_for_each(|event| self.event(&event.data))?;
        }
        if let Form::Object(whole) = std::mem::replace(&mut self.form, Form::Unknown) {
            let object = serde_json::from_slice(&whole).map_err(rubbish)?;
            self.object(&object)?;
            self.is_done = true;
        }
        if self.has_begun && !self.is_finished() {
            return Err(AnswerFault::Unfinished);
        }
        if !self.has_begun {
            return Err(match self.api {
                ModelApi::Chat => AnswerFault::NoChoices,
                ModelApi::Responses => AnswerFault::NoOutput,
            });
        }
        let ModelAnswer { calls, .. } = &mut self.answer;
        calls.retain(|call| !call.name.is_empty() || !call.arguments.is_empty());
        // Calls without an index keep their order, after the others.
        calls.sort_by_key(|call| call.index.unwrap_or(u64::MAX));
        Ok(self.answer)
    }

    fn event(&mut self, data: &str) -> Result<(), AnswerFault> {
        let data = data.trim();
        if self.is_done || !data.starts_with('{') {
            // Keep-alives of all kinds; they hold no part of an answer.
            self.is_done |= data == "[DONE]";
            return Ok(());
        }
        // Part of the answer is lost here. Without it, a call could become a different one.
        let object = serde_json::from_str(data).map_err(rubbish)?;
        self.object(&object)
    }

    /// Adds a piece of the answer, or all of it.
    fn object(&mut self, object: &Value) -> Result<(), AnswerFault> {
        if let Some(fault) = reported(object) {
            return Err(fault);
        }
        match self.api {
            ModelApi::Chat => self.chat(object),
            ModelApi::Responses => self.response(object),
        }
    }

    /// Takes in the model's name and the usage.
    fn about(&mut self, object: &Value) {
        if self.answer.model.is_none() {
            self.answer.model = filled(&object["model"]).map(str::to_owned);
        }
        if let Some(usage) = usage(&object["usage"]) {
            self.answer.usage = Some(usage);
        }
    }

    fn count(&mut self, more_bytes: usize) -> Result<(), AnswerFault> {
        self.content_bytes += more_bytes;
        if self.content_bytes > CONTENT_BYTES_MAX {
            Err(AnswerFault::Long(CONTENT_BYTES_MAX))
        } else {
            Ok(())
        }
    }
}

/// Returns an error sent in place of an answer, or in the middle of one.
fn reported(object: &Value) -> Option<AnswerFault> {
    let error = match &object["error"] {
        Value::Null if object["object"] == "error" || object["type"] == "error" => object,
        Value::Null => return None,
        error => error,
    };
    let status = [&error["code"], &error["status"]].iter().find_map(|code| match code.as_str() {
        Some("server_error") => Some(500),
        Some("rate_limit_exceeded") => Some(429),
        Some(_) | None => code.as_u64().and_then(|code| u16::try_from(code).ok()),
    });
    let message = message(object).unwrap_or_else(|| "no error message".to_owned());
    Some(AnswerFault::Reported { status, message })
}

/// Returns the text of an error, wherever the server puts it.
pub(super) fn message(object: &Value) -> Option<String> {
    let places =
        [&object["error"]["message"], &object["error"], &object["message"], &object["detail"]];
    places.iter().find_map(|place| filled(place)).map(str::to_owned)
}

fn usage(usage: &Value) -> Option<Usage> {
    if !usage.is_object() {
        return None;
    }
    let count = |name: &str| usage[name].as_u64();
    let parts = || {
        let input = count("prompt_tokens").or_else(|| count("input_tokens"));
        let output = count("completion_tokens").or_else(|| count("output_tokens"));
        input.unwrap_or(0).saturating_add(output.unwrap_or(0))
    };
    let cost_usd = usage["cost"].as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0);
    Some(Usage { tokens: count("total_tokens").unwrap_or_else(parts), cost_usd })
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn filled(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

fn rubbish(error: serde_json::Error) -> AnswerFault {
    AnswerFault::Rubbish(json::explain(&error))
}

#[cfg(test)]
mod tests;
