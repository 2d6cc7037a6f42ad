//! `GET /events`: what happens, as it happens. Each event carries the number of the change that it
//! tells; a client that names the last one it saw gets all that came after, from any process.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use domain::{Code, Refusal};
use futures_util::stream;
use serde_json::json;
use store::query::{Change, Record, Run};
use store::run::StepRecord;
use store::{Status, Store, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Admin;
use crate::answer::Refused;
use crate::ledger::off_thread;
use crate::{record, run, status};

/// Changes in one piece of the stream.
const PIECE_CHANGES: usize = 100;

/// Other processes write to the ledger too, and tell nobody.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// So many looks without news, and a comment shows that the stream lives.
const QUIET_LOOKS: u32 = 15;

pub(crate) async fn stream(
    State(admin): State<Admin>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let store = admin.gateway.store().clone();
    let last = match headers.get("last-event-id") {
        Some(id) => after(id.to_str().unwrap_or_default())?,
        None => {
            store.settled().await;
            let reader = store.read().clone();
            off_thread(move || reader.latest_change()).await?
        }
    };
    let feed = Feed {
        last,
        changes: store.changes(),
        stop: admin.gateway.draining(),
        quiet_looks: 0,
        greeting: Some(greeting(last, &store.ledger())),
        store,
    };
    let pieces = stream::try_unfold(feed, Feed::next);
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// A client learns at once that it is heard, and from where on.
fn greeting(last: i64, ledger: &store::Ledger) -> Bytes {
    let data = status::ledger(ledger);
    format!("event: ledger\nid: {last}\ndata: {data}\n\n").into()
}

fn after(id: &str) -> Result<i64, Refused> {
    id.parse().map_err(|_| {
        let message = format!("Last-Event-ID must be the id of an event, got '{id}'");
        let details = json!({"field": "Last-Event-ID", "provided": id});
        Refusal::new(Code::InvalidRequest, message).with(details).into()
    })
}

struct Feed {
    store: Store,
    last: i64,
    changes: watch::Receiver<i64>,
    stop: CancellationToken,
    quiet_looks: u32,
    greeting: Option<Bytes>,
}

impl Feed {
    /// The next piece; none when the gate stops.
    async fn next(mut self) -> Result<Option<(Bytes, Feed)>, StoreError> {
        if let Some(greeting) = self.greeting.take() {
            return Ok(Some((greeting, self)));
        }
        loop {
            let (reader, last) = (self.store.read().clone(), self.last);
            let found = off_thread(move || reader.changes_after(last, PIECE_CHANGES)).await?;
            if let Some((newest, _)) = found.last() {
                self.last = *newest;
                self.quiet_looks = 0;
                return Ok(Some((found.iter().map(event).collect::<String>().into(), self)));
            }
            tokio::select! {
                // Closed where the store is: then the stop comes as well.
                Ok(()) = self.changes.changed() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {
                    self.quiet_looks += 1;
                    let store = self.store.clone();
                    off_thread(move || run::end_lost(&store)).await;
                }
                () = self.stop.cancelled() => return Ok(None),
            }
            if self.quiet_looks == QUIET_LOOKS {
                self.quiet_looks = 0;
                return Ok(Some((Bytes::from_static(b":\n\n"), self)));
            }
        }
    }
}

fn event((number, change): &(i64, Change)) -> String {
    match change {
        Change::Record(found) => activity_event(*number, found),
        Change::Run(run) => run_event(*number, run, None),
        Change::Step(run, step) => run_event(*number, run, Some(step)),
    }
}

fn activity_event(number: i64, found: &Record) -> String {
    let phase = match found.status {
        Status::Pending => "start",
        Status::Blocked => "refused",
        Status::Success | Status::Error | Status::Cancelled | Status::Interrupted => "end",
    };
    let data = json!({"phase": phase, "record": record::brief(found)});
    format!("event: activity\nid: {number}\ndata: {data}\n\n")
}

fn run_event(number: i64, run: &Run, step: Option<&StepRecord>) -> String {
    let mut data = json!({"phase": run::phase(run, step), "run": run::entry(run)});
    if let Some(step) = step {
        data["step"] = run::step_entry(step);
    }
    format!("event: run\nid: {number}\ndata: {data}\n\n")
}
