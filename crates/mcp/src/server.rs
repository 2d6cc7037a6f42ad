//! A small MCP server for tools: register them, serve any pair of byte streams. Test upstreams and
//! embedded servers are built on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::ErrorObject;
use crate::handshake::{self, ServerHello};
use crate::lines;
use crate::message::{Notification, Raw, Request, raw, to_raw};
use crate::peer::{Peer, RequestContext, Service};

/// The input of a tool: its arguments as received, and a handle to the client.
pub struct ToolCall {
    pub arguments: Raw,
    /// `_meta` of the request, as received.
    pub meta: Option<Raw>,
    pub incoming: RequestContext,
}

pub type ToolFuture = BoxFuture<'static, Result<Raw, ErrorObject>>;
type ToolFunction = Arc<dyn Fn(ToolCall) -> ToolFuture + Send + Sync>;

#[derive(Clone)]
pub struct Server {
    hello: ServerHello,
    tools: BTreeMap<String, RegisteredTool>,
}

#[derive(Clone)]
struct RegisteredTool {
    definition: Raw,
    run: ToolFunction,
}

impl Server {
    pub fn new(name: &str, version: &str) -> Self {
        let hello = ServerHello::new(name, version, raw(r#"{"tools":{}}"#.to_owned()));
        Server { hello, tools: BTreeMap::new() }
    }

    pub fn instructions(mut self, text: &str) -> Self {
        self.hello.instructions = Some(text.to_owned());
        self
    }

    /// Registers a tool. `definition` is the whole tool object of `tools/list`; a tool of the same
    /// name is replaced.
    pub fn register_tool<F>(&mut self, definition: &serde_json::Value, run: F) -> &mut Self
    where
        F: Fn(ToolCall) -> ToolFuture + Send + Sync + 'static,
    {
        let name = definition["name"].as_str().unwrap_or_default().to_owned();
        let tool = RegisteredTool { definition: to_raw(definition), run: Arc::new(run) };
        self.tools.insert(name, tool);
        self
    }

    /// Serves one client until it closes its end.
    pub async fn serve(
        self,
        reader: impl AsyncRead + Unpin + Send + 'static,
        writer: impl AsyncWrite + Unpin + Send + 'static,
    ) {
        lines::serve(reader, writer, Arc::new(self), |_| ()).await;
    }

    fn list(&self) -> Raw {
        // A struct, because `json!` would parse the definitions and reformat their numbers.
        #[derive(Serialize)]
        struct List<'a> {
            tools: Vec<&'a RawValue>,
        }
        to_raw(&List { tools: self.tools.values().map(|tool| &*tool.definition).collect() })
    }

    async fn call(&self, request: Request, incoming: RequestContext) -> Result<Raw, ErrorObject> {
        #[derive(Deserialize)]
        struct Params {
            name: String,
            #[serde(default)]
            arguments: Option<Raw>,
            #[serde(rename = "_meta", default)]
            meta: Option<Raw>,
        }
        let params: Params = request.params()?;
        let tool = self
            .tools
            .get(&params.name)
            .ok_or_else(|| ErrorObject::invalid_params(format!("unknown tool: {}", params.name)))?;
        let arguments = params.arguments.unwrap_or_else(|| raw("{}".to_owned()));
        (tool.run)(ToolCall { arguments, meta: params.meta, incoming }).await
    }
}

impl Service for Server {
    fn request(
        &self,
        request: Request,
        incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        async move {
            match request.method.as_str() {
                "initialize" => {
                    let (_, answer) = handshake::accept(&request, &incoming.peer, &self.hello)?;
                    Ok(answer)
                }
                "ping" => Ok(raw("{}".to_owned())),
                "tools/list" => Ok(self.list()),
                "tools/call" => self.call(request, incoming).await,
                other => Err(ErrorObject::method_not_found(other)),
            }
        }
        .boxed()
    }

    fn notification(&self, _notification: Notification, _peer: Peer) {}
}

/// A tool result with one text block.
pub fn text_result(text: &str) -> Raw {
    to_raw(&json!({"content": [{"type": "text", "text": text}]}))
}
