//! Questions of a server that its client never gets. They are recorded by number, so that a server
//! that floods the gate does not fill the ledger: once for each call, and outside of calls the first
//! one at once and the others of a minute together.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use mcp::ErrorObject;
use mcp::error::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, OVERLOADED};
use store::Store;
use tokio::time::Instant;

use crate::question::{AskingCall, QuestionOrigin, RefusedQuestions};
use crate::{GateSettings, limits};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QuestionRefusal {
    OutsideCalls,
    /// The connection belongs to no client.
    Shared,
    /// The call has asked often enough.
    CallBound,
    /// Too many requests for roots at a time.
    RootsBound,
    RootsSize,
}

impl QuestionRefusal {
    pub(super) fn error(self, method: &str) -> ErrorObject {
        let (code, message) = match self {
            QuestionRefusal::OutsideCalls => {
                (INVALID_REQUEST, " is possible only while a call of the client runs".to_owned())
            }
            QuestionRefusal::Shared => {
                let words = ": method not found: the connection is shared by all clients";
                (METHOD_NOT_FOUND, words.to_owned())
            }
            QuestionRefusal::CallBound => {
                let most = limits::CALL_QUESTIONS_MAX;
                (OVERLOADED, format!(": a call may ask its client {most} times at most"))
            }
            QuestionRefusal::RootsBound => {
                (OVERLOADED, ": too many requests at a time, try again".to_owned())
            }
            QuestionRefusal::RootsSize => {
                let most = limits::ROOTS_PARAMS_BYTES_MAX;
                (INVALID_PARAMS, format!(": params over {most} bytes"))
            }
        };
        ErrorObject::new(code, format!("{method}{message}"))
    }
}

/// Refused questions by reason and method.
#[derive(Default)]
pub(super) struct RefusalCounts(BTreeMap<(QuestionRefusal, &'static str), RefusalCount>);

#[derive(Default)]
struct RefusalCount {
    unrecorded: u64,
    recorded_at: Option<Instant>,
}

impl RefusalCounts {
    pub(super) fn add(&mut self, refusal: QuestionRefusal, method: &'static str) {
        self.0.entry((refusal, method)).or_default().unrecorded += 1;
    }

    /// Counts a question, and returns the number of those to be recorded now.
    fn add_due(
        &mut self,
        refusal: QuestionRefusal,
        method: &'static str,
        now: Instant,
    ) -> Option<u64> {
        let count = self.0.entry((refusal, method)).or_default();
        count.unrecorded += 1;
        let pause = |at: Instant| now.duration_since(at) < limits::OVERUSE_RECORD_EVERY;
        if count.recorded_at.is_some_and(pause) {
            return None;
        }
        count.recorded_at = Some(now);
        Some(std::mem::take(&mut count.unrecorded))
    }
}

/// Records the refused questions of one connection to a server.
pub(super) struct RefusalLog {
    pub(super) store: Store,
    pub(super) settings: Arc<ArcSwap<GateSettings>>,
    pub(super) origin: QuestionOrigin,
}

impl RefusalLog {
    /// Counts a question outside of calls, and records it if that is due.
    pub(super) fn add(
        &self,
        counts: &mut RefusalCounts,
        refusal: QuestionRefusal,
        method: &'static str,
    ) {
        if let Some(count) = counts.add_due(refusal, method, Instant::now()) {
            self.record(None, refusal, method, count);
        }
    }

    /// Records what is not recorded yet of a call, or of a connection that closes.
    pub(super) fn finish(&self, call: Option<&AskingCall>, counts: RefusalCounts) {
        let unrecorded = counts.0.into_iter().filter(|(_, count)| count.unrecorded > 0);
        for ((refusal, method), count) in unrecorded {
            self.record(call, refusal, method, count.unrecorded);
        }
    }

    fn record(
        &self,
        call: Option<&AskingCall>,
        refusal: QuestionRefusal,
        method: &str,
        count: u64,
    ) {
        let reason = refusal.error(method).message;
        let refused = RefusedQuestions { origin: &self.origin, call, method, reason, count };
        // No caller waits for the commit: the server gets its error either way.
        drop(self.store.append(refused.entry(&self.settings.load())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn outside_of_calls_a_minute_has_one_record_of_each_reason() {
        let mut counts = RefusalCounts::default();
        let mut add =
            |method| counts.add_due(QuestionRefusal::OutsideCalls, method, Instant::now());
        assert_eq!(add("sampling/createMessage"), Some(1));
        for _ in 0..1000 {
            assert_eq!(add("sampling/createMessage"), None);
        }
        assert_eq!(add("elicitation/create"), Some(1));
        tokio::time::advance(limits::OVERUSE_RECORD_EVERY).await;
        assert_eq!(add("sampling/createMessage"), Some(1001));
    }
}
