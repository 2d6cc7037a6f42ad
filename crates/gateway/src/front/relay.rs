//! A client's request as the gate processes it: its route back to the client, for progress and
//! questions, stays open while the call runs.

use std::sync::Arc;
use std::time::Duration;

use domain::Caller;
use domain::method::Method;
use domain::tool::ToolName;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::handshake::ClientHello;
use mcp::message::{Notification, Raw, Request};
use mcp::object::ObjectMembers;
use mcp::peer::{Ask, ConnectionClosed, NoticeSink, Peer, RequestContext, RequestError, WeakPeer};
use provider::{
    AskClient, Call, CallContext, CallOutcome, Declared, Gate, ProviderError, Sink, Surface,
    TraceContext,
};
use serde_json::value::RawValue;
use text::json::Object;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::agent::SessionKey;
use crate::front::question::{CallQuestions, QuestionForm};
use crate::front::session::{HeardServers, Session, SessionRights};
use crate::front::tool_request::ToolRequest;
use crate::limits;
use crate::span::{RequestOrigin, RequestSpan};

/// The call a request asks for, with its parameters parsed.
pub(super) struct RequestedCall {
    pub(super) surface: Surface,
    pub(super) method: Method,
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
        let questions = asked.questions;
        let call = self.call(asked, request.other.clone(), Some(incoming.id.to_string()));
        let token = request.progress_token();
        let heard: Option<Arc<str>> = match self.rights.heard() {
            HeardServers::Elicitations => None,
            HeardServers::One(name) => Some(name.clone()).filter(|name| **name == call.tool.server),
            HeardServers::All => Some(call.tool.server.as_str().into()),
        };
        let (sender, waiting) = (token.is_some() || heard.is_some())
            .then(|| mpsc::channel(limits::PROGRESS_WAITING_MAX))
            .unzip();
        let ctx = CallContext {
            deadline: Instant::now() + self.gateway.call_timeout(&call.tool.server),
            cancel: incoming.cancel.clone(),
            reason: incoming.reason.clone(),
            progress: sender.clone().filter(|_| token.is_some()).map(progress_sink),
            notices: sender
                .zip(heard)
                .map(|(waiting, server)| notice_sink(waiting, self.rights.clone(), server)),
            ask_client: self.client(&incoming.peer, Some((&call, questions))),
            trace: trace.clone(),
        };
        let running = self.gateway.call(call, &ctx);
        match waiting {
            Some(waiting) => {
                let token = token.as_deref().unwrap_or_default();
                with_notices(running, waiting, token, &incoming.peer).await
            }
            None => running.await,
        }
    }

    /// Passes a notification of this session's client on, as a call without a response.
    pub(super) async fn relay_notification(
        &self,
        asked: RequestedCall,
        request: ToolRequest,
        peer: Peer,
    ) {
        let call = self.call(asked, request.other, None);
        let ctx = CallContext {
            ask_client: self.client(&peer, None),
            ..CallContext::within(self.gateway.call_timeout(&call.tool.server))
        };
        self.gateway.call(call, &ctx).await;
    }

    fn call(
        &self,
        asked: RequestedCall,
        other: Vec<(String, Raw)>,
        request_id: Option<String>,
    ) -> Call {
        Call {
            id: uuid::Uuid::now_v7().to_string(),
            caller: self.caller(),
            client: self.hello.get().map(|hello| hello.client_name.as_str().into()),
            session: Some(self.id.clone()),
            request_id,
            surface: asked.surface,
            method: asked.method,
            tool: asked.tool,
            arguments: asked.arguments,
            declared: asked.declared,
            other,
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
    pub(super) async fn open_own(&self, server: &str, surface: Surface, peer: &Peer) {
        let timeout = self.gateway.settings().connect_timeout;
        let ask_client = self.client(peer, None);
        let ctx = CallContext { ask_client, ..CallContext::within(timeout) };
        let caller = self.caller();
        self.gateway.open_own(self.key(&caller, surface), server, &ctx).await;
    }

    /// Passes a list request to a server, on the connection that the session's calls use.
    pub(super) async fn pass(
        &self,
        server: &str,
        surface: Surface,
        request: Request,
        incoming: &RequestContext,
    ) -> Result<Raw, ProviderError> {
        let ctx = self.context(incoming, self.gateway.call_timeout(server));
        let caller = self.caller();
        self.gateway.pass(self.key(&caller, surface), server, &ctx, request).await
    }

    /// Returns the context of a request that is not a call.
    fn context(&self, incoming: &RequestContext, timeout: Duration) -> CallContext {
        CallContext {
            cancel: incoming.cancel.clone(),
            reason: incoming.reason.clone(),
            ask_client: self.client(&incoming.peer, None),
            ..CallContext::within(timeout)
        }
    }

    fn key<'a>(&'a self, caller: &'a Caller, surface: Surface) -> SessionKey<'a> {
        let client = self.hello.get().map(|hello| hello.client_name.as_str());
        SessionKey { session: &self.id, caller, client, surface }
    }

    /// Returns the client, which can be asked more within a call than outside of one.
    fn client(
        &self,
        peer: &Peer,
        call: Option<(&Call, QuestionForm)>,
    ) -> Option<Arc<dyn AskClient>> {
        let hello = self.hello.get()?.clone();
        let questions = call.map(|(call, form)| CallQuestions::of(&self.gateway, call, form));
        let (way, rights) = (ClientRoute::Call(peer.clone()), self.rights.clone());
        Some(Arc::new(Client { way, hello, rights, questions }))
    }
}

/// A notification on its way to the client within its request.
enum CallNotice {
    /// The params of a progress notification.
    Progress(Raw),
    Other(Notification),
}

fn progress_sink(waiting: mpsc::Sender<CallNotice>) -> Sink {
    Arc::new(move |params: Raw| {
        if params.get().len() <= limits::PROGRESS_BYTES_MAX {
            // A full queue drops the notification; the next one supersedes it.
            let _ = waiting.try_send(CallNotice::Progress(params));
        }
    })
}

fn notice_sink(
    waiting: mpsc::Sender<CallNotice>,
    rights: Arc<SessionRights>,
    server: Arc<str>,
) -> NoticeSink {
    Arc::new(move |notification: Notification| {
        let size = notification.params.as_ref().map_or(0, |params| params.get().len());
        if size <= limits::NOTICE_BYTES_MAX
            && let Some(notification) = rights.passed(&server, notification)
        {
            let _ = waiting.try_send(CallNotice::Other(notification));
        }
        None
    })
}

/// Forwards notifications while the call runs, and the rest of them before the response.
async fn with_notices(
    mut running: BoxFuture<'_, CallOutcome>,
    mut waiting: mpsc::Receiver<CallNotice>,
    token: &str,
    peer: &Peer,
) -> CallOutcome {
    loop {
        tokio::select! {
            biased;
            Some(notice) = waiting.recv() => notify(peer, notice, token).await,
            outcome = &mut running => {
                while let Ok(notice) = waiting.try_recv() {
                    notify(peer, notice, token).await;
                }
                return outcome;
            }
        }
    }
}

async fn notify(peer: &Peer, notice: CallNotice, token: &str) {
    match notice {
        CallNotice::Progress(params) => notify_progress(peer, &params, token).await,
        CallNotice::Other(Notification { method, params }) => {
            let _ = peer.notify(&method, params).await;
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
    rights: Arc<SessionRights>,
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

impl Client {
    fn peer(&self) -> Option<Peer> {
        match &self.way {
            ClientRoute::Call(peer) => Some(peer.clone()),
            ClientRoute::Session(peer) => peer.upgrade(),
        }
    }
}

impl AskClient for Client {
    fn capability(&self, name: &str) -> Option<String> {
        self.hello.capability(name).map(str::to_owned)
    }

    fn ask<'a>(
        &'a self,
        method: &'a str,
        params: Option<Raw>,
        ctx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Raw, RequestError>> {
        let peer = self.peer();
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

    fn hears(&self, server: &str) -> bool {
        self.rights.is_of(server) && self.rights.hears(server)
    }

    fn tell<'a>(&'a self, server: &'a str, notification: Notification) -> BoxFuture<'a, ()> {
        async move {
            let passed = Some(notification).filter(|_| self.rights.hears(server));
            let passed = passed.and_then(|notification| self.rights.passed(server, notification));
            if let (Some(peer), Some(Notification { method, params })) = (self.peer(), passed) {
                let _ = peer.notify(&method, params).await;
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
        Arc::new(Client { way, hello, rights: self.rights.clone(), questions: None })
    }
}
