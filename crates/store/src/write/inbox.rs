//! Messages that wait for the writer. The end of a call that was permitted is always accepted, so
//! it can never be lost here; everything else is bounded.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::INBOX_MAX;
use crate::record::Entry;
use crate::write::message::Message;

#[derive(Default)]
pub(crate) struct Inbox {
    inner: Mutex<Inner>,
    arrived: Condvar,
}

#[derive(Default)]
struct Inner {
    messages: VecDeque<Message>,
    /// The time at which the writer's thread wakes without a message; none while it is working.
    wakes_at: Option<Instant>,
    /// The thread must check again before it sleeps.
    look_again: bool,
    is_closed: bool,
}

/// The reason a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InboxError {
    Full,
    Closed,
}

impl Inbox {
    /// Adds a message and wakes the writer's thread for it.
    pub(crate) fn send(&self, message: Message) -> Result<(), InboxError> {
        self.leave(message)?;
        self.wake_by(Instant::now());
        Ok(())
    }

    /// Adds a message without waking a thread.
    pub(crate) fn leave(&self, message: Message) -> Result<(), InboxError> {
        let mut inner = self.lock();
        if inner.is_closed {
            return Err(InboxError::Closed);
        }
        if inner.messages.len() >= INBOX_MAX && is_optional(&message) {
            return Err(InboxError::Full);
        }
        inner.messages.push_back(message);
        Ok(())
    }

    /// Sleeps until there is a message, or for this long. To wake the thread, a caller clears the
    /// time and notifies it.
    pub(crate) fn wait(&self, wait: Duration) {
        let mut inner = self.lock();
        let rests = inner.messages.is_empty() && !inner.look_again && !wait.is_zero();
        inner.look_again = false;
        if rests {
            inner.wakes_at = Some(Instant::now() + wait);
            let waited =
                self.arrived.wait_timeout_while(inner, wait, |inner| inner.wakes_at.is_some());
            waited.unwrap_or_else(PoisonError::into_inner).0.wakes_at = None;
        }
    }

    /// Takes at most this many messages. Only the holder of the writer may call this.
    pub(crate) fn take(&self, most: usize) -> Vec<Message> {
        let mut inner = self.lock();
        let count = inner.messages.len().min(most);
        inner.messages.drain(..count).collect()
    }

    /// Takes the messages if they are few and need nothing but a commit.
    pub(crate) fn take_few(&self, most: usize) -> Option<Vec<Message>> {
        let mut inner = self.lock();
        let few = inner.messages.len() <= most;
        let plain = few && inner.messages.iter().all(|m| matches!(m, Message::Append(_)));
        plain.then(|| inner.messages.drain(..).collect())
    }

    /// Puts messages back. Only the holder of the writer may call this.
    pub(crate) fn put_back(&self, messages: Vec<Message>) {
        let mut inner = self.lock();
        messages.into_iter().rev().for_each(|message| inner.messages.push_front(message));
    }

    /// Ensures that the writer's thread is awake by this time.
    pub(crate) fn wake_by(&self, time: Instant) {
        let mut inner = self.lock();
        match inner.wakes_at {
            Some(at) if at <= time => {}
            Some(_) => {
                inner.wakes_at = None;
                drop(inner);
                self.arrived.notify_one();
            }
            None => inner.look_again = true,
        }
    }

    /// Accepts nothing from here on; drops the messages, and with them their waiting callers.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.is_closed = true;
        let left = std::mem::take(&mut inner.messages);
        drop(inner);
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports whether a message may be rejected: a call that has not begun or an event may, the end of
/// a call may not.
fn is_optional(message: &Message) -> bool {
    match message {
        Message::Append(submission) => match &submission.entry {
            Entry::Started(_) | Entry::Whole(..) => true,
            Entry::Ended(_) => false,
        },
        Message::Signed(_)
        | Message::Settle(_)
        | Message::Rotate(_)
        | Message::Checkpoint(_)
        | Message::Retention
        | Message::Close(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::record::CallEnd;
    use crate::record::tests::started;
    use crate::write::message::Submission;

    fn append(entry: Entry) -> Message {
        Message::Append(Submission { entry, reply: None })
    }

    #[test]
    fn a_full_inbox_turns_calls_away_and_takes_their_ends() {
        let (inbox, call) = (Inbox::default(), started());
        for _ in 0..INBOX_MAX {
            inbox.send(append(Entry::Started(Box::new(call.clone())))).unwrap();
        }
        let (start, end) = (Box::new(call.clone()), Box::new(CallEnd::interrupted(&call.id)));
        assert_eq!(inbox.send(append(Entry::Started(start.clone()))), Err(InboxError::Full));
        assert_eq!(inbox.send(append(Entry::Whole(start, end.clone()))), Err(InboxError::Full));
        inbox.send(append(Entry::Ended(end))).unwrap();
        inbox.send(Message::Settle(oneshot::channel().0)).unwrap();
        assert_eq!(inbox.take(INBOX_MAX).len(), INBOX_MAX);
        assert_eq!(inbox.take(INBOX_MAX).len(), 2);
    }

    #[test]
    fn closing_the_inbox_wakes_waiters_and_rejects_messages() {
        let (inbox, (done, mut answer)) = (Inbox::default(), oneshot::channel());
        inbox.send(Message::Settle(done)).unwrap();
        inbox.close();
        assert_eq!(answer.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(inbox.send(Message::Settle(oneshot::channel().0)), Err(InboxError::Closed));
    }
}
