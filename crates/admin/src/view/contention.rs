//! Agents that touched the same resource.

use domain::ledger::contention::{AgentNode, Edge, Graph};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words;

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ContentionGraph {
    pub nodes: Vec<ContentionNode>,
    pub nodes_total: usize,
    pub edges: Vec<ContentionEdge>,
    pub edges_total: usize,
}

/// An agent and its touches of known resources.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ContentionNode {
    pub agent: String,
    pub calls: u64,
    pub reads: u64,
    pub writes: u64,
    pub resources: u64,
}

/// Two agents that touched the same resource.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ContentionEdge {
    /// The agent that came first at the first meeting; in a stale read, the one whose content was
    /// old.
    pub from: String,
    pub to: String,
    #[schema(schema_with = words::contention_kind)]
    pub kind: String,
    pub system: String,
    /// The resources, closest meetings first.
    pub resources: Vec<String>,
    pub resources_total: u64,
    pub meetings: u64,
    #[schema(schema_with = words::moment)]
    pub first: String,
    #[schema(schema_with = words::moment)]
    pub last: String,
    #[schema(minimum = 0)]
    pub smallest_gap_ms: i64,
    /// The records of the closest meeting at each resource, closest first.
    pub records: Vec<String>,
}

impl From<Graph<String>> for ContentionGraph {
    fn from(graph: Graph<String>) -> ContentionGraph {
        ContentionGraph {
            nodes: graph.nodes.into_iter().map(ContentionNode::from).collect(),
            nodes_total: graph.nodes_total,
            edges: graph.edges.into_iter().map(ContentionEdge::from).collect(),
            edges_total: graph.edges_total,
        }
    }
}

impl From<AgentNode> for ContentionNode {
    fn from(node: AgentNode) -> ContentionNode {
        let AgentNode { agent, calls, reads, writes, resources } = node;
        ContentionNode { agent, calls, reads, writes, resources }
    }
}

impl From<Edge<String>> for ContentionEdge {
    fn from(edge: Edge<String>) -> ContentionEdge {
        ContentionEdge {
            from: edge.from,
            to: edge.to,
            kind: edge.kind.as_str().to_owned(),
            system: edge.system,
            resources: edge.resources.iter().map(|resource| resource.to_string()).collect(),
            resources_total: edge.resources_total,
            meetings: edge.meetings,
            first: exact(edge.first),
            last: exact(edge.last),
            smallest_gap_ms: edge.smallest_gap_ms,
            records: edge.records,
        }
    }
}

/// Writes a time with all its digits, which show the order of two touches.
fn exact(at_us: i64) -> String {
    Timestamp::from_microsecond(at_us).map(|at| at.to_string()).unwrap_or_default()
}
