//! Every route of the API in one list: its handler, parameters, responses and refusals. Both the
//! router and the OpenAPI document are built from it.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{MethodFilter, on};
use domain::Code;

pub use crate::access::Access;
use crate::ledger::{PageQuery, SpanQuery};
use crate::operation::Operation;
use crate::view::{self, words};
use crate::{
    Admin, activity, call, contention, copy, events, metrics, openapi, page, probe, receipt, run,
    server, status, token, tool,
};

#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub method: &'static str,
    /// The path; parts in braces match any text.
    pub path: &'static str,
    pub access: Access,
    /// The name of the handler function.
    pub(crate) handler: &'static str,
    pub(crate) described: fn() -> Operation,
}

macro_rules! routes {
    ($($access:ident $name:ident $into:ident {
        $($method:ident $path:literal $answer:expr => $described:expr,)*
    })*) => {
        $(
            const $name: &[Route] = &[$(Route {
                method: stringify!($method),
                path: $path,
                access: Access::$access,
                handler: stringify!($answer),
                described: || $described,
            }),*];

            pub(crate) fn $into() -> Router<Admin> {
                Router::new()$(.route($path, on(MethodFilter::$method, $answer)))*
            }
        )*
    };
}

/// Refusals of a route that reads the ledger.
const LEDGER: &[Code] = &[Code::LedgerUnavailable];

/// Refusals of a route that looks something up by name.
const LOOKUP: &[Code] = &[Code::NotFound];

/// Refusals of a route that looks something up in the ledger.
const LEDGER_LOOKUP: &[Code] = &[Code::NotFound, Code::LedgerUnavailable];

/// Refusals of a route that adds something.
const ADDITION: &[Code] = &[Code::Conflict, Code::LedgerUnavailable, Code::ShuttingDown];

/// Refusals of a route that decides about something that exists.
const DECISION: &[Code] =
    &[Code::NotFound, Code::Conflict, Code::LedgerUnavailable, Code::ShuttingDown];

/// Refusals of a call.
const CALL: &[Code] = &[
    Code::MissingIntent,
    Code::MissingOperationType,
    Code::InvalidOperationType,
    Code::IntentMismatch,
    Code::InvalidSensitivity,
    Code::ReasonTooLong,
    Code::ServerMismatch,
    Code::InvalidArguments,
    Code::ToolBlocked,
    Code::NotPermitted,
    Code::ToolNotFound,
    Code::Cancelled,
    Code::UpstreamError,
    Code::UpstreamUnavailable,
    Code::LedgerUnavailable,
    Code::ShuttingDown,
    Code::Timeout,
];

/// Describes a route about one server.
fn of_server(summary: &str) -> Operation {
    Operation::new(summary).path("name", "Of the server.")
}

/// Describes a route about one tool.
fn of_tool(summary: &str) -> Operation {
    Operation::new(summary).path("server", "Its server.").path("tool", "Its name.")
}

routes! {
    Anyone OPEN open {
        GET "/healthz" probe::lives =>
            Operation::new("Whether the process lives").gives::<view::Liveness>("It does"),
        GET "/readyz" probe::is_ready =>
            Operation::new("Whether calls are taken")
                .gives::<view::Readiness>("They are")
                .answers::<view::Readiness>(StatusCode::SERVICE_UNAVAILABLE, "They are not"),
        GET "/" page::index =>
            Operation::new("The page for people").gives_text("HTML", &[page::HTML]),
        GET "/page/{file}" page::file =>
            Operation::new("A file of the page")
                .path("file", "Its name.")
                .gives_text("The file", page::FILE_KINDS)
                .refuses(LOOKUP),
        GET "/page/{folder}/{file}" page::file_in =>
            Operation::new("A file of the page, in a folder")
                .path("folder", "Of the file.")
                .path("file", "Its name.")
                .gives_text("The file", page::FILE_KINDS)
                .refuses(LOOKUP),
    }
    Code ENTRY entry {
        POST "/api/v1/page/session" page::enter =>
            Operation::new("Signs in with the code of a link")
                .header("Origin", "The address of the page.", words::text())
                .body::<view::SignInCode>()
                .makes::<view::PageSession>("The session, whose cookie is set")
                .refuses(&[Code::Unauthorized, Code::LedgerUnavailable]),
    }
    Admin CLOSED closed {
        GET "/metrics" metrics::show =>
            Operation::new("What was counted, for Prometheus")
                .gives_text("The counters", &[metrics::CONTENT_TYPE]),
        GET "/api/v1/openapi.json" openapi::show =>
            Operation::new("This document").gives::<view::OpenApiDocument>("OpenAPI 3.1"),
        GET "/api/v1/status" status::show =>
            Operation::new("Is all well?").gives::<view::GateStatus>("How the gate is"),

        GET "/api/v1/servers" server::list =>
            Operation::new("Every server").gives::<view::ServerList>("All of them"),
        POST "/api/v1/servers" server::change::add =>
            Operation::new("Adds a server, which is quarantined and not started")
                .body::<view::NewServer>()
                .makes::<view::ServerEntry>("The server")
                .refuses(ADDITION),
        GET "/api/v1/servers/{name}" server::show =>
            of_server("One server").gives::<view::ServerEntry>("The server").refuses(LOOKUP),
        DELETE "/api/v1/servers/{name}" server::change::remove =>
            of_server("Removes a server that was added")
                .gives::<view::RemovedServer>("It is gone")
                .refuses(DECISION),
        POST "/api/v1/servers/{name}/enable" server::change::enable =>
            of_server("Switches a server on")
                .gives::<view::ServerEntry>("The server")
                .refuses(DECISION),
        POST "/api/v1/servers/{name}/disable" server::change::disable =>
            of_server("Switches a server off")
                .gives::<view::ServerEntry>("The server")
                .refuses(DECISION),
        POST "/api/v1/servers/{name}/quarantine" server::change::quarantine =>
            of_server("Locks everything of a server until it is approved again")
                .gives::<view::ServerEntry>("The server")
                .refuses(DECISION),
        POST "/api/v1/servers/{name}/approve" server::change::approve =>
            of_server("Approves a server as it is now, with everything that it was seen to list")
                .queries::<server::change::ApproveQuery>()
                .optional_body::<view::InspectRequest>()
                .gives::<view::ServerEntry>("The server, and what was approved or found")
                .refuses(DECISION),
        GET "/api/v1/servers/{name}/items" server::items =>
            of_server("What a server lists, for a review")
                .queries::<server::ItemsQuery>()
                .gives::<view::ServerItems>("The items")
                .refuses(LEDGER_LOOKUP),
        POST "/api/v1/servers/{name}/approve-items" server::change::approve_items =>
            of_server("Approves what waits of a server: everything, or what is named")
                .optional_body::<view::ApprovalRequest>()
                .gives::<view::ApprovedItems>("What was approved")
                .refuses(DECISION),
        GET "/api/v1/servers/{name}/logs" server::logs =>
            of_server("The last lines of a server's stderr, oldest first")
                .queries::<server::LogsQuery>()
                .gives::<view::ServerLog>("The lines")
                .refuses(LOOKUP),
        POST "/api/v1/servers/{name}/restart" server::restart =>
            of_server("Ends a server's connection and makes it anew")
                .gives::<view::RestartingServer>("It was told to")
                .refuses(&[Code::NotFound, Code::Conflict]),

        GET "/api/v1/tools" tool::list =>
            Operation::new("Every tool of every server, or what a search finds")
                .queries::<tool::ListQuery>()
                .gives::<view::ToolList>("The tools"),
        POST "/api/v1/tools/call" call::make =>
            Operation::new("Makes a call, through the same pipeline as an agent's")
                .body::<view::CallRequest>()
                .gives::<view::CallAnswer>("What the tool answered")
                .refuses(CALL),
        GET "/api/v1/tools/{server}/{tool}" tool::show =>
            of_tool("One tool as a reviewer sees it, or another thing that its server lists")
                .queries::<tool::ShowQuery>()
                .gives::<view::ToolReview>("The tool, or the other thing")
                .refuses(LEDGER_LOOKUP),
        POST "/api/v1/tools/{server}/{tool}/approve" tool::change::approve =>
            of_tool("Approves what waits of a tool")
                .optional_body::<view::ToolApproval>()
                .gives::<view::ApprovedTool>("What was approved")
                .refuses(DECISION),
        POST "/api/v1/tools/{server}/{tool}/enable" tool::change::enable =>
            of_tool("Switches a tool on for everybody")
                .gives::<view::SwitchedTool>("The tool")
                .refuses(DECISION),
        POST "/api/v1/tools/{server}/{tool}/disable" tool::change::disable =>
            of_tool("Switches a tool off for everybody")
                .gives::<view::SwitchedTool>("The tool")
                .refuses(DECISION),

        GET "/api/v1/tokens" token::list =>
            Operation::new("The tokens of agents, never their secrets")
                .gives::<view::TokenList>("All of them")
                .refuses(LEDGER),
        POST "/api/v1/tokens" token::make =>
            Operation::new("Makes a token")
                .body::<view::NewToken>()
                .makes::<view::TokenEntry>("The token with its secret")
                .refuses(ADDITION),
        DELETE "/api/v1/tokens/{name}" token::revoke =>
            Operation::new("Revokes a token")
                .path("name", "Of the token.")
                .gives::<view::RevokedToken>("It opens nothing any more")
                .refuses(&[Code::NotFound, Code::LedgerUnavailable, Code::ShuttingDown]),

        GET "/api/v1/activity" activity::list =>
            Operation::new("Records, newest first")
                .queries::<activity::FilterQuery>()
                .queries::<SpanQuery>()
                .queries::<PageQuery>()
                .gives::<view::ActivityPage>("A page of them")
                .refuses(LEDGER),
        GET "/api/v1/activity/export" activity::export =>
            Operation::new("Every record that fits, oldest first")
                .queries::<activity::FilterQuery>()
                .queries::<SpanQuery>()
                .queries::<activity::FormatQuery>()
                .gives_text("All of them", activity::EXPORT_KINDS)
                .refuses(LEDGER),
        GET "/api/v1/activity/summary" activity::summary =>
            Operation::new("Calls of late, counted")
                .queries::<activity::SummaryQuery>()
                .gives::<view::ActivitySummary>("The counts")
                .refuses(LEDGER),
        GET "/api/v1/activity/{id}" activity::show =>
            Operation::new("One record with arguments and response")
                .path("id", "Of the record.")
                .gives::<view::ActivityRecord>("The record")
                .refuses(LEDGER_LOOKUP),

        GET "/api/v1/receipts" receipt::list =>
            Operation::new("Receipts, newest first")
                .queries::<receipt::FilterQuery>()
                .queries::<SpanQuery>()
                .queries::<PageQuery>()
                .gives::<view::ReceiptPage>("A page of them")
                .refuses(LEDGER),
        GET "/api/v1/receipts/export" receipt::export =>
            Operation::new("Receipts as JSON lines, chain after chain, the oldest first")
                .queries::<receipt::ExportQuery>()
                .gives_text("All of them", &["application/jsonl"])
                .refuses(LEDGER_LOOKUP),
        GET "/api/v1/receipts/{id}" receipt::show =>
            Operation::new("One receipt, byte for byte as it was signed")
                .path("id", "Of the receipt, with or without `urn:receipt:`.")
                .gives::<view::ReceiptDocument>("The receipt")
                .refuses(LEDGER_LOOKUP),
        GET "/api/v1/chains" receipt::chains =>
            Operation::new("The chains, newest first")
                .gives::<view::ChainList>("All of them")
                .refuses(LEDGER),
        GET "/api/v1/chains/verify" receipt::verify_all =>
            Operation::new("Whether every chain is whole, and none is missing that another names")
                .gives::<view::LedgerReport>("What was found")
                .refuses(LEDGER),
        GET "/api/v1/chains/{id}/verify" receipt::verify =>
            Operation::new("Whether a chain is whole, receipt by receipt")
                .path("id", "Of the chain.")
                .gives::<view::ChainReport>("What was found")
                .refuses(LEDGER_LOOKUP),
        GET "/api/v1/copies" copy::list =>
            Operation::new("Exports that lie in `<home>/copies`")
                .gives::<view::CopyList>("All of them"),
        GET "/api/v1/copies/{name}/verify" copy::verify =>
            Operation::new("Whether a copy is as it was signed, receipt by receipt")
                .path("name", "Of the file.")
                .gives::<view::CopyReport>("What was found")
                .refuses(LEDGER_LOOKUP),
        GET "/api/v1/keys" receipt::keys =>
            Operation::new("The public keys, the one that signs now first")
                .gives::<view::KeyList>("All of them")
                .refuses(LEDGER),
        POST "/api/v1/keys/rotate" receipt::rotate =>
            Operation::new("Has another key sign from here on")
                .gives::<view::KeyEntry>("The new key")
                .refuses(LEDGER),

        GET "/api/v1/contention" contention::show =>
            Operation::new("Agents that touched the same thing")
                .queries::<contention::ContentionQuery>()
                .queries::<SpanQuery>()
                .gives::<view::ContentionGraph>("Who met whom")
                .refuses(LEDGER),
        GET "/api/v1/runs" run::list =>
            Operation::new("Runs of workflows, newest first")
                .queries::<run::FilterQuery>()
                .queries::<PageQuery>()
                .gives::<view::RunPage>("A page of them")
                .refuses(LEDGER),
        GET "/api/v1/runs/{id}" run::show =>
            Operation::new("One run with its steps and their calls")
                .path("id", "Of the run, or as much of its beginning as no other run has.")
                .gives::<view::RunEntry>("The run")
                .refuses(LEDGER_LOOKUP),
        GET "/api/v1/events" events::stream =>
            Operation::new("What happens, as it happens, as server-sent events")
                .header("Last-Event-ID", "Goes on after the event of this id.", words::change_number())
                .streams::<view::StreamEvent>("A stream without end")
                .mentions::<view::EventData>()
                .refuses(LEDGER),

        POST "/api/v1/page/codes" page::invite =>
            Operation::new("Makes a link that signs a browser in")
                .makes::<view::SignInLink>("The link")
                .refuses(LEDGER),
        DELETE "/api/v1/page/sessions" page::leave =>
            Operation::new("Signs every browser out")
                .gives::<view::EndedSessions>("How many sessions ended"),
    }
}

/// Returns every route.
pub fn all() -> impl Iterator<Item = &'static Route> {
    OPEN.iter().chain(ENTRY).chain(CLOSED)
}
