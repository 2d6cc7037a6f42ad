//! Requests of ours while their callers wait: until the answer, or until the time is up, which the
//! server's progress may put off.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{NoticeSink, Peer, ProgressSink, RequestError, lock};
use crate::delivery::Delivery;
use crate::message::{Raw, to_raw};
use crate::task;

/// The effect of progress on the time that an answer may take.
#[derive(Clone, Copy, Debug)]
pub struct ProgressPatience {
    /// The time from the last progress.
    pub pause_max: Duration,
    /// The end, whatever the progress.
    pub until: Instant,
}

pub(super) struct PendingRequest {
    pub(super) answer: oneshot::Sender<Result<Raw, RequestError>>,
    pub(super) progress: Option<ProgressSink>,
    pub(super) notices: Option<NoticeSink>,
    pub(super) progressed: Option<LastProgress>,
}

/// The time of the last progress of a request.
#[derive(Clone)]
pub(super) struct LastProgress(Arc<Mutex<Instant>>);

impl LastProgress {
    pub(super) fn begin() -> LastProgress {
        LastProgress(Arc::new(Mutex::new(Instant::now())))
    }

    pub(super) fn note(&self) {
        *lock(&self.0) = Instant::now();
    }
}

/// Waits until the time for an answer is up.
pub(super) async fn time_up(timeout: Duration, patience: Option<(ProgressPatience, LastProgress)>) {
    let Some((ProgressPatience { pause_max, until }, LastProgress(last))) = patience else {
        return tokio::time::sleep(timeout).await;
    };
    let begun = *lock(&last);
    let mut due = begun + timeout;
    loop {
        tokio::time::sleep_until(due.min(until)).await;
        let last = *lock(&last);
        let next = due.max(last + pause_max);
        if last == begun || next.min(until) <= due.min(until) {
            return;
        }
        due = next;
    }
}

/// Removes the request when its caller stops waiting, and cancels it on the other side.
pub(super) struct OpenRequest<'a> {
    pub(super) peer: &'a Peer,
    pub(super) id: i64,
    pub(super) delivery: &'a Delivery,
    pub(super) told: bool,
}

impl OpenRequest<'_> {
    pub(super) fn withdraw(&mut self, reason: &str) {
        self.told = true;
        self.delivery.settle();
        if !self.delivery.is_sent() {
            return;
        }
        let params = to_raw(&json!({"requestId": self.id, "reason": reason}));
        let peer = self.peer.clone();
        task::spawn_tracked(&self.peer.core.tasks, async move {
            let _ = peer.notify("notifications/cancelled", Some(params)).await;
        });
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        lock(&self.peer.core.asked).remove(&self.id);
        if !self.told && !self.peer.is_closed() {
            self.withdraw("the caller no longer waits");
        }
        self.delivery.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the seconds that a request with a timeout of 10 s may take, if there is progress at
    /// these times.
    async fn seconds(progress: &[u32], until: u32) -> u64 {
        let last = LastProgress::begin();
        let begun = Instant::now();
        let patience = ProgressPatience { pause_max: SECOND * 10, until: begun + SECOND * until };
        let waiting = time_up(SECOND * 10, Some((patience, last.clone())));
        let progress = async {
            for at in progress {
                tokio::time::sleep_until(begun + SECOND * *at).await;
                last.note();
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = waiting => {}
            () = progress => {}
        }
        begun.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn progress_puts_the_end_off_up_to_a_bound() {
        for (progress, until, expected) in [
            (&[][..], 100, 10),
            (&[3], 100, 13),
            (&[3, 9, 18], 100, 28),
            (&[11], 100, 10),
            (&[3, 9, 18], 20, 20),
            (&[3], 5, 5),
        ] {
            assert_eq!(seconds(progress, until).await, expected, "{progress:?} {until}");
        }
    }
}
