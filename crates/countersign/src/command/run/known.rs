//! The facts that a workflow is checked against: the servers of the config, and the agents
//! installed here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use domain::config::Config;
use futures_util::future::join_all;
use runner::agent::{self, InstalledAgent, Search};
use store::state::OperatorState;
use workflow::{self, Inventory, IsolationSupport, KnownPlugin, Provider, Reading, Workflow};

use crate::folders;
use crate::plugins::Plugins;

/// The size limit of a workflow file; the parser's own limit is far smaller.
pub(super) const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reads and checks a workflow. Examines only the agents that it isolates and the plugins that it
/// names.
pub(crate) async fn checked(text: &str, config: &Config, home: &Path, found: &Plugins) -> Reading {
    let mut known = Inventory {
        servers: config.servers.iter().map(|server| server.name.clone()).collect(),
        plugins: plugins(text, home, found).await,
        ..Inventory::default()
    };
    let read = workflow::read(text, &known);
    let Some(workflow) = &read.workflow else {
        return read;
    };
    known.isolation = isolation(workflow).await;
    if known.isolation.is_empty() { read } else { workflow::read(text, &known) }
}

/// Returns the plugins found here. A permitted plugin is started to learn what it offers, but only
/// if its name occurs in the text.
async fn plugins(text: &str, home: &Path, plugins: &Plugins) -> BTreeMap<String, KnownPlugin> {
    let decided = OperatorState::of_home(home);
    let used = plugins.found().iter().filter(|found| found.shadowed_by.is_none());
    let told = used.map(async |found| {
        let told = match (&found.fault, &decided) {
            (Some(fault), _) => KnownPlugin::Unusable(fault.clone()),
            (None, Err(error)) => KnownPlugin::Unusable(error.to_string()),
            (None, Ok(decided)) => match Plugins::may_start(found, decided.as_ref()) {
                Err(error) => KnownPlugin::Unusable(error.to_string()),
                Ok(false) => KnownPlugin::NotApproved,
                Ok(true) if !text.contains(&found.name) => {
                    KnownPlugin::Approved { operations: BTreeSet::new() }
                }
                Ok(true) => match plugins.operations(found).await {
                    Ok(operations) => KnownPlugin::Approved { operations },
                    Err(reason) => KnownPlugin::Unusable(reason),
                },
            },
        };
        (found.name.clone(), told)
    });
    join_all(told).await.into_iter().collect()
}

/// Returns the isolation that each agent supports. A missing agent is left out: it may exist where
/// the workflow runs.
async fn isolation(workflow: &Workflow) -> BTreeMap<(Provider, Option<String>), IsolationSupport> {
    let agents = workflow.states.iter().filter_map(|state| state.agent());
    let isolating = agents.filter(|agent| agent.proxy.is_isolating());
    let wanted: BTreeSet<_> =
        isolating.map(|agent| (agent.provider, agent.options.command.clone())).collect();
    let path = std::env::var_os("PATH");
    let asked = wanted.into_iter().filter_map(|(provider, command)| {
        let program = agent::Provider::parse(provider.name())?;
        let path = path.clone();
        Some(async move {
            let named = command.as_deref().map(Path::new);
            let supervisor = folders::own_program();
            let search =
                Search { command: named, path: path.as_deref(), supervisor: supervisor.as_deref() };
            match InstalledAgent::detect(program, &search).await.ok()?.isolation() {
                agent::Isolation::Full => None,
                agent::Isolation::Coexistence { reason } => Some((
                    (provider, command.clone()),
                    IsolationSupport::Coexistence(reason.clone()),
                )),
            }
        })
    });
    join_all(asked).await.into_iter().flatten().collect()
}
