//! The catalog version a pass-through client saw last, and whether a newer one needs a
//! notification.

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
    /// Lists being built; changes they will include need no notification.
    pending: usize,
}

/// A list being built.
pub(super) struct Pending<'a>(&'a ShownVersion);

impl ShownVersion {
    pub(super) fn begin(&self) -> Pending<'_> {
        self.lock().pending += 1;
        Pending(self)
    }

    pub(super) fn set(&self, version: CatalogVersion) {
        self.lock().version = Some(version);
    }

    /// Sets the version to compare with, unless the client has already seen one.
    pub(super) fn set_first(&self, version: CatalogVersion) {
        self.lock().version.get_or_insert(version);
    }

    /// Reports whether the client must be notified of this version; if so, the version counts as
    /// shown.
    pub(super) fn is_news(&self, version: CatalogVersion) -> bool {
        let mut last = self.lock();
        let is_news = last.pending == 0 && last.version.as_ref() != Some(&version);
        if is_news {
            last.version = Some(version);
        }
        is_news
    }

    /// Returns when a list has been built; changes made meanwhile may need a notification.
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
