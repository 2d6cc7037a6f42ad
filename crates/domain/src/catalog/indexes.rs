//! The search indexes of one snapshot. Callers who see the same servers share them. An index
//! contains only what its callers may see, since the rarity of a word would reveal hidden tools.

use std::sync::{Arc, OnceLock};

use super::recent::Recent;
use super::server::{NOTHING, Server};
use search::{Index, Segment};

#[derive(Default)]
pub(super) struct Indexes {
    /// For callers that see every server, as most do.
    whole: Arc<Pair>,
    /// For other callers, by the servers they see.
    narrow: Recent<Vec<bool>, Pair>,
}

/// Two indexes, each built on first use: while many servers connect, most snapshots are never
/// searched.
#[derive(Default)]
pub(super) struct Pair {
    texts: OnceLock<Index>,
    /// The index of tools whose text has not been approved.
    names: OnceLock<Index>,
}

impl Indexes {
    /// Returns the indexes for callers who see these servers.
    pub(super) fn of(&self, visible: &[bool]) -> Arc<Pair> {
        if visible.iter().all(|visible| *visible) {
            return self.whole.clone();
        }
        self.narrow.get(|known| known == visible, || (visible.to_vec(), Pair::default()))
    }
}

impl Pair {
    pub(super) fn is_prepared(&self) -> bool {
        self.texts.get().is_some()
    }

    pub(super) fn texts(&self, servers: &[Arc<Server>], visible: &[bool]) -> &Index {
        self.texts.get_or_init(|| index(servers, visible, Server::segment))
    }

    pub(super) fn names(&self, servers: &[Arc<Server>], visible: &[bool]) -> &Index {
        self.names.get_or_init(|| index(servers, visible, Server::names))
    }
}

/// Builds an index. Every server keeps its position; a hidden one has no name and no tools.
fn index(
    servers: &[Arc<Server>],
    visible: &[bool],
    segment: impl Fn(&Server) -> &Arc<Segment>,
) -> Index {
    let parts = servers.iter().zip(visible).map(|(server, visible)| {
        if *visible {
            (server.name.clone(), segment(server).clone())
        } else {
            (Arc::from(""), NOTHING.clone())
        }
    });
    Index::build(parts.collect())
}
