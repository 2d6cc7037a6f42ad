//! A gate in this process, and the ways into it.

use std::future::IntoFuture;
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::http::{HeaderValue, header};
use domain::Caller;
use domain::catalog;
use domain::trust::ItemKind;
use domain::upstream::UpstreamState;
use gateway::front::http::{Front, FrontDoor};
use gateway::front::{View, stdio};
use gateway::operator::{DecisionSource, ReviewedItem, TokenRequest};
use gateway::plan::Plan;
use gateway::spec::{ServerEndpoint, ServerSpec};
use gateway::{GateSettings, Gateway};
use mcp::http::client::Endpoint;
use mcp::http::guard::Guard;
use serde_json::{Value, json};
use store::Store;
use store::read::{Page, Record, RecordFilter};
use tempfile::TempDir;
use testkit::client::{Answers, Client, PATIENCE, able, answers};
use testkit::wait::eventually;
use testkit::wire::Wire;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::server::Server;

/// The secret of the agent token that clients use unless they have another.
const SECRET: &str = "secret";

/// The bytes that may wait in an in-memory stream.
const STREAM_BYTES: usize = 64 * 1024;

pub(crate) struct Gate {
    pub(crate) gateway: Gateway,
    address: SocketAddr,
    _home: TempDir,
}

/// The carrier of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Memory,
    Http,
}

pub(crate) const DOORS: [Door; 2] = [Door::Memory, Door::Http];

/// Reads a config with these servers as one would read a file.
fn read(servers: &[(&str, &Server)], mut config: Value) -> (GateSettings, Plan) {
    config["mcpServers"] = servers.iter().map(|(name, it)| (*name, it.entry.clone())).collect();
    config["search"] = json!({"learned": false});
    let parsed = domain::config::parse(&config.to_string());
    let config = parsed.unwrap_or_else(|faults| panic!("{faults}")).config;
    let specs = config.servers.iter().map(|server| {
        let (_, made) = servers.iter().find(|(name, _)| *name == server.name).unwrap();
        ServerSpec {
            endpoint: ServerEndpoint::Embedded(made.make.clone()),
            ..ServerSpec::configured(server, None)
        }
    });
    let plan = Plan { configured: specs.collect(), ..Plan::default() };
    (GateSettings::from(&config), plan)
}

/// The operator's own decision.
fn by() -> DecisionSource {
    DecisionSource { source: "api", request_id: None }
}

impl Gate {
    /// Starts a gate, and waits until each server has connected or failed.
    pub(crate) async fn start(servers: &[(&str, &Server)], config: Value) -> Gate {
        let gate = Gate::open(servers, config).await;
        gate.gateway.settled(PATIENCE).await;
        gate
    }

    /// Starts a gate with one server `s`.
    pub(crate) async fn of(server: &Server) -> Gate {
        Gate::start(&[("s", server)], json!({})).await
    }

    /// Starts a gate, and waits for no server.
    pub(crate) async fn open(servers: &[(&str, &Server)], config: Value) -> Gate {
        let (settings, plan) = read(servers, config);
        Gate::with(settings, plan).await
    }

    async fn with(settings: GateSettings, plan: Plan) -> Gate {
        let home = tempfile::tempdir().unwrap();
        let rules = domain::config::Config::default().ledger;
        let store = Store::open(home.path(), &rules).unwrap();
        let gateway = Gateway::new(settings, store);
        gateway.tokens().know(SECRET, Caller::agent("agent-token"));
        gateway.start(plan).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let guard = Arc::new(ArcSwap::from_pointee(Guard::new([address.to_string()], [])));
        let door = FrontDoor::new(Front::new(gateway.clone()), Router::new(), guard);
        tokio::spawn(axum::serve(listener, door.router()).into_future());
        Gate { gateway, address, _home: home }
    }

    /// Puts another config into effect.
    pub(crate) async fn reconfigure(&self, servers: &[(&str, &Server)], config: Value) {
        let (settings, plan) = read(servers, config);
        self.gateway.reconfigure(settings, plan).await;
    }

    /// Connects a client that answers no requests.
    pub(crate) async fn client(&self, view: &str) -> Client {
        self.client_at(Door::Memory, view, json!({}), vec![]).await
    }

    /// Connects a client that answers requests with its name.
    pub(crate) async fn able(&self, view: &str, who: &str) -> Client {
        self.able_at(Door::Memory, view, who).await
    }

    pub(crate) async fn able_at(&self, door: Door, view: &str, who: &str) -> Client {
        let mut answers = answers(who);
        answers.push(("custom/question", json!({"answer": 1})));
        self.client_at(door, view, able(), answers).await
    }

    /// Connects a client that answers no requests through each door.
    pub(crate) async fn doors(&self, view: &str) -> [(Door, Client); 2] {
        let client = |door| self.client_at(door, view, json!({}), vec![]);
        [(Door::Memory, client(Door::Memory).await), (Door::Http, client(Door::Http).await)]
    }

    pub(crate) async fn client_at(
        &self,
        door: Door,
        view: &str,
        capabilities: Value,
        answers: Answers,
    ) -> Client {
        match door {
            Door::Memory => self.client_as(SECRET, view, capabilities, answers).await,
            Door::Http => self.http_client(view, capabilities, answers).await,
        }
    }

    /// Connects a client with this token over in-memory streams.
    pub(crate) async fn client_as(
        &self,
        secret: &str,
        view: &str,
        capabilities: Value,
        answers: Answers,
    ) -> Client {
        let ours = self.stream(secret, view);
        Client::greet(capabilities, answers, |service| {
            let (reader, writer) = tokio::io::split(ours);
            mcp::lines::connect(reader, writer, service)
        })
        .await
    }

    async fn http_client(&self, view: &str, capabilities: Value, answers: Answers) -> Client {
        let mut endpoint = Endpoint::new(format!("http://{}{view}", self.address));
        let bearer = HeaderValue::from_str(&format!("Bearer {SECRET}")).unwrap();
        endpoint.headers.push((header::AUTHORIZATION, bearer));
        Client::greet(capabilities, answers, |service| {
            mcp::http::client::connect(endpoint, service).unwrap()
        })
        .await
    }

    /// Opens a session whose messages the test writes itself.
    pub(crate) fn wire(&self, view: &str) -> Wire {
        let (reader, writer) = tokio::io::split(self.stream(SECRET, view));
        Wire::over(reader, writer)
    }

    fn stream(&self, secret: &str, view: &str) -> tokio::io::DuplexStream {
        let (ours, theirs) = tokio::io::duplex(STREAM_BYTES);
        let (gateway, view) = (self.gateway.clone(), named(view));
        let caller: Arc<Caller> = gateway.tokens().caller(secret).expect("a valid token");
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(theirs);
            let service = view.open(&gateway, &caller);
            stdio::serve(service, reader, writer, CancellationToken::new()).await;
        });
        ours
    }

    /// Returns a server as the catalog has it now.
    pub(crate) fn server(&self, name: &str) -> Arc<catalog::Server> {
        self.gateway.catalog().server(name).expect("a known server").clone()
    }

    /// Waits until a server is connected.
    pub(crate) async fn ready(&self, name: &str) {
        let is_ready = || self.server(name).state == UpstreamState::Ready;
        eventually(|| async { is_ready().then_some(()) }).await;
    }

    /// Returns the records, newest first.
    pub(crate) async fn records(&self) -> Vec<Record> {
        self.gateway.store().settled().await;
        let page = Page::first(store::read::PAGE_MAX);
        self.gateway.store().read().activity(&RecordFilter::default(), &page).unwrap().records
    }

    pub(crate) async fn disable_server(&self, name: &str) {
        self.gateway.disable_server(&by(), name).await.unwrap();
    }

    pub(crate) async fn disable_tool(&self, server: &str, tool: &str) {
        let tool = domain::tool::ToolName { server: server.to_owned(), tool: tool.to_owned() };
        self.gateway.disable_tool(&by(), &tool).await.unwrap();
    }

    /// Approves an item of server `s` in its pending version.
    pub(crate) async fn approve(&self, kind: ItemKind, name: &str) {
        let items = self.gateway.items("s").await.unwrap();
        let is_it = |item: &&store::state::ServerItem| item.kind == kind.as_str();
        let item = items.iter().filter(is_it).find(|item| item.name == name).unwrap();
        let fingerprint = item.pending.as_ref().unwrap().fingerprint.clone();
        let reviewed = ReviewedItem { kind, name: name.to_owned(), fingerprint };
        self.gateway.approve_items(&by(), "s", &[reviewed]).await.unwrap();
    }

    /// Issues a token with this scope and returns its secret.
    pub(crate) async fn token(&self, name: &str, scope: Value) -> String {
        let scope = serde_json::from_value(scope).unwrap();
        let request = TokenRequest { name: name.to_owned(), scope, expires_in: None };
        self.gateway.make_token(&by(), request).await.unwrap().secret
    }
}

/// Returns the view with this path.
fn named(path: &str) -> View {
    match path.strip_prefix("/mcp").expect("a view") {
        "" => View::Discovery,
        "/all" => View::All,
        rest => View::Server(rest.strip_prefix("/s/").expect("a server").to_owned()),
    }
}
