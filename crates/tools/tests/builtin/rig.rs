//! A folder with tools over it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::Caller;
use domain::method::Method;
use domain::tool::ToolName;
use provider::{Call, CallContext, Declared, ProviderError, Surface, ToolProvider};
use serde_json::Value;
use text::json::Object;
use tools::builtin::{OffLimits, Permissions, Workspace};

pub(crate) const ALL: Permissions = Permissions { write: true, shell: true, allow_outside: false };

pub(crate) struct Rig {
    /// Contains the root as a folder, so that there is an outside.
    pub(crate) around: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) workspace: Workspace,
}

/// A tool's response.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) is_error: bool,
    /// The text blocks.
    pub(crate) texts: Vec<String>,
    pub(crate) result: Value,
}

impl Said {
    pub(crate) fn text(&self) -> &str {
        &self.texts[0]
    }

    pub(crate) fn ok(self) -> Said {
        assert!(!self.is_error, "{:?}", self.texts);
        self
    }

    #[track_caller]
    pub(crate) fn refused(self, words: &str) {
        assert!(self.is_error, "{:?}", self.texts);
        assert!(self.text().contains(words), "'{words}' is not in '{}'", self.text());
    }
}

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig::with(ALL)
    }

    pub(crate) fn with(allowed: Permissions) -> Rig {
        let around = tempfile::tempdir().unwrap();
        let root = around.path().canonicalize().unwrap().join("inside");
        std::fs::create_dir(&root).unwrap();
        let home = root.join("gate");
        let own = [root.join("own/config.json"), around.path().join("program")].to_vec();
        let off_limits =
            OffLimits { folders: vec![home], files: Arc::new(move || Ok(own.clone())) };
        let workspace = Workspace::new(&root, allowed, off_limits).unwrap();
        Rig { around, root, workspace }
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn get(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Said {
        let ctx = CallContext::within(Duration::from_secs(60));
        self.call_with(tool, arguments, &ctx).await.unwrap()
    }

    pub(crate) async fn call_with(
        &self,
        tool: &str,
        arguments: Value,
        ctx: &CallContext,
    ) -> Result<Said, ProviderError> {
        let call = call(tool, &arguments);
        let reply = self.workspace.call(&call, ctx).await?;
        let result: Value = serde_json::from_str(reply.result.get()).unwrap();
        let blocks = result["content"].as_array().unwrap();
        let texts = blocks.iter().filter_map(|block| block["text"].as_str());
        Ok(Said {
            is_error: result["isError"] == true,
            texts: texts.map(str::to_owned).collect(),
            result,
        })
    }
}

fn call(tool: &str, arguments: &Value) -> Call {
    Call {
        id: "1".to_owned(),
        caller: Arc::new(Caller::admin()),
        client: None,
        session: None,
        request_id: None,
        surface: Surface::Discovery,
        method: Method::ToolCall,
        tool: ToolName { server: "workspace".to_owned(), tool: tool.to_owned() },
        arguments: Object::parse(&arguments.to_string()).unwrap().unwrap(),
        declared: Declared::Nothing,
        other: Vec::new(),
    }
}
