//! The step's tools for a model called by this process: an MCP client of the step's gate like any
//! agent's, so that its calls are listed, recorded and traced like theirs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use mcp::client::{self, List};
use mcp::handshake;
use mcp::message::{Notification, Raw, Request, raw};
use mcp::object::{ObjectMembers, quote};
use mcp::peer::{Ask, Peer, RequestContext, RequestError, Service};
use mcp::{ErrorObject, lines};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use text::json;
use tokio::io::DuplexStream;
use workflow::ModelApi;

use super::answer::ModelCall;
use super::dialogue;

/// Our client name at the gate.
const CLIENT: &str = "openai_compatible";

/// Concurrent calls of one turn.
const CALLS_AT_ONCE_MAX: usize = 8;

/// Characters of invalid arguments shown to the model.
const SHOWN_CHARS_MAX: usize = 200;

#[derive(Default)]
pub(super) struct ModelTools {
    gate: Option<Peer>,
    /// Each in the form a request holds it.
    pub(super) definitions: Vec<String>,
    names: Vec<String>,
    /// The time limit of a call; the gate limits each more closely.
    patience: Duration,
}

impl ModelTools {
    /// Requests the list of tools from the gate.
    pub(super) async fn open(
        gate: DuplexStream,
        api: ModelApi,
        patience: Duration,
    ) -> Result<ModelTools, String> {
        let (reader, writer) = tokio::io::split(gate);
        let gate = lines::connect(reader, writer, Arc::new(NoService));
        let info = json!({"name": CLIENT, "version": env!("CARGO_PKG_VERSION")});
        let nothing = raw("{}".to_owned());
        let welcome = handshake::initialize(&gate, &info, &nothing, patience).await;
        welcome.map_err(|error| format!("cannot connect to the step's gate: {error}"))?;
        let listed = client::list(&gate, List::Tools, patience).await;
        let listed =
            listed.map_err(|error| format!("cannot list the tools of the step's gate: {error}"))?;
        let listed = listed.iter().filter_map(|tool| named_definition(api, tool));
        let (names, definitions) = listed.unzip();
        Ok(ModelTools { gate: Some(gate), definitions, names, patience })
    }

    /// Makes the calls of one turn; returns the response to each, in their order.
    pub(super) async fn answer(&self, calls: &[ModelCall]) -> Vec<String> {
        let running: Vec<BoxFuture<'_, String>> =
            calls.iter().map(|call| self.call(call).boxed()).collect();
        stream::iter(running).buffered(CALLS_AT_ONCE_MAX).collect().await
    }

    /// Makes one call. An invalid call is reported to the model, which may correct it. Nothing was
    /// done then, and nothing is recorded except in the log.
    async fn call(&self, call: &ModelCall) -> String {
        match self.request(call) {
            Ok(ask) => self.made(ask).await,
            Err(fault) => {
                // Arguments are never logged, and an unknown name is any text of the model's.
                let known = self.names.contains(&call.name);
                let (tool, what) =
                    if known { (&*call.name, "arguments") } else { ("-", "tool name") };
                tracing::warn!(tool, "rejected a tool call of the model: invalid {what}");
                error(&fault)
            }
        }
    }

    fn request(&self, call: &ModelCall) -> Result<Ask, String> {
        if call.name.is_empty() {
            return Err(format!("the call names no tool; available tools: {}", self.names()));
        }
        if !self.names.contains(&call.name) {
            return Err(format!(
                "there is no tool '{}'; available tools: {}",
                call.name,
                self.names()
            ));
        }
        let arguments = arguments(&call.arguments)?;
        let mut params = ObjectMembers::default();
        params.set("name", quote(&call.name));
        params.set("arguments", arguments);
        Ok(Ask::new("tools/call", Some(params.write()), self.patience))
    }

    async fn made(&self, ask: Ask) -> String {
        let Some(gate) = &self.gate else { return error("no tools are available") };
        match gate.request(ask).await {
            Ok(result) => text_of(&result),
            Err(RequestError::Refused(refused)) => error(&refused.message),
            Err(other) => error(&other.to_string()),
        }
    }

    fn names(&self) -> String {
        match self.names.as_slice() {
            [] => "none".to_owned(),
            names => names.join(", "),
        }
    }
}

impl Drop for ModelTools {
    fn drop(&mut self) {
        if let Some(gate) = &self.gate {
            gate.close("the conversation is over");
        }
    }
}

/// Returns the arguments of a call as sent to the gate: the text of an object.
pub(super) fn arguments(text: &str) -> Result<String, String> {
    let text = match text.trim() {
        // Some servers send these for no arguments.
        "" | "null" => "{}",
        text => text,
    };
    let read: Result<&RawValue, _> = serde_json::from_str(text);
    let fault = match read {
        Ok(_) if text.starts_with('{') => return Ok(text.to_owned()),
        Ok(_) => "expected an object".to_owned(),
        Err(error) => json::explain(&error),
    };
    let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    Err(format!("the arguments are not valid JSON: {fault}. They were: {shown}"))
}

/// Returns a tool's name, and the tool in the form of the API.
fn named_definition(api: ModelApi, tool: &RawValue) -> Option<(String, String)> {
    let tool = ObjectMembers::parse(tool).ok()?;
    let name: String = serde_json::from_str(tool.get("name")?).ok()?;
    Some((name, dialogue::definition(api, &tool)?))
}

/// Converts a result for the model: tool messages are text.
fn text_of(result: &RawValue) -> String {
    let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let blocks = result["content"].as_array().into_iter().flatten().map(block);
    let mut text = blocks.collect::<Vec<_>>().join("\n");
    if text.is_empty() && !result["structuredContent"].is_null() {
        text = result["structuredContent"].to_string();
    }
    if result["isError"] == true { error(&text) } else { text }
}

fn block(block: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => text(&block["text"]),
        Some("resource") if block["resource"]["text"].is_string() => {
            text(&block["resource"]["text"])
        }
        Some("resource_link") => text(&block["uri"]),
        kind => {
            let media = [&block["mimeType"], &block["resource"]["mimeType"]];
            let media = media.iter().find_map(|it| it.as_str()).unwrap_or("of unknown type");
            format!("[{} {media}: omitted, only text is supported here]", kind.unwrap_or("content"))
        }
    }
}

fn error(words: &str) -> String {
    format!("error: {words}")
}

/// The gate sends us no requests: we declare no capability.
struct NoService;

impl Service for NoService {
    fn request(
        &self,
        request: Request,
        _incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        async move { Err(ErrorObject::method_not_found(&request.method)) }.boxed()
    }

    fn notification(&self, _notification: Notification, _peer: Peer) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_or_a_fault() {
        for (text, expected) in [
            (r#"{"a": 1E2}"#, Ok(r#"{"a": 1E2}"#)),
            (" {} \n", Ok("{}")),
            ("", Ok("{}")),
            ("null", Ok("{}")),
            ("[1]", Err("expected an object")),
            (r#""{}""#, Err("expected an object")),
            (r#"{"path": "a"#, Err("it ends inside a string")),
            (r#"{"a":1}{"a":2}"#, Err("more text follows the value")),
        ] {
            match (arguments(text), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(part)) => assert!(found.contains(part), "{found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        assert!(arguments(&"x".repeat(10_000)).unwrap_err().len() < 400);
    }

    #[test]
    fn results_are_converted_to_text() {
        for (result, expected) in [
            (
                json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
                "a\nb",
            ),
            (json!({"content": [{"type": "text", "text": "no"}], "isError": true}), "error: no"),
            (json!({"content": [], "structuredContent": {"n": 1}}), r#"{"n":1}"#),
            (
                json!({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}),
                "[image image/png: omitted, only text is supported here]",
            ),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "u", "text": "t"}}]}),
                "t",
            ),
            (json!({"content": [{"type": "resource_link", "uri": "file:///a"}]}), "file:///a"),
            (json!({}), ""),
        ] {
            assert_eq!(text_of(&raw(result.to_string())), expected);
        }
    }
}
