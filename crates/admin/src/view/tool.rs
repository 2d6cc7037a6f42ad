//! Tools, and decisions about them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ApprovedEntry, DiffLine, ReviewItem, TargetPlanRule, TextWarning, Verbatim, words};

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ToolList {
    pub tools: Vec<ToolEntry>,
    pub total: usize,
}

#[derive(Default, Serialize, Deserialize, ToSchema)]
pub struct ToolEntry {
    /// `server:tool`
    pub name: String,
    pub server: String,
    pub source: String,
    pub description: String,
    /// The annotations as the server sent them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::anything)]
    pub annotations: Option<Verbatim>,
    #[schema(schema_with = words::class)]
    pub class: String,
    pub unverified: bool,
    #[schema(schema_with = words::variant)]
    pub call_with: String,
    #[schema(schema_with = words::lock)]
    pub status: String,
    /// The search score, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub score: Option<f64>,
    /// The reasons for the score, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<SearchExplanation>,
    /// Steps to lift the lock, and the person who can take them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediation: Option<String>,
    /// The fingerprint; like all members below, only in a single tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::digest)]
    pub fingerprint: Option<String>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<TextWarning>>,
    /// The rules that name the resources of its calls, in the order in which they are tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<TargetPlanRule>>,
    /// The definition as the server sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::any_object)]
    pub definition: Option<Verbatim>,
    /// The definition laid out, with hidden characters visible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visible: Option<String>,
}

/// The reasons that a search found a tool.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct SearchExplanation {
    /// The place among the results, from 1.
    pub place: usize,
    /// The similarity in meaning, -1 to 1; absent where words decide alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = -1, maximum = 1)]
    pub similarity: Option<f64>,
    /// The words of the query that occur in the tool.
    pub words: Vec<ExplainedWord>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ExplainedWord {
    /// The stem of the word.
    pub word: String,
    /// The stem in the tool's text.
    pub found: String,
    #[schema(minimum = 0)]
    pub score: f64,
}

/// One tool as a reviewer sees it, or another item of its server.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ToolReview {
    Tool(Box<ToolEntry>),
    Item(Box<ReviewItem>),
}

/// A tool after a person has switched it on or off.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum SwitchedTool {
    Listed(Box<ToolEntry>),
    /// A tool that is no longer listed; only its name is left.
    Unlisted {
        name: String,
        server: String,
    },
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolApproval {
    #[schema(schema_with = words::item_kind_or_null)]
    pub kind: Option<String>,
    /// The fingerprint of the reviewed text.
    pub fingerprint: String,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ApprovedTool {
    #[schema(schema_with = words::item_kind)]
    pub kind: String,
    pub name: String,
    #[schema(schema_with = words::digest)]
    pub fingerprint: String,
    pub server: String,
}

impl ApprovedTool {
    pub(crate) fn new(server: String, approved: ApprovedEntry) -> ApprovedTool {
        let ApprovedEntry { kind, name, fingerprint } = approved;
        ApprovedTool { kind, name, fingerprint, server }
    }
}
