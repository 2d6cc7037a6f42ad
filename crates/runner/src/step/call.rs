//! A call the workflow itself makes, through the step's gate like every other.

use std::sync::Arc;
use std::time::Duration;

use domain::Refusal;
use domain::json::Object;
use domain::method::Method;
use domain::tool::{Class, ToolName};
use provider::{Call, CallContext, Declared, ProviderError, Surface};
use serde_json::Value;
use workflow::StepOutcome;

use crate::gate::StepGate;
use crate::step::attempt::{Failure, Work};

impl Work<'_> {
    /// Makes the call and returns its result object, error or not.
    pub(super) async fn call(
        &mut self,
        gate: &dyn StepGate,
        tool: ToolName,
        arguments: &Value,
        within: Duration,
    ) -> Result<Value, Failure> {
        let arguments = Object::parse(&arguments.to_string()).ok().flatten();
        let session: Arc<str> = uuid::Uuid::now_v7().to_string().into();
        self.calls_in(&session);
        let call = Call {
            id: uuid::Uuid::now_v7().to_string(),
            caller: gate.caller(),
            client: None,
            session: Some(session),
            request_id: None,
            surface: Surface::Run,
            method: Method::ToolCall,
            tool,
            arguments: arguments.unwrap_or_else(Object::empty),
            declared: Declared::Nothing,
            other: Vec::new(),
        };
        let ctx = CallContext {
            cancel: self.attempt.cancel.clone(),
            trace: self.trace.clone(),
            ..CallContext::within(within)
        };
        match gate.gate().call(call, &ctx).await {
            provider::CallOutcome::Replied { reply, .. } => {
                Ok(serde_json::from_str(reply.result.get()).unwrap_or_default())
            }
            provider::CallOutcome::Failed { error: ProviderError::Cancelled { .. }, .. } => {
                Err(Failure::cancelled())
            }
            provider::CallOutcome::Failed { refusal, error } => {
                Err(failed(refusal, &error, within))
            }
            provider::CallOutcome::Refused(refusal) => {
                Err(Failure::new(refusal.code, refusal.message))
            }
        }
    }
}

/// Returns the failure of a call without a result. One that may have changed something is not made
/// again.
fn failed(refusal: Refusal, error: &ProviderError, within: Duration) -> Failure {
    let failure = match error {
        ProviderError::Timeout { .. } => Failure::timed_out(within),
        _ => Failure::new(refusal.code, refusal.message),
    };
    let is_answered = matches!(error, ProviderError::Protocol(_));
    let only_reads = refusal.details["effective_class"] == Class::Read.as_str();
    let is_unclear = error.is_sent() && !is_answered && !only_reads;
    let outcome = StepOutcome { is_unclear, ..(*failure.outcome).clone() };
    failure.with(outcome)
}

/// Returns the complete text of a result.
pub(super) fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}
