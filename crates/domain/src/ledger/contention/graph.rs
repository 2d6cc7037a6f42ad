//! The published form of contention.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::touch::ContentionKind;

/// What an edge lists; the counts beside the lists say how many there are.
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

/// An agent and what it did to resources that are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentNode {
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
    pub kind: ContentionKind,
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
    pub(super) fn new(mut nodes: Vec<AgentNode>, mut edges: Vec<Edge<R>>) -> Graph<R> {
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

impl AgentNode {
    pub(super) fn new(agent: &str) -> AgentNode {
        AgentNode { agent: agent.to_owned(), calls: 0, reads: 0, writes: 0, resources: 0 }
    }

    /// What the same agent did to other resources.
    pub(super) fn add(&mut self, other: &AgentNode) {
        self.calls += other.calls;
        self.reads += other.reads;
        self.writes += other.writes;
        self.resources += other.resources;
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

/// As the API writes every time.
fn moment<S: Serializer>(at_us: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    let timestamp = Timestamp::from_microsecond(*at_us).map_err(serde::ser::Error::custom)?;
    serializer.collect_str(&timestamp)
}
