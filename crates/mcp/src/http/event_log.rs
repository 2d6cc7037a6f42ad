//! The events of one stream to a client: those that wait for the client, and the latest of those it
//! was sent, so that a client whose connection broke can read on. A newer reader takes over from an
//! older one without losing events.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits;
use crate::message::Message;
use crate::peer::{ConnectionClosed, lock};

/// The number of the stream that belongs to no request.
pub(super) const STANDING: u64 = 0;

/// The id of an event: the numbers of its session, of its stream in the session, and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) session: u64,
    pub(super) stream: u64,
    pub(super) event: u64,
}

impl EventId {
    pub(super) fn parse(text: &str) -> Option<EventId> {
        let mut numbers = text.split('-').map(|part| part.parse::<u64>().ok());
        let id = EventId {
            session: numbers.next()??,
            stream: numbers.next()??,
            event: numbers.next()??,
        };
        // Only the one spelling that was sent.
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.session, self.stream, self.event)
    }
}

/// The memory that the events of all sessions take.
#[derive(Default)]
pub(super) struct ReplayRoom(AtomicUsize);

impl ReplayRoom {
    pub(super) fn is_full(&self) -> bool {
        self.0.load(Ordering::Relaxed) > limits::REPLAY_TOTAL_BYTES_MAX
    }

    fn take(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn free(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

pub(super) struct EventLog {
    state: Mutex<LogState>,
    changed: Notify,
    room: Arc<ReplayRoom>,
}

struct LogState {
    events: VecDeque<Arc<Message>>,
    bytes: usize,
    /// The number of the first event that is still here; the first of all has 1.
    first: u64,
    /// The number of the next event for the reader.
    next: u64,
    /// Counts the readers; only the last one is served.
    readers: u64,
    is_open: bool,
    /// True if a reader may come back.
    is_kept: bool,
    left: Option<Instant>,
    ended: Option<(String, Instant)>,
}

/// An event with its number.
pub(super) struct LoggedEvent {
    pub(super) number: u64,
    pub(super) message: Arc<Message>,
}

impl EventLog {
    /// Creates a log that waits for readers.
    pub(super) fn kept(room: &Arc<ReplayRoom>) -> Arc<EventLog> {
        EventLog::new(room, true)
    }

    /// Creates a log with its one reader; see [`EventLog::keep`].
    pub(super) fn opened(room: &Arc<ReplayRoom>) -> (Arc<EventLog>, LogReader) {
        let log = EventLog::new(room, false);
        let reader = log.read();
        (log, reader)
    }

    fn new(room: &Arc<ReplayRoom>, is_kept: bool) -> Arc<EventLog> {
        let state = LogState {
            events: VecDeque::new(),
            bytes: 0,
            first: 1,
            next: 1,
            readers: 0,
            is_open: false,
            is_kept,
            left: None,
            ended: None,
        };
        let (state, changed) = (Mutex::new(state), Notify::new());
        Arc::new(EventLog { state, changed, room: room.clone() })
    }

    /// Keeps events for a reader that comes back.
    pub(super) fn keep(&self) {
        lock(&self.state).is_kept = true;
    }

    /// Adds an event. Where there are too many, the oldest ones leave.
    pub(super) fn push(&self, message: Message) -> Result<(), ConnectionClosed> {
        let mut state = lock(&self.state);
        if let Some((reason, _)) = &state.ended {
            return Err(ConnectionClosed(reason.clone()));
        }
        if state.is_open || state.is_kept {
            let bytes = message.size_about();
            state.events.push_back(Arc::new(message));
            state.bytes += bytes;
            self.room.take(bytes);
            self.trim(&mut state);
        }
        self.changed.notify_waiters();
        Ok(())
    }

    /// Ends the open stream after its events, and every later one too.
    pub(super) fn end(&self, reason: &str) {
        let end = || (reason.to_owned(), Instant::now());
        lock(&self.state).ended.get_or_insert_with(end);
        self.changed.notify_waiters();
    }

    /// Waits while a reader has too many events before it; reports whether there is room. Without a
    /// reader there is no wait.
    pub(super) async fn has_room(&self) -> bool {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                {
                    let state = lock(&self.state);
                    if !state.is_open || state.unsent() < limits::OUTBOX_MESSAGES_MAX {
                        return;
                    }
                }
                changed.await;
            }
        };
        tokio::time::timeout(limits::HTTP_SEND_TIMEOUT, waiting).await.is_ok()
    }

    pub(super) fn is_open(&self) -> bool {
        lock(&self.state).is_open
    }

    /// Returns the time at which the last reader left.
    pub(super) fn left(&self) -> Option<Instant> {
        lock(&self.state).left
    }

    /// Returns the time at which the last event was added, if nothing follows it.
    pub(super) fn ended(&self) -> Option<Instant> {
        lock(&self.state).ended.as_ref().map(|(_, at)| *at)
    }

    pub(super) fn bytes(&self) -> usize {
        lock(&self.state).bytes
    }

    /// Opens a reader of the events that no reader has taken.
    pub(super) fn read(self: &Arc<Self>) -> LogReader {
        let next = lock(&self.state).next;
        self.open(next)
    }

    /// Opens a reader of the events after this one that are still here; `None` for an event that
    /// was never sent.
    pub(super) fn read_after(self: &Arc<Self>, event: u64) -> Option<LogReader> {
        let is_known = {
            let state = lock(&self.state);
            event < state.first + state.events.len() as u64
        };
        is_known.then(|| self.open(event + 1))
    }

    fn open(self: &Arc<Self>, next: u64) -> LogReader {
        let number = {
            let mut state = lock(&self.state);
            state.next = next.max(state.first);
            state.readers += 1;
            state.is_open = true;
            state.readers
        };
        self.changed.notify_waiters();
        LogReader { log: self.clone(), number }
    }

    /// Removes the oldest events beyond a bound: those that were sent before those that were not.
    fn trim(&self, state: &mut LogState) {
        let unsent_max = if state.is_open {
            limits::OUTBOX_MESSAGES_MAX
        } else {
            limits::HTTP_BACKLOG_MESSAGES_MAX
        };
        loop {
            let has_excess = if state.first < state.next {
                state.events.len() > limits::REPLAY_EVENTS_MAX
                    || state.bytes > limits::REPLAY_STREAM_BYTES_MAX
                    || self.room.is_full()
            } else {
                state.unsent() > unsent_max
            };
            let oldest = if has_excess { state.events.pop_front() } else { None };
            let Some(oldest) = oldest else { return };
            state.bytes -= oldest.size_about();
            self.room.free(oldest.size_about());
            state.first += 1;
            state.next = state.next.max(state.first);
        }
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.room.free(lock(&self.state).bytes);
    }
}

impl LogState {
    fn unsent(&self) -> usize {
        let end = self.first + self.events.len() as u64;
        usize::try_from(end.saturating_sub(self.next)).unwrap_or(usize::MAX)
    }
}

pub(super) struct LogReader {
    log: Arc<EventLog>,
    number: u64,
}

impl LogReader {
    pub(super) fn log(&self) -> &Arc<EventLog> {
        &self.log
    }

    /// Returns the number of the event before the next one.
    pub(super) fn position(&self) -> u64 {
        lock(&self.log.state).next - 1
    }

    /// Returns the next event; `None` after the last one, or once a newer reader has taken over.
    pub(super) async fn next(&self) -> Option<LoggedEvent> {
        let event = self.wait().await?;
        let mut state = lock(&self.log.state);
        state.next = state.next.max(event.number + 1);
        self.log.changed.notify_waiters();
        Some(event)
    }

    /// Returns the next event without taking it.
    pub(super) async fn peek(&self) -> Option<Arc<Message>> {
        Some(self.wait().await?.message)
    }

    async fn wait(&self) -> Option<LoggedEvent> {
        loop {
            // Created before the state is read, so that no change in between is missed.
            let changed = self.log.changed.notified();
            {
                let state = lock(&self.log.state);
                if state.readers != self.number {
                    return None;
                }
                let place = usize::try_from(state.next - state.first).unwrap_or(usize::MAX);
                if let Some(message) = state.events.get(place).cloned() {
                    return Some(LoggedEvent { number: state.next, message });
                }
                if state.ended.is_some() {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        let mut state = lock(&self.log.state);
        if state.readers == self.number {
            state.is_open = false;
            state.left = Some(Instant::now());
            // Writers that wait for room need not wait any longer.
            self.log.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::message::{Notification, raw};

    fn log() -> Arc<EventLog> {
        EventLog::kept(&Arc::default())
    }

    fn push(log: &EventLog, method: usize) {
        let notification = Notification { method: method.to_string(), params: None };
        log.push(notification.into()).unwrap();
    }

    fn method(event: Option<LoggedEvent>) -> Option<String> {
        match &*event?.message {
            Message::Notification(notification) => Some(notification.method.clone()),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn without_a_reader_the_oldest_events_leave_first() {
        let log = log();
        for number in 0..limits::HTTP_BACKLOG_MESSAGES_MAX + 2 {
            push(&log, number);
        }
        assert_eq!(method(log.read().next().await).as_deref(), Some("2"));
    }

    #[tokio::test]
    async fn a_newer_reader_takes_over_and_the_end_comes_after_the_events() {
        let log = log();
        let older = log.read();
        assert!(older.next().now_or_never().is_none());
        let newer = log.read();
        assert!(older.next().await.is_none());
        drop(older);
        assert!(log.is_open());
        push(&log, 7);
        log.end("over");
        assert_eq!(method(newer.next().await).as_deref(), Some("7"));
        assert!(newer.next().await.is_none());
        drop(newer);
        assert!(!log.is_open() && log.left().is_some());
    }

    #[tokio::test]
    async fn a_reader_that_comes_back_reads_on_where_it_was() {
        let log = log();
        let reader = log.read();
        for number in 1..=3 {
            push(&log, number);
            assert_eq!(method(reader.next().await), Some(number.to_string()));
        }
        drop(reader);
        push(&log, 4);
        assert!(log.read_after(5).is_none(), "there is no such event");
        let reader = log.read_after(1).unwrap();
        assert_eq!(reader.position(), 1);
        for number in 2..=4 {
            assert_eq!(method(reader.next().await), Some(number.to_string()));
        }
        drop(reader);
        assert!(log.read().next().now_or_never().is_none(), "all were taken");
    }

    #[tokio::test]
    async fn events_that_were_sent_are_kept_within_bounds() {
        let (room, params) =
            (Arc::<ReplayRoom>::default(), raw(format!("\"{}\"", "x".repeat(9_000))));
        let log = EventLog::kept(&room);
        let reader = log.read();
        for _ in 0..200 {
            let notification = Notification { method: "n".into(), params: Some(params.clone()) };
            log.push(notification.into()).unwrap();
            assert!(reader.next().await.is_some());
        }
        assert!(log.bytes() <= limits::REPLAY_STREAM_BYTES_MAX);
        assert!(lock(&log.state).events.len() <= limits::REPLAY_EVENTS_MAX);
        assert_eq!(room.0.load(Ordering::Relaxed), log.bytes());
        drop((reader, log));
        assert_eq!(room.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn an_id_has_one_spelling() {
        let id = EventId { session: 7, stream: 0, event: 12 };
        assert_eq!(EventId::parse(&id.to_string()), Some(id));
        for other in ["", "7", "7-0", "7-0-", "7-0-12-1", "07-0-12", "+7-0-12", "7-0-x", "7- 0-12"]
        {
            assert_eq!(EventId::parse(other), None, "{other}");
        }
    }
}
