//! The configuration: text in, checked values and notes out, or every fault at once with its
//! place. It opens nothing and knows no environment: `${env:NAME}` stays a [`Template`] until the
//! edge that uses the value expands it.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

mod choice;
mod defaults;
mod fault;
mod found;
mod keys;
mod read;
mod reference;
mod render;
mod secret;
mod section;
mod server;
mod source;
mod template;
#[cfg(test)]
mod tests;
mod trusted;

pub use fault::{Fault, Faults, Note};
pub use found::{Overlaid, overlay};
pub use keys::server_keys;
pub use read::{duration, name_fault};
pub use reference::reference;
pub use render::render;
pub use secret::is_withheld;
pub use section::{
    Durability, IntentDeclaration, Ledger, OnFailure, OtlpProtocol, Payloads, Plugin, Profile,
    Redact, Store, Telemetry, Workspace,
};
pub use server::{AutoApprove, OAuth, Origin, Server, Sharing, Start, Transport};
pub use template::{Malformed, MissingVariable, Template};
pub use trusted::lay_over;

/// A checked configuration, with the defaults filled in. Its `Debug` hides what looks secret.
#[derive(Clone, PartialEq)]
pub struct Config {
    pub listen: SocketAddr,
    /// What the file names; `None` leaves it to [`Config::hosts`].
    pub allowed_hosts: Option<Vec<String>>,
    /// What the file names; `None` leaves it to [`Config::origins`].
    pub allowed_origins: Option<Vec<String>>,
    /// In the order of the file.
    pub servers: Vec<Server>,
    pub profiles: Vec<Profile>,
    pub workspace: Workspace,
    pub plugins: Vec<Plugin>,
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
    pub store: Store,
}

impl Config {
    pub fn server(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.name == name)
    }

    pub fn profile(&self, name: &str) -> Option<&Profile> {
        self.profiles.iter().find(|profile| profile.name == name)
    }

    /// Whether the built-in tools are all there is, which is when they are on by default.
    fn is_bare(&self) -> bool {
        self.servers.is_empty() && self.plugins.is_empty()
    }

    /// The `Host` values to accept when listening on `port`, which may differ from the configured
    /// one (port 0, a flag).
    pub fn hosts(&self, port: u16) -> Vec<String> {
        self.allowed_hosts.clone().unwrap_or_else(|| defaults::hosts(port))
    }

    /// The `Origin` values to accept when listening on `port`.
    pub fn origins(&self, port: u16) -> Vec<String> {
        self.allowed_origins.clone().unwrap_or_else(|| defaults::origins(port))
    }
}

/// What [`parse`] made of a text without faults.
#[derive(Debug)]
pub struct Parsed {
    pub config: Config,
    /// What was ignored, understood by another name, or is risky; in the order of the text.
    pub notes: Vec<Note>,
}

/// Reads JSON, with comments and trailing commas, into a checked configuration.
pub fn parse(text: &str) -> Result<Parsed, Faults> {
    read::parse(text)
}
