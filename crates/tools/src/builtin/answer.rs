//! The result of a tool, as the agent gets it.

use std::path::PathBuf;

use mcp::message::to_raw;
use provider::Reply;
use serde_json::{Value, json};

/// The content of a result.
pub(super) struct ToolAnswer {
    pub(super) content: Vec<Value>,
    pub(super) is_error: bool,
    /// For programs only; models do not see it.
    pub(super) meta: Option<Value>,
    /// The file or folder that the tool opened.
    pub(super) opened: Option<PathBuf>,
}

impl ToolAnswer {
    pub(super) fn of(content: Vec<Value>) -> ToolAnswer {
        ToolAnswer { content, is_error: false, meta: None, opened: None }
    }

    pub(super) fn text(text: impl AsRef<str>) -> ToolAnswer {
        ToolAnswer::of(vec![text_block(text.as_ref())])
    }

    /// Names the file or folder that the tool opened.
    pub(super) fn with_opened(self, path: PathBuf) -> ToolAnswer {
        ToolAnswer { opened: Some(path), ..self }
    }

    pub(super) fn into_reply(self) -> Reply {
        let mut result = json!({"content": self.content, "isError": self.is_error});
        if let Some(meta) = self.meta {
            result["_meta"] = meta;
        }
        Reply { result: to_raw(&result), opened: self.opened }
    }
}

pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
