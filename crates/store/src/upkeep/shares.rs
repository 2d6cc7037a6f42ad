//! The tokens that used more than their share of the ledger, where the records of the last day alone
//! exceed its limits. Those records are never deleted, so such a token is refused.

use std::collections::HashMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use super::meter::DayUse;
use super::rules::RetentionRules;

/// A token's use of the ledger in the last day, which is more than half of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareExcess {
    Records { used: u64, limit: u64 },
    Megabytes { used: u64, limit: u64 },
}

impl fmt::Display for ShareExcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShareExcess::Records { used, limit } => {
                write!(
                    f,
                    "{used} records within a day, and 'ledger.max_records' allows {limit} for all"
                )
            }
            ShareExcess::Megabytes { used, limit } => {
                write!(f, "{used} MB of records within a day, ")?;
                write!(f, "and 'ledger.max_size_mb' allows {limit} MB for all")
            }
        }
    }
}

/// The tokens to refuse, shared by the writer and its callers.
#[derive(Default)]
pub(crate) struct RecordShares(RwLock<HashMap<String, ShareExcess>>);

impl RecordShares {
    pub(crate) fn excess(&self, token: &str) -> Option<ShareExcess> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(token).copied()
    }

    pub(crate) fn set(&self, over: HashMap<String, ShareExcess>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for (token, excess) in over.iter().filter(|(token, _)| !known.contains_key(*token)) {
            tracing::warn!(
                "the records of the last day exceed the ledger's limits; calls of token '{token}' \
                 are refused: it made {excess}"
            );
        }
        *known = over;
    }
}

/// Returns the tokens that are over their share, if the last day alone exceeds a limit.
pub(crate) fn over(day: &DayUse, rules: &RetentionRules) -> HashMap<String, ShareExcess> {
    const MEGABYTE: u64 = 1024 * 1024;
    let (records_max, bytes_max) = (rules.records_max, rules.bytes_max());
    let excess = |records: u64, bytes: u64| {
        if day.records > records_max && records > records_max / 2 {
            Some(ShareExcess::Records { used: records, limit: records_max })
        } else if day.bytes > bytes_max && bytes > bytes_max / 2 {
            Some(ShareExcess::Megabytes { used: bytes / MEGABYTE, limit: rules.megabytes_max })
        } else {
            None
        }
    };
    let tokens = day.tokens.iter();
    tokens
        .filter_map(|use_| Some((use_.token.clone(), excess(use_.records, use_.bytes)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::meter::TokenUse;
    use super::*;

    #[test]
    fn a_token_over_half_is_refused_once_the_day_is_over_the_whole() {
        let rules =
            RetentionRules { days: 90, records_max: 100, megabytes_max: 1, receipt_days: 0 };
        let mega = 1024 * 1024;
        for (what, all, token, expected) in [
            ("half of a full day", (100, 0), (90, 0), None),
            ("just its share", (101, 0), (50, 0), None),
            ("records", (101, 0), (51, 0), Some(ShareExcess::Records { used: 51, limit: 100 })),
            ("bytes of a day that fits", (50, mega), (50, mega), None),
            (
                "bytes",
                (50, 2 * mega),
                (50, 2 * mega),
                Some(ShareExcess::Megabytes { used: 2, limit: 1 }),
            ),
        ] {
            let tokens = vec![TokenUse { token: "t".to_owned(), records: token.0, bytes: token.1 }];
            let day = DayUse { records: all.0, bytes: all.1, tokens };
            assert_eq!(over(&day, &rules).get("t").copied(), expected, "{what}");
        }
    }
}
