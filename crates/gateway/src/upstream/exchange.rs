//! One request of a client on the connection that carries it. What a client subscribes to, and the
//! log level it sets, is kept per client where several share the connection.

use std::sync::Arc;

use domain::config::{RemoteProtocol, RemoteTransport};
use domain::method::{Method, MethodRoute};
use mcp::ErrorObject;
use mcp::delivery::Delivery;
use mcp::error::OVERLOADED;
use mcp::message::{Notification, Raw, raw, to_raw};
use mcp::object::{ObjectMembers, quote};
use mcp::peer::{Ask, NoticeSink, Peer, RequestError};
use provider::{AskClient, Call, CallContext, ProviderError, TraceContext};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::limits;
use crate::span;
use crate::spec::ServerEndpoint;
use crate::upstream::Upstream;
use crate::upstream::listeners::{Lane, LogLevel, MESSAGE, TooManySubscriptions, UPDATED};
use crate::upstream::server_side::LISTS_CHANGED;

/// The connection of a request.
pub(super) struct Carrier {
    pub(super) peer: Peer,
    pub(super) lane: Lane,
}

impl Upstream {
    /// Sends the request and returns the server's result; `trace` is the context sent along.
    pub(super) async fn exchange(
        &self,
        call: &Call,
        ctx: &CallContext,
        carrier: &Carrier,
        trace: &TraceContext,
    ) -> Result<Raw, ProviderError> {
        let params = params(call, trace);
        if call.method == Method::CustomNotification {
            let (method, delivery) = (call.tool.tool.clone(), Arc::default());
            let notification = Notification { method, params };
            let told = carrier.peer.notify_noting(notification, &delivery).await;
            let told = told.map_err(|error| provider_error(error.into(), &delivery));
            return told.map(|()| nothing());
        }
        let method = match call.method {
            Method::ToolCall => "tools/call".to_owned(),
            Method::Known(_) | Method::Custom | Method::CustomNotification => {
                call.tool.tool.clone()
            }
        };
        let ask = Ask {
            method,
            params,
            timeout: ctx.remaining(),
            cancel: ctx.cancel.clone(),
            reason: ctx.reason.clone(),
            progress: ctx.progress.clone(),
            notices: self.notices(call, ctx, carrier.lane),
            trace: span::header(trace),
            delivery: Arc::default(),
        };
        match call.method {
            Method::Known(rule) => self.route(rule.route, call, ctx, (carrier, ask)).await,
            Method::ToolCall | Method::Custom | Method::CustomNotification => {
                send(carrier, ask).await
            }
        }
    }

    async fn route(
        &self,
        route: MethodRoute,
        call: &Call,
        ctx: &CallContext,
        (carrier, ask): (&Carrier, Ask),
    ) -> Result<Raw, ProviderError> {
        if route == MethodRoute::Forwarded {
            return send(carrier, ask).await;
        }
        let (Some(session), Some(client)) = (&call.session, &ctx.ask_client) else {
            return Err(ProviderError::Protocol(ErrorObject::method_not_found(&ask.method)));
        };
        let subject = call.method.subject(call.arguments.members());
        let uri = subject.map_or("", |subject| subject.name());
        match route {
            MethodRoute::Forwarded => send(carrier, ask).await,
            MethodRoute::Subscribes => {
                let subscribed = self.listeners.subscribe(session, client, carrier.lane, uri);
                let is_new = subscribed.map_err(|_: TooManySubscriptions| too_many())?;
                let answer = send(carrier, ask).await;
                if is_new && answer.is_err() {
                    self.listeners.unsubscribe(session, uri);
                }
                answer
            }
            MethodRoute::Unsubscribes => {
                let is_over = self.listeners.unsubscribe(session, uri);
                match carrier.lane {
                    Lane::Shared if !is_over => Ok(nothing()),
                    Lane::Shared | Lane::Own => send(carrier, ask).await,
                }
            }
            MethodRoute::SetsLevel => self.set_level(call, session, client, (carrier, ask)).await,
        }
    }

    async fn set_level(
        &self,
        call: &Call,
        session: &Arc<str>,
        client: &Arc<dyn AskClient>,
        (carrier, mut ask): (&Carrier, Ask),
    ) -> Result<Raw, ProviderError> {
        let level = call.arguments.members().get("level").and_then(|level| level.as_str());
        match (level.and_then(LogLevel::parse), carrier.lane) {
            (Some(level), lane) => {
                let wanted = self.listeners.set_level(session, client, lane, level);
                ask.params = ask.params.map(|params| with_level(params, wanted));
            }
            // Only the server knows whether it has a level of this name.
            (None, Lane::Own) => {}
            (None, Lane::Shared) => {
                let error = ErrorObject::invalid_params("logging/setLevel: unknown level");
                return Err(ProviderError::Protocol(error));
            }
        }
        send(carrier, ask).await
    }

    /// Returns the sink for notifications that the server sends in the course of a request; `None`
    /// where the transport does not show to which request they belong.
    fn notices(&self, call: &Call, ctx: &CallContext, lane: Lane) -> Option<NoticeSink> {
        let ServerEndpoint::Remote(RemoteTransport { protocol: RemoteProtocol::Http, .. }) =
            self.spec.endpoint
        else {
            return None;
        };
        let sink = ctx.notices.clone();
        let level = call.session.as_ref().and_then(|session| self.listeners.level(session));
        Some(Arc::new(move |notification: Notification| {
            let method = notification.method.as_str();
            let is_for_all = lane == Lane::Shared && method == UPDATED;
            if LISTS_CHANGED.contains(&method) || is_for_all {
                return Some(notification);
            }
            match (lane, &sink) {
                (Lane::Own, Some(sink)) => sink(notification),
                (Lane::Own, None) => Some(notification),
                // It concerns no other client.
                (Lane::Shared, None) => None,
                (Lane::Shared, Some(sink)) => {
                    let is_wanted = method != MESSAGE
                        || LogLevel::of_message(&notification) >= level
                        || level.is_none();
                    if is_wanted {
                        sink(notification);
                    }
                    None
                }
            }
        }))
    }
}

async fn send(carrier: &Carrier, ask: Ask) -> Result<Raw, ProviderError> {
    request(&carrier.peer, ask).await
}

fn nothing() -> Raw {
    raw("{}".to_owned())
}

fn too_many() -> ProviderError {
    let words = format!("a client has at most {} subscriptions", limits::SUBSCRIPTIONS_MAX);
    ProviderError::Protocol(ErrorObject::new(OVERLOADED, words))
}

fn with_level(params: Raw, level: LogLevel) -> Raw {
    let Ok(mut members) = ObjectMembers::parse(&params) else { return params };
    members.set("level", quote(level.as_str()));
    members.write()
}

/// Returns the params to send; `None` if the client sent none and nothing is added.
fn params(call: &Call, trace: &TraceContext) -> Option<Raw> {
    let meta = span::meta(&call.other, trace);
    if call.method == Method::ToolCall {
        return Some(to_raw(&CallParams { call, meta }));
    }
    if call.arguments.is_absent() && call.other.is_empty() && meta.is_none() {
        return None;
    }
    let given = call.other.iter().find(|(name, _)| name == "_meta").map(|(_, meta)| meta.clone());
    let text = call.arguments.text();
    let Some(meta) = meta.or(given) else { return Some(text.to_owned()) };
    let Ok(mut members) = ObjectMembers::parse(text) else { return Some(text.to_owned()) };
    members.set("_meta", meta.get());
    Some(members.write())
}

/// Parameters of a tool call; the arguments are sent as the text that was checked.
struct CallParams<'a> {
    call: &'a Call,
    /// Replaces the client's `_meta`, if it must change.
    meta: Option<Raw>,
}

impl Serialize for CallParams<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut params = serializer.serialize_map(None)?;
        params.serialize_entry("name", &self.call.tool.tool)?;
        if !self.call.arguments.is_absent() {
            params.serialize_entry("arguments", self.call.arguments.text())?;
        }
        let is_kept = |name: &str| self.meta.is_none() || name != "_meta";
        for (name, value) in self.call.other.iter().filter(|(name, _)| is_kept(name)) {
            params.serialize_entry(name, value)?;
        }
        if let Some(meta) = &self.meta {
            params.serialize_entry("_meta", meta)?;
        }
        params.end()
    }
}

/// Sends a request, and distinguishes one whose answer is missing from one that was never sent.
pub(super) async fn request(peer: &Peer, ask: Ask) -> Result<Raw, ProviderError> {
    let delivery = ask.delivery.clone();
    peer.request(ask).await.map_err(|error| provider_error(error, &delivery))
}

fn provider_error(error: RequestError, delivery: &Delivery) -> ProviderError {
    let sent = delivery.is_sent();
    match error {
        RequestError::Refused(error) => ProviderError::Protocol(error),
        RequestError::Timeout(_) => ProviderError::Timeout { sent },
        RequestError::Cancelled => ProviderError::Cancelled { sent },
        RequestError::TooLarge => ProviderError::TooLarge,
        RequestError::Lost(reason) => ProviderError::Lost(reason),
        RequestError::Unauthorized(reason) => ProviderError::Unavailable(reason),
        RequestError::Closed(closed) if sent => ProviderError::Lost(closed.to_string()),
        RequestError::Closed(closed) => ProviderError::Unavailable(closed.to_string()),
    }
}
