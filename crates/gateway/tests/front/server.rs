//! Servers inside the test: scripts, fixed texts, or one that hangs up at once. Each notes what it
//! hears.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gateway::spec::MakeServer;
use mcp::message::raw;
use mcp::{ErrorObject, Notification, Peer, Raw, Request, RequestContext, Service};
use serde_json::{Value, json};
use testkit::script::Script;
use testkit::wait::eventually;

/// A server, and its entry in the config. Clones are the same server.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) entry: Value,
    pub(crate) make: MakeServer,
    state: Arc<ServerState>,
}

struct ServerState {
    conduct: Conduct,
    /// The script, or the text of the answer to each method.
    source: Mutex<Value>,
    /// The number of times that the source was replaced.
    version: AtomicU64,
    heard: Mutex<Vec<String>>,
    /// One for each connection, once it is initialized.
    peers: Mutex<Vec<(u32, Peer)>>,
    opened: AtomicU32,
}

#[derive(Clone, Copy)]
enum Conduct {
    Scripted,
    /// Answers each method with its text, and other requests never.
    Written,
    HangsUp,
}

/// The requests that every client makes.
const USUAL: [&str; 7] = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
];

impl Server {
    pub(crate) fn scripted(script: Value) -> Server {
        Server::new(Conduct::Scripted, script)
    }

    /// A server with these texts as its answers; requests for other methods wait forever.
    pub(crate) fn written(answers: Value) -> Server {
        Server::new(Conduct::Written, answers)
    }

    /// A server that ends each connection at the first request.
    pub(crate) fn dead() -> Server {
        Server::new(Conduct::HangsUp, Value::Null)
    }

    fn new(conduct: Conduct, source: Value) -> Server {
        let state = Arc::new(ServerState {
            conduct,
            source: Mutex::new(source),
            version: AtomicU64::default(),
            heard: Mutex::default(),
            peers: Mutex::default(),
            opened: AtomicU32::default(),
        });
        let made = state.clone();
        let make: MakeServer = Arc::new(move || Arc::new(Connection::new(made.clone())));
        Server { entry: json!({"command": "embedded"}), make, state }
    }

    /// Returns the server with another setting in its entry.
    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Server {
        self.entry[key] = value.into();
        self
    }

    /// Makes new tools need no approval, for lists that change on purpose.
    pub(crate) fn accepting_new(self) -> Server {
        self.with("auto_approve", "new")
    }

    /// Replaces the script or the texts, without a notification.
    pub(crate) fn replace(&self, source: Value) {
        *self.state.source.lock().unwrap() = source;
        self.state.version.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the number of connections made so far.
    pub(crate) fn opened(&self) -> u32 {
        self.state.opened.load(Ordering::SeqCst)
    }

    /// Returns the server's end of a connection that it has initialized.
    pub(crate) fn peer(&self, connection: u32) -> Peer {
        let peers = self.state.peers.lock().unwrap();
        let found = peers.iter().find(|(number, _)| *number == connection);
        found.expect("an initialized connection").1.clone()
    }

    /// Waits until the gate has closed a connection.
    pub(crate) async fn ended(&self, connection: u32) {
        let peer = self.peer(connection);
        // The end of a stream is noticed by writing to it.
        eventually(|| async {
            let _ = peer.notify("notifications/message", None).await;
            peer.is_closed().then_some(())
        })
        .await;
    }

    /// Returns every message received, with its params, in order.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.state.heard.lock().unwrap().clone()
    }

    /// Returns the messages received besides calls, lists and the handshake.
    pub(crate) fn heard_besides(&self) -> Vec<String> {
        let heard = self.heard().into_iter();
        let method = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
        heard
            .filter(|line| !USUAL.contains(&&*method(line)))
            .filter(|line| !line.starts_with("notifications/initialized"))
            .collect()
    }

    /// Returns how many messages of one method were received.
    pub(crate) fn count(&self, method: &str) -> usize {
        let start = format!("{method} ");
        self.heard().iter().filter(|line| line.starts_with(&start)).count()
    }

    /// Waits for a message with these words.
    pub(crate) async fn hears(&self, words: &str) -> String {
        eventually(|| async { self.heard().into_iter().find(|line| line.contains(words)) }).await
    }
}

/// One connection to the server.
struct Connection {
    server: Arc<ServerState>,
    number: u32,
    script: Script,
    /// The version of the script that it answers from.
    version: AtomicU64,
}

impl Connection {
    fn new(server: Arc<ServerState>) -> Connection {
        let number = server.opened.fetch_add(1, Ordering::SeqCst) + 1;
        let version = server.version.load(Ordering::SeqCst).into();
        let script = Script::new(server.source.lock().unwrap().clone()).identified(number);
        Connection { server, number, script, version }
    }

    fn hear(&self, method: &str, params: Option<&Raw>) {
        let line = format!("{method} {}", params.map_or("-", |params| params.get()));
        self.server.heard.lock().unwrap().push(line);
    }

    fn refresh(&self) {
        let version = self.server.version.load(Ordering::SeqCst);
        if self.version.swap(version, Ordering::SeqCst) != version {
            self.script.replace(&self.server.source.lock().unwrap());
        }
    }

    async fn answer(&self, request: Request, incoming: RequestContext) -> Result<Raw, ErrorObject> {
        self.hear(&request.method, request.params.as_ref());
        if request.method == "initialize" {
            self.server.peers.lock().unwrap().push((self.number, incoming.peer.clone()));
        }
        match self.server.conduct {
            Conduct::Scripted => {
                self.refresh();
                let (cancel, reason) = (incoming.cancel.clone(), incoming.reason.clone());
                let answer = self.script.request(request, incoming).await;
                if cancel.is_cancelled() {
                    self.hear("cancelled", Some(&mcp::message::to_raw(&reason.text())));
                }
                answer
            }
            Conduct::Written => {
                let text = self.server.source.lock().unwrap()[&request.method].clone();
                match text.as_str() {
                    Some(text) => Ok(raw(text.to_owned())),
                    None => std::future::pending().await,
                }
            }
            Conduct::HangsUp => {
                incoming.peer.close("it is dead");
                Err(ErrorObject::internal("it is dead"))
            }
        }
    }
}

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
