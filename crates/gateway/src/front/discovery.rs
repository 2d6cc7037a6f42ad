//! Discovery mode: seven tools through which an agent finds the tools of all servers, reads their
//! schemas and calls them with a declared intent; in addition, the servers' prompts, and the
//! resources that results link to.

mod cut;
mod definitions;
mod describe;
mod fit;
mod instructions;
mod methods;
mod notice;
mod parameters;
mod prompts;
mod resources;
mod retrieve;
mod servers;

use std::sync::{Arc, OnceLock};

use domain::exposed::{self, AddressForm};
use domain::method::Method;
use domain::tool::{Class, ToolName};
use domain::{Code, Refusal};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::ErrorObject;
use mcp::handshake::ServerHello;
use mcp::message::{Notification, Raw, Request, raw};
use mcp::peer::{Peer, RequestContext, Service};
use provider::{CallOutcome, Declared, Surface, TraceContext};
use serde_json::json;
use serde_json::value::RawValue;
use text::json::Object;
use text::near;

use crate::front::discovery::parameters::{OwnTool, Parameters};
use crate::front::discovery::prompts::ShownPrompts;
use crate::front::discovery::retrieve::{AnswerLimits, ToolSearch};
use crate::front::question::QuestionForm;
use crate::front::relay::RequestedCall;
use crate::front::reply::{self, RefusedAnswer};
use crate::front::session::Session;
use crate::front::tool_request::ToolRequest;
use crate::pipeline::intake;

pub(crate) use servers::no_such_server;
pub use servers::{ServerOutline, server, servers};

const CALL_TOOL_GONE: &str = "Tool 'call_tool' not found. Use call_tool_read, call_tool_write, or \
    call_tool_destructive with matching intent.operation_type. See retrieve_tools for annotations \
    and recommendations.";

static READ_CACHE: OwnTool = OwnTool {
    parameters: &["key", "offset", "limit"],
    example: r#"{"key":"the key from the cut result","offset":0}"#,
};

/// A session in discovery mode.
pub(super) struct Discovery {
    session: Arc<Session>,
    prompts: Arc<ShownPrompts>,
    watching: OnceLock<()>,
}

/// The capabilities of the gate itself: it has no resources to list, but reads those that results
/// link to.
const CAPABILITIES: &str = r#"{"tools":{},"prompts":{"listChanged":true},"resources":{}}"#;

/// The reason that one of the gate's tools has no result.
enum ToolFailure {
    Refused(RefusedAnswer),
    /// An error for the client, not for its model.
    Passed(ErrorObject),
}

impl<T: Into<RefusedAnswer>> From<T> for ToolFailure {
    fn from(refused: T) -> Self {
        ToolFailure::Refused(refused.into())
    }
}

impl Discovery {
    pub(super) fn new(session: Session) -> Discovery {
        let (prompts, watching) = (Arc::default(), OnceLock::new());
        Discovery { session: Arc::new(session), prompts, watching }
    }

    async fn answer(&self, request: Request, incoming: RequestContext) -> Result<Raw, ErrorObject> {
        self.session.take_request()?;
        match request.method.as_str() {
            "initialize" => self.session.initialize(&request, &incoming, &self.hello()),
            "ping" => Ok(raw("{}".to_owned())),
            "tools/list" => Ok(definitions::list()),
            "tools/call" => {
                let request = ToolRequest::parse(&request)?;
                self.session.require_hello()?;
                let mut span = self.session.span(Surface::Discovery, &request, &incoming);
                let answer = self.tool(&request, &incoming, span.trace()).await;
                match answer {
                    Err(ToolFailure::Refused(refused)) => {
                        span.refused(&refused.refusal);
                        Ok(refused.result)
                    }
                    Err(ToolFailure::Passed(error)) => {
                        span.failed(&error);
                        Err(error)
                    }
                    Ok(result) => Ok(result),
                }
            }
            _ => self.other(&request, &incoming).await,
        }
    }

    fn hello(&self) -> ServerHello {
        let capabilities = raw(CAPABILITIES.to_owned());
        let hello = ServerHello::new("countersign", env!("CARGO_PKG_VERSION"), capabilities);
        let text = instructions::instructions(&self.session.catalog(), &self.session.caller());
        ServerHello { instructions: Some(text), ..hello }
    }

    /// Runs a two-key call, whose name may be the link of a resource instead of a tool.
    async fn call_tool(
        &self,
        class: Class,
        request: &ToolRequest,
        incoming: &RequestContext,
        trace: &TraceContext,
    ) -> Result<Raw, ToolFailure> {
        let parsed = intake::two_key_call(class, &request.arguments).map_err(with_way_to_names)?;
        if resources::is_address(&parsed.tool) {
            let name = parsed.tool.to_string();
            let asked = self.link_request(class, parsed)?;
            let server = asked.tool.server.clone();
            let outcome = self.session.relay(asked, request, incoming, trace).await;
            return self.shown(methods::read_link(&name, &server, outcome)?, |result| result);
        }
        let server = parsed.tool.server.clone();
        // A model may pass on an address that it was shown.
        let arguments = exposed::restored_arguments(&server, parsed.arguments.text().get());
        let arguments = arguments.and_then(|text| Object::parse(&text).ok().flatten());
        let asked = RequestedCall {
            surface: Surface::Discovery,
            method: Method::ToolCall,
            tool: parsed.tool,
            arguments: arguments.unwrap_or(parsed.arguments),
            declared: Declared::Variant(class, Box::new(parsed.declaration)),
            questions: QuestionForm::NamesServer,
        };
        let outcome = self.session.relay(asked, request, incoming, trace).await;
        let form = AddressForm::ToolResult;
        self.shown(outcome, |result| resources::linked(result, form, &server))
    }

    /// Returns the result of a call as a model is shown it.
    fn shown(
        &self,
        outcome: CallOutcome,
        rewrite: impl FnOnce(Raw) -> Raw,
    ) -> Result<Raw, ToolFailure> {
        match methods::url_elicitation(&outcome) {
            Some(error) => Err(ToolFailure::Passed(error)),
            None => Ok(self.cut(rewrite(reply::outcome(outcome)))),
        }
    }

    async fn tool(
        &self,
        request: &ToolRequest,
        incoming: &RequestContext,
        trace: &TraceContext,
    ) -> Result<Raw, ToolFailure> {
        if let Some(class) = Class::from_variant(&request.name) {
            return self.call_tool(class, request, incoming, trace).await;
        }
        tracing::info!(
            tool = request.name,
            caller = %self.session.caller().token,
            trace_id = trace.trace_id().map(tracing::field::display),
            "own tool"
        );
        match request.name.as_str() {
            "retrieve_tools" => {
                let caller = self.session.caller();
                self.session.gateway.first_settled(&caller).await;
                let settings = self.session.gateway.settings();
                let limits = AnswerLimits {
                    tools: settings.tools_limit,
                    response: settings.tool_response_limit,
                };
                let search = ToolSearch::parse(&request.arguments)?;
                let catalog = self.session.searchable_catalog().await;
                let catalog = self.session.gateway.with_logins(catalog, &caller).await;
                let vector = self.session.gateway.query_vector(&search.query).await;
                let found = search.answer(&catalog, &caller, vector.as_ref(), limits);
                if found.with_locked {
                    self.session.gateway.count_locked_asked();
                }
                Ok(self.cut(found.document))
            }
            "describe_tool" => {
                let (catalog, caller) = (self.session.catalog(), self.session.caller());
                Ok(self.cut(describe::describe(&catalog, &caller, &request.arguments)?))
            }
            "read_cache" => Ok(self.read_cache(&request.arguments)?),
            "upstream_servers" => {
                let (catalog, caller) = (self.session.catalog(), self.session.caller());
                let catalog = self.session.gateway.with_logins(catalog, &caller).await;
                Ok(self.cut(servers::answer(&catalog, &caller, &request.arguments)?))
            }
            other => Err(self.refuse_unknown(other, request, incoming, trace).await.into()),
        }
    }

    /// Refuses the call of a tool that the gate does not have; it is recorded as any other refusal.
    async fn refuse_unknown(
        &self,
        name: &str,
        request: &ToolRequest,
        incoming: &RequestContext,
        trace: &TraceContext,
    ) -> Refusal {
        let arguments = Object::parse(request.arguments.get()).ok().flatten();
        let asked = RequestedCall {
            surface: Surface::Discovery,
            method: Method::ToolCall,
            tool: ToolName { server: String::new(), tool: name.to_owned() },
            arguments: arguments.unwrap_or_else(Object::absent),
            declared: Declared::Nothing,
            questions: QuestionForm::NamesServer,
        };
        match self.session.relay(asked, request, incoming, trace).await {
            CallOutcome::Refused(refusal) if refusal.code != Code::ToolNotFound => refusal,
            _ => unknown_tool(name),
        }
    }

    /// Notifies the client when its list of prompts changes.
    fn watch(&self, peer: Peer) {
        let (catalog, caller) = (self.session.catalog(), self.session.caller());
        self.prompts.set(&prompts::list(&catalog, &caller));
        prompts::watch(&self.session, &self.prompts, peer);
    }

    fn cut(&self, result: Raw) -> Raw {
        let limit = self.session.gateway.settings().tool_response_limit as usize;
        cut::cut(result, limit, |whole| {
            self.session.gateway.shared.cache.put(&self.session.caller().token, whole)
        })
    }

    fn read_cache(&self, arguments: &RawValue) -> Result<Raw, Refusal> {
        let parameters = Parameters::parse(arguments, &READ_CACHE)?;
        let key = parameters.required_text("key", "the key that a cut result names")?;
        let offset = parameters.number("offset", 0..=u64::MAX)?.unwrap_or(0);
        let limit = parameters.number("limit", 1..=u64::MAX)?;
        let size = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let stored = self.session.gateway.shared.cache.get(&self.session.caller().token, &key);
        let text = stored.ok_or_else(|| {
            let message = "no result is stored under this key; results expire after two hours: call \
                           the tool again";
            Refusal::new(Code::CacheMiss, message).with(json!({"key": key}))
        })?;
        let page = match self.session.gateway.settings().tool_response_limit as usize {
            0 => usize::MAX,
            page => page,
        };
        cut::page(&text, size(offset), limit.map_or(page, size).min(page))
    }
}

impl Service for Discovery {
    fn request(
        &self,
        request: Request,
        incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        self.answer(request, incoming).boxed()
    }

    fn notification(&self, notification: Notification, peer: Peer) {
        match notification.method.as_str() {
            "notifications/initialized" if self.watching.set(()).is_ok() => self.watch(peer),
            "notifications/roots/list_changed" => self.session.roots_changed(notification),
            _ => {}
        }
    }
}

/// Says where a model finds the names of tools, if the name is what is wrong.
fn with_way_to_names(mut refusal: Refusal) -> Refusal {
    if refusal.details["parameter"] == "name" {
        refusal.message += "; use retrieve_tools to find names";
    }
    refusal
}

fn unknown_tool(name: &str) -> Refusal {
    if name == "call_tool" {
        return Refusal::new(Code::ToolNotFound, CALL_TOOL_GONE);
    }
    let near = near::names(name, definitions::NAMES, 3);
    let hint = match near.as_slice() {
        [] => "; to call a server's tool, use call_tool_read, call_tool_write or \
               call_tool_destructive"
            .to_owned(),
        names => near::hint(names),
    };
    Refusal::new(Code::ToolNotFound, format!("Tool '{name}' not found{hint}"))
        .with(json!({"name": name, "near": near}))
}
