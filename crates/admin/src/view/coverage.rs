//! The number of calls that had a target.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The servers with calls, by name.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CoverageList {
    pub servers: Vec<ServerCoverage>,
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
    /// The rule or the reason; null in records of earlier versions.
    #[schema(required)]
    pub basis: Option<String>,
    pub has_target: bool,
    pub calls: u64,
}
