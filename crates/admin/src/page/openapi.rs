//! The page's files and how to sign in to it, in OpenAPI's words.

use axum::http::StatusCode;
use domain::Code;

use super::file::{CSS, HTML, JAVASCRIPT, SVG};
use crate::openapi::operation::Operation;
use crate::openapi::schema::{WithMembers, count, moment, object, text};

pub(crate) fn index() -> Operation {
    Operation::new("The page for people").answers(StatusCode::OK, "HTML", &[HTML], text())
}

pub(crate) fn file() -> Operation {
    files(Operation::new("A file of the page"))
}

pub(crate) fn file_in() -> Operation {
    files(Operation::new("A file of the page, in a folder").path("folder", "Of the file."))
}

fn files(operation: Operation) -> Operation {
    operation
        .path("file", "Its name.")
        .answers(StatusCode::OK, "The file", &[JAVASCRIPT, CSS, SVG, HTML], text())
        .refuses(&[Code::NotFound])
}

pub(crate) fn invite() -> Operation {
    let link =
        object().has("url", text().description(Some("Works once."))).has("expires_at", moment());
    Operation::new("Makes a link that signs a browser in")
        .makes("The link", link)
        .refuses(&[Code::LedgerUnavailable])
}

pub(crate) fn enter() -> Operation {
    let answer = object()
        .has("token", text().description(Some("For `x-countersign-session`, beside the cookie.")))
        .has("expires_at", moment());
    Operation::new("Signs in with the code of a link")
        .header("Origin", "The address of the page.", text())
        .body(object().has("code", text()).and_no_more().into())
        .makes("The session, whose cookie is set", answer)
        .refuses(&[Code::Unauthorized, Code::LedgerUnavailable])
}

pub(crate) fn leave() -> Operation {
    Operation::new("Signs every browser out")
        .gives("How many sessions ended", object().has("ended", count()))
}
