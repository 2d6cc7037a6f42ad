//! The published catalog, and the catalog a single session sees. Only the newest publisher of a
//! server's name may publish it.

mod own_lists;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use domain::catalog::{ListedResource, Listing, Server};
use domain::{Caller, Catalog};
use mcp::message::Raw;
use mcp::task;
use tokio::sync::watch;

use crate::catalogs::own_lists::OwnLists;
pub(crate) use crate::catalogs::own_lists::SessionListing;
use crate::vectors::UnreadListing;

/// A catalog unchanged for this long gets its search index in advance; one searched sooner gets it
/// on demand.
const PREPARE_AFTER: Duration = Duration::from_millis(20);

pub(crate) struct Catalogs {
    shared: ArcSwap<Catalog>,
    own_lists: OwnLists,
    /// The current publisher of each server; locked while a new snapshot is built, so that no
    /// update is lost.
    claims: Mutex<Claims>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Claims {
    last: Claim,
    by_name: HashMap<Arc<str>, Claim>,
}

/// The right to publish a server. A newer claim on the same name ends it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Claim(u64);

/// Publishes one server until another publisher claims its name. Clones share the claim.
#[derive(Clone)]
pub(crate) struct Publisher {
    catalogs: Arc<Catalogs>,
    server: Arc<str>,
    claim: Claim,
}

impl Default for Catalogs {
    fn default() -> Self {
        Catalogs {
            shared: ArcSwap::default(),
            own_lists: OwnLists::default(),
            claims: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl Catalogs {
    pub(crate) fn shared(&self) -> Arc<Catalog> {
        self.shared.load_full()
    }

    /// Returns the catalog a session sees, or the shared one without a session.
    pub(crate) fn of(&self, session: Option<&str>) -> Arc<Catalog> {
        match session {
            Some(session) => self.own_lists.catalog(self.shared(), session),
            None => self.shared(),
        }
    }

    /// Returns the lists whose approved tools have no vectors yet, shared or of single sessions.
    pub(crate) fn unread(&self) -> Vec<UnreadListing> {
        let shared = self.shared();
        let unread = shared.without_vectors().map(|server| UnreadListing {
            server: server.name.clone(),
            listing: server.listing.clone(),
        });
        let mut unread: Vec<UnreadListing> = unread.collect();
        for server in shared.servers().filter(|server| !server.rules.quarantined) {
            let own = self.own_lists.of_server(&server.name).into_iter();
            let own = own.filter(|own| own.listing.lacks_vectors());
            unread.extend(own.map(|SessionListing { listing, .. }| UnreadListing {
                server: server.name.clone(),
                listing,
            }));
        }
        unread
    }

    /// Notifies when the catalog changes, for everyone or for a single session.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Claims a server's name; its previous publisher can no longer publish.
    pub(crate) fn publisher(self: &Arc<Self>, server: &Arc<str>) -> Publisher {
        let mut claims = self.claims();
        claims.last.0 += 1;
        let claim = claims.last;
        claims.by_name.insert(server.clone(), claim);
        self.own_lists.forget_server(server);
        Publisher { catalogs: self.clone(), server: server.clone(), claim }
    }

    /// Removes a server and revokes the right to publish it.
    pub(crate) fn withdraw(&self, server: &str) {
        let mut claims = self.claims();
        claims.by_name.remove(server);
        self.own_lists.forget_server(server);
        self.replace(self.shared.load().without(server));
    }

    pub(crate) fn end_session(&self, session: &str) {
        self.own_lists.end_session(session);
    }

    fn replace(&self, catalog: Catalog) {
        let catalog = Arc::new(catalog);
        let snapshot = Arc::downgrade(&catalog);
        self.shared.store(catalog);
        self.changed();
        // Skips snapshots that are soon replaced, as happens while many servers start; runs off the
        // async threads.
        task::spawn(async move {
            tokio::time::sleep(PREPARE_AFTER).await;
            let _ = task::spawn_blocking(move || {
                snapshot.upgrade().map(|catalog| catalog.prepare(&Caller::admin()))
            })
            .await;
        });
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Publisher {
    pub(crate) fn publish(&self, server: Server) {
        self.if_claimed(|catalogs| catalogs.replace(catalogs.shared.load().with(server)));
    }

    /// Publishes the list of a session's own connection in place of the server's shared list.
    pub(crate) fn publish_own(&self, session: &Arc<str>, listing: Arc<Listing>) {
        self.if_claimed(|catalogs| {
            catalogs.own_lists.put(session, &self.server, listing);
            catalogs.changed();
        });
    }

    /// Updates a list that was published before; a session that has ended gets none.
    pub(crate) fn update_own(&self, session: &str, listing: Arc<Listing>) {
        self.if_claimed(|catalogs| {
            catalogs.own_lists.replace(session, &self.server, listing);
            catalogs.changed();
        });
    }

    /// Replaces a list with its new review, unless a newer list has arrived.
    pub(crate) fn review_own(&self, before: &SessionListing, listing: Arc<Listing>) {
        self.if_claimed(|catalogs| {
            catalogs.own_lists.replace_same(&self.server, before, listing);
            catalogs.changed();
        });
    }

    /// Returns the published catalog.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalogs.shared()
    }

    /// Returns the lists that single sessions have of the server.
    pub(crate) fn own_lists(&self) -> Vec<SessionListing> {
        self.catalogs.own_lists.of_server(&self.server)
    }

    /// Finds a list of exactly these tools that is already published, to everyone or to this
    /// session.
    pub(crate) fn published(&self, session: &str, tools: &[Raw]) -> Option<Arc<Listing>> {
        let catalogs = [self.catalogs.shared(), self.catalogs.of(Some(session))];
        let mut listings =
            catalogs.iter().filter_map(|catalog| Some(&catalog.server(&self.server)?.listing));
        listings.find(|listing| listing.is_of(tools)).cloned()
    }

    /// Returns the resources of the server that a session is shown now.
    pub(crate) fn resources(&self, session: &str) -> Option<Arc<[ListedResource]>> {
        let catalog = self.catalogs.of(Some(session));
        Some(catalog.server(&self.server)?.listing.offer()?.resources().clone())
    }

    fn if_claimed(&self, publish: impl FnOnce(&Catalogs)) {
        let claims = self.catalogs.claims();
        if claims.by_name.get(&self.server) == Some(&self.claim) {
            publish(&self.catalogs);
        }
    }
}
