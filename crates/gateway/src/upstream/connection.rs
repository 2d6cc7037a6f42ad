//! One connection to a server: opened, greeted, listed, and closed with whatever it started.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use domain::config::Template;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::child::{self, Process, StderrTail};
use mcp::handshake;
use mcp::http::client::Endpoint as HttpEndpoint;
use mcp::message::{Notification, Raw, Request, raw};
use mcp::object::Members;
use mcp::peer::{Incoming, Peer, Service};
use mcp::{ErrorObject, lines};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::limits;
use crate::upstream::driver::Command;
use crate::upstream::endpoint::{Endpoint, expand, inherited_env};

/// Bytes in flight to a server in this process, each way.
const EMBEDDED_PIPE_BYTES: usize = 64 * 1024;

pub(super) struct Connection {
    pub(super) peer: Peer,
    pub(super) tools: Vec<Raw>,
    attached: Attached,
}

/// What lives and dies with the connection.
enum Attached {
    Process(Box<Process>, StderrTail),
    Task(JoinHandle<()>),
    Nothing,
}

/// Opens a connection, or says in one sentence why not.
pub(super) async fn open(
    endpoint: &Endpoint,
    commands: mpsc::WeakSender<Command>,
    stderr: &StderrTail,
    timeout: Duration,
) -> Result<Connection, String> {
    let service: Arc<dyn Service> = Arc::new(ServerSide { commands });
    let (peer, attached) = connect(endpoint, service, stderr)?;
    let mut connection = Connection { peer, tools: Vec::new(), attached };
    match connection.greet(timeout).await {
        Ok(tools) => {
            connection.tools = tools;
            Ok(connection)
        }
        Err(reason) => {
            let reason = connection.reason(reason).await;
            connection.close().await;
            Err(reason)
        }
    }
}

fn connect(
    endpoint: &Endpoint,
    service: Arc<dyn Service>,
    stderr: &StderrTail,
) -> Result<(Peer, Attached), String> {
    match endpoint {
        Endpoint::Stdio { .. } => {
            let spec = child_spec(endpoint)?;
            let (process, stdout, stdin) =
                child::spawn(&spec, stderr).map_err(|error| error.to_string())?;
            let peer = lines::connect(stdout, stdin, service);
            Ok((peer, Attached::Process(Box::new(process), stderr.clone())))
        }
        Endpoint::Http { url, headers } => {
            let peer = mcp::http::client::connect(http_endpoint(url, headers)?, service)
                .map_err(|error| error.to_string())?;
            Ok((peer, Attached::Nothing))
        }
        Endpoint::Sse => Err("the legacy SSE transport is not supported yet".to_owned()),
        Endpoint::Embedded(make) => {
            let (ours, theirs) = tokio::io::duplex(EMBEDDED_PIPE_BYTES);
            let (reader, writer) = tokio::io::split(theirs);
            let serving = tokio::spawn(make().serve(reader, writer));
            let (reader, writer) = tokio::io::split(ours);
            Ok((lines::connect(reader, writer, service), Attached::Task(serving)))
        }
    }
}

fn http_endpoint(url: &Template, headers: &[(String, Template)]) -> Result<HttpEndpoint, String> {
    let mut endpoint = HttpEndpoint::new(expand(url).map_err(|error| error.to_string())?);
    for (name, value) in headers {
        let text = expand(value).map_err(|error| error.to_string())?;
        // The message names the header and never its value.
        let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(text).ok());
        let header = parsed.ok_or_else(|| format!("header '{name}' cannot be sent"))?;
        endpoint.headers.push(header);
    }
    Ok(endpoint)
}

fn child_spec(endpoint: &Endpoint) -> Result<child::Spec, String> {
    let Endpoint::Stdio { command, args, env, cwd } = endpoint else {
        return Err("not a command".to_owned());
    };
    let text = |template| expand(template).map_err(|error| error.to_string());
    let mut environment = inherited_env();
    for (name, value) in env {
        environment.retain(|(known, _)| *known != **name);
        environment.push((name.into(), text(value)?.into()));
    }
    Ok(child::Spec {
        command: command.clone(),
        args: args.iter().map(text).collect::<Result<_, _>>()?,
        env: environment,
        cwd: cwd.clone(),
    })
}

impl Connection {
    /// The handshake and the first list. A shared connection declares no client capability: what
    /// the server asked of the client could not be attributed to one.
    async fn greet(&self, timeout: Duration) -> Result<Vec<Raw>, String> {
        let info = json!({"name": "countersign", "version": env!("CARGO_PKG_VERSION")});
        let nothing = raw("{}".to_owned());
        let welcome = handshake::initialize(&self.peer, &info, &nothing, timeout)
            .await
            .map_err(|error| error.to_string())?;
        if !offers_tools(&welcome.result) {
            return Ok(Vec::new());
        }
        mcp::client::list_tools(&self.peer, timeout).await.map_err(|error| error.to_string())
    }

    /// Why the connection is gone; a child's exit status and last words say more than an EOF.
    pub(super) async fn reason(&mut self, reason: String) -> String {
        let Attached::Process(process, stderr) = &mut self.attached else {
            return reason;
        };
        let exited = tokio::time::timeout(limits::EXIT_STATUS_WAIT, process.exited()).await;
        let last_words = stderr.last().map(|line| format!("; it said: {line}")).unwrap_or_default();
        match exited {
            Ok(Some(status)) => format!("the process ended ({status}){last_words}"),
            Ok(None) | Err(_) => format!("{reason}{last_words}"),
        }
    }

    pub(super) async fn close(self) {
        self.peer.close("the gate closed the connection");
        match self.attached {
            Attached::Process(process, _) => process.end().await,
            Attached::Task(task) => task.abort(),
            Attached::Nothing => {}
        }
    }
}

fn offers_tools(welcome: &Raw) -> bool {
    let Ok(members) = Members::parse(welcome) else {
        return false;
    };
    let capabilities = members.get("capabilities").unwrap_or("{}");
    serde_json::from_str::<Members<'_>>(capabilities)
        .is_ok_and(|capabilities| capabilities.get("tools").is_some())
}

/// What a server may ask of the gate on a shared connection: next to nothing.
struct ServerSide {
    commands: mpsc::WeakSender<Command>,
}

impl Service for ServerSide {
    fn request(
        &self,
        request: Request,
        _incoming: Incoming,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        async move {
            match request.method.as_str() {
                "ping" => Ok(raw("{}".to_owned())),
                other => Err(ErrorObject::method_not_found(other)),
            }
        }
        .boxed()
    }

    fn notification(&self, notification: Notification, _peer: Peer) {
        if notification.method == "notifications/tools/list_changed"
            && let Some(commands) = self.commands.upgrade()
        {
            // A full queue already holds a list change that has not been looked at.
            let _ = commands.try_send(Command::ListChanged);
        }
    }
}
