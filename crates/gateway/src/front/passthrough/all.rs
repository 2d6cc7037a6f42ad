//! Everything of all servers besides their tools. Lists come from the catalog, merged. A request is
//! routed to the server that its name or address leads to, and made there like any other.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use domain::Catalog;
use domain::catalog::{ExposedOffers, PromptName};
use domain::exposed::{self, AddressForm, AddressLookup, ListPosition};
use domain::method::{Method, MethodRoute, MethodRule, Subject, SubjectItem};
use domain::upstream::UpstreamState;
use futures_util::future::join_all;
use mcp::ErrorObject;
use mcp::message::{Raw, Request, raw};
use mcp::object::quote;
use mcp::peer::{Peer, RequestContext};
use mcp::task;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use text::json::Object;
use tokio::sync::watch;

use super::methods::RoutedRequest;
use super::shown::ListKind;
use super::{Door, Passthrough, ServerScope};
use crate::front::tool_request::ToolRequest;
use crate::limits;

/// The code for a resource that no server has.
const RESOURCE_NOT_FOUND: i64 = -32002;

/// Servers that an error names.
const NAMED_MAX: usize = 5;

/// The state of a client of all servers.
pub(super) struct MergedState {
    /// Servers to which an own connection was opened, or found unnecessary.
    opened: Mutex<BTreeSet<Arc<str>>>,
    /// The number of tasks that open connections.
    opening: watch::Sender<usize>,
    /// The log level that the client set, and the servers that got it.
    level: Mutex<Option<(Request, BTreeSet<Arc<str>>)>>,
}

impl Default for MergedState {
    fn default() -> Self {
        let (opened, level) = (Mutex::default(), Mutex::default());
        MergedState { opened, opening: watch::Sender::new(0), level }
    }
}

/// The server of a request, and its own name for what the request is about.
struct Route {
    server: String,
    name: String,
    is_qualified: bool,
}

impl Passthrough {
    /// Reports whether the view has everything of all servers: a step of a run has only tools.
    pub(super) fn is_merged(&self) -> bool {
        matches!((&self.scope, &self.door), (ServerScope::All, Door::Open))
    }

    pub(super) async fn other_of_all(
        &self,
        request: Request,
        incoming: &RequestContext,
    ) -> Result<Raw, ErrorObject> {
        match request.method.as_str() {
            "prompts/list" => self.list_of_all(ListKind::Prompts, &request, incoming).await,
            "resources/list" | "resources/templates/list" => {
                self.list_of_all(ListKind::Resources, &request, incoming).await
            }
            method => match Method::of_request(method) {
                Some(Method::Known(rule)) if rule.route == MethodRoute::SetsLevel => {
                    self.set_level_of_all(request, incoming).await
                }
                Some(Method::Known(rule)) => self.make_routed(rule, request, incoming).await,
                Some(_) | None => Err(ErrorObject::method_not_found(method)),
            },
        }
    }

    async fn list_of_all(
        &self,
        kind: ListKind,
        request: &Request,
        incoming: &RequestContext,
    ) -> Result<Raw, ErrorObject> {
        let has_pages = request.method == "resources/list";
        let from = self.position(request, has_pages)?;
        let shown = self.shown.of(kind);
        let _pending = shown.begin();
        self.settle().await;
        self.open_owns(&incoming.peer).await;
        let catalog = self.session.catalog();
        shown.set(catalog.version(None), &self.list_of(kind, &catalog));
        let offers = self.offers_of_all();
        Ok(match request.method.as_str() {
            "prompts/list" => offers.prompts.clone(),
            "resources/list" => self.page(&offers, from.as_ref()),
            _ => offers.templates.clone(),
        })
    }

    pub(super) fn offers_of_all(&self) -> Arc<ExposedOffers> {
        self.session.catalog().offers(&self.session.caller())
    }

    /// Returns the position that a cursor encodes.
    fn position(
        &self,
        request: &Request,
        has_pages: bool,
    ) -> Result<Option<ListPosition>, ErrorObject> {
        #[derive(Default, Deserialize)]
        struct PageParams {
            cursor: Option<String>,
        }
        let method = &request.method;
        let params: PageParams = match &request.params {
            Some(params) => serde_json::from_str(params.get()).map_err(|_| {
                ErrorObject::invalid_params(format!("{method}: cursor must be a string"))
            })?,
            None => PageParams::default(),
        };
        let Some(cursor) = params.cursor else { return Ok(None) };
        let key = self.session.gateway.cursor_key();
        let position = ListPosition::of_cursor(&cursor, key, &self.cursor_view());
        let unknown = || ErrorObject::invalid_params(format!("{method}: unknown cursor"));
        position.filter(|_| has_pages).map(Some).ok_or_else(unknown)
    }

    /// Returns the holder of cursors, which no other session can use.
    fn cursor_view(&self) -> String {
        format!("all {:?} {}", self.session.caller().role, self.session.caller().token)
    }

    fn page(&self, offers: &ExposedOffers, from: Option<&ListPosition>) -> Raw {
        let page = offers.page(from);
        let mut text = format!(r#"{{"resources":[{}]"#, page.definitions.join(","));
        if let Some(next) = page.next {
            let key = self.session.gateway.cursor_key();
            text.push_str(r#","nextCursor":"#);
            text.push_str(&quote(&next.cursor(key, &self.cursor_view())));
        }
        text.push('}');
        raw(text)
    }

    /// Opens the client's own connections to all servers, if it is to have any, so that its lists
    /// have what the servers offer to such a client. One that takes long is announced later.
    pub(super) async fn open_owns(&self, peer: &Peer) {
        let catalog = self.session.catalog();
        let servers: Vec<Arc<str>> = {
            let mut opened = self.merged.opened.lock().unwrap_or_else(PoisonError::into_inner);
            let servers = self.servers_of_all().into_iter();
            let servers = servers.filter(|server| is_ready(&catalog, server));
            servers.filter(|server| opened.insert(server.clone())).collect()
        };
        let opening = &self.merged.opening;
        if let Some(view) = self.this.upgrade().filter(|_| !servers.is_empty()) {
            let peer = peer.clone();
            opening.send_modify(|count| *count += 1);
            task::spawn(async move {
                let surface = view.door.surface();
                let opened = servers.iter().map(|name| view.session.open_own(name, surface, &peer));
                join_all(opened).await;
                view.merged.opening.send_modify(|count| *count -= 1);
            });
        }
        // Another list of the client may have begun to open them.
        let mut opening = opening.subscribe();
        let opened = opening.wait_for(|count| *count == 0);
        let _ = tokio::time::timeout(limits::OWN_LISTS_WAIT, opened).await;
    }

    /// Returns the servers that speak the protocol and that the caller sees, without locked ones.
    pub(super) fn servers_of_all(&self) -> Vec<Arc<str>> {
        let (catalog, caller) = (self.session.catalog(), self.session.caller());
        let open = catalog.servers().filter(|server| !server.is_locked());
        let seen = open.filter(|server| caller.sees(&server.name));
        let speaking = seen.filter(|server| self.session.gateway.is_mcp(&server.name));
        speaking.map(|server| server.name.clone()).collect()
    }

    async fn make_routed(
        &self,
        rule: &'static MethodRule,
        mut request: Request,
        incoming: &RequestContext,
    ) -> Result<Raw, ErrorObject> {
        let method = Method::Known(rule);
        let parsed = ToolRequest::of_method(&request.method, request.params.as_deref())?;
        let arguments = self.requested(method, "", &parsed)?.arguments;
        let Some(subject) = method.subject(arguments.members()) else {
            return Err(ErrorObject::method_not_found(&request.method));
        };
        let route = self.route(rule, subject, incoming).await?;
        if route.name != subject.name() {
            request.params = request.params.map(|params| with_subject(params, rule, &route.name));
        }
        let Route { server, name, is_qualified } = &route;
        match rule.route {
            MethodRoute::Subscribes => self.session.rights.subscribed(server, name, *is_qualified),
            MethodRoute::Unsubscribes => self.session.rights.unsubscribed(server, name),
            MethodRoute::Forwarded | MethodRoute::SetsLevel => {}
        }
        let subject = Some(format!("{}: {}", subject.noun(), subject.name()));
        let routed = RoutedRequest { method, server, request, subject };
        let answer = self.make(routed, incoming).await;
        if answer.is_err() && rule.route == MethodRoute::Subscribes {
            self.session.rights.unsubscribed(server, name);
        }
        self.addressed(rule, route, answer).await
    }

    /// Finds the server of a request, also among those that have just been started.
    async fn route(
        &self,
        rule: &MethodRule,
        subject: SubjectItem<'_>,
        incoming: &RequestContext,
    ) -> Result<Route, ErrorObject> {
        let mut found = self.find(subject);
        if found == AddressLookup::Nothing {
            self.settle().await;
            self.open_owns(&incoming.peer).await;
            found = self.find(subject);
        }
        let route = match found {
            AddressLookup::Found { server, uri, is_qualified } => {
                Route { server, name: uri, is_qualified }
            }
            AddressLookup::Several(servers) => return Err(ambiguous(subject, &servers)),
            AddressLookup::Nothing => return Err(unknown(subject)),
        };
        let is_seen = self.session.caller().sees(&route.server);
        let is_there = is_seen && self.session.gateway.is_mcp(&route.server);
        if !is_there || !self.offers(&route.server, rule.capability) {
            return Err(match rule.subject {
                Subject::Resource | Subject::Prompt => unknown(subject),
                Subject::Nothing | Subject::Reference if !is_there => unknown(subject),
                Subject::Nothing | Subject::Reference => ErrorObject::method_not_found(rule.name),
            });
        }
        Ok(route)
    }

    fn find(&self, subject: SubjectItem<'_>) -> AddressLookup {
        let offers = self.offers_of_all();
        match subject {
            SubjectItem::Resource(uri) => offers.addresses.find(uri),
            SubjectItem::Template(uri) => offers.addresses.find_template(uri),
            SubjectItem::Prompt(name) => match offers.prompt(name) {
                Some(PromptName { server, prompt }) => AddressLookup::Found {
                    server: server.to_string(),
                    uri: prompt.clone(),
                    is_qualified: true,
                },
                None => AddressLookup::Nothing,
            },
        }
    }

    /// Returns the answer with addresses that lead back to the server. What the client asked for
    /// keeps the address that the client used.
    async fn addressed(
        &self,
        rule: &MethodRule,
        route: Route,
        answer: Result<Raw, ErrorObject>,
    ) -> Result<Raw, ErrorObject> {
        match answer {
            Ok(result) => {
                let form = match rule.subject {
                    Subject::Prompt => AddressForm::PromptResult,
                    Subject::Resource => AddressForm::ReadResult,
                    Subject::Nothing | Subject::Reference => return Ok(result),
                };
                Ok(self.with_addresses(route, form, result).await)
            }
            Err(error) => {
                let text = error.text().to_owned();
                let text = self.with_addresses(route, AddressForm::Error, text).await;
                Err(ErrorObject::parse(&text).unwrap_or(error))
            }
        }
    }

    /// Returns the result of a tool with addresses that lead back to its server.
    pub(super) async fn addressed_result(&self, server: String, result: Raw) -> Raw {
        if !self.is_merged() {
            return result;
        }
        let route = Route { server, name: String::new(), is_qualified: true };
        self.with_addresses(route, AddressForm::ToolResult, result).await
    }

    /// Rewrites the addresses in a message; a large one is read off the async threads.
    async fn with_addresses(&self, route: Route, form: AddressForm, message: Raw) -> Raw {
        if !exposed::may_have_addresses(message.get()) {
            return message;
        }
        let offers = self.offers_of_all();
        let rewrite = move |message: Raw| {
            let needs_server = |uri: &str| {
                if uri == route.name {
                    route.is_qualified
                } else {
                    offers.addresses.needs_server(&route.server, uri)
                }
            };
            let shown = exposed::qualified(&route.server, form, message.get(), &needs_server);
            shown.map_or(message, raw)
        };
        if message.get().len() <= limits::INLINE_BYTES_MAX {
            return rewrite(message);
        }
        let kept = message.clone();
        task::spawn_blocking(move || rewrite(message)).await.unwrap_or(kept)
    }

    /// Passes the level on to every server that logs; one that fails does not affect the others.
    async fn set_level_of_all(
        &self,
        request: Request,
        incoming: &RequestContext,
    ) -> Result<Raw, ErrorObject> {
        self.settle().await;
        if !self.servers_of_all().iter().any(|server| self.offers(server, "logging")) {
            return Err(ErrorObject::method_not_found(&request.method));
        }
        let servers = self.logging_servers();
        let made = servers.iter().map(|server| {
            let method = known(&request.method);
            let routed = RoutedRequest { method, server, request: request.clone(), subject: None };
            self.make(routed, incoming)
        });
        let answers = join_all(made).await;
        if answers.is_empty() || answers.iter().any(Result::is_ok) {
            let mut level = self.merged.level.lock().unwrap_or_else(PoisonError::into_inner);
            *level = Some((request.clone(), servers.iter().cloned().collect()));
            drop(level);
            self.level_newcomers(&incoming.peer);
        }
        if answers.len() != 1 && answers.iter().any(Result::is_ok) {
            return Ok(raw("{}".to_owned()));
        }
        answers.into_iter().next().unwrap_or_else(|| Ok(raw("{}".to_owned())))
    }

    /// Returns the servers that log and are connected.
    fn logging_servers(&self) -> Vec<Arc<str>> {
        let catalog = self.session.catalog();
        let servers = self.servers_of_all().into_iter().filter(|server| is_ready(&catalog, server));
        servers.filter(|server| self.offers(server, "logging")).collect()
    }

    /// Passes the level that the client has set on to servers that have connected since.
    pub(super) fn level_newcomers(&self, peer: &Peer) {
        let newcomers: Vec<(Request, Arc<str>)> = {
            let mut level = self.merged.level.lock().unwrap_or_else(PoisonError::into_inner);
            let Some((request, known)) = level.as_mut() else { return };
            let servers = self.logging_servers().into_iter();
            let new = servers.filter(|server| known.insert(server.clone()));
            new.map(|server| (request.clone(), server)).collect()
        };
        for (request, server) in newcomers {
            let Ok(parsed) = ToolRequest::of_method(&request.method, request.params.as_deref())
            else {
                continue;
            };
            let asked = self.requested(known(&request.method), &server, &parsed);
            let (Ok(asked), Some(view)) = (asked, self.this.upgrade()) else { continue };
            let peer = peer.clone();
            task::spawn(async move { view.session.relay_notification(asked, parsed, peer).await });
        }
    }

    /// Returns the arguments of a call with the addresses that the server itself uses.
    pub(super) fn own_arguments(&self, server: &str, arguments: &RawValue) -> Option<Raw> {
        self.is_merged().then(|| exposed::restored_arguments(server, arguments.get()).map(raw))?
    }
}

fn is_ready(catalog: &Catalog, server: &str) -> bool {
    catalog.server(server).is_some_and(|server| server.state == UpstreamState::Ready)
}

fn known(method: &str) -> Method {
    Method::of_request(method).unwrap_or(Method::Custom)
}

/// Returns the params with the server's own name for what they are about.
fn with_subject(params: Raw, rule: &MethodRule, name: &str) -> Raw {
    let paths: &[&[&str]] = match rule.subject {
        Subject::Nothing => &[],
        Subject::Resource => &[&["uri"]],
        Subject::Prompt => &[&["name"]],
        Subject::Reference => {
            let is_prompt = Object::parse(params.get()).is_ok_and(|object| {
                let kind = object.as_ref().and_then(|object| object.members().get("ref"));
                kind.is_some_and(|reference| reference["type"] == "ref/prompt")
            });
            if is_prompt { &[&["ref", "name"]] } else { &[&["ref", "uri"]] }
        }
    };
    let changed = paths.iter().find_map(|path| exposed::with_string(params.get(), path, name));
    changed.map_or(params, raw)
}

fn unknown(subject: SubjectItem<'_>) -> ErrorObject {
    let name = subject.name();
    match subject {
        SubjectItem::Resource(_) => {
            let error = ErrorObject::new(RESOURCE_NOT_FOUND, format!("unknown resource: {name}"));
            error.with_data(&json!({"uri": name}))
        }
        SubjectItem::Template(_) | SubjectItem::Prompt(_) => {
            ErrorObject::invalid_params(format!("unknown {}: {name}", subject.noun()))
        }
    }
}

/// Says that several servers have a resource, with the address of each.
fn ambiguous(subject: SubjectItem<'_>, servers: &[Arc<str>]) -> ErrorObject {
    let name = subject.name();
    let named = servers.iter().take(NAMED_MAX);
    let addresses: Vec<String> =
        named.map(|server| format!("'{}'", exposed::qualified_address(server, name))).collect();
    let (noun, addresses) = (subject.noun(), addresses.join(" or "));
    ErrorObject::invalid_params(format!("several servers have this {noun}: use {addresses}"))
}
