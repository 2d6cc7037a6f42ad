//! A call by a person or a script.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{Verbatim, words};

/// A call. The intent is required in one of its spellings, nested or flat.
#[derive(Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallRequest {
    #[schema(schema_with = words::variant)]
    pub tool_variant: String,
    #[schema(schema_with = words::tool_name)]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::any_object_or_null)]
    pub args: Option<Verbatim>,
    /// The arguments as JSON text, instead of `args`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args_json: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<CallIntent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::class_or_null)]
    pub intent_operation_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::sensitivity_or_null)]
    pub intent_data_sensitivity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::reason_or_null)]
    pub intent_reason: Option<String>,
}

#[derive(Default, Serialize, Deserialize, ToSchema)]
pub struct CallIntent {
    /// The class of the call, the same as in `tool_variant`.
    #[schema(schema_with = words::class)]
    pub operation_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::sensitivity_or_null)]
    pub data_sensitivity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::reason_or_null)]
    pub reason: Option<String>,
    /// Other members, which are ignored.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct CallAnswer {
    /// The id of the record.
    pub id: String,
    /// The server's result, byte for byte.
    #[schema(schema_with = words::any_object)]
    pub result: Verbatim,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Present if the ledger cannot be written: the record is held in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::queued)]
    pub ledger: Option<String>,
}
