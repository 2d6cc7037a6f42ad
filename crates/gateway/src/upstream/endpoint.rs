//! Where a server is: a command to run, a URL to call, or a server inside this process.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use domain::config::{MissingVariable, Template, Transport};
use mcp::server::Server;

/// Makes a fresh server for each connection.
pub type Embedded = Arc<dyn Fn() -> Server + Send + Sync>;

#[derive(Clone)]
pub enum Endpoint {
    Stdio {
        command: String,
        args: Vec<Template>,
        env: Vec<(String, Template)>,
        cwd: Option<PathBuf>,
    },
    Http {
        url: Template,
        headers: Vec<(String, Template)>,
    },
    Sse,
    Embedded(Embedded),
}

impl Endpoint {
    pub(crate) fn transport(&self) -> &'static str {
        match self {
            Endpoint::Stdio { .. } => "stdio",
            Endpoint::Http { .. } => "http",
            Endpoint::Sse => "sse",
            Endpoint::Embedded(_) => "embedded",
        }
    }
}

impl From<&Transport> for Endpoint {
    fn from(transport: &Transport) -> Self {
        match transport {
            Transport::Stdio { command, args, env, cwd } => Endpoint::Stdio {
                command: command.clone(),
                args: args.clone(),
                env: env.clone(),
                cwd: cwd.as_ref().map(PathBuf::from),
            },
            Transport::Http { url, headers } => {
                Endpoint::Http { url: url.clone(), headers: headers.clone() }
            }
            Transport::Sse { .. } => Endpoint::Sse,
        }
    }
}

/// `${env:NAME}` is read when the connection is made, from this process's environment.
pub(super) fn expand(template: &Template) -> Result<String, MissingVariable> {
    template.expand(&|name| std::env::var(name).ok())
}

/// What a child inherits: everything but the gate's own variables, which may hold its keys.
pub(super) fn inherited_env() -> Vec<(OsString, OsString)> {
    std::env::vars_os()
        .filter(|(name, _)| !name.to_string_lossy().starts_with("COUNTERSIGN_"))
        .collect()
}
