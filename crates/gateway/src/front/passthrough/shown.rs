//! The lists a pass-through client saw last, and whether newer ones need a notification.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::catalog::CatalogVersion;
use mcp::message::Raw;
use serde_json::value::RawValue;
use tokio::sync::Notify;

/// The lists whose changes a client is notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListKind {
    Tools,
    Prompts,
    /// Resources and their templates.
    Resources,
}

impl ListKind {
    pub(super) const ALL: [ListKind; 3] = [ListKind::Tools, ListKind::Prompts, ListKind::Resources];

    pub(super) fn notification(self) -> &'static str {
        match self {
            ListKind::Tools => "notifications/tools/list_changed",
            ListKind::Prompts => "notifications/prompts/list_changed",
            ListKind::Resources => "notifications/resources/list_changed",
        }
    }
}

/// The lists of one client.
#[derive(Default)]
pub(super) struct ShownLists {
    tools: ShownVersion,
    prompts: ShownVersion,
    resources: ShownVersion,
}

impl ShownLists {
    pub(super) fn of(&self, kind: ListKind) -> &ShownVersion {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
        }
    }

    /// Returns when a list has been built; changes made meanwhile may need a notification.
    pub(super) async fn listed(&self) {
        tokio::select! {
            () = self.tools.listed.notified() => {}
            () = self.prompts.listed.notified() => {}
            () = self.resources.listed.notified() => {}
        }
    }
}

#[derive(Default)]
pub(super) struct ShownVersion {
    last: Mutex<LastListing>,
    listed: Notify,
}

#[derive(Default)]
struct LastListing {
    version: Option<CatalogVersion>,
    /// The hash of the list that the client was shown of this version.
    list: u64,
    /// Lists being built; changes they will include need no notification.
    pending: usize,
}

/// A list being built.
pub(super) struct Pending<'a>(&'a ShownVersion);

impl ShownVersion {
    pub(super) fn begin(&self) -> Pending<'_> {
        self.lock().pending += 1;
        Pending(self)
    }

    pub(super) fn set(&self, version: CatalogVersion, list: &RawValue) {
        let mut last = self.lock();
        (last.version, last.list) = (Some(version), hash(list));
    }

    /// Sets the list to compare with, unless the client has already seen one.
    pub(super) fn set_first(&self, version: CatalogVersion, list: impl FnOnce() -> Raw) {
        let mut last = self.lock();
        if last.version.is_none() {
            (last.version, last.list) = (Some(version), hash(&list()));
        }
    }

    /// Reports whether the client must be notified; if so, the list counts as shown. Most changes of
    /// a catalog, such as a server that fails again, change nothing that this client sees.
    pub(super) fn is_news(&self, version: CatalogVersion, list: impl FnOnce() -> Raw) -> bool {
        let mut last = self.lock();
        if last.pending > 0 || last.version.as_ref() == Some(&version) {
            return false;
        }
        let list = hash(&list());
        let is_news = last.list != list;
        (last.version, last.list) = (Some(version), list);
        is_news
    }

    fn lock(&self) -> MutexGuard<'_, LastListing> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(list: &RawValue) -> u64 {
    let mut hasher = DefaultHasher::new();
    list.get().hash(&mut hasher);
    hasher.finish()
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.lock().pending -= 1;
        self.0.listed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use domain::Catalog;
    use domain::catalog::{Listing, Server};
    use domain::policy::ServerRules;
    use domain::tool::Source;
    use domain::upstream::UpstreamState;
    use mcp::message::raw;

    use super::*;

    /// Returns the version of a catalog whose one server has listed anew.
    fn version() -> CatalogVersion {
        let listing = Listing::new(&Source::Mcp("s".into()), Vec::new());
        let (rules, state) = (ServerRules::default(), UpstreamState::Ready);
        let server = Server::new("s".into(), "stdio", rules.into(), state, listing.into());
        Catalog::default().with(server).version(None)
    }

    #[test]
    fn only_a_list_that_looks_different_is_news() {
        let shown = ShownVersion::default();
        let list = |text: &str| raw(format!("\"{text}\""));
        shown.set(version(), &list("a"));
        assert!(!shown.is_news(version(), || list("a")));
        let next = version();
        assert!(shown.is_news(next.clone(), || list("b")));
        assert!(!shown.is_news(next, || panic!("the version is the same")));
        let pending = shown.begin();
        assert!(!shown.is_news(version(), || list("c")), "the list being built will have it");
        drop(pending);
        assert!(shown.is_news(version(), || list("c")));
    }
}
