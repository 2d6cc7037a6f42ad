//! The messages of a session that belong to no request: a queue that waits for the client's GET. A
//! newer GET takes over from an older one without losing queued messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::stream::{self, Stream};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits;
use crate::message::Message;
use crate::peer::{ConnectionClosed, lock};

#[derive(Default)]
pub(super) struct StandingStream {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Message>,
    /// Counts the GETs; only the last one is served.
    stream: u64,
    is_open: bool,
    left: Option<Instant>,
    ended: Option<String>,
}

impl StandingStream {
    pub(super) fn push(&self, message: Message) -> Result<(), ConnectionClosed> {
        let mut state = lock(&self.state);
        if let Some(reason) = &state.ended {
            return Err(ConnectionClosed(reason.clone()));
        }
        let bound = if state.is_open {
            limits::OUTBOX_MESSAGES_MAX
        } else {
            limits::HTTP_BACKLOG_MESSAGES_MAX
        };
        while state.queue.len() >= bound {
            state.queue.pop_front();
        }
        state.queue.push_back(message);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Ends the open stream, and every later one at once.
    pub(super) fn end(&self, reason: &str) {
        lock(&self.state).ended.get_or_insert_with(|| reason.to_owned());
        self.changed.notify_waiters();
    }

    pub(super) fn is_open(&self) -> bool {
        lock(&self.state).is_open
    }

    /// Returns the time the client left the last stream.
    pub(super) fn left(&self) -> Option<Instant> {
        lock(&self.state).left
    }

    /// Returns the messages from now on, including queued ones, until a newer stream is opened.
    pub(super) fn open(self: Arc<Self>) -> impl Stream<Item = Message> + Send + 'static {
        let number = {
            let mut state = lock(&self.state);
            state.stream += 1;
            state.is_open = true;
            state.stream
        };
        self.changed.notify_waiters();
        stream::unfold(Reader { standing: self, number }, |reader| async move {
            let message = reader.next().await?;
            Some((message, reader))
        })
    }
}

struct Reader {
    standing: Arc<StandingStream>,
    number: u64,
}

impl Reader {
    async fn next(&self) -> Option<Message> {
        loop {
            // Created before the state is read, so that no change in between is missed.
            let changed = self.standing.changed.notified();
            {
                let mut state = lock(&self.standing.state);
                if state.stream != self.number {
                    return None;
                }
                if let Some(message) = state.queue.pop_front() {
                    return Some(message);
                }
                if state.ended.is_some() {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = lock(&self.standing.state);
        if state.stream == self.number {
            state.is_open = false;
            state.left = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};

    use super::*;
    use crate::message::Notification;

    fn push(standing: &StandingStream, method: usize) {
        let notification = Notification { method: method.to_string(), params: None };
        standing.push(notification.into()).unwrap();
    }

    fn method(message: Option<Message>) -> Option<String> {
        match message? {
            Message::Notification(notification) => Some(notification.method),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn without_a_stream_the_oldest_messages_leave_first() {
        let standing = Arc::new(StandingStream::default());
        for number in 0..limits::HTTP_BACKLOG_MESSAGES_MAX + 2 {
            push(&standing, number);
        }
        let mut stream = Box::pin(standing.clone().open());
        assert_eq!(method(stream.next().await).as_deref(), Some("2"));
    }

    #[tokio::test]
    async fn a_newer_stream_takes_over_and_the_end_comes_after_the_queue() {
        let standing = Arc::new(StandingStream::default());
        let mut older = Box::pin(standing.clone().open());
        assert!(older.next().now_or_never().is_none());
        let mut newer = Box::pin(standing.clone().open());
        assert!(older.next().await.is_none());
        drop(older);
        assert!(standing.is_open());
        push(&standing, 7);
        standing.end("over");
        assert_eq!(method(newer.next().await).as_deref(), Some("7"));
        assert!(newer.next().await.is_none());
        drop(newer);
        assert!(!standing.is_open() && standing.left().is_some());
    }
}
