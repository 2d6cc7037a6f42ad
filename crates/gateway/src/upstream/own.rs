//! Connections of single clients: a client that can be asked things gets a connection of its own,
//! so that what the server asks is asked of the right one. Bounded, and closed when idle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use domain::config::Sharing;
use mcp::child::StderrTail;
use mcp::message::Raw;
use mcp::object::Members;
use provider::{Call, CallContext, ProviderError};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::upstream::connection::{Connection, Opening};
use crate::upstream::endpoint::Endpoint;
use crate::upstream::server_side::{ASKABLE, ClientSide};
use crate::{Settings, limits};

pub(super) struct OwnConnections {
    endpoint: Endpoint,
    sharing: Sharing,
    stderr: StderrTail,
    settings: Arc<ArcSwap<Settings>>,
    by_session: Mutex<HashMap<Arc<str>, Arc<Own>>>,
}

pub(super) struct Own {
    pub(super) side: Arc<ClientSide>,
    connection: OnceCell<Connection>,
    last_used: Mutex<Instant>,
}

impl OwnConnections {
    pub(super) fn new(
        endpoint: Endpoint,
        sharing: Sharing,
        stderr: StderrTail,
        settings: Arc<ArcSwap<Settings>>,
    ) -> OwnConnections {
        OwnConnections { endpoint, sharing, stderr, settings, by_session: Mutex::default() }
    }

    /// The client's own connection, where it is to have one.
    pub(super) async fn of(
        &self,
        call: &Call,
        ctx: &CallContext,
    ) -> Result<Option<Arc<Own>>, ProviderError> {
        let (Some(session), Some(capabilities)) = (&call.session, self.wanted(ctx)) else {
            return Ok(None);
        };
        let own = self.entry(session)?;
        own.side.meet(ctx);
        let opened = own.connection.get_or_try_init(|| {
            Opening {
                endpoint: &self.endpoint,
                service: own.side.clone(),
                capabilities,
                stderr: &self.stderr,
                timeout: self.settings.load().connect_timeout.min(ctx.remaining()),
            }
            .open()
        });
        let opened = opened.await;
        match opened {
            Ok(connection) if !connection.peer.is_closed() => Ok(Some(own.clone())),
            // It ended since: the next call opens it anew, as the shared one would be.
            Ok(_) => {
                self.forget(session, &own);
                Err(ProviderError::Unavailable("the client's own connection was lost".to_owned()))
            }
            Err(reason) => {
                self.forget(session, &own);
                Err(ProviderError::Unavailable(reason))
            }
        }
    }

    /// The capabilities to declare on a connection of the client's own; none: the shared one does.
    fn wanted(&self, ctx: &CallContext) -> Option<Raw> {
        let mut declared = Members::default();
        for (name, _) in ASKABLE {
            let capability = ctx.ask_client.as_ref().and_then(|client| client.capability(name));
            if let Some(json) = capability {
                declared.set(name, json);
            }
        }
        match self.sharing {
            Sharing::Shared => None,
            Sharing::Auto if declared.is_empty() => None,
            Sharing::Auto | Sharing::PerClient => Some(declared.write()),
        }
    }

    fn entry(&self, session: &Arc<str>) -> Result<Arc<Own>, ProviderError> {
        let mut by_session = self.lock();
        if !by_session.contains_key(session) && by_session.len() >= limits::OWN_CONNECTIONS_MAX {
            let message = format!(
                "{} clients have a connection of their own already",
                limits::OWN_CONNECTIONS_MAX
            );
            return Err(ProviderError::Unavailable(message));
        }
        let own = by_session.entry(session.clone()).or_insert_with(|| {
            Arc::new(Own {
                side: Arc::default(),
                connection: OnceCell::new(),
                last_used: Mutex::new(Instant::now()),
            })
        });
        *own.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Ok(own.clone())
    }

    fn forget(&self, session: &Arc<str>, own: &Arc<Own>) {
        let mut by_session = self.lock();
        if by_session.get(session).is_some_and(|known| Arc::ptr_eq(known, own)) {
            by_session.remove(session);
        }
    }

    /// Closes the connection of a client that is gone.
    pub(super) async fn end_session(&self, session: &str) {
        let own = self.lock().remove(session);
        close(own).await;
    }

    /// Closes what nobody used for a while.
    pub(super) async fn sweep(&self) {
        let idle: Vec<Arc<Own>> = {
            let mut by_session = self.lock();
            let (idle, used) = by_session.drain().partition(|(_, own)| own.is_idle());
            *by_session = used;
            let idle: HashMap<Arc<str>, Arc<Own>> = idle;
            idle.into_values().collect()
        };
        close(idle).await;
    }

    pub(super) async fn close_all(&self) {
        let all: Vec<Arc<Own>> = self.lock().drain().map(|(_, own)| own).collect();
        close(all).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Own>>> {
        self.by_session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Own {
    pub(super) fn peer(&self) -> Result<mcp::Peer, ProviderError> {
        let connection = self.connection.get();
        connection
            .map(|connection| connection.peer.clone())
            .ok_or_else(|| ProviderError::Unavailable("it is still connecting".to_owned()))
    }

    fn is_idle(self: &Arc<Self>) -> bool {
        let last_used = *self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        // A call that runs holds another reference.
        Arc::strong_count(self) == 1 && last_used.elapsed() > limits::OWN_CONNECTION_IDLE
    }
}

/// Ends each connection that is no longer used by a call; one that is ends with that call.
async fn close(owns: impl IntoIterator<Item = Arc<Own>>) {
    for own in owns {
        if let Some(own) = Arc::into_inner(own)
            && let Some(connection) = own.connection.into_inner()
        {
            connection.close().await;
        }
    }
}
