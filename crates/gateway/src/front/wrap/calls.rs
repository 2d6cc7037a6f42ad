//! Calls to the wrapped server: checked by the pipeline, then forwarded as the client's own bytes.

use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use domain::Code;
use domain::method::Method;
use domain::tool::ToolName;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::error::INVALID_REQUEST;
use mcp::message::{BadFrame, Notification, Raw, Request, Response, raw};
use mcp::object::ObjectMembers;
use mcp::task;
use mcp::{ErrorObject, Id};
use provider::{
    Call, CallContext, CallOutcome, Declared, Gate, ProviderError, RecordState, Reply, Surface,
    ToolProvider,
};
use serde_json::value::RawValue;
use text::json::{self, Object};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::front::reply;
use crate::front::tool_request::ToolRequest;
use crate::front::wrap::in_flight::{CallInFlight, ForwardedCall};
use crate::front::wrap::relay::Relay;
use crate::limits::WRAP_CALL_MAX;
use crate::span::{self, RequestOrigin, UpstreamSpan};

impl Relay {
    pub(super) fn start_call(
        self: &Arc<Self>,
        method: Method,
        request: Request,
        line: Bytes,
    ) -> Result<(), BadFrame> {
        let (answer, answered) = oneshot::channel();
        let (cancel, raw_answer) = (CancellationToken::new(), Arc::new(OnceLock::new()));
        let in_flight = CallInFlight { cancel: cancel.clone(), answer, line: raw_answer.clone() };
        self.calls.insert(&request.id, in_flight).map_err(|message| {
            BadFrame::new(INVALID_REQUEST, message).with_id(Some(request.id.clone()))
        })?;
        let relay = self.clone();
        let forwarded = ForwardedCall { line, answer: answered };
        task::spawn_tracked(&self.running, async move {
            let id = request.id.clone();
            match relay.call((method, request), forwarded, cancel, &raw_answer).await {
                Some(line) => relay.respond(&id, line).await,
                None => {
                    if let Some(line) = relay.batches.leave_out(&id) {
                        relay.send_client(line).await;
                    }
                }
            }
            relay.calls.remove(&id);
        });
        Ok(())
    }

    /// Passes a notification of the client's own on, as a call without a response.
    pub(super) fn start_notification(self: &Arc<Self>, notification: Notification, line: Bytes) {
        let relay = self.clone();
        task::spawn_tracked(&self.running, async move {
            let Notification { method, params } = notification;
            let parsed = ToolRequest::of_method(&method, params.as_deref());
            let prepared = match parsed {
                Ok(parsed) => relay.prepare(Method::CustomNotification, parsed, None).await,
                Err(error) => Err(error),
            };
            let (_, answer) = oneshot::channel();
            if let Ok(prepared) = prepared {
                let forwarded = ForwardedCall { line, answer };
                relay.make(prepared, forwarded, CancellationToken::new()).await;
            }
        });
    }

    /// Handles a cancellation by the client; it has already been forwarded to the server.
    pub(super) fn cancel(&self, params: Option<&RawValue>) {
        let members = params.and_then(|params| ObjectMembers::parse(params).ok());
        let id = members.as_ref().and_then(|members| members.get("requestId"));
        let id = id.and_then(|id| serde_json::from_str::<Id>(id).ok());
        if let Some(id) = id {
            self.calls.cancel(&id);
        }
    }

    /// Returns the response line; `None` for a cancelled call.
    async fn call(
        &self,
        (method, request): (Method, Request),
        forwarded: ForwardedCall,
        cancel: CancellationToken,
        raw_answer: &OnceLock<Bytes>,
    ) -> Option<Bytes> {
        let id = request.id.clone();
        let parsed = match method {
            Method::ToolCall => ToolRequest::parse(&request),
            _ => ToolRequest::of_method(&request.method, request.params.as_deref()),
        };
        let prepared = match parsed {
            Ok(parsed) => self.prepare(method, parsed, Some(id.to_string())).await,
            Err(error) => Err(error),
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Some(line(id, Err(error))),
        };
        let unknown = format!("unknown tool: {}", prepared.call.tool.tool);
        let outcome = self.make(prepared, forwarded, cancel).await;
        let answer = match outcome {
            CallOutcome::Replied { ref warnings, kept: RecordState::Committed, .. }
                if warnings.is_empty() =>
            {
                return raw_answer.get().cloned();
            }
            CallOutcome::Failed { error: ProviderError::Protocol(_), .. } => {
                return raw_answer.get().cloned();
            }
            CallOutcome::Failed { error: ProviderError::Cancelled { .. }, .. } => return None,
            CallOutcome::Refused(refusal) if refusal.code == Code::ToolNotFound => {
                Err(ErrorObject::invalid_params(unknown))
            }
            outcome if method == Method::ToolCall => Ok(reply::passed(outcome)),
            outcome => reply::passed_request(outcome),
        };
        Some(line(id, answer))
    }

    async fn prepare(
        &self,
        method: Method,
        parsed: ToolRequest,
        request_id: Option<String>,
    ) -> Result<PreparedCall, ErrorObject> {
        let arguments = Object::parse(parsed.arguments.get()).map_err(|error| {
            let why = json::explain(&error);
            ErrorObject::invalid_params(format!("arguments are not valid JSON: {why}"))
        })?;
        let arguments = arguments.unwrap_or_else(Object::empty);
        if let Method::Known(rule) = method
            && let Some(fault) = rule.subject.fault(arguments.members())
        {
            return Err(ErrorObject::invalid_params(format!("{}: {fault}", rule.name)));
        }
        let tool = ToolName { server: self.name.to_string(), tool: parsed.name.clone() };
        // No list names a method, so that the first call of one waits for the first list.
        if self.gateway.catalog().tool(&tool).is_none() {
            self.listings.known().await;
        }
        let call = Call {
            id: uuid::Uuid::now_v7().to_string(),
            caller: self.caller.clone(),
            client: self.client.get().cloned(),
            session: Some(self.session.clone()),
            request_id,
            surface: Surface::Wrap,
            method,
            tool,
            arguments,
            declared: Declared::Nothing,
            other: parsed.other.clone(),
        };
        Ok(PreparedCall { call, parsed })
    }

    async fn make(
        &self,
        prepared: PreparedCall,
        forwarded: ForwardedCall,
        cancel: CancellationToken,
    ) -> CallOutcome {
        let PreparedCall { call, parsed } = prepared;
        let request_id = call.request_id.as_deref().unwrap_or_default();
        let requested =
            RequestOrigin { surface: Surface::Wrap, session: Some(&self.session), id: &request_id };
        let mut span = self.gateway.request_span(&requested, parsed.trace(None));
        let ctx = CallContext {
            cancel,
            trace: span.trace().clone(),
            ..CallContext::within(WRAP_CALL_MAX)
        };
        let id = call.id.clone();
        self.handover.put(id.clone(), forwarded);
        let outcome = self.gateway.call(call, &ctx).await;
        self.handover.take(&id);
        if let CallOutcome::Failed { error: ProviderError::Protocol(error), .. } = &outcome {
            span.failed(error);
        }
        outcome
    }
}

struct PreparedCall {
    call: Call,
    parsed: ToolRequest,
}

fn line(id: Id, outcome: Result<Raw, ErrorObject>) -> Bytes {
    mcp::message::Message::from(Response { id: Some(id), outcome }).to_line().into()
}

/// Returns the client's bytes, with `_meta` replaced where it must carry a span of ours.
fn with_meta(line: Bytes, meta: Option<Raw>) -> Bytes {
    let rewritten = || {
        let mut members: ObjectMembers<'_> = serde_json::from_slice(&line).ok()?;
        let params_text = members.get("params")?.to_owned();
        let mut params: ObjectMembers<'_> = serde_json::from_str(&params_text).ok()?;
        params.set("_meta", meta.as_ref()?.get());
        members.set("params", params.write_text());
        Some(Bytes::from(members.write_text()))
    };
    rewritten().unwrap_or(line)
}

/// The wrapped server, as the pipeline sees it.
pub(super) fn provider(relay: &Arc<Relay>) -> Arc<dyn ToolProvider> {
    Arc::new(WrappedProvider(Arc::downgrade(relay)))
}

/// A weak reference: the relay belongs to the conversation, and the registry must not keep it
/// alive.
struct WrappedProvider(Weak<Relay>);

impl ToolProvider for WrappedProvider {
    fn tools(&self) -> BoxFuture<'_, Result<Vec<Raw>, ProviderError>> {
        // The relay publishes the tools it sees.
        async { Ok(Vec::new()) }.boxed()
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        ctx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        async move {
            let gone = || ProviderError::Unavailable("the server has exited".to_owned());
            let relay = self.0.upgrade().ok_or_else(gone)?;
            let forwarded = relay.handover.take(&call.id).ok_or_else(gone)?;
            let ForwardedCall { line, answer } = forwarded;
            let tracer = relay.gateway.tracer();
            let span = UpstreamSpan::start(tracer, &relay.name, "stdio", &ctx.trace);
            let meta = span::meta(&call.other, &span.trace(&ctx.trace));
            if !relay.send_server(with_meta(line, meta)).await {
                return Err(gone());
            }
            if call.method == Method::CustomNotification {
                let reply = Ok(Reply::from(raw("{}".to_owned())));
                span.end(&reply);
                return reply;
            }
            let outcome = tokio::select! {
                answer = answer => match answer {
                    Ok(Ok(result)) => Ok(Reply::from(result)),
                    Ok(Err(error)) => Err(error),
                    Err(_) => Err(ProviderError::Lost("the server has exited".to_owned())),
                },
                () = ctx.cancel.cancelled() => Err(ProviderError::Cancelled { sent: true }),
                () = tokio::time::sleep_until(ctx.deadline) => {
                    Err(ProviderError::Timeout { sent: true })
                }
            };
            span.end(&outcome);
            outcome
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}
