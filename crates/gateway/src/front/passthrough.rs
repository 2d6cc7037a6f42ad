//! Pass-through: everything that servers offer, unchanged. A client sees one server under its own
//! names, or all of them, with tools and prompts as `server__name`. No intent is declared, and every
//! call still goes through the pipeline.

mod all;
mod capabilities;
mod methods;
mod notices;
mod shown;

use std::sync::{Arc, OnceLock, Weak};

use domain::method::Method;
use domain::tool::ToolName;
use domain::trust::ItemKind;
use domain::{Catalog, Code, Refusal};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::ErrorObject;
use mcp::handshake::ServerHello;
use mcp::message::{Notification, Raw, Request, raw};
use mcp::object::{ObjectMembers, quote};
use mcp::peer::{Peer, RequestContext, Service};
use mcp::task;
use provider::{CallOutcome, Declared, ProviderError, Surface, TraceContext};
use text::json::{self, Object};

use crate::front::passthrough::all::MergedState;
use crate::front::passthrough::shown::{ListKind, ShownLists};
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
    shown: Arc<ShownLists>,
    watching: OnceLock<()>,
    merged: MergedState,
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
            merged: MergedState::default(),
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
            _ => self.other(request, &incoming).await,
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

    /// Takes a single server's own name, capabilities and instructions, if it is connected and not
    /// locked.
    fn hello(&self) -> ServerHello {
        let tools = raw(capabilities::TOOLS.to_owned());
        let mut hello = ServerHello::new("countersign", env!("CARGO_PKG_VERSION"), tools);
        if self.is_merged() {
            let servers = self.servers_of_all();
            let welcomes: Vec<_> =
                servers.iter().map(|name| self.session.gateway.welcome(name)).collect();
            hello.capabilities = capabilities::of_all(&welcomes);
        }
        if let ServerScope::Server(name) = &self.scope
            && let Some(server) = self.session.catalog().server(name).filter(|s| !s.is_locked())
        {
            let welcome = self.session.gateway.welcome(name);
            if let Some(welcome) = &welcome {
                if let Some(info) = welcome.info().and_then(bounded_info) {
                    hello.info = info;
                }
                if let Some(declared) = capabilities::passed(welcome) {
                    hello.capabilities = declared;
                }
            }
            hello.instructions = server.instructions.as_deref().map(str::to_owned);
        }
        hello
    }

    /// Lists on the client's own connections, if the client is to have any. An agent in a step lists
    /// what is there for all.
    async fn list(&self, incoming: &RequestContext) -> Raw {
        let shown = self.shown.of(ListKind::Tools);
        let _pending = shown.begin();
        self.settle().await;
        match &self.scope {
            ServerScope::Server(name) => {
                self.session.open_own(name, self.door.surface(), &incoming.peer).await;
            }
            ServerScope::All if self.is_merged() => self.open_owns(&incoming.peer).await,
            ServerScope::All => {}
        }
        let catalog = self.session.catalog();
        let list = self.list_of(ListKind::Tools, &catalog);
        shown.set(catalog.version(self.scope.server()), &list);
        list
    }

    /// Returns a list of a catalog as the client is shown it. For resources, which no catalog has, it
    /// is a text that changes with them.
    fn list_of(&self, kind: ListKind, catalog: &Catalog) -> Raw {
        let caller = self.session.caller();
        let server = self.scope.server().and_then(|name| catalog.server(name));
        match (&self.scope, server, kind) {
            (ServerScope::All, _, ListKind::Tools) => catalog.all(&caller).list.clone(),
            (ServerScope::All, _, ListKind::Prompts) if self.is_merged() => {
                catalog.offers(&caller).prompts.clone()
            }
            (ServerScope::All, _, ListKind::Resources) if self.is_merged() => {
                let offers = catalog.offers(&caller);
                raw(format!("[{},{}]", offers.resources_hash(), offers.templates.get()))
            }
            (ServerScope::All, ..) | (_, None, ListKind::Prompts | ListKind::Resources) => {
                raw("null".to_owned())
            }
            (_, None, ListKind::Tools) => raw(r#"{"tools":[]}"#.to_owned()),
            (_, Some(server), ListKind::Tools) => server.list(&caller).into_owned(),
            (_, Some(server), ListKind::Prompts) => server.items(ItemKind::Prompt, &caller),
            (_, Some(server), ListKind::Resources) => {
                let changed = server.listing.offer().map_or(0, |offer| offer.resources_changed());
                let is_locked = server.is_locked();
                let templates = server.items(ItemKind::Template, &caller);
                raw(format!("[{changed},{is_locked},{}]", templates.get()))
            }
        }
    }

    /// Returns the lists whose change the client must be notified of.
    fn news(&self) -> Vec<ListKind> {
        let catalog = self.session.catalog();
        let version = catalog.version(self.scope.server());
        let is_news = |kind: &ListKind| {
            let shown = self.shown.of(*kind);
            shown.is_news(version.clone(), || self.list_of(*kind, &catalog))
        };
        ListKind::ALL.into_iter().filter(is_news).collect()
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
        let tool = match self.tool(&request.name) {
            // Its server may offer it on the client's own connection.
            None if self.is_merged() => {
                self.settle().await;
                self.open_owns(&incoming.peer).await;
                self.tool(&request.name)
            }
            tool => tool,
        };
        // A name that leads nowhere is refused like any other, and leaves a record.
        let unresolved = || ToolName { server: String::new(), tool: request.name.clone() };
        let tool = tool.unwrap_or_else(unresolved);
        let server = tool.server.clone();
        let own_arguments = self.own_arguments(&server, &request.arguments);
        let arguments = own_arguments.as_ref().unwrap_or(&request.arguments);
        let arguments = match Object::parse(arguments.get()) {
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
            method: Method::ToolCall,
            tool,
            arguments,
            declared: Declared::Nothing,
            questions: self.question_form(),
        };
        match self.session.relay(asked, request, incoming, trace).await {
            CallOutcome::Failed { error: ProviderError::Protocol(error), .. } => Err(error),
            CallOutcome::Refused(refusal) if refusal.code == Code::ToolNotFound => Err(unknown()),
            outcome => Ok(self.addressed_result(server, reply::passed(outcome)).await),
        }
    }

    /// Returns the form of questions: a client that sees several servers must know which one asks.
    fn question_form(&self) -> QuestionForm {
        match self.scope {
            ServerScope::All => QuestionForm::NamesServer,
            ServerScope::Server(_) => QuestionForm::Unchanged,
        }
    }

    /// Notifies the client when one of its lists changes.
    fn watch(&self, peer: Peer) {
        if self.watching.set(()).is_err() {
            return;
        }
        let (view, shown) = (self.this.clone(), self.shown.clone());
        let mut changes = self.session.gateway.changes();
        let catalog = self.session.catalog();
        for kind in ListKind::ALL {
            let version = catalog.version(self.scope.server());
            shown.of(kind).set_first(version, || self.list_of(kind, &catalog));
        }
        task::spawn(async move {
            loop {
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() { return },
                    () = shown.listed() => {}
                    // The peer keeps this session alive, so its reference must be dropped once it
                    // closes.
                    _ = peer.closed() => return,
                }
                let Some(view) = view.upgrade() else { return };
                let news = view.news();
                view.level_newcomers(&peer);
                drop(view);
                for kind in news {
                    if peer.notify(kind.notification(), None).await.is_err() {
                        return;
                    }
                }
            }
        });
    }
}

/// Limits what a server says of itself, which is not reviewed: beyond its bound only the beginnings
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
        match notification.method.as_str() {
            "notifications/initialized" => self.watch(peer),
            "notifications/roots/list_changed" => self.session.roots_changed(notification),
            _ => self.pass_notification(notification, peer),
        }
    }
}
