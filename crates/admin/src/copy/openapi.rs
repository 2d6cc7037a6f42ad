//! What `/copies` answers, in OpenAPI's words.

use domain::Code;

use crate::openapi::operation::Operation;
use crate::openapi::schema::{
    WithMembers, count, flag, list_of, moment, object, or_null, part, text,
};

pub(crate) fn list() -> Operation {
    let copy =
        object().has("name", text()).has("bytes", count()).has("modified_at", or_null(moment()));
    Operation::new("Exports that lie in `<home>/copies`")
        .gives("All of them", object().has("copies", list_of(copy)))
}

pub(crate) fn verify() -> Operation {
    let found = object()
        .has("name", text())
        .has("valid", flag())
        .has("chains", list_of(part("ChainCheck")))
        .has("notes", list_of(text()));
    Operation::new("Whether a copy is as it was signed, receipt by receipt")
        .path("name", "Of the file.")
        .gives("What was found", found)
        .refuses(&[Code::NotFound, Code::LedgerUnavailable])
}
