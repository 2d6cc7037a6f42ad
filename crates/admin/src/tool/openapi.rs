//! What `/tools` takes and answers, in OpenAPI's words.

use domain::Code;
use domain::policy::Lock;
use domain::tool::Class;
use utoipa::openapi::ObjectBuilder;

use crate::openapi::operation::Operation;
use crate::openapi::schema::{
    Schema, WithMembers, amount, any_object, anything, count, count_between, digest, either, flag,
    list_of, object, one_of, or_null, part, text,
};
use crate::server::openapi::{kind, reviewed};
use crate::tool::SEARCH_RESULTS_MAX;

fn status() -> ObjectBuilder {
    one_of(Lock::words())
}

pub(crate) fn list() -> Operation {
    let limit = count_between(1, SEARCH_RESULTS_MAX).default(Some(SEARCH_RESULTS_MAX.into()));
    Operation::new("Every tool of every server, or what a search finds")
        .query("q", "Searches: the callable ones first, and best first.", text())
        .query("server", "Of this server.", text())
        .query("status", "In this status.", status())
        .query("limit", "So many results of a search at the most.", limit)
        .gives("The tools", object().has("tools", list_of(part("Tool"))).has("total", count()))
}

fn named(summary: &str) -> Operation {
    Operation::new(summary).path("server", "Its server.").path("tool", "Its name.")
}

fn decision(summary: &str) -> Operation {
    named(summary).refuses(&[
        Code::NotFound,
        Code::Conflict,
        Code::LedgerUnavailable,
        Code::ShuttingDown,
    ])
}

pub(crate) fn show() -> Operation {
    let tool = reviewed(entry())
        .may("remediation", text().description(Some("Who can lift the lock, and how.")))
        .has("definition", any_object().description(Some("As the server sent it.")));
    named("One tool as a reviewer sees it, or another thing that its server lists")
        .query("kind", "What is meant by the name.", kind())
        .gives("The tool, or the other thing", either([tool.into(), part("Item")]))
        .refuses(&[Code::NotFound, Code::LedgerUnavailable])
}

pub(crate) fn approve() -> Operation {
    let body = object()
        .may("kind", or_null(kind()))
        .may("fingerprint", or_null(text().description(Some("Only if exactly that waits."))))
        .and_no_more();
    let answer = object()
        .has("server", text())
        .has("kind", kind())
        .has("name", text())
        .has("fingerprint", digest());
    decision("Approves what waits of a tool").optional_body(body).gives("What was approved", answer)
}

pub(crate) fn enable() -> Operation {
    decision("Switches a tool on for everybody").gives("The tool", switched())
}

pub(crate) fn disable() -> Operation {
    decision("Switches a tool off for everybody").gives("The tool", switched())
}

/// One that is no longer listed has only its name.
fn switched() -> ObjectBuilder {
    members(object().has("name", text()).has("server", text()), ObjectBuilder::may)
}

type Member = fn(ObjectBuilder, &str, Schema) -> ObjectBuilder;

fn members(of: ObjectBuilder, member: Member) -> ObjectBuilder {
    let of = member(of, "source", text().into());
    let of = member(of, "description", text().into());
    let of = of.may("annotations", anything().description(Some("As the server sent them.")));
    let of = member(of, "class", one_of(Class::ALL.map(Class::as_str)).into());
    let of = member(of, "unverified", flag().into());
    let of = member(of, "call_with", one_of(Class::ALL.map(Class::variant)).into());
    let of = member(of, "status", status().into());
    of.may("score", amount().description(Some("0 to 1, of a search.")))
}

fn entry() -> ObjectBuilder {
    let named =
        object().has("name", text().description(Some("`server:tool`"))).has("server", text());
    members(named, ObjectBuilder::has)
}

pub(crate) fn tool() -> Schema {
    entry().into()
}
