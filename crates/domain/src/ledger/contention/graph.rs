//! The published form of contention.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::Kind;
use super::meeting::Meeting;

/// What an edge lists; the counts beside the lists say how many there are.
pub const RESOURCES_MAX: usize = 20;
pub const RECORDS_MAX: usize = 20;

/// More than a person can look at; the worst edges and the busiest agents are kept.
pub const EDGES_MAX: usize = 2_000;
pub const NODES_MAX: usize = 2_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Graph<R> {
    pub nodes: Vec<Node>,
    pub nodes_total: usize,
    pub edges: Vec<Edge<R>>,
    pub edges_total: usize,
}

/// An agent and what it did to resources that are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    pub agent: String,
    pub calls: u64,
    pub reads: u64,
    pub writes: u64,
    pub resources: u64,
}

/// Two agents that met. A meeting is a touch for which the other agent had touched the same
/// resource within the window before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge<R> {
    /// Came first at the first meeting; in a stale read, the agent whose content was old.
    pub from: String,
    pub to: String,
    pub kind: Kind,
    pub system: String,
    /// The closest meetings first.
    pub resources: Vec<Arc<str>>,
    pub resources_total: u64,
    pub meetings: u64,
    #[serde(serialize_with = "moment")]
    pub first: i64,
    #[serde(serialize_with = "moment")]
    pub last: i64,
    pub smallest_gap_ms: i64,
    /// Of the closest meeting at each resource, the closest first.
    pub records: Vec<R>,
}

impl<R> Graph<R> {
    pub(super) fn new(mut nodes: Vec<Node>, mut edges: Vec<Edge<R>>) -> Graph<R> {
        let (nodes_total, edges_total) = (nodes.len(), edges.len());
        nodes.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.agent.cmp(&b.agent)));
        nodes.truncate(NODES_MAX);
        edges.sort_by(|a, b| {
            (a.kind, b.meetings, &a.from, &a.to, &a.system)
                .cmp(&(b.kind, a.meetings, &b.from, &b.to, &b.system))
        });
        edges.truncate(EDGES_MAX);
        Graph { nodes, nodes_total, edges, edges_total }
    }

    /// The same graph with other names for the records.
    pub fn with_records<S>(self, mut name: impl FnMut(R) -> S) -> Graph<S> {
        let Graph { nodes, nodes_total, edges, edges_total } = self;
        let edges = edges.into_iter().map(|edge| edge.with_records(&mut name)).collect();
        Graph { nodes, nodes_total, edges, edges_total }
    }
}

impl Node {
    pub(super) fn new(agent: &str) -> Node {
        Node { agent: agent.to_owned(), calls: 0, reads: 0, writes: 0, resources: 0 }
    }

    /// What the same agent did to other resources.
    pub(super) fn add(&mut self, other: &Node) {
        self.calls += other.calls;
        self.reads += other.reads;
        self.writes += other.writes;
        self.resources += other.resources;
    }
}

impl<R: Copy> Edge<R> {
    pub(super) fn new(
        (from, to): (String, String),
        kind: Kind,
        system: &str,
        whole: &Meeting<R>,
        closest: Closest<R>,
    ) -> Edge<R> {
        let resources_total = closest.total;
        let (resources, records) = closest.lists(kind);
        Edge {
            from,
            to,
            kind,
            system: system.to_owned(),
            resources,
            resources_total,
            meetings: whole.count,
            first: whole.first_us,
            last: whole.last_us,
            smallest_gap_ms: whole.gap_us / 1000,
            records,
        }
    }
}

impl<R> Edge<R> {
    fn with_records<S>(self, name: &mut impl FnMut(R) -> S) -> Edge<S> {
        Edge {
            from: self.from,
            to: self.to,
            kind: self.kind,
            system: self.system,
            resources: self.resources,
            resources_total: self.resources_total,
            meetings: self.meetings,
            first: self.first,
            last: self.last,
            smallest_gap_ms: self.smallest_gap_ms,
            records: self.records.into_iter().map(name).collect(),
        }
    }
}

/// The resources with the closest meetings, in order of the gap.
pub(super) struct Closest<R> {
    best: Vec<Place<R>>,
    total: u64,
    latest_key: u64,
}

struct Place<R> {
    gap_us: i64,
    key: u64,
    resource: Arc<str>,
    records: [R; 3],
}

impl<R> Default for Closest<R> {
    fn default() -> Closest<R> {
        Closest { best: Vec::new(), total: 0, latest_key: 0 }
    }
}

impl<R: Copy> Closest<R> {
    /// `key` is the number of the resource. It may come more than once, but then in a row: each of
    /// the two agents may have come first, and in a crowd they may have come again.
    pub(super) fn add(&mut self, key: u64, resource: &Arc<str>, meeting: &Meeting<R>) {
        let gap_us = meeting.gap_us;
        let again = std::mem::replace(&mut self.latest_key, key) == key;
        self.total += u64::from(!again);
        if self.best.len() == RESOURCES_MAX && self.best[RESOURCES_MAX - 1].gap_us <= gap_us {
            return;
        }
        if again && let Some(known) = self.best.iter().position(|place| place.key == key) {
            if self.best[known].gap_us <= gap_us {
                return;
            }
            self.best.remove(known);
        }
        let at = self.best.partition_point(|place| place.gap_us <= gap_us);
        let resource = Arc::clone(resource);
        self.best.insert(at, Place { gap_us, key, resource, records: meeting.records });
        self.best.truncate(RESOURCES_MAX);
    }

    /// Adds resources that come after all of these.
    pub(super) fn follow(&mut self, later: Closest<R>) {
        self.total += later.total;
        // Stable: of two meetings that are as close, the earlier resource stays ahead.
        self.best.extend(later.best);
        self.best.sort_by_key(|place| place.gap_us);
        self.best.truncate(RESOURCES_MAX);
    }

    fn lists(self, kind: Kind) -> (Vec<Arc<str>>, Vec<R>) {
        let each = if kind == Kind::StaleRead { 3 } else { 2 };
        let records = self.best.iter().flat_map(|place| &place.records[..each]).copied();
        let records = records.take(RECORDS_MAX - RECORDS_MAX % each).collect();
        (self.best.into_iter().map(|place| place.resource).collect(), records)
    }
}

/// As the API writes every time.
fn moment<S: Serializer>(at_us: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    let timestamp = Timestamp::from_microsecond(*at_us).map_err(serde::ser::Error::custom)?;
    serializer.collect_str(&timestamp)
}
