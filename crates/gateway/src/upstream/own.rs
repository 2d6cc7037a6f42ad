//! Connections of single clients: a client that can answer questions gets its own connection, so
//! that the server's questions reach the right client, and that client sees what the server lists
//! there. Their number is limited, and they close when idle.

mod list;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use access::secrets::SecretSupply;
use access::sign_in::{GrantHolder, SignIn, SignIns, no_token};
use arc_swap::ArcSwap;
use domain::Caller;
use domain::config::Sharing;
use domain::upstream::UpstreamFailure;
use mcp::child::StderrTail;
use mcp::message::Raw;
use mcp::object::ObjectMembers;
use mcp::task;
use provider::{CallContext, ProviderError};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::agent::SessionKey;
use crate::catalogs::Publisher;
use crate::fairness::share;
use crate::place::ClientRoots;
use crate::question::QuestionOrigin;
use crate::spec::ServerSpec;
use crate::trust::Reviewer;
use crate::upstream::connection::{Connection, Opening};
use crate::upstream::listeners::Listeners;
use crate::upstream::own::list::Keeper;
use crate::upstream::refused_questions::RefusalLog;
use crate::upstream::server_side::{CLIENT_CAPABILITIES, CLIENT_EXTENSIONS, ClientSide};
use crate::{GateSettings, limits};

pub(super) struct OwnConnections {
    server: Arc<str>,
    spec: ServerSpec,
    sharing: Sharing,
    around: OwnContext,
    by_session: Mutex<HashMap<Arc<str>, Arc<OwnConnection>>>,
}

/// The parts of the gate that all connections of single clients use.
pub(super) struct OwnContext {
    pub(super) secrets: SecretSupply,
    pub(super) sign_ins: Option<Arc<SignIns>>,
    pub(super) stderr: StderrTail,
    pub(super) settings: Arc<ArcSwap<GateSettings>>,
    pub(super) publisher: Publisher,
    pub(super) reviewer: Reviewer,
    pub(super) listeners: Arc<Listeners>,
}

pub(super) struct OwnConnection {
    token: Arc<str>,
    /// Supplies the tokens of its requests, if the server may require them.
    sign_in: Option<Arc<SignIn>>,
    pub(super) side: Arc<ClientSide>,
    opened: OnceCell<OpenConnection>,
    /// The time and reason of a failure to open.
    failed: OnceLock<(Instant, UpstreamFailure)>,
    last_used: Mutex<Instant>,
}

struct OpenConnection {
    connection: Connection,
    /// Keeps the list up to date as long as the connection is open.
    _keeping: AbortOnDropHandle<()>,
}

impl OwnConnections {
    pub(super) fn new(spec: &ServerSpec, around: OwnContext) -> OwnConnections {
        OwnConnections {
            server: spec.name.clone(),
            spec: spec.clone(),
            sharing: spec.connection.sharing,
            around,
            by_session: Mutex::default(),
        }
    }

    pub(super) fn is_open(&self, session: &str) -> bool {
        self.open_peer(session).is_some()
    }

    /// Returns the session's own connection, if it is open.
    pub(super) fn open_peer(&self, session: &str) -> Option<mcp::Peer> {
        let peer = self.lock().get(session)?.peer().ok()?;
        (!peer.is_closed()).then_some(peer)
    }

    /// Returns the roots that the session's client named to the server.
    pub(super) fn roots(&self, session: &str) -> ClientRoots {
        self.lock().get(session).map(|own| own.side.roots()).unwrap_or_default()
    }

    /// Returns the client's own connection, if it is to have one; opens and lists it first if
    /// needed.
    pub(super) async fn of(
        &self,
        client: Option<SessionKey<'_>>,
        ctx: &CallContext,
    ) -> Result<Option<Arc<OwnConnection>>, ProviderError> {
        let (client, capabilities) = match (client, self.wanted(ctx)) {
            (Some(client), Some(capabilities)) => (client, capabilities),
            (None, Some(_)) if self.is_per_token() => {
                return Err(ProviderError::Unavailable(no_token()));
            }
            (_, _) => return Ok(None),
        };
        let own = self.entry(client)?;
        own.side.meet(ctx);
        let opening = || self.attempt(client.session, &own, capabilities, ctx);
        let opened = own.opened.get_or_try_init(opening);
        match opened.await {
            Ok(opened) if !opened.connection.peer.is_closed() => Ok(Some(own.clone())),
            Ok(_) => Err("the client's own connection was lost".to_owned()),
            Err(failure) => Err(failure.reason),
        }
        .map_err(ProviderError::Unavailable)
    }

    /// Makes one attempt, shared by everyone who waits for it.
    async fn attempt(
        &self,
        session: &Arc<str>,
        own: &OwnConnection,
        capabilities: Raw,
        ctx: &CallContext,
    ) -> Result<OpenConnection, UpstreamFailure> {
        if let Some((_, failure)) = own.failed.get() {
            return Err(failure.clone());
        }
        let timeout = self.around.settings.load().connect_timeout.min(ctx.remaining());
        let opened = self.open(session, own, capabilities, timeout).await;
        if let Err(failure) = &opened {
            tracing::warn!(server = %self.server, reason = %failure, "a client's own connection");
            let _ = own.failed.set((Instant::now(), failure.clone()));
        }
        opened
    }

    async fn open(
        &self,
        session: &Arc<str>,
        own: &OwnConnection,
        capabilities: Raw,
        timeout: Duration,
    ) -> Result<OpenConnection, UpstreamFailure> {
        let side = own.side.clone();
        let opening = Opening {
            server: &self.server,
            spec: &self.spec,
            sign_in: own.sign_in.as_ref(),
            secrets: &self.around.secrets,
            service: side.clone(),
            capabilities,
            stderr: &self.around.stderr,
            timeout,
        };
        let (connection, tools) = opening.open_and_list().await?;
        let shared = self.around.publisher.catalog();
        let listing = shared.server(&self.server).map(|server| server.listing.clone());
        let keeper = Keeper {
            publisher: self.around.publisher.clone(),
            reviewer: self.around.reviewer.clone(),
            session: session.clone(),
            side,
            lister: connection.lister(),
            settings: self.around.settings.clone(),
            resources_before: listing.and_then(|it| Some(it.offer()?.resources_changed())),
        };
        keeper.publish(tools).await;
        self.around.listeners.wishes_of(session).ask(connection.peer.clone(), timeout);
        let keeping = AbortOnDropHandle::new(task::spawn(keeper.keep()));
        Ok(OpenConnection { connection, _keeping: keeping })
    }

    /// Returns the capabilities to declare on the client's own connection; `None` if the shared one
    /// suffices.
    fn wanted(&self, ctx: &CallContext) -> Option<Raw> {
        if self.is_per_token() {
            return Some(declared(ctx).write());
        }
        match self.sharing {
            Sharing::Shared => None,
            Sharing::Auto => {
                let declared = declared(ctx);
                (!declared.is_empty()).then(|| declared.write())
            }
            Sharing::PerClient => Some(declared(ctx).write()),
        }
    }

    /// Reports whether each agent token has its own sign-in. Then no connection is shared.
    fn is_per_token(&self) -> bool {
        self.around.sign_ins.as_ref().is_some_and(|sign_ins| sign_ins.is_per_token())
    }

    /// Returns the sign-in that a client's requests use.
    fn sign_in(&self, caller: &Caller) -> Result<Option<Arc<SignIn>>, ProviderError> {
        let sign_ins = self.around.sign_ins.as_ref();
        let sign_in = sign_ins.map(|sign_ins| sign_ins.of_caller(caller)).transpose();
        sign_in.map_err(ProviderError::Unavailable)
    }

    fn entry(&self, client: SessionKey<'_>) -> Result<Arc<OwnConnection>, ProviderError> {
        let SessionKey { session, caller, .. } = client;
        let (token, sign_in) = (&caller.token, self.sign_in(caller)?);
        let mut by_session = self.lock();
        // A connection that has ended is opened again, as the shared one would be.
        by_session.retain(|_, own| !own.is_spent());
        if !by_session.contains_key(session) {
            let of_token = by_session.values().filter(|own| own.token == *token).count();
            if of_token >= share(limits::OWN_CONNECTIONS_MAX) {
                let message = format!(
                    "{of_token} clients of token '{token}' already have a connection of their own"
                );
                return Err(ProviderError::Unavailable(message));
            }
            if by_session.len() >= limits::OWN_CONNECTIONS_MAX {
                let message = format!(
                    "{} clients already have a connection of their own",
                    limits::OWN_CONNECTIONS_MAX
                );
                return Err(ProviderError::Unavailable(message));
            }
        }
        let own = by_session.entry(session.clone()).or_insert_with(|| {
            Arc::new(OwnConnection {
                token: token.clone(),
                sign_in: sign_in.clone(),
                side: Arc::new(ClientSide::new(
                    &self.server,
                    session,
                    &self.around.listeners,
                    self.refusal_log(client),
                )),
                opened: OnceCell::new(),
                failed: OnceLock::new(),
                last_used: Mutex::new(Instant::now()),
            })
        });
        // A session is of one token, and so is its connection.
        if own.holder() != sign_in.as_ref().map(|sign_in| sign_in.holder()) {
            let message = "the client's own connection is that of another token".to_owned();
            return Err(ProviderError::Unavailable(message));
        }
        *own.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Ok(own.clone())
    }

    /// Closes the connections that use a holder's grant, so that they are opened anew.
    pub(super) async fn end_holder(&self, holder: &GrantHolder) {
        let of_it = |own: &OwnConnection| own.holder() == Some(holder);
        let ended: Vec<Arc<OwnConnection>> = {
            let mut by_session = self.lock();
            by_session.extract_if(|_, own| of_it(own)).map(|(_, own)| own).collect()
        };
        close(ended).await;
    }

    fn refusal_log(&self, client: SessionKey<'_>) -> RefusalLog {
        RefusalLog {
            store: self.around.reviewer.store().clone(),
            settings: self.around.settings.clone(),
            origin: QuestionOrigin::of_session(&self.server, client),
        }
    }

    /// Closes the connection of a client that is gone.
    pub(super) async fn end_session(&self, session: &str) {
        let own = self.lock().remove(session);
        close(own).await;
    }

    /// Closes connections that have been idle for a while.
    pub(super) async fn sweep(&self) {
        let idle: Vec<Arc<OwnConnection>> = {
            let mut by_session = self.lock();
            let listens = |session: &str| self.around.listeners.listens(session);
            let (idle, used) =
                by_session.drain().partition(|(session, own)| own.is_idle() && !listens(session));
            *by_session = used;
            let idle: HashMap<Arc<str>, Arc<OwnConnection>> = idle;
            idle.into_values().collect()
        };
        close(idle).await;
    }

    pub(super) async fn close_all(&self) {
        let all: Vec<Arc<OwnConnection>> = self.lock().drain().map(|(_, own)| own).collect();
        close(all).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<OwnConnection>>> {
        self.by_session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OwnConnection {
    pub(super) fn peer(&self) -> Result<mcp::Peer, ProviderError> {
        let opened = self.opened.get();
        opened
            .map(|opened| opened.connection.peer.clone())
            .ok_or_else(|| ProviderError::Unavailable("it is still connecting".to_owned()))
    }

    fn holder(&self) -> Option<&GrantHolder> {
        self.sign_in.as_ref().map(|sign_in| sign_in.holder())
    }

    /// Reports whether the connection is lost, or failed to open and is due for another attempt.
    fn is_spent(&self) -> bool {
        let is_due =
            |(at, _): &(Instant, UpstreamFailure)| at.elapsed() > limits::OWN_CONNECTION_RETRY;
        self.peer().is_ok_and(|peer| peer.is_closed()) || self.failed.get().is_some_and(is_due)
    }

    fn is_idle(self: &Arc<Self>) -> bool {
        let last_used = *self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        // A running call holds another reference.
        Arc::strong_count(self) == 1 && last_used.elapsed() > limits::OWN_CONNECTION_IDLE
    }
}

/// Returns the client's declared capabilities that a server may use.
fn declared(ctx: &CallContext) -> ObjectMembers<'static> {
    let mut declared = ObjectMembers::default();
    let capability = |name: &str| ctx.ask_client.as_ref()?.capability(name);
    for name in CLIENT_CAPABILITIES {
        if let Some(json) = capability(name) {
            declared.set(name, json);
        }
    }
    // An empty set of them declares nothing.
    for name in CLIENT_EXTENSIONS {
        if let Some(json) = capability(name).filter(|json| !is_empty(json)) {
            declared.set(name, json);
        }
    }
    declared
}

fn is_empty(object: &str) -> bool {
    serde_json::from_str::<ObjectMembers<'_>>(object).is_ok_and(|members| members.is_empty())
}

/// Closes each connection that no call uses; one in use closes with its call.
async fn close(owns: impl IntoIterator<Item = Arc<OwnConnection>>) {
    for own in owns {
        if let Some(own) = Arc::into_inner(own)
            && let Some(opened) = own.opened.into_inner()
        {
            opened.connection.close().await;
        }
    }
}
