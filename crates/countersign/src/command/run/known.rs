//! The facts that a workflow is checked against, by `validate` and before each run: the servers of
//! the config, the plugins and agents installed here, and the folders of its steps.

use std::collections::BTreeMap;
use std::path::Path;

use domain::config::{Config, LoginScope};
use futures_util::future::join_all;
use gateway::plan::Plan;
use gateway::spec::ServerSpec;
use runner::agent::{self, AgentTools, InstalledAgent, ProbeNotice, Search};
use runner::openai::ModelSettings;
use runner::step;
use store::StoreError;
use store::state::OperatorState;
use vault::Vault;
use workflow::{
    self, AgentSupport, Inventory, KnownOperation, KnownPlugin, Provider, Reading,
    ServerAvailability, StateKind, StepFaults, Workflow,
};

use crate::folders;
use crate::plugins::Plugins;
use crate::step::{DISABLED, PER_TOKEN, folder_fault, quarantined};

/// The size limit of a workflow file; the parser's own limit is far smaller.
pub(super) const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reads and checks a workflow. Queries only the agents and plugins that it names, and starts none
/// of its servers.
pub(crate) async fn checked(
    text: &str,
    config: &Config,
    home: &Path,
    found: &Plugins,
    notice: Option<ProbeNotice<'_>>,
) -> Reading {
    let decided = OperatorState::of_home(home);
    let draft = workflow::draft(text);
    let (agents, steps) = match &draft {
        Some(draft) => (agents(draft, home, notice).await, steps(draft, config, home)),
        None => Default::default(),
    };
    let known = Inventory {
        servers: servers(config, home, &decided),
        plugins: plugins(text, &decided, found).await,
        agents,
        steps,
    };
    workflow::read(text, &known)
}

type Decisions = Result<Option<OperatorState>, StoreError>;

/// Returns the availability of each server in the config.
fn servers(
    config: &Config,
    home: &Path,
    decided: &Decisions,
) -> BTreeMap<String, ServerAvailability> {
    let vault = Vault::of_home(home);
    let configured = config.servers.iter().map(|server| ServerSpec::configured(server, None));
    let plan = Plan { configured: configured.collect(), ..Plan::default() };
    let specs = match decided {
        Ok(state) => plan.decided(state.as_ref()).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let availability = |spec: &ServerSpec| {
        let reason = if spec.rules.quarantined {
            Some(quarantined(&spec.name))
        } else if spec.rules.disabled {
            Some(DISABLED.to_owned())
        } else if spec.connection.login == LoginScope::PerToken {
            Some(PER_TOKEN.to_owned())
        } else {
            spec.start_fault(&vault)
        };
        reason.map_or(ServerAvailability::Usable, ServerAvailability::Unusable)
    };
    match specs {
        Ok(specs) => specs.iter().map(|spec| (spec.name.to_string(), availability(spec))).collect(),
        Err(reason) => {
            let unknown = || ServerAvailability::Unusable(reason.clone());
            plan.configured.iter().map(|spec| (spec.name.to_string(), unknown())).collect()
        }
    }
}

/// Returns the plugins found here. A permitted plugin is started to learn what it offers, but only
/// if its name occurs in the text.
async fn plugins(
    text: &str,
    decided: &Decisions,
    plugins: &Plugins,
) -> BTreeMap<String, KnownPlugin> {
    let used = plugins.found().iter().filter(|found| found.shadowed_by.is_none());
    let told = used.map(async |found| {
        let told = match (&found.fault, decided) {
            (Some(fault), _) => KnownPlugin::Unusable(fault.clone()),
            (None, Err(error)) => KnownPlugin::Unusable(error.to_string()),
            (None, Ok(decided)) => match Plugins::may_start(found, decided.as_ref()) {
                Err(error) => KnownPlugin::Unusable(error.to_string()),
                Ok(false) => KnownPlugin::NotApproved,
                Ok(true) if !text.contains(&found.name) => {
                    KnownPlugin::Approved { operations: BTreeMap::new() }
                }
                Ok(true) => match plugins.operations(found).await {
                    Ok(operations) => KnownPlugin::Approved {
                        operations: operations
                            .into_iter()
                            .map(|(name, schema)| (name, operation(schema)))
                            .collect(),
                    },
                    Err(reason) => KnownPlugin::Unusable(reason),
                },
            },
        };
        (found.name.clone(), told)
    });
    join_all(told).await.into_iter().collect()
}

fn operation(schema: Result<serde_json::Value, String>) -> KnownOperation {
    match schema {
        Ok(inputs) => KnownOperation::Usable { inputs },
        Err(reason) => KnownOperation::Unusable(reason),
    }
}

/// Queries each agent's program, as a step does before it starts one. It is probed if one of its
/// steps is to be isolated.
async fn agents(
    workflow: &Workflow,
    home: &Path,
    notice: Option<ProbeNotice<'_>>,
) -> BTreeMap<(Provider, Option<String>), AgentSupport> {
    let probes = &folders::probes(home);
    let mut wanted: BTreeMap<_, bool> = BTreeMap::new();
    for agent in workflow.states.iter().filter_map(|state| state.agent()) {
        let program = (agent.provider, agent.options.command.clone());
        *wanted.entry(program).or_default() |= agent.proxy.is_isolating();
    }
    let path = std::env::var_os("PATH");
    let here = std::env::current_dir().unwrap_or_default();
    let (path, here) = (path.as_deref(), &here);
    let asked = wanted.into_iter().filter_map(|((provider, command), is_isolated)| {
        let program = agent::Provider::parse(provider.name())?;
        Some(async move {
            let named = command.as_deref().map(|command| step::command_in(here, command));
            let supervisor = folders::own_program();
            let search = Search {
                command: named.as_deref(),
                path,
                supervisor: supervisor.as_deref(),
                probes: is_isolated.then_some(probes.as_path()),
                notice,
            };
            let support = match InstalledAgent::detect(program, &search).await {
                Ok(installed) => match installed.isolation() {
                    agent::Isolation::Full => AgentSupport::Full,
                    agent::Isolation::Coexistence { reason } => {
                        AgentSupport::Coexistence(reason.clone())
                    }
                },
                Err(error) => AgentSupport::Unusable(error.to_string()),
            };
            ((provider, command), support)
        })
    });
    join_all(asked).await.into_iter().collect()
}

/// Returns the reasons that steps cannot start here, except those that depend on values.
fn steps(workflow: &Workflow, config: &Config, home: &Path) -> BTreeMap<String, StepFaults> {
    let here = std::env::current_dir().unwrap_or_default();
    let env: Vec<_> = std::env::vars_os().collect();
    let mut faults = BTreeMap::new();
    for state in &workflow.states {
        let (builtins, options) = match &state.kind {
            StateKind::Command(_) => (true, Vec::new()),
            StateKind::Operation(_) => (false, Vec::new()),
            StateKind::Agent(agent) => {
                let options = match agent.provider {
                    Provider::OpenAiCompatible => ModelSettings::faults(&agent.options, &env),
                    Provider::Claude | Provider::Gemini | Provider::Codex | Provider::OpenCode => {
                        Vec::new()
                    }
                };
                (step::tools(&agent.proxy) == AgentTools::Only, options)
            }
            StateKind::Parallel(_) | StateKind::Terminal(_) => continue,
        };
        let dir = state.dir.as_ref().map_or(Some("."), |dir| dir.fixed());
        let workspace = builtins.then_some(&config.workspace);
        let folder = dir.and_then(|dir| folder_fault(&here.join(dir), workspace, home));
        faults.insert(state.name.clone(), StepFaults { folder, options });
    }
    faults
}
