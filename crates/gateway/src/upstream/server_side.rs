//! A server's requests to the gate. On the connection that all clients share, almost none are
//! allowed, since they could not be attributed to one client. On a client's own connection, the
//! server may ask what that client declared: within the running call, or outside of one if none is
//! running.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::ErrorObject;
use mcp::message::{Notification, Raw, Request, raw};
use mcp::peer::{Peer, RequestContext, RequestError, Service};
use provider::{AskClient, CallContext};
use tokio::sync::Notify;

use crate::limits;

/// A request that servers make to clients with the capability for it.
pub(super) struct ClientQuestion {
    pub(super) capability: &'static str,
    method: &'static str,
}

pub(super) const CLIENT_QUESTIONS: [ClientQuestion; 3] = [
    ClientQuestion { capability: "sampling", method: "sampling/createMessage" },
    ClientQuestion { capability: "elicitation", method: "elicitation/create" },
    ClientQuestion { capability: "roots", method: "roots/list" },
];

const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Lists that are reviewed along with the tools.
const OTHERS_CHANGED: [&str; 2] =
    ["notifications/prompts/list_changed", "notifications/resources/list_changed"];

/// The gate's end of the shared connection.
#[derive(Default)]
pub(super) struct SharedSide {
    /// Signalled when the server announces that any of its lists has changed.
    pub(super) list_changed: Notify,
}

impl Service for SharedSide {
    fn request(
        &self,
        request: Request,
        _incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        async move { own_answer(&request) }.boxed()
    }

    fn notification(&self, notification: Notification, _peer: Peer) {
        let method = notification.method.as_str();
        if method == LIST_CHANGED || OTHERS_CHANGED.contains(&method) {
            self.list_changed.notify_one();
        }
    }
}

fn own_answer(request: &Request) -> Result<Raw, ErrorObject> {
    match request.method.as_str() {
        "ping" => Ok(raw("{}".to_owned())),
        other => Err(ErrorObject::method_not_found(other)),
    }
}

/// The gate's end of a client's own connection.
#[derive(Default)]
pub(super) struct ClientSide {
    known: Mutex<ClientState>,
    /// Signalled when the server announces that its tools have changed.
    pub(super) list_changed: Notify,
}

#[derive(Default)]
struct ClientState {
    /// The client's running calls, the latest last.
    running: Vec<CallContext>,
    /// The client itself: a server may ask as soon as it is initialized, and after the last call.
    client: Option<Arc<dyn AskClient>>,
}

impl ClientSide {
    /// Registers the client before its connection is opened.
    pub(super) fn meet(&self, ctx: &CallContext) {
        let mut known = self.lock();
        if known.client.is_none() {
            known.client = ctx.ask_client.as_ref().map(|client| client.between_calls());
        }
    }

    /// Routes questions through this call until the guard is dropped.
    pub(super) fn enter(self: &Arc<Self>, ctx: &CallContext) -> RunningCall {
        self.lock().running.push(ctx.clone());
        RunningCall { side: self.clone(), ctx: ctx.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, ClientState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, request: Request) -> Result<Raw, ErrorObject> {
        if CLIENT_QUESTIONS.iter().all(|question| question.method != request.method) {
            return own_answer(&request);
        }
        let (latest, client) = {
            let known = self.lock();
            (known.running.last().cloned(), known.client.clone())
        };
        if let Some(ctx) = latest
            && let Some(client) = &ctx.ask_client
        {
            match client.ask(&request.method, request.params.clone(), &ctx).await {
                // The call has ended meanwhile; the client may still be connected.
                Err(RequestError::Closed(_)) => {}
                answer => return answer.map_err(unanswered),
            }
        }
        let Some(client) = client else {
            return Err(ErrorObject::method_not_found(&request.method));
        };
        let ctx = CallContext::within(limits::QUESTION_WAIT);
        client.ask(&request.method, request.params, &ctx).await.map_err(unanswered)
    }
}

fn unanswered(error: RequestError) -> ErrorObject {
    match error {
        RequestError::Refused(error) => error,
        other => ErrorObject::internal(format!("the client did not answer: {other}")),
    }
}

pub(super) struct RunningCall {
    side: Arc<ClientSide>,
    ctx: CallContext,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let running = &mut self.side.lock().running;
        let ours = running.iter().rposition(|ctx| match (&ctx.ask_client, &self.ctx.ask_client) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        });
        if let Some(position) = ours {
            running.remove(position);
        }
    }
}

impl Service for ClientSide {
    fn request(
        &self,
        request: Request,
        _incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        self.ask(request).boxed()
    }

    fn notification(&self, notification: Notification, _peer: Peer) {
        if notification.method == LIST_CHANGED {
            self.list_changed.notify_one();
        }
    }
}
