//! What `/contention` takes and answers, in OpenAPI's words.

use domain::Code;
use domain::ledger::contention::Kind;

use crate::activity::openapi::within;
use crate::openapi::operation::Operation;
use crate::openapi::schema::{
    Schema, WithMembers, amount, count, duration, list_of, moment, object, one_of, part, text,
};

pub(crate) fn show() -> Operation {
    let kind = one_of(Kind::ALL.map(Kind::as_str));
    let operation = Operation::new("Agents that touched the same thing")
        .query("window", "How close in time.", duration())
        .query("system", "In this system.", text())
        .query("kind", "Edges of this kind.", kind);
    within(operation).gives("Who met whom", part("Graph")).refuses(&[Code::LedgerUnavailable])
}

pub(crate) fn graph() -> Schema {
    let node = object()
        .has("agent", text())
        .has("calls", count())
        .has("reads", count())
        .has("writes", count())
        .has("resources", count());
    let edge = object()
        .has("from", text())
        .has("to", text())
        .has("kind", one_of(Kind::ALL.map(Kind::as_str)))
        .has("system", text())
        .has("resources", list_of(text()))
        .has("resources_total", count())
        .has("meetings", count())
        .has("first", moment())
        .has("last", moment())
        .has("smallest_gap_ms", amount())
        .has("records", list_of(text()));
    object()
        .has("nodes", list_of(node))
        .has("nodes_total", count())
        .has("edges", list_of(edge))
        .has("edges_total", count())
        .into()
}
