//! The description of the API.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// An OpenAPI document, specified elsewhere.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct OpenApiDocument {
    pub openapi: String,
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}
