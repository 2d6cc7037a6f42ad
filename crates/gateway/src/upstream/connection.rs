//! One connection to a server: opened, initialized, listed, and closed with every process it
//! started.

use std::sync::Arc;
use std::time::Duration;

use access::secrets::{SecretSupply, SecretValues};
use access::sign_in::{GrantHolder, SignIn};
use domain::catalog::ListedResource;
use domain::config::{RemoteProtocol, Withheld};
use domain::last_words::LastWords;
use domain::tool::DefinitionExcess;
use domain::trust::ItemKind;
use domain::upstream::UpstreamFailure;
use mcp::ErrorObject;
use mcp::child::{self, Process, StderrTail};
use mcp::client::{self, List, ListError};
use mcp::handshake::{self, HandshakeError, Welcome};
use mcp::http::client::Endpoint as HttpEndpoint;
use mcp::http::credentials::Credentials;
use mcp::limits::LAST_WORDS;
use mcp::lines;
use mcp::message::Raw;
use mcp::peer::{Peer, RequestError, Service};
use mcp::task;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::limits;
use crate::spec::{ServerEndpoint, ServerSpec, http_endpoint, without_secrets};
use crate::trust::ItemList;

pub(super) struct Connection {
    server: Arc<str>,
    pub(super) peer: Peer,
    pub(super) welcome: Arc<Welcome>,
    attached: Attachment,
}

/// Lists the tools again, without keeping the connection alive.
pub(super) struct Lister {
    pub(super) server: Arc<str>,
    pub(super) peer: Peer,
    pub(super) welcome: Arc<Welcome>,
}

/// The lists besides the tools.
const OTHERS: [(ItemKind, List); 2] =
    [(ItemKind::Prompt, List::Prompts), (ItemKind::Template, List::ResourceTemplates)];

/// A resource that lives as long as the connection.
enum Attachment {
    Process(Box<ChildProcess>),
    Task(JoinHandle<()>),
    Nothing,
}

/// A child with its output, and the variables it did not inherit.
struct ChildProcess {
    server: Arc<str>,
    process: Process,
    stderr: StderrTail,
    withheld: Withheld,
}

/// The parameters of a new connection.
pub(super) struct Opening<'a> {
    pub(super) server: &'a Arc<str>,
    pub(super) spec: &'a ServerSpec,
    /// Supplies tokens for the server, if it may require them.
    pub(super) sign_in: Option<&'a Arc<SignIn>>,
    /// Supplies the secrets that the endpoint refers to.
    pub(super) secrets: &'a SecretSupply,
    /// Answers the server's requests.
    pub(super) service: Arc<dyn Service>,
    /// The capabilities of the client behind the connection.
    pub(super) capabilities: Raw,
    pub(super) stderr: &'a StderrTail,
    pub(super) timeout: Duration,
}

impl Opening<'_> {
    /// Opens and initializes the connection, or returns one sentence saying why it cannot.
    async fn open(&self) -> Result<Connection, UpstreamFailure> {
        self.spec.endpoint.check_pinned().await?;
        let secrets = SecretValues::of(self.secrets, self.spec.secrets()).await?;
        for (name, template) in self.spec.endpoint.named_values() {
            if let Ok(value) = secrets.expand(template) {
                self.secrets.hide(name, &value);
            }
        }
        let (peer, mut attached) = connect(self, &secrets)?;
        let info = json!({"name": "countersign", "version": env!("CARGO_PKG_VERSION")});
        match handshake::initialize(&peer, &info, &self.capabilities, self.timeout).await {
            Ok(welcome) => {
                let (server, welcome) = (self.server.clone(), Arc::new(welcome));
                Ok(Connection { server, peer, welcome, attached })
            }
            Err(error) => {
                let failure = attached.start_failure(handshake_failure(&error)).await;
                attached.close(&peer).await;
                Err(failure)
            }
        }
    }

    /// Lets the sign-in supply tokens for an endpoint.
    fn authorized(
        &self,
        endpoint: HttpEndpoint,
        secrets: &SecretValues,
    ) -> Result<HttpEndpoint, String> {
        // A URL with a user name has its own authorization.
        let sign_in = match self.sign_in {
            Some(sign_in) if !has_login(&endpoint.url) => sign_in,
            Some(sign_in) if *sign_in.holder() != GrantHolder::Everybody => {
                let words = "its URL has a user name, so that tokens cannot sign in to it";
                return Err(words.to_owned());
            }
            Some(_) | None => return Ok(endpoint),
        };
        sign_in.prepare(&endpoint.url, secrets)?;
        let credentials: Arc<dyn Credentials> = sign_in.clone();
        Ok(HttpEndpoint { credentials: Some(credentials), ..endpoint })
    }

    /// Opens the connection and lists the server's tools on it. A failure names no secret, even if
    /// the server did.
    pub(super) async fn open_and_list(self) -> Result<(Connection, Vec<Raw>), UpstreamFailure> {
        let secrets = self.secrets;
        self.opened_and_listed().await.map_err(|failure| secrets.redacted(failure))
    }

    async fn opened_and_listed(self) -> Result<(Connection, Vec<Raw>), UpstreamFailure> {
        let timeout = self.timeout;
        let mut connection = self.open().await?;
        match connection.lister().tools(timeout).await {
            Ok(tools) => Ok((connection, tools)),
            Err(failure) => {
                let failure = connection.explain(failure).await;
                connection.close().await;
                Err(failure)
            }
        }
    }
}

/// Separates an error that the server worded from our own words.
fn handshake_failure(error: &HandshakeError) -> UpstreamFailure {
    match error {
        HandshakeError::Request(RequestError::Refused(refused)) => refusal("initialize", refused),
        _ => error.to_string().into(),
    }
}

fn list_failure(error: &ListError) -> UpstreamFailure {
    match error {
        ListError::Request(list, RequestError::Refused(refused)) => refusal(list.method(), refused),
        _ => error.to_string().into(),
    }
}

fn refusal(method: &str, refused: &ErrorObject) -> UpstreamFailure {
    let reason = format!("{method}: the server answered with error {}", refused.code);
    UpstreamFailure::new(&reason, Some(&refused.message))
}

fn connect(opening: &Opening<'_>, secrets: &SecretValues) -> Result<(Peer, Attachment), String> {
    let (stderr, service) = (opening.stderr, opening.service.clone());
    match &opening.spec.endpoint {
        ServerEndpoint::Stdio(command) => {
            let (spec, withheld) = command.child_spec(secrets)?;
            let (process, stdout, stdin) =
                child::spawn(&spec, stderr).map_err(|error| error.to_string())?;
            let peer = lines::connect(stdout, stdin, service);
            let (server, stderr) = (opening.server.clone(), stderr.clone());
            let child = ChildProcess { server, process, stderr, withheld };
            Ok((peer, Attachment::Process(Box::new(child))))
        }
        ServerEndpoint::Remote(remote) => {
            let endpoint = opening.authorized(http_endpoint(remote, secrets)?, secrets)?;
            let peer = match remote.protocol {
                RemoteProtocol::Http => mcp::http::client::connect(endpoint, service),
                RemoteProtocol::Sse => mcp::http::legacy::connect(endpoint, service),
            };
            Ok((peer.map_err(|error| error.to_string())?, Attachment::Nothing))
        }
        ServerEndpoint::WithoutSecrets(_) => Err(without_secrets()),
        ServerEndpoint::Plugin(_) => Err("a plugin does not speak MCP".to_owned()),
        ServerEndpoint::Embedded(make) => {
            let (ours, theirs) = tokio::io::duplex(limits::EMBEDDED_PIPE_BYTES);
            let (reader, writer) = tokio::io::split(theirs);
            let serving = task::spawn(lines::serve(reader, writer, make(), |_| ()));
            let (reader, writer) = tokio::io::split(ours);
            Ok((lines::connect(reader, writer, service), Attachment::Task(serving)))
        }
    }
}

/// Reports whether a URL holds a user name or password.
fn has_login(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

/// Returns the resources with an address, up to the bounds.
fn usable(listed: Vec<Raw>) -> Arc<[ListedResource]> {
    let mut bytes = 0;
    let fits = |resource: &Raw| DefinitionExcess::check(resource.get()).is_ok();
    let fitting = listed.into_iter().filter(fits).filter_map(ListedResource::parse);
    let bounded = fitting.take(limits::RESOURCES_MAX).take_while(|resource| {
        bytes += resource.definition.get().len();
        bytes <= limits::RESOURCES_BYTES_MAX
    });
    bounded.collect()
}

impl Lister {
    /// Returns all tools of the server; none if it offers none.
    pub(super) async fn tools(&self, timeout: Duration) -> Result<Vec<Raw>, UpstreamFailure> {
        self.list(List::Tools, timeout).await
    }

    /// Lists the other items that need approval. A list that cannot be fetched does not affect the
    /// tools: it is left out, and the last known one still applies.
    pub(super) async fn others(&self, timeout: Duration) -> Vec<ItemList> {
        let mut others = Vec::new();
        for (kind, list) in OTHERS {
            match self.list(list, timeout).await {
                Ok(items) => others.push(ItemList { kind, items }),
                Err(failure) => {
                    tracing::warn!(server = %self.server, reason = %failure, "cannot fetch a list");
                }
            }
        }
        others
    }

    /// Lists the resources; `None` if they cannot be fetched.
    pub(super) async fn resources(&self, timeout: Duration) -> Option<Arc<[ListedResource]>> {
        let listing = tokio::time::timeout(timeout, self.list(List::Resources, timeout));
        let listed = listing.await.unwrap_or_else(|_| {
            Err(format!("resources/list: not finished after {timeout:?}").into())
        });
        match listed {
            Ok(listed) => {
                let count = listed.len();
                let resources = usable(listed);
                if resources.len() < count {
                    let (server, left_out) = (&self.server, count - resources.len());
                    tracing::warn!(%server, left_out, "resources are left out: no usable 'uri', or too many");
                }
                Some(resources)
            }
            Err(failure) => {
                tracing::warn!(server = %self.server, reason = %failure, "cannot fetch a list");
                None
            }
        }
    }

    async fn list(&self, list: List, timeout: Duration) -> Result<Vec<Raw>, UpstreamFailure> {
        if self.welcome.capability(list.capability()).is_none() {
            return Ok(Vec::new());
        }
        client::list(&self.peer, list, timeout).await.map_err(|error| list_failure(&error))
    }
}

impl Connection {
    pub(super) fn lister(&self) -> Lister {
        let (server, peer) = (self.server.clone(), self.peer.clone());
        Lister { server, peer, welcome: self.welcome.clone() }
    }

    /// Waits until the connection is lost, and returns the reason.
    pub(super) async fn lost(&mut self) -> UpstreamFailure {
        tokio::select! {
            _ = self.peer.closed() => {}
            // A grandchild may hold the pipes open; the child's last output is still read.
            () = self.attached.ended() => {
                let _ = tokio::time::timeout(LAST_WORDS, self.peer.closed()).await;
                self.peer.close("the process ended");
            }
        }
        let closed = self.peer.closed().await;
        self.attached.explain(closed.to_string().into()).await
    }

    pub(super) async fn explain(&mut self, failure: UpstreamFailure) -> UpstreamFailure {
        self.attached.explain(failure).await
    }

    pub(super) async fn close(self) {
        self.attached.close(&self.peer).await;
    }
}

impl Attachment {
    async fn ended(&mut self) {
        match self {
            Attachment::Process(child) => child.process.ended().await,
            Attachment::Task(_) | Attachment::Nothing => std::future::pending().await,
        }
    }

    /// Adds why the connection was lost; a child's exit status and what it wrote to stderr
    /// say more than an EOF.
    async fn explain(&mut self, failure: UpstreamFailure) -> UpstreamFailure {
        let Attachment::Process(child) = self else {
            return failure;
        };
        let exited = tokio::time::timeout(limits::EXIT_STATUS_WAIT, child.process.exited()).await;
        let lines = child.stderr.lines();
        let last_words = LastWords::of(lines.iter().map(String::as_str), 1);
        let last_words = last_words.lines().first().map(|line| (*line).to_owned());
        let last_words = last_words.or(failure.said);
        let reason = match exited {
            Ok(Some(status)) => format!("the process exited ({status})"),
            Ok(None) | Err(_) => failure.reason,
        };
        UpstreamFailure::new(&reason, last_words.as_deref())
    }

    /// Returns why the connection could not be opened. A variable that the child did not inherit may
    /// be the cause: the log names all of them, the hint those that the child mentioned.
    async fn start_failure(&mut self, failure: UpstreamFailure) -> UpstreamFailure {
        let failure = self.explain(failure).await;
        let Attachment::Process(child) = self else {
            return failure;
        };
        if !child.withheld.is_empty() {
            let ChildProcess { server, withheld, .. } = &**child;
            let reason = &failure.reason;
            tracing::warn!(%server, %withheld, reason, "the server did not start; it inherited none of these");
        }
        let hint = child.withheld.hint(&child.stderr.lines());
        failure.with_hint(&hint)
    }

    async fn close(self, peer: &Peer) {
        peer.close("the gate closed the connection");
        match self {
            Attachment::Process(child) => child.process.end().await,
            Attachment::Task(task) => task.abort(),
            Attachment::Nothing => {}
        }
    }
}
