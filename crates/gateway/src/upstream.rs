//! A lasting connection to an MCP server: each server has its own driver, so that one that hangs,
//! dies or floods affects no other. `upstream/README.md` describes the life of a connection.

mod connection;
mod driver;
mod exchange;
mod link;
mod listeners;
mod own;
mod pace;
mod refused_questions;
mod server_side;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use access::secrets::SecretSupply;
use access::sign_in::{GrantHolder, LoginNeed, SignIns};
use access::tokens::Tokens;
use arc_swap::{ArcSwap, ArcSwapOption};
use domain::Caller;
use domain::catalog::Listing;
use domain::method::Method;
use domain::upstream::UpstreamState;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::ErrorObject;
use mcp::child::StderrTail;
use mcp::handshake::Welcome;
use mcp::message::{Notification, Raw, Request};
use mcp::peer::Ask;
use provider::{Call, CallContext, ProviderError, Reply, ToolProvider, TraceContext, Tracer};
use redact::LineRedaction;
use store::Store;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::agent::SessionKey;
use crate::catalogs::Publisher;
use crate::fairness::{CallSlot, CallSlots};
use crate::place::ServerPlace;
use crate::span::UpstreamSpan;
use crate::spec::ServerSpec;
use crate::trust::Reviewer;
use crate::upstream::driver::{Driver, DriverCommand, Wiring};
use crate::upstream::exchange::{Carrier, request};
use crate::upstream::link::LinkHandle;
use crate::upstream::listeners::{Lane, Listeners};
use crate::upstream::own::{OwnConnections, OwnContext};
use crate::{GateSettings, limits};

pub(crate) struct Upstream {
    spec: ServerSpec,
    sign_ins: Option<Arc<SignIns>>,
    place: ServerPlace,
    /// The current link, shared by all clients.
    link: Arc<ArcSwapOption<LinkHandle>>,
    own: Arc<OwnConnections>,
    listeners: Arc<Listeners>,
    /// The response to the last handshake, which outlives its connection.
    welcome: Arc<ArcSwapOption<Welcome>>,
    state: watch::Receiver<UpstreamState>,
    commands: mpsc::Sender<DriverCommand>,
    stderr: StderrTail,
    driver: Mutex<Option<JoinHandle<()>>>,
    settings: Arc<ArcSwap<GateSettings>>,
    /// Limits concurrent calls, if the operator set a limit.
    slots: Option<Arc<CallSlots>>,
    calls: TaskTracker,
    /// The time of the first request for the server.
    wanted: OnceLock<Instant>,
    tracer: Option<Arc<dyn Tracer>>,
}

/// The context of a connection.
pub(crate) struct Context {
    pub(crate) publisher: Publisher,
    pub(crate) store: Store,
    pub(crate) tokens: Arc<Tokens>,
    /// Read on each use, so that a reload applies to open connections too.
    pub(crate) settings: Arc<ArcSwap<GateSettings>>,
    /// The last known list of the server's tools.
    pub(crate) known: Arc<Listing>,
    pub(crate) tracer: Option<Arc<dyn Tracer>>,
}

/// Returns a tail for stderr that keeps no secrets.
fn redacted_tail(settings: Arc<ArcSwap<GateSettings>>) -> StderrTail {
    let lines = Mutex::new(LineRedaction::default());
    StderrTail::edited(move |line| {
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.next(&settings.load().redactor, line)
    })
}

impl Upstream {
    pub(crate) fn start(spec: ServerSpec, context: Context) -> Arc<Upstream> {
        let Context { publisher, store, tokens, settings, known, tracer } = context;
        let (commands, receiver) = mpsc::channel(limits::DRIVER_COMMANDS_MAX);
        let (state_sender, state) = watch::channel(UpstreamState::Idle);
        let link = Arc::new(ArcSwapOption::empty());
        let stderr = redacted_tail(settings.clone());
        let secrets = SecretSupply::new(store.vault(), settings.load().redactor.known());
        let sign_ins = sign_ins(&spec, &secrets, &tokens);
        let reviewer = Reviewer::new(store, publisher.clone(), &spec);
        let listeners = Arc::new(Listeners::new(&spec.name, publisher.clone()));
        let context = OwnContext {
            secrets: secrets.clone(),
            sign_ins: sign_ins.clone(),
            stderr: stderr.clone(),
            settings: settings.clone(),
            publisher: publisher.clone(),
            reviewer: reviewer.clone(),
            listeners: listeners.clone(),
        };
        let own = Arc::new(OwnConnections::new(&spec, context));
        let welcome = Arc::new(ArcSwapOption::empty());
        let wiring = Wiring {
            secrets,
            sign_ins: sign_ins.clone(),
            publisher,
            settings: settings.clone(),
            link: link.clone(),
            own: own.clone(),
            listeners: listeners.clone(),
            welcome: welcome.clone(),
            state: state_sender,
            stderr: stderr.clone(),
            reviewer,
        };
        let driver = Driver::new(spec.clone(), wiring, known).spawn(receiver);
        Arc::new(Upstream {
            place: ServerPlace::of(&spec.endpoint),
            slots: spec.connection.max_concurrent.map(|bound| CallSlots::new(bound.get() as usize)),
            spec,
            sign_ins,
            link,
            own,
            listeners,
            welcome,
            state,
            commands,
            stderr,
            driver: Mutex::new(Some(driver)),
            settings,
            calls: TaskTracker::new(),
            wanted: OnceLock::new(),
            tracer,
        })
    }

    /// Counts a call from the lookup of the server until the call has ended.
    pub(crate) fn enter(&self) -> TaskTrackerToken {
        self.calls.token()
    }

    pub(crate) fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// Returns the place of the files of the connection that a session's calls use.
    pub(crate) fn place(&self, session: Option<&str>) -> ServerPlace {
        let roots = session.map(|session| self.own.roots(session)).unwrap_or_default();
        self.place.clone().with_roots(roots)
    }

    pub(crate) fn sign_ins(&self) -> Option<&Arc<SignIns>> {
        self.sign_ins.as_ref()
    }

    /// Returns what a caller with its own sign-in must do first, if anything.
    pub(crate) async fn missing_login(&self, caller: &Caller) -> Option<String> {
        self.sign_ins.as_ref()?.missing(caller).await
    }

    /// Reports whether the connection that lists the tools is up.
    pub(crate) fn is_ready(&self) -> bool {
        *self.state.borrow() == UpstreamState::Ready
    }

    pub(crate) fn stderr(&self) -> Vec<String> {
        self.stderr.lines()
    }

    /// Returns the server's last response to the handshake.
    pub(crate) fn welcome(&self) -> Option<Arc<Welcome>> {
        self.welcome.load_full()
    }

    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    /// Reports whether the first connection attempt is still pending or under way.
    pub(crate) fn is_connecting(&self) -> bool {
        matches!(*self.state.borrow(), UpstreamState::Idle | UpstreamState::Connecting)
    }

    /// Returns once the first connection attempt has succeeded or failed. A lazy server makes its
    /// first attempt now.
    pub(crate) async fn settled(&self) {
        if *self.state.borrow() == UpstreamState::Idle {
            let _ = self.commands.send(DriverCommand::Start).await;
        }
        let mut state = self.state.clone();
        let _ = state
            .wait_for(|state| !matches!(state, UpstreamState::Idle | UpstreamState::Connecting))
            .await;
    }

    /// Waits for the first attempt, but only in the first moments after the server was requested:
    /// one that hangs must not slow down everything until it times out.
    pub(crate) async fn first_settled(&self) {
        let wanted = *self.wanted.get_or_init(Instant::now);
        let until = wanted + limits::FIRST_CONNECT_WAIT;
        let _ = tokio::time::timeout_at(until, self.settled()).await;
    }

    pub(crate) async fn restart(&self) {
        let _ = self.commands.send(DriverCommand::Restart).await;
    }

    /// Closes the connection and opens another; returns once that has succeeded or failed.
    pub(crate) async fn reconnected(&self) {
        self.settled_after(DriverCommand::Restart).await;
    }

    /// Makes the calls of an agent token use what it was granted last, or nothing. Returns once the
    /// tools are listed with that, if this token lists them.
    pub(crate) async fn login_changed(&self, holder: &GrantHolder) {
        let Some(sign_ins) = &self.sign_ins else { return };
        sign_ins.replaced(holder);
        self.own.end_holder(holder).await;
        if sign_ins.is_listed_by(holder) {
            self.settled_after(DriverCommand::Relink).await;
        }
    }

    async fn settled_after(&self, command: DriverCommand) {
        let mut state = self.state.clone();
        state.mark_unchanged();
        let _ = self.commands.send(command).await;
        // The earlier state says nothing about this attempt.
        while state.changed().await.is_ok() {
            let is_settled = !matches!(
                *state.borrow_and_update(),
                UpstreamState::Idle | UpstreamState::Connecting
            );
            if is_settled {
                return;
            }
        }
    }

    /// Puts decisions into effect; returns once they are.
    pub(crate) async fn decided(&self, spec: ServerSpec) {
        let (done, in_effect) = oneshot::channel();
        let _ = self.commands.send(DriverCommand::Decided(Box::new(spec), done)).await;
        let _ = in_effect.await;
    }

    /// Starts the server so that a person can see its list; returns once the list is known.
    pub(crate) async fn inspect(&self) {
        let mut state = self.state.clone();
        state.mark_unchanged();
        let _ = self.commands.send(DriverCommand::Inspect).await;
        // The earlier state says nothing about this attempt.
        while state.changed().await.is_ok() {
            if matches!(
                *state.borrow_and_update(),
                UpstreamState::Ready | UpstreamState::Waiting(_) | UpstreamState::NeedsLogin(_)
            ) {
                return;
            }
        }
    }

    /// Opens the session's own connection, if it is to have one and the server is up.
    pub(crate) async fn open_own(
        &self,
        client: SessionKey<'_>,
        ctx: &CallContext,
    ) -> Result<(), ProviderError> {
        if !self.own.is_open(client.session) {
            self.link()?;
            self.own.of(Some(client), ctx).await?;
        }
        Ok(())
    }

    pub(crate) async fn end_session(&self, session: &str) {
        self.own.end_session(session).await;
        let left = self.listeners.leave(session);
        if let Some(LinkHandle::Server { peer, .. }) = self.link.load().as_deref() {
            left.withdraw(peer.clone(), self.settings.load().connect_timeout);
        }
    }

    /// Closes once the running calls have ended, or the time is up.
    pub(crate) async fn retire(&self, within: Duration) {
        self.calls.close();
        let _ = tokio::time::timeout(within, self.calls.wait()).await;
        self.close().await;
    }

    fn link(&self) -> Result<Arc<LinkHandle>, ProviderError> {
        self.link.load_full().ok_or_else(|| {
            ProviderError::Unavailable(match &*self.state.borrow() {
                UpstreamState::Waiting(failure) | UpstreamState::NeedsLogin(failure) => {
                    failure.reason.clone()
                }
                UpstreamState::Stopped => "it was stopped".to_owned(),
                UpstreamState::Idle | UpstreamState::Connecting | UpstreamState::Ready => {
                    "it is still connecting".to_owned()
                }
            })
        })
    }

    /// Returns the shared link, waiting for it during the first connection attempt.
    async fn ready(&self, ctx: &CallContext) -> Result<Arc<LinkHandle>, ProviderError> {
        if self.is_connecting() && self.link.load().is_none() {
            tokio::select! {
                () = self.settled() => {}
                () = ctx.cancel.cancelled() => return Err(ProviderError::Cancelled { sent: false }),
                () = tokio::time::sleep_until(ctx.deadline) => {
                    return Err(ProviderError::Timeout { sent: false });
                }
            }
        }
        self.link()
    }

    /// Acquires a slot among the concurrent calls.
    async fn slot(
        &self,
        token: &Arc<str>,
        ctx: &CallContext,
    ) -> Result<Option<CallSlot>, ProviderError> {
        let Some(slots) = &self.slots else {
            return Ok(None);
        };
        tokio::select! {
            slot = slots.take(token) => Ok(Some(slot)),
            () = ctx.cancel.cancelled() => Err(ProviderError::Cancelled { sent: false }),
            () = tokio::time::sleep_until(ctx.deadline) => {
                Err(ProviderError::Timeout { sent: false })
            }
        }
    }

    async fn make(&self, call: &Call, ctx: &CallContext) -> Result<Reply, ProviderError> {
        let (tracer, transport) = (self.tracer.as_deref(), self.spec.endpoint.transport());
        let span = UpstreamSpan::start(tracer, &self.spec.name, transport, &ctx.trace);
        let outcome = self.ask(call, ctx, &span.trace(&ctx.trace)).await;
        let outcome = outcome.map_err(|error| self.explained(error, &call.caller));
        span.end(&outcome);
        outcome
    }

    /// Says that a sign-in is needed, if that is why the connection was closed.
    fn explained(&self, error: ProviderError, caller: &Caller) -> ProviderError {
        let (ProviderError::Unavailable(_), Some(sign_ins)) = (&error, &self.sign_ins) else {
            return error;
        };
        let Ok(sign_in) = sign_ins.of_caller(caller) else { return error };
        let is_needed = match sign_in.need() {
            Some(LoginNeed::Token) => true,
            // No token has signed in, so that nothing was tried for this one.
            Some(LoginNeed::Scope) | None => {
                let state = self.state.borrow();
                sign_ins.is_per_token() && matches!(*state, UpstreamState::NeedsLogin(_))
            }
        };
        let words = is_needed.then(|| sign_in.words(LoginNeed::Token));
        words.map_or(error, ProviderError::Unavailable)
    }

    /// Sends the call to the server; `trace` is the context sent along.
    async fn ask(
        &self,
        call: &Call,
        ctx: &CallContext,
        trace: &TraceContext,
    ) -> Result<Reply, ProviderError> {
        let _slot = self.slot(&call.caller.token, ctx).await?;
        // A server that is down is down for every client, even one with its own connection.
        let link = self.ready(ctx).await?;
        let shared = match &*link {
            LinkHandle::Server { peer, .. } => peer,
            LinkHandle::Plugin(plugin) if call.method == Method::ToolCall => {
                return plugin.call(call, ctx).await;
            }
            LinkHandle::Plugin(_) => {
                let error = ErrorObject::method_not_found(&call.tool.tool);
                return Err(ProviderError::Protocol(error));
            }
        };
        let own = self.own.of(SessionKey::of(call), ctx).await?;
        let (carrier, _asked) = match &own {
            Some(own) => {
                let (peer, lane) = (own.peer()?, Lane::Own);
                (Carrier { peer, lane }, Some(own.side.enter(call, ctx)))
            }
            None => (Carrier { peer: shared.clone(), lane: Lane::Shared }, None),
        };
        let result = self.exchange(call, ctx, &carrier, trace).await?;
        Ok(Reply::from(result))
    }

    /// Sends a request that is not recorded, on the connection that the session's calls use.
    pub(crate) async fn pass(
        &self,
        client: SessionKey<'_>,
        ctx: &CallContext,
        asked: Request,
    ) -> Result<Raw, ProviderError> {
        let _slot = self.slot(&client.caller.token, ctx).await?;
        let link = self.ready(ctx).await?;
        let LinkHandle::Server { peer: shared, .. } = &*link else {
            return Err(ProviderError::Protocol(ErrorObject::method_not_found(&asked.method)));
        };
        let own = self.own.of(Some(client), ctx).await;
        let peer = match own.map_err(|error| self.explained(error, client.caller))? {
            Some(own) => own.peer()?,
            None => shared.clone(),
        };
        let ask = Ask {
            cancel: ctx.cancel.clone(),
            reason: ctx.reason.clone(),
            ..Ask::new(asked.method, asked.params, ctx.remaining())
        };
        request(&peer, ask).await.map_err(|error| self.explained(error, client.caller))
    }

    /// Passes a notification to the session's own connection, if it has one.
    pub(crate) async fn notify_own(&self, session: &str, notification: Notification) {
        if let Some(peer) = self.own.open_peer(session) {
            let _ = peer.notify(&notification.method, notification.params).await;
        }
    }
}

/// Returns the sign-ins to a server, unless it is none that could need one, or has its own token.
fn sign_ins(
    spec: &ServerSpec,
    secrets: &SecretSupply,
    tokens: &Arc<Tokens>,
) -> Option<Arc<SignIns>> {
    let (name, oauth, scope) = (&spec.name, spec.oauth.as_ref(), spec.connection.login);
    spec.endpoint.may_need_token().then(|| SignIns::new(name, oauth, scope, secrets, tokens))
}

impl ToolProvider for Upstream {
    fn tools(&self) -> BoxFuture<'_, Result<Vec<Raw>, ProviderError>> {
        async {
            let link = self.link()?;
            let listed = link.list(self.settings.load().connect_timeout).await;
            listed
                .map(|lists| lists.tools)
                .map_err(|failure| ProviderError::Unavailable(failure.reason))
        }
        .boxed()
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        ctx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        self.make(call, ctx).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            let _ = self.commands.send(DriverCommand::Stop).await;
            let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(driver) = driver {
                let _ = driver.await;
            }
        }
        .boxed()
    }
}
