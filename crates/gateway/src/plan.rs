//! The servers to run: those of the configuration and those added at run time, each with the
//! operator's decisions applied.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::config::{self, ServerOrigin};
use domain::exposed::Names;
use domain::policy::ServerRules;
use mcp::message::Raw;
use provider::ToolProvider;
use serde_json::Value;
use store::state::{OperatorState, ServerState};
use store::{Store, StoreError};

use crate::spec::ServerSpec;

/// The set of servers a gate serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    #[default]
    All,
    Only(String),
    Among(Vec<String>),
    /// No servers: for programs that only read the store.
    Nothing,
}

/// Built-in tools, which agents see as one server. They need no approval: they come with the
/// program.
pub struct Builtin {
    pub name: Arc<str>,
    /// An absolute path; its tools resolve paths against it.
    pub root: Arc<str>,
    pub definitions: Vec<Raw>,
    pub provider: Arc<dyn ToolProvider>,
    pub names: Names,
    /// The maximum duration of one of its calls, if longer than the settings allow: some of its
    /// tools take a timeout from their caller.
    pub call_timeout: Duration,
}

/// The servers to run, with the operator's decisions applied.
pub(crate) struct PlannedServers {
    pub(crate) specs: Vec<ServerSpec>,
    pub(crate) builtin: Option<PlannedBuiltin>,
}

pub(crate) struct PlannedBuiltin {
    pub(crate) builtin: Arc<Builtin>,
    pub(crate) rules: ServerRules,
}

#[derive(Clone, Default)]
pub struct Plan {
    pub configured: Vec<ServerSpec>,
    /// The same instance as before if nothing about it has changed.
    pub builtin: Option<Arc<Builtin>>,
    /// The program that starts a server's command, so that the server ends with the gate.
    pub supervisor: Option<PathBuf>,
    pub reach: Reach,
}

impl Reach {
    pub fn has(&self, server: &str) -> bool {
        match self {
            Reach::All => true,
            Reach::Only(name) => name == server,
            Reach::Among(names) => names.iter().any(|name| name == server),
            Reach::Nothing => false,
        }
    }
}

impl Plan {
    /// Returns the servers that are to run now. Blocks.
    pub(crate) fn planned(&self, store: &Store) -> Result<PlannedServers, StoreError> {
        if self.reach == Reach::Nothing {
            return Ok(PlannedServers { specs: Vec::new(), builtin: None });
        }
        let states = self.known(store)?;
        let switched_off = store.state().all_switched_off()?;
        let mut specs = self.configured.clone();
        for state in &states {
            let is_configured = specs.iter().any(|spec| *spec.name == *state.name);
            if let Some(definition) = state.added.as_deref().filter(|_| !is_configured) {
                specs.extend(self.added(state, definition, store.state())?);
            }
        }
        specs.retain(|spec| self.reach.has(&spec.name));
        let builtin = self.builtin.clone().filter(|builtin| self.reach.has(&builtin.name));
        let builtin = builtin.map(|builtin| {
            let state = states.iter().find(|state| *state.name == *builtin.name);
            let rules = ServerRules {
                quarantined: state.is_some_and(|state| state.quarantined),
                disabled: state.is_some_and(|state| state.disabled),
                switched_off: switched_off.get(&*builtin.name).cloned().unwrap_or_default(),
                ..ServerRules::default()
            };
            PlannedBuiltin { builtin, rules }
        });
        let decided = specs.into_iter().map(|spec| {
            let state = states.iter().find(|state| *state.name == *spec.name);
            let switched_off = switched_off.get(&*spec.name);
            let trusts_files = spec.trust.trusts_files(store.state())?;
            let kept = state.and_then(|state| state.program.as_deref());
            let mut spec = spec.decided(state, switched_off, trusts_files);
            if let Some(program) = spec.check_pin(kept) {
                store.state().keep_program(&spec.name, &program)?;
            }
            Ok(spec)
        });
        Ok(PlannedServers { specs: decided.collect::<Result<_, StoreError>>()?, builtin })
    }

    /// Returns the configured servers under the decisions in a state that is only read; `None` is
    /// a home without any. Keeps nothing. Blocks.
    pub fn decided(&self, state: Option<&OperatorState>) -> Result<Vec<ServerSpec>, StoreError> {
        let states = state.map(OperatorState::servers).transpose()?.unwrap_or_default();
        let decided = self.configured.iter().map(|spec| {
            let known = states.iter().find(|known| *known.name == *spec.name);
            let trusts_files =
                state.map(|state| spec.trust.trusts_files(state)).transpose()?.unwrap_or(false);
            Ok(spec.clone().decided(known, None, trusts_files))
        });
        decided.collect()
    }

    /// Returns the decisions about servers. After decisions were lost, a server without any waits
    /// for a review: otherwise its first list would count as approved.
    fn known(&self, store: &Store) -> Result<Vec<ServerState>, StoreError> {
        let states = store.state().servers()?;
        if store.state().lost_at()?.is_none() {
            return Ok(states);
        }
        let is_new = |name: &str| !states.iter().any(|state| state.name == *name);
        for spec in self.configured.iter().filter(|spec| is_new(&spec.name)) {
            store.state().await_review(&spec.name)?;
        }
        // Built-in tools have no approvals, but may have been switched off.
        if let Some(builtin) = self.builtin.as_ref().filter(|builtin| is_new(&builtin.name)) {
            store.state().quarantine_server(&builtin.name)?;
        }
        store.state().servers()
    }

    /// Returns a server that was added at run time. Without its secrets it is shown, but cannot be
    /// started.
    fn added(
        &self,
        state: &ServerState,
        definition: &str,
        operator: &OperatorState,
    ) -> Result<Option<ServerSpec>, StoreError> {
        let name = &*state.name;
        let open: Value = serde_json::from_str(definition).unwrap_or_default();
        let whole = match config::unite(&open, &[]) {
            Some(whole) => Some(whole),
            None => {
                let secrets = operator.server_secrets();
                if let Err(error) = &secrets {
                    tracing::error!(server = name, "cannot read its secrets: {error}");
                }
                let secrets = secrets.unwrap_or_default();
                config::unite(&open, secrets.get(name).map(Vec::as_slice).unwrap_or_default())
            }
        };
        let Some(whole) = whole else {
            return Ok(Some(ServerSpec::without_secrets(state, &open)));
        };
        Ok(match parse_added(name, &whole) {
            Ok(server) => Some(ServerSpec::configured(&server, self.supervisor.as_deref())),
            Err(faults) => {
                tracing::error!(server = name, "cannot read the stored definition: {faults}");
                None
            }
        })
    }
}

/// Parses one entry of `mcpServers`, with the same checks as in a file.
pub(crate) fn parse_added(
    name: &str,
    definition: &Value,
) -> Result<config::ServerConfig, config::Faults> {
    let name = Value::from(name);
    let parsed = config::parse(&format!(r#"{{"mcpServers":{{{name}:{definition}}}}}"#))?;
    let mut servers = parsed.config.servers;
    let mut server = servers.swap_remove(0);
    server.origin = ServerOrigin::Added;
    Ok(server)
}
