//! One client's session, whatever its view: the caller, and the name the client gave.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use access::limits::TOKEN_LOOK_EVERY;
use domain::{Caller, Catalog};
use mcp::ErrorObject;
use mcp::error::{INVALID_REQUEST, OVERLOADED};
use mcp::handshake::{self, ClientHello, ServerHello};
use mcp::message::{Notification, Raw, Request};
use mcp::peer::{Peer, RequestContext};
use mcp::task;
use tokio::sync::{Mutex, Semaphore};

use crate::{Gateway, limits};

pub(super) struct Session {
    pub(super) gateway: Gateway,
    pub(super) rights: Arc<SessionRights>,
    pub(super) id: Arc<str>,
    pub(super) hello: OnceLock<Arc<ClientHello>>,
    /// Places for changes of the client's roots on their way to servers.
    roots_changes: Arc<Semaphore>,
    /// Held while a change is being told, so that the next one waits.
    roots_turn: Arc<Mutex<()>>,
}

/// One change that is being told, and one that waits.
const ROOTS_CHANGES_MAX: usize = 2;

/// The current rights of a session's client.
pub(super) struct SessionRights {
    gateway: Gateway,
    /// The caller as of the start of the session.
    caller: Arc<Caller>,
    /// The profile that the view is limited to.
    profile: Option<String>,
    heard: HeardServers,
    session: Arc<str>,
    /// Subscriptions of a client of all servers, by server and address, and whether the client
    /// qualified the address.
    pub(super) subscribed: std::sync::Mutex<HashMap<(String, String), bool>>,
}

/// The servers whose notifications a session's client gets.
#[derive(Clone)]
pub(super) enum HeardServers {
    /// None, except that any server may send the user to an address, and says when that is done.
    Elicitations,
    /// The one server that the view shows.
    One(Arc<str>),
    /// Every server that the caller sees.
    All,
}

impl SessionRights {
    /// Returns the caller with its current permissions: tokens are revoked and profiles changed
    /// while sessions last.
    pub(super) fn caller(&self) -> Arc<Caller> {
        let Some(caller) = self.gateway.tokens().now(&self.caller) else {
            return Arc::new(self.caller.barred());
        };
        let Some(name) = &self.profile else {
            return caller;
        };
        match self.gateway.settings().profiles.get(name) {
            Some(profile) => Arc::new(caller.narrowed(profile.clone())),
            None => Arc::new(caller.barred()),
        }
    }

    /// Reports whether the view shows this server alone.
    pub(super) fn is_of(&self, server: &str) -> bool {
        matches!(&self.heard, HeardServers::One(name) if **name == *server)
    }

    pub(super) fn heard(&self) -> &HeardServers {
        &self.heard
    }

    /// Reports whether the client gets notifications of a server.
    pub(super) fn hears(&self, server: &str) -> bool {
        let catalog = self.gateway.catalog();
        let is_open = || catalog.server(server).is_some_and(|server| !server.is_locked());
        let is_heard = match &self.heard {
            HeardServers::One(name) => **name == *server,
            HeardServers::Elicitations | HeardServers::All => true,
        };
        is_heard && is_open() && self.caller().sees(server)
    }

    /// Returns the catalog that the session's client sees.
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        self.gateway.catalog_of(Some(&self.session))
    }
}

impl Session {
    pub(super) fn new(gateway: Gateway, caller: Arc<Caller>, profile: Option<String>) -> Session {
        Session::hearing(gateway, caller, profile, HeardServers::Elicitations)
    }

    /// Returns a session whose view shows all servers.
    pub(super) fn on_all(gateway: Gateway, caller: Arc<Caller>) -> Session {
        Session::hearing(gateway, caller, None, HeardServers::All)
    }

    /// Returns a session whose view shows one server.
    pub(super) fn on_server(gateway: Gateway, caller: Arc<Caller>, server: Arc<str>) -> Session {
        Session::hearing(gateway, caller, None, HeardServers::One(server))
    }

    fn hearing(
        gateway: Gateway,
        caller: Arc<Caller>,
        profile: Option<String>,
        heard: HeardServers,
    ) -> Session {
        gateway.metrics().session_opened();
        let id: Arc<str> = uuid::Uuid::now_v7().to_string().into();
        let rights = SessionRights {
            gateway: gateway.clone(),
            caller,
            profile,
            heard,
            session: id.clone(),
            subscribed: std::sync::Mutex::default(),
        };
        Session {
            gateway,
            rights: Arc::new(rights),
            id,
            hello: OnceLock::new(),
            roots_changes: Arc::new(Semaphore::new(ROOTS_CHANGES_MAX)),
            roots_turn: Arc::default(),
        }
    }

    /// Returns the caller with its current permissions.
    pub(super) fn caller(&self) -> Arc<Caller> {
        self.rights.caller()
    }

    /// Refuses what only an initialized client may do: before that, its identity is unknown.
    pub(super) fn require_hello(&self) -> Result<(), ErrorObject> {
        let words = "nothing is executed before 'initialize'";
        self.hello.get().map(drop).ok_or_else(|| ErrorObject::new(INVALID_REQUEST, words))
    }

    /// Counts a request of the client against the token's `rate_limit`.
    pub(super) fn take_request(&self) -> Result<(), ErrorObject> {
        self.gateway.take_request(&self.rights.caller).map_err(|refusal| {
            ErrorObject::new(OVERLOADED, refusal.message.clone()).with_data(&refusal.to_json())
        })
    }

    /// Returns the catalog this session's client sees.
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        self.rights.catalog()
    }

    /// Returns the catalog with its search index, which takes milliseconds to build with thousands
    /// of tools.
    pub(super) async fn searchable_catalog(&self) -> Arc<Catalog> {
        let catalog = self.catalog();
        let caller = self.caller();
        if !catalog.is_prepared(&caller) {
            let preparing = catalog.clone();
            let _ = task::spawn_blocking(move || preparing.prepare(&caller)).await;
        }
        catalog
    }

    pub(super) fn initialize(
        &self,
        request: &Request,
        incoming: &RequestContext,
        server: &ServerHello,
    ) -> Result<Raw, ErrorObject> {
        let (hello, answer) = handshake::accept(request, &incoming.peer, server)?;
        // The client's identity does not change within a session.
        if self.hello.set(Arc::new(hello)).is_ok() {
            self.end_with_token(incoming.peer.clone());
        }
        Ok(answer)
    }

    /// Tells the servers that ask this client for its roots that they have changed. While one change
    /// is being told and another waits, a third would say nothing more.
    pub(super) fn roots_changed(&self, notification: Notification) {
        let size = notification.params.as_ref().map_or(0, |params| params.get().len());
        let Ok(place) = self.roots_changes.clone().try_acquire_owned() else { return };
        if size > limits::NOTICE_BYTES_MAX {
            return;
        }
        let (gateway, id, turn) = (self.gateway.clone(), self.id.clone(), self.roots_turn.clone());
        task::spawn(async move {
            let _turn = turn.lock().await;
            gateway.notify_own(&id, &notification).await;
            drop(place);
        });
    }

    /// Ends the session, and with it every stream waiting for notifications, once the token is
    /// revoked or expires.
    fn end_with_token(&self, peer: Peer) {
        let (gateway, caller) = (self.gateway.clone(), self.rights.caller.clone());
        if !gateway.tokens().may_end(&caller) {
            return;
        }
        let mut changes = gateway.tokens().changes();
        let hash = gateway.tokens().hash(&caller);
        task::spawn(async move {
            while let Some(left) = hash.and_then(|hash| gateway.tokens().lasts(&hash)) {
                tokio::select! {
                    _ = changes.changed() => {}
                    () = tokio::time::sleep(left.min(TOKEN_LOOK_EVERY)) => {}
                    // The peer keeps this session alive, so its reference must be dropped once it
                    // closes.
                    _ = peer.closed() => return,
                }
            }
            peer.close("the token has expired or been revoked");
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.gateway.metrics().session_ended();
        let (gateway, id) = (self.gateway.clone(), self.id.clone());
        // Outside a runtime there is nothing left to close.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { gateway.end_session(&id).await });
        }
    }
}

#[cfg(test)]
mod tests {
    use store::Store;

    use super::*;
    use crate::GateSettings;

    /// A server that does not read must not make a client's notifications pile up.
    #[tokio::test]
    async fn changes_of_roots_do_not_pile_up() {
        let gateway = Gateway::new(GateSettings::default(), Store::nowhere());
        let session = Session::new(gateway, Arc::new(Caller::agent("a")), None);
        let change = |params: Option<Raw>| {
            let method = "notifications/roots/list_changed".to_owned();
            session.roots_changed(Notification { method, params });
        };
        let large = format!("\"{}\"", "x".repeat(limits::NOTICE_BYTES_MAX));
        change(Some(mcp::message::raw(large)));
        assert_eq!(session.roots_changes.available_permits(), ROOTS_CHANGES_MAX);
        let turn = session.roots_turn.lock().await;
        for _ in 0..9 {
            change(None);
        }
        tokio::task::yield_now().await;
        assert_eq!(session.roots_changes.available_permits(), 0);
        drop(turn);
        while session.roots_changes.available_permits() < ROOTS_CHANGES_MAX {
            tokio::task::yield_now().await;
        }
    }
}
