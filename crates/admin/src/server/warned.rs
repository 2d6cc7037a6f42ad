//! The number of items with warnings of each server. Computing it takes a while, so it is kept until
//! the items of the server or the tools of any server change.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use domain::Catalog;
use mcp::task;
use store::state::ServerItem;
use suspect::KnownNames;

use crate::review::{Review, known_names};

/// The last counts by server, each with a hash of what it was computed from.
#[derive(Default)]
pub(crate) struct WarnedItems(Mutex<HashMap<String, (u64, usize)>>);

impl WarnedItems {
    /// Counts the listed items that have warnings, approved or not.
    pub(super) async fn count(
        &self,
        catalog: &Arc<Catalog>,
        server: &str,
        items: Vec<ServerItem>,
    ) -> usize {
        let hash = hash(catalog, &items);
        let counts = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, count)) = counts().get(server).filter(|(known, _)| *known == hash) {
            return *count;
        }
        let (catalog, owned) = (catalog.clone(), server.to_owned());
        let counting = task::spawn_blocking(move || {
            let known = known_names(&catalog);
            items.iter().filter(|item| item.listed && is_warned(item, &owned, &known)).count()
        });
        let count = counting.await.unwrap_or_default();
        counts().insert(server.to_owned(), (hash, count));
        count
    }
}

fn hash(catalog: &Catalog, items: &[ServerItem]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for server in catalog.servers() {
        (&server.name, server.listing.hash()).hash(&mut hasher);
    }
    for item in items.iter().filter(|item| item.listed) {
        let shown = item.pending.as_ref().or(item.approved.as_ref());
        (&item.kind, &item.name, shown.map(|shown| &shown.fingerprint)).hash(&mut hasher);
    }
    hasher.finish()
}

fn is_warned(item: &ServerItem, server: &str, known: &KnownNames) -> bool {
    Review::of(item).is_some_and(|review| !review.warnings(server, known).is_empty())
}
