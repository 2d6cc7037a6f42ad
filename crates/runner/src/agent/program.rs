//! The agent programs, and their small differences.

/// The name of our server in the agents' configuration; it is part of its tools' names.
pub const SERVER_NAME: &str = "awf-proxy";

/// The agent programs that can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provider {
    Claude,
    Gemini,
    Codex,
    OpenCode,
}

impl Provider {
    pub const ALL: [Provider; 4] =
        [Provider::Claude, Provider::Gemini, Provider::Codex, Provider::OpenCode];

    /// The name as spelled in workflows; the program has the same name.
    pub fn as_str(self) -> &'static str {
        match self {
            Provider::Claude => "claude",
            Provider::Gemini => "gemini",
            Provider::Codex => "codex",
            Provider::OpenCode => "opencode",
        }
    }

    pub fn parse(name: &str) -> Option<Provider> {
        Provider::ALL.into_iter().find(|provider| provider.as_str() == name)
    }

    /// Claude and Codex reject longer prompts; Gemini would cut them.
    pub(super) fn prompt_size(self, prompt: &str) -> PromptSize {
        let (size, max, unit) = match self {
            Provider::Claude => (prompt.len(), 10_000_000, "bytes"),
            Provider::Gemini => (prompt.len(), 8 * 1024 * 1024, "bytes"),
            Provider::Codex => (prompt.chars().count(), 1024 * 1024, "characters"),
            Provider::OpenCode => (prompt.len(), 64 * 1024 * 1024, "bytes"),
        };
        PromptSize { size, max, unit }
    }

    /// Reports whether a tool, as the program names it, is one of ours.
    pub(super) fn names_ours(self, tool: &str) -> bool {
        let prefixes: &[&str] = match self {
            Provider::Claude => &["mcp__awf-proxy__"],
            Provider::Gemini => &["mcp_awf-proxy_", "awf-proxy__"],
            Provider::Codex => &["awf-proxy."],
            Provider::OpenCode => &["awf-proxy_"],
        };
        // Older versions of Gemini add no prefix. Its own tools are not capitalized.
        let is_plain = self == Provider::Gemini && workflow::BUILTINS.contains(&tool);
        is_plain || prefixes.iter().any(|prefix| tool.starts_with(prefix))
    }
}

/// The length of a prompt as the program counts it, and the program's limit.
pub(super) struct PromptSize {
    pub(super) size: usize,
    pub(super) max: usize,
    pub(super) unit: &'static str,
}

impl From<Provider> for workflow::Provider {
    fn from(program: Provider) -> Self {
        match program {
            Provider::Claude => workflow::Provider::Claude,
            Provider::Gemini => workflow::Provider::Gemini,
            Provider::Codex => workflow::Provider::Codex,
            Provider::OpenCode => workflow::Provider::OpenCode,
        }
    }
}
