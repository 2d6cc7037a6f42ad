//! The requests of discovery mode besides tools: prompts of all servers, and the resources that
//! results link to. Each passes the pipeline like a call.

use std::sync::Arc;

use domain::exposed::{AddressForm, AddressLookup, qualified_address};
use domain::method::Method;
use domain::tool::{Class, ToolName};
use domain::{Code, Refusal};
use mcp::ErrorObject;
use mcp::message::{Raw, Request, raw};
use mcp::object::{ObjectMembers, quote};
use mcp::peer::RequestContext;
use provider::{CallOutcome, Declared, ProviderError, Surface};
use serde_json::json;
use text::json::{self, Object};

use super::{Discovery, prompts, resources};
use crate::front::question::QuestionForm;
use crate::front::relay::RequestedCall;
use crate::front::reply;
use crate::front::tool_request::ToolRequest;
use crate::pipeline::intake::TwoKeyCall;

/// The code of an error that asks the client to open addresses before it repeats the call.
const URL_ELICITATION_REQUIRED: i64 = -32042;

/// A request for an item of one server.
struct ItemRequest {
    server: String,
    /// The params with the server's own name for the item.
    params: Raw,
    /// The item as the client named it.
    name: String,
}

impl Discovery {
    /// Answers a request that is neither about tools nor about the session.
    pub(super) async fn other(
        &self,
        request: &Request,
        incoming: &RequestContext,
    ) -> Result<Raw, ErrorObject> {
        let method = request.method.as_str();
        // Before that, a client of a later revision asks which ones are spoken here.
        if self.session.hello.get().is_none() {
            return Err(ErrorObject::method_not_found(method));
        }
        match method {
            // What there is may be very long; the links in results name what matters.
            "resources/list" => Ok(raw(r#"{"resources":[]}"#.to_owned())),
            "resources/templates/list" => Ok(raw(r#"{"resourceTemplates":[]}"#.to_owned())),
            resources::READ => {
                let item = self.linked_resource(request)?;
                let result = self.make(method, &item, incoming).await?;
                Ok(resources::linked(result, AddressForm::ReadResult, &item.server))
            }
            "prompts/list" => {
                let caller = self.session.caller();
                self.session.gateway.first_settled(&caller).await;
                let list = prompts::list(&self.session.catalog(), &caller);
                self.prompts.set(&list);
                Ok(list)
            }
            prompts::GET => {
                let item = self.named_prompt(request)?;
                let result = self.make(method, &item, incoming).await?;
                Ok(resources::linked(result, AddressForm::PromptResult, &item.server))
            }
            other => Err(ErrorObject::method_not_found(other)),
        }
    }

    /// Reports whether these are tools of our own or a plugin. A server that does not exist is left to
    /// the pipeline, which records that someone asked for it.
    fn has_no_resources(&self, server: &str) -> bool {
        self.session.catalog().server(server).is_some() && !self.session.gateway.is_mcp(server)
    }

    /// Finds the server of an address and its own address: any address that names its server, and
    /// others that lead to one server alone.
    fn find(&self, address: &str) -> Result<(String, String), String> {
        let offers = self.session.catalog().offers(&self.session.caller());
        match offers.addresses.find(address) {
            AddressLookup::Found { server, .. } if self.has_no_resources(&server) => {
                Err(format!("unknown resource: {address}"))
            }
            AddressLookup::Found { server, uri, .. } => Ok((server, uri)),
            AddressLookup::Nothing => Err(format!("unknown resource: {address}")),
            AddressLookup::Several(servers) => {
                let of = |server: &Arc<str>| qualified_address(server, address);
                let all: Vec<String> = servers.iter().map(of).collect();
                Err(format!("several servers have {address}: use {}", all.join(" or ")))
            }
        }
    }

    fn linked_resource(&self, request: &Request) -> Result<ItemRequest, ErrorObject> {
        let (mut params, address) = named(request, "uri")?;
        let (server, uri) = self.find(&address).map_err(ErrorObject::invalid_params)?;
        params.set("uri", quote(&uri));
        Ok(ItemRequest { server, params: params.write(), name: format!("resource: {address}") })
    }

    fn named_prompt(&self, request: &Request) -> Result<ItemRequest, ErrorObject> {
        let (mut params, name) = named(request, "name")?;
        let offers = self.session.catalog().offers(&self.session.caller());
        let unknown = || ErrorObject::invalid_params(format!("unknown prompt: {name}"));
        let prompt = offers.prompt(&name).ok_or_else(unknown)?;
        params.set("name", quote(&prompt.prompt));
        let (server, params) = (prompt.server.to_string(), params.write());
        Ok(ItemRequest { server, params, name: format!("prompt: {name}") })
    }

    async fn make(
        &self,
        method: &str,
        item: &ItemRequest,
        incoming: &RequestContext,
    ) -> Result<Raw, ErrorObject> {
        let parsed = ToolRequest::of_method(method, Some(&item.params))?;
        let asked = requested(method, &item.server, &parsed)?;
        let mut span = self.session.span(Surface::Discovery, &parsed, incoming);
        let answer = match self.session.relay(asked, &parsed, incoming, span.trace()).await {
            CallOutcome::Refused(refusal) if refusal.code == Code::ToolNotFound => {
                Err(ErrorObject::invalid_params(format!("unknown {}", item.name)))
            }
            outcome => reply::passed_request(outcome),
        };
        answer.inspect_err(|error| span.failed(error))
    }

    /// Returns the request for the resource whose link stands in place of a tool's name.
    pub(super) fn link_request(
        &self,
        class: Class,
        parsed: TwoKeyCall,
    ) -> Result<RequestedCall, Refusal> {
        let name = parsed.tool.to_string();
        if !parsed.arguments.members().is_empty() {
            let message = format!("'{name}' is a resource, which takes no args");
            return Err(Refusal::invalid_arguments(message).with(json!({"parameter": "args"})));
        }
        let (server, uri) = self.find(&name).map_err(|message| no_resource(&name, message))?;
        let arguments = Object::parse(resources::params(&uri).get()).ok().flatten();
        Ok(RequestedCall {
            surface: Surface::Discovery,
            method: known(resources::READ),
            tool: ToolName { server, tool: resources::READ.to_owned() },
            arguments: arguments.ok_or_else(|| unknown_resource(&name))?,
            declared: Declared::Variant(class, Box::new(parsed.declaration)),
            questions: QuestionForm::NamesServer,
        })
    }
}

/// Returns what was read as the result of a tool.
pub(super) fn read_link(
    name: &str,
    server: &str,
    outcome: CallOutcome,
) -> Result<CallOutcome, Refusal> {
    match outcome {
        CallOutcome::Refused(refusal) if refusal.code == Code::ToolNotFound => {
            Err(unknown_resource(name))
        }
        CallOutcome::Replied { mut reply, warnings, kept } => {
            if let Some(result) = resources::as_tool_result(&reply.result, server) {
                reply.result = result;
            }
            Ok(CallOutcome::Replied { reply, warnings, kept })
        }
        outcome => Ok(outcome),
    }
}

fn unknown_resource(name: &str) -> Refusal {
    no_resource(name, format!("unknown resource: {name}"))
}

fn no_resource(name: &str, message: String) -> Refusal {
    let message = message + "; a link must be copied unchanged";
    Refusal::new(Code::ToolNotFound, message).with(json!({"name": name}))
}

/// Returns the params of a request and the member by which they name their subject.
fn named<'r>(
    request: &'r Request,
    member: &str,
) -> Result<(ObjectMembers<'r>, String), ErrorObject> {
    let method = &request.method;
    let fault = |words: &str| ErrorObject::invalid_params(format!("{method}: {words}"));
    let must = || fault(&format!("{member} must be a string"));
    let params = request.params.as_deref().ok_or_else(must)?;
    let members = ObjectMembers::parse(params).map_err(|error| fault(&json::explain(&error)))?;
    let name = members.get(member).and_then(|name| serde_json::from_str(name).ok());
    let name = name.ok_or_else(must)?;
    Ok((members, name))
}

fn requested(
    method: &str,
    server: &str,
    parsed: &ToolRequest,
) -> Result<RequestedCall, ErrorObject> {
    let fault = |words: &str| ErrorObject::invalid_params(format!("{method}: {words}"));
    let arguments = Object::parse(parsed.arguments.get())
        .map_err(|error| fault(&json::explain(&error)))?
        .unwrap_or_else(Object::empty);
    let known = known(method);
    if let Method::Known(rule) = known
        && let Some(words) = rule.subject.fault(arguments.members())
    {
        return Err(fault(&words));
    }
    Ok(RequestedCall {
        surface: Surface::Discovery,
        method: known,
        tool: ToolName { server: server.to_owned(), tool: method.to_owned() },
        arguments,
        declared: Declared::Nothing,
        questions: QuestionForm::NamesServer,
    })
}

fn known(method: &str) -> Method {
    Method::of_request(method).expect("a method of the protocol that passes to servers")
}

/// Returns the error of a server that asks the client to open addresses first: only the client can
/// do that, not the model.
pub(super) fn url_elicitation(outcome: &CallOutcome) -> Option<ErrorObject> {
    let CallOutcome::Failed { error: ProviderError::Protocol(error), .. } = outcome else {
        return None;
    };
    let data = || serde_json::from_str::<serde_json::Value>(error.text().get()).ok();
    let is_asked = error.code == URL_ELICITATION_REQUIRED
        && data().is_some_and(|error| error["data"]["elicitations"].is_array());
    is_asked.then(|| error.clone())
}
