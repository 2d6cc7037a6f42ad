//! Which providers there are, and the catalog made of what they offer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use arc_swap::ArcSwap;
use domain::Catalog;
use domain::catalog::{Listing, Server};
use domain::tool::Source;
use domain::upstream::State;
use provider::ToolProvider;

use crate::upstream::Upstream;

#[derive(Default)]
pub(crate) struct Registry {
    catalog: ArcSwap<Catalog>,
    /// Held while a new snapshot is made, so that none is lost.
    publishing: Mutex<()>,
    providers: RwLock<HashMap<String, Entry>>,
}

#[derive(Clone)]
enum Entry {
    Upstream(Arc<Upstream>),
    Fixed(Arc<dyn ToolProvider>),
}

impl Registry {
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    pub(crate) fn publish(&self, server: Server) {
        let _one_at_a_time = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.catalog.load().with(server);
        self.catalog.store(Arc::new(next));
    }

    pub(crate) fn add(&self, upstream: Arc<Upstream>) {
        self.insert(upstream.name().to_owned(), Entry::Upstream(upstream));
    }

    pub(crate) async fn add_fixed(&self, name: &str, provider: Arc<dyn ToolProvider>) {
        let (state, definitions) = match provider.tools().await {
            Ok(definitions) => (State::Ready, definitions),
            Err(error) => (State::Waiting(error.to_string()), Vec::new()),
        };
        self.publish(Server {
            name: name.into(),
            transport: "embedded",
            rules: Arc::default(),
            state,
            listing: Arc::new(Listing::new(&Source::Builtin, definitions)),
        });
        self.insert(name.to_owned(), Entry::Fixed(provider));
    }

    pub(crate) fn provider(&self, server: &str) -> Option<Arc<dyn ToolProvider>> {
        Some(match self.entry(server)? {
            Entry::Upstream(upstream) => upstream,
            Entry::Fixed(provider) => provider,
        })
    }

    /// Returns once the server has connected or failed for the first time.
    pub(crate) async fn settle(&self, server: &str) {
        if let Some(Entry::Upstream(upstream)) = self.entry(server) {
            upstream.settled().await;
        }
    }

    pub(crate) async fn settled(&self) {
        let names: Vec<String> = self.read().keys().cloned().collect();
        for name in names {
            self.settle(&name).await;
        }
    }

    pub(crate) fn stderr(&self, server: &str) -> Vec<String> {
        match self.entry(server) {
            Some(Entry::Upstream(upstream)) => upstream.stderr(),
            Some(Entry::Fixed(_)) | None => Vec::new(),
        }
    }

    pub(crate) fn take_all(&self) -> Vec<Arc<dyn ToolProvider>> {
        let mut providers = self.providers.write().unwrap_or_else(PoisonError::into_inner);
        providers
            .drain()
            .map(|(_, entry)| match entry {
                Entry::Upstream(upstream) => upstream as Arc<dyn ToolProvider>,
                Entry::Fixed(provider) => provider,
            })
            .collect()
    }

    fn insert(&self, name: String, entry: Entry) {
        self.providers.write().unwrap_or_else(PoisonError::into_inner).insert(name, entry);
    }

    fn entry(&self, server: &str) -> Option<Entry> {
        self.read().get(server).cloned()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<String, Entry>> {
        self.providers.read().unwrap_or_else(PoisonError::into_inner)
    }
}
