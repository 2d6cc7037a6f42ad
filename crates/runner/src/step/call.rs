//! A call the workflow itself makes, through the step's gate like every other.

use std::sync::Arc;
use std::time::Duration;

use domain::json::Object;
use domain::method::Method;
use domain::tool::ToolName;
use provider::{Call, CallContext, Declared, ProviderError, Surface};
use serde_json::Value;

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
            provider::CallOutcome::Failed { error: ProviderError::Cancelled, .. } => {
                Err(Failure::cancelled())
            }
            provider::CallOutcome::Failed { error: ProviderError::Timeout, .. } => {
                Err(Failure::timed_out(within))
            }
            provider::CallOutcome::Refused(refusal)
            | provider::CallOutcome::Failed { refusal, .. } => {
                Err(Failure::new(refusal.code, refusal.message))
            }
        }
    }
}

/// Returns the complete text of a result.
pub(super) fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}
