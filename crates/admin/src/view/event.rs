//! Events of the live stream.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::{ObjectBuilder, Ref};

use super::{ActivityRecord, ContentionEvent, LedgerState, RunEntry, StepEntry, words};

/// The fields of an event.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct StreamEvent {
    #[schema(schema_with = words::event_name)]
    pub event: String,
    /// The number of a change of the ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::event_number)]
    pub id: Option<String>,
    #[schema(schema_with = event_data)]
    pub data: String,
}

/// Describes the text as JSON with its schema.
fn event_data() -> ObjectBuilder {
    let form = Ref::from_schema_name(EventData::name());
    words::text().content_media_type("application/json").content_schema(Some(form))
}

/// The data of an event, by its name.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum EventData {
    Ledger(LedgerState),
    Activity(Box<ActivityEvent>),
    Contention(Box<ContentionEvent>),
    Run(Box<RunEvent>),
    Server(ServerEvent),
    Tool(ToolEvent),
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ActivityEvent {
    #[schema(schema_with = words::activity_phase)]
    pub phase: String,
    pub record: ActivityRecord,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct RunEvent {
    #[schema(schema_with = words::run_phase)]
    pub phase: String,
    pub run: RunEntry,
    /// The step that began or ended, if the event is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerEvent {
    pub name: String,
    #[schema(schema_with = words::server_state_or_removed)]
    pub state: String,
    #[schema(schema_with = words::server_state_or_null, required)]
    pub was: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ToolEvent {
    /// `server:tool`
    pub name: String,
    pub server: String,
    #[schema(schema_with = words::lock_or_removed)]
    pub status: String,
    #[schema(schema_with = words::lock_or_null, required)]
    pub was: Option<String>,
}
