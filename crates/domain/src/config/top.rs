//! The file as a whole: its top-level keys.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use super::declare::{keys, section};
use super::fault::Note;
use super::keys::Key;
use super::kind::{Count, CountOrZero, Described, FLAG, Nested, Optional, Span};
use super::ledger::Ledger;
use super::members::Members;
use super::network::{ADDRESS, DEFAULT_LISTEN, HOSTS, ORIGINS};
use super::plugin::{PluginConfig, Plugins};
use super::profile::ProfileConfig;
use super::redact::Redact;
use super::report::Report;
use super::secrets::SecretsConfig;
use super::section::{IntentDeclaration, SearchConfig, Telemetry, TlsFiles, WorkspaceConfig};
use super::server::ServerConfig;

/// No upstream responds faster than the minimum; more than a day is an endless wait.
pub(super) const TIMEOUT: Span = Span(Duration::from_millis(10)..=Duration::from_hours(24));

/// A handshake that takes longer than ten minutes has failed.
const CONNECT: Span = Span(Duration::from_millis(10)..=Duration::from_mins(10));

/// Service managers kill a process that has not stopped after a few minutes.
const SHUTDOWN: Span = Span(Duration::ZERO..=Duration::from_mins(5));

/// Listing all tools of all servers more than once a second only adds load.
const REFRESH: Span = Span(Duration::from_secs(1)..=Duration::from_hours(24));

/// More search results cost a model more than they are worth.
const TOOLS_LIMIT: Count = Count(1..=100);

/// Below 100 characters, the truncation notice is longer than the result.
const RESPONSE_LIMIT: CountOrZero = CountOrZero(100..=100_000_000);

/// More than 16,000 requests a second is effectively no limit.
const RATE: CountOrZero = CountOrZero(1..=1_000_000);

section! {
    /// A checked configuration, with defaults filled in. Its `Debug` hides likely secrets.
    #[derive(Clone, PartialEq)]
    pub struct Config at "", after(&[SCHEMA]), then(after_set) {
        Restart listen: SocketAddr = DEFAULT_LISTEN.into(), ADDRESS,
            "The address on which the gate serves HTTP: 127.0.0.1 and ::1 come together. Beyond loopback \
             it needs `tls` or `behind_proxy`.";
        Restart tls: Option<TlsFiles> = None, Optional(Nested), "Serves HTTPS instead of plain HTTP.";
        Restart behind_proxy: bool = false, FLAG,
            "A TLS proxy is in front: plain HTTP may be served beyond loopback, and the last address in \
             `X-Forwarded-For` is the client's.";
        // `None` uses `Config::hosts`.
        Hot allowed_hosts: Option<Vec<String>> = None, Optional(HOSTS),
            "Accepted values of the `Host` header. Replaces the default list. Over plain HTTP, only \
             names of other machines in it serve the page.";
        // `None` uses `Config::origins`.
        Hot allowed_origins: Option<Vec<String>> = None, Optional(ORIGINS),
            "Accepted values of the `Origin` header. Replaces the default list.";
        Hot agent_token: bool = true, FLAG, "Accepts the default token in `agent-token`.";
        Reconnect (Narrows) mcpServers, Described::named(ServerConfig::TABLE),
            "The upstream servers, by name; a list of objects with `name` is accepted too.";
        Hot (Narrows) profiles, Described::named(ProfileConfig::TABLE),
            "Subsets of servers and tools, each served at `/mcp/p/<name>`.";
        Hot workspace: WorkspaceConfig = WorkspaceConfig::default(), Nested,
            "The built-in tools, offered as server `workspace`.";
        Reconnect plugins: Vec<PluginConfig> = Vec::new(), Plugins,
            "Plugins whose operations are offered as tools.";
        Hot intent_declaration: IntentDeclaration = IntentDeclaration::default(), Nested,
            "How strictly declared intents are checked.";
        Hot search: SearchConfig = SearchConfig::default(), Nested,
            "What counts when tools are searched.";
        Hot tools_limit: u32 = 15, TOOLS_LIMIT,
            "The most tools in the result of a search that names no limit.";
        Hot tool_response_limit: u32 = 20_000, RESPONSE_LIMIT,
            "The longest result in discovery mode, in characters; the rest is cut off.";
        Hot call_timeout: Duration = Duration::from_mins(2), TIMEOUT,
            "The longest time a call may take.";
        Hot connect_timeout: Duration = Duration::from_secs(30), CONNECT,
            "The longest time a server may take to start and answer `initialize`.";
        Hot shutdown_timeout: Duration = Duration::from_secs(10), SHUTDOWN,
            "How long the gate waits for running calls when it shuts down.";
        Hot refresh_interval: Duration = Duration::from_mins(5), REFRESH,
            "How often the gate lists each server's tools again.";
        Restart ledger: Ledger = Ledger::default(), Nested,
            "What the gate records about calls, and for how long.";
        Hot (Narrows) redact: Redact = Redact::default(), Nested,
            "What to redact in records, in addition to the built-in rules.";
        Hot secrets: SecretsConfig = SecretsConfig::default(), Nested,
            "How the values of `${secret:NAME}` and the tokens of servers are stored.";
        Restart telemetry: Telemetry = Telemetry::default(), Nested,
            "Where spans are exported; `OTEL_*` variables supply what is not set here.";
        Hot rate_limit: Option<NonZeroU32> = None, RATE,
            "MCP requests per minute for each token; invalid tokens are always slowed down.";
    }
    and {
        /// In file order.
        servers: Vec<ServerConfig> = Vec::new();
        profiles: Vec<ProfileConfig> = Vec::new();
    }
}

/// Its name is not an identifier, and the gate does not read it.
const SCHEMA: Key = Key {
    name: "$schema",
    ..keys! {
        Hot (Narrows) schema, "string",
            "URL of a JSON schema, for editors; the gate does not read it.";
    }[0]
};

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

    /// Reports whether `workspace` has the default: unless a file sets it, the built-in tools are
    /// enabled only if nothing else is configured.
    pub(super) fn has_default_workspace(&self) -> bool {
        self.workspace.enabled == self.is_bare()
    }

    /// Sets the default of `workspace`, unless the file sets it.
    pub(super) fn set_default_workspace(&mut self, top: &Members<'_>) {
        let section = top.get("workspace").into_iter();
        let mut members = section.flat_map(|entry| entry.node.entries().into_iter().flatten());
        if !members.any(|entry| entry.name == "enabled") {
            self.workspace.enabled = self.is_bare();
        }
    }

    fn is_bare(&self) -> bool {
        self.servers.is_empty() && self.plugins.is_empty()
    }
}

fn after_set(config: &Config, top: &Members<'_>, report: &mut Report) {
    // Only editors use it, but it must be a string.
    top.text("$schema", report);
    note_reachable(config, top, report);
}

/// Notes the address that other machines can reach; `serve` refuses it without TLS.
fn note_reachable(config: &Config, top: &Members<'_>, report: &mut Report) {
    let Some(entry) = top.get("listen").filter(|_| !config.listen.ip().is_loopback()) else {
        return;
    };
    let mut note = "other machines can reach this address".to_owned();
    if !config.is_protected() {
        note.push_str("; it is refused without 'tls' or 'behind_proxy'");
    }
    if top.get("allowed_hosts").is_none() {
        note.push_str("; add the host name they use to 'allowed_hosts'");
    }
    report.note(&entry.key, note);
}
