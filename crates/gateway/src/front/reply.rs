//! Tool results that the gate writes.

use domain::Refusal;
use mcp::ErrorObject;
use mcp::message::{Raw, to_raw};
use mcp::object::{ObjectMembers, quote};
use provider::{CallOutcome, ProviderError, RecordState};
use serde::Serialize;
use serde_json::json;

/// A result whose one text block is a JSON document.
pub(super) fn document(json: &str) -> Raw {
    #[derive(Serialize)]
    struct Document<'a> {
        content: [Text<'a>; 1],
    }
    #[derive(Serialize)]
    struct Text<'a> {
        r#type: &'static str,
        text: &'a str,
    }
    to_raw(&Document { content: [Text { r#type: "text", text: json }] })
}

/// A refusal as an error result: text for the model, members for programs.
pub(super) fn refusal(refusal: &Refusal) -> Raw {
    to_raw(&json!({
        "content": [{"type": "text", "text": refusal.message}],
        "structuredContent": refusal.to_json(),
        "isError": true,
    }))
}

/// The member of `_meta` with the parts of a refusal, where a result is to look like the server's.
const REFUSAL_META: &str = "countersign/error";

/// A refusal on a pass-through surface. A client checks `structuredContent` against the tool's own
/// output schema, and would reject the whole result, so that programs find the parts in `_meta`.
fn passed_refusal(refusal: &Refusal) -> Raw {
    to_raw(&json!({
        "content": [{"type": "text", "text": refusal.message}],
        "isError": true,
        "_meta": {REFUSAL_META: refusal.to_json()["error"]},
    }))
}

/// The code of a JSON-RPC error by which the gate refuses a request that is not a tool call.
pub(super) const REFUSED: i64 = -32003;

/// A refusal of a request whose result has no place for one.
pub(super) fn refused_request(refusal: &Refusal) -> ErrorObject {
    ErrorObject::new(REFUSED, refusal.message.clone()).with_data(&refusal.to_json())
}

/// Converts the outcome of a request other than a tool call.
pub(super) fn passed_request(outcome: CallOutcome) -> Result<Raw, ErrorObject> {
    match outcome {
        CallOutcome::Failed { error: ProviderError::Protocol(error), .. } => Err(error),
        CallOutcome::Refused(refusal) | CallOutcome::Failed { refusal, .. } => {
            Err(refused_request(&refusal))
        }
        replied @ CallOutcome::Replied { .. } => Ok(passed(replied)),
    }
}

/// A refusal, and the result that reports it.
pub(super) struct RefusedAnswer {
    pub(super) refusal: Box<Refusal>,
    pub(super) result: Raw,
}

impl RefusedAnswer {
    /// Reports the refusal with another result's content, which says more than its message.
    pub(super) fn with_result(refusal: Refusal, result: &Raw) -> RefusedAnswer {
        let mut members = ObjectMembers::parse(result).unwrap_or_default();
        members.set("structuredContent", refusal.to_json().to_string());
        members.set("isError", "true");
        RefusedAnswer { result: members.write(), refusal: Box::new(refusal) }
    }
}

impl From<Refusal> for RefusedAnswer {
    fn from(refused: Refusal) -> Self {
        RefusedAnswer { result: refusal(&refused), refusal: Box::new(refused) }
    }
}

/// Converts the outcome of a two-key call to the result the agent gets.
pub(super) fn outcome(outcome: CallOutcome) -> Raw {
    answered(outcome, refusal)
}

/// Converts the outcome of a call on a pass-through surface.
pub(super) fn passed(outcome: CallOutcome) -> Raw {
    answered(outcome, passed_refusal)
}

fn answered(outcome: CallOutcome, refusal: impl FnOnce(&Refusal) -> Raw) -> Raw {
    match outcome {
        CallOutcome::Replied { reply, warnings, kept: RecordState::Committed }
            if warnings.is_empty() =>
        {
            reply.result
        }
        CallOutcome::Replied { reply, warnings, kept } => noted(&reply.result, &warnings, kept),
        CallOutcome::Refused(refused) | CallOutcome::Failed { refusal: refused, .. } => {
            refusal(&refused)
        }
    }
}

/// Adds the gate's notes to `_meta`, next to the server's own members; the content stays the
/// server's.
fn noted(result: &Raw, warnings: &[String], kept: RecordState) -> Raw {
    let rewrite = || {
        let mut members = ObjectMembers::parse(result).ok()?;
        let meta_text = members.get("_meta").unwrap_or("{}").to_owned();
        let mut meta: ObjectMembers<'_> = serde_json::from_str(&meta_text).ok()?;
        if !warnings.is_empty() {
            meta.set("countersign/warnings", to_raw(&warnings).get().to_owned());
        }
        if kept == RecordState::Queued {
            meta.set("countersign/ledger", quote("queued"));
        }
        members.set("_meta", meta.write().get().to_owned());
        Some(members.write())
    };
    rewrite().unwrap_or_else(|| result.clone())
}

#[cfg(test)]
mod tests {
    use mcp::message::raw;

    use super::*;

    #[test]
    fn notes_are_merged_into_existing_meta() {
        let result = raw(r#"{"content":[],"_meta":{"x":1.0},"n":1E2}"#.to_owned());
        let expected = r#"{"content":[],"_meta":{"x":1.0,"countersign/warnings":["w"]},"n":1E2}"#;
        assert_eq!(noted(&result, &["w".to_owned()], RecordState::Committed).get(), expected);
        let expected = r#"{"content":[],"_meta":{"x":1.0,"countersign/ledger":"queued"},"n":1E2}"#;
        assert_eq!(noted(&result, &[], RecordState::Queued).get(), expected);
    }
}
