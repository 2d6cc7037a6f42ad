//! A server at the other end of a connection: its peer, and for one of the stateless era what the
//! connection keeps for it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::http::{HeaderName, HeaderValue};
use mcp::client::WholeList;
use mcp::handshake::Welcome;
use mcp::http::ParameterHeaders;
use mcp::message::Raw;
use mcp::peer::Peer;
use provider::Call;
use serde::Deserialize;

use crate::limits;
use crate::upstream::subscription::Subscriptions;

#[derive(Clone)]
pub(crate) struct ServerPeer {
    pub(super) peer: Peer,
    /// `None` for a server that was greeted with a handshake.
    pub(super) stateless: Option<Arc<StatelessServer>>,
}

/// The parts of each request that a stateless server needs, and its announcements.
pub(super) struct StatelessServer {
    pub(super) subscriptions: Subscriptions,
    /// The arguments that are repeated in headers, by tool; only for HTTP.
    headers: Option<ArcSwap<HashMap<String, ParameterHeaders>>>,
    /// The time for which the last list of tools was called up to date.
    fresh_for: Mutex<Duration>,
}

impl ServerPeer {
    pub(super) fn new(peer: Peer, welcome: &Welcome, is_http: bool) -> ServerPeer {
        let stateless = peer.is_stateless().then(|| {
            let subscriptions = Subscriptions::begin(&peer, welcome);
            let headers = is_http.then(ArcSwap::default);
            Arc::new(StatelessServer { subscriptions, headers, fresh_for: Mutex::default() })
        });
        ServerPeer { peer, stateless }
    }

    /// Returns the tools that can be called as they demand, and logs the others.
    pub(super) fn callable(
        &self,
        server: &str,
        WholeList { items, fresh_for }: WholeList,
    ) -> Vec<Raw> {
        let Some(stateless) = &self.stateless else { return items };
        *stateless.fresh_for.lock().unwrap_or_else(PoisonError::into_inner) = fresh_for;
        let Some(headers) = &stateless.headers else { return items };
        let mut by_tool = HashMap::new();
        let mut read = |tool: &Raw| match ParameterHeaders::of_definition(tool.get()) {
            Ok(None) => true,
            Ok(Some(found)) => {
                by_tool.extend(name(tool).map(|name| (name, found)));
                true
            }
            Err(reason) => {
                let tool = name(tool).unwrap_or_default();
                tracing::warn!(server, tool, reason, "a tool is left out");
                false
            }
        };
        let tools = items.into_iter().filter(|tool| read(tool)).collect();
        headers.store(Arc::new(by_tool));
        tools
    }

    /// Returns the time for which the last list of tools need not be read again.
    pub(super) fn fresh_for(&self) -> Duration {
        let Some(stateless) = &self.stateless else { return Duration::ZERO };
        let fresh_for = *stateless.fresh_for.lock().unwrap_or_else(PoisonError::into_inner);
        fresh_for.min(limits::LIST_FRESH_MAX)
    }
}

impl StatelessServer {
    /// Returns the headers that repeat arguments of a tool call.
    pub(super) fn headers(&self, call: &Call) -> Vec<(HeaderName, HeaderValue)> {
        let Some(headers) = &self.headers else { return Vec::new() };
        let headers = headers.load();
        let marked = headers.get(&call.tool.tool);
        marked.map(|it| it.of_arguments(call.arguments.members())).unwrap_or_default()
    }

    pub(super) fn want(&self, uris: BTreeSet<String>) {
        self.subscriptions.want(uris);
    }
}

fn name(tool: &Raw) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    serde_json::from_str::<Named>(tool.get()).ok().map(|tool| tool.name)
}
