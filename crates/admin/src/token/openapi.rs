//! What `/tokens` takes and answers, in OpenAPI's words.

use domain::Code;
use domain::caller::{Surface, Unannotated};
use domain::tool::Class;
use utoipa::openapi::{ArrayBuilder, ObjectBuilder};

use super::EVERY;
use crate::openapi::operation::Operation;
use crate::openapi::schema::{
    Schema, WithMembers, duration, either, flag, list_of, moment, name, object, one_of, or_null,
    part, text,
};

pub(crate) fn list() -> Operation {
    Operation::new("The tokens of agents, never their secrets")
        .gives("All of them", object().has("tokens", list_of(part("Token"))))
        .refuses(&[Code::LedgerUnavailable])
}

pub(crate) fn make() -> Operation {
    let secret = text().description(Some("Shown this once."));
    Operation::new("Makes a token")
        .body(part("NewToken"))
        .makes("The token with its secret", entry().has("token", secret))
        .refuses(&[Code::Conflict, Code::LedgerUnavailable, Code::ShuttingDown])
}

pub(crate) fn revoke() -> Operation {
    Operation::new("Revokes a token")
        .path("name", "Of the token.")
        .gives("It opens nothing any more", object().has("name", text()).has("revoked", flag()))
        .refuses(&[Code::NotFound, Code::LedgerUnavailable, Code::ShuttingDown])
}

fn operations() -> ArrayBuilder {
    list_of(one_of(Class::ALL.map(Class::as_str)))
}

fn surfaces() -> ArrayBuilder {
    list_of(one_of(Surface::ALL.map(Surface::as_str)))
}

fn unannotated() -> ObjectBuilder {
    one_of(Unannotated::ALL.map(Unannotated::as_str))
}

fn entry() -> ObjectBuilder {
    object()
        .has("name", text())
        .has("state", one_of(["valid", "expired", "revoked"]))
        .has("created_at", moment())
        .has("expires_at", or_null(moment()))
        .has("revoked_at", or_null(moment()))
        .may("servers", list_of(text()).description(Some("`*` for all.")))
        .may("operations", operations())
        .may("surfaces", surfaces())
        .may("profile", or_null(text()))
        .may("unannotated_tools", unannotated())
}

pub(crate) fn token() -> Schema {
    entry().into()
}

pub(crate) fn new_token() -> Schema {
    let every = list_of(one_of([EVERY])).min_items(Some(1)).max_items(Some(1));
    let every = every.description(Some("All of them, as if it were absent."));
    let servers = either([every.into(), list_of(name()).min_items(Some(1)).into()]);
    object()
        .has("name", name())
        .has("operations", operations().min_items(Some(1)))
        .may("servers", or_null(servers))
        .may("surfaces", or_null(surfaces().min_items(Some(1))))
        .may("profile", or_null(name().description(Some("One of the config."))))
        .may("expires_in", or_null(duration()))
        .may("unannotated_tools", or_null(unannotated()))
        .and_no_more()
        .into()
}
