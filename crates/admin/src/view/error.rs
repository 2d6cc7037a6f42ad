//! The one shape of every refusal.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::words;

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ErrorAnswer {
    pub error: ErrorDetail,
    pub request_id: String,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    #[schema(schema_with = words::error_code)]
    pub code: String,
    pub message: String,
    /// Details of the error, for programs.
    #[schema(schema_with = words::any_object)]
    pub details: Value,
}
