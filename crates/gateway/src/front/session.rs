//! One client's session, whatever it is shown: who calls, and who the client said it is.

use std::sync::{Arc, OnceLock};

use domain::{Caller, Catalog};
use mcp::ErrorObject;
use mcp::handshake::{self, ClientHello, ServerHello};
use mcp::message::{Raw, Request};
use mcp::peer::Incoming;

use crate::Gateway;

pub(super) struct Session {
    pub(super) gateway: Gateway,
    /// As it was when the session began.
    caller: Arc<Caller>,
    /// The profile that the view is held to.
    profile: Option<String>,
    pub(super) id: Arc<str>,
    pub(super) hello: OnceLock<Arc<ClientHello>>,
}

impl Session {
    pub(super) fn new(gateway: Gateway, caller: Arc<Caller>, profile: Option<String>) -> Session {
        gateway.metrics().session_opened();
        let id = uuid::Uuid::now_v7().to_string().into();
        Session { gateway, caller, profile, id, hello: OnceLock::new() }
    }

    /// Who calls, and what that caller may do now: tokens are revoked and profiles changed while
    /// sessions last.
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

    /// Whether the token is no longer good, for a task that must not keep the session.
    pub(super) fn is_over(&self) -> impl Fn() -> bool + Send + 'static {
        let (gateway, caller) = (self.gateway.clone(), self.caller.clone());
        move || gateway.tokens().now(&caller).is_none()
    }

    /// What this session's client sees.
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        self.gateway.catalog_of(Some(&self.id))
    }

    /// The same, ready to be searched: to make the index takes milliseconds with thousands of tools.
    pub(super) async fn searchable_catalog(&self) -> Arc<Catalog> {
        let catalog = self.catalog();
        let caller = self.caller();
        if !catalog.is_prepared(&caller) {
            let preparing = catalog.clone();
            let _ = tokio::task::spawn_blocking(move || preparing.prepare(&caller)).await;
        }
        catalog
    }

    pub(super) fn initialize(
        &self,
        request: &Request,
        incoming: &Incoming,
        server: &ServerHello,
    ) -> Result<Raw, ErrorObject> {
        let (hello, answer) = handshake::accept(request, &incoming.peer, server)?;
        // Who the client is does not change within a session.
        let _ = self.hello.set(Arc::new(hello));
        Ok(answer)
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
