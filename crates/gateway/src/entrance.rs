//! Admission of requests: the caller behind a token, and the treatment of wrong tokens and codes.
//! Only their answers are delayed, so no one else waits.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, header};
use domain::{Caller, Code, Refusal};
use serde_json::json;
use tokio::time::Instant;

use crate::Gateway;
use crate::front::visitor::Visitor;
use crate::limits::{
    FAILED_ENTRIES_FREE, FAILED_ENTRY_DELAY, FAILED_ENTRY_SOURCES_MAX, FAILED_ENTRY_WINDOW,
};
use crate::operator::decision::{DecisionSource, DecisionSubject};

/// The recent wrong tokens and codes, by address.
#[derive(Default)]
pub(crate) struct FailedEntries {
    by_address: Mutex<HashMap<Option<IpAddr>, FailureCount>>,
}

struct FailureCount {
    since: Instant,
    count: u32,
}

impl FailedEntries {
    /// Counts a failure and returns how many there were from this address in a while.
    fn count(&self, address: Option<IpAddr>, now: Instant) -> u32 {
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if by_address.len() >= FAILED_ENTRY_SOURCES_MAX && !by_address.contains_key(&address) {
            let oldest = by_address.iter().min_by_key(|(_, failures)| failures.since);
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                by_address.remove(&oldest);
            }
        }
        let fresh = FailureCount { since: now, count: 0 };
        let failures = by_address.entry(address).or_insert(fresh);
        if now.duration_since(failures.since) >= FAILED_ENTRY_WINDOW {
            *failures = FailureCount { since: now, count: 0 };
        }
        failures.count = failures.count.saturating_add(1);
        failures.count
    }
}

impl Gateway {
    /// Returns the caller behind a request's token, `None` without a valid one. Too many connections
    /// of one token are refused.
    pub async fn entering(
        &self,
        visitor: &Visitor,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<Caller>>, Refusal> {
        let caller = self.tokens().bearer(headers);
        match &caller {
            Some(caller) => visitor.admit(&caller.token)?,
            None if headers.contains_key(header::AUTHORIZATION) => {
                self.failed_entry(visitor.address(headers), "token").await;
            }
            None => {}
        }
        Ok(caller)
    }

    /// Counts a wrong token or code. From the tenth on its answer is delayed, and the tenth is
    /// recorded for all of them.
    pub async fn failed_entry(&self, address: Option<IpAddr>, shown: &'static str) {
        let failures = self.shared.failed_entries.count(address, Instant::now());
        if failures == FAILED_ENTRIES_FREE {
            let source = spelt(address);
            tracing::warn!(address = source, "wrong tokens or codes, slowed down from now on");
            let details = json!({"decision": "failed_entries", "address": source, "shown": shown,
                "failures": failures});
            let by = DecisionSource { source: "api", request_id: None };
            let message = format!("{failures} wrong tokens or codes from {source}");
            let (about, refusal) =
                (DecisionSubject::gate(), Refusal::new(Code::Unauthorized, message));
            let recorded = self.record_event(&by, about, Some(refusal), details).await;
            if let Err(refusal) = recorded {
                tracing::error!(message = refusal.message, "failed entries are not recorded");
            }
        }
        if failures >= FAILED_ENTRIES_FREE {
            tokio::time::sleep(FAILED_ENTRY_DELAY).await;
        }
    }

    /// Records that a browser signs in to the page.
    pub async fn record_sign_in(
        &self,
        address: Option<IpAddr>,
        request_id: Option<String>,
    ) -> Result<(), Refusal> {
        let by = DecisionSource { source: "api", request_id };
        let details = json!({"decision": "page_sign_in", "address": spelt(address)});
        self.record_decision(&by, DecisionSubject::gate(), details).await
    }

    /// Checks that the caller has a request left of its `rate_limit`.
    pub(crate) fn check_rate(&self, caller: &Caller) -> Result<(), Refusal> {
        match self.settings().rate_limit {
            Some(limit) => self.shared.rates.check(&caller.token, limit),
            None => Ok(()),
        }
    }

    /// Takes one request of the caller's `rate_limit`.
    pub(crate) fn take_request(&self, caller: &Caller) -> Result<(), Refusal> {
        match self.settings().rate_limit {
            Some(limit) => self.shared.rates.take(&caller.token, limit),
            None => Ok(()),
        }
    }
}

fn spelt(address: Option<IpAddr>) -> String {
    address.map_or_else(|| "this machine".to_owned(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failures_count_by_address_and_are_forgotten() {
        let failures = FailedEntries::default();
        let (one, two) = (Some(IpAddr::from([192, 0, 2, 1])), None);
        assert_eq!(failures.count(one, Instant::now()), 1);
        assert_eq!(failures.count(one, Instant::now()), 2);
        assert_eq!(failures.count(two, Instant::now()), 1);
        tokio::time::advance(FAILED_ENTRY_WINDOW).await;
        assert_eq!(failures.count(one, Instant::now()), 1);
    }

    #[test]
    fn the_number_of_addresses_is_bounded() {
        let failures = FailedEntries::default();
        for n in 0..=FAILED_ENTRY_SOURCES_MAX {
            let address = std::net::Ipv4Addr::from_bits(u32::try_from(n).unwrap_or_default());
            failures.count(Some(address.into()), Instant::now());
        }
        let kept = failures.by_address.lock().unwrap_or_else(PoisonError::into_inner).len();
        assert_eq!(kept, FAILED_ENTRY_SOURCES_MAX);
    }
}
