//! The life of a call, on one screen. Every surface comes through here; no phase can be skipped.

mod facts;
mod forward;
pub mod intake;
pub(crate) mod payload;
mod record;
mod statement;

use domain::policy::{self, Verdict};
use domain::{Code, Refusal};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use provider::{Call, CallContext, Gate, Outcome};

use crate::Gateway;
use crate::pipeline::facts::Snapshot;
use crate::pipeline::record::Record;

impl Gate for Gateway {
    fn call<'a>(&'a self, call: Call, ctx: &'a CallContext) -> BoxFuture<'a, Outcome> {
        self.run(call, ctx).boxed()
    }
}

impl Gateway {
    async fn run(&self, call: Call, ctx: &CallContext) -> Outcome {
        let _in_flight = self.shared.calls.token();
        let store = &self.shared.store;
        // What the call began with is what it ends with, whatever changes meanwhile.
        let snapshot = Snapshot::take(self, &call, ctx).await;
        let verdict = match self.shared.draining.is_cancelled() {
            true => Verdict::Refuse(shutting_down()),
            false => snapshot.decide(&call),
        };
        let allowed = match verdict {
            Verdict::Allow(allowed) => allowed,
            Verdict::Refuse(refusal) => {
                return record::refusal(store, &call, ctx, &snapshot, refusal).await;
            }
        };
        let record = match Record::start(store, &call, ctx, (&snapshot, &allowed)).await {
            Ok(record) => record,
            Err(refusal) => return Outcome::Refused(refusal),
        };
        let outcome = match self.shared.registry.provider(&call.tool.server) {
            Some(in_use) => forward::forward(&*in_use.provider, &call, ctx, allowed).await,
            None => forward::gone(&call),
        };
        record.end(outcome).await
    }
}

fn shutting_down() -> Refusal {
    Refusal::new(Code::ShuttingDown, "the gate is shutting down and takes no new calls")
}

impl Snapshot {
    fn decide(&self, call: &Call) -> Verdict {
        policy::decide(&facts::asked(call), &self.facts(call))
    }
}
