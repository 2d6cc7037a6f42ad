//! Tokens of agents. Only the response that creates a token contains its secret.

use domain::caller::Scope;
use domain::caller::scope::Words;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use store::state::TokenRecord;
use utoipa::ToSchema;

use super::words::EVERY_SERVER;
use super::{moment, words};

#[derive(Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    pub tokens: Vec<TokenEntry>,
}

/// A token as it is listed: its name, its scope and its validity. A scope that cannot be read
/// grants nothing, and has no members to show.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct TokenEntry {
    pub name: String,
    #[schema(schema_with = words::token_state)]
    pub state: String,
    #[schema(schema_with = words::moment)]
    pub created_at: String,
    #[schema(schema_with = words::moment_or_null, required)]
    pub expires_at: Option<String>,
    #[schema(schema_with = words::moment_or_null, required)]
    pub revoked_at: Option<String>,
    /// The servers; `*` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::operations)]
    pub operations: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::surfaces)]
    pub surfaces: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::text_or_null)]
    pub profile: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::unannotated)]
    pub unannotated_tools: Option<String>,
    /// The secret, only in the response that creates it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    #[schema(schema_with = words::name)]
    pub name: String,
    #[schema(schema_with = words::some_operations)]
    pub operations: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::some_servers_or_null)]
    pub servers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::some_surfaces_or_null)]
    pub surfaces: Option<Vec<String>>,
    /// A profile of the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::name_or_null)]
    pub profile: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::duration_or_null)]
    pub expires_in: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::unannotated_or_null)]
    pub unannotated_tools: Option<String>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct RevokedToken {
    pub name: String,
    pub revoked: bool,
}

impl TokenEntry {
    pub(crate) fn new(record: &TokenRecord, now: Timestamp) -> TokenEntry {
        let state = match record {
            TokenRecord { revoked_at: Some(_), .. } => "revoked",
            TokenRecord { expires_at: Some(at), .. } if *at <= now => "expired",
            TokenRecord { .. } => "valid",
        };
        let mut entry = TokenEntry {
            name: record.name.clone(),
            state: state.to_owned(),
            created_at: moment(record.created_at),
            expires_at: record.expires_at.map(moment),
            revoked_at: record.revoked_at.map(moment),
            servers: None,
            operations: None,
            surfaces: None,
            profile: None,
            unannotated_tools: None,
            token: None,
        };
        if let Ok(scope) = serde_json::from_str::<Scope>(&record.scope) {
            let words = Words::from(scope);
            entry.servers = Some(words.servers.unwrap_or_else(|| vec![EVERY_SERVER.to_owned()]));
            entry.operations = Some(words.operations);
            entry.surfaces = words.surfaces;
            entry.profile = Some(words.profile);
            entry.unannotated_tools = words.unannotated_tools;
        }
        entry
    }
}
