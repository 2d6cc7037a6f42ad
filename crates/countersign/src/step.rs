//! The gates of a run's steps. Each has its own tools, private folder and socket; all share the
//! ledger. The agent in a step reaches its gate through `countersign mcp-serve`.

mod folder;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::config::{Config, ToolRules};
use domain::exposed::Names;
use domain::policy::Lock;
use domain::tool::ToolName;
use domain::upstream::UpstreamState;
use domain::{Caller, Code, Refusal};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gateway::front::{stdio, step};
use gateway::plan::{Builtin, Plan, Reach};
use gateway::{GateSettings, Gateway};
use provider::{Gate, TraceContext, Tracer};
use runner::gate::{GateRequest, Gates, PluginGrant, StepGate};
use serde::{Deserialize, Serialize};
use store::Store;
use tokio::io::DuplexStream;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::builtin::{Permissions, Workspace};
use workflow::tool_name;

pub(crate) use self::folder::path_of as folder_of;

use self::folder::Folder;
use crate::app::Servers;
use crate::exit::Failure;
use crate::home::Home;
use crate::plugins::{self, Plugins};
use crate::serve::bind_socket;
use crate::{app, folders, workspace};

/// The maximum number of connections of one agent; the known agents open one each.
const CONNECTIONS_MAX: usize = 16;

/// The buffer size between this process and an agent in it, each way.
const CONNECTION_BYTES: usize = 64 * 1024;

/// The file in a step's folder that `mcp-serve` reads.
const FILE: &str = "step.json";

/// Returns the command with which an agent connects to the gate with this folder.
pub(crate) fn server_of(folder: &Path) -> (PathBuf, Vec<String>) {
    // In the agent's process, `/proc/self` would be the agent.
    let program = std::env::current_exe().unwrap_or_else(|_| "countersign".into());
    // Linux adds this to the path of a replaced file; the newer program has the path without it.
    let program = match program.to_str().and_then(|text| text.strip_suffix(" (deleted)")) {
        Some(path) if !program.exists() => path.into(),
        Some(_) | None => program,
    };
    let file = folder.join(FILE);
    (program, vec!["mcp-serve".to_owned(), format!("--config={}", file.display())])
}

/// The input of `mcp-serve`. Agents pass on hardly any environment, so all of it is here.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepFile {
    /// The socket of a step's gate; without it, `mcp-serve` is the gate itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gate: Option<PathBuf>,
    #[serde(default = "yes")]
    pub(crate) intercept_builtins: bool,
    #[serde(default)]
    pub(crate) plugin_tools: Vec<PluginTools>,
    #[serde(default)]
    pub(crate) mcp_servers: Vec<String>,
    /// The root folder; if absent, the folder that `mcp-serve` is started in.
    #[serde(default)]
    pub(crate) root_dir: Option<PathBuf>,
    /// The agent's name in the records.
    #[serde(default)]
    pub(crate) agent: Option<String>,
}

/// The parts of a plugin that a step may use, as a workflow states them.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PluginTools {
    plugin: String,
    expose: BTreeSet<String>,
}

impl From<PluginTools> for PluginGrant {
    fn from(tools: PluginTools) -> PluginGrant {
        PluginGrant { plugin: tools.plugin, operations: tools.expose }
    }
}

impl From<PluginGrant> for PluginTools {
    fn from(plugged: PluginGrant) -> PluginTools {
        PluginTools { plugin: plugged.plugin, expose: plugged.operations }
    }
}

fn yes() -> bool {
    true
}

/// Opens the gates of one process's steps.
pub(crate) struct Steps {
    home: PathBuf,
    config: Config,
    servers: Servers,
    plugins: Plugins,
    store: Store,
    tracer: Option<Arc<dyn Tracer>>,
    opened: AtomicUsize,
}

impl Steps {
    pub(crate) fn new(
        home: &Home,
        config: Config,
        plugins: Plugins,
        tracer: Option<Arc<dyn Tracer>>,
    ) -> Result<Steps, Failure> {
        folder::purge(home.path());
        let store = Store::open(home.path(), &config.ledger).map_err(Failure::store)?;
        let servers = Servers::new(home, &store, app::Purpose::Work);
        let (home, opened) = (home.path().to_owned(), AtomicUsize::new(0));
        Ok(Steps { home, config, servers, plugins, store, tracer, opened })
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Removes the files of steps that still run, as this process is about to end.
    pub(crate) fn abandon(&self) {
        folder::remove_own(&self.home);
    }

    /// Builds a gate with the requested tools, not reachable yet. Its plugins are connected.
    pub(crate) async fn gateway(&self, wanted: &GateRequest) -> Result<Gateway, Refusal> {
        let (settings, store) = (GateSettings::from(&self.config), self.store.clone());
        let gateway = Gateway::with_tracer(settings, store, self.tracer.clone());
        let started = gateway.start(self.plan(wanted)?);
        started.map_err(|error| Refusal::new(error.code(), error.to_string()))?;
        let plugged = tokio::select! {
            plugged = all_plugged(&gateway, &wanted.plugins) => plugged,
            () = wanted.cancel.cancelled() => Err(Refusal::new(Code::Cancelled, "cancelled")),
        };
        if let Err(refusal) = plugged {
            gateway.retire_all().await;
            return Err(refusal);
        }
        Ok(gateway)
    }

    fn plan(&self, wanted: &GateRequest) -> Result<Plan, Refusal> {
        let mut reach = wanted.servers.clone();
        // The built-in tools are the step's own: those for this process's folder are left out, and
        // so are plugins that were not requested.
        let mut plan = self.servers.plan(&self.config, Reach::Among(reach.clone()));
        plan.builtin = if wanted.builtins {
            Some(Arc::new(self.builtin(wanted).map_err(not_opened)?))
        } else {
            None
        };
        reach.extend(plan.builtin.as_ref().map(|builtin| builtin.name.to_string()));
        plan.configured.retain(|spec| !wanted.plugins.iter().any(|it| *it.plugin == *spec.name));
        for plugged in &wanted.plugins {
            let mut spec = self.plugins.spec(&plugged.plugin, Some(&wanted.root))?;
            let operations = plugged.operations.iter();
            let names = operations.map(|operation| tool_name(&plugged.plugin, operation));
            spec.rules.tools = ToolRules::Only(names.collect());
            plan.configured.push(spec);
            reach.push(plugged.plugin.clone());
        }
        plan.reach = Reach::Among(reach);
        Ok(plan)
    }

    fn builtin(&self, wanted: &GateRequest) -> Result<Builtin, String> {
        let of_config = &self.config.workspace;
        let root = workspace::step_root(&wanted.root, of_config)?;
        let allowed =
            Permissions { write: true, shell: true, allow_outside: of_config.allow_outside };
        let workspace = Workspace::new(&root, allowed, self.servers.off_limits())?
            .supervised(folders::own_program())
            .patient(wanted.patience.max(Workspace::CALL_TIMEOUT))
            .withholding(wanted.withheld.clone());
        let root = workspace.root().to_str().ok_or("the folder's path is not UTF-8")?;
        Ok(Builtin {
            name: workspace::NAME.into(),
            root: root.into(),
            definitions: workspace.definitions(),
            names: Names::Own,
            call_timeout: Workspace::CALL_TIMEOUT,
            provider: Arc::new(workspace),
        })
    }

    async fn open(&self, wanted: GateRequest) -> Result<Arc<dyn StepGate>, Refusal> {
        let gateway = self.gateway(&wanted).await?;
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let folder = Folder::make(&self.home, number).map_err(not_opened)?;
        let socket = folder.path().join("gate.sock");
        let listener =
            bind_socket(&socket).map_err(|failure| not_opened(failure.message().to_owned()))?;
        let file = StepFile {
            gate: Some(socket),
            intercept_builtins: wanted.builtins,
            plugin_tools: wanted.plugins.into_iter().map(PluginTools::from).collect(),
            mcp_servers: wanted.servers,
            root_dir: Some(wanted.root),
            agent: Some(wanted.agent.clone()),
        };
        let text = serde_json::to_vec(&file).map_err(|error| not_opened(error.to_string()))?;
        folder.write(FILE, &text).map_err(not_opened)?;
        let open = Open {
            gateway,
            caller: Arc::new(Caller::agent(&wanted.agent)),
            trace: wanted.trace,
            seen: Arc::default(),
            folder,
            connections: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        open.listen(listener);
        Ok(Arc::new(open))
    }
}

impl Gates for Steps {
    fn open(&self, wanted: GateRequest) -> BoxFuture<'_, Result<Arc<dyn StepGate>, Refusal>> {
        self.open(wanted).boxed()
    }
}

fn not_opened(message: String) -> Refusal {
    Refusal::new(Code::AgentFailed, message)
}

/// Waits for the plugins, and checks that the requested operations can be called.
async fn all_plugged(gateway: &Gateway, plugins: &[PluginGrant]) -> Result<(), Refusal> {
    let settings = gateway.settings();
    let names: Vec<&str> = plugins.iter().map(|plugged| &*plugged.plugin).collect();
    gateway.settled_among(&names, settings.connect_timeout).await;
    let catalog = gateway.catalog();
    for PluginGrant { plugin, operations } in plugins {
        let unavailable = |reason: &str| {
            let message = format!("plugin '{plugin}' did not start: {reason}");
            Refusal::new(Code::UpstreamUnavailable, message)
        };
        let server =
            catalog.server(plugin).ok_or_else(|| unavailable("it is not in the catalog"))?;
        match &server.state {
            UpstreamState::Ready => {}
            UpstreamState::Waiting(failure) => return Err(unavailable(&failure.to_string())),
            UpstreamState::Stopped if server.rules.quarantined => {
                return Err(plugins::not_approved(plugin));
            }
            UpstreamState::Stopped => return Err(unavailable("it is disabled")),
            UpstreamState::Idle | UpstreamState::Connecting => {
                return Err(unavailable("it did not connect in time"));
            }
        }
        for operation in operations {
            let tool = tool_name(plugin, operation);
            if server.lock(&tool) != Lock::Callable {
                let message = format!(
                    "operation '{operation}' of plugin '{plugin}' is locked: see \
                     'countersign tools show {plugin}:{tool}'"
                );
                return Err(Refusal::new(Code::ToolBlocked, message));
            }
        }
    }
    Ok(())
}

/// An open gate.
struct Open {
    gateway: Gateway,
    caller: Arc<Caller>,
    trace: TraceContext,
    seen: Arc<step::StepActivity>,
    folder: Folder,
    connections: TaskTracker,
    stop: CancellationToken,
}

impl Open {
    fn listen(&self, listener: UnixListener) {
        let (gateway, caller, seen) =
            (self.gateway.clone(), self.caller.clone(), self.seen.clone());
        let (connections, stop) = (self.connections.clone(), self.stop.clone());
        let trace = self.trace.clone();
        self.connections.spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = stop.cancelled() => return,
                };
                // One of the tracked tasks is this one.
                if let Ok((stream, _)) = accepted
                    && connections.len() <= CONNECTIONS_MAX
                {
                    let (reader, writer) = stream.into_split();
                    let service = step::open(&gateway, &caller, &seen, trace.clone());
                    connections.spawn(stdio::serve(service, reader, writer, stop.clone()));
                }
            }
        });
    }
}

impl StepGate for Open {
    fn connect(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(CONNECTION_BYTES);
        let (reader, writer) = tokio::io::split(ours);
        let service = step::open(&self.gateway, &self.caller, &self.seen, self.trace.clone());
        self.connections.spawn(stdio::serve(service, reader, writer, self.stop.clone()));
        theirs
    }

    fn private(&self) -> &Path {
        self.folder.path()
    }

    fn server(&self) -> (PathBuf, Vec<String>) {
        server_of(self.folder.path())
    }

    fn gate(&self) -> &dyn Gate {
        &self.gateway
    }

    fn shell(&self) -> ToolName {
        ToolName { server: workspace::NAME.to_owned(), tool: "Bash".to_owned() }
    }

    fn operation(&self, plugin: &str, operation: &str) -> ToolName {
        ToolName { server: plugin.to_owned(), tool: tool_name(plugin, operation) }
    }

    fn call_timeout(&self) -> Duration {
        let servers = self.gateway.catalog();
        let timeouts = servers.servers().map(|server| self.gateway.call_timeout(&server.name));
        timeouts.max().unwrap_or_default()
    }

    fn bypassed<'a>(&'a self, program: &'a str, tool: &'a str) -> BoxFuture<'a, ()> {
        step::record_bypass(&self.gateway, &self.caller, program, tool).boxed()
    }

    fn caller(&self) -> Arc<Caller> {
        self.caller.clone()
    }

    fn was_listed(&self) -> bool {
        self.seen.listed()
    }

    fn calls(&self) -> u64 {
        self.gateway.metrics().calls().iter().map(|calls| calls.count).sum()
    }

    fn sessions(&self) -> Vec<String> {
        self.seen.sessions().iter().map(|session| session.to_string()).collect()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            // The agent is gone, so nothing waits for its pending calls.
            self.stop.cancel();
            self.connections.close();
            self.connections.wait().await;
            self.gateway.retire_all().await;
            self.folder.remove();
        }
        .boxed()
    }
}
