//! Makes a listing of the definitions that a server sent.

use std::sync::Arc;

use domain::catalog::Listing;
use domain::tool::Source;
use mcp::message::Raw;

/// A list that is equal to one that is `known` changes nothing for anybody, and is that one.
pub(super) async fn read(
    server: &Arc<str>,
    known: impl IntoIterator<Item = Arc<Listing>>,
    tools: Vec<Raw>,
) -> Arc<Listing> {
    if let Some(known) = known.into_iter().find(|known| known.is_of(&tools)) {
        return known;
    }
    let source = Source::Mcp(server.clone());
    // Reading and indexing thousands of tools takes milliseconds.
    let listing = tokio::task::spawn_blocking(move || Listing::new(&source, tools)).await;
    let listing = Arc::new(listing.unwrap_or_default());
    for fault in &listing.faults {
        tracing::warn!(%server, "{fault}");
    }
    listing
}
