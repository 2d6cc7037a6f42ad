//! Answers of the Responses API: a list of items. As a stream, each item arrives whole once it is
//! done, and the last event repeats them all.

use serde_json::Value;

use super::{AnswerFault, Assembly, CALLS_MAX, ModelCall, reported, string};

impl Assembly {
    /// Adds an event of the answer, or all of it.
    pub(super) fn response(&mut self, object: &Value) -> Result<(), AnswerFault> {
        match object["type"].as_str() {
            Some("response.output_item.done") => {
                let item = &object["item"];
                self.count(item.to_string().len())?;
                self.has_begun = true;
                let next = self.items.keys().next_back().map_or(0, |last| last.saturating_add(1));
                let place = object["output_index"].as_u64().unwrap_or(next);
                self.items.insert(place, item.clone());
                Ok(())
            }
            Some(
                "response.completed"
                | "response.incomplete"
                | "response.failed"
                | "response.cancelled"
                | "response.done",
            ) => self.whole_response(&object["response"]),
            Some(_) => {
                self.has_begun |= object["response"].is_object();
                Ok(())
            }
            // The whole answer in one piece has no type, but the name of its kind.
            None if object["output"].is_array() => {
                self.count(object["output"].to_string().len())?;
                self.whole_response(object)
            }
            None => Ok(()),
        }
    }

    fn whole_response(&mut self, response: &Value) -> Result<(), AnswerFault> {
        if let Some(fault) = failed(response) {
            return Err(fault);
        }
        self.about(response);
        self.has_begun = true;
        self.is_done = true;
        let mut items: Vec<Value> = match response["output"].as_array() {
            Some(output) if !output.is_empty() => output.clone(),
            Some(_) | None => std::mem::take(&mut self.items).into_values().collect(),
        };
        items.retain(|item| !is_empty_call(item));
        for item in &items {
            self.item(item)?;
        }
        self.answer.items = items;
        let finish = match (
            response["status"].as_str(),
            string(&response["incomplete_details"]["reason"]),
        ) {
            (Some("incomplete"), "content_filter") => "content_filter",
            (Some("incomplete"), _) => "length",
            _ => "stop",
        };
        self.answer.finish = Some(finish.to_owned());
        Ok(())
    }

    fn item(&mut self, item: &Value) -> Result<(), AnswerFault> {
        match item["type"].as_str() {
            Some("message") => {
                for part in item["content"].as_array().into_iter().flatten() {
                    self.answer.text += string(&part["text"]);
                    self.answer.refusal += string(&part["refusal"]);
                }
            }
            Some("function_call") => {
                if self.answer.calls.len() == CALLS_MAX {
                    return Err(AnswerFault::ManyCalls);
                }
                let text = |name: &str| string(&item[name]).to_owned();
                self.answer.calls.push(ModelCall {
                    id: text("call_id"),
                    name: text("name"),
                    arguments: text("arguments"),
                    ..ModelCall::default()
                });
            }
            Some(_) | None => {}
        }
        Ok(())
    }
}

/// Reports whether an item announces a call and does not say which.
fn is_empty_call(item: &Value) -> bool {
    item["type"] == "function_call"
        && string(&item["name"]).is_empty()
        && string(&item["arguments"]).is_empty()
}

/// Returns the error of a response that failed.
fn failed(response: &Value) -> Option<AnswerFault> {
    let status = response["status"].as_str().filter(|it| matches!(*it, "failed" | "cancelled"))?;
    let message = format!("the response has the status '{status}'");
    Some(reported(response).unwrap_or(AnswerFault::Reported { status: None, message }))
}
