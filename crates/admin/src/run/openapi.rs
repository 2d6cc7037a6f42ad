//! What `/runs` takes and answers, in OpenAPI's words.

use domain::Code;
use store::run::{RunStatus, StepStatus};
use utoipa::openapi::ObjectBuilder;

use crate::activity::openapi::{page_of, paged};
use crate::openapi::operation::Operation;
use crate::openapi::schema::{
    Schema, WithMembers, amount, count, list_of, moment, object, one_of, or_null, part, text,
};

pub(crate) fn list() -> Operation {
    paged(Operation::new("Runs of workflows, newest first"))
        .query("status", "With this outcome.", one_of(RunStatus::ALL.map(RunStatus::as_str)))
        .query("workflow", "Of the workflow of this name.", text())
        .gives("A page of them", page_of("runs", part("Run")))
}

pub(crate) fn show() -> Operation {
    Operation::new("One run with its steps and their calls")
        .path("id", "Of the run, or as much of its beginning as no other run has.")
        .gives("The run", part("WholeRun"))
        .refuses(&[Code::NotFound, Code::LedgerUnavailable])
}

fn entry() -> ObjectBuilder {
    object()
        .has("id", text())
        .has("workflow", text())
        .has("version", or_null(text()))
        .has("file", or_null(text()))
        .has("pid", count())
        .has("status", one_of(RunStatus::ALL.map(RunStatus::as_str)))
        .has("message", or_null(text()))
        .has("exit_code", or_null(count()))
        .has("started_at", moment())
        .has("ended_at", or_null(moment()))
        .has("duration_ms", or_null(amount()))
        .has("trace_id", or_null(text()))
        .has("steps_total", count())
        .has("tokens", or_null(count()))
        .has("cost_usd", or_null(amount()))
}

fn step_entry() -> ObjectBuilder {
    object()
        .has("number", count())
        .has("state", text())
        .has("kind", text())
        .has("attempt", count())
        .has("provider", or_null(text()))
        .has("model", or_null(text()))
        .has("isolation", or_null(text()))
        .has("status", one_of(StepStatus::ALL.map(StepStatus::as_str)))
        .has("started_at", moment())
        .has("ended_at", or_null(moment()))
        .has("duration_ms", or_null(amount()))
        .has("exit_code", or_null(integer()))
        .has("tokens", or_null(count()))
        .has("cost_usd", or_null(amount()))
        .has("error_code", or_null(text()))
        .has("error_message", or_null(text()))
        .has("sessions", list_of(text()))
}

fn integer() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(utoipa::openapi::Type::Integer)
}

pub(crate) fn run() -> Schema {
    entry().into()
}

pub(crate) fn step() -> Schema {
    step_entry().into()
}

pub(crate) fn whole_run() -> Schema {
    let step = step_entry()
        .has("output", or_null(text()))
        .has("calls", list_of(part("RunCall")))
        .has("calls_total", count());
    entry().has("steps", list_of(step)).into()
}

/// One call of a step, in short.
pub(crate) fn call() -> Schema {
    let target = object().has("system", text()).has("resource", text());
    object()
        .has("id", text())
        .has("server_name", text())
        .has("tool_name", text())
        .has("status", text())
        .has("error_code", or_null(text()))
        .has("duration_ms", or_null(amount()))
        .has("timestamp", moment())
        .has("target", or_null(target))
        .into()
}
