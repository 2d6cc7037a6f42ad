//! What `/events` takes and tells, in OpenAPI's words.

use axum::http::StatusCode;
use domain::Code;
use domain::catalog::Server;
use domain::policy::Lock;

use super::standing::REMOVED;
use crate::openapi::operation::Operation;
use crate::openapi::schema::{
    Schema, WithMembers, count, either, object, one_of, or_null, part, text,
};

pub(crate) fn stream() -> Operation {
    let id = count().maximum(Some(i64::MAX));
    Operation::new("What happens, as it happens, as server-sent events")
        .header("Last-Event-ID", "Goes on after the event of this id.", id)
        .answers(StatusCode::OK, "A stream without end", &["text/event-stream"], part("Event"))
        .refuses(&[Code::LedgerUnavailable])
}

/// The fields of an event; its data is JSON.
pub(crate) fn event() -> Schema {
    let told = either([part("Ledger"), activity(), run(), server(), tool()]);
    let data = text().content_media_type("application/json").content_schema(Some(told));
    object()
        .has("event", one_of(["activity", "ledger", "run", "server", "tool"]))
        .may("id", text().pattern(Some("^[0-9]+$")).description(Some("Of a change of the ledger.")))
        .has("data", data)
        .into()
}

fn activity() -> Schema {
    let phase = one_of(["start", "end", "refused", "bypass"]);
    object().has("phase", phase).has("record", part("Record")).into()
}

fn run() -> Schema {
    object()
        .has("phase", one_of(["start", "end"]))
        .has("run", part("Run"))
        .may("step", part("Step"))
        .into()
}

fn server() -> Schema {
    let states = || Server::STATE_WORDS.into_iter();
    object()
        .has("name", text())
        .has("state", one_of(states().chain([REMOVED])))
        .has("was", or_null(one_of(states())))
        .may("error", text())
        .into()
}

fn tool() -> Schema {
    object()
        .has("name", text().description(Some("`server:tool`")))
        .has("server", text())
        .has("status", one_of(Lock::words().into_iter().chain([REMOVED])))
        .has("was", or_null(one_of(Lock::words())))
        .into()
}
