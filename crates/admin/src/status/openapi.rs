//! What `/status` and those who watch the process are told, in OpenAPI's words.

use axum::http::StatusCode;

use crate::metrics::CONTENT_TYPE;
use crate::openapi::operation::Operation;
use crate::openapi::schema::{
    Schema, WithMembers, count, digest, map_of, object, one_of, or_null, part, text,
};

pub(crate) fn show() -> Operation {
    let config = object()
        .has("state", one_of(["ok", "rejected"]))
        .may("error", text().description(Some("Why the newest file is not in effect.")));
    let answer = object()
        .has("version", text())
        .has("pid", count())
        .has("uptime_seconds", count())
        .has("config", config)
        .has("upstreams", map_of(count()).description(Some("Servers by state.")))
        .has("tools", map_of(count()).description(Some("Tools by status.")))
        .has("include_disabled_asked", count())
        .has("ledger", part("Ledger"));
    Operation::new("Is all well?").gives("How the gate is", answer)
}

pub(crate) fn ledger() -> Schema {
    object()
        .has("state", one_of(["ok", "failing"]))
        .has("chain", or_null(text()))
        .has("length", count())
        .has("last_hash", or_null(digest()))
        .has("queue", count())
        .has("last_error", or_null(text()))
        .into()
}

pub(crate) fn metrics() -> Operation {
    Operation::new("What was counted, for Prometheus").answers(
        StatusCode::OK,
        "The counters",
        &[CONTENT_TYPE],
        text(),
    )
}

pub(crate) fn lives() -> Operation {
    Operation::new("Whether the process lives")
        .gives("It does", object().has("status", one_of(["ok"])))
}

pub(crate) fn is_ready() -> Operation {
    let unready = object().has("status", one_of(["unready"])).has("reason", text());
    Operation::new("Whether calls are taken")
        .gives("They are", object().has("status", one_of(["ready"])))
        .answers(StatusCode::SERVICE_UNAVAILABLE, "They are not", &["application/json"], unready)
}
