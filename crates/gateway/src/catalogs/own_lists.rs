//! The catalogs of single clients: the shared catalog, with the lists of their own connections in
//! place of the shared ones. Each is rebuilt when either changes, and cached until then.

use std::collections::HashMap;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};

use domain::Catalog;
use domain::catalog::Listing;

#[derive(Default)]
pub(super) struct OwnLists {
    /// Sessions with their own list; most have none.
    by_session: RwLock<ViewsBySession>,
}

type ViewsBySession = HashMap<Arc<str>, Arc<Mutex<SessionView>>>;

/// The list that one session has of a server.
pub(crate) struct SessionListing {
    pub(crate) session: Arc<str>,
    pub(crate) listing: Arc<Listing>,
}

#[derive(Default)]
struct SessionView {
    by_server: HashMap<Arc<str>, Arc<Listing>>,
    /// The shared catalog this view was built from, and the resulting catalog.
    made: Option<(Weak<Catalog>, Arc<Catalog>)>,
}

impl OwnLists {
    pub(super) fn catalog(&self, shared: Arc<Catalog>, session: &str) -> Arc<Catalog> {
        match self.view(session) {
            Some(view) => lock(&view).catalog(shared),
            None => shared,
        }
    }

    pub(super) fn put(&self, session: &Arc<str>, server: &Arc<str>, listing: Arc<Listing>) {
        let view = self.write().entry(session.clone()).or_default().clone();
        lock(&view).put(server, listing);
    }

    /// Replaces an existing list only: the session may have ended since the list was requested.
    pub(super) fn replace(&self, session: &str, server: &Arc<str>, listing: Arc<Listing>) {
        self.replace_if(session, server, listing, |_| true);
    }

    /// Replaces the list only if it is still the same one.
    pub(super) fn replace_same(
        &self,
        server: &Arc<str>,
        before: &SessionListing,
        listing: Arc<Listing>,
    ) {
        let is_same = |known: &Arc<Listing>| Arc::ptr_eq(known, &before.listing);
        self.replace_if(&before.session, server, listing, is_same);
    }

    fn replace_if(
        &self,
        session: &str,
        server: &Arc<str>,
        listing: Arc<Listing>,
        fits: impl FnOnce(&Arc<Listing>) -> bool,
    ) {
        if let Some(view) = self.view(session) {
            let mut view = lock(&view);
            if view.by_server.get(server).is_some_and(fits) {
                view.put(server, listing);
            }
        }
    }

    pub(super) fn of_server(&self, server: &str) -> Vec<SessionListing> {
        let views = self.read();
        let lists = views.iter().filter_map(|(session, view)| {
            let listing = lock(view).by_server.get(server)?.clone();
            Some(SessionListing { session: session.clone(), listing })
        });
        lists.collect()
    }

    pub(super) fn forget_server(&self, server: &str) {
        for view in self.read().values() {
            let mut view = lock(view);
            view.by_server.remove(server);
            view.made = None;
        }
    }

    pub(super) fn end_session(&self, session: &str) {
        self.write().remove(session);
    }

    fn view(&self, session: &str) -> Option<Arc<Mutex<SessionView>>> {
        self.read().get(session).cloned()
    }

    fn read(&self) -> RwLockReadGuard<'_, ViewsBySession> {
        self.by_session.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, ViewsBySession> {
        self.by_session.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionView {
    fn put(&mut self, server: &Arc<str>, listing: Arc<Listing>) {
        self.by_server.insert(server.clone(), listing);
        self.made = None;
    }

    fn catalog(&mut self, shared: Arc<Catalog>) -> Arc<Catalog> {
        let origin = Arc::downgrade(&shared);
        if let Some((of, made)) = &self.made
            && of.ptr_eq(&origin)
        {
            return made.clone();
        }
        let mut made = shared;
        for (name, listing) in &self.by_server {
            // Rules and state come from the shared server and apply to every client.
            if let Some(server) = made.server(name)
                && !Arc::ptr_eq(&server.listing, listing)
            {
                made = Arc::new(made.with(server.with_listing(listing.clone())));
            }
        }
        self.made = Some((origin, made.clone()));
        made
    }
}

fn lock(view: &Mutex<SessionView>) -> MutexGuard<'_, SessionView> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use domain::catalog::Server;
    use domain::tool::Source;
    use domain::upstream::UpstreamState;
    use mcp::message::raw;

    use super::*;

    fn listing(tool: &str) -> Arc<Listing> {
        let definition = raw(format!(r#"{{"name":"{tool}"}}"#));
        Arc::new(Listing::new(&Source::Mcp("s".into()), vec![definition]))
    }

    fn shared(state: UpstreamState, listing: &Arc<Listing>) -> Arc<Catalog> {
        let server = Server::new("s".into(), "stdio", Arc::default(), state, listing.clone());
        Arc::new(Catalog::default().with(server))
    }

    #[test]
    fn a_sessions_catalog_is_made_anew_only_when_something_has_changed() {
        let (lists, session, server): (_, Arc<str>, Arc<str>) =
            (OwnLists::default(), "a".into(), "s".into());
        let (for_all, own) = (listing("all"), listing("own"));
        let before = shared(UpstreamState::Ready, &for_all);
        assert!(Arc::ptr_eq(&lists.catalog(before.clone(), "a"), &before));
        lists.put(&session, &server, own.clone());
        let seen = lists.catalog(before.clone(), "a");
        assert!(Arc::ptr_eq(&seen.server("s").unwrap().listing, &own));
        assert!(Arc::ptr_eq(&lists.catalog(before.clone(), "a"), &seen), "it is kept");
        assert!(Arc::ptr_eq(&lists.catalog(before.clone(), "b"), &before), "for one session alone");
        let after = shared(UpstreamState::Waiting("gone".to_owned().into()), &for_all);
        let seen = lists.catalog(after, "a");
        let seen = seen.server("s").unwrap();
        assert!(Arc::ptr_eq(&seen.listing, &own) && seen.unavailable() == Some("gone"));
        lists.put(&session, &server, for_all);
        assert!(Arc::ptr_eq(&lists.catalog(before.clone(), "a"), &before), "an equal list");
    }

    #[test]
    fn own_lists_are_dropped_with_their_server_or_session() {
        let (lists, session, server): (_, Arc<str>, Arc<str>) =
            (OwnLists::default(), "a".into(), "s".into());
        let before = shared(UpstreamState::Ready, &listing("all"));
        let is_shared =
            |lists: &OwnLists| Arc::ptr_eq(&lists.catalog(before.clone(), "a"), &before);
        lists.put(&session, &server, listing("own"));
        assert!(!is_shared(&lists));
        lists.forget_server("s");
        assert!(is_shared(&lists));
        lists.replace("a", &server, listing("late"));
        assert!(is_shared(&lists), "a list that comes after the server has gone");
        lists.put(&session, &server, listing("own"));
        lists.end_session("a");
        lists.replace("a", &server, listing("late"));
        assert!(is_shared(&lists), "a list that comes after the session has ended");
    }
}
