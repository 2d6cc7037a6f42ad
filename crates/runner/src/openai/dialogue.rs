//! The conversation with a model, in the form of its API. All of it is part of every request.

use mcp::object::{ObjectMembers, quote};
use serde_json::Value;
use workflow::ModelApi;

use super::answer::{ModelAnswer, ModelCall};
use super::tools;

/// The messages so far, each a JSON text.
pub(super) struct Dialogue {
    api: ModelApi,
    messages: Vec<String>,
}

impl Dialogue {
    pub(super) fn new(api: ModelApi, system_prompt: Option<&str>, prompt: &str) -> Dialogue {
        let system = system_prompt.map(|text| message("system", text));
        let messages = system.into_iter().chain([message("user", prompt)]).collect();
        Dialogue { api, messages }
    }

    pub(super) fn messages(&self) -> &[String] {
        &self.messages
    }

    /// Adds an answer of the model, and the results of its calls.
    pub(super) fn add(&mut self, answer: ModelAnswer, results: &[String]) {
        let of_calls = answer.calls.iter().zip(results);
        match self.api {
            ModelApi::Chat => {
                self.messages.push(chat_message(&answer));
                self.messages.extend(of_calls.map(|(call, text)| chat_result(call, text)));
            }
            ModelApi::Responses => {
                let results: Vec<String> =
                    of_calls.map(|(call, text)| response_result(call, text)).collect();
                self.messages.extend(response_items(answer));
                self.messages.extend(results);
            }
        }
    }
}

/// Returns a tool in the form of the API. The schema keeps its text.
pub(super) fn definition(api: ModelApi, tool: &ObjectMembers) -> Option<String> {
    let mut function = ObjectMembers::default();
    if api == ModelApi::Responses {
        function.set("type", r#""function""#);
    }
    function.set("name", tool.get("name")?);
    if let Some(description) = tool.get("description") {
        function.set("description", description);
    }
    if let Some(schema) = tool.get("inputSchema") {
        function.set("parameters", schema);
    }
    Some(match api {
        ModelApi::Chat => {
            format!(r#"{{"type":"function","function":{}}}"#, function.write_text())
        }
        ModelApi::Responses => {
            // By default the schema would have to obey further rules.
            function.set("strict", "false");
            function.write_text()
        }
    })
}

fn message(role: &str, content: &str) -> String {
    format!(r#"{{"role":{},"content":{}}}"#, quote(role), quote(content))
}

/// Returns a call's arguments as they go back. Those that are not valid JSON are left out: servers
/// that parse them reject the whole conversation. The result of the call quotes them.
fn arguments(call: &ModelCall) -> String {
    tools::arguments(&call.arguments).unwrap_or_else(|_| "{}".to_owned())
}

fn name(call: &ModelCall) -> &str {
    if call.name.is_empty() { "unknown" } else { &call.name }
}

/// Formats the model's text with its calls.
fn chat_message(answer: &ModelAnswer) -> String {
    let calls = answer.calls.iter().map(|call| {
        let mut function = ObjectMembers::default();
        function.set("name", quote(name(call)));
        function.set("arguments", quote(&arguments(call)));
        let mut told = ObjectMembers::default();
        told.set("id", quote(&call.id));
        told.set("type", r#""function""#);
        told.set("function", function.write_text());
        if let Some(extra) = &call.extra_content {
            told.set("extra_content", extra.to_string());
        }
        told.write_text()
    });
    let calls: Vec<String> = calls.collect();
    let mut told = ObjectMembers::default();
    told.set("role", r#""assistant""#);
    let content = if answer.text.is_empty() { "null".to_owned() } else { quote(&answer.text) };
    told.set("content", content);
    let reasoning = &answer.reasoning;
    for (name, text) in [("reasoning_content", &reasoning.content), ("reasoning", &reasoning.text)]
    {
        if !text.is_empty() {
            told.set(name, quote(text));
        }
    }
    if !reasoning.details.is_empty() {
        told.set("reasoning_details", Value::from(reasoning.details.clone()).to_string());
    }
    told.set("tool_calls", format!("[{}]", calls.join(",")));
    told.write_text()
}

fn chat_result(call: &ModelCall, text: &str) -> String {
    let mut told = ObjectMembers::default();
    told.set("role", r#""tool""#);
    told.set("tool_call_id", quote(&call.id));
    told.set("content", quote(text));
    told.write_text()
}

/// Returns the items of an answer as they came, but for what is invalid in its calls.
fn response_items(answer: ModelAnswer) -> Vec<String> {
    let mut calls = answer.calls.iter();
    let mut items = answer.items;
    for item in items.iter_mut().filter(|item| item["type"] == "function_call") {
        if let Some(call) = calls.next() {
            item["call_id"] = call.id.as_str().into();
            item["name"] = name(call).into();
            item["arguments"] = arguments(call).into();
        }
    }
    items.iter().map(Value::to_string).collect()
}

fn response_result(call: &ModelCall, text: &str) -> String {
    let mut told = ObjectMembers::default();
    told.set("type", r#""function_call_output""#);
    told.set("call_id", quote(&call.id));
    told.set("output", quote(text));
    told.write_text()
}

#[cfg(test)]
mod tests {
    use mcp::message::raw;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_keeps_the_text_of_its_schema() {
        let tool = raw(
            r#"{"name":"a__b","title":"T","description":"d\n","inputSchema":{"type":"object","x":1E2},"annotations":{}}"#
                .to_owned(),
        );
        let tool = ObjectMembers::parse(&tool).unwrap();
        let members = r#""name":"a__b","description":"d\n","parameters":{"type":"object","x":1E2}"#;
        assert_eq!(
            definition(ModelApi::Chat, &tool).unwrap(),
            format!(r#"{{"type":"function","function":{{{members}}}}}"#)
        );
        assert_eq!(
            definition(ModelApi::Responses, &tool).unwrap(),
            format!(r#"{{"type":"function",{members},"strict":false}}"#)
        );
        assert_eq!(definition(ModelApi::Chat, &ObjectMembers::default()), None);
    }

    #[test]
    fn invalid_calls_go_back_in_a_valid_form() {
        let items = vec![
            json!({"type": "reasoning", "id": "r", "encrypted_content": "x"}),
            json!({"type": "function_call", "id": "f", "name": "", "arguments": "{\"a\":"}),
        ];
        let call = ModelCall {
            id: "call_1_0".to_owned(),
            arguments: "{\"a\":".to_owned(),
            ..ModelCall::default()
        };
        let answer = ModelAnswer { items, calls: vec![call], ..ModelAnswer::default() };
        let mut dialogue = Dialogue::new(ModelApi::Responses, None, "go");
        dialogue.add(answer, &["error: no".to_owned()]);
        let read: Vec<Value> =
            dialogue.messages()[1..].iter().map(|it| serde_json::from_str(it).unwrap()).collect();
        assert_eq!(
            read,
            [
                json!({"type": "reasoning", "id": "r", "encrypted_content": "x"}),
                json!({"type": "function_call", "id": "f", "name": "unknown", "arguments": "{}",
                    "call_id": "call_1_0"}),
                json!({"type": "function_call_output", "call_id": "call_1_0", "output": "error: no"}),
            ]
        );
    }
}
