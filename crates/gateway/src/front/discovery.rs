//! Discovery mode: seven tools through which an agent finds the tools of all servers, reads their
//! schemas and calls them with a declared intent.

mod call;
mod cut;
mod definitions;
mod query;
mod reply;
mod servers;

use std::sync::{Arc, OnceLock};

use domain::tool::Class;
use domain::{Caller, Code, Refusal, near};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::ErrorObject;
use mcp::handshake::{self, ClientHello, ServerHello};
use mcp::message::{Notification, Raw, Request, raw};
use mcp::object::Members;
use mcp::peer::{Incoming, Peer, Service};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::Gateway;

pub use servers::{server_entry, servers};

const INSTRUCTIONS: &str = "Countersign stands between you and the tools of several servers. \
    Find tools with retrieve_tools, then call them with call_tool_read, call_tool_write or \
    call_tool_destructive, whichever retrieve_tools recommends in call_with, and declare the same \
    operation in intent.operation_type.";

const CALL_TOOL_GONE: &str = "Tool 'call_tool' not found. Use call_tool_read, call_tool_write, or \
    call_tool_destructive with matching intent.operation_type. See retrieve_tools for annotations \
    and recommendations.";

/// One client's session.
pub struct Discovery {
    gateway: Gateway,
    caller: Arc<Caller>,
    session: Arc<str>,
    hello: OnceLock<ClientHello>,
}

/// `tools/call` taken apart, each part still the text that came.
struct ToolRequest {
    name: String,
    arguments: Raw,
    /// Everything beside name and arguments, `_meta` included.
    other: Vec<(String, Raw)>,
}

impl Discovery {
    pub fn new(gateway: Gateway, caller: Arc<Caller>) -> Discovery {
        let session = uuid::Uuid::now_v7().to_string().into();
        Discovery { gateway, caller, session, hello: OnceLock::new() }
    }

    async fn answer(&self, request: Request, incoming: Incoming) -> Result<Raw, ErrorObject> {
        match request.method.as_str() {
            "initialize" => {
                let (hello, answer) = handshake::accept(&request, &incoming.peer, &server_hello())?;
                // Who the client is does not change within a session.
                let _ = self.hello.set(hello);
                Ok(answer)
            }
            "ping" => Ok(raw("{}".to_owned())),
            "tools/list" => Ok(definitions::list()),
            "tools/call" => {
                let request = ToolRequest::parse(&request)?;
                Ok(self.tool(&request, &incoming).await.unwrap_or_else(|r| reply::refusal(&r)))
            }
            other => Err(ErrorObject::method_not_found(other)),
        }
    }

    async fn tool(&self, request: &ToolRequest, incoming: &Incoming) -> Result<Raw, Refusal> {
        if let Some(class) = Class::from_variant(&request.name) {
            let outcome = self.call_tool(class, request, incoming).await?;
            return Ok(self.cut(reply::outcome(outcome)));
        }
        tracing::info!(tool = request.name, caller = %self.caller.token, "own tool");
        match request.name.as_str() {
            "retrieve_tools" => {
                self.gateway.first_settled().await;
                let limit = self.gateway.settings().tools_limit;
                query::retrieve(&self.gateway.catalog(), &self.caller, &request.arguments, limit)
            }
            "describe_tool" => {
                query::describe(&self.gateway.catalog(), &self.caller, &request.arguments)
            }
            "read_cache" => self.read_cache(&request.arguments),
            "upstream_servers" => {
                servers::answer(&self.gateway.catalog(), &self.caller, &request.arguments)
            }
            other => Err(unknown_tool(other)),
        }
    }

    fn cut(&self, result: Raw) -> Raw {
        let limit = self.gateway.settings().tool_response_limit as usize;
        cut::cut(result, limit, |whole| self.gateway.shared.cache.put(&self.caller.token, whole))
    }

    fn read_cache(&self, arguments: &RawValue) -> Result<Raw, Refusal> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct ReadCache {
            key: String,
            #[serde(default)]
            offset: usize,
            #[serde(default)]
            limit: Option<usize>,
        }
        let ReadCache { key, offset, limit } = parameters(arguments)?;
        let text = self.gateway.shared.cache.get(&self.caller.token, &key).ok_or_else(|| {
            let message = "no result is kept under this key; it is gone after two hours: call the \
                           tool again";
            Refusal::new(Code::CacheMiss, message).with(json!({"key": key}))
        })?;
        let page = match self.gateway.settings().tool_response_limit as usize {
            0 => usize::MAX,
            page => page,
        };
        cut::page(&text, offset, limit.unwrap_or(page).clamp(1, page))
    }
}

impl Service for Discovery {
    fn request(
        &self,
        request: Request,
        incoming: Incoming,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        self.answer(request, incoming).boxed()
    }

    fn notification(&self, _notification: Notification, _peer: Peer) {}
}

impl ToolRequest {
    fn parse(request: &Request) -> Result<ToolRequest, ErrorObject> {
        let params = request
            .params
            .as_deref()
            .ok_or_else(|| ErrorObject::invalid_params("tools/call needs params"))?;
        let members = Members::parse(params)
            .map_err(|error| ErrorObject::invalid_params(format!("tools/call: {error}")))?;
        let name = members.get("name").and_then(|name| serde_json::from_str(name).ok());
        let name: String =
            name.ok_or_else(|| ErrorObject::invalid_params("tools/call: name must be a string"))?;
        let arguments = members.get("arguments").filter(|text| *text != "null").unwrap_or("{}");
        if !arguments.starts_with('{') {
            return Err(ErrorObject::invalid_params("tools/call: arguments must be an object"));
        }
        let other = members
            .iter()
            .filter(|(name, _)| !matches!(*name, "name" | "arguments"))
            .map(|(name, value)| (name.to_owned(), raw(value.to_owned())))
            .collect();
        Ok(ToolRequest { name, arguments: raw(arguments.to_owned()), other })
    }

    fn meta(&self) -> Option<&RawValue> {
        self.other.iter().find(|(name, _)| name == "_meta").map(|(_, meta)| &**meta)
    }

    /// The token under which the client wants to hear of progress, as JSON.
    fn progress_token(&self) -> Option<String> {
        let members = Members::parse(self.meta()?).ok()?;
        members.get("progressToken").map(str::to_owned)
    }
}

/// The parameters of one of the gate's own tools.
fn parameters<'a, T: Deserialize<'a>>(arguments: &'a RawValue) -> Result<T, Refusal> {
    serde_json::from_str(arguments.get()).map_err(|error| {
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or_default();
        Refusal::invalid_arguments(words.replace("field", "parameter"))
    })
}

fn unknown_tool(name: &str) -> Refusal {
    if name == "call_tool" {
        return Refusal::new(Code::ToolNotFound, CALL_TOOL_GONE);
    }
    let near = near::names(name, definitions::NAMES, 3);
    let hint = match near.as_slice() {
        [] => "; tools of servers are called through call_tool_read, call_tool_write or \
               call_tool_destructive"
            .to_owned(),
        names => near::hint(names),
    };
    Refusal::new(Code::ToolNotFound, format!("Tool '{name}' not found{hint}"))
        .with(json!({"name": name, "near": near}))
}

fn server_hello() -> ServerHello {
    ServerHello {
        name: "countersign".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capabilities: raw(r#"{"tools":{}}"#.to_owned()),
        instructions: Some(INSTRUCTIONS.to_owned()),
    }
}
