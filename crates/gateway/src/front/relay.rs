//! A client's request as the gate processes it: its route back to the client, for progress and
//! questions, stays open while the call runs.

use std::sync::Arc;

use domain::json::Object;
use domain::tool::ToolName;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::handshake::ClientHello;
use mcp::message::Raw;
use mcp::object::ObjectMembers;
use mcp::peer::{Ask, ConnectionClosed, Peer, RequestContext, RequestError, WeakPeer};
use provider::{
    AskClient, Call, CallContext, CallOutcome, Declared, Gate, Sink, Surface, TraceContext,
};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::front::question::{CallQuestions, QuestionForm};
use crate::front::session::Session;
use crate::front::tool_request::ToolRequest;
use crate::limits;
use crate::span::{RequestOrigin, RequestSpan};
use crate::upstream::SessionKey;

/// The call a request asks for, with its parameters parsed.
pub(super) struct RequestedCall {
    pub(super) surface: Surface,
    pub(super) tool: ToolName,
    pub(super) arguments: Object,
    pub(super) declared: Declared,
    /// The form in which the client gets the server's questions.
    pub(super) questions: QuestionForm,
}

impl Session {
    /// Makes a call for a request of this session's client, as part of a trace.
    pub(super) async fn relay(
        &self,
        asked: RequestedCall,
        request: &ToolRequest,
        incoming: &RequestContext,
        trace: &TraceContext,
    ) -> CallOutcome {
        let call = Call {
            id: uuid::Uuid::now_v7().to_string(),
            caller: self.caller(),
            client: self.hello.get().map(|hello| hello.client_name.as_str().into()),
            session: Some(self.id.clone()),
            request_id: Some(incoming.id.to_string()),
            surface: asked.surface,
            tool: asked.tool,
            arguments: asked.arguments,
            declared: asked.declared,
            other: request.other.clone(),
        };
        let (sink, waiting) = request.progress_token().map(progress_queue).unzip();
        let ctx = CallContext {
            deadline: Instant::now() + self.gateway.call_timeout(&call.tool.server),
            cancel: incoming.cancel.clone(),
            reason: incoming.reason.clone(),
            progress: sink,
            log: None,
            ask_client: self.client(&incoming.peer, Some((&call, asked.questions))),
            trace: trace.clone(),
        };
        let running = self.gateway.call(call, &ctx);
        match waiting {
            Some((token, waiting)) => with_progress(running, waiting, &token, &incoming.peer).await,
            None => running.await,
        }
    }

    /// Starts the span of a request for a call.
    pub(super) fn span(
        &self,
        surface: Surface,
        request: &ToolRequest,
        incoming: &RequestContext,
    ) -> RequestSpan {
        let requested = RequestOrigin { surface, session: Some(&self.id), id: &incoming.id };
        self.gateway.request_span(&requested, request.trace(incoming.trace.as_deref()))
    }

    /// Opens the session's own connection to a server, if it is to have one.
    pub(super) async fn open_own(&self, server: &str, surface: Surface, incoming: &RequestContext) {
        let ctx = CallContext {
            cancel: incoming.cancel.clone(),
            ask_client: self.client(&incoming.peer, None),
            ..CallContext::within(self.gateway.settings().connect_timeout)
        };
        let client = SessionKey {
            session: &self.id,
            token: &self.caller().token,
            client: self.hello.get().map(|hello| hello.client_name.as_str()),
            surface,
        };
        self.gateway.open_own(client, server, &ctx).await;
    }

    /// Returns the client, which can be asked more within a call than outside of one.
    fn client(
        &self,
        peer: &Peer,
        call: Option<(&Call, QuestionForm)>,
    ) -> Option<Arc<dyn AskClient>> {
        let hello = self.hello.get()?.clone();
        let questions = call.map(|(call, form)| CallQuestions::of(&self.gateway, call, form));
        Some(Arc::new(Client { way: ClientRoute::Call(peer.clone()), hello, questions }))
    }
}

/// Returns a sink for progress, and the queue of it with the client's token.
fn progress_queue(token: String) -> (Sink, (String, mpsc::Receiver<Raw>)) {
    let (progress, waiting) = mpsc::channel(limits::PROGRESS_WAITING_MAX);
    let sink = move |params: Raw| {
        if params.get().len() <= limits::PROGRESS_BYTES_MAX {
            // A full queue drops the notification; the next one supersedes it.
            let _ = progress.try_send(params);
        }
    };
    (Arc::new(sink), (token, waiting))
}

/// Forwards progress while the call runs, and the rest of it before the response.
async fn with_progress(
    mut running: BoxFuture<'_, CallOutcome>,
    mut waiting: mpsc::Receiver<Raw>,
    token: &str,
    peer: &Peer,
) -> CallOutcome {
    loop {
        tokio::select! {
            biased;
            Some(params) = waiting.recv() => notify_progress(peer, &params, token).await,
            outcome = &mut running => {
                while let Ok(params) = waiting.try_recv() {
                    notify_progress(peer, &params, token).await;
                }
                return outcome;
            }
        }
    }
}

/// Forwards the upstream's notification under the client's token.
async fn notify_progress(peer: &Peer, params: &RawValue, token: &str) {
    if let Ok(mut members) = ObjectMembers::parse(params) {
        members.set("progressToken", token);
        let _ = peer.notify("notifications/progress", Some(members.write())).await;
    }
}

/// The client that made the call, for providers that must ask it something.
struct Client {
    way: ClientRoute,
    hello: Arc<ClientHello>,
    /// Asks for sampling and elicitation; `None` outside a call, when only roots are requested.
    questions: Option<CallQuestions>,
}

/// The route by which a question reaches the client.
enum ClientRoute {
    /// Within its request.
    Call(Peer),
    /// Outside any request, as long as its session lasts.
    Session(WeakPeer),
}

impl AskClient for Client {
    fn capability(&self, name: &str) -> Option<String> {
        self.hello.capability(name)
    }

    fn ask<'a>(
        &'a self,
        method: &'a str,
        params: Option<Raw>,
        ctx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Raw, RequestError>> {
        let peer = match &self.way {
            ClientRoute::Call(peer) => Some(peer.clone()),
            ClientRoute::Session(peer) => peer.upgrade(),
        };
        async move {
            let Some(peer) = peer else {
                return Err(ConnectionClosed("the client has disconnected".to_owned()).into());
            };
            match &self.questions {
                Some(questions) if method != "roots/list" => {
                    questions.ask(&peer, method, params, ctx).await
                }
                Some(_) | None => {
                    let cancel = ctx.cancel.clone();
                    peer.request(Ask { cancel, ..Ask::new(method, params, ctx.remaining()) }).await
                }
            }
        }
        .boxed()
    }

    fn between_calls(&self) -> Arc<dyn AskClient> {
        let peer = match &self.way {
            ClientRoute::Call(peer) => peer.downgrade(),
            ClientRoute::Session(peer) => peer.clone(),
        };
        let (way, hello) = (ClientRoute::Session(peer), self.hello.clone());
        Arc::new(Client { way, hello, questions: None })
    }
}
