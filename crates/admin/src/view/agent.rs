//! The agents that made calls.

use serde::{Deserialize, Serialize};
use store::read::SeenAgent;
use utoipa::ToSchema;

/// The agents whose calls are kept, most recent first; at most 200.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    pub agents: Vec<AgentEntry>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct AgentEntry {
    pub name: String,
    /// The client's own name and version.
    pub client: String,
    /// The name of its token.
    pub token: String,
    /// The start of its last call.
    pub last_call: String,
}

impl From<SeenAgent> for AgentEntry {
    fn from(agent: SeenAgent) -> AgentEntry {
        let SeenAgent { name, client, token, last_call } = agent;
        AgentEntry { name, client, token, last_call: last_call.to_string() }
    }
}
