//! The endpoint of a server: a command, a URL, a server inside this process, or a plugin.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use access::secrets::SecretValues;
use axum::http::{HeaderName, HeaderValue};
use domain::config::{ConfigTemplate, RemoteTransport, StdioTransport, Transport};
use domain::exposed::Names;
use mcp::http::client::Endpoint as HttpEndpoint;
use mcp::{Service, task};
use provider::Connector;

use crate::command::{ChildCommand, ProgramFile};

/// Creates a new server for each connection.
pub type MakeServer = Arc<dyn Fn() -> Arc<dyn Service> + Send + Sync>;

/// A command to run, a URL to call, a server inside this process, or a plugin.
#[derive(Clone)]
pub enum ServerEndpoint {
    Stdio(ChildCommand),
    Remote(RemoteTransport),
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

impl PartialEq for ServerEndpoint {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (ServerEndpoint::Stdio(a), ServerEndpoint::Stdio(b)) => a == b,
            (ServerEndpoint::Remote(a), ServerEndpoint::Remote(b)) => a == b,
            (ServerEndpoint::WithoutSecrets(a), ServerEndpoint::WithoutSecrets(b)) => a == b,
            (ServerEndpoint::Embedded(a), ServerEndpoint::Embedded(b)) => Arc::ptr_eq(a, b),
            (ServerEndpoint::Plugin(a), ServerEndpoint::Plugin(b)) => a.made_from == b.made_from,
            (
                ServerEndpoint::Stdio(_)
                | ServerEndpoint::Remote(_)
                | ServerEndpoint::WithoutSecrets(_)
                | ServerEndpoint::Embedded(_)
                | ServerEndpoint::Plugin(_),
                _,
            ) => false,
        }
    }
}

impl ServerEndpoint {
    pub(super) fn configured(transport: &Transport, supervisor: Option<&Path>) -> ServerEndpoint {
        match transport {
            Transport::Stdio(StdioTransport { command, args, env, cwd, inherit_env }) => {
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
            Transport::Remote(remote) => ServerEndpoint::Remote(remote.clone()),
        }
    }

    pub(crate) fn transport(&self) -> &'static str {
        match self {
            ServerEndpoint::Stdio(_) => "stdio",
            ServerEndpoint::Remote(remote) => remote.protocol.name(),
            ServerEndpoint::WithoutSecrets(transport) => transport,
            ServerEndpoint::Embedded(_) => "embedded",
            ServerEndpoint::Plugin(_) => "plugin",
        }
    }

    /// Returns the variables or headers that the server gets.
    pub(crate) fn named_values(&self) -> &[(String, ConfigTemplate)] {
        match self {
            ServerEndpoint::Stdio(command) => &command.env,
            ServerEndpoint::Remote(remote) => &remote.headers,
            ServerEndpoint::WithoutSecrets(_)
            | ServerEndpoint::Embedded(_)
            | ServerEndpoint::Plugin(_) => &[],
        }
    }

    /// Reports whether it may require a token that is not among its headers.
    pub(crate) fn may_need_token(&self) -> bool {
        match self {
            ServerEndpoint::Remote(remote) => {
                !remote.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
            }
            ServerEndpoint::Stdio(_)
            | ServerEndpoint::WithoutSecrets(_)
            | ServerEndpoint::Embedded(_)
            | ServerEndpoint::Plugin(_) => false,
        }
    }

    /// Returns the names of the secrets in it.
    pub(super) fn secrets(&self) -> BTreeSet<&str> {
        let templates: Vec<&ConfigTemplate> = match self {
            ServerEndpoint::Stdio(ChildCommand { args, env, .. }) => {
                args.iter().chain(env.iter().map(|(_, value)| value)).collect()
            }
            ServerEndpoint::Remote(remote) => remote.templates(),
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
            | ServerEndpoint::Remote(_)
            | ServerEndpoint::WithoutSecrets(_)
            | ServerEndpoint::Embedded(_) => Names::Prefixed,
        }
    }

    /// Returns the reason that a server cannot be started, if it is known before the attempt. Blocks.
    pub(crate) fn start_fault(&self, secrets: &SecretValues) -> Option<String> {
        match self {
            ServerEndpoint::Stdio(command) => match command.child_spec(secrets) {
                Ok(_) if !command.finds_program() => {
                    Some(format!("program '{}' not found", command.command))
                }
                Ok(_) => None,
                Err(reason) => Some(reason),
            },
            ServerEndpoint::Remote(remote) => http_endpoint(remote, secrets).err(),
            ServerEndpoint::WithoutSecrets(_) => Some(without_secrets()),
            ServerEndpoint::Embedded(_) | ServerEndpoint::Plugin(_) => None,
        }
    }
}

pub(crate) fn without_secrets() -> String {
    format!(
        "its secrets are not in '{}' in the home: restore that file from a backup and restart, or \
         remove the server and add it again",
        store::state::SECRETS_FILE
    )
}

/// Returns the endpoint of a URL, with its headers.
pub(crate) fn http_endpoint(
    remote: &RemoteTransport,
    secrets: &SecretValues,
) -> Result<HttpEndpoint, String> {
    let url = secrets.expand(&remote.url).map_err(|error| error.to_string())?;
    let mut endpoint = HttpEndpoint::new(url);
    for (name, value) in &remote.headers {
        let text = secrets.expand(value).map_err(|error| error.to_string())?;
        // The message names the header, never its value.
        let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(text).ok());
        let header =
            parsed.ok_or_else(|| format!("header '{name}' has characters that HTTP forbids"))?;
        endpoint.headers.push(header);
    }
    Ok(endpoint)
}
