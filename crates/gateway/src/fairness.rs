//! Bounds on what one token may use of what all callers share: calls in flight and their bytes, the
//! slots of a server, requests per minute, and the ledger.

mod slots;

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::{Code, Refusal};
use serde_json::json;
use store::ShareExcess;
use tokio::time::Instant;

pub(crate) use crate::fairness::slots::{CallSlot, CallSlots};
use crate::limits::{CALL_BYTES_MAX, CALLS_MAX, OVERUSE_RECORD_EVERY};

/// Returns the part of a bound that one token may use: with half, the others keep the rest.
pub(crate) const fn share(bound: usize) -> usize {
    bound / 2
}

/// The calls in flight, by token.
#[derive(Default)]
pub(crate) struct CallShares {
    state: Mutex<ShareState>,
}

#[derive(Default)]
struct ShareState {
    all: CallLoad,
    by_token: HashMap<Arc<str>, CallLoad>,
    /// The time of the latest recorded refusal of each token.
    recorded: HashMap<Arc<str>, Instant>,
}

#[derive(Clone, Copy, Default)]
struct CallLoad {
    calls: usize,
    bytes: usize,
}

/// A call in flight; dropping it gives its share back.
pub(crate) struct CallShare<'a> {
    shares: &'a CallShares,
    token: Arc<str>,
    bytes: usize,
}

/// A call that would exceed a bound.
pub(crate) struct Overuse {
    pub(crate) refusal: Refusal,
    /// Only the first refusal of a while is recorded: the ledger is shared too.
    pub(crate) is_recorded: bool,
}

impl CallShares {
    /// Takes a share for a call with this many bytes of arguments.
    pub(crate) fn enter(&self, token: &Arc<str>, bytes: usize) -> Result<CallShare<'_>, Overuse> {
        let mut state = self.lock();
        let own = state.by_token.get(token).copied().unwrap_or_default().with(bytes);
        let all = state.all.with(bytes);
        let refusal = if !own.fits(share(CALLS_MAX), share(CALL_BYTES_MAX)) {
            format!(
                "token '{token}' has {} calls with {} bytes running: wait for one to end",
                own.calls - 1,
                own.bytes - bytes
            )
        } else if !all.fits(CALLS_MAX, CALL_BYTES_MAX) {
            "too many calls are running: try again later".to_owned()
        } else {
            state.all = all;
            state.by_token.insert(token.clone(), own);
            return Ok(CallShare { shares: self, token: token.clone(), bytes });
        };
        let refusal = Refusal::new(Code::TooManyRequests, refusal);
        Err(Overuse { refusal, is_recorded: state.is_due(token, Instant::now()) })
    }

    /// Refuses a call of a token that exceeds its share of the ledger.
    pub(crate) fn refuse_records(&self, token: &Arc<str>, excess: ShareExcess) -> Overuse {
        let message = format!(
            "token '{token}' made {excess}: wait until some of them are a day old, or ask the \
             operator to raise that limit"
        );
        let refusal = Refusal::new(Code::LedgerShareExceeded, message);
        Overuse { refusal, is_recorded: self.lock().is_due(token, Instant::now()) }
    }

    fn lock(&self) -> MutexGuard<'_, ShareState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShareState {
    /// Reports whether a refusal of this token is to be recorded now.
    fn is_due(&mut self, token: &Arc<str>, now: Instant) -> bool {
        self.recorded.retain(|_, at| now.duration_since(*at) < OVERUSE_RECORD_EVERY);
        let is_due = !self.recorded.contains_key(token);
        if is_due {
            self.recorded.insert(token.clone(), now);
        }
        is_due
    }
}

impl CallLoad {
    fn with(self, bytes: usize) -> CallLoad {
        CallLoad { calls: self.calls + 1, bytes: self.bytes + bytes }
    }

    fn without(self, bytes: usize) -> CallLoad {
        CallLoad { calls: self.calls - 1, bytes: self.bytes - bytes }
    }

    fn fits(self, calls: usize, bytes: usize) -> bool {
        self.calls <= calls && self.bytes <= bytes
    }
}

impl Drop for CallShare<'_> {
    fn drop(&mut self) {
        let mut state = self.shares.lock();
        state.all = state.all.without(self.bytes);
        if let Some(own) = state.by_token.get_mut(&self.token) {
            *own = own.without(self.bytes);
            if own.calls == 0 {
                state.by_token.remove(&self.token);
            }
        }
    }
}

/// The requests of each token in the past minute, as buckets that refill steadily.
#[derive(Default)]
pub(crate) struct RequestRates {
    by_token: Mutex<HashMap<Arc<str>, RateBucket>>,
}

struct RateBucket {
    left: f64,
    at: Instant,
}

const MINUTE: Duration = Duration::from_secs(60);

impl RequestRates {
    /// Takes one request of the token's limit per minute.
    pub(crate) fn take(&self, token: &Arc<str>, limit: NonZeroU32) -> Result<(), Refusal> {
        self.with(token, limit, |bucket| bucket.left -= 1.0)
    }

    /// Checks that the token has a request left.
    pub(crate) fn check(&self, token: &Arc<str>, limit: NonZeroU32) -> Result<(), Refusal> {
        self.with(token, limit, |_| {})
    }

    fn with(
        &self,
        token: &Arc<str>,
        limit: NonZeroU32,
        then: impl FnOnce(&mut RateBucket),
    ) -> Result<(), Refusal> {
        let mut by_token = self.by_token.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, limit) = (Instant::now(), f64::from(limit.get()));
        // A bucket that had a minute to refill is as good as a new one.
        by_token.retain(|_, bucket| now.duration_since(bucket.at) < MINUTE);
        let bucket = by_token.entry(token.clone()).or_insert(RateBucket { left: limit, at: now });
        let refilled = now.duration_since(bucket.at).as_secs_f64() / MINUTE.as_secs_f64() * limit;
        bucket.left = (bucket.left + refilled).min(limit);
        bucket.at = now;
        if bucket.left >= 1.0 {
            then(bucket);
            return Ok(());
        }
        let wait = ((1.0 - bucket.left) / limit * MINUTE.as_secs_f64()).ceil();
        let message = format!(
            "token '{token}' may make {limit} requests a minute ('rate_limit'): try again in {wait} s"
        );
        let refusal = Refusal::new(Code::TooManyRequests, message);
        Err(refusal.with(json!({"retry_after_s": wait})))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use super::*;

    #[test]
    fn a_token_has_half_of_the_calls_and_of_their_bytes() {
        let shares = CallShares::default();
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        let held: Vec<_> =
            (0..share(CALLS_MAX)).map(|_| shares.enter(&one, 0).ok().unwrap()).collect();
        let refused = shares.enter(&one, 0).err().unwrap();
        assert_eq!((refused.refusal.code, refused.is_recorded), (Code::TooManyRequests, true));
        assert!(!shares.enter(&one, 0).err().unwrap().is_recorded, "once is enough");
        assert!(shares.enter(&two, 0).is_ok());
        drop(held);
        let _large = shares.enter(&one, share(CALL_BYTES_MAX)).ok().unwrap();
        assert!(shares.enter(&one, 1).is_err());
        let _other = shares.enter(&two, share(CALL_BYTES_MAX)).ok().unwrap();
        assert!(shares.enter(&"three".into(), 1).is_err(), "all is all");
        let excess = ShareExcess::Records { used: 600, limit: 1_000 };
        let refused = shares.refuse_records(&"four".into(), excess);
        assert_eq!((refused.refusal.code, refused.is_recorded), (Code::LedgerShareExceeded, true));
        assert!(!shares.refuse_records(&"four".into(), excess).is_recorded, "once is enough");
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_refills_steadily() {
        let (rates, limit) = (RequestRates::default(), NonZeroU32::new(6).unwrap());
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        for _ in 0..6 {
            rates.check(&one, limit).unwrap();
            rates.take(&one, limit).unwrap();
        }
        let refusal = rates.check(&one, limit).unwrap_err();
        assert!(refusal.message.ends_with("try again in 10 s"), "{}", refusal.message);
        rates.take(&two, limit).unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        rates.take(&one, limit).unwrap();
        assert!(rates.take(&one, limit).is_err());
    }
}
