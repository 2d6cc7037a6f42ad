//! The checked values of one upstream server.

use std::num::NonZeroU32;
use std::time::Duration;

use super::template::ConfigTemplate;
use super::tool_rules::ToolRules;
use crate::choice;

/// One entry of `mcpServers`. Its `Debug` hides what looks secret.
#[derive(Clone, PartialEq)]
pub struct ServerConfig {
    pub name: String,
    pub origin: ServerOrigin,
    pub transport: Transport,
    pub enabled: bool,
    pub quarantined: bool,
    /// `enabled_tools` and `disabled_tools`, of one file or of several laid over each other.
    pub tools: ToolRules,
    pub auto_approve: AutoApprove,
    pub sharing: Sharing,
    pub start: Start,
    /// `None`: the `call_timeout` of the config.
    pub call_timeout: Option<Duration>,
    /// `None`: no bound of its own.
    pub max_concurrent: Option<NonZeroU32>,
    pub oauth: Option<OAuth>,
}

/// Who put a server or a profile there. Only what is the person's own is trusted from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerOrigin {
    /// The person's own configuration.
    Own,
    /// A file that lay in the folder.
    Found,
    /// Added at run time.
    Added,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum Transport {
    Stdio {
        /// One program, found on `PATH` or by its path; no shell reads it.
        command: String,
        args: Vec<ConfigTemplate>,
        env: Vec<(String, ConfigTemplate)>,
        cwd: Option<String>,
    },
    /// `http` or `https`, unless the url starts with a variable: then the edge has to look.
    Http { url: ConfigTemplate, headers: Vec<(String, ConfigTemplate)> },
    /// The HTTP+SSE transport of protocol version 2024-11-05.
    Sse { url: ConfigTemplate, headers: Vec<(String, ConfigTemplate)> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuth {
    pub client_id: Option<String>,
    pub scopes: Vec<String>,
}

choice! {
    /// Which tools of a server need no person's approval.
    AutoApprove {
        None = "none",
        /// New tools; a changed one still waits.
        New = "new",
        All = "all",
    }
}

choice! {
    /// Whether callers share one connection.
    Sharing { Auto = "auto", Shared = "shared", PerClient = "per_client" }
}

choice! {
    /// When a server is connected.
    Start {
        Eager = "eager",
        /// At its first call.
        Lazy = "lazy",
    }
}
