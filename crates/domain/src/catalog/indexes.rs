//! The search indexes of one snapshot. Callers who see the same servers share them; what a caller
//! may not see is not in its index, since the rarity of a word would tell of it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::server::{NOTHING, Server};
use crate::search::{Index, Segment};

/// Sets of servers that indexes are kept for, beside that of all: there are few tokens and
/// profiles at work at a time, and an index is made in milliseconds.
const NARROW_MAX: usize = 8;

#[derive(Default)]
pub(super) struct Indexes {
    /// For callers that see every server, who are most.
    whole: Arc<Pair>,
    /// For others, by which servers they see; the one used last comes last.
    narrow: Mutex<Vec<(Vec<bool>, Arc<Pair>)>>,
}

/// Each made when it is first needed: while many servers connect, most snapshots are never
/// searched.
#[derive(Default)]
pub(super) struct Pair {
    texts: OnceLock<Index>,
    /// Of tools whose text nobody has approved.
    names: OnceLock<Index>,
}

impl Indexes {
    /// The indexes for those who see these servers.
    pub(super) fn of(&self, visible: &[bool]) -> Arc<Pair> {
        if visible.iter().all(|visible| *visible) {
            return self.whole.clone();
        }
        let mut narrow = self.lock();
        let found = match narrow.iter().position(|(known, _)| known == visible) {
            Some(place) => narrow.remove(place),
            None => (visible.to_vec(), Arc::default()),
        };
        if narrow.len() >= NARROW_MAX {
            narrow.remove(0);
        }
        let pair = found.1.clone();
        narrow.push(found);
        pair
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Vec<bool>, Arc<Pair>)>> {
        self.narrow.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Every server has its place, and one that is not seen neither a name nor a tool there.
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
