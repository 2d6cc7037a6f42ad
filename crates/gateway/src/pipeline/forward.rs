//! Forward: sends the allowed call to its provider and classifies the response.

use std::time::Duration;

use domain::policy::{Audience, Permit, unavailable_server};
use domain::tool::Class;
use domain::{Code, Refusal, ToolName};
use provider::{Call, CallContext, CallOutcome, ProviderError, RecordState, ToolProvider};
use serde_json::{Value, json};

pub(super) async fn forward(
    provider: &dyn ToolProvider,
    call: &Call,
    ctx: &CallContext,
    allowed: &Permit,
) -> CallOutcome {
    let within = ctx.remaining();
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
    let unanswered = Unanswered { tool: &call.tool, effective: allowed.effective, within };
    CallOutcome::Failed { refusal: unanswered.refusal(&error), error }
}

/// A request that has no result.
pub(crate) struct Unanswered<'a> {
    /// The tool, or for another method than `tools/call` the method itself.
    pub(crate) tool: &'a ToolName,
    pub(crate) effective: Class,
    /// The time that it had.
    pub(crate) within: Duration,
}

impl Unanswered<'_> {
    /// Returns the words for the caller, which say whether the request may have taken effect.
    pub(crate) fn refusal(&self, error: &ProviderError) -> Refusal {
        let Unanswered { tool, effective, within } = self;
        let seconds = within.as_secs_f32();
        let consequence = consequence(*effective);
        match error {
            ProviderError::Unavailable(reason) => unavailable_server(&tool.server, reason),
            ProviderError::Lost(reason) => Refusal::new(
                Code::OutcomeUnknown,
                format!(
                    "the call to '{tool}' was sent, but its answer was lost ({reason}); \
                     {consequence}"
                ),
            )
            .with(sent(*effective))
            .with_member("reason", json!(reason))
            .with_member("server", json!(tool.server)),
            ProviderError::Timeout { sent: true } => Refusal::new(
                Code::Timeout,
                format!("'{tool}' did not answer within {seconds:.1} s; {consequence}"),
            )
            .with(sent(*effective))
            .with_member("timeout_ms", json!(within.as_millis())),
            ProviderError::Timeout { sent: false } => Refusal::new(
                Code::Timeout,
                format!("'{tool}' did not take the call within {seconds:.1} s; nothing was done"),
            )
            .with(json!({"timeout_ms": within.as_millis(), "sent": false})),
            ProviderError::Cancelled { sent: true } => {
                let words = format!("was cancelled after it was sent; {consequence}");
                cancelled(tool, &words).with(sent(*effective))
            }
            ProviderError::Cancelled { sent: false } => {
                cancelled(tool, "was cancelled before it was sent").with(json!({"sent": false}))
            }
            ProviderError::TooLarge => Refusal::new(
                Code::ResponseTooLarge,
                format!(
                    "'{tool}' answered with more than {} MiB, which is not passed on; \
                     {consequence}",
                    mcp::limits::FRAME_BYTES_MAX >> 20
                ),
            )
            .with(sent(*effective))
            .with_member("bytes_max", json!(mcp::limits::FRAME_BYTES_MAX)),
            ProviderError::Protocol(fault) => Refusal::new(
                Code::UpstreamError,
                format!("'{tool}' returned an error: {}", fault.message),
            )
            .with(json!({"server": tool.server, "error": fault.text()})),
        }
    }
}

/// Returns the details of a call that may have taken effect.
pub(super) fn sent(effective: Class) -> Value {
    json!({"sent": true, "effective_class": effective.as_str()})
}

/// Says what a call may have done whose outcome is not known, and what to do next.
fn consequence(effective: Class) -> &'static str {
    match effective {
        Class::Read => "the tool only reads, so it is safe to call it again",
        Class::Write | Class::Destructive => {
            "the call may have taken effect: check whether it did before you call it again, unless \
             the tool is idempotent"
        }
    }
}

fn cancelled(tool: &ToolName, words: &str) -> Refusal {
    Refusal::new(Code::Cancelled, format!("the call to '{tool}' {words}"))
}

/// Names the end of the gate as the reason for a connection that it closed during the call.
pub(super) fn cut_off(call: &Call, outcome: CallOutcome, allowed: &Permit) -> CallOutcome {
    let why = "ended because the gate is shutting down";
    let (error, refusal) = match outcome {
        CallOutcome::Failed { error: error @ ProviderError::Lost(_), .. } => {
            let words = format!("{why}; {}", consequence(allowed.effective));
            (error, cancelled(&call.tool, &words).with(sent(allowed.effective)))
        }
        CallOutcome::Failed { error: error @ ProviderError::Unavailable(_), .. } => {
            let words = format!("{why}; it was not sent");
            (error, cancelled(&call.tool, &words).with(json!({"sent": false})))
        }
        outcome => return outcome,
    };
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
