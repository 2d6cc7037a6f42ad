//! The checked values of the config's sections, apart from the servers.

use super::server::ServerOrigin;
use super::template::ConfigTemplate;
use crate::choice;
use crate::tool::ToolName;

/// A subset of the servers and tools, served at `/mcp/p/<name>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileConfig {
    pub name: String,
    pub origin: ServerOrigin,
    pub servers: Vec<String>,
    /// `None`: all tools of the servers.
    pub tools: Option<Vec<ToolName>>,
    pub exclude: Vec<ToolName>,
}

/// The built-in tools, as server `workspace`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceConfig {
    pub enabled: bool,
    pub root: String,
    pub write: bool,
    pub shell: bool,
    pub allow_outside: bool,
}

#[derive(Clone, PartialEq)]
pub struct PluginConfig {
    pub name: String,
    pub path: Option<String>,
    pub config: serde_json::Map<String, serde_json::Value>,
    /// Lower-case hex; naming it approves the executable.
    pub sha256: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentDeclaration {
    pub strict_server_validation: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    pub durability: Durability,
    pub payloads: Payloads,
    pub on_failure: OnFailure,
    pub activity_retention_days: u32,
    pub max_records: u32,
    pub max_size_mb: u32,
    /// 0 keeps receipts for ever.
    pub receipt_retention_days: u32,
}

choice! {
    /// What a record survives once its call is answered.
    Durability {
        /// The end of the process.
        Process = "process",
        /// The loss of power.
        Disk = "disk",
    }
}

choice! {
    /// What is stored of arguments and results.
    Payloads { Redacted = "redacted", None = "none", Full = "full" }
}

choice! {
    /// What happens to calls while the ledger cannot be written.
    OnFailure {
        /// Reads are answered while a bounded queue has room; the rest is refused.
        QueueReads = "queue_reads",
        Refuse = "refuse",
    }
}

/// Added to the built-in redaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redact {
    pub keys: Vec<String>,
    /// Regular expressions, not compiled here.
    pub patterns: Vec<String>,
}

impl Redact {
    /// Hides what another file names as well.
    pub(super) fn add(&mut self, more: Redact) {
        add(&mut self.keys, more.keys);
        add(&mut self.patterns, more.patterns);
    }
}

fn add(list: &mut Vec<String>, more: Vec<String>) {
    for text in more {
        if !list.contains(&text) {
            list.push(text);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// The endpoint; empty leaves it to `OTEL_*`.
    pub exporter: String,
    pub service_name: String,
    pub protocol: OtlpProtocol,
}

choice! {
    OtlpProtocol { Grpc = "grpc", Http = "http" }
}

#[derive(Clone, PartialEq, Eq)]
pub enum StoreConfig {
    /// In the home.
    Sqlite,
    Postgres(ConfigTemplate),
}
