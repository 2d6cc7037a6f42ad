//! The resources at which two agents came closest.

use std::sync::Arc;

use super::edges::Site;
use super::graph::{RECORDS_MAX, RESOURCES_MAX, records_of};
use super::meeting::Meeting;
use super::touch::ContentionKind;

/// The resources with the closest meetings, ordered by gap.
pub(super) struct Closest<R> {
    best: Vec<Encounter<R>>,
    pub(super) total: u64,
    latest_site: u64,
}

/// The closest meeting at one resource.
struct Encounter<R> {
    gap_us: i64,
    site: u64,
    resource: Arc<str>,
    container: Option<Arc<str>>,
    records: [R; 3],
}

/// The resources of the closest meetings, their containers, and the records.
pub(super) struct ClosestLists<R> {
    pub(super) resources: Vec<Arc<str>>,
    pub(super) containers: Vec<Arc<str>>,
    pub(super) records: Vec<R>,
}

impl<R> Default for Closest<R> {
    fn default() -> Closest<R> {
        Closest { best: Vec::new(), total: 0, latest_site: 0 }
    }
}

impl<R: Copy> Closest<R> {
    /// Adds a meeting. The number of a site may repeat, but only consecutively: either agent may have
    /// come first, and in a crowd they may have returned.
    pub(super) fn add(&mut self, site: Site<'_>, meeting: &Meeting<R>) {
        let gap_us = meeting.gap_us;
        let Site { number, resource, container } = site;
        let again = std::mem::replace(&mut self.latest_site, number) == number;
        self.total += u64::from(!again);
        if self.best.len() == RESOURCES_MAX && self.best[RESOURCES_MAX - 1].gap_us <= gap_us {
            return;
        }
        if again && let Some(known) = self.best.iter().position(|one| one.site == number) {
            if self.best[known].gap_us <= gap_us {
                return;
            }
            self.best.remove(known);
        }
        let at = self.best.partition_point(|one| one.gap_us <= gap_us);
        let (resource, container) = (Arc::clone(resource), container.cloned());
        let records = meeting.records;
        self.best.insert(at, Encounter { gap_us, site: number, resource, container, records });
        self.best.truncate(RESOURCES_MAX);
    }

    /// Appends resources that come after all of these.
    pub(super) fn follow(&mut self, later: Closest<R>) {
        self.total += later.total;
        // A stable sort: of two equally close meetings, the earlier resource stays ahead.
        self.best.extend(later.best);
        self.best.sort_by_key(|one| one.gap_us);
        self.best.truncate(RESOURCES_MAX);
    }

    pub(super) fn lists(self, kind: ContentionKind) -> ClosestLists<R> {
        let each = records_of(kind);
        let records = self.best.iter().flat_map(|place| &place.records[..each]).copied();
        let records = records.take(RECORDS_MAX - RECORDS_MAX % each).collect();
        let containers = self.best.iter().filter_map(|one| one.container.clone()).collect();
        let resources = self.best.into_iter().map(|one| one.resource).collect();
        ClosestLists { resources, containers, records }
    }
}
