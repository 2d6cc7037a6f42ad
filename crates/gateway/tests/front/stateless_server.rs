//! A server that speaks revision 2026-07-28 and nothing else, as the specification has it: it checks
//! what each request says of its client, asks in its results, and announces on a stream.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gateway::spec::MakeServer;
use mcp::error::{INVALID_PARAMS, MISSING_CAPABILITY, UNSUPPORTED_VERSION};
use mcp::message::to_raw;
use mcp::{ErrorObject, Notification, Peer, Raw, Request, RequestContext, Service};
use serde_json::{Value, json};
use testkit::wait::eventually;

use crate::server::Server;

const META: &str = "io.modelcontextprotocol";

/// The server, as its test sees it. Clones are the same server.
#[derive(Clone, Default)]
pub(crate) struct StatelessServer(Arc<State>);

#[derive(Default)]
struct State {
    /// The method and params of each message.
    heard: Mutex<Vec<(String, Value)>>,
    /// The open streams of announcements: connection, id, filter.
    streams: Mutex<Vec<(Peer, Value, Value)>>,
    /// Tools beyond those that are always there.
    more: Mutex<Vec<Value>>,
}

impl StatelessServer {
    /// Returns its entry in a config, and the server to start for it.
    pub(crate) fn served(&self) -> Server {
        let state = self.0.clone();
        let make: MakeServer = Arc::new(move || Arc::new(Connection(state.clone())));
        Server::made(json!({"command": "embedded"}), make)
    }

    /// Returns the params of the messages of one method.
    pub(crate) fn heard(&self, method: &str) -> Vec<Value> {
        let heard = self.0.heard.lock().unwrap();
        heard.iter().filter(|(of, _)| of == method).map(|(_, params)| params.clone()).collect()
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        self.0.heard.lock().unwrap().iter().map(|(method, _)| method.clone()).collect()
    }

    /// Adds a tool and announces it.
    pub(crate) async fn add(&self, name: &str) {
        let tool = json!({"name": name, "inputSchema": {"type": "object"}});
        self.0.more.lock().unwrap().push(tool);
        self.announce("toolsListChanged", "notifications/tools/list_changed", json!({})).await;
    }

    /// Announces that a resource has changed.
    pub(crate) async fn update(&self, uri: &str) {
        let is_wanted = |filter: &Value| {
            let uris = filter["resourceSubscriptions"].as_array();
            uris.is_some_and(|uris| uris.iter().any(|it| it == uri))
        };
        let streams = eventually(|| async {
            let streams = self.streams(is_wanted);
            (!streams.is_empty()).then_some(streams)
        })
        .await;
        for (peer, id, _) in streams {
            tell(&peer, "notifications/resources/updated", &id, json!({"uri": uri})).await;
        }
    }

    async fn announce(&self, list: &str, method: &str, params: Value) {
        for (peer, id, _) in self.streams(|filter| filter[list] == true) {
            tell(&peer, method, &id, params.clone()).await;
        }
    }

    /// Returns the open streams for which this is true.
    pub(crate) fn streams(&self, which: impl Fn(&Value) -> bool) -> Vec<(Peer, Value, Value)> {
        let streams = self.0.streams.lock().unwrap();
        streams.iter().filter(|(_, _, filter)| which(filter)).cloned().collect()
    }
}

/// Sends a notification that belongs to a stream.
async fn tell(peer: &Peer, method: &str, id: &Value, mut params: Value) {
    params["_meta"] = json!({format!("{META}/subscriptionId"): id});
    // The stream may just have ended.
    let _ = peer.notify(method, Some(to_raw(&params))).await;
}

/// One connection, which has no state of its own.
struct Connection(Arc<State>);

impl Service for Connection {
    fn request(
        &self,
        request: Request,
        incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        self.answer(request, incoming).boxed()
    }

    fn notification(&self, notification: Notification, _peer: Peer) {
        self.hear(&notification.method, notification.params.as_ref());
    }
}

impl Connection {
    fn hear(&self, method: &str, params: Option<&Raw>) -> Value {
        let params = params.map_or("null", |params| params.get());
        let params: Value = serde_json::from_str(params).unwrap();
        self.0.heard.lock().unwrap().push((method.to_owned(), params.clone()));
        params
    }

    async fn answer(&self, request: Request, incoming: RequestContext) -> Result<Raw, ErrorObject> {
        let params = self.hear(&request.method, request.params.as_ref());
        let meta = |name: &str| &params["_meta"][format!("{META}/{name}")];
        if !meta("clientCapabilities").is_object() {
            let words = "this server speaks only 2026-07-28: _meta lacks the client's capabilities";
            return Err(ErrorObject::new(INVALID_PARAMS, words));
        }
        if meta("protocolVersion") != "2026-07-28" {
            let data = json!({"supported": ["2026-07-28"], "requested": meta("protocolVersion")});
            return Err(ErrorObject::new(UNSUPPORTED_VERSION, "unsupported").with_data(&data));
        }
        let mut result = match request.method.as_str() {
            "server/discover" => discovery(),
            "tools/list" => json!({"tools": self.tools(), "ttlMs": 1000, "cacheScope": "public"}),
            "tools/call" => call(&params, &incoming).await?,
            "resources/list" => json!({"resources": [{"uri": "memo://a", "name": "a"}]}),
            "resources/templates/list" => json!({"resourceTemplates": []}),
            "resources/read" => json!({"contents": [{"uri": params["uri"], "text": "memo"}]}),
            "prompts/list" => json!({"prompts": [{"name": "p"}]}),
            "prompts/get" => match params["inputResponses"].as_object() {
                None => json!({
                    "resultType": "input_required",
                    "inputRequests": {"r": {"method": "roots/list"}},
                }),
                Some(answers) => json!({"messages": [{
                    "role": "user",
                    "content": {"type": "text", "text": json!(answers).to_string()},
                }]}),
            },
            "subscriptions/listen" => return self.listen(&request, &params, incoming).await,
            other => return Err(ErrorObject::method_not_found(other)),
        };
        if result["resultType"].is_null() {
            result["resultType"] = json!("complete");
        }
        Ok(to_raw(&result))
    }

    fn tools(&self) -> Vec<Value> {
        let schema = json!({"type": "object"});
        let names = [
            "echo", "ask", "twice", "forever", "again", "odd", "log", "needs", "progress", "steps",
        ];
        let tools = names.map(|name| json!({"name": name, "inputSchema": schema}));
        tools.into_iter().chain(self.0.more.lock().unwrap().clone()).collect()
    }

    /// Holds a stream open until its client ends it.
    async fn listen(
        &self,
        request: &Request,
        params: &Value,
        incoming: RequestContext,
    ) -> Result<Raw, ErrorObject> {
        let (peer, id) = (incoming.peer.clone(), json!(request.id));
        let filter = params["notifications"].clone();
        let acknowledged = "notifications/subscriptions/acknowledged";
        tell(&peer, acknowledged, &id, json!({"notifications": filter})).await;
        self.0.streams.lock().unwrap().push((peer, id.clone(), filter));
        incoming.cancel.cancelled().await;
        self.0.streams.lock().unwrap().retain(|(_, open, _)| *open != id);
        Err(ErrorObject::internal("it was cancelled"))
    }
}

fn discovery() -> Value {
    json!({
        "supportedVersions": ["2026-07-28"],
        "capabilities": {
            "tools": {"listChanged": true},
            "prompts": {},
            "resources": {"subscribe": true},
            "logging": {},
        },
        "instructions": "Handle with care",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {format!("{META}/serverInfo"): {"name": "modern", "version": "7"}},
    })
}

fn text(words: &str) -> Value {
    json!({"content": [{"type": "text", "text": words}]})
}

fn elicitation(message: &str) -> Value {
    json!({"method": "elicitation/create", "params": {
        "mode": "form",
        "message": message,
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    }})
}

async fn call(params: &Value, incoming: &RequestContext) -> Result<Value, ErrorObject> {
    let meta = |name: &str| &params["_meta"][format!("{META}/{name}")];
    let (answers, state) = (&params["inputResponses"], params["requestState"].as_str());
    let asked = |questions: Value, state: &str| json!({"resultType": "input_required", "inputRequests": questions, "requestState": state});
    Ok(match params["name"].as_str().unwrap() {
        "echo" => text(&params.to_string()),
        "ask" => match (answers, state) {
            (Value::Null, None) => asked(json!({"who": elicitation("Who are you?")}), "s\u{e9}"),
            (answers, Some("s\u{e9}")) => text(&answers.to_string()),
            _ => return Err(ErrorObject::invalid_params("the state is not mine")),
        },
        // One question after the other.
        "twice" => match state {
            None => asked(json!({"a": elicitation("One?")}), "1"),
            Some("1") => {
                let sampling = json!({"method": "sampling/createMessage", "params": {
                    "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
                    "maxTokens": 1,
                }});
                asked(json!({"b": sampling}), "2")
            }
            Some(_) => text(&answers.to_string()),
        },
        "forever" => asked(json!({"x": {"method": "roots/list"}}), "more"),
        // Wants to be asked again, without a question.
        "again" => match state {
            None => json!({"resultType": "input_required", "requestState": "later"}),
            Some(_) => text("done"),
        },
        "odd" => json!({"resultType": "task", "taskId": "7"}),
        "needs" if meta("clientCapabilities")["sampling"].is_null() => {
            let data = json!({"requiredCapabilities": {"sampling": {}}});
            return Err(ErrorObject::new(MISSING_CAPABILITY, "no").with_data(&data));
        }
        "log" => {
            if let Some(level) = meta("logLevel").as_str() {
                let message = json!({"level": level, "data": "said"});
                let _ = incoming.peer.notify("notifications/message", Some(to_raw(&message))).await;
            }
            text("logged")
        }
        "progress" => {
            let token = &params["_meta"]["progressToken"];
            let progress = json!({"progressToken": token, "progress": 1});
            let _ = incoming.peer.notify("notifications/progress", Some(to_raw(&progress))).await;
            text("done")
        }
        // Longer than the tests allow for a call, with progress all the time.
        "steps" => {
            let token = &params["_meta"]["progressToken"];
            for step in 1..=20 {
                if !token.is_null() {
                    let progress = to_raw(&json!({"progressToken": token, "progress": step}));
                    let _ = incoming.peer.notify("notifications/progress", Some(progress)).await;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            text("done")
        }
        name => text(name),
    })
}
