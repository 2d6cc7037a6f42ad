//! The result of a tool, as the agent gets it.

use mcp::message::to_raw;
use provider::Reply;
use serde_json::{Value, json};

/// The content of a result.
pub(super) struct ToolAnswer {
    pub(super) content: Vec<Value>,
    pub(super) is_error: bool,
    /// For programs only; models do not see it.
    pub(super) meta: Option<Value>,
}

impl ToolAnswer {
    pub(super) fn of(content: Vec<Value>) -> ToolAnswer {
        ToolAnswer { content, is_error: false, meta: None }
    }

    pub(super) fn text(text: impl AsRef<str>) -> ToolAnswer {
        ToolAnswer::of(vec![text_block(text.as_ref())])
    }

    pub(super) fn into_reply(self) -> Reply {
        let mut result = json!({"content": self.content, "isError": self.is_error});
        if let Some(meta) = self.meta {
            result["_meta"] = meta;
        }
        Reply { result: to_raw(&result) }
    }
}

pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
