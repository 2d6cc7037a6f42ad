//! `GET /events`: a live stream of events. An event of the ledger carries its change number; a
//! client that sends the last number it saw gets all later changes, from any process. Events about
//! the state of servers and tools have no number, because they are not stored.

mod catalog_status;

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use domain::{Code, Refusal};
use futures_util::stream;
use gateway::Gateway;
use gateway::front::step::BYPASS;
use serde::Serialize;
use serde_json::json;
use store::read::{LedgerChange, Record, Run};
use store::run::StepRecord;
use store::{RecordStatus, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Admin;
use crate::answer::Refused;
use crate::events::catalog_status::{CatalogStatus, News};
use crate::ledger::off_thread;
use crate::run;
use crate::view::{
    ActivityEvent, ActivityRecord, ContentionEvent, LedgerState, RunEntry, RunEvent, StepEntry,
};

/// The number of changes in one chunk of the stream.
const PIECE_CHANGES: usize = 100;

/// The interval at which the ledger is polled. Other processes write to it without notifying this
/// one.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The number of polls without an event after which a comment keeps the stream alive.
const QUIET_LOOKS: u32 = 30;

pub(crate) async fn stream(
    State(admin): State<Admin>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let store = admin.gateway.store();
    let last = match headers.get("last-event-id") {
        Some(id) => after(id.to_str().unwrap_or_default())?,
        None => {
            store.settled().await;
            let reader = store.read().clone();
            off_thread(move || reader.latest_change()).await?
        }
    };
    // Subscribe before the greeting, so that the client misses nothing after it.
    let catalog_changes = admin.gateway.changes();
    let ledger = store.ledger();
    let feed = Feed {
        last,
        changes: store.changes(),
        catalog_changes,
        catalog_status: CatalogStatus::of(&admin.gateway.catalog()),
        is_failing: ledger.fault.is_some(),
        stop: admin.gateway.draining(),
        quiet_looks: 0,
        greeting: Some(greeting(last, &ledger)),
        gateway: admin.gateway,
    };
    let pieces = stream::try_unfold(feed, Feed::next);
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// Confirms the subscription at once, with the change number it starts from.
fn greeting(last: i64, ledger: &store::LedgerHealth) -> Bytes {
    event("ledger", Some(last), &LedgerState::from(ledger)).into()
}

fn after(id: &str) -> Result<i64, Refused> {
    id.parse().ok().filter(|id| *id >= 0).ok_or_else(|| {
        let message = format!("Last-Event-ID must be the id of an event, got '{id}'");
        let details = json!({"field": "Last-Event-ID", "provided": id});
        Refusal::new(Code::InvalidRequest, message).with(details).into()
    })
}

struct Feed {
    gateway: Gateway,
    /// The last change of the ledger that was sent.
    last: i64,
    changes: watch::Receiver<i64>,
    catalog_changes: watch::Receiver<u64>,
    /// The state of servers and tools at the last look.
    catalog_status: CatalogStatus,
    /// The ledger could not be written at the last look.
    is_failing: bool,
    stop: CancellationToken,
    quiet_looks: u32,
    greeting: Option<Bytes>,
}

impl Feed {
    /// Returns the next chunk, or none when the gate stops.
    async fn next(mut self) -> Result<Option<(Bytes, Feed)>, StoreError> {
        if let Some(greeting) = self.greeting.take() {
            return Ok(Some((greeting, self)));
        }
        loop {
            let news = self.changed().await? + &self.others().await;
            if !news.is_empty() {
                self.quiet_looks = 0;
                return Ok(Some((news.into(), self)));
            }
            tokio::select! {
                // The channel closes with the store; the stop signal follows.
                Ok(()) = self.changes.changed() => {}
                Ok(()) = self.catalog_changes.changed() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {
                    self.quiet_looks += 1;
                    let store = self.gateway.store().clone();
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

    /// Returns events for new changes of the ledger.
    async fn changed(&mut self) -> Result<String, StoreError> {
        let (reader, last) = (self.gateway.store().read().clone(), self.last);
        let found = off_thread(move || reader.changes_after(last, PIECE_CHANGES)).await?;
        self.last = found.last().map_or(last, |(newest, _)| *newest);
        Ok(found.iter().map(change_event).collect())
    }

    /// Returns events for changes outside the ledger.
    async fn others(&mut self) -> String {
        let mut news = String::new();
        let ledger = self.gateway.store().ledger();
        if ledger.fault.is_some() != self.is_failing {
            self.is_failing = ledger.fault.is_some();
            news = event("ledger", None, &LedgerState::from(&ledger));
        }
        let catalog = self.gateway.catalog();
        if !self.catalog_status.is_of(&catalog) {
            let was = std::mem::take(&mut self.catalog_status);
            let look = move || {
                let now = CatalogStatus::of(&catalog);
                (was.news(&now), now)
            };
            let (changed, now) = off_thread(look).await;
            self.catalog_status = now;
            news.extend(changed.iter().map(News::event));
        }
        news
    }
}

/// Writes an event: its name, its number if it is stored, and its data.
fn event(name: &str, number: Option<i64>, data: &impl Serialize) -> String {
    let data = serde_json::to_string(data).unwrap_or_default();
    match number {
        Some(number) => format!("event: {name}\nid: {number}\ndata: {data}\n\n"),
        None => format!("event: {name}\ndata: {data}\n\n"),
    }
}

fn change_event((number, change): &(i64, LedgerChange)) -> String {
    match change {
        LedgerChange::Record(found) => event("activity", Some(*number), &activity(found)),
        LedgerChange::Run(run) => event("run", Some(*number), &run_event(run, None)),
        LedgerChange::Meeting(met) => {
            event("contention", Some(*number), &ContentionEvent::from(&**met))
        }
        LedgerChange::Step(run, step) => event("run", Some(*number), &run_event(run, Some(step))),
    }
}

fn activity(found: &Record) -> ActivityEvent {
    let phase = match found.status {
        _ if found.surface == BYPASS => "bypass",
        RecordStatus::Pending => "start",
        RecordStatus::Blocked => "refused",
        RecordStatus::Success
        | RecordStatus::Error
        | RecordStatus::Cancelled
        | RecordStatus::Interrupted
        | RecordStatus::Unknown => "end",
    };
    ActivityEvent { phase: phase.to_owned(), record: ActivityRecord::brief(found) }
}

fn run_event(run: &Run, step: Option<&StepRecord>) -> RunEvent {
    RunEvent {
        phase: run::phase(run, step).to_owned(),
        run: RunEntry::brief(run),
        step: step.map(StepEntry::brief),
    }
}

impl News {
    fn event(&self) -> String {
        match self {
            News::Server(news) => event("server", None, news),
            News::Tool(news) => event("tool", None, news),
        }
    }
}
