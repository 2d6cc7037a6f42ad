//! The gates of a run's steps. Each has its own tools, private folder and socket; all share the
//! ledger. The agent in a step reaches its gate through `countersign mcp-serve`.

mod folder;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::catalog::Catalog;
use domain::config::{Config, ToolRules, WorkspaceConfig};
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
use mcp::task;
use provider::{Gate, TraceContext, Tracer};
use redact::KnownSecrets;
use runner::gate::{GateRequest, Gates, PluginGrant, StepGate};
use serde::{Deserialize, Serialize};
use store::Store;
use tokio::io::DuplexStream;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::builtin::{OffLimits, Permissions, Workspace};
use workflow::{FolderFault, tool_name};

pub(crate) use self::folder::{path_of as folder_of, purge};

use self::folder::Folder;
use crate::app::Servers;
use crate::exit::Failure;
use crate::home::Home;
use crate::listen::bind::bind_socket;
use crate::plugins::{self, PluginUse, Plugins};
use crate::{app, folders, workspace};

/// The maximum number of connections of one agent; the known agents open one each.
const CONNECTIONS_MAX: usize = 16;

/// The buffer size between this process and an agent in it, each way.
const CONNECTION_BYTES: usize = 64 * 1024;

/// Lines of a server's stderr that a failed step quotes.
const STDERR_LINES_MAX: usize = 5;

/// The two kinds of providers that a step can name.
const SERVER: &str = "server";
const PLUGIN: &str = "plugin";

/// The reason that a step cannot use a server that each agent token signs in to for itself.
pub(crate) const PER_TOKEN: &str = "its 'login' is \"per_token\", and a step has no agent token; name a server \
                         with 'login' \"shared\"";

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
    /// The keys of the home, which no record of a step may hold.
    known: KnownSecrets,
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
        let store = home.store(&config.ledger)?;
        store.vault().choose_key(config.secrets.key.clone());
        let servers = Servers::new(home, &store, app::Purpose::Work);
        let known = KnownSecrets::default();
        home.hide_keys(&known);
        let (home, opened) = (home.path().to_owned(), AtomicUsize::new(0));
        Ok(Steps { home, config, known, servers, plugins, store, tracer, opened })
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Removes the files of steps that still run, as this process is about to end.
    pub(crate) fn abandon(&self) {
        folder::remove_own(&self.home);
    }

    /// Builds a gate with the requested tools, not reachable yet. Its servers and plugins are
    /// connected.
    pub(crate) async fn gateway(&self, wanted: &GateRequest) -> Result<Gateway, Refusal> {
        let (mut settings, store) = (GateSettings::from(&self.config), self.store.clone());
        settings.know(&self.known);
        let gateway = Gateway::with_tracer(settings, store, self.tracer.clone());
        let started = gateway.start(self.plan(wanted)?);
        started.map_err(|error| Refusal::new(error.code(), error.to_string()))?;
        let checked = tokio::select! {
            checked = all_up(&gateway, wanted) => checked,
            () = wanted.cancel.cancelled() => Err(Refusal::new(Code::Cancelled, "cancelled")),
        };
        if let Err(refusal) = checked {
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
            let built = self.builtin(wanted);
            Some(Arc::new(built.map_err(|message| Refusal::new(Code::WorkflowBadFolder, message))?))
        } else {
            None
        };
        reach.extend(plan.builtin.as_ref().map(|builtin| builtin.name.to_string()));
        plan.configured.retain(|spec| !wanted.plugins.iter().any(|it| *it.plugin == *spec.name));
        for plugged in &wanted.plugins {
            let usage = PluginUse { cwd: Some(&wanted.root), needed: Some(&plugged.operations) };
            let mut spec = self.plugins.spec(&plugged.plugin, usage)?;
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
        let workspace = step_workspace(&wanted.root, of_config, self.servers.off_limits())?
            .supervised(folders::own_program())
            .patient(wanted.patience.max(Workspace::CALL_TIMEOUT))
            .withholding(wanted.withheld.clone());
        let workspace = match wanted.kept_bytes {
            Some(bytes) => workspace.keeping(bytes),
            None => workspace,
        };
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

/// Waits for the servers and plugins that a step names, within the time to connect, and checks that
/// they can be used.
async fn all_up(gateway: &Gateway, wanted: &GateRequest) -> Result<(), Refusal> {
    let plugins = wanted.plugins.iter().map(|plugged| (PLUGIN, &*plugged.plugin));
    let servers = wanted.servers.iter().map(|server| (SERVER, server.as_str()));
    let named: Vec<(&str, &str)> = servers.chain(plugins).collect();
    // One that may not start would only be waited for in vain.
    let catalog = gateway.catalog();
    named.iter().try_for_each(|(kind, name)| permitted(&catalog, kind, name))?;
    let names: Vec<&str> = named.iter().map(|(_, name)| *name).collect();
    if let Some(name) = names.iter().find(|name| gateway.has_login_per_token(name)) {
        return Err(unusable(name, PER_TOKEN));
    }
    gateway.settled_among(&names, gateway.settings().connect_timeout).await;
    let catalog = gateway.catalog();
    for (kind, name) in named {
        let state = catalog.server(name).map(|server| &server.state);
        let reason = match state {
            Some(UpstreamState::Ready) => continue,
            Some(UpstreamState::Waiting(failure) | UpstreamState::NeedsLogin(failure)) => {
                failure.to_string()
            }
            Some(UpstreamState::Stopped) => "it is stopped".to_owned(),
            Some(UpstreamState::Idle | UpstreamState::Connecting) => {
                "it did not connect in time".to_owned()
            }
            None => "it is not in the catalog".to_owned(),
        };
        let stderr = gateway.stderr(name);
        return Err(not_up(kind, name, &reason, &stderr));
    }
    for PluginGrant { plugin, operations } in &wanted.plugins {
        for operation in operations {
            let tool = tool_name(plugin, operation);
            let lock = catalog.server(plugin).map(|server| server.lock(&tool));
            if lock != Some(Lock::Callable) {
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

/// Checks that a server or plugin may start.
fn permitted(catalog: &Catalog, kind: &str, name: &str) -> Result<(), Refusal> {
    let Some(server) = catalog.server(name) else {
        return Err(not_up(kind, name, "it is not in the catalog", &[]));
    };
    match (server.rules.quarantined, kind) {
        (true, PLUGIN) => Err(plugins::not_approved(name)),
        (true, _) => Err(unusable(name, &quarantined(name))),
        (false, _) if server.rules.disabled => Err(unusable(name, DISABLED)),
        (false, _) => Ok(()),
    }
}

/// Returns the refusal for a server or plugin that did not start, with the end of its stderr.
fn not_up(kind: &str, name: &str, reason: &str, stderr: &[String]) -> Refusal {
    let mut message = format!("{kind} '{name}' did not start: {reason}");
    // The reason may already quote the last line.
    let last = &stderr[stderr.len().saturating_sub(STDERR_LINES_MAX)..];
    if last.len() > 1 || last.iter().any(|line| !reason.contains(line.as_str())) {
        message.push_str(&format!("; end of stderr: {}", last.join(" | ")));
    }
    Refusal::new(Code::UpstreamUnavailable, message)
}

fn unusable(server: &str, reason: &str) -> Refusal {
    let message = format!("server '{server}' cannot be used: {reason}");
    Refusal::new(Code::ProxyServerUnusable, message)
}

/// Returns the reason that a step cannot work in a folder. The rules for its built-in tools apply
/// if it has any, under the settings of their workspace.
pub(crate) fn folder_fault(
    folder: &Path,
    builtins: Option<&WorkspaceConfig>,
    home: &Path,
) -> Option<FolderFault> {
    let shown = folder.display();
    match folder.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Some(FolderFault::Missing(format!("the folder '{shown}' does not exist")));
        }
        Err(error) => {
            let message = format!("cannot use the folder '{shown}': {error}");
            return Some(FolderFault::Unusable(message));
        }
        Ok(found) if !found.is_dir() => {
            return Some(FolderFault::Unusable(format!("'{shown}' is not a folder")));
        }
        Ok(_) => {}
    }
    let of_config = builtins?;
    let off_limits = OffLimits { folders: vec![home.to_owned()], ..OffLimits::default() };
    step_workspace(folder, of_config, off_limits).err().map(FolderFault::Unusable)
}

/// Opens the folder of a step for its built-in tools.
fn step_workspace(
    folder: &Path,
    of_config: &WorkspaceConfig,
    off_limits: OffLimits,
) -> Result<Workspace, String> {
    let root = workspace::step_root(folder, of_config)?;
    let allowed = Permissions { write: true, shell: true, allow_outside: of_config.allow_outside };
    Workspace::new(&root, allowed, off_limits)
}

/// The reason not to use a server that somebody switched off.
pub(crate) const DISABLED: &str = "it is disabled";

/// Returns the reason not to use a server in quarantine.
pub(crate) fn quarantined(server: &str) -> String {
    format!("it is in quarantine: review it, then run 'countersign upstream approve {server}'")
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
        task::spawn_tracked(&self.connections, async move {
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
                    task::spawn_tracked(
                        &connections,
                        stdio::serve(service, reader, writer, stop.clone()),
                    );
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
        task::spawn_tracked(
            &self.connections,
            stdio::serve(service, reader, writer, self.stop.clone()),
        );
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
