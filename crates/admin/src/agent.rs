//! `GET /agents`: who made calls, and when last.

use axum::Json;
use axum::extract::State;

use crate::Admin;
use crate::answer::Refused;
use crate::view::{AgentEntry, AgentList};

pub(crate) async fn list(State(admin): State<Admin>) -> Result<Json<AgentList>, Refused> {
    let agents = admin.ask(|reader| reader.seen_agents()).await?;
    Ok(Json(AgentList { agents: agents.into_iter().map(AgentEntry::from).collect() }))
}
