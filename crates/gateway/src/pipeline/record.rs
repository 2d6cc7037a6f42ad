//! Record: no call is answered before the store has it, whatever became of it.

use std::time::Duration;

use domain::policy::Allowed;
use domain::tool::Class;
use domain::{Code, Refusal};
use provider::{Call, CallContext, Kept, Outcome};
use store::{Ended, Entry, Kind, Payload, Receipted, Safe, Status, Store, StoreError};
use tokio::time::Instant;

use super::facts::Snapshot;
use super::payload;
use super::statement;
use crate::Settings;

/// A call that has been started and must be ended.
pub(super) struct Record<'a> {
    store: &'a Store,
    call: &'a Call,
    snapshot: &'a Snapshot,
    class: Class,
    started: Instant,
}

impl<'a> Record<'a> {
    /// A call that changes things may go on once this is done; one that reads need not wait for
    /// its start to be safe, only for its end.
    pub(super) async fn start(
        store: &'a Store,
        call: &'a Call,
        ctx: &CallContext,
        (snapshot, allowed): (&'a Snapshot, &Allowed),
    ) -> Result<Record<'a>, Refusal> {
        let unmade = |error: StoreError| {
            let refusal = unavailable("the call was not made", &error);
            count_refusal(call, snapshot, &refusal);
            refusal
        };
        store.admits(allowed.effective).map_err(unmade)?;
        let started = statement::started(call, ctx, snapshot, Some(allowed));
        let committed = store.append(Entry::Started(Box::new(started)));
        let started = Instant::now();
        match allowed.effective {
            Class::Read => drop(committed),
            Class::Write | Class::Destructive => {
                committed.await.map_err(unmade)?;
            }
        }
        Ok(Record { store, call, snapshot, class: allowed.effective, started })
    }

    /// The outcome may leave the gate only after this; if it cannot be kept, it does not leave.
    pub(super) async fn end(self, outcome: Outcome) -> Outcome {
        let duration = self.started.elapsed();
        let settings = self.snapshot.settings();
        let ended = ended(self.call, settings, &outcome, duration).await;
        log_line(self.call, self.snapshot.source(self.call).as_deref(), &ended);
        let (metrics, server) = (self.snapshot.metrics(), self.snapshot.server(self.call));
        metrics.ended(server, self.class, ended.status, duration);
        let outcome = match self.store.append(Entry::Ended(Box::new(ended))).await {
            Ok(safe) => with_safety(outcome, safe),
            Err(error) => {
                let what = "the call was made and its outcome is withheld";
                Outcome::Refused(unavailable(what, &error))
            }
        };
        if let Some(refusal) = refusal_of(&outcome) {
            metrics.answered(refusal.code);
        }
        outcome
    }
}

/// A refused call leaves a record as well, and a receipt if the tool is known.
pub(super) async fn refusal(
    store: &Store,
    call: &Call,
    ctx: &CallContext,
    snapshot: &Snapshot,
    refusal: Refusal,
) -> Outcome {
    let mut started = statement::started(call, ctx, snapshot, None);
    started.kind = Kind::PolicyDecision;
    let outcome = Outcome::Refused(refusal);
    let mut ended = ended(call, snapshot.settings(), &outcome, Duration::ZERO).await;
    if snapshot.tool(call).is_none() {
        ended.receipt = Receipted::No;
    }
    log_line(call, None, &ended);
    let outcome = match store.append(Entry::Whole(Box::new(started), Box::new(ended))).await {
        // The very last calls come when the ledger has been closed; nothing is done for them.
        Ok(_) | Err(StoreError::Closed) => outcome,
        Err(error) => Outcome::Refused(unavailable("the call was not made", &error)),
    };
    if let Some(refusal) = refusal_of(&outcome) {
        count_refusal(call, snapshot, refusal);
    }
    outcome
}

fn count_refusal(call: &Call, snapshot: &Snapshot, refusal: &Refusal) {
    snapshot.metrics().refused(snapshot.server(call));
    snapshot.metrics().answered(refusal.code);
}

fn refusal_of(outcome: &Outcome) -> Option<&Refusal> {
    match outcome {
        Outcome::Refused(refusal) | Outcome::Failed { refusal, .. } => Some(refusal),
        Outcome::Replied { .. } => None,
    }
}

async fn ended(call: &Call, settings: &Settings, outcome: &Outcome, duration: Duration) -> Ended {
    let (status, refusal, response) = match outcome {
        Outcome::Replied { reply, .. } => {
            let response = payload::response(settings, &reply.result).await;
            let status = if response.is_error { Status::Error } else { Status::Success };
            (status, None, response.payload)
        }
        Outcome::Refused(refusal) => (Status::Blocked, Some(refusal), Payload::default()),
        Outcome::Failed { refusal, .. } if refusal.code == Code::Cancelled => {
            (Status::Cancelled, Some(refusal), Payload::default())
        }
        Outcome::Failed { refusal, .. } => (Status::Error, Some(refusal), Payload::default()),
    };
    Ended {
        id: call.id.clone(),
        status,
        error_code: refusal.map(|refusal| refusal.code.as_str().into()),
        error_message: refusal.map(|refusal| settings.redactor.text(&refusal.message).into_owned()),
        duration,
        response,
        receipt: Receipted::Yes,
    }
}

/// An outcome whose record waits in memory says so.
fn with_safety(outcome: Outcome, safe: Safe) -> Outcome {
    match (outcome, safe) {
        (Outcome::Replied { reply, warnings, .. }, Safe::Queued) => {
            Outcome::Replied { reply, warnings, kept: Kept::Queued }
        }
        (outcome, Safe::Committed | Safe::Queued) => outcome,
    }
}

fn unavailable(what: &str, error: &StoreError) -> Refusal {
    Refusal::new(error.code(), format!("{what}: {error}"))
}

/// One line per call; arguments never.
fn log_line(call: &Call, source: Option<&str>, ended: &Ended) {
    tracing::info!(
        tool = %call.tool,
        source = source.unwrap_or("-"),
        caller = %call.caller.token,
        duration_ms = ended.duration.as_secs_f64() * 1000.0,
        outcome = ended.status.as_str(),
        error = ended.error_code.as_deref().unwrap_or("-"),
        "tool call"
    );
}
