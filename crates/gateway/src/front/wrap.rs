//! One server and its one client, with the gate in between: every message is passed on byte by
//! byte, in both directions and from the first one; calls go through the pipeline on their way.

mod calls;
mod listing;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use domain::Caller;
use domain::policy::ServerRules;
use mcp::error::INVALID_REQUEST;
use mcp::lines::{Line, LineReader};
use mcp::message::{BadFrame, Frame, Message, Request, Response};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Gateway;
use crate::front::wrap::calls::{Calls, Handover};
use crate::front::wrap::listing::Listings;
use crate::limits::WRAP_LINES_WAITING_MAX;

/// A server to be wrapped.
pub struct Wrapped {
    pub name: Arc<str>,
    pub rules: Arc<ServerRules>,
    pub caller: Arc<Caller>,
}

/// One end of the conversation.
pub struct End<R, W> {
    pub reader: R,
    pub writer: W,
}

/// Passes messages on until either side ends its part or `stop` is cancelled.
pub async fn serve<CR, CW, SR, SW>(
    gateway: &Gateway,
    wrapped: Wrapped,
    client: End<CR, CW>,
    server: End<SR, SW>,
    stop: CancellationToken,
) where
    CR: AsyncRead + Unpin + Send + 'static,
    CW: AsyncWrite + Unpin + Send + 'static,
    SR: AsyncRead + Unpin + Send + 'static,
    SW: AsyncWrite + Unpin + Send + 'static,
{
    let (to_client, for_client) = mpsc::channel(WRAP_LINES_WAITING_MAX);
    let (to_server, for_server) = mpsc::channel(WRAP_LINES_WAITING_MAX);
    let writing_client = tokio::spawn(write(client.writer, for_client));
    let writing_server = tokio::spawn(write(server.writer, for_server));
    let relay = Relay::new(gateway, wrapped, to_client, to_server);
    let from_server = tokio::spawn(relay.clone().read_server(server.reader));
    tokio::select! {
        () = relay.clone().read_client(client.reader) => {}
        () = stop.cancelled() => {}
        () = relay.server_ended.cancelled() => {}
    }
    // The server's stdin closes once the calls that run have been handed over.
    relay.running.close();
    relay.close_server();
    let _ = writing_server.await;
    let _ = from_server.await;
    relay.running.wait().await;
    relay.close_client();
    drop(relay);
    let _ = writing_client.await;
}

/// What stands between the two.
struct Relay {
    gateway: Gateway,
    name: Arc<str>,
    caller: Arc<Caller>,
    session: Arc<str>,
    client: OnceLock<Arc<str>>,
    /// Taken away when nothing more may be sent.
    to_client: Mutex<Option<mpsc::Sender<Bytes>>>,
    to_server: Mutex<Option<mpsc::Sender<Bytes>>>,
    calls: Calls,
    sent: Handover,
    listings: Listings,
    running: TaskTracker,
    server_ended: CancellationToken,
}

impl Relay {
    fn new(
        gateway: &Gateway,
        wrapped: Wrapped,
        to_client: mpsc::Sender<Bytes>,
        to_server: mpsc::Sender<Bytes>,
    ) -> Arc<Relay> {
        let listings = Listings::new(gateway, &wrapped.name, wrapped.rules);
        let relay = Arc::new(Relay {
            gateway: gateway.clone(),
            name: wrapped.name,
            caller: wrapped.caller,
            session: uuid::Uuid::now_v7().to_string().into(),
            client: OnceLock::new(),
            to_client: Mutex::new(Some(to_client)),
            to_server: Mutex::new(Some(to_server)),
            calls: Calls::default(),
            sent: Handover::default(),
            listings,
            running: TaskTracker::new(),
            server_ended: CancellationToken::new(),
        });
        gateway.shared.registry.insert_fixed(&relay.name, calls::provider(&relay));
        relay
    }

    async fn read_client(self: Arc<Self>, reader: impl AsyncRead + Unpin) {
        let mut reader = LineReader::new(reader);
        while let Ok(Some(line)) = reader.next().await {
            let refused = match line {
                Line::Whole(line) => self.from_client(trimmed(line.freeze())).await,
                Line::TooLong => Err(BadFrame::new(INVALID_REQUEST, "the message is too long")),
            };
            if let Err(bad) = refused {
                self.answer(bad.into_response()).await;
            }
        }
    }

    /// A message that two readers could take for different ones does not pass.
    async fn from_client(self: &Arc<Self>, line: Bytes) -> Result<(), BadFrame> {
        if line.is_empty() {
            return Ok(());
        }
        match Frame::parse(&line)? {
            Frame::Single(Message::Request(request)) => self.request(request, line).await?,
            Frame::Single(Message::Notification(notification)) => {
                self.send_server(line).await;
                match notification.method.as_str() {
                    "notifications/initialized" => self.list().await,
                    "notifications/cancelled" => self.cancel(notification.params.as_deref()),
                    _ => {}
                }
            }
            Frame::Single(Message::Response(_)) => self.send_server(line).await,
            Frame::Batch(_) => {
                return Err(BadFrame::new(INVALID_REQUEST, "batches are not passed on"));
            }
        }
        Ok(())
    }

    async fn request(self: &Arc<Self>, request: Request, line: Bytes) -> Result<(), BadFrame> {
        match request.method.as_str() {
            "tools/call" => return self.start_call(request, line),
            "tools/list" => self.listings.expect_clients(request.id),
            "initialize" => self.note_client(&request),
            _ => {}
        }
        self.send_server(line).await;
        Ok(())
    }

    async fn read_server(self: Arc<Self>, reader: impl AsyncRead + Unpin) {
        let mut reader = LineReader::new(reader);
        while let Ok(Some(line)) = reader.next().await {
            match line {
                Line::Whole(line) => self.from_server(trimmed(line.freeze())).await,
                Line::TooLong => tracing::warn!(server = %self.name, "a message was too long"),
            }
        }
        self.calls.end_all();
        self.server_ended.cancel();
    }

    async fn from_server(self: &Arc<Self>, line: Bytes) {
        match Frame::parse(&line) {
            Ok(Frame::Single(Message::Response(response))) => self.response(response, line).await,
            Ok(Frame::Single(Message::Notification(notification))) => {
                let changed = notification.method == "notifications/tools/list_changed";
                self.send_client(line).await;
                if changed {
                    self.list().await;
                }
            }
            // Requests to the client, and whatever else a server may print.
            Ok(Frame::Single(Message::Request(_)) | Frame::Batch(_)) | Err(_) => {
                self.send_client(line).await;
            }
        }
    }

    async fn response(self: &Arc<Self>, response: Response, line: Bytes) {
        let Some(id) = &response.id else {
            return self.send_client(line).await;
        };
        if self.listings.is_ours(id) {
            if let Some(next) = self.listings.take_ours(id, response.outcome) {
                self.send_server(next).await;
            }
            return;
        }
        if let Ok(result) = &response.outcome
            && let Some(shown) = self.listings.take_clients(id, result)
        {
            return self.answer(Response { id: response.id, outcome: Ok(shown) }).await;
        }
        if let Some(line) = self.calls.answer(id, response.outcome, line) {
            self.send_client(line).await;
        }
    }

    /// Asks the server for its tools, so that calls can be judged by what it says of them.
    async fn list(&self) {
        let request = self.listings.ask();
        self.send_server(request).await;
    }

    fn note_client(&self, request: &Request) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            client_info: ClientInfo,
        }
        #[derive(Deserialize)]
        struct ClientInfo {
            name: String,
        }
        let params = request.params.as_deref();
        let params = params.and_then(|params| serde_json::from_str::<Params>(params.get()).ok());
        if let Some(params) = params {
            let _ = self.client.set(params.client_info.name.into());
        }
    }

    async fn answer(&self, response: Response) {
        self.send_client(Message::from(response).to_line().into()).await;
    }

    async fn send_client(&self, line: Bytes) {
        send(&self.to_client, line).await;
    }

    async fn send_server(&self, line: Bytes) {
        send(&self.to_server, line).await;
    }

    fn close_server(&self) {
        lock(&self.to_server).take();
    }

    fn close_client(&self) {
        lock(&self.to_client).take();
    }
}

/// Nobody is told where the other side is gone: its end is noticed by its reader.
async fn send(way: &Mutex<Option<mpsc::Sender<Bytes>>>, line: Bytes) {
    let sender = lock(way).clone();
    if let Some(sender) = sender {
        let _ = sender.send(line).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn trimmed(line: Bytes) -> Bytes {
    let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'));
    line.slice(..end.map_or(0, |end| end + 1))
}

async fn write(mut writer: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Bytes>) {
    while let Some(line) = lines.recv().await {
        let mut next = Some(line);
        while let Some(line) = next {
            let written = async {
                writer.write_all(&line).await?;
                writer.write_all(b"\n").await
            };
            if written.await.is_err() {
                return;
            }
            next = lines.try_recv().ok();
        }
        if writer.flush().await.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}
