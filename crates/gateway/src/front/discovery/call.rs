//! `call_tool_*`: the request becomes a call, its way back to the client stays open while it runs.

use std::sync::Arc;

use domain::Refusal;
use domain::tool::Class;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::handshake::ClientHello;
use mcp::message::Raw;
use mcp::object::Members;
use mcp::peer::{Ask, Incoming, Peer, RequestError};
use provider::{
    AskClient, Call, CallContext, Declared, Gate, Outcome, Sink, Surface, TraceContext,
};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Discovery, ToolRequest};
use crate::limits;
use crate::pipeline::intake;

impl Discovery {
    /// Runs a two-key call and gives what became of it.
    pub(super) async fn call_tool(
        &self,
        class: Class,
        request: &ToolRequest,
        incoming: &Incoming,
    ) -> Result<Outcome, Refusal> {
        let parsed = intake::two_key_call(&request.arguments)?;
        let call = Call {
            id: uuid::Uuid::now_v7().to_string(),
            caller: self.caller.clone(),
            client: self.hello.get().map(|hello| hello.client_name.as_str().into()),
            session: Some(self.session.clone()),
            request_id: Some(incoming.id.to_string()),
            surface: Surface::Discovery,
            tool: parsed.tool,
            arguments: parsed.arguments,
            declared: Declared::Variant(class, Box::new(parsed.declaration)),
            other: request.other.clone(),
        };
        let (progress, waiting) = mpsc::channel(limits::PROGRESS_WAITING_MAX);
        let ctx = self.context(&call, request, incoming, progress);
        let running = self.gateway.call(call, &ctx);
        Ok(with_progress(running, waiting, request.progress_token(), &incoming.peer).await)
    }

    fn context(
        &self,
        call: &Call,
        request: &ToolRequest,
        incoming: &Incoming,
        progress: mpsc::Sender<Raw>,
    ) -> CallContext {
        let timeout = self.gateway.settings().call_timeout(&call.tool.server);
        let ask_client = self.hello.get().map(|hello| {
            Arc::new(Client { peer: incoming.peer.clone(), hello: hello.clone() })
                as Arc<dyn AskClient>
        });
        // A full queue drops the notification: the next one says the same and more.
        let sink: Sink = Arc::new(move |params| drop(progress.try_send(params)));
        CallContext {
            deadline: Instant::now() + timeout,
            cancel: incoming.cancel.clone(),
            progress: request.progress_token().map(|_| sink),
            log: None,
            ask_client,
            trace: trace(request),
        }
    }
}

/// Passes progress on while the call runs, and what is left of it before the answer.
async fn with_progress(
    mut running: BoxFuture<'_, Outcome>,
    mut waiting: mpsc::Receiver<Raw>,
    token: Option<String>,
    peer: &Peer,
) -> Outcome {
    let Some(token) = token else {
        return running.await;
    };
    loop {
        tokio::select! {
            biased;
            Some(params) = waiting.recv() => notify_progress(peer, &params, &token).await,
            outcome = &mut running => {
                while let Ok(params) = waiting.try_recv() {
                    notify_progress(peer, &params, &token).await;
                }
                return outcome;
            }
        }
    }
}

/// The upstream's notification under the token that the client chose.
async fn notify_progress(peer: &Peer, params: &RawValue, token: &str) {
    if let Ok(mut members) = Members::parse(params) {
        members.set("progressToken", token);
        let _ = peer.notify("notifications/progress", Some(members.write())).await;
    }
}

fn trace(request: &ToolRequest) -> TraceContext {
    let text = |name: &str| {
        let meta = request.meta()?;
        let members = Members::parse(meta).ok()?;
        serde_json::from_str(members.get(name)?).ok()
    };
    TraceContext { traceparent: text("traceparent"), tracestate: text("tracestate") }
}

/// The client that made the call, for providers that must ask it something.
struct Client {
    peer: Peer,
    hello: ClientHello,
}

impl AskClient for Client {
    fn can(&self, capability: &str) -> bool {
        self.hello.can(capability)
    }

    fn ask<'a>(
        &'a self,
        method: &'a str,
        params: Option<Raw>,
        ctx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Raw, RequestError>> {
        let ask = Ask { cancel: ctx.cancel.clone(), ..Ask::new(method, params, ctx.remaining()) };
        self.peer.request(ask).boxed()
    }
}
