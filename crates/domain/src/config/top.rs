//! The checked configuration as a whole.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use super::fault::Note;
use super::section::{
    IntentDeclaration, Ledger, PluginConfig, ProfileConfig, Redact, SearchConfig, SecretsKey,
    Telemetry, TlsFiles, WorkspaceConfig,
};
use super::server::ServerConfig;

/// A checked configuration, with defaults filled in. Its `Debug` hides likely secrets.
#[derive(Clone, PartialEq)]
pub struct Config {
    pub listen: SocketAddr,
    /// The file's values; `None` uses [`Config::hosts`].
    pub allowed_hosts: Option<Vec<String>>,
    /// The file's values; `None` uses [`Config::origins`].
    pub allowed_origins: Option<Vec<String>>,
    /// `None` serves plain HTTP.
    pub tls: Option<TlsFiles>,
    /// A TLS proxy is in front of the listener.
    pub behind_proxy: bool,
    /// The default token is valid.
    pub agent_token: bool,
    /// In file order.
    pub servers: Vec<ServerConfig>,
    pub profiles: Vec<ProfileConfig>,
    pub workspace: WorkspaceConfig,
    pub plugins: Vec<PluginConfig>,
    pub intent: IntentDeclaration,
    pub search: SearchConfig,
    pub tools_limit: u32,
    /// In characters; 0 is no limit.
    pub tool_response_limit: u32,
    pub call_timeout: Duration,
    pub connect_timeout: Duration,
    pub shutdown_timeout: Duration,
    pub refresh_interval: Duration,
    pub ledger: Ledger,
    pub redact: Redact,
    pub secrets_key: SecretsKey,
    pub telemetry: Telemetry,
    /// MCP requests per minute for each token.
    pub rate_limit: Option<NonZeroU32>,
}

/// A text without faults, as read by [`parse`](super::parse) and similar functions.
#[derive(Debug)]
pub struct ParsedConfig {
    pub config: Config,
    /// Notes on keys that were ignored, were understood under another name, or are risky; in text
    /// order.
    pub notes: Vec<Note>,
}

impl Config {
    pub fn server(&self, name: &str) -> Option<&ServerConfig> {
        self.servers.iter().find(|server| server.name == name)
    }

    pub fn profile(&self, name: &str) -> Option<&ProfileConfig> {
        self.profiles.iter().find(|profile| profile.name == name)
    }

    /// Reports whether tokens cannot be read on the way to the listener from another machine.
    pub fn is_protected(&self) -> bool {
        self.tls.is_some() || self.behind_proxy
    }

    /// Reports whether only the built-in tools are configured; they are then enabled by default.
    pub(super) fn is_bare(&self) -> bool {
        self.servers.is_empty() && self.plugins.is_empty()
    }
}
