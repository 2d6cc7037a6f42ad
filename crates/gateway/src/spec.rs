//! A server to connect to: where it is, who brought it in, and how its connection is to be kept.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::config::{
    self, AutoApprove, ConfigTemplate, MissingVariable, ServerOrigin, Sharing, Start, Transport,
    is_withheld,
};
use domain::exposed::Names;
use domain::policy::ServerRules;
use domain::tool::Source;
use domain::trust;
use mcp::child;
use mcp::server::Server;
use provider::Connector;
use store::StoreError;
use store::state::{OperatorState, ServerState};

/// Makes a fresh server for each connection.
pub type MakeServer = Arc<dyn Fn() -> Server + Send + Sync>;

/// A server to connect to.
#[derive(Clone)]
pub struct ServerSpec {
    pub name: Arc<str>,
    pub rules: ServerRules,
    pub endpoint: ServerEndpoint,
    pub connection: ConnectionOptions,
    pub trust: Trust,
}

/// Who brought a server in, and how far that goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    pub origin: ServerOrigin,
    /// What an approval of the server is bound to.
    pub identity: String,
    /// A person who trusts all of these files as they are has approved the server too.
    pub files: Vec<FileDigest>,
    pub auto_approve: AutoApprove,
}

/// A file as it was read: trust in it ends when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDigest {
    pub path: String,
    pub sha256: String,
}

/// A command to run, a URL to call, a server inside this process, or a plugin.
#[derive(Clone)]
pub enum ServerEndpoint {
    Stdio(ChildCommand),
    Http { url: ConfigTemplate, headers: Vec<(String, ConfigTemplate)> },
    Sse,
    Embedded(MakeServer),
    Plugin(PluginSpec),
}

/// What is no MCP server, and is started and kept like one.
#[derive(Clone)]
pub struct PluginSpec {
    pub connector: Arc<dyn Connector>,
    /// All that it was made from: two plugins of the same text are alike.
    pub made_from: String,
    /// Where its program is.
    pub program: PathBuf,
}

#[derive(Clone, PartialEq)]
pub struct ChildCommand {
    pub command: String,
    pub args: Vec<ConfigTemplate>,
    pub env: Vec<(String, ConfigTemplate)>,
    pub cwd: Option<PathBuf>,
    /// The program that runs the command as `supervise -- …`, so that it ends with the gate.
    pub supervisor: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionOptions {
    pub start: Start,
    pub sharing: Sharing,
    pub max_concurrent: Option<NonZeroU32>,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        ConnectionOptions { start: Start::Eager, sharing: Sharing::Auto, max_concurrent: None }
    }
}

impl ServerSpec {
    /// A server of the configuration.
    pub fn configured(server: &config::ServerConfig, supervisor: Option<&Path>) -> ServerSpec {
        ServerSpec {
            name: server.name.as_str().into(),
            rules: ServerRules {
                quarantined: server.quarantined,
                disabled: !server.enabled,
                tools: server.tools.clone(),
                ..ServerRules::default()
            },
            endpoint: ServerEndpoint::configured(&server.transport, supervisor),
            connection: ConnectionOptions {
                start: server.start,
                sharing: server.sharing,
                max_concurrent: server.max_concurrent,
            },
            trust: Trust {
                origin: server.origin,
                identity: trust::identity(&server.transport).to_string(),
                files: Vec::new(),
                auto_approve: server.auto_approve,
            },
        }
    }

    /// A server inside this process.
    pub fn embedded(name: &str, make: MakeServer) -> ServerSpec {
        ServerSpec {
            name: name.into(),
            rules: ServerRules::default(),
            endpoint: ServerEndpoint::Embedded(make),
            connection: ConnectionOptions::default(),
            trust: Trust {
                origin: ServerOrigin::Own,
                identity: String::new(),
                files: Vec::new(),
                auto_approve: AutoApprove::None,
            },
        }
    }

    /// A plugin. All clients share what was started.
    pub fn plugin(name: &str, plugin: PluginSpec, trust: Trust) -> ServerSpec {
        ServerSpec {
            name: name.into(),
            rules: ServerRules::default(),
            endpoint: ServerEndpoint::Plugin(plugin),
            connection: ConnectionOptions {
                sharing: Sharing::Shared,
                ..ConnectionOptions::default()
            },
            trust,
        }
    }

    /// The same server under what people decided about it.
    #[must_use]
    pub(crate) fn decided(
        mut self,
        state: Option<&ServerState>,
        switched_off: Option<&BTreeSet<String>>,
        trusts_files: bool,
    ) -> ServerSpec {
        let rules = &mut self.rules;
        let bound_to = state.and_then(|state| state.approved.as_deref());
        let is_approved = if self.trust.files.is_empty() {
            bound_to == Some(&self.trust.identity)
        } else {
            trusts_files
        };
        // What somebody else brought in is trusted by approval alone, and no approval outlasts a
        // change of what it was given to.
        let unapproved =
            (self.trust.origin != ServerOrigin::Own || rules.quarantined) && !is_approved;
        let changed = bound_to.is_some() && !is_approved;
        rules.quarantined = unapproved || changed || state.is_some_and(|state| state.quarantined);
        rules.disabled |= state.is_some_and(|state| state.disabled);
        rules.switched_off = switched_off.cloned().unwrap_or_default();
        self
    }

    /// Where its tools are from.
    pub(crate) fn source(&self) -> Source {
        match self.endpoint {
            ServerEndpoint::Plugin(_) => Source::Plugin(self.name.clone()),
            ServerEndpoint::Stdio(_)
            | ServerEndpoint::Http { .. }
            | ServerEndpoint::Sse
            | ServerEndpoint::Embedded(_) => Source::Mcp(self.name.clone()),
        }
    }

    /// A server that is switched off is not started, nor is one that nobody has approved yet where
    /// somebody else brought it in.
    pub(crate) fn may_start(&self) -> bool {
        let is_own = self.trust.origin == ServerOrigin::Own;
        !self.rules.disabled && (is_own || !self.rules.quarantined)
    }

    /// Whether a connection made for `other` serves this one too; the rules may differ.
    pub(crate) fn connects_like(&self, other: &ServerSpec) -> bool {
        // A server that is not started has no connection to keep.
        self.endpoint == other.endpoint
            && self.trust.origin == other.trust.origin
            && self.connection == other.connection
            && self.may_start() == other.may_start()
    }
}

impl Trust {
    /// Whether a person trusts all of the files as they are; without any, nobody was asked.
    pub fn trusts_files(&self, state: &OperatorState) -> Result<bool, StoreError> {
        for FileDigest { path, sha256 } in &self.files {
            if state.trusted_file(path)?.as_ref() != Some(sha256) {
                return Ok(false);
            }
        }
        Ok(!self.files.is_empty())
    }
}

impl PartialEq for ServerEndpoint {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (ServerEndpoint::Stdio(a), ServerEndpoint::Stdio(b)) => a == b,
            (
                ServerEndpoint::Http { url, headers },
                ServerEndpoint::Http { url: u, headers: h },
            ) => url == u && headers == h,
            (ServerEndpoint::Sse, ServerEndpoint::Sse) => true,
            (ServerEndpoint::Embedded(a), ServerEndpoint::Embedded(b)) => Arc::ptr_eq(a, b),
            (ServerEndpoint::Plugin(a), ServerEndpoint::Plugin(b)) => a.made_from == b.made_from,
            (
                ServerEndpoint::Stdio(_)
                | ServerEndpoint::Http { .. }
                | ServerEndpoint::Sse
                | ServerEndpoint::Embedded(_)
                | ServerEndpoint::Plugin(_),
                _,
            ) => false,
        }
    }
}

impl ServerEndpoint {
    fn configured(transport: &Transport, supervisor: Option<&Path>) -> ServerEndpoint {
        match transport {
            Transport::Stdio { command, args, env, cwd } => ServerEndpoint::Stdio(ChildCommand {
                command: command.clone(),
                args: args.clone(),
                env: env.clone(),
                cwd: cwd.as_ref().map(PathBuf::from),
                supervisor: supervisor.map(Path::to_owned),
            }),
            Transport::Http { url, headers } => {
                ServerEndpoint::Http { url: url.clone(), headers: headers.clone() }
            }
            Transport::Sse { .. } => ServerEndpoint::Sse,
        }
    }

    pub(crate) fn transport(&self) -> &'static str {
        match self {
            ServerEndpoint::Stdio(_) => "stdio",
            ServerEndpoint::Http { .. } => "http",
            ServerEndpoint::Sse => "sse",
            ServerEndpoint::Embedded(_) => "embedded",
            ServerEndpoint::Plugin(_) => "plugin",
        }
    }

    /// Under which names its tools are shown beside those of others: a plugin's have its own in
    /// front already.
    pub(crate) fn names(&self) -> Names {
        match self {
            ServerEndpoint::Plugin(_) => Names::Own,
            ServerEndpoint::Stdio(_)
            | ServerEndpoint::Http { .. }
            | ServerEndpoint::Sse
            | ServerEndpoint::Embedded(_) => Names::Prefixed,
        }
    }
}

impl ChildCommand {
    /// What to start, or in one sentence why that cannot be done.
    pub(crate) fn child_spec(&self) -> Result<child::Spec, String> {
        if let Some(cwd) = &self.cwd
            && !cwd.is_dir()
        {
            return Err(format!(
                "cannot start '{}': cwd '{}' is no folder",
                self.command,
                cwd.display()
            ));
        }
        self.expanded().map_err(|error| error.to_string())
    }

    fn expanded(&self) -> Result<child::Spec, MissingVariable> {
        let mut env = inherited_env();
        for (name, value) in &self.env {
            env.retain(|(known, _)| *known != **name);
            env.push((name.into(), expand(value)?.into()));
        }
        let args = self.args.iter().map(expand).collect::<Result<Vec<_>, _>>()?;
        let (command, args) = match &self.supervisor {
            Some(supervisor) => {
                let first = ["supervise".to_owned(), "--".to_owned(), self.command.clone()];
                let args = first.into_iter().chain(args).collect();
                (supervisor.to_string_lossy().into_owned(), args)
            }
            None => (self.command.clone(), args),
        };
        let supervisor = self.supervisor.is_some();
        Ok(child::Spec { command, args, env, cwd: self.cwd.clone(), supervisor })
    }
}

/// `${env:NAME}` is read when the connection is made, from this process's environment.
pub(crate) fn expand(template: &ConfigTemplate) -> Result<String, MissingVariable> {
    template.expand(&|name| std::env::var(name).ok())
}

/// What a child inherits: everything but the gate's own variables, which may hold its keys.
fn inherited_env() -> Vec<(OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| !is_withheld(&name.to_string_lossy())).collect()
}
