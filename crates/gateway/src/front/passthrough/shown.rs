//! What a pass-through client was shown last, and whether there is something newer to tell it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::catalog::CatalogVersion;
use tokio::sync::Notify;

#[derive(Default)]
pub(super) struct ShownVersion {
    last: Mutex<LastListing>,
    listed: Notify,
}

#[derive(Default)]
struct LastListing {
    version: Option<CatalogVersion>,
    /// Lists that are being made: what they will show is no news.
    pending: usize,
}

/// A list that is being made.
pub(super) struct Pending<'a>(&'a ShownVersion);

impl ShownVersion {
    pub(super) fn begin(&self) -> Pending<'_> {
        self.lock().pending += 1;
        Pending(self)
    }

    pub(super) fn set(&self, version: CatalogVersion) {
        self.lock().version = Some(version);
    }

    /// News is what comes after this, or after what the client was shown already.
    pub(super) fn set_first(&self, version: CatalogVersion) {
        self.lock().version.get_or_insert(version);
    }

    /// Whether the client must be told of this version; it counts as shown then.
    pub(super) fn is_news(&self, version: CatalogVersion) -> bool {
        let mut last = self.lock();
        let is_news = last.pending == 0 && last.version.as_ref() != Some(&version);
        if is_news {
            last.version = Some(version);
        }
        is_news
    }

    /// Returns when a list has been made: what changed meanwhile may be news.
    pub(super) async fn listed(&self) {
        self.listed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, LastListing> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.lock().pending -= 1;
        self.0.listed.notify_one();
    }
}
