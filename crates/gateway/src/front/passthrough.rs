//! Pass-through: the servers' own tools, unchanged. A client sees one server under its own names,
//! or every callable tool as `server__tool`; no intent is declared, and every call still goes
//! through the pipeline.

mod shown;

use std::sync::{Arc, OnceLock, Weak};

use domain::json::{self, Object};
use domain::tool::ToolName;
use domain::{Catalog, Code, Refusal};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::ErrorObject;
use mcp::handshake::ServerHello;
use mcp::message::{Notification, Raw, Request, raw};
use mcp::object::{ObjectMembers, quote};
use mcp::peer::{Peer, RequestContext, Service};
use provider::{CallOutcome, Declared, ProviderError, Surface, TraceContext};

use crate::front::passthrough::shown::ShownVersion;
use crate::front::question::QuestionForm;
use crate::front::relay::RequestedCall;
use crate::front::reply;
use crate::front::session::Session;
use crate::front::tool_request::ToolRequest;
use crate::limits;
use crate::span::RequestSpan;

pub(super) struct Passthrough {
    session: Session,
    scope: ServerScope,
    door: Door,
    shown: Arc<ShownVersion>,
    watching: OnceLock<()>,
    /// Itself, for the task that watches the catalog.
    this: Weak<Passthrough>,
}

/// The client's origin.
enum Door {
    Open,
    /// A step of a run: its calls belong under the step's span, whatever trace the client sends.
    Step(TraceContext),
}

impl Door {
    fn surface(&self) -> Surface {
        match self {
            Door::Open => Surface::Passthrough,
            Door::Step(_) => Surface::Run,
        }
    }
}

enum ServerScope {
    All,
    Server(Arc<str>),
}

impl ServerScope {
    fn server(&self) -> Option<&str> {
        match self {
            ServerScope::All => None,
            ServerScope::Server(name) => Some(name),
        }
    }
}

impl Passthrough {
    pub(super) fn all(session: Session) -> Arc<Passthrough> {
        Passthrough::new(session, ServerScope::All, Door::Open)
    }

    /// A session on all servers, for the agent in a step of a run.
    pub(super) fn step(session: Session, trace: TraceContext) -> Arc<Passthrough> {
        Passthrough::new(session, ServerScope::All, Door::Step(trace))
    }

    pub(super) fn server(session: Session, name: Arc<str>) -> Arc<Passthrough> {
        Passthrough::new(session, ServerScope::Server(name), Door::Open)
    }

    fn new(session: Session, scope: ServerScope, door: Door) -> Arc<Passthrough> {
        Arc::new_cyclic(|this| Passthrough {
            session,
            scope,
            door,
            shown: Arc::default(),
            watching: OnceLock::new(),
            this: this.clone(),
        })
    }

    async fn answer(&self, request: Request, incoming: RequestContext) -> Result<Raw, ErrorObject> {
        self.session.take_request()?;
        match request.method.as_str() {
            "initialize" => {
                self.settle().await;
                self.session.initialize(&request, &incoming, &self.hello())
            }
            "ping" => Ok(raw("{}".to_owned())),
            "tools/list" => Ok(self.list(&incoming).await),
            "tools/call" => {
                let request = ToolRequest::parse(&request)?;
                self.session.require_hello()?;
                let mut span = match &self.door {
                    Door::Open => self.session.span(Surface::Passthrough, &request, &incoming),
                    Door::Step(trace) => RequestSpan::none(trace.clone()),
                };
                let answer = self.call(&request, &incoming, span.trace()).await;
                answer.inspect_err(|error| span.failed(error))
            }
            other => Err(ErrorObject::method_not_found(other)),
        }
    }

    async fn settle(&self) {
        match &self.scope {
            ServerScope::All => {
                let caller = self.session.caller();
                self.session.gateway.first_settled(&caller).await;
            }
            ServerScope::Server(name) => self.session.gateway.first_settled_server(name).await,
        }
    }

    /// Takes a single server's own name and instructions, if it is connected and not locked.
    fn hello(&self) -> ServerHello {
        let capabilities = raw(r#"{"tools":{"listChanged":true}}"#.to_owned());
        let mut hello = ServerHello::new("countersign", env!("CARGO_PKG_VERSION"), capabilities);
        if let ServerScope::Server(name) = &self.scope
            && let Some(server) = self.session.catalog().server(name).filter(|s| !s.is_locked())
        {
            let welcome = self.session.gateway.welcome(name);
            let info = welcome.as_ref().and_then(|welcome| welcome.info());
            if let Some(info) = info.and_then(bounded_info) {
                hello.info = info;
            }
            hello.instructions = server.instructions.as_deref().map(str::to_owned);
        }
        hello
    }

    /// Lists a single server on the client's own connection, if the client is to have one; doing so
    /// for all servers would start each of them for every client that lists.
    async fn list(&self, incoming: &RequestContext) -> Raw {
        let _pending = self.shown.begin();
        self.settle().await;
        if let ServerScope::Server(name) = &self.scope {
            self.session.open_own(name, self.door.surface(), incoming).await;
        }
        let catalog = self.session.catalog();
        let list = self.list_of(&catalog);
        self.shown.set(catalog.version(self.scope.server()), &list);
        list
    }

    /// Returns the tools of a catalog as the client is shown them.
    fn list_of(&self, catalog: &Catalog) -> Raw {
        match &self.scope {
            ServerScope::All => catalog.all(&self.session.caller()).list.clone(),
            ServerScope::Server(name) => match catalog.server(name) {
                Some(server) => server.list(&self.session.caller()).into_owned(),
                None => raw(r#"{"tools":[]}"#.to_owned()),
            },
        }
    }

    /// Reports whether the client must be notified of a change.
    fn has_news(&self) -> bool {
        let catalog = self.session.catalog();
        self.shown.is_news(catalog.version(self.scope.server()), || self.list_of(&catalog))
    }

    fn tool(&self, name: &str) -> Option<ToolName> {
        match &self.scope {
            ServerScope::All => {
                let catalog = self.session.catalog();
                catalog.all(&self.session.caller()).tool(name).cloned()
            }
            ServerScope::Server(server) => {
                Some(ToolName { server: server.to_string(), tool: name.to_owned() })
            }
        }
    }

    async fn call(
        &self,
        request: &ToolRequest,
        incoming: &RequestContext,
        trace: &TraceContext,
    ) -> Result<Raw, ErrorObject> {
        let unknown = || ErrorObject::invalid_params(format!("unknown tool: {}", request.name));
        let tool = self.tool(&request.name).ok_or_else(unknown)?;
        let arguments = match Object::parse(request.arguments.get()) {
            Ok(Some(arguments)) if request.has_arguments => arguments,
            Ok(_) => Object::absent(),
            Err(error) => {
                let message = format!("arguments are not valid JSON: {}", json::explain(&error));
                let refusal = Refusal::invalid_arguments(message);
                return Ok(reply::passed(CallOutcome::Refused(refusal)));
            }
        };
        let asked = RequestedCall {
            surface: self.door.surface(),
            tool,
            arguments,
            declared: Declared::Nothing,
            questions: match self.scope {
                ServerScope::All => QuestionForm::NamesServer,
                ServerScope::Server(_) => QuestionForm::Unchanged,
            },
        };
        match self.session.relay(asked, request, incoming, trace).await {
            CallOutcome::Failed { error: ProviderError::Protocol(error), .. } => Err(error),
            CallOutcome::Refused(refusal) if refusal.code == Code::ToolNotFound => Err(unknown()),
            outcome => Ok(reply::passed(outcome)),
        }
    }

    /// Notifies the client when its tool list changes.
    fn watch(&self, peer: Peer) {
        if self.watching.set(()).is_err() {
            return;
        }
        let (view, shown) = (self.this.clone(), self.shown.clone());
        let mut changes = self.session.gateway.changes();
        let catalog = self.session.catalog();
        shown.set_first(catalog.version(self.scope.server()), || self.list_of(&catalog));
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() { return },
                    () = shown.listed() => {}
                    // The peer keeps this session alive, so its reference must be dropped once it
                    // closes.
                    _ = peer.closed() => return,
                }
                let Some(has_news) = view.upgrade().map(|view| view.has_news()) else {
                    return;
                };
                if has_news {
                    let told = peer.notify("notifications/tools/list_changed", None).await;
                    if told.is_err() {
                        return;
                    }
                }
            }
        });
    }
}

/// Limits what a server says of itself, which nobody reviews: beyond its bound only the beginnings
/// of its names are left.
fn bounded_info(info: Raw) -> Option<Raw> {
    if info.get().len() <= limits::SERVER_INFO_BYTES_MAX {
        return Some(info);
    }
    let members = ObjectMembers::parse(&info).ok()?;
    let mut names = ObjectMembers::default();
    for name in ["name", "title", "version"] {
        let text = members.get(name).and_then(|json| serde_json::from_str::<String>(json).ok());
        if let Some(text) = text {
            let end = text.floor_char_boundary(limits::SERVER_NAME_BYTES_MAX);
            names.set(name, quote(&text[..end]));
        }
    }
    Some(names.write())
}

impl Service for Passthrough {
    fn request(
        &self,
        request: Request,
        incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        self.answer(request, incoming).boxed()
    }

    fn notification(&self, notification: Notification, peer: Peer) {
        if notification.method == "notifications/initialized" {
            self.watch(peer);
        }
    }
}
