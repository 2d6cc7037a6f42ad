//! What a workflow is checked against: the servers of the config, and the agents as they are
//! installed here.

use std::collections::{BTreeMap, BTreeSet};

use domain::config::Config;
use domain::workflow::{self, Isolation, Known, Provider, Read, Workflow};
use futures_util::future::join_all;
use runner::agent::{self, Installed, Search};

use crate::app;

/// Nobody writes a longer workflow; the reader refuses far smaller ones.
pub(super) const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reads and checks a workflow. Only the agents that it wants to isolate are looked at.
pub(crate) async fn checked(text: &str, config: &Config) -> Read {
    let mut known = Known {
        servers: config.servers.iter().map(|server| server.name.clone()).collect(),
        ..Known::default()
    };
    let read = workflow::read(text, &known);
    let Some(workflow) = &read.workflow else {
        return read;
    };
    known.isolation = isolation(workflow).await;
    if known.isolation.is_empty() { read } else { workflow::read(text, &known) }
}

/// Of an agent that is not there nothing is said: it may be where the workflow runs.
async fn isolation(workflow: &Workflow) -> BTreeMap<(Provider, Option<String>), Isolation> {
    let agents = workflow.states.iter().filter_map(|state| state.agent());
    let isolating = agents.filter(|agent| agent.proxy.is_isolating());
    let wanted: BTreeSet<_> =
        isolating.map(|agent| (agent.provider, agent.options.command.clone())).collect();
    let path = std::env::var_os("PATH");
    let asked = wanted.into_iter().filter_map(|(provider, command)| {
        let program = agent::Provider::parse(provider.name())?;
        let path = path.clone();
        Some(async move {
            let named = command.as_deref().map(std::path::Path::new);
            let supervisor = app::own_program();
            let search =
                Search { command: named, path: path.as_deref(), supervisor: supervisor.as_deref() };
            match Installed::detect(program, &search).await.ok()?.isolation() {
                agent::Isolation::Full => None,
                agent::Isolation::Coexistence { reason } => {
                    Some(((provider, command.clone()), Isolation::Coexistence(reason.clone())))
                }
            }
        })
    });
    join_all(asked).await.into_iter().flatten().collect()
}
