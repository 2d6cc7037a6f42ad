//! The messages between a wrapped server and its client: most pass unchanged; calls and lists go
//! through the gate.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use domain::Caller;
use domain::method::Method;
use domain::policy::ServerRules;
use mcp::error::INVALID_REQUEST;
use mcp::limits::CLIENT_NAME_BYTES_MAX;
use mcp::lines::{Line, LineReader};
use mcp::message::{BATCH_FORBIDDEN, BadFrame, Frame, Message, Request, Response};
use mcp::version::Version;
use mcp::{ErrorObject, Id, handshake};
use provider::ProviderError;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Gateway;
use crate::front::wrap::batches::Batches;
use crate::front::wrap::in_flight::{CallsInFlight, Handover};
use crate::front::wrap::listing::Listings;
use crate::place::{ClientRoots, ServerPlace};

/// A server to be wrapped.
pub struct WrappedServer {
    pub name: Arc<str>,
    pub rules: Arc<ServerRules>,
    pub caller: Arc<Caller>,
    pub place: ServerPlace,
}

/// The relay between client and server.
pub(super) struct Relay {
    pub(super) gateway: Gateway,
    pub(super) name: Arc<str>,
    pub(super) caller: Arc<Caller>,
    pub(super) session: Arc<str>,
    pub(super) client: OnceLock<Arc<str>>,
    place: ServerPlace,
    noted: Mutex<NotedRequests>,
    to_client: Outlet,
    to_server: Outlet,
    pub(super) calls: CallsInFlight,
    pub(super) batches: Batches,
    /// The id of the client's `initialize`, until it is answered.
    greeting: Mutex<Option<Id>>,
    version: OnceLock<Version>,
    pub(super) handover: Handover,
    pub(super) listings: Listings,
    pub(super) running: TaskTracker,
    pub(super) server_ended: CancellationToken,
}

/// Requests whose responses the gate reads on their way.
#[derive(Default)]
struct NotedRequests {
    /// The client's `initialize`.
    hello: Option<Id>,
    /// The server's last request for the client's roots.
    roots: Option<Id>,
}

impl Relay {
    pub(super) fn new(
        gateway: &Gateway,
        server: WrappedServer,
        to_client: mpsc::Sender<Bytes>,
        to_server: mpsc::Sender<Bytes>,
    ) -> Relay {
        let listings = Listings::new(gateway, &server.name, server.rules);
        Relay {
            gateway: gateway.clone(),
            name: server.name,
            caller: server.caller,
            session: uuid::Uuid::now_v7().to_string().into(),
            client: OnceLock::new(),
            place: server.place,
            noted: Mutex::default(),
            to_client: Outlet::new(to_client),
            to_server: Outlet::new(to_server),
            calls: CallsInFlight::default(),
            batches: Batches::default(),
            greeting: Mutex::default(),
            version: OnceLock::new(),
            handover: Handover::default(),
            listings,
            running: TaskTracker::new(),
            server_ended: CancellationToken::new(),
        }
    }

    pub(super) async fn read_client(self: Arc<Self>, reader: impl AsyncRead + Unpin) {
        let mut reader = LineReader::new(reader);
        while let Ok(Some(line)) = reader.next().await {
            let refused = match line {
                Line::Whole(line) => self.from_client(trimmed(line.freeze())).await,
                Line::TooLong(_) => Err(BadFrame::new(INVALID_REQUEST, "the message is too long")),
            };
            if let Err(bad) = refused {
                self.answer(bad.into_response()).await;
            }
        }
    }

    /// Rejects a message that two parsers could read differently.
    async fn from_client(self: &Arc<Self>, line: Bytes) -> Result<(), BadFrame> {
        if line.is_empty() {
            return Ok(());
        }
        match Frame::parse(&line)? {
            Frame::Single(message) => self.message_of_client(message, line).await,
            Frame::Batch(parts) if self.version.get().is_some_and(|it| it.allows_batches()) => {
                self.batch_of_client(parts, &line).await
            }
            Frame::Batch(_) => Err(BadFrame::new(INVALID_REQUEST, BATCH_FORBIDDEN)),
        }
    }

    /// Passes the messages of a batch one by one, each with its own text.
    async fn batch_of_client(
        self: &Arc<Self>,
        parts: Vec<Result<Message, BadFrame>>,
        line: &[u8],
    ) -> Result<(), BadFrame> {
        let texts: Vec<&RawValue> = serde_json::from_slice(line)
            .map_err(|_| BadFrame::new(INVALID_REQUEST, "the batch is not an array"))?;
        let mut requests = Vec::new();
        let mut known = Vec::new();
        let mut messages = Vec::new();
        for (part, text) in parts.into_iter().zip(texts) {
            match part {
                Ok(message) => {
                    if let Message::Request(request) = &message {
                        requests.push(request.id.clone());
                    }
                    messages.push((message, Bytes::copy_from_slice(text.get().as_bytes())));
                }
                Err(bad) => known.push(Message::from(bad.into_response()).to_line().into()),
            }
        }
        let opened = self.batches.open(&requests, known);
        if let Some(line) = opened.map_err(|words| BadFrame::new(INVALID_REQUEST, words))? {
            self.send_client(line).await;
        }
        for (message, line) in messages {
            if let Err(bad) = self.message_of_client(message, line).await {
                self.answer(bad.into_response()).await;
            }
        }
        Ok(())
    }

    async fn message_of_client(
        self: &Arc<Self>,
        message: Message,
        line: Bytes,
    ) -> Result<(), BadFrame> {
        match message {
            Message::Request(request) => self.request(request, line).await?,
            Message::Notification(notification)
                if Method::of_notification(&notification.method).is_some() =>
            {
                self.start_notification(notification, line);
            }
            Message::Notification(notification) => {
                self.send_server(line).await;
                match notification.method.as_str() {
                    "notifications/initialized" => self.list().await,
                    "notifications/cancelled" => self.cancel(notification.params.as_deref()),
                    _ => {}
                }
            }
            Message::Response(response) => {
                self.note_roots(&response);
                self.send_server(line).await;
            }
        }
        Ok(())
    }

    async fn request(self: &Arc<Self>, request: Request, line: Bytes) -> Result<(), BadFrame> {
        match request.method.as_str() {
            "tools/call" => return self.start_call(Method::ToolCall, request, line),
            "tools/list" => self.listings.expect_clients(request.id),
            "initialize" => self.note_client(&request),
            other => {
                if let Some(method) = Method::of_request(other) {
                    return self.start_call(method, request, line);
                }
            }
        }
        self.send_server(line).await;
        Ok(())
    }

    pub(super) async fn read_server(self: Arc<Self>, reader: impl AsyncRead + Unpin) {
        let mut reader = LineReader::new(reader);
        while let Ok(Some(line)) = reader.next().await {
            match line {
                Line::Whole(line) => self.from_server(trimmed(line.freeze())).await,
                Line::TooLong(answered) => {
                    tracing::warn!(server = %self.name, "dropped a message that is too long");
                    if let Some(id) = answered {
                        let words = "the server's response is too large";
                        self.fail(id, ProviderError::TooLarge, words).await;
                    }
                }
            }
        }
        self.calls.end_all();
        self.server_ended.cancel();
    }

    async fn from_server(self: &Arc<Self>, line: Bytes) {
        match Frame::parse(&line) {
            Ok(Frame::Single(message)) => self.message_of_server(message, line).await,
            Ok(Frame::Batch(parts)) if self.version.get().is_some_and(|it| it.allows_batches()) => {
                self.batch_of_server(parts, &line).await;
            }
            Ok(Frame::Batch(parts)) => self.reject_batch(parts, BATCH_FORBIDDEN).await,
            Err(bad) if self.has_failed(&bad) => {}
            Err(bad) => match serde_json::from_slice::<Vec<&RawValue>>(&line) {
                Ok(texts) => {
                    let parts = texts.into_iter().map(|text| Message::parse(text.get())).collect();
                    self.reject_batch(parts, &bad.fault()).await;
                }
                // Anything else a server may print.
                Err(_) => self.send_client(line).await,
            },
        }
    }

    /// Passes the messages of a server's batch one by one, each with its own text.
    async fn batch_of_server(self: &Arc<Self>, parts: Vec<Result<Message, BadFrame>>, line: &[u8]) {
        let texts: Vec<&RawValue> = serde_json::from_slice(line).unwrap_or_default();
        for (part, text) in parts.into_iter().zip(texts) {
            let text = Bytes::copy_from_slice(text.get().as_bytes());
            match part {
                Ok(message) => self.message_of_server(message, text).await,
                Err(bad) if self.has_failed(&bad) => {}
                Err(_) => self.send_client(text).await,
            }
        }
    }

    /// Drops a batch that is not allowed, and ends the requests that it answers.
    async fn reject_batch(&self, parts: Vec<Result<Message, BadFrame>>, why: &str) {
        tracing::warn!(server = %self.name, why, "dropped a batch");
        for part in parts {
            match part {
                Ok(Message::Response(Response { id: Some(id), .. })) => {
                    self.fail(id, ProviderError::Lost(why.to_owned()), why).await;
                }
                Ok(_) => {}
                Err(bad) => {
                    self.has_failed(&bad);
                }
            }
        }
    }

    async fn message_of_server(self: &Arc<Self>, message: Message, line: Bytes) {
        match message {
            Message::Response(response) => self.response(response, line).await,
            Message::Notification(notification) => {
                let changed = notification.method == "notifications/tools/list_changed";
                self.send_client(line).await;
                if changed {
                    self.list().await;
                }
            }
            Message::Request(request) => {
                if request.method == "roots/list" {
                    self.noted().roots = Some(request.id);
                }
                self.send_client(line).await;
            }
        }
    }

    /// Fails the call that an invalid message answers; returns false if it answers none.
    fn has_failed(&self, bad: &BadFrame) -> bool {
        let error = || ProviderError::Lost(bad.fault());
        bad.answered().is_some_and(|id| self.calls.fail(id, error()))
    }

    /// Ends a request whose response cannot be passed on.
    async fn fail(&self, id: Id, lost: ProviderError, words: &str) {
        let error = ErrorObject::internal(words);
        if self.listings.is_ours(&id) {
            let _ = self.listings.take_ours(&id, Err(error));
        } else if !self.calls.fail(&id, lost) {
            self.answer(Response { id: Some(id), outcome: Err(error) }).await;
        }
    }

    async fn response(self: &Arc<Self>, response: Response, line: Bytes) {
        let Some(id) = &response.id else {
            return self.send_client(line).await;
        };
        if self.greeting().take_if(|greeting| greeting == id).is_some() {
            self.note_version(&response);
        }
        if self.listings.is_ours(id) {
            if let Some(next) = self.listings.take_ours(id, response.outcome) {
                self.send_server(next).await;
            }
            return;
        }
        if let Ok(result) = &response.outcome
            && self.noted().hello.take_if(|hello| *hello == *id).is_some()
        {
            self.listings.set_info(handshake::server_name(result));
        }
        if let Ok(result) = &response.outcome
            && let Some(shown) = self.listings.take_clients(id, result)
        {
            return self.answer(Response { id: response.id, outcome: Ok(shown) }).await;
        }
        if let Some(line) = self.calls.answer(id, response.outcome, line) {
            self.respond(id, line).await;
        }
    }

    fn note_version(&self, response: &Response) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Welcome {
            protocol_version: String,
        }
        let welcome = response.outcome.as_ref().ok();
        let welcome = welcome.and_then(|it| serde_json::from_str::<Welcome>(it.get()).ok());
        if let Some(version) = welcome.and_then(|it| Version::parse(&it.protocol_version)) {
            let _ = self.version.set(version);
        }
    }

    fn greeting(&self) -> MutexGuard<'_, Option<Id>> {
        self.greeting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests the server's tool list, so that calls can be checked against it.
    async fn list(&self) {
        let request = self.listings.ask();
        self.send_server(request).await;
    }

    /// Notes the folder that the client names to the server.
    fn note_roots(&self, response: &Response) {
        let Response { id: Some(id), outcome: Ok(answer) } = response else { return };
        if self.noted().roots.take_if(|roots| *roots == *id).is_some() {
            let place = self.place.clone().with_roots(ClientRoots::of_answer(answer));
            self.gateway.shared.registry.set_place(&self.name, place);
        }
    }

    fn noted(&self) -> MutexGuard<'_, NotedRequests> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_client(&self, request: &Request) {
        self.noted().hello = Some(request.id.clone());
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            client_info: ClientInfo,
        }
        #[derive(Deserialize)]
        struct ClientInfo {
            name: String,
        }
        *self.greeting() = Some(request.id.clone());
        let params = request.params.as_deref();
        let params = params.and_then(|params| serde_json::from_str::<Params>(params.get()).ok());
        if let Some(Params { client_info: ClientInfo { name } }) = params {
            let _ = self.client.set(name[..name.floor_char_boundary(CLIENT_NAME_BYTES_MAX)].into());
        }
    }

    async fn answer(&self, response: Response) {
        let id = response.id.clone();
        let line = Message::from(response).to_line().into();
        match id {
            Some(id) => self.respond(&id, line).await,
            None => self.send_client(line).await,
        }
    }

    /// Sends the client a response, or keeps it for the rest of its batch.
    pub(super) async fn respond(&self, id: &Id, line: Bytes) {
        if let Some(line) = self.batches.take(id, line) {
            self.send_client(line).await;
        }
    }

    pub(super) async fn send_client(&self, line: Bytes) {
        // Its reader notices that it is gone.
        let _ = self.to_client.send(line).await;
    }

    /// Returns false if the server is gone, so that it does not get the line.
    pub(super) async fn send_server(&self, line: Bytes) -> bool {
        self.to_server.send(line).await
    }

    pub(super) fn close_server(&self) {
        self.to_server.close();
    }

    pub(super) fn close_client(&self) {
        self.to_client.close();
    }
}

/// The outgoing lines to one side.
struct Outlet(Mutex<Option<mpsc::Sender<Bytes>>>);

impl Outlet {
    fn new(lines: mpsc::Sender<Bytes>) -> Outlet {
        Outlet(Mutex::new(Some(lines)))
    }

    /// Returns false if the other side is gone.
    async fn send(&self, line: Bytes) -> bool {
        let lines = self.lock().clone();
        match lines {
            Some(lines) => lines.send(line).await.is_ok(),
            None => false,
        }
    }

    /// Closes this side for sending.
    fn close(&self) {
        self.lock().take();
    }

    fn lock(&self) -> MutexGuard<'_, Option<mpsc::Sender<Bytes>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn trimmed(line: Bytes) -> Bytes {
    let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'));
    line.slice(..end.map_or(0, |end| end + 1))
}
