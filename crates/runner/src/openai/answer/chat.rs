//! Answers of the Chat Completions API: choices whose parts arrive in pieces.

use serde_json::{Map, Value};

use super::{AnswerFault, Assembly, CALLS_MAX, ModelCall, filled, string};

/// Entries of `reasoning_details`; models send a few.
const DETAILS_MAX: usize = 1_000;

/// Members of a detail of which each piece holds a part.
const GROWING: [&str; 3] = ["text", "summary", "data"];

impl Assembly {
    /// Adds a piece of the answer, or all of it.
    pub(super) fn chat(&mut self, object: &Value) -> Result<(), AnswerFault> {
        self.about(object);
        let choices = object["choices"].as_array().into_iter().flatten();
        for choice in choices.filter(|choice| choice["index"].as_u64().unwrap_or(0) == 0) {
            self.has_begun = true;
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
        let [refusal, content, reasoning] =
            ["refusal", "reasoning_content", "reasoning"].map(|name| string(&said[name]));
        self.count(text.len() + refusal.len() + content.len() + reasoning.len())?;
        self.answer.text += &text;
        self.answer.refusal += refusal;
        self.answer.reasoning.content += content;
        self.answer.reasoning.text += reasoning;
        let details = said["reasoning_details"].as_array().into_iter().flatten();
        for piece in details.filter_map(Value::as_object) {
            self.detail(piece)?;
        }
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
        let extra_bytes = match &piece["extra_content"] {
            Value::Null => 0,
            extra => extra.to_string().len(),
        };
        self.count(id.len() + name.len() + arguments.len() + extra_bytes)?;
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
        if !piece["extra_content"].is_null() {
            call.extra_content = Some(piece["extra_content"].clone());
        }
        Ok(())
    }

    /// Adds a piece of `reasoning_details`. Pieces with one number and type are parts of one entry.
    fn detail(&mut self, piece: &Map<String, Value>) -> Result<(), AnswerFault> {
        let bytes = piece.iter().map(|(name, value)| name.len() + value.to_string().len()).sum();
        self.count(bytes)?;
        let details = &mut self.answer.reasoning.details;
        let same = |name: &str, entry: &Value| entry.get(name) == piece.get(name);
        let known = details.iter_mut().rev().find(|entry| {
            piece.get("index").is_some_and(Value::is_u64)
                && same("index", entry)
                && same("type", entry)
        });
        let Some(Value::Object(entry)) = known else {
            if details.len() == DETAILS_MAX {
                return Err(AnswerFault::ManyDetails);
            }
            details.push(Value::Object(piece.clone()));
            return Ok(());
        };
        for (name, value) in piece {
            match (entry.get_mut(name), value) {
                (_, Value::Null) => {}
                (Some(Value::String(begun)), Value::String(more))
                    if GROWING.contains(&name.as_str()) =>
                {
                    begun.push_str(more);
                }
                (_, value) => {
                    entry.insert(name.clone(), value.clone());
                }
            }
        }
        Ok(())
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
