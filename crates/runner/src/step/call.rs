//! A call the workflow itself makes, through the step's gate like every other.

use std::sync::Arc;
use std::time::Duration;

use domain::Refusal;
use domain::method::Method;
use domain::tool::{Class, ToolName};
use provider::{Call, CallContext, CallOutcome, Declared, ProviderError, Surface};
use serde_json::Value;
use text::json::Object;
use workflow::{Status, StepOutcome};

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
            CallOutcome::Replied { reply, .. } => {
                Ok(serde_json::from_str(reply.result.get()).unwrap_or_default())
            }
            CallOutcome::Failed { error: ProviderError::Cancelled { .. }, .. } => {
                Err(Failure::cancelled())
            }
            CallOutcome::Failed { refusal, error } => Err(failed(refusal, &error, within)),
            CallOutcome::Refused(refusal) => Err(refused(refusal)),
        }
    }
}

/// Returns the failure of a call without a result. One that may have changed something is not made
/// again.
fn failed(refusal: Refusal, error: &ProviderError, within: Duration) -> Failure {
    if !matches!(error, ProviderError::Timeout { .. }) {
        return refused(refusal);
    }
    let is_unclear = is_unclear(&refusal);
    let outcome = StepOutcome { is_unclear, ..StepOutcome::new(Status::TimedOut) };
    Failure::timed_out(within).with(outcome)
}

/// Returns the failure of a call that the gate refused or whose result it withholds.
fn refused(refusal: Refusal) -> Failure {
    let is_unclear = is_unclear(&refusal);
    let outcome = StepOutcome { is_unclear, ..StepOutcome::new(Status::Failure) };
    Failure::new(refusal.code, refusal.message).with(outcome)
}

/// Reports whether a call may have changed something.
fn is_unclear(refusal: &Refusal) -> bool {
    let details = &refusal.details;
    details["sent"] == true && details["effective_class"] != Class::Read.as_str()
}

/// Returns the complete text of a result.
pub(super) fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use domain::Code;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_call_that_may_have_changed_something_is_not_made_again() {
        let cases = [
            (json!({"sent": true, "effective_class": "write"}), true),
            (json!({"sent": true}), true),
            (json!({"sent": true, "effective_class": "read"}), false),
            (json!({"sent": false}), false),
            (json!({"server": "s"}), false),
        ];
        for (details, expected) in cases {
            let refusal = || Refusal::new(Code::LedgerUnavailable, "x").with(details.clone());
            let late = ProviderError::Timeout { sent: true };
            for failure in [refused(refusal()), failed(refusal(), &late, Duration::ZERO)] {
                assert_eq!(failure.outcome.is_unclear, expected, "{details}");
            }
        }
    }
}
