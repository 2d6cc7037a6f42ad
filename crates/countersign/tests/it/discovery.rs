//! Tools that exist and cannot be called: how they are found, why they are locked, and that nothing
//! else changes by it.

use std::path::Path;

use serde_json::{Value, json};

use crate::gate::{Gate, scripted};

/// What was answered before locked tools could be asked for. `UPDATE_GOLDEN=1` writes it anew, which
/// only a wanted change of the answer justifies.
const GOLDEN: &str = "tests/it/golden/retrieve_tools.jsonl";

fn golden_tools() -> Value {
    json!([
        {"name": "read_file", "description": "Read a file. It must be there.",
         "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
         "annotations": {"readOnlyHint": true, "openWorldHint": false}, "x-more": 1.50},
        {"name": "write_file", "title": "Write", "description": "Write a file",
         "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}, "mode": {"enum": ["new", "append"]}}}},
        {"name": "delete_file", "description": "Delete a file", "annotations": {"destructiveHint": true}},
        {"name": "list_files", "description": "List files \u{1f5c2} of a folder"},
    ])
}

fn golden_servers(dir: &Path) -> Value {
    let mut locked =
        scripted(dir, "locked", &json!([{"name": "shred_file", "description": "Shred a file"}]));
    locked["disabled_tools"] = json!(["shred_file"]);
    json!({"files": scripted(dir, "files", &golden_tools()), "locked": locked})
}

#[tokio::test]
async fn without_the_flag_every_byte_is_as_before() {
    let gate = Gate::start(golden_servers, json!({})).await;
    gate.ready("files").await;
    gate.ready("locked").await;
    let client = gate.http().await;
    let mut answers = String::new();
    for arguments in [
        json!({"query": "read a file"}),
        json!({"query": "file", "limit": 2}),
        json!({"query": "file", "detail": "compact"}),
        json!({"query": "file", "read_only_only": true}),
        json!({"query": "file", "exclude_destructive": true, "exclude_open_world": true}),
        json!({"query": "nothing of the kind exists"}),
        json!({"query": ""}),
        json!({"query": "file", "limit": 0}),
    ] {
        let params = json!({"name": "retrieve_tools", "arguments": arguments}).to_string();
        answers += &client.request_text("tools/call", &params).await.unwrap();
        answers.push('\n');
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(GOLDEN, &answers).unwrap();
    }
    assert_eq!(answers, std::fs::read_to_string(GOLDEN).unwrap());
}
