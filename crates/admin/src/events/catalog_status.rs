//! The state of servers and tools, and its changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::Catalog;
use domain::catalog::Server;
use domain::policy::{Lock, LockStatus};

use crate::view::words::REMOVED;
use crate::view::{ServerEvent, ToolEvent};

const QUARANTINED: Lock = Lock::Locked(LockStatus::ServerQuarantined);
const PENDING: Lock = Lock::Locked(LockStatus::PendingApproval);

#[derive(Default)]
pub(super) struct CatalogStatus {
    /// The catalog snapshot that the state was read from.
    catalog: Option<Arc<Catalog>>,
    servers: BTreeMap<Arc<str>, ServerStatus>,
}

struct ServerStatus {
    state: &'static str,
    error: Option<String>,
    tools: BTreeMap<String, Lock>,
}

/// A change of state.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    Server(ServerEvent),
    Tool(ToolEvent),
}

impl CatalogStatus {
    pub(super) fn of(catalog: &Arc<Catalog>) -> CatalogStatus {
        let servers =
            catalog.servers().map(|server| (server.name.clone(), ServerStatus::of(server)));
        CatalogStatus { catalog: Some(catalog.clone()), servers: servers.collect() }
    }

    pub(super) fn is_of(&self, catalog: &Arc<Catalog>) -> bool {
        self.catalog.as_ref().is_some_and(|known| Arc::ptr_eq(known, catalog))
    }

    /// Returns the changes between this state and `now`, server by server.
    pub(super) fn news(&self, now: &CatalogStatus) -> Vec<News> {
        let mut news = Vec::new();
        for (name, status) in &now.servers {
            let was = self.servers.get(name);
            if was.is_none_or(|was| (was.state, &was.error) != (status.state, &status.error)) {
                news.push(status.event(name, was.map(|was| was.state)));
            }
            news.extend(was.into_iter().flat_map(|was| tools(name, was, status)));
        }
        let gone = self.servers.iter().filter(|(name, _)| !now.servers.contains_key(*name));
        news.extend(gone.map(|(name, was)| {
            let was = Some(was.state.to_owned());
            let state = REMOVED.to_owned();
            News::Server(ServerEvent { name: name.to_string(), state, was, error: None })
        }));
        news
    }
}

impl ServerStatus {
    fn of(server: &Server) -> ServerStatus {
        let state = server.state_word();
        let error = server.unavailable_in_full().filter(|_| state == "error");
        let tools = server.tools().map(|(tool, lock)| (tool.name.clone(), lock));
        ServerStatus { state, error, tools: tools.collect() }
    }

    fn event(&self, name: &str, was: Option<&str>) -> News {
        News::Server(ServerEvent {
            name: name.to_owned(),
            state: self.state.to_owned(),
            was: was.map(str::to_owned),
            error: self.error.clone(),
        })
    }
}

/// Returns the tools whose own status changed. Tools of a server that is locked as a whole follow
/// the server, but for those that an inspection finds; a server's first list is not a change.
fn tools(server: &str, was: &ServerStatus, now: &ServerStatus) -> Vec<News> {
    let told = |tool: &str, was: Option<Lock>, now: Option<Lock>| {
        let is_found = was.is_none() && now == Some(QUARANTINED);
        let is_own = !was.is_some_and(of_server) && !now.is_some_and(of_server);
        let is_news = was != now && (is_own || is_found);
        let event = ToolEvent {
            name: format!("{server}:{tool}"),
            server: server.to_owned(),
            status: now.map_or(REMOVED, Lock::as_str).to_owned(),
            was: was.map(|was| was.as_str().to_owned()),
        };
        is_news.then_some(News::Tool(event))
    };
    let is_first = was.tools.is_empty();
    let waits = |lock: &Lock| [QUARANTINED, PENDING].contains(lock);
    let listed = now.tools.iter().filter(|(_, lock)| !is_first || waits(lock));
    let gone = was.tools.iter().filter(|(tool, _)| !now.tools.contains_key(*tool));
    listed
        .filter_map(|(tool, lock)| told(tool, was.tools.get(tool).copied(), Some(*lock)))
        .chain(gone.filter_map(|(tool, lock)| told(tool, Some(*lock), None)))
        .collect()
}

/// Reports whether the lock covers the whole server.
fn of_server(lock: Lock) -> bool {
    match lock {
        Lock::Locked(LockStatus::ServerQuarantined | LockStatus::ServerDisabled) => true,
        Lock::Callable
        | Lock::Locked(
            LockStatus::DisabledByConfig
            | LockStatus::DisabledByUser
            | LockStatus::PendingApproval
            | LockStatus::DisabledUnknown
            | LockStatus::SchemaTooCostly,
        ) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Tools<'a> = &'a [(&'a str, Lock)];

    fn catalog_status(servers: &[(&str, &'static str, Tools<'_>)]) -> CatalogStatus {
        let servers = servers.iter().map(|(name, state, tools)| {
            let tools = tools.iter().map(|(tool, lock)| ((*tool).to_owned(), *lock)).collect();
            (Arc::from(*name), ServerStatus { state, error: None, tools })
        });
        CatalogStatus { catalog: None, servers: servers.collect() }
    }

    #[test]
    fn changes_implied_by_a_servers_state_are_not_reported() {
        let callable = Lock::Callable;
        let [off, disabled] =
            [LockStatus::DisabledByUser, LockStatus::ServerDisabled].map(Lock::Locked);
        let was = catalog_status(&[
            ("a", "ready", &[("same", callable), ("switched", callable), ("gone", off)]),
            ("b", "ready", &[("x", callable)]),
            ("c", "connecting", &[]),
            ("held", "quarantined", &[]),
            ("left", "error", &[("y", callable)]),
        ]);
        let now = catalog_status(&[
            ("a", "ready", &[("same", callable), ("switched", off), ("new", PENDING)]),
            ("b", "disabled", &[("x", disabled)]),
            ("c", "ready", &[("first", callable), ("waits", PENDING)]),
            ("held", "quarantined", &[("inspected", QUARANTINED)]),
            ("added", "quarantined", &[]),
        ]);
        let tool = |name: &str, status: &str, was: Option<&str>| {
            let server = name.split(':').next().unwrap().to_owned();
            let (status, was) = (status.to_owned(), was.map(str::to_owned));
            News::Tool(ToolEvent { name: name.to_owned(), server, status, was })
        };
        let server = |name: &str, state: &str, was: Option<&str>| {
            let (state, was) = (state.to_owned(), was.map(str::to_owned));
            News::Server(ServerEvent { name: name.to_owned(), state, was, error: None })
        };
        let expected = [
            tool("a:new", "pending_approval", None),
            tool("a:switched", "disabled_by_user", Some("callable")),
            tool("a:gone", "removed", Some("disabled_by_user")),
            server("added", "quarantined", None),
            server("b", "disabled", Some("ready")),
            server("c", "ready", Some("connecting")),
            tool("c:waits", "pending_approval", None),
            tool("held:inspected", "server_quarantined", None),
            server("left", "removed", Some("error")),
        ];
        assert_eq!(was.news(&now), expected);
        assert_eq!(now.news(&now), []);
    }
}
