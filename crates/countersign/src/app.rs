//! Assembles the gate from a configuration.

use std::path::PathBuf;

use domain::Caller;
use domain::config::Config;
use gateway::plan::{Plan, Reach};
use gateway::spec::ServerSpec;
use gateway::{GateSettings, Gateway};
use mcp::task;
use store::Store;
use tools::builtin::OffLimits;

use crate::demo;
use crate::exit::Failure;
use crate::folders;
use crate::home::Home;
use crate::logging;
use crate::off_limits;
use crate::plugins::Plugins;
use crate::site::Site;
use crate::workspace::{self, Keeper};
use telemetry::SpanExport;

/// The name of the default token.
pub(crate) const AGENT_TOKEN: &str = "agent-token";

pub(crate) struct App {
    pub(crate) gateway: Gateway,
    pub(crate) servers: Servers,
    /// Must be ended after the gate has been drained.
    pub(crate) telemetry: SpanExport,
}

/// The servers that a configuration asks for.
pub(crate) struct Servers {
    home: PathBuf,
    /// Servers added to the configured ones; only `demo` has any.
    demo: Vec<ServerSpec>,
    workspace: Keeper,
    supervisor: Option<PathBuf>,
}

/// The purpose of a gate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Work,
    /// Includes the demo servers, so that there is something to see.
    Demo,
}

impl Servers {
    pub(crate) fn new(home: &Home, store: &Store, purpose: Purpose) -> Servers {
        let demo = match purpose {
            Purpose::Work => Vec::new(),
            Purpose::Demo => demo::servers(),
        };
        let supervisor = folders::own_program();
        let workspace = Keeper::new(off_limits::of(home, store), supervisor.clone());
        Servers { home: home.path().to_owned(), demo, workspace, supervisor }
    }

    pub(crate) fn off_limits(&self) -> OffLimits {
        self.workspace.off_limits.clone()
    }

    pub(crate) fn plan(&self, config: &Config, reach: Reach) -> Plan {
        let supervisor = self.supervisor.as_deref();
        let of_config = config.servers.iter();
        let of_config = of_config.map(|server| ServerSpec::configured(server, supervisor));
        let plugins = Plugins::configured(&self.home, config);
        let configured = self.demo.iter().cloned().chain(of_config).chain(plugins).collect();
        let builtin = if reach.has(workspace::NAME) {
            self.workspace.builtin(&config.workspace)
        } else {
            None
        };
        Plan { configured, builtin, supervisor: self.supervisor.clone(), reach }
    }
}

/// Builds the gate of a site and starts connecting.
pub(crate) fn build(site: &Site, reach: Reach, purpose: Purpose) -> Result<App, Failure> {
    let (home, config) = (site.home()?, &site.source()?.config);
    let store = site.store()?;
    store.vault().choose_key(config.secrets.key.clone());
    let telemetry = SpanExport::start(&config.telemetry, logging::redactor);
    let servers = Servers::new(home, &store, purpose);
    let gateway = Gateway::with_tracer(GateSettings::from(config), store, telemetry.tracer());
    logging::redact_with(gateway.settings().redactor.clone());
    gateway.tokens().know(home.api_key()?.expose(), Caller::admin());
    know_agent(&gateway, home, config)?;
    gateway.start(servers.plan(config, reach)).map_err(Failure::store)?;
    Ok(App { gateway, servers, telemetry })
}

/// Makes the default token known, unless it is switched off: then it is not even created. Records and
/// logs hold none of the home's keys from here on.
pub(crate) fn know_agent(gateway: &Gateway, home: &Home, config: &Config) -> Result<(), Failure> {
    if config.agent_token {
        gateway.tokens().know(home.agent_token()?.expose(), Caller::agent(AGENT_TOKEN));
    }
    home.hide_keys(gateway.settings().redactor.known());
    Ok(())
}

/// Makes the configured retention the rule of the home, also for processes with another config.
pub(crate) async fn set_retention(store: &Store, config: &Config) {
    let (store, rules) = (store.clone(), config.ledger.clone());
    let setting = task::spawn_blocking(move || store.set_retention(&rules));
    if let Ok(Err(error)) = setting.await {
        tracing::error!("cannot set the rules of retention, so the old ones stay: {error}");
    }
}
