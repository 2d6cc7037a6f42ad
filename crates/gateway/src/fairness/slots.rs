//! Slots of a server with a bound on concurrent calls. A free slot goes to the waiting token that
//! holds the fewest, so that one token keeps at most half of them while others wait. Alone it may use
//! all of them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

pub(crate) struct CallSlots {
    bound: usize,
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    taken: usize,
    /// The slots that were given out so far, to tell the tokens that wait longest.
    given: u64,
    by_token: HashMap<Arc<str>, TokenSlots>,
    /// Calls without a slot, in their order; there are none while a slot is free.
    waiting: VecDeque<WaitingCall>,
}

#[derive(Clone, Copy, Default)]
struct TokenSlots {
    held: usize,
    /// The number of the latest slot.
    latest: u64,
}

struct WaitingCall {
    token: Arc<str>,
    slot: oneshot::Sender<CallSlot>,
}

/// A slot of a running call; dropping it gives it to the next one.
pub(crate) struct CallSlot {
    slots: Arc<CallSlots>,
    token: Arc<str>,
}

impl CallSlots {
    pub(crate) fn new(bound: usize) -> Arc<CallSlots> {
        Arc::new(CallSlots { bound, state: Mutex::default() })
    }

    /// Waits for a slot. Dropping the future leaves the queue.
    pub(crate) async fn take(self: &Arc<Self>, token: &Arc<str>) -> CallSlot {
        let waiting = {
            let mut state = self.lock();
            if state.taken < self.bound {
                state.give(token);
                return self.slot(token.clone());
            }
            let (slot, waiting) = oneshot::channel();
            state.waiting.push_back(WaitingCall { token: token.clone(), slot });
            waiting
        };
        waiting.await.expect("a waiting call stays in the queue until it gets its slot")
    }

    fn slot(self: &Arc<Self>, token: Arc<str>) -> CallSlot {
        CallSlot { slots: self.clone(), token }
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotState {
    fn give(&mut self, token: &Arc<str>) {
        self.taken += 1;
        self.given += 1;
        let own = self.by_token.entry(token.clone()).or_default();
        own.held += 1;
        own.latest = self.given;
    }

    fn give_back(&mut self, token: &Arc<str>) {
        self.taken -= 1;
        if let Some(own) = self.by_token.get_mut(token) {
            own.held -= 1;
        }
    }

    /// Gives a slot to the call that is next, if any waits.
    fn next(&mut self) -> Option<WaitingCall> {
        self.waiting.retain(|call| !call.slot.is_closed());
        if self.waiting.is_empty() {
            self.by_token.retain(|_, own| own.held > 0);
            return None;
        }
        let rank = |call: &WaitingCall| {
            let own = self.by_token.get(&call.token).copied().unwrap_or_default();
            (own.held, own.latest)
        };
        // The first of equals: calls of one token keep their order.
        let (at, _) = self.waiting.iter().enumerate().min_by_key(|(_, call)| rank(call))?;
        let next = self.waiting.remove(at)?;
        self.give(&next.token);
        Some(next)
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        let next = {
            let mut state = self.slots.lock();
            state.give_back(&self.token);
            state.next()
        };
        if let Some(WaitingCall { token, slot }) = next {
            // A call that has stopped waiting returns its slot, which is dropped here.
            let _ = slot.send(self.slots.slot(token));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use futures_util::FutureExt;

    use super::*;

    /// Starts to wait for a slot.
    fn wait(
        slots: &Arc<CallSlots>,
        token: &str,
    ) -> std::pin::Pin<Box<dyn Future<Output = CallSlot>>> {
        let (slots, token): (_, Arc<str>) = (slots.clone(), token.into());
        let mut waiting = Box::pin(async move { slots.take(&token).await });
        assert!((&mut waiting).now_or_never().is_none());
        waiting
    }

    #[test]
    fn a_token_alone_has_all_slots_and_half_of_them_while_another_waits() {
        let slots = CallSlots::new(4);
        let greedy: Arc<str> = "greedy".into();
        let mut held: Vec<CallSlot> =
            (0..4).map(|_| slots.take(&greedy).now_or_never().unwrap()).collect();
        let mut first = wait(&slots, "greedy");
        let mut others: Vec<_> = (0..3).map(|_| wait(&slots, "other")).collect();
        let mut got = Vec::new();
        for other in &mut others[..2] {
            held.pop();
            got.push(other.now_or_never().expect("it holds fewer"));
        }
        held.pop();
        got.push((&mut first).now_or_never().expect("one against two"));
        assert!((&mut others[2]).now_or_never().is_none());
        drop(held);
        assert!((&mut others[2]).now_or_never().is_some());
    }

    #[test]
    fn tokens_take_turns_at_a_single_slot() {
        let slots = CallSlots::new(1);
        let mut running = slots.take(&"greedy".into()).now_or_never();
        let mut queue: Vec<_> = (0..3).map(|_| wait(&slots, "greedy")).collect();
        let mut other = wait(&slots, "other");
        assert!(running.take().is_some());
        let slot = (&mut other).now_or_never().expect("it has waited longest for a slot");
        drop(slot);
        assert!((&mut queue[0]).now_or_never().is_some());
    }

    #[test]
    fn a_call_that_stops_waiting_takes_no_slot() {
        let slots = CallSlots::new(1);
        let running = slots.take(&"one".into()).now_or_never();
        let (gone, mut other) = (wait(&slots, "two"), wait(&slots, "three"));
        drop(gone);
        let granted = wait(&slots, "four");
        drop(running);
        assert!((&mut other).now_or_never().is_some());
        // The slot waits for `four`, which is dropped before it looks.
        drop(granted);
        assert!(slots.take(&"five".into()).now_or_never().is_some());
    }
}
