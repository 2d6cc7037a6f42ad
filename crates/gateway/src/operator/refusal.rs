//! Refusals of decisions.

use domain::{Code, Refusal};
use store::StoreError;

pub(super) fn conflict(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::Conflict, message)
}

pub(super) fn changed(what: &str) -> Refusal {
    let message = format!("{what} has changed since it was reviewed: nothing was approved");
    Refusal::new(Code::ReviewChanged, message)
}

pub(super) fn unavailable(error: &StoreError) -> Refusal {
    Refusal::new(error.code(), error.to_string())
}
