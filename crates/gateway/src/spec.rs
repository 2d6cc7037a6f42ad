//! A server to connect to: its endpoint, its origin, and the settings of its connection.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::config::{
    self, AutoApprove, ConfigTemplate, Environment, LoginScope, MissingValue, OAuth, ServerOrigin,
    Sharing, Start, Transport, Withheld,
};
use domain::exposed::Names;
use domain::policy::ServerRules;
use domain::tool::Source;
use domain::trust::{self, ServerText};
use mcp::{Service, child, task};
use provider::Connector;
use serde_json::Value;
use store::StoreError;
use store::state::{OperatorState, ServerState};
use vault::Vault;

use crate::program::ProgramFile;
use crate::secrets::SecretValues;
use crate::upstream::start_fault;

/// Creates a new server for each connection.
pub type MakeServer = Arc<dyn Fn() -> Arc<dyn Service> + Send + Sync>;

/// A server to connect to.
#[derive(Clone)]
pub struct ServerSpec {
    pub name: Arc<str>,
    pub rules: ServerRules,
    pub endpoint: ServerEndpoint,
    pub connection: ConnectionOptions,
    /// The settings of the sign-in, if the config has some.
    pub oauth: Option<OAuth>,
    pub trust: Trust,
}

/// The origin of a server, and how far it is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    pub origin: ServerOrigin,
    /// The text that an approval of the server is bound to.
    pub identity: String,
    /// The definition for a reviewer.
    pub text: ServerText,
    /// A change of the program file quarantines the server.
    pub pin: bool,
    /// The pinned program is not the kept file: nothing but an inspection starts it.
    pub is_altered: bool,
    /// Trusting the current content of all these files also approves the server.
    pub files: Vec<FileDigest>,
    pub auto_approve: AutoApprove,
}

/// A file with the hash of its content: trust in it ends when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDigest {
    pub path: String,
    pub sha256: String,
}

/// A command to run, a URL to call, a server inside this process, or a plugin.
#[derive(Clone)]
pub enum ServerEndpoint {
    Stdio(ChildCommand),
    Http {
        url: ConfigTemplate,
        headers: Vec<(String, ConfigTemplate)>,
    },
    /// A server of the older HTTP+SSE.
    Sse {
        url: ConfigTemplate,
        headers: Vec<(String, ConfigTemplate)>,
    },
    /// A server whose secrets are lost, with its transport. It cannot be started.
    WithoutSecrets(&'static str),
    Embedded(MakeServer),
    Plugin(PluginSpec),
}

/// A plugin: not an MCP server, but started and kept like one.
#[derive(Clone)]
pub struct PluginSpec {
    pub connector: Arc<dyn Connector>,
    /// The complete text it was made from: two plugins with the same text are equal.
    pub made_from: String,
    /// The path of its program.
    pub program: PathBuf,
    /// The folder that it runs in, if not that of the gate.
    pub cwd: Option<PathBuf>,
}

#[derive(Clone, PartialEq)]
pub struct ChildCommand {
    pub command: String,
    pub args: Vec<ConfigTemplate>,
    pub env: Vec<(String, ConfigTemplate)>,
    pub cwd: Option<PathBuf>,
    pub inherit_env: bool,
    /// The program that runs the command as `supervise -- …`, so that it ends with the gate.
    pub supervisor: Option<PathBuf>,
    /// The only program file that may be started.
    pub pinned: Option<ProgramFile>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionOptions {
    pub start: Start,
    pub sharing: Sharing,
    pub login: LoginScope,
    pub max_concurrent: Option<NonZeroU32>,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        ConnectionOptions {
            start: Start::Eager,
            sharing: Sharing::Auto,
            login: LoginScope::Shared,
            max_concurrent: None,
        }
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
                targets: server.targets.clone(),
                ..ServerRules::default()
            },
            endpoint: ServerEndpoint::configured(&server.transport, supervisor),
            connection: ConnectionOptions {
                start: server.start,
                sharing: server.sharing,
                login: server.login,
                max_concurrent: server.max_concurrent,
            },
            oauth: server.oauth.clone(),
            trust: Trust {
                origin: server.origin,
                identity: trust::identity(server).to_string(),
                text: ServerText::of(server),
                pin: server.pin,
                auto_approve: server.auto_approve,
                ..Trust::own(String::new())
            },
        }
    }

    /// A server that was added at run time and whose secrets are lost. The definition is not known
    /// well enough to be judged again, so it keeps the identity that was approved.
    pub(crate) fn without_secrets(state: &ServerState, open: &Value) -> ServerSpec {
        let transport = if open.get("url").is_some() { "http" } else { "stdio" };
        ServerSpec {
            name: state.name.as_str().into(),
            rules: ServerRules::default(),
            endpoint: ServerEndpoint::WithoutSecrets(transport),
            connection: ConnectionOptions::default(),
            oauth: None,
            trust: Trust {
                origin: ServerOrigin::Added,
                ..Trust::own(state.approved.clone().unwrap_or_default())
            },
        }
    }

    /// A server inside this process, which `make` creates for each connection.
    pub fn embedded<S: Service>(
        name: &str,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> ServerSpec {
        ServerSpec {
            name: name.into(),
            rules: ServerRules::default(),
            endpoint: ServerEndpoint::Embedded(Arc::new(move || Arc::new(make()))),
            connection: ConnectionOptions::default(),
            oauth: None,
            trust: Trust::own(String::new()),
        }
    }

    /// A plugin. All clients share one instance.
    pub fn plugin(name: &str, plugin: PluginSpec, trust: Trust) -> ServerSpec {
        ServerSpec {
            name: name.into(),
            rules: ServerRules::default(),
            endpoint: ServerEndpoint::Plugin(plugin),
            connection: ConnectionOptions {
                sharing: Sharing::Shared,
                ..ConnectionOptions::default()
            },
            oauth: None,
            trust,
        }
    }

    /// Returns the same server with the operator's decisions applied.
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
        // A server that somebody else added is trusted by approval alone, and an approval ends when
        // the server it was given to changes.
        let unapproved =
            (self.trust.origin != ServerOrigin::Own || rules.quarantined) && !is_approved;
        let changed = bound_to.is_some() && !is_approved;
        rules.quarantined = unapproved || changed || state.is_some_and(|state| state.quarantined);
        rules.disabled |= state.is_some_and(|state| state.disabled);
        rules.switched_off = switched_off.cloned().unwrap_or_default();
        self
    }

    /// Compares a pinned program with the kept one; returns a program that is to be kept. Blocks.
    pub(crate) fn check_pin(&mut self, kept: Option<&str>) -> Option<String> {
        let ServerEndpoint::Stdio(command) = &mut self.endpoint else { return None };
        if !self.trust.pin {
            return None;
        }
        let program = ProgramFile::of(command);
        let found = program.as_ref().map(|program| self.trust.kept_program(program));
        // A program that was kept for another definition of the server says nothing about this one.
        match kept.filter(|kept| kept.starts_with(&self.trust.identity)) {
            Some(kept) if found.as_deref() != Some(kept) => {
                self.trust.is_altered = true;
                self.rules.quarantined = true;
                None
            }
            Some(_) => {
                command.pinned = program;
                None
            }
            // Unapproved settings may still change.
            None if self.rules.quarantined => None,
            None => {
                command.pinned = program;
                found
            }
        }
    }

    /// Returns the command of a server that is a child process.
    pub(crate) fn command(&self) -> Option<&ChildCommand> {
        match &self.endpoint {
            ServerEndpoint::Stdio(command) => Some(command),
            ServerEndpoint::Http { .. }
            | ServerEndpoint::Sse { .. }
            | ServerEndpoint::WithoutSecrets(_)
            | ServerEndpoint::Embedded(_)
            | ServerEndpoint::Plugin(_) => None,
        }
    }

    /// Returns the origin of its tools.
    pub(crate) fn source(&self) -> Source {
        match self.endpoint {
            ServerEndpoint::Plugin(_) => Source::Plugin(self.name.clone()),
            ServerEndpoint::Stdio(_)
            | ServerEndpoint::Http { .. }
            | ServerEndpoint::Sse { .. }
            | ServerEndpoint::WithoutSecrets(_)
            | ServerEndpoint::Embedded(_) => Source::Mcp(self.name.clone()),
        }
    }

    /// Reports whether the server may be started: not if it is switched off, nor if somebody else
    /// added it or changed its pinned program and that is not approved yet.
    pub(crate) fn may_start(&self) -> bool {
        let is_own = self.trust.origin == ServerOrigin::Own && !self.trust.is_altered;
        !self.rules.disabled && (is_own || !self.rules.quarantined)
    }

    /// Returns the reason that the server cannot be started, if it is known before the attempt. Of
    /// the secrets it needs only the names. Blocks.
    pub fn start_fault(&self, vault: &Vault) -> Option<String> {
        match SecretValues::assumed(vault, self.secrets()) {
            Ok(secrets) => start_fault(&self.endpoint, &secrets),
            Err(reason) => Some(reason),
        }
    }

    /// Returns the names of the secrets that the connection needs.
    pub(crate) fn secrets(&self) -> BTreeSet<&str> {
        let oauth = self.oauth.iter().flat_map(OAuth::templates);
        self.endpoint.secrets().into_iter().chain(oauth.flat_map(ConfigTemplate::secrets)).collect()
    }

    /// Reports whether a connection made for `other` serves this one too; the rules may differ.
    pub(crate) fn connects_like(&self, other: &ServerSpec) -> bool {
        // A server that is not started has no connection to keep.
        self.endpoint == other.endpoint
            && self.trust.origin == other.trust.origin
            && self.trust.identity == other.trust.identity
            && self.connection == other.connection
            && self.oauth == other.oauth
            && self.may_start() == other.may_start()
    }
}

impl Trust {
    /// Trusts a server of the user's own, with the text that an approval of it would be bound to.
    pub fn own(identity: String) -> Trust {
        Trust {
            origin: ServerOrigin::Own,
            identity,
            text: ServerText::default(),
            pin: false,
            is_altered: false,
            files: Vec::new(),
            auto_approve: AutoApprove::None,
        }
    }

    /// Returns a program in the form that the store keeps, which names the server's identity too.
    pub(crate) fn kept_program(&self, program: &ProgramFile) -> String {
        format!("{} {program}", self.identity)
    }

    /// Reports whether a person trusts the current content of all the files; false if there are
    /// none.
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
            )
            | (ServerEndpoint::Sse { url, headers }, ServerEndpoint::Sse { url: u, headers: h }) => {
                url == u && headers == h
            }
            (ServerEndpoint::WithoutSecrets(a), ServerEndpoint::WithoutSecrets(b)) => a == b,
            (ServerEndpoint::Embedded(a), ServerEndpoint::Embedded(b)) => Arc::ptr_eq(a, b),
            (ServerEndpoint::Plugin(a), ServerEndpoint::Plugin(b)) => a.made_from == b.made_from,
            (
                ServerEndpoint::Stdio(_)
                | ServerEndpoint::Http { .. }
                | ServerEndpoint::Sse { .. }
                | ServerEndpoint::WithoutSecrets(_)
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
            Transport::Stdio { command, args, env, cwd, inherit_env } => {
                ServerEndpoint::Stdio(ChildCommand {
                    command: command.clone(),
                    args: args.clone(),
                    env: env.clone(),
                    cwd: cwd.as_ref().map(PathBuf::from),
                    inherit_env: *inherit_env,
                    supervisor: supervisor.map(Path::to_owned),
                    pinned: None,
                })
            }
            Transport::Http { url, headers } => {
                ServerEndpoint::Http { url: url.clone(), headers: headers.clone() }
            }
            Transport::Sse { url, headers } => {
                ServerEndpoint::Sse { url: url.clone(), headers: headers.clone() }
            }
        }
    }

    pub(crate) fn transport(&self) -> &'static str {
        match self {
            ServerEndpoint::Stdio(_) => "stdio",
            ServerEndpoint::Http { .. } => "http",
            ServerEndpoint::Sse { .. } => "sse",
            ServerEndpoint::WithoutSecrets(transport) => transport,
            ServerEndpoint::Embedded(_) => "embedded",
            ServerEndpoint::Plugin(_) => "plugin",
        }
    }

    /// Returns the variables or headers that the server gets.
    pub(crate) fn named_values(&self) -> &[(String, ConfigTemplate)] {
        match self {
            ServerEndpoint::Stdio(command) => &command.env,
            ServerEndpoint::Http { headers, .. } | ServerEndpoint::Sse { headers, .. } => headers,
            ServerEndpoint::WithoutSecrets(_)
            | ServerEndpoint::Embedded(_)
            | ServerEndpoint::Plugin(_) => &[],
        }
    }

    /// Returns the names of the secrets in it.
    fn secrets(&self) -> BTreeSet<&str> {
        let templates: Vec<&ConfigTemplate> = match self {
            ServerEndpoint::Stdio(ChildCommand { args, env, .. }) => {
                args.iter().chain(env.iter().map(|(_, value)| value)).collect()
            }
            ServerEndpoint::Http { url, headers } | ServerEndpoint::Sse { url, headers } => {
                headers.iter().map(|(_, value)| value).chain([url]).collect()
            }
            ServerEndpoint::WithoutSecrets(_)
            | ServerEndpoint::Embedded(_)
            | ServerEndpoint::Plugin(_) => Vec::new(),
        };
        templates.into_iter().flat_map(ConfigTemplate::secrets).collect()
    }

    /// Refuses to start a pinned program that is not the approved file any more.
    pub(crate) async fn check_pinned(&self) -> Result<(), String> {
        let ServerEndpoint::Stdio(command) = self else { return Ok(()) };
        let Some(pinned) = command.pinned.clone() else { return Ok(()) };
        let (shown, command) = (command.command.clone(), command.clone());
        let finding = task::spawn_blocking(move || ProgramFile::of(&command));
        match finding.await {
            Ok(Some(found)) if found == pinned => Ok(()),
            Ok(_) | Err(_) => Err(format!(
                "'{shown}' is pinned, and is not the file that was approved; nothing was started"
            )),
        }
    }

    /// Returns the names its tools get among those of others: a plugin's tools already carry its
    /// name as a prefix.
    pub(crate) fn names(&self) -> Names {
        match self {
            ServerEndpoint::Plugin(_) => Names::Own,
            ServerEndpoint::Stdio(_)
            | ServerEndpoint::Http { .. }
            | ServerEndpoint::Sse { .. }
            | ServerEndpoint::WithoutSecrets(_)
            | ServerEndpoint::Embedded(_) => Names::Prefixed,
        }
    }
}

impl ChildCommand {
    /// Returns the child to start and the variables it does not inherit, or one sentence saying why
    /// it cannot start.
    pub(crate) fn child_spec(
        &self,
        secrets: &SecretValues,
    ) -> Result<(child::Spec, Withheld), String> {
        if let Some(cwd) = &self.cwd
            && !cwd.is_dir()
        {
            return Err(format!(
                "cannot start '{}': cwd '{}' is not a folder",
                self.command,
                cwd.display()
            ));
        }
        self.expanded(secrets).map_err(|error| error.to_string())
    }

    fn expanded(&self, secrets: &SecretValues) -> Result<(child::Spec, Withheld), MissingValue> {
        let all = std::env::vars_os();
        let mut env =
            if self.inherit_env { Environment::whole(all) } else { Environment::usual(all) };
        for (name, value) in &self.env {
            env.set(name, secrets.expand(value)?);
        }
        let args =
            self.args.iter().map(|arg| secrets.expand(arg)).collect::<Result<Vec<_>, _>>()?;
        let (command, args) = match &self.supervisor {
            Some(supervisor) => {
                let count = args.len().to_string();
                for (number, arg) in args.into_iter().enumerate() {
                    env.set(&child::supervised_argument(number), arg);
                }
                let args = ["supervise", "--handed-over", &count, "--", &self.command];
                (supervisor.to_string_lossy().into_owned(), args.map(str::to_owned).to_vec())
            }
            None => (self.command.clone(), args),
        };
        let Environment { variables: env, withheld } = env;
        let supervisor = self.supervisor.is_some();
        Ok((child::Spec { command, args, env, cwd: self.cwd.clone(), supervisor }, withheld))
    }
}
