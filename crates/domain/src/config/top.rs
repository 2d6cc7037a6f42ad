//! The checked configuration as a whole.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use super::fault::Note;
use super::section::{
    IntentDeclaration, Ledger, PluginConfig, ProfileConfig, Redact, StoreConfig, Telemetry,
    WorkspaceConfig,
};
use super::server::ServerConfig;

/// A checked configuration, with the defaults filled in. Its `Debug` hides what looks secret.
#[derive(Clone, PartialEq)]
pub struct Config {
    pub listen: SocketAddr,
    /// As the file names them; `None` leaves it to [`Config::hosts`].
    pub allowed_hosts: Option<Vec<String>>,
    /// As the file names them; `None` leaves it to [`Config::origins`].
    pub allowed_origins: Option<Vec<String>>,
    /// In the order of the file.
    pub servers: Vec<ServerConfig>,
    pub profiles: Vec<ProfileConfig>,
    pub workspace: WorkspaceConfig,
    pub plugins: Vec<PluginConfig>,
    pub intent: IntentDeclaration,
    pub tools_limit: u32,
    /// Characters; 0 is no limit.
    pub tool_response_limit: u32,
    pub call_timeout: Duration,
    pub connect_timeout: Duration,
    pub shutdown_timeout: Duration,
    pub refresh_interval: Duration,
    pub ledger: Ledger,
    pub redact: Redact,
    pub telemetry: Telemetry,
    /// Requests a minute for each caller of `/mcp`.
    pub rate_limit: Option<NonZeroU32>,
    pub store: StoreConfig,
}

/// A text without faults, as [`parse`](super::parse) and its like read it.
#[derive(Debug)]
pub struct ParsedConfig {
    pub config: Config,
    /// On keys that were ignored, understood by another name, or are risky; in the order of the
    /// text.
    pub notes: Vec<Note>,
}

impl Config {
    pub fn server(&self, name: &str) -> Option<&ServerConfig> {
        self.servers.iter().find(|server| server.name == name)
    }

    pub fn profile(&self, name: &str) -> Option<&ProfileConfig> {
        self.profiles.iter().find(|profile| profile.name == name)
    }

    /// True where the built-in tools are all there is, which is when they are on by default.
    pub(super) fn is_bare(&self) -> bool {
        self.servers.is_empty() && self.plugins.is_empty()
    }
}
