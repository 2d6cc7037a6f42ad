//! Decisions that people make through the API: the recorded source, and completion once started.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use domain::{Code, Refusal};
use gateway::operator::DecisionSource;
use mcp::task;

use crate::SOURCE_HEADER;
use crate::answer::{Refused, RequestId};

/// The sender of the request, as recorded with the decision.
pub(crate) struct Decider(pub(crate) DecisionSource);

impl<S: Send + Sync> FromRequestParts<S> for Decider {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refused> {
        let is_cli = parts.headers.get(&SOURCE_HEADER).is_some_and(|source| source == "cli");
        let request_id = parts.extensions.get::<RequestId>().map(|id| id.0.clone());
        Ok(Decider(DecisionSource { source: if is_cli { "cli" } else { "api" }, request_id }))
    }
}

/// Runs a decision to its end even if the client disconnects: a recorded decision must also take
/// effect.
pub(crate) async fn carry_out<T: Send + 'static>(
    work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) -> Result<T, Refused> {
    let done = task::spawn(work).await.map_err(|_| {
        Refusal::new(
            Code::ShuttingDown,
            "the gate is shutting down; check whether the change took effect",
        )
    })?;
    Ok(done?)
}
