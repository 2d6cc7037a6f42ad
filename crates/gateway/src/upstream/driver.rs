//! Performs what the connection's machine asks for: connects, waits, lists, closes, publishes.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use domain::catalog::{Listing, Server};
use domain::policy::ServerRules;
use domain::tool::Source;
use domain::upstream::{Effect, Event, Machine, State};
use mcp::child::StderrTail;
use mcp::message::Raw;
use mcp::peer::Peer;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::registry::Registry;
use crate::upstream::connection::{self, Connection};
use crate::upstream::endpoint::Endpoint;
use crate::{ServerSpec, limits};

pub(crate) enum Command {
    ListChanged,
    Stop,
}

pub(super) struct Driver {
    name: Arc<str>,
    rules: Arc<ServerRules>,
    endpoint: Endpoint,
    shared: Shared,
    machine: Machine,
    listing: Arc<Listing>,
    connection: Option<Connection>,
    attempt: Option<JoinHandle<Result<Connection, String>>>,
    retry_at: Option<Instant>,
    relist_at: Option<Instant>,
}

/// What the driver waits for.
enum Happening {
    Command(Option<Command>),
    Attempt(Result<Connection, String>),
    Lost(String),
    RetryDue,
    RelistDue,
}

/// What the driver shares with the handle that others hold.
pub(super) struct Shared {
    pub(super) registry: Arc<Registry>,
    pub(super) connect_timeout: Duration,
    pub(super) live: Arc<ArcSwapOption<Peer>>,
    pub(super) state: watch::Sender<State>,
    pub(super) stderr: StderrTail,
}

impl Driver {
    pub(super) fn new(spec: ServerSpec, shared: Shared) -> Driver {
        Driver {
            name: spec.name,
            rules: Arc::new(spec.rules),
            endpoint: spec.endpoint,
            shared,
            machine: Machine::default(),
            listing: Arc::default(),
            connection: None,
            attempt: None,
            retry_at: None,
            relist_at: None,
        }
    }

    pub(super) fn spawn(
        mut self,
        commands: mpsc::WeakSender<Command>,
        receiver: mpsc::Receiver<Command>,
    ) -> JoinHandle<()> {
        self.publish();
        tokio::spawn(self.run(commands, receiver))
    }

    async fn run(
        mut self,
        commands: mpsc::WeakSender<Command>,
        mut receiver: mpsc::Receiver<Command>,
    ) {
        // A disabled server is shown and never started.
        if !self.rules.disabled {
            self.feed(Event::Start, &commands).await;
        } else {
            self.shared.state.send_replace(State::Stopped);
        }
        while *self.machine.state() != State::Stopped {
            let event = match self.next(&mut receiver).await {
                Happening::Command(Some(Command::ListChanged)) => {
                    self.relist_at = Some(Instant::now() + limits::RELIST_PAUSE);
                    continue;
                }
                Happening::Command(Some(Command::Stop) | None) => Event::Stop,
                Happening::RelistDue => match self.relist().await {
                    Ok(()) => continue,
                    Err(reason) => failed(reason),
                },
                Happening::Attempt(Ok(connection)) => self.adopt(connection).await,
                Happening::Attempt(Err(reason)) | Happening::Lost(reason) => failed(reason),
                Happening::RetryDue => Event::RetryDue,
            };
            self.feed(event, &commands).await;
        }
    }

    async fn next(&mut self, receiver: &mut mpsc::Receiver<Command>) -> Happening {
        let (retry_at, relist_at) = (self.retry_at, self.relist_at);
        tokio::select! {
            command = receiver.recv() => Happening::Command(command),
            attempt = finished(&mut self.attempt) => {
                self.attempt = None;
                Happening::Attempt(attempt)
            }
            reason = lost(&mut self.connection) => Happening::Lost(reason),
            () = due(retry_at) => {
                self.retry_at = None;
                Happening::RetryDue
            }
            () = due(relist_at) => {
                self.relist_at = None;
                Happening::RelistDue
            }
        }
    }

    async fn feed(&mut self, event: Event, commands: &mpsc::WeakSender<Command>) {
        for effect in self.machine.on(event) {
            match effect {
                Effect::Connect => self.connect(commands.clone()),
                Effect::Disconnect => self.disconnect().await,
                Effect::RetryAfter(wait) => self.retry_at = Some(Instant::now() + wait),
                Effect::Publish => self.publish(),
            }
        }
    }

    fn connect(&mut self, commands: mpsc::WeakSender<Command>) {
        let (endpoint, stderr) = (self.endpoint.clone(), self.shared.stderr.clone());
        let timeout = self.shared.connect_timeout;
        self.attempt = Some(tokio::spawn(async move {
            connection::open(&endpoint, commands, &stderr, timeout).await
        }));
    }

    async fn adopt(&mut self, mut connection: Connection) -> Event {
        self.list(std::mem::take(&mut connection.tools)).await;
        self.shared.live.store(Some(Arc::new(connection.peer.clone())));
        self.connection = Some(connection);
        Event::Connected
    }

    async fn relist(&mut self) -> Result<(), String> {
        let Some(connection) = &self.connection else {
            return Ok(());
        };
        let tools = mcp::client::list_tools(&connection.peer, self.shared.connect_timeout)
            .await
            .map_err(|error| error.to_string())?;
        self.list(tools).await;
        self.publish();
        Ok(())
    }

    async fn list(&mut self, tools: Vec<Raw>) {
        let source = Source::Mcp(self.name.clone());
        // Reading and indexing thousands of tools takes milliseconds.
        let listing = tokio::task::spawn_blocking(move || Listing::new(&source, tools)).await;
        self.listing = Arc::new(listing.unwrap_or_default());
        for fault in &self.listing.faults {
            tracing::warn!(server = %self.name, "{fault}");
        }
    }

    async fn disconnect(&mut self) {
        self.shared.live.store(None);
        self.relist_at = None;
        if let Some(attempt) = self.attempt.take() {
            // Dropping the attempt ends the child that it may have started.
            attempt.abort();
        }
        if let Some(connection) = self.connection.take() {
            connection.close().await;
        }
    }

    fn publish(&mut self) {
        let state = self.machine.state().clone();
        match &state {
            State::Ready => {
                tracing::info!(server = %self.name, tools = self.listing.tools.len(), "connected");
            }
            State::Waiting(reason) => tracing::warn!(server = %self.name, reason, "unavailable"),
            State::Idle | State::Connecting | State::Stopped => {}
        }
        self.shared.registry.publish(Server {
            name: self.name.clone(),
            transport: self.endpoint.transport(),
            rules: self.rules.clone(),
            state: state.clone(),
            listing: self.listing.clone(),
        });
        self.shared.state.send_replace(state);
    }
}

fn failed(reason: String) -> Event {
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    Event::Failed { reason, jitter: f64::from(random) / f64::from(u32::MAX) }
}

async fn finished(
    attempt: &mut Option<JoinHandle<Result<Connection, String>>>,
) -> Result<Connection, String> {
    match attempt {
        Some(attempt) => attempt.await.unwrap_or_else(|error| Err(error.to_string())),
        None => std::future::pending().await,
    }
}

async fn lost(connection: &mut Option<Connection>) -> String {
    match connection {
        Some(connection) => {
            let closed = connection.peer.closed().await;
            connection.reason(closed.to_string()).await
        }
        None => std::future::pending().await,
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
