//! A scripted MCP server. Its tools are given as definitions; a member `x-do` in one says what a
//! call does, and like every unknown member it must survive the way through the gate.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::handshake::{self, ServerHello};
use mcp::message::{Notification, Raw, Request, raw, to_raw};
use mcp::object::Members;
use mcp::peer::{Ask, Incoming, Peer, Service};
use mcp::{ErrorObject, lines};
use serde_json::{Value, json};

/// The server's tools, which a call may change.
#[derive(Clone)]
pub struct Script {
    tools: Arc<Mutex<Vec<Value>>>,
}

impl Script {
    /// `tools` is an array of tool definitions.
    pub fn new(tools: Value) -> Script {
        let tools = tools.as_array().cloned().unwrap_or_default();
        Script { tools: Arc::new(Mutex::new(tools)) }
    }

    pub fn set_tools(&self, tools: Value) {
        *self.tools.lock().unwrap() = tools.as_array().cloned().unwrap_or_default();
    }

    /// Serves this process's stdin and stdout until they close.
    pub async fn serve_stdio(self) {
        let service = Arc::new(self);
        lines::serve(tokio::io::stdin(), tokio::io::stdout(), service, |_| ()).await;
    }

    async fn answer(&self, request: Request, incoming: Incoming) -> Result<Raw, ErrorObject> {
        match request.method.as_str() {
            "initialize" => {
                let capabilities = raw(r#"{"tools":{"listChanged":true}}"#.to_owned());
                let hello = ServerHello::new("scripted", "1", capabilities);
                Ok(handshake::accept(&request, &incoming.peer, &hello)?.1)
            }
            "ping" => Ok(raw("{}".to_owned())),
            "tools/list" => Ok(to_raw(&json!({"tools": *self.tools.lock().unwrap()}))),
            "tools/call" => self.call(&request, &incoming).await,
            other => Err(ErrorObject::method_not_found(other)),
        }
    }

    async fn call(&self, request: &Request, incoming: &Incoming) -> Result<Raw, ErrorObject> {
        let params = request.params.as_ref().expect("tools/call has params");
        let name: Value = request.params::<Value>()?["name"].clone();
        let tools = self.tools.lock().unwrap().clone();
        let tool = tools
            .iter()
            .find(|tool| tool["name"] == name)
            .ok_or_else(|| ErrorObject::invalid_params(format!("unknown tool {name}")))?;
        let what = &tool["x-do"];
        match what.as_str().or_else(|| what.as_object()?.keys().next().map(String::as_str)) {
            None | Some("echo") => Ok(echo(params)),
            Some("progress") => {
                progress(what["progress"].as_u64().unwrap_or(1), params, incoming).await
            }
            Some("hang") => {
                incoming.cancel.cancelled().await;
                if let Some(path) = what["hang"].as_str() {
                    std::fs::write(path, "cancelled").expect("the marker can be written");
                }
                Err(ErrorObject::new(-32800, "cancelled"))
            }
            Some("text") => {
                let length = what["text"].as_u64().unwrap_or(0);
                let text =
                    (0..length).map(|n| char::from(b'a' + (n % 26) as u8)).collect::<String>();
                Ok(to_raw(
                    &json!({"content": [{"type": "text", "text": text}], "structuredContent": {"length": length}}),
                ))
            }
            Some("error") => {
                Err(ErrorObject::new(-32042, "no luck").with_data(&json!({"why": "scripted"})))
            }
            Some("is_error") => Ok(to_raw(
                &json!({"content": [{"type": "text", "text": "went wrong"}], "isError": true}),
            )),
            Some("become") => {
                self.set_tools(what["become"].clone());
                let changed = incoming.peer.notify("notifications/tools/list_changed", None).await;
                changed.map_err(|error| ErrorObject::internal(error.to_string()))?;
                Ok(echo(params))
            }
            Some("ask") => ask(what, incoming).await,
            Some("die") => std::process::abort(),
            Some(other) => Err(ErrorObject::internal(format!("no such x-do: {other}"))),
        }
    }
}

/// The params that arrived, as text, so that a test can compare bytes.
fn echo(params: &Raw) -> Raw {
    let mut result = Members::default();
    let block = json!([{"type": "text", "text": params.get(), "x-block": 1}]);
    result.set("content", block.to_string());
    result.set("x-number", "1E2");
    result.set("x-big", "12345678901234567890123");
    result.set("_meta", r#"{"x-meta":{"kept":1.0}}"#);
    result.write()
}

async fn progress(count: u64, params: &Raw, incoming: &Incoming) -> Result<Raw, ErrorObject> {
    let params_value: Value = serde_json::from_str(params.get()).expect("params are JSON");
    let token = &params_value["_meta"]["progressToken"];
    for step in 1..=count {
        let params =
            json!({"progressToken": token, "progress": step, "total": count, "x-step": step});
        let sent = incoming.peer.notify("notifications/progress", Some(to_raw(&params))).await;
        sent.map_err(|error| ErrorObject::internal(error.to_string()))?;
    }
    Ok(echo(params))
}

async fn ask(what: &Value, incoming: &Incoming) -> Result<Raw, ErrorObject> {
    let method = what["ask"].as_str().unwrap_or("roots/list");
    let answer = incoming.peer.request(Ask::new(method, None, Duration::from_secs(10))).await;
    match answer {
        Ok(answer) => Ok(to_raw(&json!({"content": [{"type": "text", "text": answer.get()}]}))),
        Err(error) => Ok(to_raw(
            &json!({"content": [{"type": "text", "text": error.to_string()}], "isError": true}),
        )),
    }
}

impl Service for Script {
    fn request(
        &self,
        request: Request,
        incoming: Incoming,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        self.answer(request, incoming).boxed()
    }

    fn notification(&self, _notification: Notification, _peer: Peer) {}
}
