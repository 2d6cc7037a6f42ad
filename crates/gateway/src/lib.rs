//! The gate itself: every call, from whichever front, goes through [`pipeline`] to a provider;
//! [`upstream`] keeps the connections to MCP servers, [`front`] speaks with agents.
//! Workflows and screens are unknown here.

pub mod auth;
mod cache;
pub mod front;
mod limits;
mod pipeline;
mod registry;
pub mod settings;
pub mod upstream;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use domain::Catalog;
use domain::policy::ServerRules;
use futures_util::future::join_all;
use provider::ToolProvider;
use store::Store;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use pipeline::intake;
pub use settings::Settings;

use crate::cache::ResultCache;
use crate::registry::Registry;
use crate::upstream::{Endpoint, Upstream};

/// A handle to the gate; clones are the same gate.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

struct Shared {
    registry: Arc<Registry>,
    settings: ArcSwap<Settings>,
    store: Store,
    cache: ResultCache,
    /// Counts the calls in flight.
    calls: TaskTracker,
    draining: CancellationToken,
}

/// A server to connect to.
pub struct ServerSpec {
    pub name: Arc<str>,
    pub rules: ServerRules,
    pub endpoint: Endpoint,
}

impl Gateway {
    pub fn new(settings: Settings, store: Store) -> Gateway {
        let shared = Shared {
            registry: Arc::new(Registry::default()),
            settings: ArcSwap::from_pointee(settings),
            store,
            cache: ResultCache::default(),
            calls: TaskTracker::new(),
            draining: CancellationToken::new(),
        };
        Gateway { shared: Arc::new(shared) }
    }

    /// Starts to connect to a server. Nothing waits for it, and nothing else suffers if it fails.
    pub fn add_upstream(&self, spec: ServerSpec) {
        let registry = &self.shared.registry;
        let connect_timeout = self.settings().connect_timeout;
        let upstream = Upstream::new(spec, registry.clone(), connect_timeout);
        registry.add(upstream);
    }

    /// Adds a provider whose tools do not change.
    pub async fn add_provider(&self, name: &str, provider: Arc<dyn ToolProvider>) {
        self.shared.registry.add_fixed(name, provider).await;
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.shared.registry.catalog()
    }

    pub fn settings(&self) -> Arc<Settings> {
        self.shared.settings.load_full()
    }

    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// The last lines that a server wrote on stderr.
    pub fn stderr(&self, server: &str) -> Vec<String> {
        self.shared.registry.stderr(server)
    }

    /// Waits a little for servers that have not finished their first attempt to connect.
    pub async fn first_settled(&self) {
        self.settled(limits::FIRST_CONNECT_WAIT).await;
    }

    /// Waits until every server has connected or failed once, or the time is up.
    pub async fn settled(&self, within: Duration) {
        let _ = tokio::time::timeout(within, self.shared.registry.settled()).await;
    }

    /// Takes no new calls, gives running ones `within`, then closes every connection.
    pub async fn drain(&self, within: Duration) {
        self.shared.draining.cancel();
        self.shared.calls.close();
        let _ = tokio::time::timeout(within, self.shared.calls.wait()).await;
        let providers = self.shared.registry.take_all();
        join_all(providers.iter().map(|provider| provider.close())).await;
    }
}
