//! Makes the vectors of tools in the background, after their servers have listed them, and those of
//! queries. Vectors of tools are kept in the home: the next start only reads them.

use std::collections::HashMap;
use std::sync::Arc;

use domain::catalog::Listing;
use embed::{SearchModel, VERSION, Vector};
use mcp::task;
use search::SearchQuery;
use store::{VectorFile, VectorKey};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{Gateway, limits};

/// A list whose approved tools have no vectors yet.
pub(crate) struct UnreadListing {
    pub(crate) server: Arc<str>,
    pub(crate) listing: Arc<Listing>,
}

impl Gateway {
    /// Reports whether searches count meaning, by the settings and on this processor.
    pub fn is_learned(&self) -> bool {
        self.settings().learned && SearchModel::is_fast_here()
    }

    /// Makes the vectors of all tools that are listed, until the gate stops accepting calls.
    pub async fn make_vectors(self) {
        let mut changes = self.changes();
        loop {
            // While many servers start, lists arrive in quick succession.
            tokio::select! {
                () = tokio::time::sleep(limits::VECTORS_DELAY) => {}
                () = self.shared.draining.cancelled() => return,
            }
            changes.mark_unchanged();
            let lists = if self.is_learned() { self.shared.catalogs.unread() } else { Vec::new() };
            if !lists.is_empty() {
                self.read_lists(lists).await;
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                // The settings may have changed.
                () = tokio::time::sleep(limits::VECTORS_INTERVAL) => {}
                () = self.shared.draining.cancelled() => return,
            }
        }
    }

    /// Makes the vectors of some lists on a separate thread, at low priority.
    async fn read_lists(&self, lists: Vec<UnreadListing>) {
        let file = self.shared.store.vectors(VERSION, Vector::BYTES);
        let stop = self.shared.draining.clone();
        let (done, finished) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("search-vectors".to_owned());
        let started = thread.spawn(move || {
            lower_priority();
            Reading { known: file.load(), file, stop, computed: 0, stored: 0 }.read(&lists);
            drop(done);
        });
        match started {
            // The channel closes when the thread ends.
            Ok(_) => drop(finished.await),
            Err(error) => tracing::warn!("cannot start a thread for vectors: {error}"),
        }
    }

    /// Returns the vector of a query; `None` if words decide alone.
    pub async fn query_vector(&self, text: &str) -> Option<Vector> {
        if !self.is_learned() || !SearchQuery::is_for_vectors(text) || !self.catalog().has_vectors()
        {
            return None;
        }
        let text = text[..text.floor_char_boundary(limits::VECTOR_QUERY_BYTES_MAX)].to_owned();
        task::spawn_blocking(move || SearchModel::shipped().query(&text)).await.ok()
    }
}

/// Makes the vectors of some lists.
struct Reading {
    known: HashMap<VectorKey, Box<[u8]>>,
    file: VectorFile,
    stop: CancellationToken,
    computed: usize,
    stored: usize,
}

impl Reading {
    fn read(mut self, lists: &[UnreadListing]) {
        for UnreadListing { server, listing } in lists {
            let Some(vectors) = self.vectors(server, listing) else { return };
            listing.set_vectors(vectors);
        }
        let (computed, stored) = (self.computed, self.stored);
        tracing::info!(computed, stored, "search vectors are ready");
    }

    /// Returns the vectors of a list; `None` if the gate stops.
    fn vectors(&mut self, server: &str, listing: &Listing) -> Option<Vec<Vector>> {
        let mut vectors = Vec::new();
        let mut fresh = Vec::new();
        for text in listing.tool_texts(server) {
            if self.stop.is_cancelled() {
                return None;
            }
            let key = text.key();
            let stored = self.known.get(&key).and_then(|bytes| Vector::from_bytes(bytes));
            if let Some(vector) = stored {
                self.stored += 1;
                vectors.push(vector);
                continue;
            }
            let vector = SearchModel::shipped().tool(&text.text);
            self.computed += 1;
            self.known.insert(key, vector.to_bytes().into());
            fresh.push(key);
            vectors.push(vector);
            if fresh.len() == limits::VECTORS_PER_WRITE {
                self.write(&mut fresh);
            }
        }
        self.write(&mut fresh);
        Some(vectors)
    }

    fn write(&self, fresh: &mut Vec<VectorKey>) {
        self.file.append(fresh.iter().map(|key| (key, &*self.known[key])));
        fresh.clear();
    }
}

/// Lets everything else on the machine go first. Elsewhere, priorities are those of processes.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 10);
}
