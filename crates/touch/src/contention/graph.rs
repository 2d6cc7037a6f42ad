//! The published form of contention.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::edge_id::EdgeId;
use super::touch::ContentionKind;

/// Limits on an edge's lists; the counts next to them give the totals.
pub const RESOURCES_MAX: usize = 20;
pub const RECORDS_MAX: usize = 20;

/// More than a person can look at; the worst edges and the busiest agents are kept.
pub const EDGES_MAX: usize = 2_000;
pub const NODES_MAX: usize = 2_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Graph<R> {
    pub nodes: Vec<AgentNode>,
    pub nodes_total: usize,
    pub edges: Vec<Edge<R>>,
    pub edges_total: usize,
}

/// An agent and its activity on known resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentNode {
    pub agent: String,
    pub calls: u64,
    pub reads: u64,
    pub writes: u64,
    /// Touches of which the access is unknown.
    pub unknown: u64,
    pub resources: u64,
}

/// Two agents that met. A meeting is a touch of a resource that the other agent touched earlier
/// within the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge<R> {
    /// The same for these agents, this kind and this system, whenever they meet.
    pub id: EdgeId,
    /// The agent that came first at the first meeting; in a stale read, the agent whose content was
    /// outdated.
    pub from: String,
    pub to: String,
    pub kind: ContentionKind,
    pub system: String,
    /// Closest meetings first.
    pub resources: Vec<Arc<str>>,
    /// The container of each resource, if one agent touched that and the other its contents;
    /// otherwise empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Arc<str>>,
    pub resources_total: u64,
    pub meetings: u64,
    #[serde(serialize_with = "moment")]
    pub first: i64,
    #[serde(serialize_with = "moment")]
    pub last: i64,
    pub smallest_gap_ms: i64,
    /// The records of the closest meeting at each resource, closest first.
    pub records: Vec<R>,
}

impl<R> Graph<R> {
    pub(super) fn new(mut nodes: Vec<AgentNode>, mut edges: Vec<Edge<R>>) -> Graph<R> {
        let (nodes_total, edges_total) = (nodes.len(), edges.len());
        nodes.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.agent.cmp(&b.agent)));
        nodes.truncate(NODES_MAX);
        edges.sort_by(|a, b| {
            (a.kind, b.meetings, &a.from, &a.to, &a.system, a.is_within()).cmp(&(
                b.kind,
                a.meetings,
                &b.from,
                &b.to,
                &b.system,
                b.is_within(),
            ))
        });
        edges.truncate(EDGES_MAX);
        edges.iter_mut().for_each(|edge| edge.id = edge.own_id());
        Graph { nodes, nodes_total, edges, edges_total }
    }

    /// Returns the same graph with other names for the records.
    pub fn with_records<S>(self, mut name: impl FnMut(R) -> S) -> Graph<S> {
        let Graph { nodes, nodes_total, edges, edges_total } = self;
        let edges = edges.into_iter().map(|edge| edge.with_records(&mut name)).collect();
        Graph { nodes, nodes_total, edges, edges_total }
    }
}

impl AgentNode {
    pub(super) fn new(agent: &str) -> AgentNode {
        AgentNode {
            agent: agent.to_owned(),
            calls: 0,
            reads: 0,
            writes: 0,
            unknown: 0,
            resources: 0,
        }
    }

    /// Adds the same agent's activity on other resources.
    pub(super) fn add(&mut self, other: &AgentNode) {
        self.calls += other.calls;
        self.reads += other.reads;
        self.writes += other.writes;
        self.unknown += other.unknown;
        self.resources += other.resources;
    }
}

impl<R> Edge<R> {
    /// Computes the id.
    pub(super) fn own_id(&self) -> EdgeId {
        EdgeId::of([&self.from, &self.to], self.kind, &self.system, self.is_within())
    }

    /// Reports whether one agent touched a container, and the other its contents.
    fn is_within(&self) -> bool {
        !self.containers.is_empty()
    }

    /// Returns how many of the records are of one meeting.
    pub fn records_per_meeting(&self) -> usize {
        records_of(self.kind)
    }

    fn with_records<S>(self, name: &mut impl FnMut(R) -> S) -> Edge<S> {
        Edge {
            id: self.id,
            from: self.from,
            to: self.to,
            kind: self.kind,
            system: self.system,
            resources: self.resources,
            containers: self.containers,
            resources_total: self.resources_total,
            meetings: self.meetings,
            first: self.first,
            last: self.last,
            smallest_gap_ms: self.smallest_gap_ms,
            records: self.records.into_iter().map(name).collect(),
        }
    }
}

pub(super) fn records_of(kind: ContentionKind) -> usize {
    if kind == ContentionKind::StaleRead { 3 } else { 2 }
}

/// Formats a time as the API does everywhere.
fn moment<S: Serializer>(at_us: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    let timestamp = Timestamp::from_microsecond(*at_us).map_err(serde::ser::Error::custom)?;
    serializer.collect_str(&timestamp)
}
