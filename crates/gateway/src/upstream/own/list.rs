//! The list of a client's own connection, which replaces the shared one for that client: published
//! when the connection opens, and updated while it lasts. A closed connection leaves its list
//! behind, as the shared one does.

use std::sync::Arc;

use arc_swap::ArcSwap;
use domain::catalog::Listing;
use futures_util::future::join;
use mcp::message::Raw;
use tokio::time::Instant;

use crate::catalogs::Publisher;
use crate::trust::{Extras, ListScope, Offer, Reviewer, ToolList};
use crate::upstream::connection::Lister;
use crate::upstream::pace::RelistPace;
use crate::upstream::server_side::ClientSide;
use crate::{GateSettings, limits};

/// Keeps one client's list up to date.
pub(super) struct Keeper {
    pub(super) publisher: Publisher,
    pub(super) reviewer: Reviewer,
    pub(super) session: Arc<str>,
    pub(super) side: Arc<ClientSide>,
    pub(super) lister: Lister,
    pub(super) settings: Arc<ArcSwap<GateSettings>>,
    /// The number of changed resources in the shared list when the connection opened, so that an
    /// equal list is the same one.
    pub(super) resources_before: Option<u64>,
}

impl Keeper {
    pub(super) async fn publish(&self, tools: Vec<Raw>) {
        let listing = self.read(tools).await;
        self.publisher.publish_own(&self.session, listing);
    }

    /// Lists again when the server announces a change, and periodically, until the connection is
    /// lost. A failed list leaves the previous one.
    pub(super) async fn keep(self) {
        let mut pace = RelistPace::default();
        loop {
            let refresh_interval = self.settings.load().refresh_interval;
            let announced = async {
                self.side.list_changed.notified().await;
                tokio::time::sleep_until(pace.announced(Instant::now())).await;
            };
            tokio::select! {
                _ = self.lister.peer.closed() => return,
                () = announced => {}
                () = tokio::time::sleep(refresh_interval) => {}
            }
            let timeout = self.settings.load().connect_timeout;
            match self.lister.tools(timeout).await {
                Ok(tools) => {
                    let listing = self.read(tools).await;
                    self.publisher.update_own(&self.session, listing);
                }
                Err(failure) => {
                    tracing::warn!(server = %self.lister.server, reason = %failure, "cannot refresh a client's own list");
                }
            }
        }
    }

    async fn read(&self, tools: Vec<Raw>) -> Arc<Listing> {
        let timeout = self.settings.load().connect_timeout;
        let wait = timeout.min(limits::RESOURCES_WAIT);
        let (lists, resources) =
            join(self.lister.others(timeout), self.lister.resources(wait)).await;
        let resources = resources.or_else(|| self.publisher.resources(&self.session));
        let resources = resources.unwrap_or_default();
        let resources_changed = self.resources_before.unwrap_or(0) + self.side.resources_changed();
        let extras = Extras { instructions: None, lists, resources, resources_changed };
        let extras = extras.bounded(&self.lister.server);
        // A list equal to a known one changes nothing for anybody, so the known one is used.
        let tools = match self.publisher.published(&self.session, &tools) {
            Some(published) if extras == Extras::of_listing(&published) => return published,
            Some(published) => ToolList::Same(published),
            None => ToolList::New(tools),
        };
        let info = self.lister.welcome.server_name().map(Into::into);
        let offer = Offer { tools, extras, info };
        self.reviewer.review(offer, ListScope::Own).await.listing
    }
}
