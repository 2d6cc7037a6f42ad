//! Forward: sends the allowed call to its provider and classifies the response.

use domain::policy::{Audience, Permit, unavailable_server};
use domain::tool::Class;
use domain::{Code, Refusal};
use provider::{Call, CallContext, CallOutcome, ProviderError, RecordState, ToolProvider};
use serde::Serialize;
use serde_json::{Value, json};

pub(super) async fn forward(
    provider: &dyn ToolProvider,
    call: &Call,
    ctx: &CallContext,
    allowed: &Permit,
) -> CallOutcome {
    let timeout = ctx.remaining();
    let error = match provider.call(call, ctx).await {
        Ok(reply) if reply.result.get().starts_with('{') => {
            let for_caller =
                |warning: &domain::policy::Notice| warning.audience == Audience::Caller;
            let warnings = allowed.warnings.iter().filter(|warning| for_caller(warning));
            let warnings = warnings.map(|warning| warning.text.clone()).collect();
            return CallOutcome::Replied { reply, warnings, kept: RecordState::Committed };
        }
        Ok(_) => ProviderError::Lost("its result is not an object".to_owned()),
        Err(error) => error,
    };
    let refusal = match &error {
        ProviderError::Unavailable(reason) => unavailable_server(&call.tool.server, reason),
        ProviderError::Lost(reason) => lost(call, allowed, reason),
        ProviderError::Timeout { sent: true } => Refusal::new(
            Code::Timeout,
            format!(
                "'{}' did not answer within {:.1} s; {}",
                call.tool,
                timeout.as_secs_f32(),
                consequence(allowed)
            ),
        )
        .with(sent(allowed, "timeout_ms", timeout.as_millis())),
        ProviderError::Timeout { sent: false } => Refusal::new(
            Code::Timeout,
            format!(
                "'{}' did not take the call within {:.1} s; nothing was done",
                call.tool,
                timeout.as_secs_f32()
            ),
        )
        .with(json!({"timeout_ms": timeout.as_millis(), "sent": false})),
        ProviderError::Cancelled { sent } => cancelled(call, *sent),
        ProviderError::TooLarge => Refusal::new(
            Code::ResponseTooLarge,
            format!(
                "'{}' answered with more than {} MiB, which is not passed on; {}",
                call.tool,
                mcp::limits::FRAME_BYTES_MAX >> 20,
                consequence(allowed)
            ),
        )
        .with(sent(allowed, "bytes_max", mcp::limits::FRAME_BYTES_MAX)),
        ProviderError::Protocol(fault) => Refusal::new(
            Code::UpstreamError,
            format!("'{}' returned an error: {}", call.tool, fault.message),
        )
        .with(json!({"server": call.tool.server, "error": fault.text()})),
    };
    CallOutcome::Failed { refusal, error }
}

/// Says that a call reached its server and that its outcome is not known.
fn lost(call: &Call, allowed: &Permit, reason: &str) -> Refusal {
    let message = format!(
        "the call to '{}' was sent, but its answer was lost ({reason}); {}",
        call.tool,
        consequence(allowed)
    );
    let refusal = Refusal::new(Code::OutcomeUnknown, message);
    refusal.with(sent(allowed, "reason", reason)).with_member("server", json!(call.tool.server))
}

/// Returns the details of a call that may have taken effect.
fn sent(allowed: &Permit, name: &str, value: impl Serialize) -> Value {
    json!({name: value, "sent": true, "effective_class": allowed.effective.as_str()})
}

/// Says what a call may have done whose outcome is not known, and what to do next.
fn consequence(allowed: &Permit) -> &'static str {
    match allowed.effective {
        Class::Read => "the tool only reads, so it is safe to call it again",
        Class::Write | Class::Destructive => {
            "the call may have taken effect: check whether it did before you call it again"
        }
    }
}

fn cancelled(call: &Call, sent: bool) -> Refusal {
    let words = if sent {
        "was cancelled after it was sent; it may have taken effect"
    } else {
        "was cancelled before it was sent"
    };
    Refusal::new(Code::Cancelled, format!("the call to '{}' {words}", call.tool))
        .with(json!({"sent": sent}))
}

/// Names the end of the gate as the reason for a connection that it closed during the call.
pub(super) fn cut_off(call: &Call, outcome: CallOutcome) -> CallOutcome {
    let (error, sent) = match outcome {
        CallOutcome::Failed { error: error @ ProviderError::Lost(_), .. } => (error, true),
        CallOutcome::Failed { error: error @ ProviderError::Unavailable(_), .. } => (error, false),
        outcome => return outcome,
    };
    let words = if sent { "it may have taken effect" } else { "it was not sent" };
    let message =
        format!("the call to '{}' ended because the gate is shutting down; {words}", call.tool);
    let refusal = Refusal::new(Code::Cancelled, message).with(json!({"sent": sent}));
    CallOutcome::Failed { refusal, error }
}

/// The outcome if the server was removed between the decision and now.
pub(super) fn gone(call: &Call) -> CallOutcome {
    let reason = "it was removed".to_owned();
    CallOutcome::Failed {
        refusal: unavailable_server(&call.tool.server, &reason),
        error: ProviderError::Unavailable(reason),
    }
}
