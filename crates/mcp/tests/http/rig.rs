//! A server with a few tools on a loopback port, and ways to talk to it: raw HTTP, or a peer.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::Request as HttpRequest;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::http::client::{Endpoint, connect};
use mcp::http::server::{SessionOwner, Sessions};
use mcp::message::to_raw;
use mcp::peer::Ask;
use mcp::server::{Server, ToolCall, text_result};
use mcp::{ErrorObject, Notification, Peer, Raw, Request, RequestContext, Service, handshake};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Rig {
    pub(crate) url: String,
    pub(crate) sessions: Sessions,
    /// The sessions that requests are handed to.
    in_use: Arc<Mutex<Sessions>>,
    /// One entry for each event in the server: `started`, `cancelled`.
    pub(crate) events: mpsc::UnboundedReceiver<&'static str>,
    /// Lets one waiting tool continue.
    pub(crate) release: Arc<Semaphore>,
    /// The server's peer of each session whose client is ready.
    pub(crate) ready: mpsc::UnboundedReceiver<Peer>,
    pub(crate) service: Arc<dyn Service>,
    pub(crate) http: reqwest::Client,
}

struct Fixture {
    server: Server,
    ready: mpsc::UnboundedSender<Peer>,
}

impl Service for Fixture {
    fn request(
        &self,
        request: Request,
        incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        self.server.request(request, incoming)
    }

    fn notification(&self, notification: Notification, peer: Peer) {
        if notification.method == "notifications/initialized" {
            let _ = self.ready.send(peer);
        }
    }
}

/// Returns the owner of a session on the only view.
pub(crate) fn owner(holder: &str) -> SessionOwner {
    SessionOwner { holder: holder.to_owned(), view: String::new() }
}

impl Rig {
    pub(crate) async fn start() -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let (said, events) = mpsc::unbounded_channel();
        let (ready_sender, ready) = mpsc::unbounded_channel();
        let release = Arc::new(Semaphore::new(0));
        let server = tools(said, release.clone());
        let service: Arc<dyn Service> = Arc::new(Fixture { server, ready: ready_sender });
        let sessions = Sessions::new();
        let in_use = Arc::new(Mutex::new(sessions.clone()));
        let (held, opened) = (in_use.clone(), service.clone());
        let address = serve(axum::Router::new().fallback(move |request: HttpRequest| {
            let (sessions, service) = (held.lock().unwrap().clone(), opened.clone());
            async move {
                let owner = request.headers().get("x-owner").cloned();
                let owner = owner.as_ref().map_or("alice", |owner| owner.to_str().unwrap());
                sessions.handle(request, &self::owner(owner), || service).await
            }
        }))
        .await;
        // reqwest is built without a TLS provider; none is needed on loopback.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let http = reqwest::Client::new();
        let url = format!("http://{address}/mcp");
        Rig { url, sessions, in_use, events, release, ready, service, http }
    }

    /// Loses all sessions, as a restarted server does.
    pub(crate) fn forget(&mut self) {
        self.sessions = Sessions::new();
        *self.in_use.lock().unwrap() = self.sessions.clone();
    }

    pub(crate) async fn client(&self, service: Arc<dyn Service>) -> Peer {
        let peer = connect(Endpoint::new(&self.url), service).unwrap();
        greet(&peer).await;
        peer
    }

    pub(crate) fn send(&self, method: Method, session: Option<&str>) -> RequestBuilder {
        let request = self.http.request(method, &self.url);
        match session {
            Some(id) => request.header("mcp-session-id", id),
            None => request,
        }
    }

    pub(crate) fn post(&self, session: Option<&str>, body: &str) -> RequestBuilder {
        self.send(Method::POST, session)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body.to_owned())
    }

    /// Opens a session of the given revision; returns its id.
    pub(crate) async fn open(&self, version: &str) -> String {
        let body = initialize(version);
        let response = self.post(None, &body).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        assert_eq!(json_of(response).await["result"]["protocolVersion"], version);
        id
    }

    pub(crate) async fn next_event(&mut self) -> &'static str {
        soon(self.events.recv()).await.unwrap()
    }
}

/// Waits with a timeout: a test that hangs tells nothing.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("still nothing")
}

pub(crate) async fn serve(router: axum::Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

pub(crate) async fn greet(peer: &Peer) {
    let info = json!({"name": "test", "version": "1"});
    let capabilities = to_raw(&json!({"sampling": {}}));
    handshake::initialize(peer, &info, &capabilities, PATIENCE).await.unwrap();
}

pub(crate) fn initialize(version: &str) -> String {
    request(0, "initialize", json!({"protocolVersion": version, "capabilities": {}}))
}

pub(crate) fn call(id: i64, tool: &str) -> String {
    request(id, "tools/call", json!({"name": tool, "arguments": {"n": id}}))
}

pub(crate) fn request(id: i64, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

pub(crate) fn ask(tool: &str) -> Ask {
    let params = json!({"name": tool, "arguments": {"n": 1}});
    Ask::new("tools/call", Some(to_raw(&params)), PATIENCE)
}

pub(crate) async fn json_of(response: Response) -> Value {
    assert_eq!(response.headers()["content-type"], "application/json");
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

/// Returns the messages of an event stream that ends.
pub(crate) async fn events_of(response: Response) -> Vec<Value> {
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let body = soon(response.bytes()).await.unwrap();
    let mut parser = mcp::sse::Parser::new(1_000_000);
    let events = parser.push(&body).unwrap();
    // The first event of the newest revision has no data.
    let messages = events.iter().filter(|event| !event.data.is_empty());
    messages.map(|event| serde_json::from_str(&event.data).unwrap()).collect()
}

/// An open event stream.
pub(crate) struct EventStream {
    response: Response,
    parser: mcp::sse::Parser,
    events: VecDeque<mcp::sse::SseEvent>,
}

impl EventStream {
    pub(crate) fn new(response: Response) -> EventStream {
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let parser = mcp::sse::Parser::new(1_000_000);
        EventStream { response, parser, events: VecDeque::new() }
    }

    pub(crate) async fn next(&mut self) -> mcp::sse::SseEvent {
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            let chunk = soon(self.response.chunk()).await.unwrap().expect("the stream goes on");
            self.events.extend(self.parser.push(&chunk).unwrap());
        }
    }
}

fn tools(said: mpsc::UnboundedSender<&'static str>, release: Arc<Semaphore>) -> Server {
    let mut server = Server::new("rig", "1");
    server.register_tool(&json!({"name": "echo"}), |call| {
        async move { Ok(text_result(call.arguments.get())) }.boxed()
    });
    server.register_tool(&json!({"name": "progress"}), |call| {
        async move {
            notify_progress(&call).await;
            Ok(text_result("done"))
        }
        .boxed()
    });
    server.register_tool(&json!({"name": "ask"}), |call| {
        async move {
            let ask = Ask::new("sampling/createMessage", None, PATIENCE);
            let answer = call.incoming.peer.request(ask).await;
            answer.map_err(|error| ErrorObject::internal(error.to_string()))
        }
        .boxed()
    });
    let (slowly, told) = (release.clone(), said.clone());
    server.register_tool(&json!({"name": "slow"}), move |call| {
        let (release, said) = (slowly.clone(), told.clone());
        async move {
            notify_progress(&call).await;
            let _ = said.send("started");
            release.acquire().await.unwrap().forget();
            notify_progress(&call).await;
            Ok(text_result("slowly"))
        }
        .boxed()
    });
    server.register_tool(&json!({"name": "wait"}), move |call| {
        let (said, release) = (said.clone(), release.clone());
        async move {
            let _ = said.send("started");
            tokio::select! {
                permit = release.acquire() => permit.unwrap().forget(),
                () = call.incoming.cancel.cancelled() => drop(said.send("cancelled")),
            }
            Ok(text_result("waited"))
        }
        .boxed()
    });
    server
}

async fn notify_progress(call: &ToolCall) {
    let meta: Value =
        call.meta.as_ref().map_or(Value::Null, |meta| serde_json::from_str(meta.get()).unwrap());
    let params = to_raw(&json!({"progressToken": meta["progressToken"], "progress": 0.50}));
    call.incoming.peer.notify("notifications/progress", Some(params)).await.unwrap();
}

/// A client's service: answers sampling requests, and passes on the names of notifications.
pub(crate) struct Listener(mpsc::UnboundedSender<String>);

impl Listener {
    pub(crate) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<String>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Arc::new(Listener(sender)), receiver)
    }
}

impl Service for Listener {
    fn request(
        &self,
        request: Request,
        _incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        async move {
            match request.method.as_str() {
                "sampling/createMessage" => Ok(to_raw(&json!({"role": "assistant"}))),
                other => Err(ErrorObject::method_not_found(other)),
            }
        }
        .boxed()
    }

    fn notification(&self, notification: Notification, _peer: Peer) {
        let _ = self.0.send(notification.method);
    }
}
