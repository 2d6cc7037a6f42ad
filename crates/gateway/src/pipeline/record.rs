//! Record: no call is answered before its outcome, whatever it is, is in the store.

use std::time::Duration;

use ::touch::targets::Touches;
use domain::policy::{Audience, Permit};
use domain::tool::Class;
use domain::{Code, Refusal};
use provider::{Call, CallContext, CallOutcome, Declared, ProviderError, RecordState};
use store::{
    CallEnd, CallStart, Commit, Entry, Payload, RecordKind, RecordStatus, Safety, Store, StoreError,
};
use tokio::time::Instant;

use super::facts::Snapshot;
use super::{forward, statement, touch};
use crate::GateSettings;
use crate::links::FollowedTouches;
use crate::payload::{self, CallArguments};
use crate::span::CallSpan;

/// The warning of a result that programs may read differently.
const DUPLICATE_MEMBERS: &str = "the result names a member twice: programs may read it differently";

/// A call and its recording context.
#[derive(Clone, Copy)]
pub(super) struct RecordContext<'a> {
    pub(super) store: &'a Store,
    pub(super) call: &'a Call,
    pub(super) ctx: &'a CallContext,
    pub(super) snapshot: &'a Snapshot,
    pub(super) arguments: &'a CallArguments<'a>,
    /// Remarks on the names of its resources, for the record.
    pub(super) warnings: &'a [String],
}

/// A call whose start is recorded and whose end must be.
pub(super) struct Record<'a> {
    context: RecordContext<'a>,
    class: Class,
    started: Instant,
}

impl<'a> Record<'a> {
    /// Opens the record of a call, if the ledger can take it.
    pub(super) fn open(
        context: RecordContext<'a>,
        allowed: &Permit,
    ) -> Result<Record<'a>, StoreError> {
        context.store.admits(allowed.effective)?;
        Ok(Record { context, class: allowed.effective, started: Instant::now() })
    }

    /// Records the start of the call, under the names that its end and its receipt have too. A call
    /// that changes things waits until this is committed; a read need not wait for its start, only
    /// for its end.
    pub(super) async fn start(
        &self,
        allowed: &Permit,
        touches: FollowedTouches,
    ) -> Result<(), StoreError> {
        let FollowedTouches { given, real } = touches;
        let started = statement::started(self.context, Some(allowed), given);
        let mut held = HeldStart { context: self.context, started: Some(Box::new(started)) };
        if let Some(real) = real
            && let Some(real) = real.known().await
        {
            held.rename(real);
        }
        let committed = held.append();
        match self.class {
            Class::Read => drop(committed),
            Class::Write | Class::Destructive => {
                if let Some(committed) = committed {
                    committed.await?;
                }
            }
        }
        warn_of_mismatch(self.context.call, allowed);
        Ok(())
    }

    /// Records the end of a call. The outcome leaves the gate only after this; if it cannot be
    /// stored, it does not leave.
    pub(super) async fn end(self, outcome: CallOutcome, span: &mut CallSpan) -> CallOutcome {
        let RecordContext { store, call, snapshot, .. } = self.context;
        let duration = self.started.elapsed();
        let mut ended = ended(call, snapshot.settings(), &outcome, duration).await;
        ended.touches = touch::opened(call, snapshot, &outcome);
        tell(self.context, &ended, span);
        let (metrics, server) = (snapshot.metrics(), snapshot.server(call));
        metrics.ended(server, self.class, ended.status, duration);
        let ended = Entry::Ended(Box::new(ended)).redacted(&snapshot.settings().redactor);
        let outcome = match store.append(ended).await {
            Ok(safe) => with_safety(outcome, safe),
            Err(error) => {
                let what = "the call was made and its outcome is withheld";
                CallOutcome::Refused(unavailable(what, &error).with(forward::sent(self.class)))
            }
        };
        if let Some(refusal) = refusal_of(&outcome) {
            metrics.answered(refusal.code);
        }
        outcome
    }
}

/// The start of a call whose real names are awaited. If the call is abandoned meanwhile, it is
/// recorded under the names that it gave.
struct HeldStart<'a> {
    context: RecordContext<'a>,
    started: Option<Box<CallStart>>,
}

impl HeldStart<'_> {
    fn rename(&mut self, touches: Touches) {
        if let Some(started) = &mut self.started {
            started.touches = touches;
        }
    }

    fn append(&mut self) -> Option<Commit> {
        let RecordContext { store, snapshot, .. } = self.context;
        let entry = Entry::Started(self.started.take()?);
        Some(store.append(entry.redacted(&snapshot.settings().redactor)))
    }
}

impl Drop for HeldStart<'_> {
    fn drop(&mut self) {
        drop(self.append());
    }
}

/// Logs that the call is made although it contradicts the tool's annotations.
fn warn_of_mismatch(call: &Call, allowed: &Permit) {
    let Declared::Variant(variant, _) = &call.declared else { return };
    for warning in allowed.warnings.iter().filter(|warning| warning.audience == Audience::Caller) {
        tracing::warn!(
            tool = %call.tool,
            variant = variant.variant(),
            caller = %call.caller.token,
            warning = warning.text,
            "call allowed against the tool's annotations"
        );
    }
}

/// The outcome when the ledger cannot store the call's start, so that the call is not made.
pub(super) fn unmade(
    context: RecordContext<'_>,
    error: &StoreError,
    span: &mut CallSpan,
) -> CallOutcome {
    let refusal = not_made(error);
    count_refusal(context.call, context.snapshot, &refusal);
    let told = CallSummary {
        status: RecordStatus::Blocked,
        code: Some(refusal.code.as_str()),
        duration: Duration::ZERO,
    };
    told.tell(context, span);
    CallOutcome::Refused(refusal)
}

/// Records a refused call, with a receipt: of a tool that the caller cannot see it says the same as
/// of one that does not exist.
pub(super) async fn refusal(
    context: RecordContext<'_>,
    refusal: Refusal,
    touches: Touches,
    span: &mut CallSpan,
) -> CallOutcome {
    let RecordContext { store, call, snapshot, .. } = context;
    let mut started = statement::started(context, None, touches);
    started.kind = RecordKind::PolicyDecision;
    let outcome = CallOutcome::Refused(refusal);
    let mut ended = ended(call, snapshot.settings(), &outcome, Duration::ZERO).await;
    let (given, name) = (call.tool.to_string(), snapshot.writable_name(call).to_string());
    if let Some(message) = ended.error_message.as_mut().filter(|_| given != name) {
        *message = message.replace(&given, &name);
    }
    tell(context, &ended, span);
    let entry = Entry::Whole(Box::new(started), Box::new(ended));
    let entry = entry.redacted(&snapshot.settings().redactor);
    let outcome = match store.append(entry).await {
        // The very last calls arrive after the ledger has closed; none of them is made.
        Ok(_) | Err(StoreError::Closed) => outcome,
        Err(error) => CallOutcome::Refused(not_made(&error)),
    };
    if let Some(refusal) = refusal_of(&outcome) {
        count_refusal(call, snapshot, refusal);
    }
    outcome
}

fn count_refusal(call: &Call, snapshot: &Snapshot, refusal: &Refusal) {
    let class = statement::class_of_refused(call, snapshot.hints(call));
    snapshot.metrics().refused(snapshot.server(call), class);
    snapshot.metrics().answered(refusal.code);
}

fn refusal_of(outcome: &CallOutcome) -> Option<&Refusal> {
    match outcome {
        CallOutcome::Refused(refusal) | CallOutcome::Failed { refusal, .. } => Some(refusal),
        CallOutcome::Replied { .. } => None,
    }
}

async fn ended(
    call: &Call,
    settings: &GateSettings,
    outcome: &CallOutcome,
    duration: Duration,
) -> CallEnd {
    let mut warnings = Vec::new();
    let (status, refusal, response) = match outcome {
        CallOutcome::Replied { reply, .. } => {
            let response = payload::response(settings, &reply.result).await;
            if response.has_duplicates {
                warnings.push(DUPLICATE_MEMBERS.to_owned());
            }
            let status =
                if response.is_error { RecordStatus::Error } else { RecordStatus::Success };
            (status, None, response.payload)
        }
        CallOutcome::Refused(refusal) => (RecordStatus::Blocked, Some(refusal), Payload::default()),
        CallOutcome::Failed { refusal, error } => {
            (failed(refusal.code, error), Some(refusal), Payload::default())
        }
    };
    CallEnd {
        id: call.id.clone(),
        status,
        error_code: refusal.map(|refusal| refusal.code.as_str().into()),
        error_message: refusal.map(|refusal| refusal.message.clone()),
        duration,
        response,
        warnings,
        touches: Touches::default(),
    }
}

/// Returns the status of a call without a result.
fn failed(code: Code, error: &ProviderError) -> RecordStatus {
    match error {
        // The server has answered.
        ProviderError::Protocol(_) => RecordStatus::Error,
        error if error.is_sent() => RecordStatus::Unknown,
        _ if code == Code::Cancelled => RecordStatus::Cancelled,
        _ => RecordStatus::Error,
    }
}

/// Marks an outcome whose record is still only in memory.
fn with_safety(outcome: CallOutcome, safe: Safety) -> CallOutcome {
    match (outcome, safe) {
        (CallOutcome::Replied { reply, warnings, .. }, Safety::Queued) => {
            CallOutcome::Replied { reply, warnings, kept: RecordState::Queued }
        }
        (outcome, Safety::Committed | Safety::Queued) => outcome,
    }
}

fn not_made(error: &StoreError) -> Refusal {
    unavailable("the call was not made", error).with_member("sent", false.into())
}

fn unavailable(what: &str, error: &StoreError) -> Refusal {
    Refusal::new(error.code(), format!("{what}: {error}"))
}

/// The end of a call as its log line and span show it, always without arguments.
struct CallSummary<'a> {
    status: RecordStatus,
    code: Option<&'a str>,
    duration: Duration,
}

fn tell(context: RecordContext<'_>, ended: &CallEnd, span: &mut CallSpan) {
    let code = ended.error_code.as_deref();
    CallSummary { status: ended.status, code, duration: ended.duration }.tell(context, span);
}

impl CallSummary<'_> {
    /// Logs one line per call.
    fn tell(&self, context: RecordContext<'_>, span: &mut CallSpan) {
        let RecordContext { call, ctx, snapshot, .. } = context;
        let source = snapshot.source(call);
        span.recorded(source.as_deref(), self.status, self.code, self.duration);
        tracing::info!(
            tool = %snapshot.writable_name(call),
            source = source.as_deref().unwrap_or("-"),
            caller = %call.caller.token,
            duration_ms = self.duration.as_secs_f64() * 1000.0,
            outcome = self.status.as_str(),
            error = self.code.unwrap_or("-"),
            trace_id = ctx.trace.trace_id().map(tracing::field::display),
            "tool call"
        );
    }
}
