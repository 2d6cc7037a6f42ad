//! Agents that touched the same resource.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use store::read::{MetRecord, StoredMeeting, TargetLosses};
use touch::contention::{AgentNode, Edge, Graph};
use utoipa::ToSchema;

use super::{ActivityRecord, AgentLosses, words};

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ContentionGraph {
    pub nodes: Vec<ContentionNode>,
    pub nodes_total: usize,
    pub edges: Vec<ContentionEdge>,
    pub edges_total: usize,
    /// Agents whose records do not tell all that they touched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<AgentLosses>,
}

/// An agent and its touches of known resources.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ContentionNode {
    pub agent: String,
    pub calls: u64,
    pub reads: u64,
    pub writes: u64,
    /// Touches that are not known to be reads or writes.
    pub unknown: u64,
    pub resources: u64,
}

/// Two agents that touched the same resource.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ContentionEdge {
    /// The same for these agents, this kind and this system, whenever they meet.
    #[schema(schema_with = words::edge_id)]
    pub id: String,
    /// The agent that came first at the first meeting; in a stale read, the one whose content was
    /// old.
    pub from: String,
    pub to: String,
    #[schema(schema_with = words::contention_kind)]
    pub kind: String,
    /// The meaning of the kind, in plain words.
    pub words: String,
    pub system: String,
    /// The resources, closest meetings first.
    pub resources: Vec<String>,
    /// The container of each resource, if one agent touched that and the other its contents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<String>,
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

/// An edge, told in sentences, and the calls of its closest meeting.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ContentionStory {
    pub edge: ContentionEdge,
    pub story: Vec<String>,
    pub records: Vec<ActivityRecord>,
}

/// A write that met another agent's recent touch of the same resource.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ContentionEvent {
    #[schema(schema_with = words::contention_kind)]
    pub kind: String,
    /// The meaning of the kind, in plain words.
    pub words: String,
    pub system: String,
    pub resource: String,
    #[schema(minimum = 0)]
    pub gap_ms: i64,
    /// The write.
    pub write: MeetingSide,
    /// The touch that it met.
    pub other: MeetingSide,
}

/// One side of a meeting.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct MeetingSide {
    /// The id of the record.
    pub record: String,
    pub agent: String,
    /// `server:tool`
    pub tool: String,
    #[schema(schema_with = words::access)]
    pub access: String,
    #[schema(schema_with = words::moment)]
    pub timestamp: String,
}

impl From<&StoredMeeting> for ContentionEvent {
    fn from(meeting: &StoredMeeting) -> ContentionEvent {
        ContentionEvent {
            kind: meeting.kind.as_str().to_owned(),
            words: meeting.kind.words().to_owned(),
            system: meeting.system.clone(),
            resource: meeting.resource.clone(),
            gap_ms: meeting.gap_us / 1000,
            write: MeetingSide::from(&meeting.write),
            other: MeetingSide::from(&meeting.other),
        }
    }
}

impl From<&MetRecord> for MeetingSide {
    fn from(side: &MetRecord) -> MeetingSide {
        MeetingSide {
            record: side.id.clone(),
            agent: side.agent.clone(),
            tool: format!("{}:{}", side.server, side.tool),
            access: side.access.as_str().to_owned(),
            timestamp: side.at.to_string(),
        }
    }
}

impl ContentionGraph {
    pub(crate) fn new(graph: Graph<String>, losses: Vec<TargetLosses>) -> ContentionGraph {
        ContentionGraph {
            losses: losses.into_iter().map(AgentLosses::from).collect(),
            nodes: graph.nodes.into_iter().map(ContentionNode::from).collect(),
            nodes_total: graph.nodes_total,
            edges: graph.edges.into_iter().map(ContentionEdge::from).collect(),
            edges_total: graph.edges_total,
        }
    }
}

impl From<AgentNode> for ContentionNode {
    fn from(node: AgentNode) -> ContentionNode {
        let AgentNode { agent, calls, reads, writes, unknown, resources } = node;
        ContentionNode { agent, calls, reads, writes, unknown, resources }
    }
}

impl From<Edge<String>> for ContentionEdge {
    fn from(edge: Edge<String>) -> ContentionEdge {
        ContentionEdge {
            id: edge.id.to_string(),
            from: edge.from,
            to: edge.to,
            kind: edge.kind.as_str().to_owned(),
            words: edge.kind.words().to_owned(),
            system: edge.system,
            resources: edge.resources.iter().map(|resource| resource.to_string()).collect(),
            containers: edge.containers.iter().map(|container| container.to_string()).collect(),
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
