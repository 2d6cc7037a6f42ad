//! The number of calls that had a target.

use serde::{Deserialize, Serialize};
use store::read::TargetLosses;
use utoipa::ToSchema;

/// The servers with calls, by name.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CoverageList {
    pub servers: Vec<ServerCoverage>,
    /// Agents whose records do not tell all that they touched, the most dropped targets first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<AgentLosses>,
}

/// An agent with calls of which a target was dropped or shortened.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct AgentLosses {
    pub agent: String,
    /// Calls of which a target is left out: its name is too long, or there are too many.
    pub dropped: u64,
    /// Calls of which a target has `[redacted]` for a part of its name.
    pub shortened: u64,
}

impl From<TargetLosses> for AgentLosses {
    fn from(losses: TargetLosses) -> AgentLosses {
        let TargetLosses { agent, dropped, shortened } = losses;
        AgentLosses { agent, dropped, shortened }
    }
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ServerCoverage {
    pub server: String,
    pub calls: u64,
    /// The calls with a target.
    pub with_target: u64,
    /// The rules that found targets and the reasons that there were none, the most frequent first.
    pub by_basis: Vec<BasisCount>,
    pub tools: Vec<ToolCoverage>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ToolCoverage {
    pub tool: String,
    pub calls: u64,
    pub with_target: u64,
    pub by_basis: Vec<BasisCount>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct BasisCount {
    /// The rule or the reason; null in records that name no rule, such as events without a resource.
    #[schema(required)]
    pub basis: Option<String>,
    pub has_target: bool,
    pub calls: u64,
}
