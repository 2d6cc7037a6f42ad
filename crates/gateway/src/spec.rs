//! A server to connect to: its endpoint, its origin, and the settings of its connection.

mod endpoint;

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use access::secrets::SecretValues;
use domain::config::{
    self, ArgumentCheck, AutoApprove, ConfigTemplate, LoginScope, OAuth, ServerOrigin, Sharing,
    Start,
};
use domain::policy::{ServerRules, Strictness};
use domain::tool::Source;
use domain::trust::{self, ServerText};
use mcp::Service;
use serde_json::Value;
use store::StoreError;
use store::state::{OperatorState, ServerState};
use vault::Vault;

use crate::command::{ChildCommand, ProgramFile};
pub use endpoint::{MakeServer, PluginSpec, ServerEndpoint};
pub(crate) use endpoint::{http_endpoint, without_secrets};

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
                arguments: match server.arguments {
                    ArgumentCheck::Strict => Strictness::Refuse,
                    ArgumentCheck::Warn => Strictness::Warn,
                },
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
            ServerEndpoint::Remote(_)
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
            | ServerEndpoint::Remote(_)
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
            Ok(secrets) => self.endpoint.start_fault(&secrets),
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
