//! The tools of a gate that is one step's own, for the agent in it: every callable tool, those of
//! built-in servers under their own names.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use domain::Caller;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::ErrorObject;
use mcp::message::{Notification, Raw, Request, raw};
use mcp::peer::{Incoming, Peer, Service};

use crate::Gateway;
use crate::front::passthrough::Passthrough;
use crate::front::session::Session;

/// What the agent in a step did with its server: programs go on without tools, and end as if all
/// were well, when it did not come up.
#[derive(Default)]
pub struct Seen {
    listed: AtomicBool,
    sessions: Mutex<Vec<Arc<str>>>,
}

impl Seen {
    /// Whether the agent has asked which tools there are, and was answered.
    pub fn listed(&self) -> bool {
        self.listed.load(Ordering::Acquire)
    }

    /// The sessions that were opened; their calls are recorded under these.
    pub fn sessions(&self) -> Vec<Arc<str>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The service of a new connection.
pub fn open(gateway: &Gateway, caller: &Arc<Caller>, seen: &Arc<Seen>) -> Arc<dyn Service> {
    let session = Session::new(gateway.clone(), caller.clone(), None);
    seen.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(session.id.clone());
    Arc::new(Step { tools: Passthrough::step(session), seen: seen.clone() })
}

struct Step {
    tools: Arc<Passthrough>,
    seen: Arc<Seen>,
}

impl Step {
    async fn answer(&self, request: Request, incoming: Incoming) -> Result<Raw, ErrorObject> {
        match request.method.as_str() {
            "shutdown" => {
                tokio::spawn(async move {
                    incoming.peer.idle().await;
                    incoming.peer.close("the client asked for it");
                });
                Ok(raw("{}".to_owned()))
            }
            "tools/list" => {
                let listed = self.tools.request(request, incoming).await;
                self.seen.listed.fetch_or(listed.is_ok(), Ordering::Release);
                listed
            }
            _ => self.tools.request(request, incoming).await,
        }
    }
}

impl Service for Step {
    fn request(
        &self,
        request: Request,
        incoming: Incoming,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        self.answer(request, incoming).boxed()
    }

    fn notification(&self, notification: Notification, peer: Peer) {
        self.tools.notification(notification, peer);
    }
}
