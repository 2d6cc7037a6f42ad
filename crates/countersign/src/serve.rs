//! `countersign serve`: parse, build, spawn, drain.

use std::future::pending;
use std::io::ErrorKind;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, absolute};
use std::sync::{Arc, OnceLock};

use admin::page::{GateAddress, PageSessions, other_loopback};
use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use domain::config::{Config, ServerOrigin};
use domain::{Code, Refusal};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gateway::Gateway;
use gateway::events::Events;
use gateway::front::http::{Front, enter, guarded, refused};
use gateway::front::visitor::{Visitor, Visitors};
use gateway::front::{View, stdio};
use gateway::plan::Reach;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use mcp::http::guard::Guard;
use mcp::task;
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::{self, App, Purpose};
use crate::cli::{Locations, Serve, ServeFormat};
use crate::command::page;
use crate::control::{LINES_PATH, LINES_PROTOCOL};
use crate::exit::Failure;
use crate::home::Home;
use crate::listen::tls::Tls;
use crate::listen::{Listening, Wire};
use crate::output::progress::while_waiting;
use crate::reload::{self, Reload};
use crate::spool::Spool;
use crate::{demo, source, step, workspace};

/// Connections that the system queues until they are accepted; its settings may allow fewer. One
/// that finds the queue full is dropped, and its client tries again only after a second.
const ACCEPT_QUEUE_MAX: u32 = 4096;

/// The number of ports tried for one that is free on both loopback addresses.
const PORTS_MAX: usize = 32;

/// Unread bytes that the system buffers for each connection. Its default grows to megabytes.
const UNREAD_BYTES_MAX: u32 = 64 * 1024;

pub(crate) async fn run(place: &Locations, args: Serve) -> Result<(), Failure> {
    run_with(place, args, Purpose::Work, |_| pending().boxed()).await
}

/// Serves while `companion` runs alongside, until either gets a signal to stop.
pub(crate) async fn run_with(
    place: &Locations,
    args: Serve,
    purpose: Purpose,
    companion: impl FnOnce(Gateway) -> BoxFuture<'static, Result<(), Failure>>,
) -> Result<(), Failure> {
    let mut stop = StopSignal::new()?;
    let seen = reload::version(place);
    let own = source::own(place)?;
    let source = own.clone().with_folder(place);
    source.log_notes();
    let listen = args.listen.unwrap_or(source.config.listen);
    check_reach(listen, &source.config)?;
    let wire = match source.config.tls.clone() {
        Some(files) => Wire::Tls(Arc::new(Tls::load(files).map_err(Failure::config)?)),
        None => Wire::Plain,
    };
    let home = Home::of(place)?;
    home.prepare()?;
    let _lock = home.lock()?;
    step::purge(home.path());
    let Bound { address, listeners, taken } = bind_tcp(listen)?;
    let socket = bind_socket(&home.control_socket())?;
    let events_socket = bind_socket(&home.events_socket())?;
    let app = app::build(&home, &source.config, Reach::All, purpose)?;
    app::set_retention(app.gateway.store(), &source.config).await;
    let origins = GateAddress::of(&source.config, address, taken).map_err(refused_start)?;
    let guard = reload::guard(&source.config, address.port(), &origins);
    let guard = Arc::new(ArcSwap::from_pointee(guard));
    let sessions = Arc::new(PageSessions::new(origins.clone()));
    let serving = Serving::new(&app, sessions.clone());
    serving.spawn_public(listeners, wire, guard.clone(), source.config.behind_proxy);
    serving.spawn_local(socket);
    let reload = Reload {
        place: place.clone(),
        seen,
        trusted: reload::trusted(&source),
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
    let taking = take_spool(&home, &app.gateway, &events, &serving.hear);
    let hearing = task::spawn(events.serve(events_socket, serving.hear.clone()));
    let ready =
        Ready { place, home: &home, address, config: &source.config, purpose, sessions: &sessions };
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

/// The listeners of a gate.
struct Bound {
    address: SocketAddr,
    listeners: Vec<TcpListener>,
    /// The other loopback address, if it cannot be had.
    taken: Option<SocketAddr>,
}

/// Listens on an address, and with the same port on the other one that browsers may try.
fn bind_tcp(listen: SocketAddr) -> Result<Bound, Failure> {
    let mut attempt = 1;
    loop {
        let first = bind_one(listen)?;
        let address = first.local_addr().map_err(|error| {
            Failure::system(format!("cannot read the listening address: {error}"))
        })?;
        let mut listeners = vec![first];
        let mut taken = None;
        if let Some(other) = other_loopback(address.ip()) {
            let other = SocketAddr::new(other, address.port());
            match open_port(other) {
                Ok(second) => listeners.push(second),
                // The machine has no such address, so no process can listen there.
                Err(error) if is_missing(&error) => {}
                Err(_) if listen.port() == 0 && attempt < PORTS_MAX => {
                    attempt += 1;
                    continue;
                }
                Err(_) => taken = Some(other),
            }
        }
        return Ok(Bound { address, listeners, taken });
    }
}

/// Reports whether an address cannot be listened on because the machine lacks it, or its family.
fn is_missing(error: &std::io::Error) -> bool {
    let family = Some(Errno::AFNOSUPPORT);
    error.kind() == ErrorKind::AddrNotAvailable || Errno::from_io_error(error) == family
}

fn bind_one(address: SocketAddr) -> Result<TcpListener, Failure> {
    open_port(address).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => {
                "; another program is using the port: stop it, or use --listen 127.0.0.1:0"
            }
            _ => "",
        };
        Failure::system(format!("cannot listen on {address}: {error}{hint}"))
    })
}

fn open_port(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A port can be used again at once after the gate has ended.
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit it.
    socket.set_send_buffer_size(UNREAD_BYTES_MAX)?;
    socket.bind(address)?;
    socket.listen(ACCEPT_QUEUE_MAX)
}

/// Binds a socket. The lock on the home is held, so an existing socket is a leftover.
pub(crate) fn bind_socket(path: &Path) -> Result<UnixListener, Failure> {
    let fail = |error: std::io::Error| {
        Failure::system(format!("cannot listen on '{}': {error}", path.display()))
    };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(error)),
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(fail)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(fail)?;
    Ok(listener)
}

/// The parts that run while the gate serves.
struct Serving {
    gateway: Gateway,
    front: Front,
    routes: Router,
    connections: TaskTracker,
    stop: CancellationToken,
    /// Stops receiving events, before the ledger is closed.
    hear: CancellationToken,
}

impl Serving {
    fn new(app: &App, sessions: Arc<PageSessions>) -> Serving {
        let front = Front::new(app.gateway.clone());
        let routes = front.routes().merge(admin::router(app.gateway.clone(), sessions));
        Serving {
            gateway: app.gateway.clone(),
            front,
            routes,
            connections: TaskTracker::new(),
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
        let router = guarded(self.routes.clone(), guard);
        let visitors = Visitors::new(behind_proxy);
        let service = Listening { router, visitors, wire, stop: self.stop.clone() };
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
        let router = guarded(self.routes.clone().merge(lines), guard);
        let visitors = Visitors::new(false);
        let service = Listening { router, visitors, wire: Wire::Local, stop: self.stop.clone() };
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

/// A listener for stop signals, active from its creation.
pub(crate) struct StopSignal {
    terminate: Signal,
    interrupt: Signal,
    hangup: Option<Signal>,
}

impl StopSignal {
    pub(crate) fn new() -> Result<StopSignal, Failure> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::system(format!("cannot wait for signals: {error}")))
        };
        Ok(StopSignal {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: hangup()?,
        })
    }

    /// Runs until the work is done. A signal cancels `stop`, and the work then ends in its own
    /// time.
    pub(crate) async fn or_done(
        &mut self,
        serving: impl Future<Output = ()>,
        stop: CancellationToken,
    ) {
        tokio::pin!(serving);
        tokio::select! {
            () = &mut serving => {}
            () = self.received() => {
                stop.cancel();
                serving.await;
            }
        }
    }

    pub(crate) async fn received(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Listens for SIGHUP, which ends this process like SIGTERM. `None` if it was started to outlive
/// its terminal, as by `nohup`.
pub(crate) fn hangup() -> Result<Option<Signal>, Failure> {
    // Listening replaces the disposition that the process was started with.
    static IS_IGNORED: OnceLock<bool> = OnceLock::new();
    if *IS_IGNORED.get_or_init(ignores_hangup) {
        return Ok(None);
    }
    let listening = signal(SignalKind::hangup());
    listening
        .map(Some)
        .map_err(|error| Failure::system(format!("cannot wait for signals: {error}")))
}

/// Reports whether the process ignores SIGHUP. Only Linux can be asked.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 != 0)
}

/// The message printed once the gate serves.
struct Ready<'a> {
    place: &'a Locations,
    home: &'a Home,
    address: SocketAddr,
    config: &'a Config,
    purpose: Purpose,
    sessions: &'a PageSessions,
}

impl Ready<'_> {
    fn announce(&self, format: &ServeFormat) -> Result<(), Failure> {
        let text = match format {
            ServeFormat::Json => json!({
                "event": "ready",
                "listen": self.address.to_string(),
                "home": self.home.path(),
                "api_key_file": self.home.api_key_file(),
                "agent_token_file": self.home.agent_token_file(),
            })
            .to_string(),
            ServeFormat::Text => {
                let link = self.link()?;
                match self.purpose {
                    Purpose::Demo => self.tour(&link),
                    Purpose::Work => self.welcome(&link),
                }
            }
        };
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{text}")
            .and_then(|()| stdout.flush())
            .map_err(|error| Failure::system(format!("cannot write to stdout: {error}")))
    }

    /// Returns a link to the page with what is to be said about it, or why there is none.
    fn link(&self) -> Result<String, Failure> {
        match self.sessions.link(Timestamp::now()) {
            Ok(link) => match page::note_for(&link.url) {
                Some(note) => Ok(format!("{}\n  {note}", link.url)),
                None => Ok(link.url),
            },
            Err(refusal) if refusal.code == Code::Conflict => {
                Ok(format!("none: {}", refusal.message))
            }
            Err(refusal) => Err(refused_start(refusal)),
        }
    }

    fn welcome(&self, page: &str) -> String {
        let (servers, example) = servers(self.config);
        let mut program = this_program();
        if self.place.home.is_some() {
            program.push_str(&format!(" --home {}", self.home.path().display()));
        }
        if let Some(config) = self.place.config.as_ref().and_then(|file| absolute(file).ok()) {
            program.push_str(&format!(" --config {}", config.display()));
        }
        // Not the address that it listens on: clients cannot connect to 0.0.0.0.
        let origin = self.sessions.address().clients();
        format!(
            "Countersign {version} is ready on {origin}\n\n\
             \x20 servers  {servers}\n\
             \x20 home     {home}\n\n\
             Watch your agents (this link works once and expires after ten minutes; \
             'countersign page' prints another):\n\
             \x20 {page}\n\n\
             Connect Claude Code, Cursor and other clients:\n\
             \x20 {program} connect\n\
             or any MCP client over streamable HTTP:\n\
             \x20 url      {origin}/mcp\n\
             \x20 header   Authorization: Bearer {token}\n\n\
             Try it:    {program} {example}\n\
             Stop it:   Ctrl+C",
            version = env!("CARGO_PKG_VERSION"),
            home = self.home.path().display(),
            token = self.token(),
        )
    }
}

impl Ready<'_> {
    /// Returns the text of the demo, with three things to try.
    fn tour(&self, page: &str) -> String {
        let program = format!("{} --home {}", this_program(), self.home.path().display());
        let mail = demo::MAIL;
        format!(
            "The demo of Countersign {version} is ready on {origin}. Nothing is left of it when it \
             ends.\n\n\
             Watch its agents (this link works once and expires after ten minutes):\n\
             \x20 {page}\n\n\
             Three things to try, in another terminal:\n\n\
             \x20 1. See who changed what another agent had read:\n\
             \x20    {program} contention\n\n\
             \x20 2. A server changed a tool after its approval, so the tool is locked. Look at the \
             change and decide:\n\
             \x20    {program} upstream review {mail}\n\n\
             \x20 3. Check the signed receipt of every call:\n\
             \x20    {program} receipt verify\n\n\
             Another link: {program} page\n\
             Stop it:      Ctrl+C",
            version = env!("CARGO_PKG_VERSION"),
            origin = self.sessions.address().clients(),
        )
    }

    /// Returns the token for an agent, in the words of a shell.
    fn token(&self) -> String {
        if self.config.agent_token {
            format!("$(cat {})", self.home.agent_token_file().display())
        } else {
            "… (a token of 'countersign token create')".to_owned()
        }
    }
}

/// Returns the command that starts this program.
fn this_program() -> String {
    std::env::current_exe()
        .map_or_else(|_| "countersign".to_owned(), |path| path.display().to_string())
}

/// Describes the servers, with a command to try them.
fn servers(config: &Config) -> (String, &'static str) {
    let (own, found): (Vec<_>, Vec<_>) =
        config.servers.iter().partition(|server| server.origin == ServerOrigin::Own);
    let mut names: Vec<String> = own.iter().map(|server| server.name.clone()).collect();
    let mut example = "tools list";
    if config.workspace.enabled {
        let shown = match workspace::words(&config.workspace) {
            Ok(root) => {
                example =
                    "call tool-read --tool-name=workspace:Glob --json_args '{\"pattern\": \"*\"}'";
                format!("{} (built-in tools in {root})", workspace::NAME)
            }
            Err(reason) => format!("no {}: {reason}", workspace::NAME),
        };
        names.push(shown);
    }
    let mut servers = names.join(", ");
    if !found.is_empty() {
        let found: Vec<&str> = found.iter().map(|server| server.name.as_str()).collect();
        servers.push_str(&format!("; found in this folder, not started: {}", found.join(", ")));
    }
    (servers, example)
}
