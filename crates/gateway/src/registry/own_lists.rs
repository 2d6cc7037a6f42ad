//! What single clients see: the catalog, with the lists of their own connections in place of the
//! shared ones. Made anew when either changes, and kept until then.

use std::collections::HashMap;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};

use domain::Catalog;
use domain::catalog::Listing;

#[derive(Default)]
pub(super) struct OwnLists {
    /// Sessions that have a list of their own; most have none.
    by_session: RwLock<HashMap<Arc<str>, Arc<Mutex<SeenBy>>>>,
}

#[derive(Default)]
struct SeenBy {
    by_server: HashMap<Arc<str>, Arc<Listing>>,
    /// The shared catalog that it was made of, and what became of it.
    made: Option<(Weak<Catalog>, Arc<Catalog>)>,
}

impl OwnLists {
    pub(super) fn catalog(&self, shared: Arc<Catalog>, session: &str) -> Arc<Catalog> {
        let seen = self.read().get(session).cloned();
        match seen {
            Some(seen) => lock(&seen).catalog(shared),
            None => shared,
        }
    }

    pub(super) fn put(&self, session: &Arc<str>, server: &Arc<str>, listing: Arc<Listing>) {
        let seen = self.write().entry(session.clone()).or_default().clone();
        lock(&seen).put(server, listing);
    }

    /// Only where there is a list already: the session may have ended since it was asked for.
    pub(super) fn replace(&self, session: &str, server: &Arc<str>, listing: Arc<Listing>) {
        let seen = self.read().get(session).cloned();
        if let Some(seen) = seen {
            let mut seen = lock(&seen);
            if seen.by_server.contains_key(server) {
                seen.put(server, listing);
            }
        }
    }

    pub(super) fn forget_server(&self, server: &str) {
        for seen in self.read().values() {
            let mut seen = lock(seen);
            seen.by_server.remove(server);
            seen.made = None;
        }
    }

    pub(super) fn end_session(&self, session: &str) {
        self.write().remove(session);
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<Arc<str>, Arc<Mutex<SeenBy>>>> {
        self.by_session.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<Arc<str>, Arc<Mutex<SeenBy>>>> {
        self.by_session.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SeenBy {
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
            // Rules and state are the shared server's: they hold for every client.
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

fn lock(seen: &Mutex<SeenBy>) -> MutexGuard<'_, SeenBy> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
