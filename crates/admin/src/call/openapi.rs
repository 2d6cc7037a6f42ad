//! What `/tools/call` takes and answers, in OpenAPI's words.

use domain::Code;
use domain::intent::{REASON_CHARS_MAX, Sensitivity};
use domain::tool::Class;
use utoipa::openapi::ObjectBuilder;

use crate::openapi::operation::Operation;
use crate::openapi::schema::{
    Schema, WithMembers, any_object, list_of, object, one_of, or_null, part, text,
};

pub(crate) fn make() -> Operation {
    let answer = object()
        .has("id", text().description(Some("Of the record.")))
        .has("result", any_object().description(Some("The server's, byte for byte.")))
        .may("warnings", list_of(text()))
        .may("ledger", one_of(["queued"]));
    Operation::new("Makes a call, through the same pipeline as an agent's")
        .body(part("Call"))
        .gives("What the tool answered", answer)
        .refuses(&[
            Code::MissingIntent,
            Code::MissingOperationType,
            Code::InvalidOperationType,
            Code::IntentMismatch,
            Code::InvalidSensitivity,
            Code::ReasonTooLong,
            Code::ServerMismatch,
            Code::InvalidArguments,
            Code::ToolBlocked,
            Code::NotPermitted,
            Code::ToolNotFound,
            Code::Cancelled,
            Code::UpstreamError,
            Code::UpstreamUnavailable,
            Code::LedgerUnavailable,
            Code::ShuttingDown,
            Code::Timeout,
        ])
}

pub(crate) fn call() -> Schema {
    let operation = || one_of(Class::ALL.map(Class::as_str));
    let sensitivity = || or_null(one_of(Sensitivity::ALL.map(Sensitivity::as_str)));
    let intent = any_object()
        .has("operation_type", operation().description(Some("What `tool_variant` says too.")))
        .may("data_sensitivity", sensitivity())
        .may("reason", or_null(reason()));
    let args_json = text().description(Some("The same as JSON text, instead of `args`."));
    object()
        .has("tool_variant", one_of(Class::ALL.map(Class::variant)))
        .has("name", text().pattern(Some(r"^[A-Za-z0-9_.-]+:\S")))
        .may("args", or_null(any_object()))
        .may("args_json", or_null(args_json))
        .may("intent", or_null(intent))
        .may("intent_operation_type", or_null(operation()))
        .may("intent_data_sensitivity", sensitivity())
        .may("intent_reason", or_null(reason()))
        .and_no_more()
        .description(Some("The intent is needed in one of its spellings: nested, or flat."))
        .into()
}

fn reason() -> ObjectBuilder {
    text().max_length(Some(REASON_CHARS_MAX))
}
