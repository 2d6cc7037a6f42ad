//! The gate put together from a configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::Caller;
use domain::config::Config;
use gateway::auth::Tokens;
use gateway::upstream::ServerSpec;
use gateway::{Gateway, Settings};
use store::Store;

use crate::demo;
use crate::exit::Failure;
use crate::home::Home;

pub(crate) struct App {
    pub(crate) gateway: Gateway,
    pub(crate) tokens: Arc<Tokens>,
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

    pub(crate) fn of(&self, config: &Config) -> Vec<ServerSpec> {
        if config.servers.is_empty() {
            return self.demo.clone();
        }
        let supervisor = self.supervisor.as_deref();
        config.servers.iter().map(|server| ServerSpec::configured(server, supervisor)).collect()
    }
}

/// This program, to be started again as a supervisor.
pub(crate) fn own_program() -> Option<PathBuf> {
    // On Linux this names the running program even if its file was replaced by a newer one.
    let own = Path::new("/proc/self/exe");
    if own.exists() { Some(own.to_owned()) } else { std::env::current_exe().ok() }
}

/// How much of the configuration a command needs.
#[derive(Clone, Copy)]
pub(crate) enum Reach<'a> {
    All,
    Only(&'a str),
    /// No server at all: for those that only look into the ledger.
    Ledger,
}

/// Builds the gate and starts to connect.
pub(crate) fn build(home: &Home, config: &Config, reach: Reach<'_>) -> Result<App, Failure> {
    let tokens = Tokens::new([
        (home.api_key()?.expose().to_owned(), Caller::admin()),
        (home.agent_token()?.expose().to_owned(), Caller::agent("agent-token")),
    ]);
    let store = Store::open(home.path(), &config.ledger).map_err(Failure::store)?;
    let gateway = Gateway::new(Settings::from(config), store);
    let servers = Servers::new();
    for spec in servers.of(config) {
        let wanted = match reach {
            Reach::All => true,
            Reach::Only(name) => *spec.name == *name,
            Reach::Ledger => false,
        };
        if wanted {
            gateway.add_upstream(spec);
        }
    }
    Ok(App { gateway, tokens: Arc::new(tokens), servers })
}
