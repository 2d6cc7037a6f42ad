//! One line about all verified receipts: how many there are, who signed them, from when to when, and
//! whether the clock jumped.

use std::collections::{BTreeMap, HashMap};

use jiff::{SignedDuration, Timestamp};
use receipt::PublicKey;
use serde::Serialize;
use store::read::ReceiptStamp;

use crate::output::plain;

/// The time by which a receipt may be older than its predecessor: clocks are adjusted in small
/// steps.
const BACK_MAX: SignedDuration = SignedDuration::from_secs(1);

/// The time between two receipts of a chain from which on the clock may have jumped ahead.
const AHEAD_MAX: SignedDuration = SignedDuration::from_hours(24);

/// Facts about many receipts, gathered one by one.
#[derive(Default)]
pub(super) struct Overview {
    receipts_by_issuer: BTreeMap<String, u64>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    latest_of_chain: HashMap<String, Timestamp>,
    back: u64,
    ahead: u64,
    /// The chain and the number of the first receipt after a jump.
    jumped_at: Option<(String, u64)>,
}

impl Overview {
    /// Adds the next receipt of its chain.
    pub(super) fn add(&mut self, stamp: ReceiptStamp) {
        *self.receipts_by_issuer.entry(stamp.issuer).or_default() += 1;
        let Ok(at) = stamp.issued_at.parse::<Timestamp>() else {
            return;
        };
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = self.last.max(Some(at));
        let previous = self.latest_of_chain.insert(stamp.chain_id.clone(), at);
        let Some(passed) = previous.map(|previous| at.duration_since(previous)) else {
            return;
        };
        let is_back = passed < -BACK_MAX;
        let is_ahead = passed > AHEAD_MAX;
        self.back += u64::from(is_back);
        self.ahead += u64::from(is_ahead);
        if is_back || is_ahead {
            self.jumped_at.get_or_insert((stamp.chain_id, stamp.sequence));
        }
    }

    /// Returns the line. `known` are the keys whose fingerprints it can name.
    pub(super) fn line(&self, chains: Chains, known: &[PublicKey]) -> String {
        let Chains { all, broken, receipts } = chains;
        let verdict = match broken {
            0 => "all intact".to_owned(),
            broken => format!("{broken} BROKEN"),
        };
        let mut parts =
            vec![format!("{}, {}, {verdict}", plural(all, "chain"), plural(receipts, "receipt"))];
        if let (Some(first), Some(last)) = (self.first, self.last) {
            parts.push(format!("{first:.3} to {last:.3}, {}", self.jumps()));
        }
        let signers: Vec<String> =
            self.receipts_by_issuer.keys().map(|issuer| name(issuer, known)).collect();
        if !signers.is_empty() {
            parts.push(format!("signed by {}", signers.join(", ")));
        }
        parts.join("; ")
    }

    /// Returns the same facts for programs.
    pub(super) fn facts(&self, known: &[PublicKey]) -> OverviewFacts {
        OverviewFacts {
            first: self.first.map(|at| format!("{at:.3}")),
            last: self.last.map(|at| format!("{at:.3}")),
            signers: self.receipts_by_issuer.keys().map(|issuer| name(issuer, known)).collect(),
            clock_jumps: ClockJumps { back: self.back, ahead: self.ahead },
        }
    }

    fn jumps(&self) -> String {
        let Some((chain, sequence)) = &self.jumped_at else {
            return "no clock jumps".to_owned();
        };
        format!(
            "the clock went back {} times and ahead by more than a day {} times, first at receipt \
             {sequence} of chain {}",
            self.back,
            self.ahead,
            plain(chain)
        )
    }
}

/// The facts about all receipts in the output for programs.
#[derive(Serialize)]
pub(super) struct OverviewFacts {
    first: Option<String>,
    last: Option<String>,
    signers: Vec<String>,
    clock_jumps: ClockJumps,
}

/// The number of times that the clock went back, and ahead by more than a day.
#[derive(Serialize)]
struct ClockJumps {
    back: u64,
    ahead: u64,
}

/// The number of chains, of those that are broken, and of receipts.
#[derive(Clone, Copy)]
pub(super) struct Chains {
    pub(super) all: u64,
    pub(super) broken: u64,
    pub(super) receipts: u64,
}

fn plural(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Returns the fingerprint of the key that an issuer's id names, if the key is known.
fn name(issuer: &str, known: &[PublicKey]) -> String {
    let key = known.iter().find(|key| key.did() == issuer);
    key.map_or_else(|| plain(issuer), |key| key.fingerprint().to_string())
}

#[cfg(test)]
mod tests {
    use receipt::SigningKey;

    use super::*;

    fn stamp(chain: &str, sequence: u64, issued_at: &str) -> ReceiptStamp {
        let (chain_id, issued_at) = (chain.to_owned(), issued_at.to_owned());
        ReceiptStamp { chain_id, sequence, issuer: "did:x:1".to_owned(), issued_at }
    }

    #[test]
    fn one_line_says_how_many_receipts_from_when_and_by_whom() {
        let key = SigningKey::from_seed(&[7; 32]).public();
        let mut overview = Overview::default();
        overview.add(ReceiptStamp { issuer: key.did(), ..stamp("a", 1, "2026-02-03T09:00:00Z") });
        overview.add(stamp("a", 2, "2026-02-04T09:00:00Z"));
        overview.add(stamp("b", 1, "2026-02-01T09:00:00Z"));
        let line =
            overview.line(Chains { all: 2, broken: 0, receipts: 3 }, std::slice::from_ref(&key));
        assert_eq!(
            line,
            format!(
                "2 chains, 3 receipts, all intact; 2026-02-01T09:00:00.000Z to \
                 2026-02-04T09:00:00.000Z, no clock jumps; signed by {}, did:x:1",
                key.fingerprint()
            )
        );
    }

    #[test]
    fn clock_jumps_are_counted_within_a_chain() {
        let mut overview = Overview::default();
        for (chain, sequence, at) in [
            ("a", 1, "2026-02-03T09:00:00Z"),
            ("b", 1, "2025-02-03T09:00:00Z"),
            ("a", 2, "2026-02-03T08:59:59.500Z"),
            ("a", 3, "2026-02-03T08:00:00Z"),
            ("a", 4, "2026-02-05T08:00:00Z"),
            ("a", 5, "not a time"),
        ] {
            overview.add(stamp(chain, sequence, at));
        }
        assert_eq!((overview.back, overview.ahead), (1, 1));
        let line = overview.line(Chains { all: 1, broken: 1, receipts: 1 }, &[]);
        assert!(line.starts_with("1 chain, 1 receipt, 1 BROKEN; 2025-"), "{line}");
        assert!(line.contains("first at receipt 3 of chain a; signed by did:x:1"), "{line}");
    }
}
