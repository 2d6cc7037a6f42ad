//! The providers of calls, by server name. Their published tools are in [`crate::catalogs`].

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use domain::catalog::{Listing, PlanSource, Server};
use domain::policy::ServerRules;
use domain::tool::Source;
use domain::upstream::UpstreamState;
use provider::ToolProvider;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::catalogs::Catalogs;
use crate::place::ServerPlace;
use crate::plan::{Builtin, PlannedBuiltin};
use crate::upstream::Upstream;

pub(crate) struct Registry {
    catalogs: Arc<Catalogs>,
    providers: RwLock<HashMap<String, Registration>>,
}

#[derive(Clone)]
enum Registration {
    Upstream(Arc<Upstream>),
    Fixed(Arc<dyn ToolProvider>, ServerPlace),
    Builtin(Arc<Builtin>, Arc<ServerRules>),
}

/// A provider held by a call.
pub(crate) struct ProviderLease {
    pub(crate) provider: Arc<dyn ToolProvider>,
    _counted: Option<TaskTrackerToken>,
}

impl Registration {
    fn upstream(&self) -> Option<&Arc<Upstream>> {
        match self {
            Registration::Upstream(upstream) => Some(upstream),
            Registration::Fixed(..) | Registration::Builtin(..) => None,
        }
    }

    fn provider(&self) -> Arc<dyn ToolProvider> {
        match self {
            Registration::Upstream(upstream) => upstream.clone(),
            Registration::Fixed(provider, _) => provider.clone(),
            Registration::Builtin(builtin, _) => builtin.provider.clone(),
        }
    }
}

impl Registry {
    pub(crate) fn new(catalogs: Arc<Catalogs>) -> Registry {
        Registry { catalogs, providers: RwLock::default() }
    }

    /// Adds a server, and returns the server of the same name that it replaces.
    pub(crate) fn insert_upstream(&self, upstream: Arc<Upstream>) -> Option<Arc<Upstream>> {
        let name = upstream.spec().name.to_string();
        self.write().insert(name, Registration::Upstream(upstream))?.upstream().cloned()
    }

    /// Removes a server; calls that already hold it continue.
    pub(crate) fn remove(&self, name: &str) -> Option<Arc<Upstream>> {
        self.catalogs.withdraw(name);
        self.write().remove(name)?.upstream().cloned()
    }

    /// Sets the built-in tools, or removes them, under these rules. Running calls finish on the
    /// provider they started with.
    pub(crate) fn set_builtin(&self, planned: Option<PlannedBuiltin>) {
        let known = self.read().iter().find_map(|(name, registration)| match registration {
            Registration::Builtin(builtin, rules) => {
                Some((name.clone(), builtin.clone(), rules.clone()))
            }
            Registration::Upstream(_) | Registration::Fixed(..) => None,
        });
        let Some(PlannedBuiltin { builtin, rules }) = planned else {
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
        let registration = Registration::Builtin(builtin, rules.clone());
        // The provider goes first, so that every listed tool can be called.
        self.write().insert(name.to_string(), registration);
        let server = Server::new(name.clone(), "builtin", rules, UpstreamState::Ready, listing);
        self.catalogs.publisher(&name).publish(server.with_names(names));
    }

    pub(crate) fn builtin(&self, server: &str) -> Option<Arc<Builtin>> {
        match self.read().get(server)? {
            Registration::Builtin(builtin, _) => Some(builtin.clone()),
            Registration::Upstream(_) | Registration::Fixed(..) => None,
        }
    }

    /// Returns the place of a server's files, as seen by the calls of this session.
    pub(crate) fn place(&self, server: &str, session: Option<&str>) -> ServerPlace {
        match self.read().get(server) {
            Some(Registration::Upstream(upstream)) => upstream.place(session),
            Some(Registration::Fixed(_, place)) => place.clone(),
            Some(Registration::Builtin(builtin, _)) => ServerPlace::of_builtin(&builtin.root),
            None => ServerPlace::default(),
        }
    }

    pub(crate) async fn add_fixed(&self, name: &str, provider: Arc<dyn ToolProvider>) {
        let (state, definitions) = match provider.tools().await {
            Ok(definitions) => (UpstreamState::Ready, definitions),
            Err(error) => (UpstreamState::Waiting(error.to_string().into()), Vec::new()),
        };
        let name: Arc<str> = name.into();
        let listing = Listing::new(&Source::Builtin, definitions);
        let listing = Arc::new(listing.planned(&PlanSource::new(&name, None)));
        let server = Server::new(name.clone(), "embedded", Arc::default(), state, listing);
        self.catalogs.publisher(&name).publish(server);
        self.insert_fixed(&name, provider, ServerPlace::default());
    }

    /// Adds a provider that publishes its own tools.
    pub(crate) fn insert_fixed(
        &self,
        name: &str,
        provider: Arc<dyn ToolProvider>,
        place: ServerPlace,
    ) {
        self.write().insert(name.to_owned(), Registration::Fixed(provider, place));
    }

    /// Sets the place of the files of a provider that publishes its own tools.
    pub(crate) fn set_place(&self, name: &str, place: ServerPlace) {
        if let Some(Registration::Fixed(_, known)) = self.write().get_mut(name) {
            *known = place;
        }
    }

    /// Returns the provider for one call. The call is counted before anyone could remove the
    /// server, so that a replaced server waits for it.
    pub(crate) fn provider(&self, server: &str) -> Option<ProviderLease> {
        let providers = self.read();
        let registration = providers.get(server)?;
        let counted = registration.upstream().map(|upstream| upstream.enter());
        Some(ProviderLease { provider: registration.provider(), _counted: counted })
    }

    pub(crate) fn upstream(&self, server: &str) -> Option<Arc<Upstream>> {
        self.read().get(server)?.upstream().cloned()
    }

    pub(crate) fn upstreams(&self) -> Vec<Arc<Upstream>> {
        self.read().values().filter_map(Registration::upstream).cloned().collect()
    }

    /// Returns the servers still in their first connection attempt; usually none.
    pub(crate) fn connecting(&self) -> Vec<Arc<Upstream>> {
        let providers = self.read();
        let upstreams = providers.values().filter_map(Registration::upstream);
        upstreams.filter(|upstream| upstream.is_connecting()).cloned().collect()
    }

    pub(crate) fn take_all(&self) -> Vec<Arc<dyn ToolProvider>> {
        let registrations = std::mem::take(&mut *self.write());
        registrations.into_values().map(|registration| registration.provider()).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<String, Registration>> {
        self.providers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<String, Registration>> {
        self.providers.write().unwrap_or_else(PoisonError::into_inner)
    }
}
