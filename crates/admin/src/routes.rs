//! Every route of the API in one list: its handler, parameters, responses and refusals. Both the
//! router and the OpenAPI document are built from it.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{MethodFilter, on};
use domain::Code;

pub use crate::access::RouteAccess;
use crate::ledger::{PageQuery, SpanQuery};
use crate::operation::Operation;
use crate::view::{self, words};
use crate::{
    Admin, activity, agent, call, contention, copy, coverage, events, metrics, openapi, page,
    probe, receipt, run, server, status, token, tool,
};

#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub method: &'static str,
    /// The path; parts in braces match any text.
    pub path: &'static str,
    pub access: RouteAccess,
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
                access: RouteAccess::$access,
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

/// Refusals of a sign-in to a server.
const LOGIN: &[Code] = &[
    Code::NotFound,
    Code::Conflict,
    Code::SignInFailed,
    Code::LedgerUnavailable,
    Code::ShuttingDown,
];

/// Refusals of an approval.
const APPROVAL: &[Code] = &[
    Code::NotFound,
    Code::Conflict,
    Code::ReviewChanged,
    Code::LedgerUnavailable,
    Code::ShuttingDown,
];

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
    Code::OutcomeUnknown,
    Code::ResponseTooLarge,
    Code::LedgerUnavailable,
    Code::ShuttingDown,
    Code::Timeout,
];

/// Describes a route about one server.
fn of_server(summary: &str) -> Operation {
    Operation::new(summary).path("name", "The name of the server.")
}

/// Describes a route about one tool.
fn of_tool(summary: &str) -> Operation {
    Operation::new(summary)
        .path("server", "The server of the tool.")
        .path("tool", "The name of the tool.")
}

routes! {
    Anyone OPEN open {
        GET "/healthz" probe::lives =>
            Operation::new("Liveness probe").gives::<view::Liveness>("The process is alive"),
        GET "/readyz" probe::is_ready =>
            Operation::new("Readiness probe")
                .gives::<view::Readiness>("Calls are accepted")
                .answers::<view::Readiness>(StatusCode::SERVICE_UNAVAILABLE, "Calls are not accepted"),
        GET "/" page::index =>
            Operation::new("Serves the web page, at its own address")
                .gives_text("HTML; at other addresses one line of text", &[page::HTML, page::TEXT]),
        GET "/page/{file}" page::file =>
            Operation::new("Serves a file of the page")
                .path("file", "The name of the file.")
                .gives_text("The file", page::FILE_KINDS)
                .refuses(LOOKUP),
        GET "/page/{folder}/{file}" page::file_in =>
            Operation::new("Serves a file of the page, in a folder")
                .path("folder", "The folder of the file.")
                .path("file", "The name of the file.")
                .gives_text("The file", page::FILE_KINDS)
                .refuses(LOOKUP),
        GET "/oauth/callback" server::login::callback =>
            Operation::new("Ends a sign-in to a server that began on the page")
                .queries::<server::login::CallbackQuery>()
                .gives_text("HTML that says whether it succeeded", &[page::HTML])
                .refuses(&[Code::ShuttingDown]),
    }
    Code ENTRY entry {
        POST "/api/v1/page/session" page::enter =>
            Operation::new("Signs a browser in with the code from a link")
                .header("Origin", "The address of the page.", words::text())
                .body::<view::SignInCode>()
                .makes::<view::PageSession>("The session; the response sets its cookie")
                .refuses(&[Code::Unauthorized, Code::Forbidden, Code::LedgerUnavailable]),
    }
    Admin CLOSED closed {
        GET "/metrics" metrics::show =>
            Operation::new("Exports metrics for Prometheus")
                .gives_text("The metrics", &[metrics::CONTENT_TYPE]),
        GET "/api/v1/openapi.json" openapi::show =>
            Operation::new("Returns this document").gives::<view::OpenApiDocument>("OpenAPI 3.1"),
        GET "/api/v1/status" status::show =>
            Operation::new("Reports the status of the gate").gives::<view::GateStatus>("The status of the gate"),

        GET "/api/v1/agents" agent::list =>
            Operation::new("Lists the agents that made calls").gives::<view::AgentList>("The agents"),

        GET "/api/v1/servers" server::list =>
            Operation::new("Lists the servers").gives::<view::ServerList>("The servers"),
        POST "/api/v1/servers" server::change::add =>
            Operation::new("Adds a server, which is quarantined and not started")
                .body::<view::NewServer>()
                .makes::<view::ServerEntry>("The server")
                .refuses(ADDITION),
        GET "/api/v1/servers/{name}" server::show =>
            of_server("Shows a server").gives::<view::ServerEntry>("The server").refuses(LOOKUP),
        DELETE "/api/v1/servers/{name}" server::change::remove =>
            of_server("Removes a server that was added at run time")
                .gives::<view::RemovedServer>("The server is removed")
                .refuses(DECISION),
        POST "/api/v1/servers/{name}/enable" server::change::enable =>
            of_server("Enables a server")
                .gives::<view::ServerEntry>("The server")
                .refuses(DECISION),
        POST "/api/v1/servers/{name}/disable" server::change::disable =>
            of_server("Disables a server")
                .gives::<view::ServerEntry>("The server")
                .refuses(DECISION),
        POST "/api/v1/servers/{name}/quarantine" server::change::quarantine =>
            of_server("Quarantines a server until it is approved again")
                .gives::<view::ServerEntry>("The server")
                .refuses(DECISION),
        POST "/api/v1/servers/{name}/approve" server::change::approve =>
            of_server("Approves a server as it was reviewed, with the named ones of its items")
                .queries::<server::change::ApproveQuery>()
                .optional_body::<view::ServerApproval>()
                .gives::<view::ServerEntry>("The server, with the approved or inspected items")
                .refuses(APPROVAL),
        GET "/api/v1/servers/{name}/review" server::review::show =>
            of_server("Shows what of a server waits for approval: itself, and its items")
                .gives::<view::ServerReviewEntry>("The server and its pending items")
                .refuses(LEDGER_LOOKUP),
        GET "/api/v1/servers/{name}/items" server::items =>
            of_server("Lists the items of a server for review")
                .queries::<server::ItemsQuery>()
                .gives::<view::ServerItems>("The items")
                .refuses(LEDGER_LOOKUP),
        POST "/api/v1/servers/{name}/approve-items" server::change::approve_items =>
            of_server("Approves pending items of a server as they were reviewed")
                .body::<view::ApprovalRequest>()
                .gives::<view::ApprovedItems>("The approved items")
                .refuses(APPROVAL),
        GET "/api/v1/servers/{name}/logs" server::logs =>
            of_server("Returns the last lines of a server's stderr, oldest first")
                .queries::<server::LogsQuery>()
                .gives::<view::ServerLog>("The lines")
                .refuses(LOOKUP),
        POST "/api/v1/servers/{name}/login" server::login::begin =>
            of_server("Begins a sign-in to a server, in a browser or with a code")
                .optional_body::<view::LoginRequest>()
                .gives::<view::ServerLogin>("The address to open")
                .refuses(LOGIN),
        GET "/api/v1/servers/{name}/login" server::login::show =>
            of_server("Reports how far the last sign-in to a server is")
                .queries::<server::login::LoginQuery>()
                .gives::<view::ServerLogin>("The sign-in")
                .refuses(LOOKUP),
        POST "/api/v1/servers/{name}/logout" server::login::leave =>
            of_server("Signs out of a server: revokes and forgets its tokens")
                .optional_body::<view::LogoutRequest>()
                .gives::<view::ServerEntry>("The server")
                .refuses(&[
                    Code::NotFound,
                    Code::Conflict,
                    Code::SecretsUnavailable,
                    Code::LedgerUnavailable,
                    Code::ShuttingDown,
                ]),
        POST "/api/v1/logins" server::login::finish =>
            Operation::new("Ends a sign-in to a server with the response that a browser brought")
                .body::<view::LoginResponse>()
                .gives::<view::ServerEntry>("The server")
                .refuses(LOGIN),
        POST "/api/v1/servers/{name}/restart" server::restart =>
            of_server("Restarts the connection to a server")
                .gives::<view::RestartingServer>("The restart has begun")
                .refuses(&[Code::NotFound, Code::Conflict]),

        GET "/api/v1/tools" tool::list =>
            Operation::new("Lists or searches the tools of all servers")
                .queries::<tool::ListQuery>()
                .gives::<view::ToolList>("The tools"),
        POST "/api/v1/tools/call" call::make =>
            Operation::new("Calls a tool, through the same pipeline as an agent's call")
                .body::<view::CallRequest>()
                .gives::<view::CallAnswer>("The result of the call")
                .refuses(CALL),
        GET "/api/v1/tools/{server}/{tool}" tool::show =>
            of_tool("Shows a tool, or another item of its server, for review")
                .queries::<tool::ShowQuery>()
                .gives::<view::ToolReview>("The tool or the item")
                .refuses(LEDGER_LOOKUP),
        POST "/api/v1/tools/{server}/{tool}/approve" tool::change::approve =>
            of_tool("Approves the pending version of a tool, as it was reviewed")
                .body::<view::ToolApproval>()
                .gives::<view::ApprovedTool>("The approved items")
                .refuses(APPROVAL),
        POST "/api/v1/tools/{server}/{tool}/targets" tool::targets::find =>
            of_tool("Names the resources that a call would touch, without making it")
                .body::<view::TriedCall>()
                .gives::<view::TriedTargets>("The resources")
                .refuses(&[Code::NotFound]),
        POST "/api/v1/tools/{server}/{tool}/enable" tool::change::enable =>
            of_tool("Enables a tool for all callers")
                .gives::<view::SwitchedTool>("The tool")
                .refuses(DECISION),
        POST "/api/v1/tools/{server}/{tool}/disable" tool::change::disable =>
            of_tool("Disables a tool for all callers")
                .gives::<view::SwitchedTool>("The tool")
                .refuses(DECISION),

        GET "/api/v1/tokens" token::list =>
            Operation::new("Lists the agent tokens, without their secrets")
                .gives::<view::TokenList>("The tokens")
                .refuses(LEDGER),
        POST "/api/v1/tokens" token::make =>
            Operation::new("Creates a token")
                .body::<view::NewToken>()
                .makes::<view::TokenEntry>("The token with its secret")
                .refuses(ADDITION),
        DELETE "/api/v1/tokens/{name}" token::revoke =>
            Operation::new("Revokes a token")
                .path("name", "The name of the token.")
                .gives::<view::RevokedToken>("The token is revoked")
                .refuses(&[Code::NotFound, Code::LedgerUnavailable, Code::ShuttingDown]),

        GET "/api/v1/activity" activity::list =>
            Operation::new("Lists records, newest first")
                .queries::<activity::FilterQuery>()
                .queries::<SpanQuery>()
                .queries::<PageQuery>()
                .gives::<view::ActivityPage>("One page of records")
                .refuses(LEDGER),
        GET "/api/v1/activity/export" activity::export =>
            Operation::new("Exports matching records, oldest first")
                .queries::<activity::FilterQuery>()
                .queries::<SpanQuery>()
                .queries::<activity::FormatQuery>()
                .gives_text("The records", activity::EXPORT_KINDS)
                .refuses(LEDGER),
        GET "/api/v1/activity/summary" activity::summary =>
            Operation::new("Summarizes recent calls")
                .queries::<activity::SummaryQuery>()
                .gives::<view::ActivitySummary>("The counts")
                .refuses(LEDGER),
        GET "/api/v1/activity/{id}" activity::show =>
            Operation::new("Shows a record with its arguments and response")
                .path("id", "The id of the record, or an unambiguous beginning or end of it.")
                .gives::<view::ActivityRecord>("The record")
                .refuses(LEDGER_LOOKUP),

        GET "/api/v1/receipts" receipt::list =>
            Operation::new("Lists receipts, newest first")
                .queries::<receipt::FilterQuery>()
                .queries::<SpanQuery>()
                .queries::<PageQuery>()
                .gives::<view::ReceiptPage>("One page of receipts")
                .refuses(LEDGER),
        GET "/api/v1/receipts/export" receipt::export =>
            Operation::new("Exports receipts as JSON lines, chain by chain, oldest first")
                .queries::<receipt::ExportQuery>()
                .gives_text("The receipts", &["application/jsonl"])
                .refuses(LEDGER_LOOKUP),
        GET "/api/v1/receipts/{id}" receipt::show =>
            Operation::new("Returns a receipt, byte for byte as it was signed")
                .path("id", "The id of the receipt, with or without `urn:receipt:`, or a part as of a record.")
                .gives::<view::ReceiptDocument>("The receipt")
                .refuses(LEDGER_LOOKUP),
        GET "/api/v1/chains" receipt::chains =>
            Operation::new("Lists the chains, newest first")
                .gives::<view::ChainList>("The chains")
                .refuses(LEDGER),
        GET "/api/v1/chains/verify" receipt::verify_all =>
            Operation::new("Verifies every chain, and the references between chains")
                .gives::<view::LedgerReport>("The verdict")
                .refuses(LEDGER),
        GET "/api/v1/chains/{id}/verify" receipt::verify =>
            Operation::new("Verifies a chain, receipt by receipt")
                .path("id", "The id of the chain.")
                .gives::<view::ChainReport>("The verdict")
                .refuses(LEDGER_LOOKUP),
        POST "/api/v1/checkpoints" receipt::checkpoint =>
            Operation::new("Issues a checkpoint: a receipt that names the heads of all chains")
                .gives::<view::LedgerHead>("The state of all chains")
                .refuses(LEDGER),
        GET "/api/v1/copies" copy::list =>
            Operation::new("Lists the exports in `<home>/copies`")
                .gives::<view::CopyList>("The exports"),
        POST "/api/v1/copies/verify" copy::verify_sent =>
            Operation::new("Verifies an export in the request, receipt by receipt, and keeps nothing")
                .body::<view::SentCopy>()
                .gives::<view::CopyReport>("The verdict")
                .refuses(LEDGER),
        GET "/api/v1/copies/{name}/verify" copy::verify =>
            Operation::new("Verifies an exported copy, receipt by receipt")
                .path("name", "The name of the file.")
                .gives::<view::CopyReport>("The verdict")
                .refuses(LEDGER_LOOKUP),
        GET "/api/v1/keys" receipt::keys =>
            Operation::new("Lists the public keys, the current one first")
                .gives::<view::KeyList>("The keys")
                .refuses(LEDGER),
        POST "/api/v1/keys/rotate" receipt::rotate =>
            Operation::new("Rotates the signing key")
                .gives::<view::KeyEntry>("The new key")
                .refuses(LEDGER),

        GET "/api/v1/contention" contention::show =>
            Operation::new("Finds agents that touched the same resource")
                .queries::<contention::ContentionQuery>()
                .queries::<SpanQuery>()
                .gives::<view::ContentionGraph>("The contention graph")
                .refuses(LEDGER),
        GET "/api/v1/contention/{id}" contention::explain =>
            Operation::new("Tells how two agents met, in sentences")
                .path("id", "The id of an edge.")
                .queries::<contention::ContentionQuery>()
                .queries::<SpanQuery>()
                .gives::<view::ContentionStory>("The edge and its story")
                .refuses(LEDGER_LOOKUP),
        GET "/api/v1/targets/coverage" coverage::show =>
            Operation::new("Counts the calls that had a target, by server, tool and rule")
                .queries::<coverage::CoverageQuery>()
                .queries::<SpanQuery>()
                .gives::<view::CoverageList>("The counts")
                .refuses(LEDGER),
        GET "/api/v1/runs" run::list =>
            Operation::new("Lists workflow runs, newest first")
                .queries::<run::FilterQuery>()
                .queries::<PageQuery>()
                .gives::<view::RunPage>("One page of runs")
                .refuses(LEDGER),
        GET "/api/v1/runs/{id}" run::show =>
            Operation::new("Shows a run with its steps and their calls")
                .path("id", "The id of the run, or an unambiguous beginning or end of it.")
                .gives::<view::RunEntry>("The run")
                .refuses(LEDGER_LOOKUP),
        GET "/api/v1/events" events::stream =>
            Operation::new("Streams events as they happen, as server-sent events")
                .header("Last-Event-ID", "Resumes after the event with this id.", words::change_number())
                .streams::<view::StreamEvent>("The event stream")
                .mentions::<view::EventData>()
                .refuses(LEDGER),

        POST "/api/v1/page/codes" page::invite =>
            Operation::new("Creates a sign-in link for a browser")
                .makes::<view::SignInLink>("The link")
                .refuses(&[Code::Conflict, Code::LedgerUnavailable]),
        DELETE "/api/v1/page/sessions" page::leave =>
            Operation::new("Signs every browser out")
                .gives::<view::EndedSessions>("The number of sessions ended"),
    }
}

/// Returns every route.
pub fn all() -> impl Iterator<Item = &'static Route> {
    OPEN.iter().chain(ENTRY).chain(CLOSED)
}

/// Returns the parameters of a route's query.
pub(crate) fn query_parameters<'r>(method: &'r str, path: &'r str) -> Option<&'r [String]> {
    static KNOWN: LazyLock<HashMap<(&str, &str), Vec<String>>> = LazyLock::new(|| {
        all()
            .map(|route| ((route.method, route.path), (route.described)().into_queries()))
            .collect()
    });
    KNOWN.get(&(method, path)).map(Vec::as_slice)
}
