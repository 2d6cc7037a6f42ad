//! What `/activity` takes and answers, in OpenAPI's words.

use axum::http::StatusCode;
use domain::Code;
use domain::tool::Class;
use store::read::{PAGE_MAX, Period};
use store::{Kind, Status};
use utoipa::openapi::ObjectBuilder;

use super::Format;
use crate::ledger::PAGE_DEFAULT;
use crate::openapi::operation::Operation;
use crate::openapi::schema::{
    Schema, WithMembers, amount, anything, count, count_between, flag, list_of, moment, object,
    one_of, or_null, part, text,
};

fn class() -> ObjectBuilder {
    one_of(Class::ALL.map(Class::as_str))
}

fn filtered(operation: Operation) -> Operation {
    let text_filters = [
        ("server", "Of this server."),
        ("tool", "Of the tool of this name."),
        ("agent", "Of this agent: with its session, without, or by its token's name."),
        ("session_id", "Of this session."),
        ("request_id", "Of this request."),
        ("target_system", "That touched this system."),
        ("target_resource", "That touched this resource."),
        ("q", "With this text in tool, server, reason, error or target."),
    ];
    let operation = operation
        .query("type", "Of this type.", one_of(Kind::ALL.map(Kind::as_str)))
        .query("status", "With this outcome.", one_of(Status::ALL.map(Status::as_str)))
        .query("intent_type", "Declared as such.", class())
        .query("effective_class", "Decided as such.", class());
    let operation = within(operation);
    text_filters
        .iter()
        .fold(operation, |operation, (name, words)| operation.query(name, words, text()))
}

/// From one time to another.
pub(crate) fn within(operation: Operation) -> Operation {
    operation.query("start_time", "From this time on.", moment()).query(
        "end_time",
        "Before this time.",
        moment(),
    )
}

/// A list that comes in pages.
pub(crate) fn paged(operation: Operation) -> Operation {
    let limit = count_between(1, PAGE_MAX).default(Some(PAGE_DEFAULT.into()));
    operation
        .query("limit", "So many at the most.", limit)
        .query("cursor", "The `next_cursor` of the page before.", text())
        .refuses(&[Code::LedgerUnavailable])
}

/// The members of a page, beside what is on it.
pub(crate) fn page_of(name: &str, items: Schema) -> ObjectBuilder {
    object()
        .has(name, list_of(items))
        .has("next_cursor", or_null(text().description(Some("Null at the end."))))
        .has("total", count())
        .has("total_is_exact", flag().description(Some("Else there are at least so many.")))
}

pub(crate) fn list() -> Operation {
    paged(filtered(Operation::new("Records, newest first")))
        .gives("A page of them", page_of("activities", part("Record")))
}

pub(crate) fn show() -> Operation {
    Operation::new("One record with arguments and response")
        .path("id", "Of the record.")
        .gives("The record", part("WholeRecord"))
        .refuses(&[Code::NotFound, Code::LedgerUnavailable])
}

pub(crate) fn summary() -> Operation {
    let period = one_of(Period::ALL.map(Period::as_str)).default(Some(Period::Day.as_str().into()));
    Operation::new("Calls of late, counted")
        .query("period", "How far back.", period)
        .gives("The counts", part("Summary"))
        .refuses(&[Code::LedgerUnavailable])
}

pub(crate) fn export() -> Operation {
    let formats = [Format::Jsonl, Format::Csv];
    let kinds = formats.map(Format::content_type);
    let format = one_of(formats.map(Format::as_str)).default(Some(Format::Jsonl.as_str().into()));
    filtered(Operation::new("Every record that fits, oldest first"))
        .query("format", "JSON lines of whole records, or a table for spreadsheets.", format)
        .answers(StatusCode::OK, "All of them", &kinds, text())
        .refuses(&[Code::LedgerUnavailable])
}

fn members() -> ObjectBuilder {
    let text_or_null = || or_null(text());
    let agent = object().has("name", text()).has("client", text()).has("token", text());
    let target = object().has("system", text()).has("resource", text());
    object()
        .has("id", text())
        .has("type", one_of(Kind::ALL.map(Kind::as_str)))
        .has("source", text())
        .has("surface", text())
        .has("server_name", text())
        .has("tool_name", text())
        .has("status", one_of(Status::ALL.map(Status::as_str)))
        .has("error_code", text_or_null())
        .has("error_message", text_or_null())
        .has("duration_ms", or_null(amount()))
        .has("timestamp", moment())
        .has("session_id", text_or_null())
        .has("request_id", text_or_null())
        .has("agent", agent)
        .has("target", or_null(target))
        .has("receipt_id", text_or_null())
        .has("metadata", metadata())
}

fn metadata() -> ObjectBuilder {
    let intent = object()
        .has("operation_type", or_null(text()))
        .has("data_sensitivity", or_null(text()))
        .has("reason", or_null(text()));
    object()
        .has("tool_variant", or_null(text()))
        .has("effective_class", or_null(class()))
        .has("unverified", flag())
        .has("warnings", list_of(text()))
        .has("trace_id", or_null(text()))
        .has("arguments_bytes", or_null(count()))
        .has("response_bytes", or_null(count()))
        .may("decision", or_null(text()))
        .may("intent", intent)
}

pub(crate) fn record() -> Schema {
    members().into()
}

pub(crate) fn whole_record() -> Schema {
    let payload = || anything().description(Some("JSON, or text where it was cut."));
    members()
        .has("arguments", payload())
        .has("response", payload())
        .has("response_truncated", flag())
        .into()
}

/// What is said of any group of calls.
fn counted(of: ObjectBuilder) -> ObjectBuilder {
    of.has("calls", count()).has("errors", count()).has("blocked", count())
}

pub(crate) fn whole_summary() -> Schema {
    let by = |names: &[&str]| {
        list_of(counted(names.iter().fold(object(), |of, name| of.has(name, text()))))
    };
    let statuses = Status::ALL
        .iter()
        .fold(object(), |statuses, status| statuses.has(status.as_str(), count()));
    let bucket = object()
        .has("start", moment())
        .has(
            "reads",
            count().description(Some("By effective class; a refused call may have none.")),
        )
        .has("writes", count())
        .has("destructive", count());
    object()
        .has("period", one_of(Period::ALL.map(Period::as_str)))
        .has("start", moment())
        .has("end", moment())
        .has("calls", count())
        .has("by_status", statuses)
        .has("by_server", by(&["server"]))
        .has("by_tool", by(&["server", "tool"]))
        .has("by_intent", by(&["intent_type"]))
        .has("by_agent", by(&["agent"]))
        .has("buckets", list_of(counted(bucket)))
        .has("bucket_seconds", count())
        .has("duration_ms", object().has("p50", or_null(amount())).has("p95", or_null(amount())))
        .into()
}
