//! OpenAI Responses, as Codex speaks it: tools may lie in namespaces, and in an input item
//! `additional_tools` instead of the request's own list.

use serde_json::{Value, json};

use super::{Part, Tool, event, items, text_of};

pub(super) fn tools(body: &Value) -> Vec<Tool> {
    let added = items(&body["input"]).filter(|item| item["type"] == "additional_tools");
    let added = added.flat_map(|item| items(&item["tools"]));
    items(&body["tools"]).chain(added).flat_map(unpacked).collect()
}

/// Returns a tool, or the tools of a namespace. One that the API itself runs has a type and no
/// name.
fn unpacked(tool: &Value) -> Vec<Tool> {
    if tool["type"] != "namespace" {
        return Tool::named(&tool["name"])
            .or_else(|| Tool::named(&tool["type"]))
            .into_iter()
            .collect();
    }
    let namespace = tool["name"].as_str().map(str::to_owned);
    let inner = items(&tool["tools"]).filter_map(|tool| Tool::named(&tool["name"]));
    inner.map(|tool| Tool { namespace: namespace.clone(), ..tool }).collect()
}

pub(super) fn results(body: &Value) -> Vec<String> {
    let is_output = |kind: &str| kind.ends_with("call_output");
    let outputs = items(&body["input"]).filter(|item| item["type"].as_str().is_some_and(is_output));
    outputs.map(|item| text_of(&item["output"])).collect()
}

pub(super) fn answer(body: &Value, parts: &[Part]) -> String {
    let output: Vec<Value> = parts.iter().map(item).collect();
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15,
    });
    let whole = json!({
        "id": "resp_1", "object": "response", "status": "completed", "model": body["model"],
        "output": output, "usage": usage,
    });
    if body["stream"] != true {
        return whole.to_string();
    }
    let mut events = event(&json!({"type": "response.created", "response": {"id": "resp_1"}}));
    for (index, item) in output.iter().enumerate() {
        for kind in ["response.output_item.added", "response.output_item.done"] {
            events += &event(&json!({"type": kind, "output_index": index, "item": item}));
        }
    }
    events + &event(&json!({"type": "response.completed", "response": whole}))
}

fn item(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        Part::Call { id, tool, arguments: Value::String(input) } => json!({
            "type": "custom_tool_call", "id": format!("c{id}"), "call_id": id,
            "name": tool.name, "input": input,
        }),
        Part::Call { id, tool, arguments } => {
            let mut item = json!({
                "type": "function_call", "id": format!("f{id}"), "call_id": id,
                "name": tool.name, "arguments": arguments.to_string(),
            });
            if let Some(namespace) = &tool.namespace {
                item["namespace"] = json!(namespace);
            }
            item
        }
    }
}
