//! A scripted model on loopback, for the agent programs: it speaks Anthropic Messages, Gemini's
//! `generateContent`, OpenAI Responses and Chat Completions. Its output is a list of turns; the
//! requests are kept. Requests outside the conversation (titles, routing, counts of tokens) get a
//! plain response and take no turn.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The size limit of a request. Prompts of tests may be large; a larger one is a mistake.
const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The time for sent data to leave before a connection is cut.
const CUT_AFTER: Duration = Duration::from_millis(100);

/// The model's reaction to a request.
#[derive(Clone, Debug)]
pub enum Turn {
    Say(String),
    Call(Vec<ModelCall>),
    /// A malformed response.
    Rubbish,
    /// No response, ever.
    Stall,
    /// An HTTP error.
    Fail(u16),
    /// Any other response that a server may give.
    Raw(ModelAnswer),
}

/// A literal response.
#[derive(Clone, Debug)]
pub struct ModelAnswer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    /// The body, in which `{authorization}` is replaced by that header of the request.
    pub body: String,
    pub then: Then,
}

/// The event that follows the body of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    End,
    /// The connection is cut.
    Cut,
    Silence,
    /// The body is repeated, with this much time in between.
    Again(Duration),
}

impl ModelAnswer {
    /// Returns server-sent events, each with this data.
    pub fn events<'a>(data: impl IntoIterator<Item = &'a Value>) -> ModelAnswer {
        let body = data.into_iter().map(event).collect();
        let headers = vec![("content-type", "text/event-stream".to_owned())];
        ModelAnswer { status: 200, headers, body, then: Then::End }
    }

    pub fn status(status: u16, body: &str) -> ModelAnswer {
        ModelAnswer { status, headers: Vec::new(), body: body.to_owned(), then: Then::End }
    }

    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> ModelAnswer {
        self.headers.push((name, value.into()));
        self
    }

    #[must_use]
    pub fn then(self, then: Then) -> ModelAnswer {
        ModelAnswer { then, ..self }
    }

    fn respond(self, authorization: Option<&str>) -> Response {
        let body = self.body.replace("{authorization}", authorization.unwrap_or_default());
        let body = Bytes::from(body);
        let pieces = stream::unfold((true, body), move |(is_first, body)| async move {
            if is_first {
                return Some((Ok(body.clone()), (false, body)));
            }
            match self.then {
                Then::End => None,
                Then::Cut => {
                    // Data not sent by now would be lost with the connection.
                    tokio::time::sleep(CUT_AFTER).await;
                    Some((Err(std::io::Error::other("cut")), (false, body)))
                }
                Then::Silence => std::future::pending().await,
                Then::Again(pause) => {
                    tokio::time::sleep(pause).await;
                    Some((Ok(body.clone()), (false, body)))
                }
            }
        });
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(*name, value);
        }
        response.body(Body::from_stream(pieces)).unwrap()
    }
}

/// A tool call of the model.
#[derive(Clone, Debug)]
pub struct ModelCall {
    name: Name,
    /// An object; or text, for the tools of Codex that take any text.
    arguments: Value,
}

#[derive(Clone, Debug)]
enum Name {
    /// One of our tools that the program advertised, under whatever name.
    Ours(String),
    /// A tool under exactly this name, advertised or not.
    Native(String),
}

impl ModelCall {
    /// Calls a tool of the gate, by the gate's name for it. The gate's name as a server is
    /// `awf-proxy` in a step, and `countersign` for an agent that a person connected.
    pub fn ours(name: &str, arguments: Value) -> ModelCall {
        ModelCall { name: Name::Ours(name.to_owned()), arguments }
    }

    /// Calls a tool of the program itself, even a hidden one.
    pub fn native(name: &str, arguments: Value) -> ModelCall {
        ModelCall { name: Name::Native(name.to_owned()), arguments }
    }

    fn resolve(&self, advertised: &[Tool]) -> Tool {
        match &self.name {
            Name::Native(name) => Tool { namespace: None, name: name.clone() },
            Name::Ours(name) => {
                let fits = |tool: &&Tool| tool.is_ours() && tool.name.ends_with(name.as_str());
                let plain = || Tool { namespace: None, name: name.clone() };
                advertised.iter().find(fits).cloned().unwrap_or_else(plain)
            }
        }
    }
}

/// A tool as a program advertised it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Tool {
    namespace: Option<String>,
    name: String,
}

impl Tool {
    fn named(name: &Value) -> Option<Tool> {
        Some(Tool { namespace: None, name: name.as_str()?.to_owned() })
    }

    fn full(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}.{}", self.name),
            None => self.name.clone(),
        }
    }

    fn is_ours(&self) -> bool {
        let full = self.full();
        ["awf-proxy", "awf_proxy", "countersign"].iter().any(|server| full.contains(server))
    }
}

/// A request as received.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    pub path: String,
    pub body: Value,
    /// The credential, from whichever header.
    pub authorization: Option<String>,
    /// The headers that are text, by their names in lower case.
    pub headers: BTreeMap<String, String>,
}

/// The four APIs.
#[derive(Clone, Copy)]
enum Api {
    Anthropic,
    Gemini,
    Responses,
    Chat,
}

impl Api {
    fn of(path: &str) -> Option<Api> {
        if path.ends_with("/messages") {
            Some(Api::Anthropic)
        } else if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") {
            Some(Api::Gemini)
        } else if path.ends_with("/responses") {
            Some(Api::Responses)
        } else if path.ends_with("/chat/completions") {
            Some(Api::Chat)
        } else {
            None
        }
    }

    fn tools(self, body: &Value) -> Vec<Tool> {
        match self {
            Api::Anthropic => anthropic::tools(body),
            Api::Gemini => gemini::tools(body),
            Api::Responses => responses::tools(body),
            Api::Chat => chat::tools(body),
        }
    }

    fn results(self, body: &Value) -> Vec<String> {
        match self {
            Api::Anthropic => anthropic::results(body),
            Api::Gemini => gemini::results(body),
            Api::Responses => responses::results(body),
            Api::Chat => chat::results(body),
        }
    }

    /// Returns the response to a request outside the conversation, if it is one.
    fn aside(self, body: &Value) -> Option<&'static str> {
        if !self.tools(body).is_empty() {
            return None;
        }
        match self {
            Api::Anthropic => (body["max_tokens"] == 1).then_some("ok"),
            Api::Gemini => {
                let wants = &body["generationConfig"]["responseMimeType"];
                let route = r#"{"complexity_reasoning":"short","complexity_score":1,"reasoning":"short","model_choice":"flash"}"#;
                (wants == "application/json").then_some(route)
            }
            Api::Responses => None,
            Api::Chat => body.to_string().contains("title generator").then_some("A title"),
        }
    }

    fn say(self, asked: &ModelRequest, text: &str) -> String {
        self.answer(asked, &[Part::Text(text.to_owned())])
    }

    /// Returns the body of the response, as events if those were requested.
    fn answer(self, asked: &ModelRequest, parts: &[Part]) -> String {
        match self {
            Api::Anthropic => anthropic::answer(&asked.body, parts),
            Api::Gemini => gemini::answer(streams(self, asked), parts),
            Api::Responses => responses::answer(&asked.body, parts),
            Api::Chat => chat::answer(&asked.body, parts),
        }
    }
}

fn streams(api: Api, asked: &ModelRequest) -> bool {
    match api {
        Api::Gemini => asked.path.contains(":stream"),
        Api::Anthropic | Api::Responses | Api::Chat => asked.body["stream"] == true,
    }
}

/// A part of a response, with its tool resolved.
enum Part {
    Text(String),
    Call { id: String, tool: Tool, arguments: Value },
}

#[derive(Default)]
struct ModelState {
    turns: VecDeque<Turn>,
    asked: Vec<ModelRequest>,
    calls: usize,
}

/// The running model, which ends when it is dropped.
pub struct Model {
    address: SocketAddr,
    kept: Arc<Mutex<ModelState>>,
    serving: JoinHandle<()>,
}

impl Model {
    /// Starts a model. When the turns are used up, it says `done`.
    pub async fn start(turns: impl IntoIterator<Item = Turn>) -> Model {
        let turns = turns.into_iter().collect();
        let kept = Arc::new(Mutex::new(ModelState { turns, ..ModelState::default() }));
        let router = Router::new().fallback(answer).with_state(kept.clone());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Model { address, kept, serving }
    }

    /// Returns the URL without a path: the program adds `/v1` and the like.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> Vec<ModelRequest> {
        self.kept.lock().unwrap().asked.clone()
    }

    /// Returns the requests of the conversation itself.
    pub fn turns(&self) -> Vec<ModelRequest> {
        let of_the_talk = |asked: &ModelRequest| {
            Api::of(&asked.path).is_some_and(|api| api.aside(&asked.body).is_none())
        };
        self.requests().into_iter().filter(of_the_talk).collect()
    }

    /// Returns every tool advertised in any request; one in a namespace as `namespace.name`.
    pub fn advertised(&self) -> BTreeSet<String> {
        let of = |asked: &ModelRequest| Api::of(&asked.path).map(|api| api.tools(&asked.body));
        self.requests().iter().filter_map(of).flatten().map(|tool| tool.full()).collect()
    }

    /// Returns the tool results in the last request of the conversation, as text.
    pub fn results(&self) -> Vec<String> {
        let last = self.turns().pop();
        last.and_then(|asked| Some(Api::of(&asked.path)?.results(&asked.body))).unwrap_or_default()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(kept): State<Arc<Mutex<ModelState>>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let is_post = request.method() == Method::POST;
    let headers = request.headers();
    let authorization =
        headers.get(header::AUTHORIZATION).or_else(|| headers.get("x-goog-api-key"));
    let authorization = authorization.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let text = |value: &header::HeaderValue| value.to_str().ok().map(str::to_owned);
    let headers = headers.iter().filter_map(|(name, value)| Some((name.to_string(), text(value)?)));
    let headers = headers.collect();
    let bytes = axum::body::to_bytes(request.into_body(), BODY_BYTES_MAX).await.unwrap_or_default();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let asked = ModelRequest { path, body, authorization, headers };
    kept.lock().unwrap().asked.push(asked.clone());
    if asked.path.ends_with("/count_tokens") || asked.path.ends_with(":countTokens") {
        let count = r#"{"input_tokens":1,"totalTokens":1}"#;
        return ([(header::CONTENT_TYPE, "application/json")], count).into_response();
    }
    match Api::of(&asked.path) {
        Some(api) if is_post => turn(api, &asked, &kept).await,
        Some(_) | None if asked.path == "/api/hello" => StatusCode::OK.into_response(),
        Some(_) | None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn turn(api: Api, asked: &ModelRequest, kept: &Mutex<ModelState>) -> Response {
    let events = streams(api, asked);
    if let Some(text) = api.aside(&asked.body) {
        return reply(events, api.say(asked, text));
    }
    let next = kept.lock().unwrap().turns.pop_front();
    match next.unwrap_or_else(|| Turn::Say("done".to_owned())) {
        Turn::Say(text) => reply(events, api.say(asked, &text)),
        Turn::Call(calls) => {
            let advertised = api.tools(&asked.body);
            let parts: Vec<Part> = calls.iter().map(|call| part(call, &advertised, kept)).collect();
            reply(events, api.answer(asked, &parts))
        }
        Turn::Rubbish => reply(events, "data: {\"half\": [1, \n\nrubbish\u{0} \n\n".to_owned()),
        Turn::Stall => std::future::pending().await,
        Turn::Raw(raw) => raw.respond(asked.authorization.as_deref()),
        Turn::Fail(status) => {
            let error = json!({"type": "invalid_request_error", "message": "scripted failure", "code": status});
            let status = StatusCode::from_u16(status).unwrap();
            let body = json!({"type": "error", "error": error}).to_string();
            (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
    }
}

fn part(call: &ModelCall, advertised: &[Tool], kept: &Mutex<ModelState>) -> Part {
    let mut kept = kept.lock().unwrap();
    kept.calls += 1;
    let id = format!("call_{}", kept.calls);
    Part::Call { id, tool: call.resolve(advertised), arguments: call.arguments.clone() }
}

fn reply(events: bool, body: String) -> Response {
    let kind = if events { "text/event-stream" } else { "application/json" };
    ([(header::CONTENT_TYPE, kind)], Body::from(body)).into_response()
}

/// Formats one server-sent event. If the API names its events, the name is the data's `type`.
fn event(data: &Value) -> String {
    match data["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

/// Returns all text in a value, at any depth: results are strings, or lists of blocks.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(members) => match members.get("text") {
            Some(text) => text_of(text),
            None => value.to_string(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests;

/// Returns the part of Codex's config that makes it use the model at this address.
pub fn codex_config(url: &str) -> Value {
    let provider = json!({
        "name": "fake", "base_url": format!("{url}/v1"), "wire_api": "responses",
        "env_key": "FAKE_KEY", "request_max_retries": 1, "stream_max_retries": 1,
    });
    json!({
        "model_provider": "fake", "model_providers": {"fake": provider},
        "analytics": {"enabled": false},
    })
}

/// Returns the same for OpenCode.
pub fn opencode_config(url: &str) -> Value {
    let models = json!({"m": {
        "name": "m", "tool_call": true, "limit": {"context": 100_000, "output": 4096},
    }});
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "Fake",
        "options": {"baseURL": format!("{url}/v1"), "apiKey": "test"}, "models": models,
    });
    json!({
        "provider": {"fake": provider}, "model": "fake/m", "small_model": "fake/m",
        "autoupdate": false, "share": "disabled",
    })
}
