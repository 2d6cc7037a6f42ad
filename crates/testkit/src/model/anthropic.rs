//! Anthropic Messages, as events and as one object.

use serde_json::{Value, json};

use super::{Part, Tool, event, items, text_of};

pub(super) fn tools(body: &Value) -> Vec<Tool> {
    items(&body["tools"]).filter_map(|tool| Tool::named(&tool["name"])).collect()
}

pub(super) fn results(body: &Value) -> Vec<String> {
    let blocks = items(&body["messages"]).flat_map(|message| items(&message["content"]));
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results.map(|block| text_of(&block["content"])).collect()
}

pub(super) fn answer(body: &Value, parts: &[Part]) -> String {
    let blocks: Vec<Value> = parts.iter().map(block).collect();
    let calls = parts.iter().any(|part| matches!(part, Part::Call { .. }));
    let stop = if calls { "tool_use" } else { "end_turn" };
    let usage = json!({"input_tokens": 10, "output_tokens": 5});
    let turn = body["messages"].as_array().map_or(0, Vec::len);
    let mut message = json!({
        "id": format!("msg_{turn}"), "type": "message", "role": "assistant", "model": body["model"],
        "content": blocks, "stop_reason": stop, "stop_sequence": null, "usage": usage,
    });
    if body["stream"] != true {
        return message.to_string();
    }
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    let mut events = event(&json!({"type": "message_start", "message": message}));
    for (index, block) in blocks.iter().enumerate() {
        events += &streamed(index, block);
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    events += &event(&json!({"type": "message_delta", "delta": delta, "usage": usage}));
    events + &event(&json!({"type": "message_stop"}))
}

fn block(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Call { id, tool, arguments } => {
            json!({"type": "tool_use", "id": id, "name": tool.name, "input": arguments})
        }
    }
}

fn streamed(index: usize, block: &Value) -> String {
    let mut start = block.clone();
    let delta = if block["type"] == "text" {
        start["text"] = json!("");
        json!({"type": "text_delta", "text": block["text"]})
    } else {
        start["input"] = json!({});
        json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
    };
    [
        json!({"type": "content_block_start", "index": index, "content_block": start}),
        json!({"type": "content_block_delta", "index": index, "delta": delta}),
        json!({"type": "content_block_stop", "index": index}),
    ]
    .iter()
    .map(event)
    .collect()
}
