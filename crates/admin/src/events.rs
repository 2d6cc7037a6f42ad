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
use store::query::{Reader, Record};
use store::{Status, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Admin;
use crate::answer::Refused;
use crate::ledger::off_thread;
use crate::{record, status};

/// Records in one piece of the stream.
const PIECE_RECORDS: usize = 100;

/// Other processes write to the ledger too, and tell nobody.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// So many looks without news, and a comment shows that the stream lives.
const QUIET_LOOKS: u32 = 15;

pub(crate) async fn stream(
    State(admin): State<Admin>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let store = admin.gateway.store();
    let reader = store.read().clone();
    let last = match headers.get("last-event-id") {
        Some(id) => after(id.to_str().unwrap_or_default())?,
        None => {
            store.settled().await;
            let reader = reader.clone();
            off_thread(move || reader.latest_change()).await?
        }
    };
    let feed = Feed {
        reader,
        last,
        changes: store.changes(),
        stop: admin.gateway.draining(),
        quiet_looks: 0,
        greeting: Some(greeting(last, &store.ledger())),
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
    reader: Reader,
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
            let (reader, last) = (self.reader.clone(), self.last);
            let found = off_thread(move || reader.changed_after(last, PIECE_RECORDS)).await?;
            if let Some(newest) = found.last() {
                self.last = newest.changed;
                self.quiet_looks = 0;
                return Ok(Some((found.iter().map(event).collect::<String>().into(), self)));
            }
            tokio::select! {
                // Closed where the store is: then the stop comes as well.
                Ok(()) = self.changes.changed() => {}
                () = tokio::time::sleep(LOOK_EVERY) => self.quiet_looks += 1,
                () = self.stop.cancelled() => return Ok(None),
            }
            if self.quiet_looks == QUIET_LOOKS {
                self.quiet_looks = 0;
                return Ok(Some((Bytes::from_static(b":\n\n"), self)));
            }
        }
    }
}

fn event(found: &Record) -> String {
    let phase = match found.status {
        Status::Pending => "start",
        Status::Blocked => "refused",
        Status::Success | Status::Error | Status::Cancelled | Status::Interrupted => "end",
    };
    let data = json!({"phase": phase, "record": record::brief(found)});
    format!("event: activity\nid: {}\ndata: {data}\n\n", found.changed)
}
