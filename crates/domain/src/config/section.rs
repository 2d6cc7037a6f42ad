//! The checked values of the config's sections, other than servers.

use super::server::ServerOrigin;
use super::template::ConfigTemplate;
use crate::choice;
use crate::tool::ToolName;
use redact::Redactor;

/// A subset of the servers and tools, served at `/mcp/p/<name>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileConfig {
    pub name: String,
    pub origin: ServerOrigin,
    pub servers: Vec<String>,
    /// `None` allows all tools of the servers.
    pub tools: Option<Vec<ToolName>>,
    pub exclude: Vec<ToolName>,
}

/// The built-in tools, as the server `workspace`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceConfig {
    pub enabled: bool,
    pub root: String,
    pub write: bool,
    pub shell: bool,
    pub allow_outside: bool,
}

/// The PEM files of the listener's certificate chain and private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: String,
    pub key: String,
}

#[derive(Clone, PartialEq)]
pub struct PluginConfig {
    pub name: String,
    pub path: Option<String>,
    pub config: serde_json::Map<String, serde_json::Value>,
    pub env: Vec<(String, ConfigTemplate)>,
    /// Lowercase hex. Specifying it approves the executable.
    pub sha256: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentDeclaration {
    pub strict_server_validation: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchConfig {
    /// Similarity in meaning counts in addition to words.
    pub learned: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    pub durability: Durability,
    pub payloads: Payloads,
    pub on_failure: OnFailure,
    pub activity_retention_days: u32,
    pub max_records: u32,
    pub max_size_mb: u32,
    /// 0 keeps receipts forever.
    pub receipt_retention_days: u32,
    pub anchor: Option<AnchorConfig>,
}

/// The receiver of checkpoints outside the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchorConfig {
    /// A file to append to; relative to the home.
    File(String),
    /// A program and its arguments.
    Command(Vec<String>),
}

choice! {
    /// The failure that a record survives once its call has been answered.
    Durability {
        /// The end of the process.
        Process = "process",
        /// A loss of power.
        Disk = "disk",
    }
}

choice! {
    /// The stored form of arguments and results.
    Payloads { Redacted = "redacted", None = "none", Full = "full" }
}

choice! {
    /// The handling of calls while the ledger cannot be written.
    OnFailure {
        /// Reads are served as long as a limited queue has room; other calls are rejected.
        QueueReads = "queue_reads",
        Refuse = "refuse",
    }
}

/// Additions to the built-in redaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redact {
    pub keys: Vec<String>,
    /// Regular expressions, not compiled here.
    pub patterns: Vec<String>,
}

impl Redact {
    /// Builds the redactor. Patterns are checked when the configuration is read; one that is not
    /// valid all the same leaves the built-in rules.
    pub fn redactor(&self) -> Redactor {
        Redactor::new(&self.keys, &self.patterns).unwrap_or_else(|_| Redactor::builtin())
    }

    /// Adds the redaction of another file.
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

/// The place of the key that the secrets are encrypted with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretsKey {
    /// A file; on macOS the OS keychain if it can be used.
    Auto,
    /// A file of the home that only its owner can read.
    File,
    Keychain,
    /// A program and its arguments; it prints the key.
    Command(Vec<String>),
}

impl SecretsKey {
    /// Every valid word.
    pub const NAMES: &[&str] = &["auto", "file", "keychain"];

    pub fn named(word: &str) -> Option<SecretsKey> {
        match word {
            "auto" => Some(SecretsKey::Auto),
            "file" => Some(SecretsKey::File),
            "keychain" => Some(SecretsKey::Keychain),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// The endpoint; if empty, `OTEL_*` applies.
    pub exporter: String,
    pub service_name: String,
    pub protocol: OtlpProtocol,
}

choice! {
    OtlpProtocol { Grpc = "grpc", Http = "http" }
}
