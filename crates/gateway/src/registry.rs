//! Which providers there are, and the catalog made of what they offer.

mod own_lists;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use arc_swap::ArcSwap;
use domain::catalog::{Listing, Server};
use domain::policy::ServerRules;
use domain::tool::Source;
use domain::upstream::State;
use domain::{Caller, Catalog};
use provider::ToolProvider;
use tokio::sync::watch;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::plan::Builtin;
use crate::registry::own_lists::OwnLists;
use crate::upstream::Upstream;

pub(crate) struct Registry {
    catalog: ArcSwap<Catalog>,
    own_lists: OwnLists,
    /// Who may publish each server; held while a new snapshot is made, so that none is lost.
    claims: Mutex<Claims>,
    providers: RwLock<HashMap<String, Entry>>,
    changes: watch::Sender<u64>,
}

/// A catalog that has stood for so long gets its search index; one that is searched sooner gets it
/// then.
const PREPARE_AFTER: Duration = Duration::from_millis(20);

/// The right to publish a server. A newer claim on the same name ends it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim(u64);

#[derive(Default)]
struct Claims {
    last: u64,
    by_name: HashMap<String, Claim>,
}

#[derive(Clone)]
enum Entry {
    Upstream(Arc<Upstream>),
    Fixed(Arc<dyn ToolProvider>),
    Builtin(Arc<Builtin>, Arc<ServerRules>),
}

/// A provider that a call has taken.
pub(crate) struct InUse {
    pub(crate) provider: Arc<dyn ToolProvider>,
    _counted: Option<TaskTrackerToken>,
}

impl Default for Registry {
    fn default() -> Self {
        Registry {
            catalog: ArcSwap::default(),
            own_lists: OwnLists::default(),
            claims: Mutex::default(),
            providers: RwLock::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl Registry {
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// The catalog that a session sees; without one, the shared catalog.
    pub(crate) fn catalog_of(&self, session: Option<&str>) -> Arc<Catalog> {
        match session {
            Some(session) => self.own_lists.catalog(self.catalog(), session),
            None => self.catalog(),
        }
    }

    /// Tells that the catalog has changed, for all or for some session.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(crate) fn claim(&self, name: &str) -> Claim {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.last += 1;
        let claim = Claim(claims.last);
        claims.by_name.insert(name.to_owned(), claim);
        self.own_lists.forget_server(name);
        claim
    }

    pub(crate) fn publish(&self, claim: Claim, server: Server) {
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.by_name.get(&*server.name) == Some(&claim) {
            self.replace(self.catalog.load().with(server));
        }
    }

    /// Puts what a session's own connection listed in place of what the server lists for all.
    pub(crate) fn publish_own(
        &self,
        claim: Claim,
        session: &Arc<str>,
        server: &Arc<str>,
        listing: Arc<Listing>,
    ) {
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.by_name.get(&**server) == Some(&claim) {
            self.own_lists.put(session, server, listing);
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// The same for a list that was published before; a session that has ended gets none.
    pub(crate) fn update_own(
        &self,
        claim: Claim,
        session: &str,
        server: &Arc<str>,
        listing: Arc<Listing>,
    ) {
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.by_name.get(&**server) == Some(&claim) {
            self.own_lists.replace(session, server, listing);
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// Puts a list that was reviewed again in place of what it was, unless a newer one has come.
    pub(crate) fn review_own(
        &self,
        claim: Claim,
        session: &str,
        server: &Arc<str>,
        (was, listing): (&Arc<Listing>, Arc<Listing>),
    ) {
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.by_name.get(&**server) == Some(&claim) {
            self.own_lists.replace_if(session, server, listing, |known| Arc::ptr_eq(known, was));
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// The lists that single sessions have of a server.
    pub(crate) fn own_lists_of(&self, server: &str) -> Vec<(Arc<str>, Arc<Listing>)> {
        self.own_lists.of_server(server)
    }

    pub(crate) fn end_session(&self, session: &str) {
        self.own_lists.end_session(session);
    }

    fn replace(&self, catalog: Catalog) {
        let catalog = Arc::new(catalog);
        let snapshot = Arc::downgrade(&catalog);
        self.catalog.store(catalog);
        self.changes.send_modify(|count| *count += 1);
        // Not for a snapshot that was soon replaced, as each one is while many servers start; and off
        // the async threads.
        tokio::spawn(async move {
            tokio::time::sleep(PREPARE_AFTER).await;
            tokio::task::spawn_blocking(move || {
                snapshot.upgrade().map(|catalog| catalog.prepare(&Caller::admin()))
            });
        });
    }

    pub(crate) fn insert_upstream(&self, upstream: Arc<Upstream>) -> Option<Arc<Upstream>> {
        let name = upstream.spec().name.to_string();
        match self.write().insert(name, Entry::Upstream(upstream)) {
            Some(Entry::Upstream(replaced)) => Some(replaced),
            Some(Entry::Fixed(_) | Entry::Builtin(..)) | None => None,
        }
    }

    /// Takes a server out; calls that already have it go on.
    pub(crate) fn remove(&self, name: &str) -> Option<Arc<Upstream>> {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.by_name.remove(name);
        self.own_lists.forget_server(name);
        self.replace(self.catalog.load().without(name));
        match self.write().remove(name) {
            Some(Entry::Upstream(upstream)) => Some(upstream),
            Some(Entry::Fixed(_) | Entry::Builtin(..)) | None => None,
        }
    }

    /// Has these built-in tools, or none, under these rules. Calls that run end where they began.
    pub(crate) fn set_builtin(&self, wanted: Option<(Arc<Builtin>, ServerRules)>) {
        let known = self.read().iter().find_map(|(name, entry)| match entry {
            Entry::Builtin(builtin, rules) => Some((name.clone(), builtin.clone(), rules.clone())),
            Entry::Upstream(_) | Entry::Fixed(_) => None,
        });
        let Some((builtin, rules)) = wanted else {
            if let Some((name, ..)) = known {
                self.remove(&name);
            }
            return;
        };
        if known.is_some_and(|(_, known, under)| Arc::ptr_eq(&known, &builtin) && *under == rules) {
            return;
        }
        let rules = Arc::new(rules);
        let (name, names) = (builtin.name.clone(), builtin.names);
        let listing = Arc::new(Listing::new(&Source::Builtin, builtin.definitions.clone()));
        let entry = Entry::Builtin(builtin, rules.clone());
        // The provider first: what is listed can be called.
        self.write().insert(name.to_string(), entry);
        let server = Server::new(name.clone(), "builtin", rules, State::Ready, listing);
        let server = server.with_names(names);
        self.publish(self.claim(&name), server);
    }

    pub(crate) fn builtin(&self, server: &str) -> Option<Arc<Builtin>> {
        match self.read().get(server)? {
            Entry::Builtin(builtin, _) => Some(builtin.clone()),
            Entry::Upstream(_) | Entry::Fixed(_) => None,
        }
    }

    pub(crate) async fn add_fixed(&self, name: &str, provider: Arc<dyn ToolProvider>) {
        let (state, definitions) = match provider.tools().await {
            Ok(definitions) => (State::Ready, definitions),
            Err(error) => (State::Waiting(error.to_string()), Vec::new()),
        };
        let listing = Arc::new(Listing::new(&Source::Builtin, definitions));
        let server = Server::new(name.into(), "embedded", Arc::default(), state, listing);
        self.publish(self.claim(name), server);
        self.insert_fixed(name, provider);
    }

    /// A provider that publishes its own tools.
    pub(crate) fn insert_fixed(&self, name: &str, provider: Arc<dyn ToolProvider>) {
        self.write().insert(name.to_owned(), Entry::Fixed(provider));
    }

    /// The provider for one call. It is counted before anyone could take the server out, so that a
    /// server which is replaced waits for it.
    pub(crate) fn provider(&self, server: &str) -> Option<InUse> {
        Some(match self.read().get(server)? {
            Entry::Upstream(upstream) => {
                let counted = Some(upstream.enter());
                InUse { provider: upstream.clone(), _counted: counted }
            }
            Entry::Fixed(provider) => InUse { provider: provider.clone(), _counted: None },
            Entry::Builtin(builtin, _) => {
                InUse { provider: builtin.provider.clone(), _counted: None }
            }
        })
    }

    pub(crate) fn upstream(&self, server: &str) -> Option<Arc<Upstream>> {
        match self.read().get(server)? {
            Entry::Upstream(upstream) => Some(upstream.clone()),
            Entry::Fixed(_) | Entry::Builtin(..) => None,
        }
    }

    pub(crate) fn upstreams(&self) -> Vec<Arc<Upstream>> {
        self.upstreams_that(|_| true)
    }

    /// The servers whose first attempt is not over; none, most of the time.
    pub(crate) fn connecting(&self) -> Vec<Arc<Upstream>> {
        self.upstreams_that(Upstream::is_connecting)
    }

    fn upstreams_that(&self, fits: impl Fn(&Upstream) -> bool) -> Vec<Arc<Upstream>> {
        let providers = self.read();
        let upstreams = providers.values().filter_map(|entry| match entry {
            Entry::Upstream(upstream) if fits(upstream) => Some(upstream.clone()),
            Entry::Upstream(_) | Entry::Fixed(_) | Entry::Builtin(..) => None,
        });
        upstreams.collect()
    }

    pub(crate) fn take_all(&self) -> Vec<Arc<dyn ToolProvider>> {
        let entries = std::mem::take(&mut *self.write());
        entries
            .into_values()
            .map(|entry| match entry {
                Entry::Upstream(upstream) => upstream as Arc<dyn ToolProvider>,
                Entry::Fixed(provider) => provider,
                Entry::Builtin(builtin, _) => builtin.provider.clone(),
            })
            .collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<String, Entry>> {
        self.providers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<String, Entry>> {
        self.providers.write().unwrap_or_else(PoisonError::into_inner)
    }
}
