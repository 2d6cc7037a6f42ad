//! Events from outside: actions of agents that the gate could not see, reported on a socket by the
//! agents or their hooks. Each becomes a record and a receipt that names its sender.

mod entry;
mod process;
mod sender;
mod touch;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ::touch::frame::{EventFrame, FRAME_BYTES_MAX, FrameFault};
use ::touch::lineage::NameOwners;
use futures_util::FutureExt;
use mcp::task;
use store::{Entry, StoreError};
use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub use crate::events::sender::{Arrival, Sender, SpoolNote};

use crate::events::sender::{EventOrigin, SpoolSenders};
use crate::limits::{
    EVENT_FRAME_TIME_MAX, EVENT_REST_MAX, EVENT_SENDERS_MAX, EVENT_SILENCE_MAX,
    EVENTS_DROPPED_EVERY,
};
use crate::{GateSettings, Gateway};

/// Records incoming events. Clones share the same state.
#[derive(Clone)]
pub struct Events {
    gateway: Gateway,
    /// Events that could not be recorded and that no receipt accounts for yet.
    dropped: Arc<AtomicU64>,
    /// The owners of the sessions and agents that events have named.
    owners: Arc<Mutex<NameOwners>>,
    spool_senders: Arc<Mutex<SpoolSenders>>,
}

impl Events {
    pub fn new(gateway: Gateway) -> Events {
        let (dropped, owners, spool_senders) = Default::default();
        Events { gateway, dropped, owners, spool_senders }
    }

    /// Serves all senders until `stop` is cancelled.
    pub async fn serve(self, listener: UnixListener, stop: CancellationToken) {
        let senders = TaskTracker::new();
        let room = Arc::new(Semaphore::new(EVENT_SENDERS_MAX));
        task::spawn_tracked(&senders, self.clone().own_up(stop.clone()));
        loop {
            let stream = tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        tracing::warn!("events socket: cannot accept a connection: {error}");
                        tokio::time::sleep(EVENTS_DROPPED_EVERY).await;
                        continue;
                    }
                },
                () = stop.cancelled() => break,
            };
            let Ok(permit) = room.clone().try_acquire_owned() else {
                tracing::warn!(
                    "events socket: {EVENT_SENDERS_MAX} senders are connected, rejecting another"
                );
                continue;
            };
            let (events, stop) = (self.clone(), stop.clone());
            task::spawn_tracked(&senders, async move {
                events.hear(stream, &stop).await;
                drop(permit);
            });
        }
        // Senders that connected before the end do not connect again.
        while let Some(Ok((stream, _))) = listener.accept().now_or_never() {
            let (events, stop) = (self.clone(), stop.clone());
            task::spawn_tracked(&senders, async move { events.hear(stream, &stop).await });
        }
        senders.close();
        senders.wait().await;
        self.record_dropped_events().await;
    }

    /// Records the frames of a sender until it is silent; after `stop`, those that it has sent.
    async fn hear(&self, mut stream: UnixStream, stop: &CancellationToken) {
        let sender = match stream.peer_cred() {
            Ok(credentials) => task::spawn_blocking(move || Sender::of(&credentials)).await,
            Err(error) => {
                tracing::warn!("events socket: cannot read the sender's credentials: {error}");
                return;
            }
        };
        let Ok(sender) = sender else { return };
        while let Some(length) = next_length(&mut stream, stop).await {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let reading = async {
                if length > FRAME_BYTES_MAX {
                    skip(&mut stream, length).await?;
                    return Ok(Err(FrameFault::Size(length)));
                }
                let mut bytes = vec![0; length];
                stream.read_exact(&mut bytes).await?;
                Ok::<_, std::io::Error>(Ok(bytes))
            };
            let Ok(Ok(bytes)) = tokio::time::timeout(EVENT_FRAME_TIME_MAX, reading).await else {
                tracing::warn!(pid = ?sender.pid, "events socket: incomplete frame");
                return;
            };
            if let Some(note) = bytes.as_ref().ok().and_then(|bytes| SpoolNote::parse(bytes)) {
                let mut senders = self.spool_senders.lock().unwrap_or_else(PoisonError::into_inner);
                senders.note(note, sender.clone());
                continue;
            }
            match bytes.and_then(|bytes| EventFrame::parse(&bytes)) {
                Ok(frame) => self.record(frame, Some(sender.clone()), Arrival::Socket).await,
                Err(fault) => tracing::warn!(pid = ?sender.pid, "event rejected: {fault}"),
            }
        }
    }

    /// Records an event, or counts it as lost.
    pub async fn record(&self, frame: EventFrame, sender: Option<Sender>, arrival: Arrival) {
        if let Err(error) = self.append(frame, Uuid::now_v7(), sender, arrival).await {
            self.drop_events(1);
            tracing::warn!("event lost: {error}");
        }
    }

    /// Records an event of the spool under its own id; `text` is what was in the file.
    pub async fn record_spooled(
        &self,
        frame: EventFrame,
        id: Uuid,
        text: &[u8],
    ) -> Result<(), StoreError> {
        let sender = {
            let mut senders = self.spool_senders.lock().unwrap_or_else(PoisonError::into_inner);
            senders.take(SpoolNote::of(id, text))
        };
        self.append(frame, id, sender, Arrival::Spool).await
    }

    async fn append(
        &self,
        frame: EventFrame,
        id: Uuid,
        sender: Option<Sender>,
        arrival: Arrival,
    ) -> Result<(), StoreError> {
        let settings = self.gateway.settings();
        let named = touch::named(&self.gateway, &frame, entry::class(&frame)).await;
        let is_admitted = self.admits(&frame, sender.as_ref(), &settings).await?;
        let origin = EventOrigin { id, sender, arrival, is_admitted };
        let (started, ended) = entry::of(&frame, origin, named, &settings);
        let entry = Entry::Whole(Box::new(started), Box::new(ended));
        let entry = entry.redacted(&settings.redactor);
        self.gateway.store().append(entry).await.map(|_| ())
    }

    /// Decides whether an event may count under the session and the agent that it names: they belong
    /// neither to another living process nor to a client of the gate.
    async fn admits(
        &self,
        frame: &EventFrame,
        sender: Option<&Sender>,
        settings: &GateSettings,
    ) -> Result<bool, StoreError> {
        let names = entry::names(frame, &settings.redactor);
        let (owners, sender) = (self.owners.clone(), sender.cloned());
        self.gateway
            .with_store(move |store| {
                for name in &names {
                    if store.read().is_name_of_gate(name)? {
                        return Ok(false);
                    }
                }
                let mut owners = owners.lock().unwrap_or_else(PoisonError::into_inner);
                let lineage = sender.as_ref().and_then(Sender::lineage);
                Ok(owners.admit(&names, lineage, process::is_alive))
            })
            .await
    }

    /// Counts events that were lost before they arrived here.
    pub fn drop_events(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    async fn own_up(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(EVENTS_DROPPED_EVERY) => self.record_dropped_events().await,
                () = stop.cancelled() => return,
            }
        }
    }

    /// Records a signed receipt of how many events are missing.
    pub async fn record_dropped_events(&self) {
        let count = self.dropped.swap(0, Ordering::Relaxed);
        if count > 0 && self.record_dropped(count).await.is_err() {
            self.drop_events(count);
        }
    }

    /// Records a signed receipt of events that were lost before they arrived here.
    pub async fn record_dropped(&self, count: u64) -> Result<(), StoreError> {
        let (started, ended) = entry::dropped(count);
        let entry = Entry::Whole(Box::new(started), Box::new(ended));
        self.gateway.store().append(entry).await.map(|_| ())
    }
}

/// Reads the length of the next frame; `None` if the sender has closed or sends nothing more.
async fn next_length(stream: &mut UnixStream, stop: &CancellationToken) -> Option<u32> {
    let reading = stream.read_u32();
    tokio::pin!(reading);
    let read = tokio::select! {
        biased;
        read = tokio::time::timeout(EVENT_SILENCE_MAX, &mut reading) => read,
        () = stop.cancelled() => tokio::time::timeout(EVENT_REST_MAX, reading).await,
    };
    read.ok()?.ok()
}

/// Skips a frame that is too long to keep, so that the next frame is found.
async fn skip(stream: &mut UnixStream, length: usize) -> std::io::Result<()> {
    let mut rest = stream.take(length as u64);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
    Ok(())
}
