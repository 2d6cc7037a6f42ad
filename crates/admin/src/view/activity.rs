//! Activity records.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::read::{Activity, NearNames, Record, RecordedTouch};
use utoipa::ToSchema;

use super::{milliseconds, moment, words};

/// Records, newest first.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ActivityPage {
    pub activities: Vec<ActivityRecord>,
    /// The cursor of the next page; null at the end.
    #[schema(required)]
    pub next_cursor: Option<String>,
    pub total: u64,
    /// The total is exact; otherwise it is a lower bound.
    pub total_is_exact: bool,
    /// Names of the ledger close to the one that a filter gives, if nothing has touched that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near: Option<NearTargets>,
}

/// Resources, folders or systems with similar names.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct NearTargets {
    /// The parameter that they would be a value of.
    pub field: String,
    /// The closest first.
    pub names: Vec<String>,
}

impl ActivityPage {
    pub(crate) fn new(page: Activity, near: Option<NearNames>) -> ActivityPage {
        let near = near.map(|near| NearTargets { field: near.field.to_owned(), names: near.names });
        ActivityPage {
            near,
            activities: page.records.iter().map(ActivityRecord::brief).collect(),
            next_cursor: page.next_cursor,
            total: page.total.count(),
            total_is_exact: page.total.is_exact(),
        }
    }
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ActivityRecord {
    pub id: String,
    #[serde(rename = "type")]
    #[schema(schema_with = words::record_kind)]
    pub kind: String,
    pub source: String,
    pub surface: String,
    pub server_name: String,
    pub tool_name: String,
    #[schema(schema_with = words::record_status)]
    pub status: String,
    #[schema(required)]
    pub error_code: Option<String>,
    #[schema(required)]
    pub error_message: Option<String>,
    /// The duration; null while a call runs.
    #[schema(required, minimum = 0)]
    pub duration_ms: Option<f64>,
    #[schema(schema_with = words::moment)]
    pub timestamp: String,
    #[schema(required)]
    pub session_id: Option<String>,
    #[schema(required)]
    pub request_id: Option<String>,
    pub agent: CallingAgent,
    /// The main resource that the call touched.
    #[schema(required)]
    pub target: Option<TouchedResource>,
    /// All resources that the call touched, the main one first.
    #[serde(default)]
    pub targets: Vec<ResourceTouch>,
    /// The rule that found the resources, or the reason that there are none.
    #[serde(default)]
    #[schema(required)]
    pub target_basis: Option<String>,
    /// The record of the same call in which these touches count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined_to: Option<String>,
    /// Other records of the same call, only in a single record. Their touches count here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined_from: Vec<String>,
    #[schema(required)]
    pub receipt_id: Option<String>,
    pub metadata: CallMetadata,
    /// The arguments, only in a single record: JSON, or text if they were truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::anything)]
    pub arguments: Option<Value>,
    /// The response, only in a single record: JSON, or text if it was truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::anything)]
    pub response: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_truncated: Option<bool>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct CallingAgent {
    pub name: String,
    pub client: String,
    pub token: String,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct TouchedResource {
    pub system: String,
    pub resource: String,
}

/// A resource, and what the call did to it.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ResourceTouch {
    pub system: String,
    pub resource: String,
    #[schema(schema_with = words::access)]
    pub access: String,
}

impl From<&RecordedTouch> for ResourceTouch {
    fn from(touch: &RecordedTouch) -> ResourceTouch {
        ResourceTouch {
            system: touch.system.clone(),
            resource: touch.resource.clone(),
            access: touch.access.as_str().to_owned(),
        }
    }
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct CallMetadata {
    #[schema(required)]
    pub tool_variant: Option<String>,
    #[schema(schema_with = words::class_or_null, required)]
    pub effective_class: Option<String>,
    pub unverified: bool,
    pub warnings: Vec<String>,
    #[schema(required)]
    pub trace_id: Option<String>,
    pub arguments_bytes: u64,
    pub response_bytes: u64,
    /// A person's decision, if the record is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<DeclaredIntent>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct DeclaredIntent {
    #[schema(required)]
    pub operation_type: Option<String>,
    #[schema(required)]
    pub data_sensitivity: Option<String>,
    #[schema(required)]
    pub reason: Option<String>,
}

impl ActivityRecord {
    /// Leaves out the texts of arguments and response.
    pub(crate) fn brief(record: &Record) -> ActivityRecord {
        ActivityRecord {
            id: record.id.clone(),
            kind: record.kind.as_str().to_owned(),
            source: record.source.clone(),
            surface: record.surface.clone(),
            server_name: record.server.clone(),
            tool_name: record.tool.clone(),
            status: record.status.as_str().to_owned(),
            error_code: record.error_code.clone(),
            error_message: record.error_message.clone(),
            duration_ms: record.duration.map(milliseconds),
            timestamp: moment(record.timestamp),
            session_id: record.session_id.clone(),
            request_id: record.request_id.clone(),
            agent: CallingAgent {
                name: record.agent.name.clone(),
                client: record.agent.client.clone(),
                token: record.agent.token.clone(),
            },
            target: TouchedResource::of(record),
            targets: record.targets.iter().map(ResourceTouch::from).collect(),
            target_basis: record.target_basis.clone(),
            joined_to: record.joined.clone(),
            joined_from: record.joined_by.clone(),
            receipt_id: record.receipt_id.clone(),
            metadata: CallMetadata::of(record),
            arguments: None,
            response: None,
            response_truncated: None,
        }
    }

    pub(crate) fn whole(record: &Record) -> ActivityRecord {
        ActivityRecord {
            arguments: Some(payload(record.payloads.arguments.as_deref())),
            response: Some(payload(record.payloads.response.as_deref())),
            response_truncated: Some(record.response_truncated),
            ..ActivityRecord::brief(record)
        }
    }
}

/// Returns the JSON if it is complete, otherwise the text that is left of it.
fn payload(text: Option<&str>) -> Value {
    match text {
        Some(text) => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        None => Value::Null,
    }
}

impl TouchedResource {
    pub(super) fn of(record: &Record) -> Option<TouchedResource> {
        let target = record.target.as_ref()?;
        let (system, resource) = (target.system.clone(), target.resource.clone());
        Some(TouchedResource { system, resource })
    }
}

impl CallMetadata {
    fn of(record: &Record) -> CallMetadata {
        let (tool_variant, decision) = if record.kind.is_decision() {
            (None, record.tool_variant.clone())
        } else {
            (record.tool_variant.clone(), None)
        };
        let intent = record.intent.as_ref().map(|intent| DeclaredIntent {
            operation_type: intent.operation_type.clone(),
            data_sensitivity: intent.data_sensitivity.clone(),
            reason: intent.reason.clone(),
        });
        CallMetadata {
            tool_variant,
            effective_class: record.effective_class.map(|class| class.as_str().to_owned()),
            unverified: record.unverified,
            warnings: record.warnings.clone(),
            trace_id: record.trace_id.clone(),
            arguments_bytes: record.arguments_bytes,
            response_bytes: record.response_bytes,
            decision,
            intent,
        }
    }
}
