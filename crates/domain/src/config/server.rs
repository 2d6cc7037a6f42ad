//! The checked values of one upstream server.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::oauth::OAuth;
use super::template::ConfigTemplate;
use super::tool_rules::ToolRules;
use crate::choice;
use touch::targets::TargetMapping;

/// One entry of `mcpServers`. Its `Debug` hides likely secrets.
#[derive(Clone, PartialEq)]
pub struct ServerConfig {
    pub name: String,
    pub origin: ServerOrigin,
    pub transport: Transport,
    pub enabled: bool,
    pub quarantined: bool,
    /// `enabled_tools` and `disabled_tools`, from one file or several combined.
    pub tools: ToolRules,
    pub auto_approve: AutoApprove,
    pub sharing: Sharing,
    pub start: Start,
    /// `None` uses the config's `call_timeout`.
    pub call_timeout: Option<Duration>,
    /// `None` sets no limit for this server.
    pub max_concurrent: Option<NonZeroU32>,
    pub login: LoginScope,
    pub oauth: Option<OAuth>,
    /// A change of the program file quarantines the server.
    pub pin: bool,
    /// Names the resources that its calls touch.
    pub targets: Option<Arc<TargetMapping>>,
}

/// The origin of a server or profile. Only the user's own are trusted from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerOrigin {
    /// The user's own configuration.
    Own,
    /// A file in the folder, or an entry of the user's own file that is `untrusted`.
    Found,
    /// Added at run time.
    Added,
}

impl ServerConfig {
    /// Returns every text that may have placeholders.
    pub fn templates(&self) -> impl Iterator<Item = &ConfigTemplate> {
        let oauth = self.oauth.iter().flat_map(OAuth::templates);
        self.transport.templates().into_iter().chain(oauth)
    }

    /// Makes text of all placeholders. Reports if there were any.
    pub(super) fn take_literally(&mut self) -> bool {
        let named = |values: &'_ mut Vec<(String, ConfigTemplate)>| {
            values.iter_mut().fold(false, |any, (_, value)| value.take_literally() | any)
        };
        let in_transport = match &mut self.transport {
            Transport::Stdio { args, env, .. } => {
                args.iter_mut().fold(named(env), |any, arg| arg.take_literally() | any)
            }
            Transport::Http { url, headers } | Transport::Sse { url, headers } => {
                url.take_literally() | named(headers)
            }
        };
        let oauth = self.oauth.iter_mut();
        let oauth = oauth.flat_map(|it| it.client_secret.iter_mut().chain(&mut it.private_key));
        oauth.fold(in_transport, |any, value| value.take_literally() | any)
    }
}

impl Transport {
    /// Returns every text of it that may have placeholders.
    pub fn templates(&self) -> Vec<&ConfigTemplate> {
        match self {
            Transport::Stdio { args, env, .. } => {
                args.iter().chain(env.iter().map(|(_, value)| value)).collect()
            }
            Transport::Http { url, headers } | Transport::Sse { url, headers } => {
                headers.iter().map(|(_, value)| value).chain([url]).collect()
            }
        }
    }
}

/// The connection to a server.
#[derive(Clone, PartialEq)]
pub enum Transport {
    Stdio {
        /// One program, found on `PATH` or by its path; it is not run through a shell.
        command: String,
        args: Vec<ConfigTemplate>,
        env: Vec<(String, ConfigTemplate)>,
        cwd: Option<String>,
        /// The child inherits the gate's whole environment, except the gate's own variables.
        inherit_env: bool,
    },
    /// `http` or `https`, unless the URL starts with a variable: then the code that expands it must
    /// check.
    Http { url: ConfigTemplate, headers: Vec<(String, ConfigTemplate)> },
    /// The HTTP+SSE transport of protocol version 2024-11-05.
    Sse { url: ConfigTemplate, headers: Vec<(String, ConfigTemplate)> },
}

choice! {
    /// The tools of a server that need no manual approval.
    AutoApprove {
        None = "none",
        /// New tools; a changed one still requires review.
        New = "new",
        All = "all",
    }
}

choice! {
    /// The sharing of one connection between callers.
    Sharing { Auto = "auto", Shared = "shared", PerClient = "per_client" }
}

choice! {
    /// The callers that one sign-in to a server is for.
    LoginScope { Shared = "shared", PerToken = "per_token" }
}

choice! {
    /// The time at which a server is connected.
    Start {
        Eager = "eager",
        /// At its first call.
        Lazy = "lazy",
    }
}
