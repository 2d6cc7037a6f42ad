//! Servers, their items, and decisions about them.

use std::collections::BTreeMap;

use domain::trust::{DifferenceLine, ItemKind, LineChange};
use gateway::operator::{ApprovedItem, TokenLogin};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::words;

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ServerList {
    pub servers: Vec<ServerEntry>,
}

/// A server as the operator sees it. Values of variables and headers may be secret, so only their
/// names are shown.
#[derive(Default, Serialize, Deserialize, ToSchema)]
pub struct ServerEntry {
    pub name: String,
    #[schema(schema_with = words::server_state)]
    pub state: String,
    pub transport: String,
    pub tool_count: usize,
    /// The reason the server cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Tools by status, if some are locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeMap<String, usize>>,
    pub quarantined: bool,
    pub disabled: bool,
    /// The number of pending items; null while unknown.
    #[schema(required)]
    pub pending: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions_pending: Option<bool>,
    /// The number of listed items with warnings, approved or not; null while unknown.
    #[schema(required)]
    pub warned: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::origin)]
    pub origin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The arguments, without likely secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// The names of the variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<String>>,
    /// True if it inherits the gate's whole environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inherit_env: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The URL without user and query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The names of the headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Vec<String>>,
    /// The agent tokens that may use the server, where each signs in for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logins: Option<Vec<TokenLoginEntry>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<ServerWarning>,
    /// The items just approved, after an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<Vec<ApprovedEntry>>,
    /// The server's items, after an inspection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<ReviewItem>>,
}

/// The sign-in of an agent token.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct TokenLoginEntry {
    /// The name of the token.
    pub token: String,
    pub signed_in: bool,
}

/// A tool or an argument that the config names but the server does not have. For a rule of
/// `targets`, `tool` is its pattern.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ServerWarning {
    #[schema(schema_with = words::server_warning)]
    pub kind: String,
    pub text: String,
    pub tool: String,
    /// Similar names that may have been meant.
    pub near: Vec<String>,
}

/// An entry of `mcpServers`, with its name.
#[derive(Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewServer {
    #[schema(schema_with = words::name)]
    pub name: String,
    /// The program to start; `url` is the alternative.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::filled)]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub args: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub env: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub inherit_env: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::filled)]
    pub cwd: Option<String>,
    /// The endpoint, with `http` or `https`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::filled)]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub headers: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::transport)]
    pub transport: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub quarantined: Option<bool>,
    /// Has no effect here: an added server always waits for its approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub untrusted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub enabled_tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub disabled_tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::auto_approve)]
    pub auto_approve: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::sharing)]
    pub sharing: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::arguments)]
    pub arguments: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::login_scope)]
    pub login: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::start)]
    pub start: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::duration_or_seconds)]
    pub call_timeout: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::concurrent)]
    pub max_concurrent: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub oauth: Option<NewServerOAuth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub pin: Option<bool>,
    /// Names the resources that its calls touch: `system` and `rules`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::any_object)]
    pub targets: Option<Value>,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewServerOAuth {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub client_secret: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub private_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::token_auth)]
    pub auth_method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::scopes)]
    pub scopes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::oauth_grant)]
    pub grant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub metadata_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub resource: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub assume_pkce: Option<bool>,
}

/// A sign-in to begin.
#[derive(Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginRequest {
    /// The address on this machine that the browser returns to; by default one of the gate itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::redirect_or_null)]
    pub redirect_uri: Option<String>,
    /// Signs in with a code that a person enters on any machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<bool>,
    /// The name of the agent token to sign in for; required where each signs in for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// A sign-in to end.
#[derive(Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogoutRequest {
    /// The name of the agent token to sign out; by default all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// A sign-in to a server.
#[derive(Default, Serialize, Deserialize, ToSchema)]
pub struct ServerLogin {
    pub name: String,
    /// The name of the agent token that signs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[schema(schema_with = words::login_state)]
    pub state: String,
    /// The address to open in a browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The code to enter there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::moment)]
    pub expires_at: Option<String>,
    /// The address that the gate is registered with at the authorization server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// The reason that it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The response to a sign-in.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginResponse {
    /// The query that the browser brought: `code`, `state` and whatever came with them.
    pub response: String,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct RemovedServer {
    pub name: String,
    pub removed: bool,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct RestartingServer {
    pub name: String,
    pub restarting: bool,
}

/// The last lines of a server's stderr, oldest first.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ServerLog {
    pub name: String,
    pub lines: Vec<String>,
}

/// A server's items, for review.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ServerItems {
    pub name: String,
    pub items: Vec<ReviewItem>,
}

/// An item of a server as a reviewer sees it.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ReviewItem {
    #[schema(schema_with = words::item_kind)]
    pub kind: String,
    pub name: String,
    #[schema(schema_with = words::item_status)]
    pub status: String,
    #[schema(schema_with = words::digest)]
    pub fingerprint: String,
    /// The text as the server sent it.
    pub text: String,
    /// The text laid out, with hidden characters visible.
    pub visible: String,
    pub warnings: Vec<TextWarning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::digest)]
    pub approved_fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::change)]
    pub change: Option<String>,
    /// Equal for items of the server in which the same lines changed in the same places.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::digest)]
    pub change_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<Vec<DiffLine>>,
}

/// A warning about a text.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct TextWarning {
    #[schema(schema_with = words::text_warning)]
    pub kind: String,
    pub text: String,
}

/// A line of the difference between the approved and the pending text.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct DiffLine {
    #[schema(schema_with = words::mark)]
    pub mark: String,
    pub text: String,
    /// The number of skipped lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<usize>,
}

/// A server as a reviewer sees it, with its pending items.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ServerReviewEntry {
    pub name: String,
    /// The server itself waits for approval.
    pub quarantined: bool,
    /// The fingerprint that an approval of the server must name.
    #[schema(schema_with = words::digest)]
    pub fingerprint: String,
    /// The definition laid out, with the program that it starts. Likely secrets are hidden.
    pub visible: String,
    /// The reason the server waits, other than a person's decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::server_change)]
    pub change: Option<String>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The difference from the approved definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<Vec<DiffLine>>,
    /// Items of the server are known. Otherwise its first list after the approval counts as
    /// approved.
    pub listed: bool,
    /// The pending items.
    pub items: Vec<ReviewItem>,
}

/// The decision about a server: an inspection, or an approval of the reviewed version.
#[derive(Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerApproval {
    /// Only starts the server and reports what it lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inspect: Option<bool>,
    /// The fingerprint of the reviewed server; required unless it is inspected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Pending items to approve with it; others stay locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<ItemChoice>>,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequest {
    /// The items to approve.
    pub items: Vec<ItemChoice>,
}

/// An item to approve.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ItemChoice {
    Named(NamedItem),
    Instructions(InstructionsItem),
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::named_item_kind_or_null)]
    pub kind: Option<String>,
    pub name: String,
    /// The fingerprint of the reviewed text.
    pub fingerprint: String,
}

/// The instructions of a server, which are one text.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InstructionsItem {
    #[schema(schema_with = words::instructions_kind)]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The fingerprint of the reviewed text.
    pub fingerprint: String,
}

impl From<TokenLogin> for TokenLoginEntry {
    fn from(login: TokenLogin) -> TokenLoginEntry {
        TokenLoginEntry { token: login.token, signed_in: login.is_signed_in }
    }
}

impl From<&ReviewItem> for ItemChoice {
    fn from(item: &ReviewItem) -> ItemChoice {
        let (kind, fingerprint) = (item.kind.clone(), item.fingerprint.clone());
        if kind == ItemKind::Instructions.as_str() {
            return ItemChoice::Instructions(InstructionsItem { kind, name: None, fingerprint });
        }
        ItemChoice::Named(NamedItem { kind: Some(kind), name: item.name.clone(), fingerprint })
    }
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ApprovedItems {
    pub name: String,
    pub approved: Vec<ApprovedEntry>,
}

#[derive(Default, Serialize, Deserialize, ToSchema)]
pub struct ApprovedEntry {
    #[schema(schema_with = words::item_kind)]
    pub kind: String,
    pub name: String,
    #[schema(schema_with = words::digest)]
    pub fingerprint: String,
}

impl From<ApprovedItem> for ApprovedEntry {
    fn from(item: ApprovedItem) -> ApprovedEntry {
        ApprovedEntry { kind: item.kind, name: item.name, fingerprint: item.fingerprint }
    }
}

impl From<DifferenceLine> for DiffLine {
    fn from(line: DifferenceLine) -> DiffLine {
        let lines = match line.mark {
            LineChange::Same | LineChange::Removed | LineChange::Added => None,
            LineChange::Skipped(lines) => Some(lines),
        };
        DiffLine { mark: line.mark.as_str().to_owned(), text: line.text, lines }
    }
}
