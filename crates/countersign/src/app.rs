//! The gate put together from a configuration.

use std::path::{Path, PathBuf};

use domain::Caller;
use domain::config::{Config, Origin};
use gateway::plan::{Plan, Reach};
use gateway::upstream::ServerSpec;
use gateway::{Gateway, Settings};
use store::Store;

use crate::demo;
use crate::exit::Failure;
use crate::home::Home;

pub(crate) struct App {
    pub(crate) gateway: Gateway,
    pub(crate) servers: Servers,
}

/// Which servers a configuration asks for.
pub(crate) struct Servers {
    /// Take the place of configured ones while there are none, so that there is something to see.
    demo: Vec<ServerSpec>,
    supervisor: Option<PathBuf>,
}

impl Servers {
    fn new() -> Servers {
        Servers { demo: demo::servers(), supervisor: own_program() }
    }

    pub(crate) fn plan(&self, config: &Config, reach: Reach) -> Plan {
        let supervisor = self.supervisor.as_deref();
        let of_config = config.servers.iter();
        let mut configured: Vec<ServerSpec> =
            of_config.map(|server| ServerSpec::configured(server, supervisor)).collect();
        // A file in the folder does not make it a configuration of the person's own.
        if !config.servers.iter().any(|server| server.origin == Origin::Own) {
            let is_new = |demo: &&ServerSpec| config.server(&demo.name).is_none();
            configured.splice(0..0, self.demo.iter().filter(is_new).cloned());
        }
        Plan { configured, supervisor: self.supervisor.clone(), reach }
    }
}

/// This program, to be started again as a supervisor.
pub(crate) fn own_program() -> Option<PathBuf> {
    // On Linux this names the running program even if its file was replaced by a newer one.
    let own = Path::new("/proc/self/exe");
    if own.exists() { Some(own.to_owned()) } else { std::env::current_exe().ok() }
}

/// Builds the gate and starts to connect.
pub(crate) fn build(home: &Home, config: &Config, reach: Reach) -> Result<App, Failure> {
    let store = Store::open(home.path(), &config.ledger).map_err(Failure::store)?;
    let gateway = Gateway::new(Settings::from(config), store);
    gateway.tokens().know(home.api_key()?.expose(), Caller::admin());
    gateway.tokens().know(home.agent_token()?.expose(), Caller::agent("agent-token"));
    let servers = Servers::new();
    gateway.start(servers.plan(config, reach)).map_err(Failure::store)?;
    Ok(App { gateway, servers })
}
