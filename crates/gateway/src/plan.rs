//! Which servers there are to be: those of the configuration and those that were added at run time,
//! each under what people decided about it.

use std::path::PathBuf;

use domain::config::{self, Origin};
use store::{Store, StoreError};

use crate::upstream::ServerSpec;

/// How many of the servers a gate is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    #[default]
    All,
    Only(String),
    /// None: for those that only look into the store.
    Nothing,
}

#[derive(Clone, Default)]
pub struct Plan {
    pub configured: Vec<ServerSpec>,
    /// The program that starts a server's command, so that it ends with the gate.
    pub supervisor: Option<PathBuf>,
    pub reach: Reach,
}

impl Plan {
    /// The servers as they are to run now. Blocks.
    pub(crate) fn specs(&self, store: &Store) -> Result<Vec<ServerSpec>, StoreError> {
        if self.reach == Reach::Nothing {
            return Ok(Vec::new());
        }
        let states = store.state().servers()?;
        let switched_off = store.state().all_switched_off()?;
        let mut specs = self.configured.clone();
        for state in &states {
            let is_configured = specs.iter().any(|spec| *spec.name == *state.name);
            if let Some(definition) = state.added.as_deref().filter(|_| !is_configured) {
                specs.extend(self.added(&state.name, definition));
            }
        }
        specs.retain(|spec| match &self.reach {
            Reach::All => true,
            Reach::Only(name) => *spec.name == **name,
            Reach::Nothing => false,
        });
        let decided = specs.into_iter().map(|spec| {
            let state = states.iter().find(|state| *state.name == *spec.name);
            let switched_off = switched_off.get(&*spec.name);
            spec.decided(state, switched_off)
        });
        Ok(decided.collect())
    }

    fn added(&self, name: &str, definition: &str) -> Option<ServerSpec> {
        match parse_added(name, definition) {
            Ok(server) => Some(ServerSpec::configured(&server, self.supervisor.as_deref())),
            Err(faults) => {
                tracing::error!(server = name, "cannot be read from the store: {faults}");
                None
            }
        }
    }
}

/// One entry of `mcpServers`, checked as in a file.
pub(crate) fn parse_added(name: &str, definition: &str) -> Result<config::Server, config::Faults> {
    let name = serde_json::Value::from(name);
    let parsed = config::parse(&format!(r#"{{"mcpServers":{{{name}:{definition}}}}}"#))?;
    let mut servers = parsed.config.servers;
    let mut server = servers.swap_remove(0);
    server.origin = Origin::Added;
    Ok(server)
}
