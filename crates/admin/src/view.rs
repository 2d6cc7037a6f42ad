//! The wire format: one type for each object of the API. Handlers respond with them, the OpenAPI
//! document is derived from them, and the command line parses them.
//!
//! An absent `Option` member is left out, unless it is marked `required`: then it is null.

mod activity;
mod agent;
mod call;
mod contention;
mod coverage;
mod document;
mod error;
mod event;
mod page;
mod receipt;
mod run;
mod server;
mod status;
mod summary;
mod target;
mod time;
mod token;
mod tool;
mod verbatim;
pub(crate) mod words;

pub use activity::{
    ActivityPage, ActivityRecord, CallMetadata, CallingAgent, DeclaredIntent, NearTargets,
    ResourceTouch, TouchedResource,
};
pub use agent::{AgentEntry, AgentList};
pub use call::{CallAnswer, CallIntent, CallRequest};
pub use contention::{
    ContentionEdge, ContentionEvent, ContentionGraph, ContentionNode, ContentionStory, MeetingSide,
};
pub use coverage::{AgentLosses, BasisCount, CoverageList, ServerCoverage, ToolCoverage};
pub use document::OpenApiDocument;
pub use error::{ErrorAnswer, ErrorDetail};
pub use event::{ActivityEvent, EventData, RunEvent, ServerEvent, StreamEvent, ToolEvent};
pub use page::{EndedSessions, PageSession, SignInCode, SignInLink};
pub use receipt::{
    ChainEntry, ChainList, ChainReport, CopyEntry, CopyList, CopyReport, KeyEntry, KeyList,
    LedgerHead, LedgerReport, ReceiptDocument, ReceiptEntry, ReceiptPage, ReceiptVerdict, SentCopy,
};
pub use run::{AgentText, RunEntry, RunPage, StepCall, StepEntry};
pub use server::{
    ApprovalRequest, ApprovedEntry, ApprovedItems, DiffLine, InstructionsItem, ItemChoice,
    LoginRequest, LoginResponse, LogoutRequest, NamedItem, NewServer, NewServerOAuth,
    RemovedServer, RestartingServer, ReviewItem, ServerApproval, ServerEntry, ServerItems,
    ServerList, ServerLog, ServerLogin, ServerReviewEntry, ServerWarning, TextWarning,
    TokenLoginEntry,
};
pub use status::{
    AnchorState, ConfigState, GateStatus, LedgerState, Liveness, Readiness, SearchState,
};
pub use summary::{
    ActivitySummary, AgentCounts, DurationPercentiles, IntentCounts, ServerCounts, TimeBucket,
    ToolCounts,
};
pub use target::{TargetPlanRule, TriedCall, TriedTarget, TriedTargets};
pub(crate) use time::{lasted, milliseconds, moment};
pub use token::{NewToken, RevokedToken, TokenEntry, TokenList};
pub use tool::{
    ApprovedTool, ExplainedWord, SearchExplanation, SwitchedTool, ToolApproval, ToolEntry,
    ToolList, ToolReview,
};
pub use verbatim::Verbatim;
