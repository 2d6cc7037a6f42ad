//! The gate itself: every call, from any front, goes through [`pipeline`] to a provider;
//! [`upstream`] keeps the connections to MCP servers, [`front`] serves agents. This crate knows
//! nothing of workflows and screens.

mod agent;
mod cache;
mod catalogs;
pub mod command;
mod entrance;
pub mod events;
mod fairness;
pub mod front;
mod limits;
pub mod links;
pub mod metrics;
pub mod operator;
mod payload;
mod pipeline;
pub mod place;
pub mod plan;
mod question;
mod registry;
pub mod settings;
pub mod span;
pub mod spec;
mod trust;
mod upstream;
mod vectors;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use access::tokens::{TokenRules, Tokens};
use arc_swap::{ArcSwap, ArcSwapOption};
use domain::{Caller, Catalog};
use futures_util::future::join_all;
use mcp::handshake::Welcome;
use mcp::message::{Notification, Raw, Request};
use mcp::task;
use provider::{CallContext, ProviderError, ToolProvider, TraceContext, Tracer};
use store::state::TokenRecord;
use store::{Store, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use pipeline::intake;
pub use pipeline::touch::ExplainedTouches;
pub use settings::GateSettings;

use crate::agent::SessionKey;
use crate::cache::ResultCache;
use crate::catalogs::Catalogs;
use crate::command::{ChildCommand, ProgramVersion};
use crate::entrance::FailedEntries;
use crate::fairness::{CallShares, RequestRates};
use crate::links::Links;
use crate::metrics::Metrics;
use crate::operator::Logins;
use crate::pipeline::check::Checks;
use crate::plan::{Plan, PlannedServers};
use crate::registry::Registry;
use crate::span::{RequestOrigin, RequestSpan};
use crate::spec::{ServerEndpoint, ServerSpec};
use crate::upstream::Upstream;

/// A handle to the gate; clones refer to the same gate.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<GatewayState>,
}

struct GatewayState {
    catalogs: Arc<Catalogs>,
    registry: Registry,
    settings: Arc<ArcSwap<GateSettings>>,
    config_fault: ArcSwapOption<String>,
    store: Store,
    tokens: Arc<Tokens>,
    /// The latest plan of servers; locked while it is put into effect.
    plan: tokio::sync::Mutex<Plan>,
    /// The version of the operator's decisions that are in effect.
    decisions: AtomicI64,
    /// The number of times agents asked for locked tools.
    locked_asked: AtomicU64,
    metrics: Arc<Metrics>,
    /// Creates spans; without it, tracing costs nothing.
    tracer: Option<Arc<dyn Tracer>>,
    cache: ResultCache,
    checks: Checks,
    links: Links,
    query_key: [u8; 32],
    failed_entries: FailedEntries,
    logins: Logins,
    rates: RequestRates,
    shares: CallShares,
    /// Counts the calls in flight.
    calls: TaskTracker,
    draining: CancellationToken,
    /// Removed servers that still finish their calls.
    retiring: TaskTracker,
}

impl Gateway {
    pub fn new(settings: GateSettings, store: Store) -> Gateway {
        Gateway::with_tracer(settings, store, None)
    }

    pub fn with_tracer(
        settings: GateSettings,
        store: Store,
        tracer: Option<Arc<dyn Tracer>>,
    ) -> Gateway {
        let catalogs: Arc<Catalogs> = Arc::default();
        let shared = GatewayState {
            registry: Registry::new(catalogs.clone()),
            catalogs,
            settings: Arc::new(ArcSwap::from_pointee(settings)),
            config_fault: ArcSwapOption::empty(),
            query_key: *store.query_key(),
            store,
            tokens: Arc::default(),
            plan: tokio::sync::Mutex::default(),
            decisions: AtomicI64::new(0),
            locked_asked: AtomicU64::new(0),
            metrics: Arc::default(),
            tracer,
            cache: ResultCache::default(),
            checks: Checks::default(),
            links: Links::default(),
            failed_entries: FailedEntries::default(),
            logins: Logins::default(),
            rates: RequestRates::default(),
            shares: CallShares::default(),
            calls: TaskTracker::new(),
            draining: CancellationToken::new(),
            retiring: TaskTracker::new(),
        };
        Gateway { shared: Arc::new(shared) }
    }

    /// Starts to connect to a server. Nothing waits for it, and a failure affects nothing else. A
    /// server of the same name is replaced; its running calls finish on the old connection.
    pub fn add_upstream(&self, spec: ServerSpec) {
        let publisher = self.shared.catalogs.publisher(&spec.name);
        let known = self.catalog().server(&spec.name).map(|server| server.listing.clone());
        let context = upstream::Context {
            publisher,
            store: self.shared.store.clone(),
            tokens: self.shared.tokens.clone(),
            settings: self.shared.settings.clone(),
            known: known.unwrap_or_default(),
            tracer: self.shared.tracer.clone(),
        };
        let upstream = Upstream::start(spec, context);
        if let Some(replaced) = self.shared.registry.insert_upstream(upstream) {
            self.retire(replaced);
        }
    }

    /// Starts these servers. Blocks for a moment, and must be called before anything else is done
    /// with the gate.
    pub fn start(&self, plan: Plan) -> Result<(), StoreError> {
        let version = self.shared.store.state().version()?;
        let planned = plan.planned(&self.shared.store)?;
        self.set_tokens(&self.shared.store.state().tokens()?);
        planned.specs.into_iter().for_each(|spec| self.add_upstream(spec));
        self.shared.registry.set_builtin(planned.builtin);
        if let Ok(mut planned) = self.shared.plan.try_lock() {
            *planned = plan;
        }
        self.shared.decisions.store(version, Ordering::Relaxed);
        Ok(())
    }

    /// Puts a new configuration into effect. Running calls keep their settings; unchanged servers
    /// keep their connection.
    pub async fn reconfigure(&self, mut settings: GateSettings, plan: Plan) {
        settings.know(self.settings().redactor.known());
        self.shared.settings.store(Arc::new(settings));
        let mut planned = self.shared.plan.lock().await;
        *planned = plan;
        self.put_into_effect(&planned).await;
    }

    /// Applies the latest decisions of the operator, made in this process or another.
    pub async fn refresh(&self) {
        let planned = self.shared.plan.lock().await;
        self.put_into_effect(&planned).await;
    }

    /// Checks periodically whether another process has changed the operator's decisions, and whether
    /// a pinned program has changed.
    pub async fn watch_decisions(self) {
        let mut programs = Vec::new();
        loop {
            tokio::select! {
                () = tokio::time::sleep(limits::DECISIONS_INTERVAL) => {}
                () = self.shared.draining.cancelled() => return,
            }
            // If the store cannot be read, the next round asks again.
            let Ok((version, now)) = self.decisions_version().await else { continue };
            if version != self.shared.decisions.load(Ordering::Relaxed) || now != programs {
                programs = now;
                self.refresh().await;
            }
        }
    }

    async fn decisions_version(&self) -> Result<(i64, Vec<Option<ProgramVersion>>), StoreError> {
        let upstreams = self.shared.registry.upstreams();
        let specs = upstreams.iter().map(|upstream| upstream.spec());
        let pinned = specs.filter(|spec| spec.trust.pin).filter_map(ServerSpec::command);
        let pinned: Vec<ChildCommand> = pinned.cloned().collect();
        self.with_store(move |store| {
            let programs = pinned.iter().map(ProgramVersion::of).collect();
            Ok((store.state().version()?, programs))
        })
        .await
    }

    /// Keeps the earlier decisions if the store cannot be read.
    async fn put_into_effect(&self, plan: &Plan) {
        let asked = plan.clone();
        // The version first: what is decided meanwhile is read again.
        let read = self.with_store(move |store| {
            let version = store.state().version()?;
            Ok((version, asked.planned(store)?, store.state().tokens()?))
        });
        let (version, PlannedServers { specs, builtin }, tokens) = match read.await {
            Ok(read) => read,
            Err(error) => {
                return tracing::error!(
                    "cannot read operator decisions, keeping earlier ones: {error}"
                );
            }
        };
        self.set_tokens(&tokens);
        self.shared.registry.set_builtin(builtin);
        for upstream in self.shared.registry.upstreams() {
            let name = &upstream.spec().name;
            if !specs.iter().any(|spec| spec.name == *name)
                && let Some(removed) = self.shared.registry.remove(name)
            {
                self.retire(removed);
            }
        }
        for spec in specs {
            match self.shared.registry.upstream(&spec.name) {
                Some(kept) if kept.spec().connects_like(&spec) => kept.decided(spec).await,
                Some(_) | None => self.add_upstream(spec),
            }
        }
        self.shared.decisions.store(version, Ordering::Relaxed);
    }

    fn set_tokens(&self, records: &[TokenRecord]) {
        let settings = self.settings();
        let GateSettings { profiles, agent_token, .. } = &*settings;
        self.shared.tokens.set(records, TokenRules { profiles, agent_token: *agent_token });
    }

    /// Queries the store off the async threads.
    async fn with_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.shared.store.clone();
        let working = task::spawn_blocking(move || work(&store));
        working.await.unwrap_or_else(|error| Err(StoreError::Read(error.to_string())))
    }

    /// Returns the known tokens.
    pub fn tokens(&self) -> &Tokens {
        &self.shared.tokens
    }

    /// Returns how many times agents asked for locked tools since the start.
    pub fn locked_asked(&self) -> u64 {
        self.shared.locked_asked.load(Ordering::Relaxed)
    }

    pub(crate) fn count_locked_asked(&self) {
        self.shared.locked_asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the call counters since the start.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// Starts the span of a request for a call; `given` is the trace the request carried.
    pub fn request_span(&self, requested: &RequestOrigin<'_>, given: TraceContext) -> RequestSpan {
        RequestSpan::start(self.tracer(), requested, given)
    }

    pub(crate) fn tracer(&self) -> Option<&dyn Tracer> {
        self.shared.tracer.as_deref()
    }

    fn retire(&self, upstream: Arc<Upstream>) {
        let within = self.settings().call_timeout(&upstream.spec().name);
        task::spawn_tracked(&self.shared.retiring, async move { upstream.retire(within).await });
    }

    /// Closes the connection to a server and opens a new one; false if there is no such server.
    pub async fn restart(&self, server: &str) -> bool {
        match self.shared.registry.upstream(server) {
            Some(upstream) => {
                upstream.restart().await;
                true
            }
            None => false,
        }
    }

    /// Returns the reason the newest config file is not in effect, if it is not.
    pub fn config_fault(&self) -> Option<Arc<String>> {
        self.shared.config_fault.load_full()
    }

    pub fn set_config_fault(&self, fault: Option<String>) {
        self.shared.config_fault.store(fault.map(Arc::new));
    }

    /// Notifies when the catalog changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.catalogs.changes()
    }

    /// Returns a server's response to the handshake.
    pub(crate) fn welcome(&self, server: &str) -> Option<Arc<Welcome>> {
        self.shared.registry.upstream(server)?.welcome()
    }

    /// Closes whatever was kept for this client alone, once it is gone.
    pub(crate) async fn end_session(&self, session: &str) {
        for upstream in self.shared.registry.upstreams() {
            upstream.end_session(session).await;
        }
        self.shared.catalogs.end_session(session);
    }

    /// Opens a session's own connection to a server, if it is to have one: from then on the session
    /// sees the list of that connection.
    pub(crate) async fn open_own(&self, client: SessionKey<'_>, server: &str, ctx: &CallContext) {
        // No caller sees or calls anything of a locked server.
        let is_locked = self.catalog().server(server).is_none_or(|server| server.is_locked());
        if !is_locked
            && let Some(upstream) = self.shared.registry.upstream(server)
            && let Err(error) = upstream.open_own(client, ctx).await
        {
            tracing::debug!(server, %error, "cannot open the client's own connection");
        }
    }

    /// Passes a request that is not recorded to a server, on the connection of the session.
    pub(crate) async fn pass(
        &self,
        client: SessionKey<'_>,
        server: &str,
        ctx: &CallContext,
        request: Request,
    ) -> Result<Raw, ProviderError> {
        match self.shared.registry.upstream(server) {
            Some(upstream) => upstream.pass(client, ctx, request).await,
            None => Err(ProviderError::Unavailable("it was removed".to_owned())),
        }
    }

    /// Passes a notification to every server with a connection of the session's own.
    pub(crate) async fn notify_own(&self, session: &str, notification: &Notification) {
        for upstream in self.shared.registry.upstreams() {
            upstream.notify_own(session, notification.clone()).await;
        }
    }

    /// Reports whether this is a server that speaks the protocol, rather than tools of our own or a
    /// plugin.
    pub(crate) fn is_mcp(&self, server: &str) -> bool {
        let upstream = self.shared.registry.upstream(server);
        upstream.is_some_and(|upstream| match upstream.spec().endpoint {
            ServerEndpoint::Plugin(_) => false,
            ServerEndpoint::Stdio(_)
            | ServerEndpoint::Remote(_)
            | ServerEndpoint::WithoutSecrets(_)
            | ServerEndpoint::Embedded(_) => true,
        })
    }

    /// Returns the catalog a session sees: its own connections' lists replace the shared ones.
    pub(crate) fn catalog_of(&self, session: Option<&str>) -> Arc<Catalog> {
        self.shared.catalogs.of(session)
    }

    /// Adds a provider whose tools do not change.
    pub async fn add_provider(&self, name: &str, provider: Arc<dyn ToolProvider>) {
        self.shared.registry.add_fixed(name, provider).await;
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.shared.catalogs.shared()
    }

    pub fn settings(&self) -> Arc<GateSettings> {
        self.shared.settings.load_full()
    }

    /// Returns the time limit of a call to a server's tools.
    pub fn call_timeout(&self, server: &str) -> Duration {
        let timeout = self.settings().call_timeout(server);
        let builtin = self.shared.registry.builtin(server);
        builtin.map_or(timeout, |builtin| timeout.max(builtin.call_timeout))
    }

    /// Returns a token that is cancelled when the gate stops accepting calls.
    pub fn draining(&self) -> CancellationToken {
        self.shared.draining.clone()
    }

    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Returns the key of the cursors that the gate gives out.
    pub(crate) fn cursor_key(&self) -> &[u8; 32] {
        &self.shared.query_key
    }

    /// Returns the last lines a server wrote to stderr.
    pub fn stderr(&self, server: &str) -> Vec<String> {
        self.shared.registry.upstream(server).map(|upstream| upstream.stderr()).unwrap_or_default()
    }

    /// Waits a little for servers that have just been started and have not connected yet.
    pub async fn first_settled(&self, caller: &Caller) {
        let connecting = self.shared.registry.connecting();
        let seen = connecting.iter().filter(|upstream| caller.sees(upstream.name()));
        join_all(seen.map(|upstream| upstream.first_settled())).await;
    }

    /// Waits a little for one server that has not connected yet.
    pub(crate) async fn first_settled_server(&self, server: &str) {
        if let Some(upstream) = self.shared.registry.upstream(server) {
            upstream.first_settled().await;
        }
    }

    /// Waits until every server has connected or failed once, or the time is up.
    pub async fn settled(&self, within: Duration) {
        settled(&self.shared.registry.upstreams(), within).await;
    }

    /// Waits until each of these servers has connected or failed once, or the time is up.
    pub async fn settled_among(&self, servers: &[&str], within: Duration) {
        let upstreams = servers.iter().filter_map(|name| self.shared.registry.upstream(name));
        settled(&upstreams.collect::<Vec<_>>(), within).await;
    }

    /// Stops accepting calls, gives running ones the time the settings allow, then closes every
    /// connection and the ledger.
    pub async fn drain(&self) {
        self.retire_all().await;
        // Write failures were reported when they happened.
        let _ = self.shared.store.close().await;
    }

    /// Drains like [`Gateway::drain`], but leaves the ledger open for the other gates on it.
    pub async fn retire_all(&self) {
        let within = self.settings().shutdown_timeout;
        self.shared.draining.cancel();
        self.shared.calls.close();
        let _ = tokio::time::timeout(within, self.shared.calls.wait()).await;
        let providers = self.shared.registry.take_all();
        join_all(providers.iter().map(|provider| provider.close())).await;
        self.shared.retiring.close();
        let _ = tokio::time::timeout(within, self.shared.retiring.wait()).await;
    }
}

async fn settled(upstreams: &[Arc<Upstream>], within: Duration) {
    let settled = join_all(upstreams.iter().map(|upstream| upstream.settled()));
    let _ = tokio::time::timeout(within, settled).await;
}
