//! A plain MCP client over any transport: initializes the server and calls its tools. It records
//! the server's notifications, and answers its requests from a script.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::message::{Notification, Raw, Request, raw, to_raw};
use mcp::peer::{Ask, Peer, RequestContext, RequestError, Service};
use mcp::{ErrorObject, handshake};
use serde_json::{Value, json};
use tokio::sync::mpsc;

pub use crate::wait::PATIENCE;
use crate::wait::eventually;

pub struct Client {
    pub peer: Peer,
    /// The server's response to `initialize`.
    pub welcome: Value,
    /// Methods of received notifications, in order.
    pub heard: tokio::sync::Mutex<mpsc::UnboundedReceiver<String>>,
    /// Parameters of received requests, in order.
    pub asked: tokio::sync::Mutex<mpsc::UnboundedReceiver<Value>>,
    /// Received notifications with their params as text, in order.
    pub notices: Arc<Mutex<Vec<(String, String)>>>,
}

/// The client's responses to the server's requests: `(method, result)`.
pub type Answers = Vec<(&'static str, Value)>;

/// The capabilities of a client that answers a server's requests.
pub fn able() -> Value {
    json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}})
}

/// Returns responses that name their client.
pub fn answers(who: &str) -> Answers {
    let message =
        json!({"role": "assistant", "model": who, "content": {"type": "text", "text": "hi"}});
    vec![
        ("sampling/createMessage", message),
        ("elicitation/create", json!({"action": "accept", "content": {"name": who}})),
        ("roots/list", json!({"roots": [{"uri": format!("file:///{who}")}]})),
    ]
}

pub struct ClientSide {
    answers: Mutex<Answers>,
    heard: mpsc::UnboundedSender<String>,
    asked: mpsc::UnboundedSender<Value>,
    notices: Arc<Mutex<Vec<(String, String)>>>,
}

impl Client {
    /// Initializes a connection, which `connect` makes with the given service.
    pub async fn greet(
        capabilities: Value,
        answers: Answers,
        connect: impl FnOnce(Arc<dyn Service>) -> Peer,
    ) -> Client {
        let (hear, heard) = mpsc::unbounded_channel();
        let (note, asked) = mpsc::unbounded_channel();
        let (answers, notices) = (Mutex::new(answers), Arc::default());
        let side = ClientSide { answers, heard: hear, asked: note, notices: Arc::clone(&notices) };
        let peer = connect(Arc::new(side));
        let info = json!({"name": "testkit", "version": "1"});
        let welcome = handshake::initialize(&peer, &info, &to_raw(&capabilities), PATIENCE)
            .await
            .expect("the server answers initialize");
        let welcome = serde_json::from_str(welcome.result.get()).expect("the answer is JSON");
        let (heard, asked) = (tokio::sync::Mutex::new(heard), tokio::sync::Mutex::new(asked));
        Client { peer, welcome, heard, asked, notices }
    }

    pub async fn request(&self, method: &str, params: Value) -> Result<Value, RequestError> {
        let answer = self.peer.request(Ask::new(method, Some(to_raw(&params)), PATIENCE)).await?;
        Ok(serde_json::from_str(answer.get()).expect("the answer is JSON"))
    }

    /// Sends a request with params and response as text, for tests that compare bytes.
    pub async fn request_text(&self, method: &str, params: &str) -> Result<String, RequestError> {
        let ask = Ask::new(method, Some(raw(params.to_owned())), PATIENCE);
        Ok(self.peer.request(ask).await?.get().to_owned())
    }

    /// Returns the error that a request is refused with.
    pub async fn refused(&self, method: &str, params: Value) -> ErrorObject {
        match self.request(method, params.clone()).await {
            Err(RequestError::Refused(error)) => error,
            other => panic!("{method} {params} is not refused: {other:?}"),
        }
    }

    /// Returns the names or addresses in a list, over all its pages.
    pub async fn listed(&self, method: &str) -> Vec<String> {
        let (member, key) = match method {
            "tools/list" => ("tools", "name"),
            "prompts/list" => ("prompts", "name"),
            "resources/list" => ("resources", "uri"),
            "resources/templates/list" => ("resourceTemplates", "uriTemplate"),
            other => panic!("{other} is not a list"),
        };
        let (mut listed, mut params) = (Vec::new(), json!({}));
        loop {
            let page = self.request(method, params).await.expect("a list");
            let items = page[member].as_array().expect("items").iter();
            listed.extend(items.map(|item| item[key].as_str().expect("a name").to_owned()));
            match &page["nextCursor"] {
                Value::Null => return listed,
                cursor => params = json!({"cursor": cursor}),
            }
        }
    }

    /// Returns the params of the notifications of one method received so far.
    pub fn told(&self, method: &str) -> Vec<String> {
        let notices = self.notices.lock().unwrap();
        notices.iter().filter(|(of, _)| of == method).map(|(_, params)| params.clone()).collect()
    }

    /// Waits until this many of them have been received.
    pub async fn told_when(&self, method: &str, count: usize) -> Vec<String> {
        let enough = || async { Some(self.told(method)).filter(|told| told.len() >= count) };
        eventually(enough).await
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": arguments}))
            .await
            .expect("tools/call is answered with a result")
    }

    /// Makes a two-key call with the intent that the variant requires.
    pub async fn two_key_call(&self, operation: &str, tool: &str, args: Value) -> Value {
        let params = two_keys(operation, tool, args);
        self.request("tools/call", params).await.expect("the call is answered with a result")
    }

    /// Makes a two-key call without arguments and returns its code, or `ok`.
    pub async fn code_of(&self, operation: &str, tool: &str) -> String {
        code(&self.two_key_call(operation, tool, json!({})).await).to_owned()
    }

    /// Returns the JSON document in the first text block of a call's result.
    pub async fn document(&self, name: &str, arguments: Value) -> Value {
        let result = self.call(name, arguments).await;
        serde_json::from_str(text(&result)).unwrap_or_else(|error| panic!("{error}: {result}"))
    }
}

/// Returns the parameters of a two-key call.
pub fn two_keys(operation: &str, tool: &str, args: Value) -> Value {
    json!({
        "name": format!("call_tool_{operation}"),
        "arguments": {"name": tool, "args": args, "intent": {"operation_type": operation}},
    })
}

/// Returns the code of a result that is one of our refusals or failures, or `ok`.
pub fn code(result: &Value) -> &str {
    refusal(result)["code"].as_str().unwrap_or("ok")
}

/// Returns the parts of a refusal: in the structured content of the gate's own tools, in `_meta` of
/// tools that are passed through.
pub fn refusal(result: &Value) -> &Value {
    match &result["structuredContent"]["error"] {
        Value::Null => &result["_meta"]["countersign/error"],
        error => error,
    }
}

/// Returns the first text block of a result.
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {result}"))
}

impl Service for ClientSide {
    fn request(
        &self,
        request: Request,
        _incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        let _ = self.asked.send(request.params().unwrap_or_default());
        let answers = self.answers.lock().unwrap();
        let answer = answers.iter().find(|(method, _)| *method == request.method);
        let answer = match answer {
            Some((_, result)) => Ok(to_raw(result)),
            None if request.method == "ping" => Ok(raw("{}".to_owned())),
            None => Err(ErrorObject::method_not_found(&request.method)),
        };
        async move { answer }.boxed()
    }

    fn notification(&self, notification: Notification, _peer: Peer) {
        let params = notification.params.as_ref().map_or("", |params| params.get());
        self.notices.lock().unwrap().push((notification.method.clone(), params.to_owned()));
        let _ = self.heard.send(notification.method);
    }
}
