//! The notice of a search: why something is missing, and what to try.

use domain::catalog::{Catalog, LockedHit, Server, ToolFilter};
use domain::policy::Obstacle;
use domain::upstream::UpstreamState;
use domain::{Caller, signature};
use search::SearchQuery;

/// Servers that a notice names; the others are counted.
const SERVERS_NAMED_MAX: usize = 5;

/// Characters of the reason that a server is not ready.
const REASON_CHARS_MAX: usize = 120;

/// Names the servers that the caller may use but that are not ready, with the reason.
pub(super) fn servers_not_ready(catalog: &Catalog, caller: &Caller) -> Option<String> {
    let missing: Vec<&Server> = catalog
        .servers()
        .map(|server| &**server)
        .filter(|server| caller.sees(&server.name) && is_missing(server))
        .collect();
    if missing.is_empty() {
        return None;
    }
    let named: Vec<String> = missing
        .iter()
        .take(SERVERS_NAMED_MAX)
        .map(|server| format!("{} ({})", server.name, reason(server)))
        .collect();
    let more = match missing.len().saturating_sub(SERVERS_NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let these = if missing.len() == 1 { "this server" } else { "these servers" };
    Some(format!(
        "Not ready: {}{more}. Tools of {these} may be missing here; search again later.",
        named.join(", ")
    ))
}

/// Reports whether tools of the server may be missing. A locked server has its own status, and an
/// idle one with a known list is started by a call.
fn is_missing(server: &Server) -> bool {
    let is_out = match server.state {
        UpstreamState::Ready => false,
        UpstreamState::Idle => server.listing.tools().is_empty(),
        UpstreamState::Connecting
        | UpstreamState::Waiting(_)
        | UpstreamState::NeedsLogin(_)
        | UpstreamState::Stopped => true,
    };
    is_out && !server.is_locked()
}

fn reason(server: &Server) -> String {
    let reason = server.unavailable().unwrap_or_default();
    let reason = reason.strip_prefix("it is ").unwrap_or(reason);
    signature::cut(reason, REASON_CHARS_MAX)
}

/// A search that found nothing to call.
pub(super) struct EmptySearch<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) caller: &'a Caller,
    pub(super) query: SearchQuery<'a>,
    pub(super) filter: ToolFilter,
    /// True if the answer lists the locked tools itself.
    pub(super) shows_locked: bool,
}

impl EmptySearch<'_> {
    /// Says why nothing was found, and what to try.
    pub(super) fn notice(&self) -> String {
        if self.query.text.trim().is_empty() {
            return "The query is empty; say in a few words what you want to do.".to_owned();
        }
        let locked = self.catalog.search_locked(self.caller, self.query, usize::MAX, self.filter);
        let mut sentences = Vec::new();
        if !self.shows_locked {
            let not_permitted = |hit: &&LockedHit<'_>| hit.obstacle == Obstacle::NotPermitted;
            let forbidden = locked.iter().filter(not_permitted).count();
            sentences.extend(behind(locked.len() - forbidden, ("are locked", "is locked")));
            let barred = ("are not permitted to your token", "is not permitted to your token");
            sentences.extend(behind(forbidden, barred));
        }
        sentences.extend(self.filtered_out());
        if sentences.is_empty() && locked.is_empty() {
            sentences.push(self.no_match().to_owned());
        }
        sentences.join(" ")
    }

    fn filtered_out(&self) -> Option<String> {
        let names = filter_names(self.filter);
        if names.is_empty() {
            return None;
        }
        let all = ToolFilter::default();
        let count = self.catalog.search(self.caller, self.query, usize::MAX, all).len();
        let (verb, them) = (if count == 1 { "is" } else { "are" }, names.join(" and "));
        (count > 0).then(|| {
            let tools = counted(count, "matching tool");
            format!("{tools} {verb} left out by {them}; retry without.")
        })
    }

    fn no_match(&self) -> &'static str {
        let mut servers = self.catalog.servers().filter(|server| self.caller.sees(&server.name));
        if servers.any(|server| !server.listing.tools().is_empty()) {
            "No tool matches. Try other words for what you want to do; upstream_servers lists the \
             servers."
        } else {
            "No server has listed any tools; upstream_servers shows their states."
        }
    }
}

/// Counts relevant tools that cannot be called, in the words for several and for one.
fn behind(count: usize, (several, one): (&str, &str)) -> Option<String> {
    let (tools, verb) = match count {
        0 => return None,
        1 => ("1 relevant tool exists".to_owned(), one),
        count => (format!("{count} relevant tools exist"), several),
    };
    Some(format!(
        "{tools} but {verb}; retry with include_disabled:true for details and remediation."
    ))
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn filter_names(filter: ToolFilter) -> Vec<&'static str> {
    let names = [
        (filter.read_only_only, "read_only_only"),
        (filter.exclude_destructive, "exclude_destructive"),
        (filter.exclude_open_world, "exclude_open_world"),
    ];
    names.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect()
}
