//! An answer of a Chat Completions server, assembled from its bytes as they arrive, as events or
//! one object. Reads no socket; the boundaries of the chunks make no difference.

use domain::json;
use mcp::sse;
use serde_json::Value;

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
    /// Some servers require it back with the calls it led to.
    pub(super) reasoning: String,
    /// In the order in which they are to be answered.
    pub(super) calls: Vec<ModelCall>,
    pub(super) finish: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) model: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ModelCall {
    /// Empty if the server sent none.
    pub(super) id: String,
    pub(super) name: String,
    /// JSON, unless the model made a mistake.
    pub(super) arguments: String,
    index: Option<u64>,
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
    #[error("cannot parse the response: {0}")]
    Rubbish(String),
    #[error("the response is not a Chat Completions response: it has no choices")]
    Nothing,
    #[error("the response ended early")]
    Unfinished,
    #[error("{message}")]
    Reported { status: Option<u16>, message: String },
}

/// An answer still arriving.
pub(super) struct Assembly {
    form: Form,
    bytes: usize,
    content_bytes: usize,
    answer: ModelAnswer,
    has_choices: bool,
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
    pub(super) fn new() -> Assembly {
        Assembly {
            form: Form::Unknown,
            bytes: 0,
            content_bytes: 0,
            answer: ModelAnswer::default(),
            has_choices: false,
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
        if self.has_choices && !self.is_finished() {
            return Err(AnswerFault::Unfinished);
        }
        if !self.has_choices {
            return Err(AnswerFault::Nothing);
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
        let answer = &mut self.answer;
        if answer.model.is_none() {
            answer.model = filled(&object["model"]).map(str::to_owned);
        }
        if let Some(usage) = usage(&object["usage"]) {
            answer.usage = Some(usage);
        }
        let choices = object["choices"].as_array().into_iter().flatten();
        for choice in choices.filter(|choice| choice["index"].as_u64().unwrap_or(0) == 0) {
            self.has_choices = true;
            self.choice(choice)?;
        }
        Ok(())
    }

    fn choice(&mut self, choice: &Value) -> Result<(), AnswerFault> {
        let said = match &choice["delta"] {
            delta @ Value::Object(_) => delta,
            _ => &choice["message"],
        };
        if let Some(reason) = filled(&choice["finish_reason"]) {
            self.answer.finish = Some(reason.to_owned());
        }
        let mut text = String::new();
        match &said["content"] {
            Value::Array(parts) => parts.iter().for_each(|part| text += string(&part["text"])),
            other => text += string(other),
        }
        let pieces = [text.as_str(), string(&said["refusal"]), string(&said["reasoning_content"])];
        self.count(pieces.iter().map(|piece| piece.len()).sum())?;
        self.answer.text += pieces[0];
        self.answer.refusal += pieces[1];
        self.answer.reasoning += pieces[2];
        let calls = said["tool_calls"].as_array().into_iter().flatten();
        for piece in calls.filter(|piece| piece.is_object()) {
            self.call(piece)?;
        }
        Ok(())
    }

    fn call(&mut self, piece: &Value) -> Result<(), AnswerFault> {
        let function = &piece["function"];
        let (id, name) = (string(&piece["id"]), string(&function["name"]));
        let arguments = match &function["arguments"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            // Some servers send the JSON itself instead of a string.
            other => other.to_string(),
        };
        self.count(id.len() + name.len() + arguments.len())?;
        let index = piece["index"].as_u64();
        let calls = &mut self.answer.calls;
        let place = place_of(calls, index, id, name).unwrap_or(calls.len());
        if place == calls.len() {
            if place == CALLS_MAX {
                return Err(AnswerFault::ManyCalls);
            }
            calls.push(ModelCall { index, ..ModelCall::default() });
        }
        let call = &mut calls[place];
        // Taken from the first piece that has them: some servers repeat them in every piece.
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        call.arguments += &arguments;
        Ok(())
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

/// Finds the call that a piece belongs to; `None` if it begins a new one.
fn place_of(calls: &[ModelCall], index: Option<u64>, id: &str, name: &str) -> Option<usize> {
    let place = match index {
        Some(_) => calls.iter().rposition(|call| call.index == index)?,
        None if !id.is_empty() => return calls.iter().rposition(|call| call.id == id),
        None => calls.len().checked_sub(1)?,
    };
    let begun = &calls[place];
    // Servers without an index send a whole call in each piece; some of them number all calls 0.
    let another = !begun.name.is_empty()
        && !name.is_empty()
        && (index.is_none() || !id.is_empty() && !begun.id.is_empty() && id != begun.id);
    (!another).then_some(place)
}

/// Returns an error sent in place of an answer, or in the middle of one.
fn reported(object: &Value) -> Option<AnswerFault> {
    let error = match &object["error"] {
        Value::Null if object["object"] == "error" => object,
        Value::Null => return None,
        error => error,
    };
    let status = [&error["code"], &error["status"]].iter().find_map(|code| code.as_u64());
    let status = status.and_then(|code| u16::try_from(code).ok());
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
        let (input, output) = (count("prompt_tokens"), count("completion_tokens"));
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
