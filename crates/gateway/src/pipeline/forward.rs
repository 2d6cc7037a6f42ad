//! Forward: sends the allowed call to its provider and classifies the response.

use domain::policy::{Audience, Permit, unavailable_server};
use domain::{Code, Refusal};
use provider::{Call, CallContext, CallOutcome, ProviderError, RecordState, ToolProvider};
use serde_json::json;

pub(super) async fn forward(
    provider: &dyn ToolProvider,
    call: &Call,
    ctx: &CallContext,
    allowed: &Permit,
) -> CallOutcome {
    let timeout = ctx.remaining();
    match provider.call(call, ctx).await {
        Ok(reply) => {
            let for_caller =
                |warning: &domain::policy::Notice| warning.audience == Audience::Caller;
            let warnings = allowed.warnings.iter().filter(|warning| for_caller(warning));
            let warnings = warnings.map(|warning| warning.text.clone()).collect();
            CallOutcome::Replied { reply, warnings, kept: RecordState::Committed }
        }
        Err(error) => {
            let refusal = match &error {
                ProviderError::Unavailable(reason) => unavailable_server(&call.tool.server, reason),
                ProviderError::Timeout => Refusal::new(
                    Code::Timeout,
                    format!(
                        "'{}' did not answer within {:.1} s; the call may have taken effect",
                        call.tool,
                        timeout.as_secs_f32()
                    ),
                )
                .with(json!({"timeout_ms": timeout.as_millis()})),
                ProviderError::Cancelled => Refusal::new(
                    Code::Cancelled,
                    format!("the call to '{}' was cancelled", call.tool),
                ),
                ProviderError::TooLarge => Refusal::new(
                    Code::ResponseTooLarge,
                    format!(
                        "'{}' answered with more than {} MiB, which is not passed on; the call may \
                         have taken effect",
                        call.tool,
                        mcp::limits::FRAME_BYTES_MAX >> 20
                    ),
                )
                .with(json!({"bytes_max": mcp::limits::FRAME_BYTES_MAX})),
                ProviderError::Protocol(fault) => Refusal::new(
                    Code::UpstreamError,
                    format!("'{}' returned an error: {}", call.tool, fault.message),
                )
                .with(json!({"server": call.tool.server, "error": fault.text()})),
            };
            CallOutcome::Failed { refusal, error }
        }
    }
}

/// Names the end of the gate as the reason for a connection that it closed during the call.
pub(super) fn cut_off(call: &Call, outcome: CallOutcome) -> CallOutcome {
    match outcome {
        CallOutcome::Failed { error: error @ ProviderError::Unavailable(_), .. } => {
            let message = format!(
                "the call to '{}' ended because the gate is shutting down; it may have taken effect",
                call.tool
            );
            CallOutcome::Failed { refusal: Refusal::new(Code::Cancelled, message), error }
        }
        outcome => outcome,
    }
}

/// The outcome if the server was removed between the decision and now.
pub(super) fn gone(call: &Call) -> CallOutcome {
    let reason = "it was removed".to_owned();
    CallOutcome::Failed {
        refusal: unavailable_server(&call.tool.server, &reason),
        error: ProviderError::Unavailable(reason),
    }
}
