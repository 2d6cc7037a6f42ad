//! Tells whether a message of ours may have reached the other side: the transport notes it, and the
//! one who sent it reads it when no answer arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::trace::Trace;

/// None of its bytes was taken, or the other side refused to act on it.
const WAITING: u8 = 0;
const SENT: u8 = 1;
/// No caller waits for it any more, and it is never sent.
const WITHDRAWN: u8 = 2;
/// No caller waits for it any more, and it may have been sent.
const ABANDONED: u8 = 3;

/// The delivery of one message.
#[derive(Debug, Default)]
pub struct Delivery(AtomicU8);

impl Delivery {
    /// Reports whether the other side may have got the message and acted on it.
    pub fn is_sent(&self) -> bool {
        matches!(self.0.load(Ordering::SeqCst), SENT | ABANDONED)
    }

    /// Notes that the first bytes are about to be handed over. Returns false if they must not be,
    /// because no caller waits for the answer any more.
    pub(crate) fn begin(&self) -> bool {
        self.change(WAITING, SENT) || self.0.load(Ordering::SeqCst) != WITHDRAWN
    }

    /// Notes that no byte was taken after all, or that the other side refused to act on the message.
    pub(crate) fn undo(&self) {
        self.change(SENT, WAITING);
    }

    /// Settles whether it was sent: if not, it never will be.
    pub(crate) fn settle(&self) {
        if !self.change(WAITING, WITHDRAWN) {
            self.change(SENT, ABANDONED);
        }
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.0.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// The part of a message that is for its transport.
#[derive(Clone, Copy)]
pub struct Dispatch<'a> {
    pub delivery: &'a Arc<Delivery>,
    /// Sent next to the message, if the transport has a place for it.
    pub trace: Option<&'a Trace>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_nobody_waits_for_is_either_sent_or_never_will_be() {
        let waiting = Delivery::default();
        waiting.settle();
        assert!(!waiting.begin(), "it must not be sent later");
        assert!(!waiting.is_sent());

        let sent = Delivery::default();
        assert!(sent.begin() && sent.is_sent());
        sent.settle();
        sent.undo();
        assert!(sent.is_sent(), "what was reported stays true");
        assert!(sent.begin(), "the rest of its bytes may follow");
    }

    #[test]
    fn a_message_that_was_not_taken_or_was_refused_is_not_sent() {
        let refused = Delivery::default();
        assert!(refused.begin());
        refused.undo();
        assert!(!refused.is_sent());
        assert!(refused.begin() && refused.is_sent(), "it may be sent again");
    }
}
