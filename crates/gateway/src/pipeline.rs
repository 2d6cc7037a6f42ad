//! The lifecycle of a call, on one screen. Every surface uses it; no phase can be skipped.

pub(crate) mod check;
mod facts;
mod forward;
pub mod intake;
pub(crate) mod payload;
pub(crate) mod question;
mod record;
mod statement;

use domain::policy::Verdict;
use domain::{Code, Refusal};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use provider::{Call, CallContext, CallOutcome, Gate};

use crate::Gateway;
use crate::fairness::{CallShare, Overuse};
use crate::pipeline::facts::Snapshot;
use crate::pipeline::record::{Record, RecordContext};
use crate::span::CallSpan;

impl Gate for Gateway {
    fn call<'a>(&'a self, call: Call, ctx: &'a CallContext) -> BoxFuture<'a, CallOutcome> {
        self.run(call, ctx).boxed()
    }
}

impl Gateway {
    async fn run(&self, call: Call, ctx: &CallContext) -> CallOutcome {
        let _in_flight = self.shared.calls.token();
        let mut span = CallSpan::start(self.tracer(), &call, &ctx.trace);
        let within = span.within(ctx);
        let outcome = self.make(&call, within.as_ref().unwrap_or(ctx), &mut span).await;
        span.end(&outcome);
        outcome
    }

    async fn make(&self, call: &Call, ctx: &CallContext, span: &mut CallSpan) -> CallOutcome {
        let share = match self.share(call) {
            Err(overuse) if !overuse.is_recorded => {
                self.metrics().answered(overuse.refusal.code);
                return CallOutcome::Refused(overuse.refusal);
            }
            share => share,
        };
        // The call keeps this snapshot to its end, whatever changes meanwhile.
        let snapshot = Snapshot::take(self, call, ctx).await;
        let context = RecordContext { store: &self.shared.store, call, ctx, snapshot: &snapshot };
        let verdict = if self.shared.draining.is_cancelled() {
            Verdict::Refuse(shutting_down())
        } else if let Err(overuse) = share {
            Verdict::Refuse(overuse.refusal)
        } else {
            snapshot.decide(&self.shared.checks, call, ctx).await
        };
        let allowed = match verdict {
            Verdict::Allow(allowed) => allowed,
            Verdict::Refuse(refusal) => return record::refusal(context, refusal, span).await,
        };
        let record = match Record::start(context, &allowed).await {
            Ok(record) => record,
            Err(error) => return record::unmade(context, &error, span),
        };
        let outcome = match self.shared.registry.provider(&call.tool.server) {
            Some(lease) => forward::forward(&*lease.provider, call, ctx, allowed).await,
            None => forward::gone(call),
        };
        let is_ending = self.shared.draining.is_cancelled();
        let outcome = if is_ending { forward::cut_off(call, outcome) } else { outcome };
        record.end(outcome, span).await
    }

    /// Takes the call's share of what all callers use.
    fn share(&self, call: &Call) -> Result<CallShare<'_>, Overuse> {
        let token = &call.caller.token;
        match self.shared.store.share_excess(token) {
            Some(excess) => Err(self.shared.shares.refuse_records(token, excess)),
            None => self.shared.shares.enter(token, call.arguments.text().get().len()),
        }
    }
}

fn shutting_down() -> Refusal {
    Refusal::new(Code::ShuttingDown, "the gate is shutting down and accepts no new calls")
}
