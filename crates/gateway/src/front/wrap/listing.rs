//! The wrapped server's tool list: requested by the gate in between, and read from the server's
//! responses to its client.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use domain::catalog::{Listing, PlanSource, Server};
use domain::config::ToolRules;
use domain::policy::ServerRules;
use domain::tool::Source;
use domain::upstream::UpstreamState;
use mcp::message::{Message, Raw, Request, to_raw};
use mcp::object::ObjectMembers;
use mcp::{ErrorObject, Id};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;

use crate::Gateway;
use crate::catalogs::Publisher;
use crate::limits::{FIRST_CONNECT_WAIT, WRAP_LISTS_WAITING_MAX, WRAP_PAGES_MAX};

/// Prefix of the ids of our own requests; no client uses such ids.
const OURS: &str = "countersign-list-";

pub(super) struct Listings {
    publisher: Publisher,
    name: Arc<str>,
    rules: Arc<ServerRules>,
    /// The name that the server gives itself.
    info: OnceLock<String>,
    state: Mutex<ListState>,
    known: watch::Sender<bool>,
}

#[derive(Default)]
struct ListState {
    /// The client's own requests for a list.
    clients: HashSet<Id>,
    /// Counts our lists; the response to an older one is ignored.
    round: u64,
    page: u32,
    definitions: Vec<Raw>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    tools: Vec<Raw>,
    next_cursor: Option<String>,
}

impl Listings {
    pub(super) fn new(gateway: &Gateway, name: &Arc<str>, rules: Arc<ServerRules>) -> Listings {
        let listings = Listings {
            publisher: gateway.shared.catalogs.publisher(name),
            name: name.clone(),
            rules,
            info: OnceLock::new(),
            state: Mutex::default(),
            known: watch::Sender::new(false),
        };
        listings.publish(UpstreamState::Connecting, Vec::new());
        listings
    }

    /// Sets the name that the server gives itself, before it lists anything.
    pub(super) fn set_info(&self, info: Option<String>) {
        if let Some(info) = info {
            let _ = self.info.set(info);
        }
    }

    /// Marks the next response to this id as a list.
    pub(super) fn expect_clients(&self, id: Id) {
        let mut state = self.lock();
        if state.clients.len() < WRAP_LISTS_WAITING_MAX {
            state.clients.insert(id);
        }
    }

    /// Publishes a complete list from a response to the client, unless the list is already known.
    /// Returns the list that the client may see if the operator has locked part of it.
    pub(super) fn take_clients(&self, id: &Id, result: &Raw) -> Option<Raw> {
        if !self.lock().clients.remove(id) {
            return None;
        }
        let Page { tools, next_cursor } = serde_json::from_str(result.get()).ok()?;
        let shown = self.without_locked(result, &tools);
        if next_cursor.is_none() && !*self.known.borrow() {
            self.publish(UpstreamState::Ready, tools);
        }
        shown
    }

    fn without_locked(&self, result: &Raw, tools: &[Raw]) -> Option<Raw> {
        if self.rules.tools == ToolRules::All {
            return None;
        }
        #[derive(Deserialize)]
        struct NamedTool {
            name: String,
        }
        let is_shown = |tool: &&Raw| {
            let named = serde_json::from_str::<NamedTool>(tool.get());
            named.is_ok_and(|named| self.rules.tools.allow(&named.name))
        };
        let shown: Vec<&str> = tools.iter().filter(is_shown).map(|tool| tool.get()).collect();
        let mut members = ObjectMembers::parse(result).ok()?;
        members.set("tools", format!("[{}]", shown.join(",")));
        Some(members.write())
    }

    pub(super) fn is_ours(&self, id: &Id) -> bool {
        matches!(id, Id::Text(text) if text.starts_with(OURS))
    }

    /// Builds the request for the first page of the list.
    pub(super) fn ask(&self) -> Bytes {
        let mut state = self.lock();
        state.round += 1;
        state.page = 0;
        state.definitions.clear();
        request(&state, None)
    }

    /// Takes a response to a request of ours; returns the request for the next page.
    pub(super) fn take_ours(&self, id: &Id, outcome: Result<Raw, ErrorObject>) -> Option<Bytes> {
        let mut state = self.lock();
        if *id != own_id(&state) {
            return None;
        }
        let page = outcome.ok().and_then(|result| serde_json::from_str::<Page>(result.get()).ok());
        let page = page.unwrap_or(Page { tools: Vec::new(), next_cursor: None });
        state.definitions.extend(page.tools);
        state.page += 1;
        if page.next_cursor.is_some() && state.page < WRAP_PAGES_MAX {
            return Some(request(&state, page.next_cursor.as_deref()));
        }
        let definitions = std::mem::take(&mut state.definitions);
        drop(state);
        self.publish(UpstreamState::Ready, definitions);
        None
    }

    /// Waits a little for a server that has not listed its tools yet.
    pub(super) async fn known(&self) {
        let mut known = self.known.subscribe();
        let _ = tokio::time::timeout(FIRST_CONNECT_WAIT, known.wait_for(|known| *known)).await;
    }

    fn lock(&self) -> MutexGuard<'_, ListState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, state: UpstreamState, definitions: Vec<Raw>) {
        let is_known = state == UpstreamState::Ready;
        let source = Source::Mcp(self.name.clone());
        let plans = PlanSource {
            mapping: self.rules.targets.clone(),
            ..PlanSource::new(&self.name, self.info.get().map(String::as_str))
        };
        let listing = Arc::new(Listing::new(&source, definitions).planned(&plans));
        let server = Server::new(self.name.clone(), "stdio", self.rules.clone(), state, listing);
        self.publisher.publish(server);
        if is_known {
            self.known.send_replace(true);
        }
    }
}

fn own_id(state: &ListState) -> Id {
    Id::Text(format!("{OURS}{}-{}", state.round, state.page).into())
}

fn request(state: &ListState, cursor: Option<&str>) -> Bytes {
    let params = cursor.map(|cursor| to_raw(&json!({"cursor": cursor})));
    let request = Request { id: own_id(state), method: "tools/list".to_owned(), params };
    Message::Request(request).to_line().into()
}
