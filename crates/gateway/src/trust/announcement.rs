//! Log lines about the lists of a server: items that are locked or accepted, and warnings about
//! items that are not reviewed because they are the first list or accepted automatically.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use domain::catalog::Listing;
use suspect::{KnownNames, warnings};

use super::{ItemUpdate, ReviewResult, Reviewer};
use crate::limits::{LIST_LINES_MAX, LIST_LINES_WINDOW};

/// Bounds the lines about one server, so that it cannot flood the log.
#[derive(Default)]
pub(super) struct LineBudget(Mutex<Option<Window>>);

struct Window {
    since: Instant,
    lines: u32,
}

impl LineBudget {
    /// Reports whether another line may be logged. The first one that may not is announced.
    pub(super) fn allows(&self, server: &str) -> bool {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window.as_ref().is_none_or(|window| window.since.elapsed() >= LIST_LINES_WINDOW) {
            *window = Some(Window { since: Instant::now(), lines: 0 });
        }
        let Some(Window { lines, .. }) = &mut *window else { return true };
        *lines = lines.saturating_add(1);
        if *lines == LIST_LINES_MAX + 1 {
            let seconds = LIST_LINES_WINDOW.as_secs();
            tracing::warn!(
                server,
                "more about its lists is left out for {seconds} s; see 'countersign upstream get'"
            );
        }
        *lines <= LIST_LINES_MAX
    }
}

/// Logs what became of the items of a list.
pub(super) fn announce(reviewer: &Reviewer, listing: &Listing, changed: &[ItemUpdate<'_>]) {
    let server = &*reviewer.server;
    let catalog = reviewer.publisher.catalog();
    let own = listing.tools().iter().map(|tool| (server, tool.name.as_str()));
    let mut known = None;
    for ItemUpdate { kind, name, text, result, .. } in changed {
        let kind = kind.as_str();
        match result {
            ReviewResult::Stays | ReviewResult::Back => continue,
            ReviewResult::Wait(change) => {
                if reviewer.lines.allows(server) {
                    let change = change.as_str();
                    tracing::warn!(server, kind, name, change, "locked until a person approves it");
                }
                continue;
            }
            ReviewResult::Accept(why) => {
                if reviewer.lines.allows(server) {
                    tracing::info!(server, kind, name, why = why.as_str(), "a change is accepted");
                }
            }
            ReviewResult::Begin => {}
        }
        let known =
            known.get_or_insert_with(|| KnownNames::new(catalog.tool_names().chain(own.clone())));
        for warning in warnings(text, server, known) {
            if reviewer.lines.allows(server) {
                let (found, text) = (warning.kind.as_str(), warning.text);
                tracing::warn!(server, kind, name, warning = found, "not reviewed: {text}");
            }
        }
    }
}
