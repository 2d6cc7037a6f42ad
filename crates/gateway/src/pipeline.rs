//! The lifecycle of a call, on one screen. Every surface uses it; no phase can be skipped.

pub(crate) mod check;
mod facts;
pub(crate) mod forward;
pub mod intake;
mod record;
mod statement;
pub(crate) mod touch;

use domain::policy::{Permit, Verdict};
use domain::tool::Class;
use domain::{Code, Refusal, ToolName};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join};
use provider::{Call, CallContext, CallOutcome, Gate};

use crate::Gateway;
use crate::fairness::{CallShare, Overuse};
use crate::links::FollowedTouches;
use crate::payload::CallArguments;
use crate::pipeline::facts::Snapshot;
use crate::pipeline::record::{Record, RecordContext};
use crate::pipeline::touch::NamedTouches;
use crate::span::CallSpan;

impl Gate for Gateway {
    fn call<'a>(&'a self, call: Call, ctx: &'a CallContext) -> BoxFuture<'a, CallOutcome> {
        self.run(call, ctx).boxed()
    }
}

impl Gateway {
    async fn run(&self, call: Call, ctx: &CallContext) -> CallOutcome {
        let _in_flight = self.shared.calls.token();
        let name = || self.writable_name(&call);
        let mut span = CallSpan::start(self.tracer(), &call, name, &ctx.trace);
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
        let arguments = &CallArguments::of(snapshot.settings(), &call.arguments);
        let named = touch::named(call, &snapshot, arguments.redacted());
        let NamedTouches { touches, warnings } = named;
        // Links are followed meanwhile, once for all records of the call.
        let touches = self.shared.links.follow(touches);
        let (store, snapshot) = (&self.shared.store, &snapshot);
        let warnings = &warnings;
        let context = RecordContext { store, call, ctx, snapshot, arguments, warnings };
        let verdict = if self.shared.draining.is_cancelled() {
            Verdict::Refuse(shutting_down())
        } else if let Err(overuse) = share {
            Verdict::Refuse(overuse.refusal)
        } else {
            snapshot.decide(&self.shared.checks, call, ctx).await
        };
        match verdict {
            Verdict::Allow(allowed) => self.perform(context, &allowed, touches, span).await,
            Verdict::Refuse(refusal) => {
                record::refusal(context, refusal, touches.known().await, span).await
            }
        }
    }

    async fn perform(
        &self,
        context: RecordContext<'_>,
        allowed: &Permit,
        touches: FollowedTouches,
        span: &mut CallSpan,
    ) -> CallOutcome {
        let RecordContext { call, ctx, .. } = context;
        let record = match Record::open(context, allowed) {
            Ok(record) => record,
            Err(error) => return record::unmade(context, &error, span),
        };
        let start = record.start(allowed, touches);
        let forwarding = async {
            match self.shared.registry.provider(&call.tool.server) {
                Some(lease) => forward::forward(&*lease.provider, call, ctx, allowed).await,
                None => forward::gone(call),
            }
        };
        let (started, outcome) = match allowed.effective {
            // The start of a read need not be committed, so that nothing waits for its links.
            Class::Read => join(start, forwarding).await,
            Class::Write | Class::Destructive => match start.await {
                Ok(()) => (Ok(()), forwarding.await),
                Err(error) => return record::unmade(context, &error, span),
            },
        };
        debug_assert!(started.is_ok(), "the commit of a read's start is not awaited");
        let is_ending = self.shared.draining.is_cancelled();
        let outcome = if is_ending { forward::cut_off(call, outcome, allowed) } else { outcome };
        record.end(outcome, span).await
    }

    /// Returns the tool's name as a span may have it.
    fn writable_name(&self, call: &Call) -> ToolName {
        let catalog = self.catalog_of(call.session.as_deref());
        statement::name(&self.settings().redactor, &catalog, call)
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
