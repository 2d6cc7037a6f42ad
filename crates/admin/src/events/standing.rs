//! How servers and tools stand, and what of it is news.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::Catalog;
use domain::catalog::Server;
use domain::policy::{Lock, Status};
use serde_json::{Value, json};

/// The word for what is no longer there.
pub(super) const REMOVED: &str = "removed";

#[derive(Default)]
pub(super) struct Standing {
    /// The snapshot that it was read from.
    catalog: Option<Arc<Catalog>>,
    servers: BTreeMap<Arc<str>, Stand>,
}

struct Stand {
    state: &'static str,
    error: Option<String>,
    tools: BTreeMap<String, Lock>,
}

/// The name of an event, and what it says.
type News = (&'static str, Value);

impl Standing {
    pub(super) fn of(catalog: &Arc<Catalog>) -> Standing {
        let servers = catalog.servers().map(|server| (server.name.clone(), Stand::of(server)));
        Standing { catalog: Some(catalog.clone()), servers: servers.collect() }
    }

    pub(super) fn is_of(&self, catalog: &Arc<Catalog>) -> bool {
        self.catalog.as_ref().is_some_and(|known| Arc::ptr_eq(known, catalog))
    }

    /// What has changed until then, server by server.
    pub(super) fn news(&self, now: &Standing) -> Vec<News> {
        let mut news = Vec::new();
        for (name, stand) in &now.servers {
            let was = self.servers.get(name);
            if was.is_none_or(|was| (was.state, &was.error) != (stand.state, &stand.error)) {
                news.push(("server", stand.told(name, was.map(|was| was.state))));
            }
            news.extend(was.into_iter().flat_map(|was| tools(name, was, stand)));
        }
        let gone = self.servers.iter().filter(|(name, _)| !now.servers.contains_key(*name));
        news.extend(gone.map(|(name, was)| {
            ("server", json!({"name": **name, "state": REMOVED, "was": was.state}))
        }));
        news
    }
}

impl Stand {
    fn of(server: &Server) -> Stand {
        let state = server.state_word();
        let error = server.unavailable().filter(|_| state == "error").map(str::to_owned);
        let tools = server.tools().map(|(tool, lock)| (tool.name.clone(), lock));
        Stand { state, error, tools: tools.collect() }
    }

    fn told(&self, name: &str, was: Option<&str>) -> Value {
        let mut told = json!({"name": name, "state": self.state, "was": was});
        if let Some(error) = &self.error {
            told["error"] = error.as_str().into();
        }
        told
    }
}

/// Tools that changed by themselves. Those of a server that is locked as a whole follow it, and a
/// server's first list is no change.
fn tools(server: &str, was: &Stand, now: &Stand) -> Vec<News> {
    let told = |tool: &str, was: Option<Lock>, now: Option<Lock>| {
        let is_news = was != now && !was.is_some_and(of_server) && !now.is_some_and(of_server);
        let status = now.map_or(REMOVED, Lock::as_str);
        let data = json!({"name": format!("{server}:{tool}"), "server": server, "status": status,
            "was": was.map(Lock::as_str)});
        is_news.then_some(("tool", data))
    };
    let is_first = was.tools.is_empty();
    let waits = |lock: &Lock| *lock == Lock::Locked(Status::PendingApproval);
    let listed = now.tools.iter().filter(|(_, lock)| !is_first || waits(lock));
    let gone = was.tools.iter().filter(|(tool, _)| !now.tools.contains_key(*tool));
    listed
        .filter_map(|(tool, lock)| told(tool, was.tools.get(tool).copied(), Some(*lock)))
        .chain(gone.filter_map(|(tool, lock)| told(tool, Some(*lock), None)))
        .collect()
}

/// Whether the server is locked as a whole.
fn of_server(lock: Lock) -> bool {
    match lock {
        Lock::Locked(Status::ServerQuarantined | Status::ServerDisabled) => true,
        Lock::Callable
        | Lock::Locked(
            Status::DisabledByConfig
            | Status::DisabledByUser
            | Status::PendingApproval
            | Status::DisabledUnknown
            | Status::SchemaTooCostly,
        ) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Tools<'a> = &'a [(&'a str, Lock)];

    fn standing(servers: &[(&str, &'static str, Tools<'_>)]) -> Standing {
        let servers = servers.iter().map(|(name, state, tools)| {
            let tools = tools.iter().map(|(tool, lock)| ((*tool).to_owned(), *lock)).collect();
            (Arc::from(*name), Stand { state, error: None, tools })
        });
        Standing { catalog: None, servers: servers.collect() }
    }

    #[test]
    fn only_what_changed_by_itself_is_told() {
        let callable = Lock::Callable;
        let [off, pending, server] =
            [Status::DisabledByUser, Status::PendingApproval, Status::ServerDisabled]
                .map(Lock::Locked);
        let was = standing(&[
            ("a", "ready", &[("same", callable), ("switched", callable), ("gone", off)]),
            ("b", "ready", &[("x", callable)]),
            ("c", "connecting", &[]),
            ("left", "error", &[("y", callable)]),
        ]);
        let now = standing(&[
            ("a", "ready", &[("same", callable), ("switched", off), ("new", pending)]),
            ("b", "disabled", &[("x", server)]),
            ("c", "ready", &[("first", callable), ("waits", pending)]),
            ("added", "quarantined", &[]),
        ]);
        let expected = [
            (
                "tool",
                json!({"name": "a:new", "server": "a", "status": "pending_approval", "was": null}),
            ),
            (
                "tool",
                json!({"name": "a:switched", "server": "a", "status": "disabled_by_user", "was": "callable"}),
            ),
            (
                "tool",
                json!({"name": "a:gone", "server": "a", "status": "removed", "was": "disabled_by_user"}),
            ),
            ("server", json!({"name": "added", "state": "quarantined", "was": null})),
            ("server", json!({"name": "b", "state": "disabled", "was": "ready"})),
            ("server", json!({"name": "c", "state": "ready", "was": "connecting"})),
            (
                "tool",
                json!({"name": "c:waits", "server": "c", "status": "pending_approval", "was": null}),
            ),
            ("server", json!({"name": "left", "state": "removed", "was": "error"})),
        ];
        assert_eq!(was.news(&now), expected);
        assert_eq!(now.news(&now), []);
    }
}
