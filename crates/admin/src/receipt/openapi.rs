//! What `/receipts`, `/chains` and `/keys` answer, in OpenAPI's words.

use axum::http::StatusCode;
use domain::Code;
use receipt::RiskLevel;

use super::STATUSES;
use crate::activity::openapi::{page_of, paged, within};
use crate::openapi::operation::Operation;
use crate::openapi::schema::{
    Schema, WithMembers, any_object, count, digest, flag, list_of, moment, object, one_of, or_null,
    part, text,
};

pub(crate) fn list() -> Operation {
    let operation = Operation::new("Receipts, newest first")
        .query("chain", "Of this chain.", text())
        .query("action_type", "Of this kind of action.", text())
        .query("status", "With this outcome.", one_of(STATUSES));
    paged(within(operation)).gives("A page of them", page_of("receipts", part("ReceiptEntry")))
}

pub(crate) fn show() -> Operation {
    Operation::new("One receipt, byte for byte as it was signed")
        .path("id", "Of the receipt, with or without `urn:receipt:`.")
        .gives("The receipt", part("Receipt"))
        .refuses(&[Code::NotFound, Code::LedgerUnavailable])
}

pub(crate) fn export() -> Operation {
    Operation::new("Receipts as JSON lines, chain after chain, the oldest first")
        .query("chain", "Of this chain alone.", text())
        .answers(StatusCode::OK, "All of them", &["application/jsonl"], text())
        .refuses(&[Code::NotFound, Code::LedgerUnavailable])
}

pub(crate) fn chains() -> Operation {
    Operation::new("The chains, newest first")
        .gives("All of them", object().has("chains", list_of(part("Chain"))))
        .refuses(&[Code::LedgerUnavailable])
}

pub(crate) fn verify() -> Operation {
    Operation::new("Whether a chain is whole, receipt by receipt")
        .path("id", "Of the chain.")
        .gives("What was found", part("ChainCheck"))
        .refuses(&[Code::NotFound, Code::LedgerUnavailable])
}

pub(crate) fn verify_all() -> Operation {
    let found = object()
        .has("valid", flag())
        .has("receipts", count())
        .has("chains", list_of(part("ChainCheck")));
    Operation::new("Whether every chain is whole, and none is missing that another names")
        .gives("What was found", found)
        .refuses(&[Code::LedgerUnavailable])
}

pub(crate) fn keys() -> Operation {
    Operation::new("The public keys, the one that signs now first")
        .gives("All of them", object().has("keys", list_of(part("Key"))))
        .refuses(&[Code::LedgerUnavailable])
}

pub(crate) fn rotate() -> Operation {
    Operation::new("Has another key sign from here on")
        .gives("The new key", part("Key"))
        .refuses(&[Code::LedgerUnavailable])
}

pub(crate) fn entry() -> Schema {
    object()
        .has("id", text())
        .has("chain_id", text())
        .has("sequence", count())
        .has("action_type", text())
        .has("tool_name", text())
        .has("risk_level", one_of(RiskLevel::ALL.map(RiskLevel::as_str)))
        .has("status", one_of(STATUSES))
        .has("timestamp", moment())
        .has("hash", digest())
        .has("previous_hash", or_null(digest()))
        .into()
}

/// The credential itself is a published form of its own.
pub(crate) fn receipt() -> Schema {
    let subject = any_object()
        .has("principal", any_object())
        .has("action", any_object())
        .has("outcome", any_object())
        .has("chain", any_object());
    any_object()
        .has("id", text())
        .has("type", list_of(text()))
        .has("version", text())
        .has("issuer", any_object())
        .has("issuanceDate", moment())
        .has("credentialSubject", subject)
        .has("proof", any_object())
        .into()
}

pub(crate) fn chain() -> Schema {
    let status = one_of(["open", "complete", "interrupted", "expired"]);
    object()
        .has("id", text())
        .has("status", or_null(status))
        .has("opened_at", or_null(moment()))
        .has("pid", or_null(count()))
        .has("key", or_null(digest()))
        .has("length", count())
        .has("last_hash", or_null(digest()))
        .has("first", or_null(moment()))
        .has("last", or_null(moment()))
        .has("preceding", or_null(text()))
        .into()
}

pub(crate) fn chain_check() -> Schema {
    let receipt = object()
        .has("index", count())
        .has("receipt_id", text())
        .has("signature_valid", flag())
        .has("hash_link_valid", flag())
        .has("sequence_valid", flag());
    object()
        .has("chain_id", text())
        .has("valid", flag())
        .has("length", count())
        .has("status", one_of(["complete", "interrupted", "unknown"]))
        .has("broken_at", or_null(count()))
        .has("receipt_id", or_null(text()))
        .has("error", or_null(text()))
        .may("receipts", list_of(receipt))
        .into()
}

pub(crate) fn key() -> Schema {
    object()
        .has("fingerprint", digest())
        .has("did", text().pattern(Some("^did:key:z")))
        .has("pem", text())
        .has("current", flag())
        .into()
}
