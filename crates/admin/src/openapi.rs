//! `GET /openapi.json`: what the API takes and answers, for programs. It is made from the table of
//! routes, each of which brings its description, so that it tells of them all.

pub(crate) mod operation;
pub(crate) mod query;
pub(crate) mod schema;

use std::sync::LazyLock;

use axum::response::Response;
use domain::Code;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::HttpMethod;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Paths,
};

use crate::openapi::operation::Operation;
use crate::openapi::schema::{Schema, WithMembers, any_object, object, one_of, text};
use crate::{
    activity, answer, call, contention, events, receipt, routes, run, server, status, token, tool,
};

/// The name of the one way to sign in.
const ADMIN_KEY: &str = "admin_key";

const REQUEST_ID: &str = "x-request-id";

type Part = (&'static str, fn() -> Schema);

/// What several answers have in common, each described once.
const PARTS: &[Part] = &[
    ("ApprovedItem", server::openapi::approved_item),
    ("Call", call::openapi::call),
    ("Chain", receipt::openapi::chain),
    ("ChainCheck", receipt::openapi::chain_check),
    ("DiffLine", server::openapi::diff_line),
    ("Error", error),
    ("Event", events::openapi::event),
    ("Graph", contention::openapi::graph),
    ("Item", server::openapi::item),
    ("Key", receipt::openapi::key),
    ("Ledger", status::openapi::ledger),
    ("NewServer", server::openapi::new_server),
    ("NewToken", token::openapi::new_token),
    ("Receipt", receipt::openapi::receipt),
    ("ReceiptEntry", receipt::openapi::entry),
    ("Record", activity::openapi::record),
    ("Run", run::openapi::run),
    ("RunCall", run::openapi::call),
    ("Server", server::openapi::server),
    ("Step", run::openapi::step),
    ("Summary", activity::openapi::whole_summary),
    ("Token", token::openapi::token),
    ("Tool", tool::openapi::tool),
    ("Warning", server::openapi::warning),
    ("WholeRecord", activity::openapi::whole_record),
    ("WholeRun", run::openapi::whole_run),
];

pub(crate) async fn show() -> Response {
    static TEXT: LazyLock<String> =
        LazyLock::new(|| serde_json::to_string(&document()).unwrap_or_default());
    answer::json(TEXT.as_str())
}

pub(crate) fn described() -> Operation {
    Operation::new("This document").gives("OpenAPI 3.1", any_object())
}

fn document() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Countersign")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "The operator's API. Each answer has an `x-request-id`: yours, if you sent one. Answers \
             may gain members; unknown parameters and members of a request are refused.",
        ))
        .license(Some(LicenseBuilder::new().name("MIT OR Apache-2.0").build()));
    let mut paths = Paths::new();
    for route in routes::all() {
        let operation = (route.described)().build(route.handler, route.access);
        paths.add_path_operation(route.path, vec![method(route.method)], operation);
    }
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components().build())).build()
}

fn components() -> ComponentsBuilder {
    let key = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("The content of `<home>/api-key`."));
    let header = HeaderBuilder::new()
        .schema(Some(text()))
        .description(Some("The request's id, which errors and records repeat."));
    PARTS.iter().fold(
        ComponentsBuilder::new()
            .security_scheme(ADMIN_KEY, SecurityScheme::Http(key.build()))
            .header(REQUEST_ID, header.build()),
        |components, (name, described)| components.schema(*name, described()),
    )
}

/// The methods that routes have.
fn method(word: &str) -> HttpMethod {
    match word {
        "POST" => HttpMethod::Post,
        "DELETE" => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}

fn error() -> Schema {
    let codes = Code::ALL.iter().map(|code| code.as_str());
    let error = object()
        .has("code", one_of(codes))
        .has("message", text())
        .has("details", any_object().description(Some("What is wrong, for programs.")));
    object().has("error", error).has("request_id", text()).into()
}

#[cfg(test)]
mod tests;
