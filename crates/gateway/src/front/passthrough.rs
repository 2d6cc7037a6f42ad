//! Pass-through: the servers' own tools, as they are. A client sees one server under its own names,
//! or every callable tool as `server__tool`; no intent is declared, and every call still goes
//! through the pipeline.

use std::sync::{Arc, OnceLock};

use domain::json::Object;
use domain::tool::ToolName;
use domain::{Code, Refusal};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::ErrorObject;
use mcp::handshake::ServerHello;
use mcp::message::{Notification, Raw, Request, raw};
use mcp::peer::{Incoming, Peer, Service};
use provider::{Declared, Outcome, ProviderError, Surface};

use crate::front::discovery::reply;
use crate::front::relay::Asked;
use crate::front::session::Session;
use crate::front::tool_request::ToolRequest;

pub(super) struct Passthrough {
    session: Session,
    scope: Scope,
    watching: OnceLock<()>,
}

enum Scope {
    All,
    Server(Arc<str>),
}

impl Passthrough {
    pub(super) fn all(session: Session) -> Arc<Passthrough> {
        Arc::new(Passthrough { session, scope: Scope::All, watching: OnceLock::new() })
    }

    pub(super) fn server(session: Session, name: Arc<str>) -> Arc<Passthrough> {
        let scope = Scope::Server(name);
        Arc::new(Passthrough { session, scope, watching: OnceLock::new() })
    }

    async fn answer(&self, request: Request, incoming: Incoming) -> Result<Raw, ErrorObject> {
        match request.method.as_str() {
            "initialize" => {
                self.settle().await;
                self.session.initialize(&request, &incoming, &self.hello())
            }
            "ping" => Ok(raw("{}".to_owned())),
            "tools/list" => {
                self.settle().await;
                Ok(self.list())
            }
            "tools/call" => self.call(&request, &incoming).await,
            other => Err(ErrorObject::method_not_found(other)),
        }
    }

    async fn settle(&self) {
        match &self.scope {
            Scope::All => self.session.gateway.first_settled().await,
            Scope::Server(name) => self.session.gateway.first_settled_server(name).await,
        }
    }

    /// One server speaks for itself, as far as it has spoken to us and may be heard.
    fn hello(&self) -> ServerHello {
        let capabilities = raw(r#"{"tools":{"listChanged":true}}"#.to_owned());
        let mut hello = ServerHello::new("countersign", env!("CARGO_PKG_VERSION"), capabilities);
        if let Scope::Server(name) = &self.scope
            && self.session.gateway.catalog().server(name).is_some_and(|s| !s.is_locked())
        {
            let welcome = self.session.gateway.welcome(name);
            if let Some(info) = welcome.as_ref().and_then(|welcome| welcome.info()) {
                hello.info = info;
            }
            hello.instructions = welcome.and_then(|welcome| welcome.instructions.clone());
        }
        hello
    }

    fn list(&self) -> Raw {
        let catalog = self.session.gateway.catalog();
        match &self.scope {
            Scope::All => catalog.all(&self.session.caller).list.clone(),
            Scope::Server(name) => match catalog.server(name) {
                Some(server) => server.list().to_owned(),
                None => raw(r#"{"tools":[]}"#.to_owned()),
            },
        }
    }

    fn tool(&self, name: &str) -> Option<ToolName> {
        match &self.scope {
            Scope::All => {
                let catalog = self.session.gateway.catalog();
                catalog.all(&self.session.caller).tool(name).cloned()
            }
            Scope::Server(server) => {
                Some(ToolName { server: server.to_string(), tool: name.to_owned() })
            }
        }
    }

    async fn call(&self, request: &Request, incoming: &Incoming) -> Result<Raw, ErrorObject> {
        let request = ToolRequest::parse(request)?;
        let unknown = || ErrorObject::invalid_params(format!("unknown tool: {}", request.name));
        let tool = self.tool(&request.name).ok_or_else(unknown)?;
        let arguments = match Object::parse(request.arguments.get()) {
            Ok(Some(arguments)) => arguments,
            Ok(None) => Object::empty(),
            Err(error) => {
                let message = format!("arguments are not valid JSON: {error}");
                return Ok(reply::refusal(&Refusal::invalid_arguments(message)));
            }
        };
        let asked =
            Asked { surface: Surface::Passthrough, tool, arguments, declared: Declared::Nothing };
        match self.session.relay(asked, &request, incoming).await {
            Outcome::Failed { error: ProviderError::Protocol(error), .. } => Err(error),
            Outcome::Refused(refusal) if refusal.code == Code::ToolNotFound => Err(unknown()),
            outcome => Ok(reply::outcome(outcome)),
        }
    }

    /// Tells the client when what it would be shown has changed.
    fn watch(&self, peer: Peer) {
        if self.watching.set(()).is_err() {
            return;
        }
        let gateway = self.session.gateway.clone();
        let mut changes = gateway.changes();
        let server = match &self.scope {
            Scope::All => None,
            Scope::Server(name) => Some(name.clone()),
        };
        tokio::spawn(async move {
            let shown = || gateway.catalog().version(server.as_deref());
            let mut last = shown();
            loop {
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() { return },
                    // The peer keeps this session alive: whoever holds it must let go by then.
                    _ = peer.closed() => return,
                }
                let now = shown();
                if std::mem::replace(&mut last, now.clone()) != now {
                    let told = peer.notify("notifications/tools/list_changed", None).await;
                    if told.is_err() {
                        return;
                    }
                }
            }
        });
    }
}

impl Service for Passthrough {
    fn request(
        &self,
        request: Request,
        incoming: Incoming,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        self.answer(request, incoming).boxed()
    }

    fn notification(&self, notification: Notification, peer: Peer) {
        if notification.method == "notifications/initialized" {
            self.watch(peer);
        }
    }
}
