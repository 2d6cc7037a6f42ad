//! What `/servers` takes and answers, in OpenAPI's words.

use domain::Code;
use domain::catalog::Server;
use domain::config::{AutoApprove, Sharing, Start};
use domain::trust::{Change, ItemKind, WarningKind};
use utoipa::openapi::ObjectBuilder;

use crate::openapi::operation::Operation;
use crate::openapi::schema::{
    Schema, WithMembers, amount, count, count_between, digest, duration, either, filled, flag,
    list_of, map_of, name, object, one_of, or_null, part, text,
};
use crate::server::LINES_MAX;

/// Where a decision may end otherwise.
const DECISION: &[Code] =
    &[Code::NotFound, Code::Conflict, Code::LedgerUnavailable, Code::ShuttingDown];

/// Calls at a time.
const CONCURRENT_MAX: usize = 10_000;

pub(crate) fn list() -> Operation {
    Operation::new("Every server")
        .gives("All of them", object().has("servers", list_of(part("Server"))))
}

pub(crate) fn show() -> Operation {
    named("One server").gives("The server", part("Server")).refuses(&[Code::NotFound])
}

/// About one server.
fn named(summary: &str) -> Operation {
    Operation::new(summary).path("name", "Of the server.")
}

/// A decision about one server.
pub(crate) fn decision(summary: &str) -> Operation {
    named(summary).refuses(DECISION)
}

pub(crate) fn add() -> Operation {
    Operation::new("Adds a server, which is quarantined and not started")
        .body(part("NewServer"))
        .makes("The server", part("Server"))
        .refuses(&[Code::Conflict, Code::LedgerUnavailable, Code::ShuttingDown])
}

pub(crate) fn remove() -> Operation {
    decision("Removes a server that was added")
        .gives("It is gone", object().has("name", text()).has("removed", flag()))
}

pub(crate) fn enable() -> Operation {
    decision("Switches a server on").gives("The server", part("Server"))
}

pub(crate) fn disable() -> Operation {
    decision("Switches a server off").gives("The server", part("Server"))
}

pub(crate) fn quarantine() -> Operation {
    decision("Locks everything of a server until it is approved again")
        .gives("The server", part("Server"))
}

pub(crate) fn approve() -> Operation {
    let inspect = "Only starts it and tells what it lists.";
    let answer = entry().may("approved", list_of(part("ApprovedItem"))).may("items", items_list());
    decision("Approves a server as it is now, with everything that it was seen to list")
        .query("inspect", inspect, flag())
        .optional_body(object().may("inspect", or_null(flag())).and_no_more())
        .gives("The server, and what was approved or found", answer)
}

pub(crate) fn items() -> Operation {
    named("What a server lists, for a review")
        .query("pending", "Only what waits, or only what does not.", flag())
        .gives("The items", object().has("name", text()).has("items", items_list()))
        .refuses(&[Code::NotFound, Code::LedgerUnavailable])
}

fn items_list() -> Schema {
    list_of(part("Item")).into()
}

pub(crate) fn approve_items() -> Operation {
    let fingerprint = || or_null(text().description(Some("Only if exactly that waits.")));
    let kinds = [ItemKind::Tool, ItemKind::Prompt, ItemKind::Template].map(ItemKind::as_str);
    let named = object()
        .has("name", text())
        .may("kind", or_null(one_of(kinds).default(Some(ItemKind::Tool.as_str().into()))))
        .may("fingerprint", fingerprint())
        .and_no_more();
    let instructions = object()
        .has("kind", one_of([ItemKind::Instructions.as_str()]))
        .may("name", or_null(text()))
        .may("fingerprint", fingerprint())
        .and_no_more();
    let item = either([named.into(), instructions.into()]);
    let answer = object().has("name", text()).has("approved", list_of(part("ApprovedItem")));
    decision("Approves what waits of a server: everything, or what is named")
        .optional_body(object().may("items", or_null(list_of(item))).and_no_more())
        .gives("What was approved", answer)
}

pub(crate) fn logs() -> Operation {
    let limit = count_between(1, LINES_MAX).default(Some(LINES_MAX.into()));
    named("The last lines of a server's stderr, oldest first")
        .query("limit", "So many at the most.", limit)
        .gives("The lines", object().has("name", text()).has("lines", list_of(text())))
        .refuses(&[Code::NotFound])
}

pub(crate) fn restart() -> Operation {
    named("Ends a server's connection and makes it anew")
        .gives("It was told to", object().has("name", text()).has("restarting", flag()))
        .refuses(&[Code::NotFound, Code::Conflict])
}

/// A kind of thing that servers list.
pub(crate) fn kind() -> ObjectBuilder {
    one_of(ItemKind::ALL.map(ItemKind::as_str)).default(Some(ItemKind::Tool.as_str().into()))
}

fn entry() -> ObjectBuilder {
    let misnamed = object()
        .has("kind", one_of(["unknown_tool"]))
        .has("text", text())
        .has("tool", text())
        .has("near", list_of(text()));
    let waiting = count().description(Some("Items that wait; null while that is not known."));
    object()
        .has("name", text())
        .has("state", one_of(Server::STATE_WORDS))
        .has("transport", text())
        .has("tool_count", count())
        .may("error", text().description(Some("Why it cannot be used.")))
        .may("tools", map_of(count()).description(Some("By status, where some are locked.")))
        .has("quarantined", flag())
        .has("disabled", flag())
        .has("pending", or_null(waiting))
        .may("instructions_pending", flag())
        .may("origin", one_of(["own", "found", "added"]))
        .may("command", text())
        .may("args", list_of(text()))
        .may("env", list_of(text()).description(Some("Names only.")))
        .may("cwd", text())
        .may("url", text().description(Some("Without user and query.")))
        .may("headers", list_of(text()).description(Some("Names only.")))
        .may("warnings", list_of(misnamed))
}

pub(crate) fn server() -> Schema {
    entry().into()
}

/// An entry of `mcpServers` with its name.
pub(crate) fn new_server() -> Schema {
    let words = |names: &'static [&'static str]| one_of(names.iter().copied());
    let seconds = amount().description(Some("In seconds."));
    let oauth = object().may("client_id", text()).may("scopes", list_of(text())).and_no_more();
    object()
        .has("name", name())
        .may("command", filled().description(Some("The program to start, or else `url`.")))
        .may("args", list_of(text()))
        .may("env", map_of(text()))
        .may("cwd", filled())
        .may("url", filled().description(Some("`http` or `https`.")))
        .may("headers", map_of(text()))
        .may("transport", one_of(["stdio", "http", "sse"]))
        .may("enabled", flag())
        .may("quarantined", flag())
        .may("enabled_tools", list_of(text()))
        .may("disabled_tools", list_of(text()))
        .may("auto_approve", words(AutoApprove::NAMES))
        .may("sharing", words(Sharing::NAMES))
        .may("start", words(Start::NAMES))
        .may("call_timeout", either([duration().into(), seconds.into()]))
        .may("max_concurrent", count_between(1, CONCURRENT_MAX))
        .may("oauth", oauth)
        .and_no_more()
        .description(Some("An entry of `mcpServers`, and its name."))
        .into()
}

pub(crate) fn approved_item() -> Schema {
    object().has("kind", kind()).has("name", text()).has("fingerprint", digest()).into()
}

/// What a review says of any item.
pub(crate) fn reviewed(of: ObjectBuilder) -> ObjectBuilder {
    of.has("fingerprint", digest())
        .may("approved_fingerprint", digest())
        .may("change", one_of(Change::ALL.map(Change::as_str)))
        .may("diff", list_of(part("DiffLine")))
        .has("warnings", list_of(part("Warning")))
        .has("visible", text().description(Some("Laid out, with hidden characters visible.")))
}

pub(crate) fn item() -> Schema {
    let item = object()
        .has("kind", kind())
        .has("name", text())
        .has("status", one_of(["pending_approval", "approved"]))
        .has("text", text().description(Some("As the server sent it.")));
    reviewed(item).into()
}

pub(crate) fn diff_line() -> Schema {
    object()
        .has("mark", one_of(["same", "removed", "added", "skipped"]))
        .has("text", text())
        .may("lines", count().description(Some("That were skipped.")))
        .into()
}

pub(crate) fn warning() -> Schema {
    object()
        .has("kind", one_of(WarningKind::ALL.map(WarningKind::as_str)))
        .has("text", text())
        .into()
}
