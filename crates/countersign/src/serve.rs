//! `countersign serve`: parse, build, spawn, drain.

mod ready;

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use admin::page::{GateAddress, PageSessions};
use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use domain::Refusal;
use domain::config::Config;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gateway::Gateway;
use gateway::events::Events;
use gateway::front::http::{Front, FrontDoor, enter, refused};
use gateway::front::visitor::{Visitor, Visitors};
use gateway::front::{View, stdio};
use gateway::plan::Reach;
use hyper_util::rt::TokioIo;
use mcp::http::guard::Guard;
use mcp::task;
use serde::Deserialize;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::ready::Ready;
use crate::app::{self, App, Purpose};
use crate::cli::Serve;
use crate::control::{LINES_PATH, LINES_PROTOCOL};
use crate::exit::Failure;
use crate::home::Home;
use crate::listen::bind::{Bound, bind_socket, bind_tcp};
use crate::listen::lanes::Lanes;
use crate::listen::tls::Tls;
use crate::listen::{Listening, Wire};
use crate::output::progress::while_waiting;
use crate::reload::{self, Reload};
use crate::site::Site;
use crate::spool::Spool;
use crate::step;
use crate::stop_signal::StopSignal;

pub(crate) async fn run(site: &Site, args: Serve) -> Result<(), Failure> {
    run_with(site, args, Purpose::Work, |_| pending().boxed()).await
}

/// Serves while `companion` runs alongside, until either gets a signal to stop.
pub(crate) async fn run_with(
    site: &Site,
    args: Serve,
    purpose: Purpose,
    companion: impl FnOnce(Gateway) -> BoxFuture<'static, Result<(), Failure>>,
) -> Result<(), Failure> {
    let mut stop = StopSignal::new()?;
    let seen = reload::version(site.place());
    let own = site.own()?.clone();
    let source = site.source()?;
    source.log_notes();
    let listen = args.listen.unwrap_or(source.config.listen);
    check_reach(listen, &source.config)?;
    let wire = match source.config.tls.clone() {
        Some(files) => Wire::Tls(Arc::new(Tls::load(files).map_err(Failure::config)?)),
        None => Wire::Plain,
    };
    let home = site.home()?;
    home.prepare()?;
    let _lock = home.lock()?;
    step::purge(home.path());
    let Bound { address, listeners, taken } = bind_tcp(listen)?;
    let socket = bind_socket(&home.control_socket())?;
    let events_socket = bind_socket(&home.events_socket())?;
    let app = app::build(site, Reach::All, purpose)?;
    app::set_retention(app.gateway.store(), &source.config).await;
    let origins = GateAddress::of(&source.config, address, taken).map_err(refused_start)?;
    let guard = reload::guard(&source.config, address.port(), &origins);
    let guard = Arc::new(ArcSwap::from_pointee(guard));
    let sessions = Arc::new(PageSessions::new(origins.clone()));
    let lanes =
        Lanes::start().map_err(|error| Failure::system(format!("cannot start: {error}")))?;
    let serving = Serving::new(&app, sessions.clone(), lanes);
    serving.spawn_public(listeners, wire, guard.clone(), source.config.behind_proxy);
    serving.spawn_local(socket);
    let reload = Reload {
        place: site.place().clone(),
        home: home.clone(),
        seen,
        trusted: reload::trusted(source),
        own,
        gateway: app.gateway.clone(),
        servers: app.servers,
        guard,
        port: address.port(),
        address: origins,
    };
    task::spawn_tracked(&serving.connections, reload.watch(serving.stop.clone()));
    task::spawn_tracked(&serving.connections, app.gateway.clone().watch_decisions());
    task::spawn_tracked(&serving.connections, app.gateway.clone().make_vectors());
    let events = Events::new(app.gateway.clone());
    let taking = take_spool(home, &app.gateway, &events, &serving.hear);
    let hearing = task::spawn(events.serve(events_socket, serving.hear.clone()));
    let place = site.place();
    let ready =
        Ready { place, home, address, config: &source.config, purpose, sessions: &sessions };
    ready.announce(&args.output)?;
    let result = tokio::select! {
        () = stop.received() => Ok(()),
        result = companion(app.gateway.clone()) => result,
    };
    tracing::info!("stopping");
    let _ = std::fs::remove_file(home.events_socket());
    serving.hear.cancel();
    let _ = tokio::join!(hearing, taking);
    while_waiting("stopping: running calls may finish", serving.drain()).await;
    app.telemetry.end().await;
    let _ = std::fs::remove_file(home.control_socket());
    result
}

fn refused_start(refusal: Refusal) -> Failure {
    Failure::system(refusal.message)
}

/// Starts recording the events that hooks write to the spool.
pub(crate) fn take_spool(
    home: &Home,
    gateway: &Gateway,
    events: &Events,
    stop: &CancellationToken,
) -> JoinHandle<()> {
    let spool = Spool::of(home);
    if let Err(error) = spool.tidy(gateway.store()) {
        tracing::warn!("cannot tidy up the spool: {error}");
    }
    task::spawn(spool.watch(events.clone(), stop.clone()))
}

/// Refuses an address that other machines can reach without TLS, since anybody on the way could read
/// the tokens.
fn check_reach(listen: SocketAddr, config: &Config) -> Result<(), Failure> {
    if listen.ip().is_loopback() || config.is_protected() {
        return Ok(());
    }
    Err(Failure::config(format!(
        "{listen} can be reached from other machines, and tokens would cross the network in plain \
         text: set 'tls' with 'cert' and 'key' in the config, or 'behind_proxy': true if a TLS \
         proxy is in front, or listen on 127.0.0.1"
    )))
}

/// The parts that run while the gate serves.
struct Serving {
    gateway: Gateway,
    front: Front,
    routes: Router,
    connections: TaskTracker,
    lanes: Lanes,
    stop: CancellationToken,
    /// Stops receiving events, before the ledger is closed.
    hear: CancellationToken,
}

impl Serving {
    fn new(app: &App, sessions: Arc<PageSessions>, lanes: Lanes) -> Serving {
        let front = Front::new(app.gateway.clone());
        let routes = admin::router(app.gateway.clone(), sessions);
        Serving {
            gateway: app.gateway.clone(),
            front,
            routes,
            connections: TaskTracker::new(),
            lanes,
            stop: CancellationToken::new(),
            hear: CancellationToken::new(),
        }
    }

    fn spawn_public(
        &self,
        listeners: Vec<TcpListener>,
        wire: Wire,
        guard: Arc<ArcSwap<Guard>>,
        behind_proxy: bool,
    ) {
        if let Wire::Tls(tls) = &wire {
            task::spawn_tracked(&self.connections, tls.clone().watch(self.stop.clone()));
        }
        let door = FrontDoor::new(self.front.clone(), self.routes.clone(), guard);
        let visitors = Visitors::new(behind_proxy);
        let (lanes, stop) = (self.lanes.clone(), self.stop.clone());
        let service = Listening { door, visitors, wire, lanes, stop };
        for listener in listeners {
            let serving = service.clone().serve(listener, self.connections.clone());
            task::spawn_tracked(&self.connections, serving);
        }
    }

    fn spawn_local(&self, listener: UnixListener) {
        let lines = Lines {
            gateway: self.gateway.clone(),
            connections: self.connections.clone(),
            stop: self.stop.clone(),
        };
        let lines = Router::new().route(LINES_PATH, get(upgrade)).with_state(lines);
        let guard = Arc::new(ArcSwap::from_pointee(Guard::local()));
        let routes = self.routes.clone().merge(lines);
        let door = FrontDoor::new(self.front.clone(), routes, guard);
        let visitors = Visitors::new(false);
        let (lanes, stop) = (self.lanes.clone(), self.stop.clone());
        let service = Listening { door, visitors, wire: Wire::Local, lanes, stop };
        task::spawn_tracked(&self.connections, service.serve(listener, self.connections.clone()));
    }

    /// Rejects new calls, gives running ones time to finish, then ends the connections.
    async fn drain(self) {
        let within = self.gateway.settings().shutdown_timeout;
        self.gateway.drain().await;
        self.front.close().await;
        self.stop.cancel();
        self.connections.close();
        let _ = tokio::time::timeout(within, self.connections.wait()).await;
    }
}

/// The state that an upgraded connection needs.
#[derive(Clone)]
struct Lines {
    gateway: Gateway,
    connections: TaskTracker,
    stop: CancellationToken,
}

#[derive(Deserialize)]
struct LinesQuery {
    server: Option<String>,
    all: Option<bool>,
    profile: Option<String>,
}

/// Turns a connection on `control.sock` into a plain stream of MCP lines, to which `countersign
/// mcp` copies its stdin and stdout.
async fn upgrade(
    State(lines): State<Lines>,
    Query(query): Query<LinesQuery>,
    mut request: Request,
) -> Response {
    let visitor = Visitor::of(request.extensions());
    let caller = match enter(&lines.gateway, &visitor, request.headers()).await {
        Ok(caller) => caller,
        Err(refused) => return refused,
    };
    let view = View::named(query.server, query.all.unwrap_or(false), query.profile);
    if let Some(refused) = refused(&view, &lines.gateway, &caller, request.headers()) {
        return refused;
    }
    if request.headers().get(header::UPGRADE).is_none_or(|name| name != LINES_PROTOCOL) {
        let upgrade = [(header::UPGRADE, LINES_PROTOCOL)];
        return (StatusCode::UPGRADE_REQUIRED, upgrade).into_response();
    }
    let upgrading = hyper::upgrade::on(&mut request);
    task::spawn_tracked(&lines.connections, async move {
        // It stays a connection of its token.
        let _visitor = visitor;
        if let Ok(upgraded) = upgrading.await {
            let (reader, writer) = tokio::io::split(TokioIo::new(upgraded));
            stdio::serve(view.open(&lines.gateway, &caller), reader, writer, lines.stop).await;
        }
    });
    let headers = [(header::UPGRADE, LINES_PROTOCOL), (header::CONNECTION, "upgrade")];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}
