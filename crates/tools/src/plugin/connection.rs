//! A plugin as a provider of tools: started, initialized and listed on connection, called by
//! `Execute`, and ended with every process it started.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::Arc;

use domain::upstream::UpstreamFailure;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::child::StderrTail;
use mcp::message::Raw;
use mcp::object::ObjectMembers;
use mcp::task;
use plugin_sdk::protocol::{ExecuteRequest, OperationSchema};
use provider::{
    Call, CallContext, Connector, ProviderConnection, ProviderError, Reply, ToolProvider,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tonic::{Code, Status};

use super::find::FoundPlugin;
use super::host::Host;
use super::process::{PluginProcess, explained, seconds};
use super::schema::{self, PluginTool};
use super::start::StartOptions;
use super::{limits, reply};

/// A plugin that can be started, as often as needed.
pub struct Plugin {
    found: FoundPlugin,
    start: StartOptions,
}

impl Plugin {
    /// The caller must have verified that the plugin may be started: that it is the person's own,
    /// or that its [`FoundPlugin::identity`] was approved.
    pub fn new(found: FoundPlugin, start: StartOptions) -> Plugin {
        Plugin { found, start }
    }

    pub fn found(&self) -> &FoundPlugin {
        &self.found
    }

    /// Starts it and requests its operations.
    async fn open(
        &self,
        said: &StderrTail,
    ) -> Result<(PluginSession, Vec<OperationSchema>), UpstreamFailure> {
        let name: Arc<str> = self.found.name.as_str().into();
        if let Some(reason) = &self.found.fault {
            return Err(named(&name, reason.clone().into()));
        }
        let heard = heard(&name, said);
        let started = PluginProcess::start(&self.found, &self.start, heard).await;
        let mut running = started.map_err(|reason| named(&name, reason.into()))?;
        let greeted = tokio::time::timeout(self.start.timeout, self.greet(&mut running)).await;
        let greeted = greeted
            .unwrap_or_else(|_| Err(format!("not ready after {}", seconds(self.start.timeout))));
        match greeted {
            Ok((host, operations)) => Ok((PluginSession::keep(name, running, host), operations)),
            Err(reason) => {
                let failure = running.explained(reason).await;
                running.terminate().await;
                Err(named(&name, failure))
            }
        }
    }

    async fn greet(
        &self,
        running: &mut PluginProcess,
    ) -> Result<(Host, Vec<OperationSchema>), String> {
        let address = running.address().await?;
        let host = Host::connect(&address).await?;
        host.check().await?;
        let about = host.about().await?;
        // A name for people: the tools use the name in the manifest.
        if about.name != self.found.name {
            running.heard.push(format!("the plugin reports another name: '{}'", about.name));
        }
        host.init(&self.found.config).await?;
        let operations = host.operations().await?;
        Ok((host, operations))
    }
}

/// Puts the plugin's name before the reason.
fn named(name: &str, failure: UpstreamFailure) -> UpstreamFailure {
    let reason = format!("plugin '{name}': {}", failure.reason);
    UpstreamFailure { reason, ..failure }
}

/// Returns a tail of this start's output; each line is also logged and passed on to `said`.
fn heard(name: &Arc<str>, said: &StderrTail) -> StderrTail {
    let (name, said) = (name.clone(), said.clone());
    StderrTail::default().telling(move |line| {
        tracing::info!(plugin = %name, line, "plugin output");
        said.push(line.to_owned());
    })
}

impl Connector for Plugin {
    fn connect<'a>(
        &'a self,
        said: &'a StderrTail,
    ) -> BoxFuture<'a, Result<Arc<dyn ProviderConnection>, UpstreamFailure>> {
        async move {
            let (session, operations) = self.open(said).await?;
            let (expose, needed) = (self.start.expose.as_ref(), self.start.needed.as_ref());
            match schema::tools(&self.found.name, &operations, expose, needed) {
                Ok(tools) => {
                    Ok(Arc::new(PluginProvider { session, tools }) as Arc<dyn ProviderConnection>)
                }
                Err(reason) => {
                    session.close().await;
                    Err(reason.into())
                }
            }
        }
        .boxed()
    }
}

/// The operations of a plugin by name: the JSON Schema of each one's inputs, or the reason that it
/// cannot be a tool.
pub type PluginOperations = BTreeMap<String, Result<serde_json::Value, String>>;

/// Returns the operations of a plugin: starts it, queries it, ends it.
pub async fn operations(plugin: &Plugin) -> Result<PluginOperations, String> {
    let opened = plugin.open(&StderrTail::default()).await;
    let (session, operations) = opened.map_err(|failure| failure.to_string())?;
    session.close().await;
    schema::described(&plugin.found.name, &operations)
}

/// A started plugin. Dropping it ends the process, in the background.
struct PluginSession {
    name: Arc<str>,
    host: Host,
    /// The reason it is gone.
    gone: watch::Receiver<Option<UpstreamFailure>>,
    /// Takes the reason for giving it up.
    give_up: mpsc::Sender<String>,
    /// Ends it, also when dropped.
    end: CancellationToken,
    _ended_by_drop: DropGuard,
    keeper: TaskTracker,
}

impl PluginSession {
    fn keep(name: Arc<str>, running: PluginProcess, host: Host) -> PluginSession {
        let (tell, gone) = watch::channel(None);
        let (give_up, given_up) = mpsc::channel(1);
        let end = CancellationToken::new();
        let keeper = TaskTracker::new();
        task::spawn_tracked(&keeper, keep(running, host.clone(), end.clone(), given_up, tell));
        keeper.close();
        let _ended_by_drop = end.clone().drop_guard();
        PluginSession { name, host, gone, give_up, end, _ended_by_drop, keeper }
    }

    async fn gone(&self) -> UpstreamFailure {
        let mut gone = self.gone.clone();
        let failure = gone.wait_for(Option::is_some).await.ok().and_then(|failure| failure.clone());
        named(&self.name, failure.unwrap_or_else(|| "closed".to_owned().into()))
    }

    /// Returns the reason that it is gone, if that is known.
    fn has_gone(&self) -> Option<UpstreamFailure> {
        let failure = self.gone.borrow().clone()?;
        Some(named(&self.name, failure))
    }

    async fn close(&self) {
        self.end.cancel();
        self.keeper.wait().await;
    }

    /// Checks the health of a plugin that did not answer, and gives it up if there is no response.
    fn doubt(&self) {
        let (host, give_up) = (self.host.clone(), self.give_up.clone());
        let asking = async move {
            let asked = tokio::time::timeout(limits::HEALTH_TIMEOUT, host.check()).await;
            let reason = match asked {
                Ok(Ok(())) => return,
                Ok(Err(reason)) => reason,
                Err(_) => "it has stopped responding".to_owned(),
            };
            let _ = give_up.try_send(reason);
        };
        task::spawn_tracked(&self.keeper, asking);
    }
}

/// Owns the process until its end, whatever causes it.
async fn keep(
    running: PluginProcess,
    host: Host,
    end: CancellationToken,
    mut given_up: mpsc::Receiver<String>,
    tell: watch::Sender<Option<UpstreamFailure>>,
) {
    let PluginProcess { mut process, stdout, stdin, folder, heard, .. } = running;
    let mut listening = JoinSet::new();
    let printed = heard.clone();
    listening.spawn(async move { printed.keep(stdout).await }.boxed());
    listening.spawn(host.clone().listen(heard.clone()).boxed());
    let reason = tokio::select! {
        () = process.ended() => Some("the process exited".to_owned()),
        // A plugin that has just died fails the health check before its exit is noticed.
        Some(reason) = given_up.recv() => Some(reason),
        () = end.cancelled() => None,
    };
    if let Some(reason) = reason {
        tell.send_replace(Some(explained(&mut process, &heard, reason).await));
        drop(stdin);
        process.terminate().await;
    } else {
        host.goodbye().await;
        drop(stdin);
        process.end().await;
    }
    drop(listening);
    drop(folder);
}

/// The tools of a started plugin.
struct PluginProvider {
    session: PluginSession,
    tools: Vec<PluginTool>,
}

impl PluginProvider {
    async fn run(&self, call: &Call, ctx: &CallContext) -> Result<Reply, ProviderError> {
        let Some(tool) = self.tools.iter().find(|tool| tool.name == call.tool.tool) else {
            return Ok(reply::failed(&format!("the plugin has no tool '{}'", call.tool.tool)));
        };
        let place = format!("plugin '{}', operation '{}'", self.session.name, tool.operation);
        if call.arguments.text().get().len() > limits::MESSAGE_BYTES_MAX {
            return Ok(reply::failed(&format!("{place}: {}", too_large("the arguments"))));
        }
        if ctx.cancel.is_cancelled() {
            return Err(ProviderError::Cancelled { sent: false });
        }
        if let Some(failure) = self.session.has_gone() {
            return Err(ProviderError::Unavailable(failure.reason));
        }
        let request = ExecuteRequest { operation: tool.operation.clone(), inputs: inputs(call) };
        tokio::select! {
            biased;
            () = ctx.cancel.cancelled() => Err(ProviderError::Cancelled { sent: true }),
            answer = self.session.host.execute(request, ctx.remaining()) => match answer {
                Ok(answer) => reply::of(&place, &answer),
                Err(status) => self.failed(&place, &status).await,
            },
            failure = self.session.gone() => Err(ProviderError::Lost(failure.reason)),
            () = tokio::time::sleep_until(ctx.deadline) => {
                self.session.doubt();
                Err(ProviderError::Timeout { sent: true })
            }
        }
    }

    /// Passes the plugin's error response on to the caller; a broken connection is not a response, and
    /// neither is one that was too large to read.
    async fn failed(&self, place: &str, status: &Status) -> Result<Reply, ProviderError> {
        if status.source().is_some() {
            let until = Instant::now() + limits::EXIT_STATUS_WAIT + limits::GOODBYE;
            self.session.doubt();
            let gone = tokio::time::timeout_at(until, self.session.gone()).await;
            return Err(ProviderError::Lost(match gone {
                Ok(failure) => failure.reason,
                Err(_) => format!("{place}: {}", status.message()),
            }));
        }
        let message = match status.code() {
            Code::OutOfRange if status.message().contains("too large") => {
                return Err(ProviderError::Lost(format!("{place}: {}", too_large("the response"))));
            }
            code => match status.message() {
                "" => format!("failed with gRPC status {code:?}"),
                message => message.to_owned(),
            },
        };
        Ok(reply::failed(&format!("{place}: {message}")))
    }
}

fn too_large(what: &str) -> String {
    let most = limits::MESSAGE_BYTES_MAX / (1024 * 1024);
    format!("{what} must not exceed {most} MiB")
}

/// Returns the JSON of each argument, unchanged.
fn inputs(call: &Call) -> BTreeMap<String, Vec<u8>> {
    let members = ObjectMembers::parse(call.arguments.text()).unwrap_or_default();
    members.iter().map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).collect()
}

impl ToolProvider for PluginProvider {
    fn tools(&self) -> BoxFuture<'_, Result<Vec<Raw>, ProviderError>> {
        async { Ok(self.tools.iter().map(|tool| tool.definition.clone()).collect()) }.boxed()
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        ctx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        self.run(call, ctx).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.session.close().boxed()
    }
}

impl ProviderConnection for PluginProvider {
    fn lost(&self) -> BoxFuture<'_, UpstreamFailure> {
        self.session.gone().boxed()
    }
}
