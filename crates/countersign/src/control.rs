//! The command line's connection to the gate: over `control.sock` if `serve` runs, otherwise to a
//! gate in this process. Both offer the same REST API.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use admin::page::{GateAddress, PageSessions};
use admin::view::ErrorAnswer;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, Method, Request, StatusCode, header, request};
use axum::response::Response;
use domain::Caller;
use gateway::plan::Reach;
use gateway::{GateSettings, Gateway};
use http_body_util::BodyExt;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use mcp::task;
use serde::Serialize;
use serde_json::Value;
use store::Store;
use store::survey::abandoned_journals;
use tokio::net::UnixStream;
use tower::ServiceExt;

use crate::app::{self, Purpose};
use crate::exit::Failure;
use crate::home::{Home, Secret};
use crate::output::progress::while_waiting;
use crate::output::{note, plain_lines};
use crate::site::Site;
use telemetry::SpanExport;

/// The path at which a connection on `control.sock` becomes a stream of MCP lines.
pub(crate) const LINES_PATH: &str = "/mcp/lines";
pub(crate) const LINES_PROTOCOL: &str = "mcp-lines";

pub(crate) struct Control {
    api_key: Secret,
    door: Door,
}

enum Door {
    Socket(Home),
    /// A gate in this process, which must be drained at the end.
    Process {
        router: Router,
        gateway: Gateway,
        telemetry: SpanExport,
    },
    /// A ledger that is only read, in this process.
    Ledger(Router),
}

/// A response of the API: JSON text and the status.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
}

impl Control {
    /// Opens a connection. `reach` only matters for a gate in this process, which connects to no
    /// more servers than needed.
    async fn open(site: &Site, reach: Reach) -> Result<Control, Failure> {
        let home = site.home()?;
        home.prepare()?;
        let api_key = home.api_key()?;
        if is_served(home).await {
            return Ok(Control { api_key, door: Door::Socket(home.clone()) });
        }
        let source = site.source()?;
        source.log_notes();
        let app = app::build(site, reach, Purpose::Work)?;
        let settled = app.gateway.settled(source.config.connect_timeout);
        while_waiting("waiting for the servers", settled).await;
        // A gate that ends with this command has no browser sessions.
        let sessions = Arc::new(PageSessions::new(GateAddress::default()));
        let router = admin::router(app.gateway.clone(), sessions);
        let door = Door::Process { router, gateway: app.gateway, telemetry: app.telemetry };
        Ok(Control { api_key, door })
    }

    /// Opens a ledger to read: a file, or else that of the home, through its gate if one runs.
    /// Creates and changes nothing.
    pub(crate) async fn to_read(site: &Site, db: Option<&Path>) -> Result<Control, Failure> {
        let home = site.home()?;
        let file = match db {
            Some(file) => file.to_owned(),
            None => {
                home.must_exist()?;
                if is_served(home).await {
                    let door = Door::Socket(home.clone());
                    return Ok(Control { api_key: home.api_key()?, door });
                }
                home.ledger()?
            }
        };
        let keys = home_of_keys(&file, home);
        let open = move || Store::open_to_read(&file, &keys);
        let opened = task::spawn_blocking(open).await;
        let store = opened.map_err(lost)?.map_err(Failure::store)?;
        if db.is_none() {
            note_abandoned(home);
        }
        let gateway = Gateway::new(GateSettings::default(), store);
        let api_key = Secret::of_process();
        gateway.tokens().know(api_key.expose(), Caller::admin());
        let sessions = Arc::new(PageSessions::new(GateAddress::default()));
        let router = admin::router(gateway, sessions);
        Ok(Control { api_key, door: Door::Ledger(router) })
    }

    /// Connects to the gate that runs in the home, if there is one. Creates nothing.
    pub(crate) async fn running(site: &Site) -> Result<Option<Control>, Failure> {
        let home = site.home()?;
        if !is_served(home).await {
            return Ok(None);
        }
        let api_key = home.api_key()?;
        Ok(Some(Control { api_key, door: Door::Socket(home.clone()) }))
    }

    /// Opens a connection, runs the work, and closes it whatever the result.
    pub(crate) async fn with<T>(
        site: &Site,
        reach: Reach,
        work: impl AsyncFnOnce(&Control) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let control = Control::open(site, reach).await?;
        let result = work(&control).await;
        if let Door::Process { gateway, telemetry, .. } = control.door {
            let end = async {
                gateway.drain().await;
                telemetry.end().await;
            };
            while_waiting("stopping the servers", end).await;
        }
        result
    }

    /// Reports whether this gate was already running.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.door, Door::Socket(_))
    }

    /// Sends a GET that must succeed.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.ask(Method::GET, path, None).await
    }

    /// Sends a POST without a body that must succeed.
    pub(crate) async fn post(&self, path: &str) -> Result<Value, Failure> {
        self.ask(Method::POST, path, None).await
    }

    /// Sends a POST that must succeed.
    pub(crate) async fn send_json(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Value, Failure> {
        let body = serde_json::to_string(body).map_err(|error| {
            Failure::system(format!("cannot encode the request to the gate: {error}"))
        })?;
        self.ask(Method::POST, path, Some(body)).await
    }

    /// Sends a DELETE that must succeed.
    pub(crate) async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.ask(Method::DELETE, path, None).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<Value, Failure> {
        successful(&self.request(method, path, body).await?)
    }

    /// Sends a GET and returns the body unchanged.
    pub(crate) async fn text(&self, path: &str) -> Result<String, Failure> {
        let answer = self.request(Method::GET, path, None).await?;
        if answer.status.is_success() { Ok(answer.text) } else { Err(refused(&answer)) }
    }

    pub(crate) async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<Answer, Failure> {
        let request = self.to(method, path).header(header::CONTENT_TYPE, "application/json");
        let response = self.send(request, body.map_or_else(Body::empty, Body::from)).await?;
        whole(response).await
    }

    /// Sends a GET that must succeed, and returns the body as a stream.
    pub(crate) async fn stream(
        &self,
        path: &str,
        headers: &[(HeaderName, &str)],
    ) -> Result<Body, Failure> {
        let mut request = self.to(Method::GET, path);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let response = self.send(request, Body::empty()).await?;
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        Err(refused(&whole(response).await?))
    }

    fn to(&self, method: Method, path: &str) -> request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.api_key.expose()))
            .header(admin::SOURCE_HEADER, "cli")
    }

    async fn send(&self, request: request::Builder, body: Body) -> Result<Response, Failure> {
        let request = request.body(body).map_err(|error| {
            Failure::input(format!("cannot encode the request to the gate: {error}"))
        })?;
        match &self.door {
            Door::Process { router, .. } | Door::Ledger(router) => {
                let Ok(response) = router.clone().oneshot(request).await;
                Ok(response)
            }
            Door::Socket(home) => answered(home, send(home, request)).await?,
        }
    }
}

/// Reads a response to its end.
pub(crate) async fn whole<B>(response: hyper::Response<B>) -> Result<Answer, Failure>
where
    B: hyper::body::Body<Error: std::fmt::Display>,
{
    let status = response.status();
    let bytes = response.into_body().collect().await.map_err(lost)?.to_bytes();
    Ok(Answer { status, text: String::from_utf8_lossy(&bytes).into_owned() })
}

/// Parses a response that must be a success.
pub(crate) fn successful(answer: &Answer) -> Result<Value, Failure> {
    if !answer.status.is_success() {
        return Err(refused(answer));
    }
    serde_json::from_str(&answer.text).map_err(|error| {
        Failure::system(format!(
            "the gate's response is not valid JSON: {}",
            text::json::explain(&error)
        ))
    })
}

/// Returns the failure for a refusal: a fault of the gate is not the user's, any other is.
fn refused(answer: &Answer) -> Failure {
    let words = words(answer);
    if answer.status.is_server_error() { Failure::system(words) } else { Failure::input(words) }
}

/// Sends one GET, for commands that need no more.
pub(crate) async fn get(site: &Site, reach: Reach, path: &str) -> Result<Value, Failure> {
    Control::with(site, reach, async |control| control.get(path).await).await
}

/// Sends one GET about the ledger, for commands that only read it.
pub(crate) async fn read(site: &Site, db: Option<&Path>, path: &str) -> Result<Value, Failure> {
    Control::to_read(site, db).await?.get(path).await
}

/// Returns the folder whose keys belong to a ledger: that of the file, if it has keys.
fn home_of_keys(file: &Path, home: &Home) -> PathBuf {
    let beside = file.parent().filter(|folder| folder.join("keys").is_dir());
    beside.unwrap_or(home.path()).to_owned()
}

/// Notes that some records are not shown yet.
fn note_abandoned(home: &Home) {
    match abandoned_journals(home.path()) {
        0 => {}
        count => note(&format!(
            "note: {count} {} not end properly, and the last records may be missing: \
             'countersign serve' recovers them at its start",
            if count == 1 { "process did" } else { "processes did" }
        )),
    }
}

/// Encodes one segment of a path, or a value of a query.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            // A lone dot would be read as a folder.
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

/// Appends the query values that are present to a path.
pub(crate) fn with_query(path: &str, values: &[(&str, Option<String>)]) -> String {
    let given = values.iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
    let pairs: Vec<String> =
        given.map(|(name, value)| format!("{name}={}", encode(value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// Returns `CODE: message` of an error response. It may contain names that a server chose.
pub(crate) fn words(answer: &Answer) -> String {
    match serde_json::from_str(&answer.text) {
        Ok(ErrorAnswer { error, .. }) => format!("{}: {}", error.code, plain_lines(&error.message)),
        Err(_) => format!("the gate responded with status {}", answer.status),
    }
}

async fn is_served(home: &Home) -> bool {
    UnixStream::connect(home.control_socket()).await.is_ok()
}

async fn send(home: &Home, request: Request<Body>) -> Result<Response, Failure> {
    let stream = UnixStream::connect(home.control_socket()).await.map_err(lost)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
    task::spawn(connection);
    let response = sender.send_request(request).await.map_err(lost)?;
    Ok(response.map(Body::new))
}

/// The result of asking the running gate for another protocol.
pub(crate) enum Upgrade {
    Done(TokioIo<Upgraded>),
    Refused(Answer),
}

/// Turns a connection to the gate that runs in a home into one of another protocol.
pub(crate) async fn upgrade(
    home: &Home,
    stream: UnixStream,
    (path, protocol): (&str, &str),
    token: Option<&Secret>,
) -> Result<Upgrade, Failure> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
    task::spawn(connection.with_upgrades());
    let mut request = Request::get(path);
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {}", token.expose()));
    }
    let request = request
        .header(header::HOST, "localhost")
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, protocol)
        .body(Body::empty())
        .map_err(lost)?;
    let response = answered(home, sender.send_request(request)).await?.map_err(lost)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(Upgrade::Refused(whole(response).await?));
    }
    Ok(Upgrade::Done(TokioIo::new(hyper::upgrade::on(response).await.map_err(lost)?)))
}

/// The time within which a running gate answers a probe.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Awaits an answer of a running gate for as long as the gate answers probes. A stopped process
/// accepts connections and never answers.
pub(crate) async fn answered<T>(
    home: &Home,
    answer: impl Future<Output = T>,
) -> Result<T, Failure> {
    tokio::select! {
        answer = answer => Ok(answer),
        () = silence(home) => {
            let whose = home.serve_pid().map_or(String::new(), |pid| format!(" (pid {pid})"));
            let resume = home.serve_pid().map_or(String::new(), |pid| {
                format!("resume it with 'kill -CONT {pid}', or ")
            });
            Err(Failure::system(format!(
                "TIMEOUT: the gate{whose} of the home '{}' has not answered for {} s, so it is \
                 stopped or overloaded: {resume}restart it; 'activity', 'receipt' and 'contention' \
                 read the ledger without it with --db",
                home.path().display(),
                ANSWER_TIME.as_secs()
            )))
        }
    }
}

/// Ends once a probe is not answered in time.
async fn silence(home: &Home) {
    loop {
        let probe = Request::get("/healthz").header(header::HOST, "localhost").body(Body::empty());
        let Ok(probe) = probe else { return pending().await };
        if tokio::time::timeout(ANSWER_TIME, send(home, probe)).await.is_err() {
            return;
        }
        tokio::time::sleep(ANSWER_TIME).await;
    }
}

pub(crate) fn lost(error: impl std::fmt::Display) -> Failure {
    Failure::system(format!("the connection to the running gate failed: {error}"))
}
