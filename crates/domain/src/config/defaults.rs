//! Every default of the configuration. `config show` prints them and `docs/config.md` lists them.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::{
    AutoApprove, Config, Durability, IntentDeclaration, Ledger, LoginScope, OnFailure,
    OtlpProtocol, Payloads, Redact, SearchConfig, SecretsKey, ServerConfig, ServerOrigin, Sharing,
    Start, Telemetry, ToolRules, Transport, WorkspaceConfig,
};

const PORT: u16 = 7420;

const LOOPBACK_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

const HTTP_PORT: u16 = 80;

const HTTPS_PORT: u16 = 443;

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            allowed_hosts: None,
            allowed_origins: None,
            tls: None,
            behind_proxy: false,
            agent_token: true,
            servers: Vec::new(),
            profiles: Vec::new(),
            workspace: WorkspaceConfig::default(),
            plugins: Vec::new(),
            intent: IntentDeclaration::default(),
            search: SearchConfig::default(),
            tools_limit: 15,
            tool_response_limit: 20_000,
            call_timeout: Duration::from_mins(2),
            connect_timeout: Duration::from_secs(30),
            shutdown_timeout: Duration::from_secs(10),
            refresh_interval: Duration::from_mins(5),
            ledger: Ledger::default(),
            redact: Redact { keys: Vec::new(), patterns: Vec::new() },
            secrets_key: SecretsKey::Auto,
            telemetry: Telemetry::default(),
            rate_limit: None,
        }
    }
}

impl Config {
    /// Returns the `Host` values to accept when listening on `port`, which may differ from the
    /// configured one (port 0, a flag).
    pub fn hosts(&self, port: u16) -> Vec<String> {
        let default = || LOOPBACK_NAMES.map(|name| self.authority(name, port)).to_vec();
        self.allowed_hosts.clone().unwrap_or_else(default)
    }

    /// Returns the `Origin` values to accept when listening on `port`.
    pub fn origins(&self, port: u16) -> Vec<String> {
        let scheme = self.scheme();
        let origin = |name| format!("{scheme}://{}", self.authority(name, port));
        self.allowed_origins.clone().unwrap_or_else(|| LOOPBACK_NAMES.map(origin).to_vec())
    }

    /// Returns a name with a port as browsers write it: without the default port of the listener's
    /// scheme.
    pub fn authority(&self, name: &str, port: u16) -> String {
        let default = if self.tls.is_some() { HTTPS_PORT } else { HTTP_PORT };
        if port == default { name.to_owned() } else { format!("{name}:{port}") }
    }

    /// Returns the scheme of the listener's URLs.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

impl Default for WorkspaceConfig {
    /// Enabled, as if nothing else were configured; reading a file disables it when something is.
    fn default() -> Self {
        Self {
            enabled: true,
            root: ".".to_owned(),
            write: false,
            shell: false,
            allow_outside: false,
        }
    }
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self { learned: true }
    }
}

impl Default for IntentDeclaration {
    fn default() -> Self {
        Self { strict_server_validation: true }
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            durability: Durability::Process,
            payloads: Payloads::Redacted,
            on_failure: OnFailure::QueueReads,
            activity_retention_days: 90,
            max_records: 1_000_000,
            max_size_mb: 1024,
            receipt_retention_days: 0,
            anchor: None,
        }
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            exporter: String::new(),
            service_name: "countersign".to_owned(),
            protocol: OtlpProtocol::Grpc,
        }
    }
}

impl ServerConfig {
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            origin: ServerOrigin::Own,
            transport,
            enabled: true,
            quarantined: false,
            tools: ToolRules::All,
            auto_approve: AutoApprove::None,
            sharing: Sharing::Auto,
            start: Start::Eager,
            call_timeout: None,
            max_concurrent: None,
            login: LoginScope::Shared,
            oauth: None,
            pin: false,
            targets: None,
        }
    }
}

impl Transport {
    /// Returns a program without arguments, variables or its own folder.
    pub fn stdio(command: impl Into<String>) -> Self {
        Self::Stdio {
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            inherit_env: false,
        }
    }
}

pub(super) fn hosts(port: u16) -> Vec<String> {
    LOOPBACK_NAMES.map(|name| format!("{name}:{port}")).to_vec()
}
