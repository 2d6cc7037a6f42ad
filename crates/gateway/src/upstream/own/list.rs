//! The list of a client's own connection, which counts for that client in place of the shared one:
//! published when the connection is opened, and kept up to date while it lasts. A connection that is
//! closed leaves its list behind, as the shared one does.

use std::sync::Arc;

use arc_swap::ArcSwap;
use domain::catalog::Listing;
use mcp::message::Raw;

use crate::registry::{Claim, Registry};
use crate::trust::{Reviewer, Said, Told, Tools, Whose};
use crate::upstream::connection::Lister;
use crate::upstream::server_side::ClientSide;
use crate::{Settings, limits};

/// Whose lists are published, and by which right.
#[derive(Clone)]
pub(crate) struct Publisher {
    pub(crate) registry: Arc<Registry>,
    pub(crate) claim: Claim,
    pub(crate) server: Arc<str>,
    pub(crate) reviewer: Reviewer,
}

/// Keeps one client's list.
pub(super) struct Keeper {
    pub(super) publisher: Publisher,
    pub(super) session: Arc<str>,
    pub(super) side: Arc<ClientSide>,
    pub(super) lister: Lister,
    pub(super) settings: Arc<ArcSwap<Settings>>,
}

impl Keeper {
    pub(super) async fn publish(&self, tools: Vec<Raw>) {
        let listing = self.read(tools).await;
        let Publisher { registry, claim, server, .. } = &self.publisher;
        registry.publish_own(*claim, &self.session, server, listing);
    }

    /// Lists again when the server tells of a change, and from time to time, until the connection
    /// is gone. A list that fails leaves the one before.
    pub(super) async fn keep(self) {
        let Publisher { registry, claim, server, .. } = &self.publisher;
        loop {
            let refresh_interval = self.settings.load().refresh_interval;
            tokio::select! {
                _ = self.lister.peer.closed() => return,
                () = self.side.list_changed.notified() => {
                    tokio::time::sleep(limits::RELIST_PAUSE).await;
                }
                () = tokio::time::sleep(refresh_interval) => {}
            }
            let timeout = self.settings.load().connect_timeout;
            match self.lister.tools(timeout).await {
                Ok(tools) => {
                    let listing = self.read(tools).await;
                    registry.update_own(*claim, &self.session, server, listing);
                }
                Err(reason) => tracing::warn!(%server, reason, "a client's own list"),
            }
        }
    }

    async fn read(&self, tools: Vec<Raw>) -> Arc<Listing> {
        let Publisher { registry, server, reviewer, .. } = &self.publisher;
        let catalogs = [registry.catalog(), registry.catalog_of(Some(&self.session))];
        let mut known = catalogs.iter().filter_map(|c| Some(c.server(server)?.listing.clone()));
        // A list that is equal to one that is known changes nothing for anybody, and is that one.
        match known.find(|known| known.is_of(&tools)) {
            Some(known) => known,
            None => {
                let told = Told { tools: Tools::Listed(tools), said: Said::default() };
                reviewer.review(told, Whose::Own).await.listing
            }
        }
    }
}
