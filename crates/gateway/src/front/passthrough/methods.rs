//! Everything of one server besides its tools: prompts and templates from the catalog, resources from
//! the server itself, and every other request as a call through the pipeline.

use std::sync::Arc;

use domain::Code;
use domain::method::Method;
use domain::tool::{Class, ToolName};
use domain::trust::ItemKind;
use mcp::ErrorObject;
use mcp::message::{Notification, Raw, Request, raw};
use mcp::peer::{Peer, RequestContext};
use mcp::task;
use mcp::version::Version;
use provider::{CallOutcome, Declared, ProviderError};
use text::json::{self, Object};

use super::shown::ListKind;
use super::{Door, Passthrough, ServerScope};
use crate::front::relay::RequestedCall;
use crate::front::reply;
use crate::front::tool_request::ToolRequest;
use crate::pipeline::forward::Unanswered;
use crate::span::RequestSpan;

/// A request on its way to a server.
pub(super) struct RoutedRequest<'a> {
    pub(super) method: Method,
    pub(super) server: &'a str,
    pub(super) request: Request,
    /// The client's words for the subject, if they are not the server's.
    pub(super) subject: Option<String>,
}

/// The origin of a list besides the tools.
#[derive(Clone, Copy)]
enum ListSource {
    /// The catalog has it, reviewed.
    Catalog(ItemKind),
    /// The server has it; its items follow the lock of the server.
    Server,
}

/// A list besides the tools.
struct OtherList {
    method: &'static str,
    /// The kind that a client is notified of.
    kind: ListKind,
    /// The capability of a server that has it.
    capability: &'static str,
    source: ListSource,
}

const RESOURCES: &str = "resources/list";

const LISTS: [OtherList; 3] = [
    OtherList {
        method: "prompts/list",
        kind: ListKind::Prompts,
        capability: "prompts",
        source: ListSource::Catalog(ItemKind::Prompt),
    },
    OtherList {
        method: "resources/templates/list",
        kind: ListKind::Resources,
        capability: "resources",
        source: ListSource::Catalog(ItemKind::Template),
    },
    OtherList {
        method: RESOURCES,
        kind: ListKind::Resources,
        capability: "resources",
        source: ListSource::Server,
    },
];

impl Passthrough {
    /// Answers a request that is neither about tools nor about the session.
    pub(super) async fn other(
        &self,
        request: Request,
        incoming: &RequestContext,
    ) -> Result<Raw, ErrorObject> {
        let unknown = Err(ErrorObject::method_not_found(&request.method));
        // Before that, a client of a later revision asks which ones are spoken here.
        if self.session.hello.get().is_none() {
            return unknown;
        }
        let ServerScope::Server(server) = &self.scope else {
            return if self.is_merged() {
                self.other_of_all(request, incoming).await
            } else {
                unknown
            };
        };
        if let Some(list) = LISTS.iter().find(|list| list.method == request.method) {
            if !self.offers(server, list.capability) {
                return unknown;
            }
            let shown = self.shown.of(list.kind);
            let _pending = shown.begin();
            let answer = self.list_other(server, list.source, request, incoming).await;
            let catalog = self.session.catalog();
            shown.set(catalog.version(Some(server)), &self.list_of(list.kind, &catalog));
            return answer;
        }
        match Method::of_request(&request.method) {
            Some(Method::Known(rule)) if !self.offers(server, rule.capability) => unknown,
            Some(_) if !self.session.gateway.is_mcp(server) => unknown,
            Some(method) => {
                let routed = RoutedRequest { method, server, request, subject: None };
                self.make(routed, incoming).await
            }
            None => unknown,
        }
    }

    /// Reports whether the server declares a capability. One that has never answered may have it.
    pub(super) fn offers(&self, server: &str, capability: &str) -> bool {
        let gateway = &self.session.gateway;
        match gateway.welcome(server) {
            // The first revision had no capability for completion.
            Some(welcome) if welcome.version == Version::V2024_11_05 => {
                capability == "completions" || welcome.capability(capability).is_some()
            }
            Some(welcome) => welcome.capability(capability).is_some(),
            None => gateway.is_mcp(server),
        }
    }

    async fn list_other(
        &self,
        server: &Arc<str>,
        source: ListSource,
        request: Request,
        incoming: &RequestContext,
    ) -> Result<Raw, ErrorObject> {
        self.settle().await;
        match source {
            ListSource::Catalog(kind) => {
                self.session.open_own(server, self.door.surface(), &incoming.peer).await;
                let catalog = self.session.catalog();
                let caller = self.session.caller();
                let items = catalog.server(server).map(|server| server.items(kind, &caller));
                Ok(items.unwrap_or_else(|| raw("{}".to_owned())))
            }
            ListSource::Server => self.list_resources(server, request, incoming).await,
        }
    }

    /// Passes the request on, cursor and all. A locked server, or one whose resources are hidden from
    /// the caller, has none.
    async fn list_resources(
        &self,
        server: &Arc<str>,
        request: Request,
        incoming: &RequestContext,
    ) -> Result<Raw, ErrorObject> {
        let catalog = self.session.catalog();
        let is_open = catalog.server(server).is_some_and(|server| !server.is_locked());
        if !is_open || !self.session.caller().sees_tool(server, "resources/read") {
            return Ok(raw(r#"{"resources":[]}"#.to_owned()));
        }
        let passed = self.session.pass(server, self.door.surface(), request, incoming).await;
        passed.map_err(|error| match error {
            ProviderError::Protocol(error) => error,
            other => {
                let tool = ToolName { server: server.to_string(), tool: RESOURCES.to_owned() };
                let within = self.session.gateway.call_timeout(server);
                let unanswered = Unanswered { tool: &tool, effective: Class::Read, within };
                reply::refused_request(&unanswered.refusal(&other))
            }
        })
    }

    /// Makes the request as a call.
    pub(super) async fn make(
        &self,
        routed: RoutedRequest<'_>,
        incoming: &RequestContext,
    ) -> Result<Raw, ErrorObject> {
        let RoutedRequest { method, server, request, subject } = routed;
        let parsed = ToolRequest::of_method(&request.method, request.params.as_deref())?;
        let asked = self.requested(method, server, &parsed)?;
        let subject = subject.or_else(|| {
            let subject = method.subject(asked.arguments.members())?;
            Some(format!("{}: {}", subject.noun(), subject.name()))
        });
        let mut span = match &self.door {
            Door::Open => self.session.span(self.door.surface(), &parsed, incoming),
            Door::Step(trace) => RequestSpan::none(trace.clone()),
        };
        let answer = match self.session.relay(asked, &parsed, incoming, span.trace()).await {
            CallOutcome::Refused(refusal) if refusal.code == Code::ToolNotFound => {
                let what = subject.unwrap_or_else(|| format!("method: {}", request.method));
                Err(ErrorObject::invalid_params(format!("unknown {what}")))
            }
            outcome => reply::passed_request(outcome),
        };
        answer.inspect_err(|error| span.failed(error))
    }

    pub(super) fn requested(
        &self,
        method: Method,
        server: &str,
        parsed: &ToolRequest,
    ) -> Result<RequestedCall, ErrorObject> {
        let name = &parsed.name;
        let arguments = match Object::parse(parsed.arguments.get()) {
            Ok(Some(arguments)) if parsed.has_arguments => arguments,
            Ok(_) => Object::absent(),
            Err(error) => {
                let words = format!("{name}: params are not valid: {}", json::explain(&error));
                return Err(ErrorObject::invalid_params(words));
            }
        };
        if let Method::Known(rule) = method
            && let Some(fault) = rule.subject.fault(arguments.members())
        {
            return Err(ErrorObject::invalid_params(format!("{name}: {fault}")));
        }
        Ok(RequestedCall {
            surface: self.door.surface(),
            method,
            tool: ToolName { server: server.to_owned(), tool: name.clone() },
            arguments,
            declared: Declared::Nothing,
            questions: self.question_form(),
        })
    }

    /// Passes a notification of the client's own on to the server, as a call without a response.
    pub(super) fn pass_notification(&self, notification: Notification, peer: Peer) {
        let ServerScope::Server(server) = &self.scope else { return };
        let Some(method) = Method::of_notification(&notification.method) else { return };
        let is_known = self.session.hello.get().is_some();
        if !is_known || !self.session.gateway.is_mcp(server) || self.session.take_request().is_err()
        {
            return;
        }
        let params = notification.params.as_deref();
        let parsed = ToolRequest::of_method(&notification.method, params);
        let asked =
            parsed.and_then(|parsed| Ok((self.requested(method, server, &parsed)?, parsed)));
        let (Ok((asked, parsed)), Some(view)) = (asked, self.this.upgrade()) else { return };
        task::spawn(async move { view.session.relay_notification(asked, parsed, peer).await });
    }
}
