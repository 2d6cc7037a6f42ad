//! The threads that serve connections. Each has its own runtime, on which everything about its
//! connections happens, so that a call changes threads neither on its way to a server nor on its
//! way back.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use mcp::task;
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::{BLOCKING_THREADS_MAX, STACK_BYTES};

/// More threads than this would wait for the ledger, which is one.
const LANES_MAX: usize = 8;

/// The time between two beats, shorter than the timers of a request.
const BEAT: Duration = Duration::from_millis(500);

/// Clones are handles to the same threads, which end with the last one.
#[derive(Clone)]
pub(crate) struct Lanes {
    lanes: Arc<[Lane]>,
    _end: Arc<DropGuard>,
}

struct Lane {
    runtime: Handle,
    /// The connections that it serves.
    load: Arc<AtomicUsize>,
    pulse: Arc<Pulse>,
}

impl Lanes {
    pub(crate) fn start() -> io::Result<Lanes> {
        let count = thread::available_parallelism().map_or(1, usize::from).min(LANES_MAX);
        let end = CancellationToken::new();
        let lanes = (0..count).map(|_| Lane::start(end.clone())).collect::<io::Result<_>>()?;
        Ok(Lanes { lanes, _end: Arc::new(end.drop_guard()) })
    }

    /// Serves a connection on the thread that has the fewest. The tracker counts it.
    pub(super) fn serve<C: Future<Output = ()> + Send + 'static>(
        &self,
        connections: &TaskTracker,
        connection: impl FnOnce(Arc<Pulse>) -> C,
    ) {
        let lane = self.lanes.iter().min_by_key(|lane| lane.load.load(Ordering::Relaxed));
        let lane = lane.expect("there is at least one");
        let place = LanePlace::take(&lane.load);
        let connection = connection(lane.pulse.clone());
        let serving = async move {
            connection.await;
            drop(place);
        };
        lane.runtime.spawn(connections.track_future(serving.boxed()));
    }
}

impl Lane {
    fn start(end: CancellationToken) -> io::Result<Lane> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .thread_stack_size(STACK_BYTES)
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .build()?;
        let handle = runtime.handle().clone();
        let serve = move || {
            runtime.block_on(end.cancelled());
            runtime.shutdown_background();
        };
        thread::Builder::new().name("lane".to_owned()).stack_size(STACK_BYTES).spawn(serve)?;
        Ok(Lane { runtime: handle, load: Arc::default(), pulse: Arc::default() })
    }
}

/// Counts one connection until it is dropped.
struct LanePlace {
    load: Arc<AtomicUsize>,
}

impl LanePlace {
    fn take(load: &Arc<AtomicUsize>) -> LanePlace {
        load.fetch_add(1, Ordering::Relaxed);
        LanePlace { load: load.clone() }
    }
}

impl Drop for LanePlace {
    fn drop(&mut self) {
        self.load.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A timer that is due soon for as long as requests arrive. Without it, the first timer of each
/// request would be due before all others, for which a runtime wakes its own thread with two calls
/// to the system.
#[derive(Default)]
pub(super) struct Pulse {
    is_beating: AtomicBool,
    /// A request has arrived since the last beat.
    is_used: AtomicBool,
}

impl Pulse {
    /// Notes that a request has arrived, on the thread of its lane.
    pub(super) fn note(self: &Arc<Self>) {
        self.is_used.store(true, Ordering::Relaxed);
        if !self.is_beating.swap(true, Ordering::Relaxed) {
            task::spawn(self.clone().beat());
        }
    }

    async fn beat(self: Arc<Self>) {
        while self.is_used.swap(false, Ordering::Relaxed) {
            tokio::time::sleep(BEAT).await;
        }
        self.is_beating.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use std::collections::HashSet;
    use std::thread::ThreadId;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn connections_are_spread_and_one_that_ends_makes_room() {
        let (lanes, tracker) = (Lanes::start().unwrap(), TaskTracker::new());
        let serve = async || {
            let (sender, thread) = oneshot::channel();
            let (end, ended) = oneshot::channel::<()>();
            lanes.serve(&tracker, |_| async move {
                let _ = sender.send(thread::current().id());
                let _ = ended.await;
            });
            (thread.await.unwrap(), end)
        };
        let mut open: Vec<(ThreadId, oneshot::Sender<()>)> = Vec::new();
        for _ in 0..lanes.lanes.len() {
            open.push(serve().await);
        }
        let threads: HashSet<ThreadId> = open.iter().map(|(thread, _)| *thread).collect();
        assert_eq!(threads.len(), lanes.lanes.len());
        let (free, end) = open.pop().unwrap();
        drop(end);
        while tracker.len() > open.len() {
            tokio::task::yield_now().await;
        }
        assert_eq!(serve().await.0, free);
    }
    #[tokio::test(start_paused = true)]
    async fn a_pulse_beats_until_no_request_has_arrived_for_a_while() {
        let pulse = Arc::new(Pulse::default());
        let is_beating = || pulse.is_beating.load(Ordering::Relaxed);
        for _ in 0..3 {
            pulse.note();
            tokio::time::sleep(BEAT / 2).await;
            assert!(is_beating());
        }
        tokio::time::sleep(BEAT * 3).await;
        assert!(!is_beating());
        pulse.note();
        assert!(is_beating());
    }
}
