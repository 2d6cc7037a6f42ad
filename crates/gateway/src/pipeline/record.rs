//! Record: no call is answered before the store has it, whatever became of it.

use std::time::Duration;

use domain::intent::Stated;
use domain::policy::Allowed;
use domain::tool::Class;
use domain::{Code, Refusal};
use provider::{Call, Declared, Outcome};
use store::{Agent, Committed, Ended, Entry, Kind, Started, Status, Store, StoreError};
use tokio::time::Instant;

use super::facts::Snapshot;

/// A call that has been started and must be ended.
pub(super) struct Record<'a> {
    store: &'a Store,
    call: &'a Call,
    started: Instant,
    /// Still open for reads, which need not wait for their start to be safe.
    committing: Option<Committed>,
}

impl<'a> Record<'a> {
    pub(super) async fn start(
        store: &'a Store,
        call: &'a Call,
        allowed: &Allowed,
    ) -> Result<Record<'a>, Refusal> {
        let committed = store.append(Entry::Started(Box::new(started(call, Some(allowed)))));
        let started = Instant::now();
        let committing = match allowed.effective {
            Class::Read => Some(committed),
            Class::Write | Class::Destructive => {
                committed.await.map_err(|error| unavailable("the call was not made", &error))?;
                None
            }
        };
        Ok(Record { store, call, started, committing })
    }

    /// The outcome may leave the gate only after this; if it cannot be kept, it does not leave.
    pub(super) async fn end(self, snapshot: &Snapshot, outcome: Outcome) -> Outcome {
        let ended = ended(self.call, &outcome, self.started.elapsed());
        log_line(self.call, snapshot.source(self.call).as_deref(), &ended);
        let committed = self.store.append(Entry::Ended(Box::new(ended)));
        let safe = async {
            if let Some(committing) = self.committing {
                committing.await?;
            }
            committed.await
        };
        match safe.await {
            Ok(()) => outcome,
            Err(error) => {
                let what = "the call was made and its outcome is withheld";
                Outcome::Refused(unavailable(what, &error))
            }
        }
    }
}

/// A refused call leaves a record as well.
pub(super) async fn refusal(store: &Store, call: &Call, refusal: Refusal) -> Outcome {
    let mut record = started(call, None);
    record.kind = Kind::PolicyDecision;
    let outcome = Outcome::Refused(refusal);
    let ended = ended(call, &outcome, Duration::ZERO);
    log_line(call, None, &ended);
    drop(store.append(Entry::Started(Box::new(record))));
    match store.append(Entry::Ended(Box::new(ended))).await {
        Ok(()) => outcome,
        Err(error) => Outcome::Refused(unavailable("the call was not made", &error)),
    }
}

fn started(call: &Call, allowed: Option<&Allowed>) -> Started {
    let (variant, stated) = match &call.declared {
        Declared::Nothing => (None, Stated::default()),
        Declared::Variant(class, declaration) => (Some(class.variant()), declaration.stated()),
    };
    Started {
        id: call.id.clone(),
        kind: Kind::ToolCall,
        source: call.surface.source(),
        surface: call.surface.as_str(),
        server: call.tool.server.clone(),
        tool: call.tool.tool.clone(),
        agent: Agent {
            token: call.caller.token.to_string(),
            client: call.client.as_deref().map(str::to_owned),
        },
        session: call.session.as_deref().map(str::to_owned),
        request_id: call.request_id.clone(),
        at: jiff::Timestamp::now(),
        variant,
        declared: stated.operation.map(Class::as_str),
        sensitivity: variant.map(|_| stated.sensitivity.as_str()),
        reason: stated.reason,
        effective: allowed.map(|allowed| allowed.effective.as_str()),
        warnings: allowed
            .map(|allowed| allowed.warnings.iter().map(|warning| warning.text.clone()).collect())
            .unwrap_or_default(),
        arguments_bytes: call.arguments.text().get().len(),
    }
}

fn ended(call: &Call, outcome: &Outcome, duration: Duration) -> Ended {
    let (status, refusal, response_bytes) = match outcome {
        Outcome::Replied { reply, .. } => {
            let text = reply.result.get();
            let status = if is_error(text) { Status::Error } else { Status::Success };
            (status, None, text.len())
        }
        Outcome::Refused(refusal) => (Status::Blocked, Some(refusal), 0),
        Outcome::Failed { refusal, .. } if refusal.code == Code::Cancelled => {
            (Status::Cancelled, Some(refusal), 0)
        }
        Outcome::Failed { refusal, .. } => (Status::Error, Some(refusal), 0),
    };
    Ended {
        id: call.id.clone(),
        status,
        error_code: refusal.map(|refusal| refusal.code.as_str()),
        error_message: refusal.map(|refusal| refusal.message.clone()),
        duration,
        response_bytes,
    }
}

/// Whether a tool result says of itself that it is an error.
fn is_error(result: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Flag {
        #[serde(rename = "isError", default)]
        is_error: bool,
    }
    serde_json::from_str::<Flag>(result).is_ok_and(|flag| flag.is_error)
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
        error = ended.error_code.unwrap_or("-"),
        "tool call"
    );
}
