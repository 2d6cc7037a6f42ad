//! Sign-in to the page.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words;

#[derive(Serialize, Deserialize, ToSchema)]
pub struct SignInLink {
    /// A link that works once.
    pub url: String,
    #[schema(schema_with = words::moment)]
    pub expires_at: String,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignInCode {
    pub code: String,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct PageSession {
    /// The value for `x-countersign-session`, sent with the cookie.
    pub token: String,
    #[schema(schema_with = words::moment)]
    pub expires_at: String,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct EndedSessions {
    pub ended: usize,
}
