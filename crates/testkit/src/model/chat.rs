//! OpenAI Chat Completions, as events and as one object.

use serde_json::{Value, json};

use super::{Part, Tool, event, items, text_of};

pub(super) fn tools(body: &Value) -> Vec<Tool> {
    items(&body["tools"]).filter_map(|tool| Tool::named(&tool["function"]["name"])).collect()
}

pub(super) fn results(body: &Value) -> Vec<String> {
    let answers = items(&body["messages"]).filter(|message| message["role"] == "tool");
    answers.map(|message| text_of(&message["content"])).collect()
}

pub(super) fn answer(body: &Value, parts: &[Part]) -> String {
    let (mut text, mut calls) = (String::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(more) => text += more,
            Part::Call { id, tool, arguments } => calls.push(json!({
                "index": calls.len(), "id": id, "type": "function",
                "function": {"name": tool.name, "arguments": arguments.to_string()},
            })),
        }
    }
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let envelope = |kind: &str, choice: Value| {
        json!({
            "id": "chat_1", "object": kind, "created": 0, "model": body["model"],
            "choices": [choice], "usage": usage,
        })
    };
    if body["stream"] != true {
        let choice = json!({"index": 0, "message": message, "finish_reason": finish});
        return envelope("chat.completion", choice).to_string();
    }
    let kind = "chat.completion.chunk";
    let first = envelope(kind, json!({"index": 0, "delta": message, "finish_reason": null}));
    let last = envelope(kind, json!({"index": 0, "delta": {}, "finish_reason": finish}));
    event(&first) + &event(&last) + "data: [DONE]\n\n"
}
