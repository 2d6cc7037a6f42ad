//! Gemini's `generateContent` and `streamGenerateContent`.

use serde_json::{Value, json};

use super::{Part, Tool, event, items};

pub(super) fn tools(body: &Value) -> Vec<Tool> {
    let declared = items(&body["tools"]).flat_map(|tool| items(&tool["functionDeclarations"]));
    declared.filter_map(|tool| Tool::named(&tool["name"])).collect()
}

pub(super) fn results(body: &Value) -> Vec<String> {
    let parts = items(&body["contents"]).flat_map(|content| items(&content["parts"]));
    let answered = parts.filter_map(|part| part.get("functionResponse"));
    answered.map(|answered| answered["response"].to_string()).collect()
}

pub(super) fn answer(events: bool, parts: &[Part]) -> String {
    let parts: Vec<Value> = parts.iter().map(part).collect();
    let answer = json!({
        "candidates": [{
            "content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0,
        }],
        "usageMetadata": {
            "promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15,
        },
        "modelVersion": "scripted",
    });
    if events { event(&answer) } else { answer.to_string() }
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"text": text}),
        Part::Call { id, tool, arguments } => {
            json!({"functionCall": {"id": id, "name": tool.name, "args": arguments}})
        }
    }
}
