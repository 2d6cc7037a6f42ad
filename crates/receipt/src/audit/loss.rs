//! Losses: what a chain had, according to those who name it, and lacks. A person can accept a loss
//! with a signed receipt, which names it exactly: it is then no fault any more, and anything beyond it
//! is one.

use serde_json::Value;

use super::claim;
use crate::checkpoint::Head;
use crate::{Hash, Runtime};

/// The type of the action with which a person accepts losses.
pub const ACTION_TYPE: &str = "agent_receipts.loss_accepted";

/// The member of `issuer.runtime` that lists them.
pub const MEMBER: &str = "accepted_losses";

/// The part of a chain that is missing: it is known to have been there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub chain_id: String,
    /// The longest head that it is known to have had.
    pub had: Option<Head>,
    /// Its last receipt that is there.
    pub left: Option<Head>,
    /// The receipts that are missing: the first and the last of each gap.
    pub missing: Vec<(u64, u64)>,
    /// The receipts whose records are missing, in the same way.
    pub records: Vec<(u64, u64)>,
    /// The number of records whose receipts are missing.
    pub lone_records: u64,
}

impl Loss {
    pub(super) fn is_any(&self) -> bool {
        !self.missing.is_empty() || !self.records.is_empty() || self.lone_records > 0
    }

    /// Returns the value that a receipt lists.
    pub fn runtime(&self) -> Runtime<'_> {
        let mut runtime = Runtime::new();
        runtime.insert("chain_id", &*self.chain_id);
        for (name, head) in [("had", &self.had), ("left", &self.left)] {
            if let Some(Head { length, hash, .. }) = head {
                let mut named = Runtime::new();
                named.insert("chain_id", &*self.chain_id);
                named.insert("sequence", *length);
                named.insert("hash", *hash);
                runtime.insert(name, named);
            }
        }
        for (name, spans) in [("receipts", &self.missing), ("records", &self.records)] {
            if !spans.is_empty() {
                runtime.insert(name, spans.iter().map(span_text).collect::<Vec<_>>());
            }
        }
        if self.lone_records > 0 {
            runtime.insert("lone_records", self.lone_records);
        }
        runtime
    }

    /// Reads the losses that a receipt lists.
    pub(super) fn all_of(members: &Value) -> Vec<Loss> {
        let listed = &members["issuer"]["runtime"][MEMBER];
        listed.as_array().into_iter().flatten().filter_map(Loss::of).collect()
    }

    fn of(value: &Value) -> Option<Loss> {
        let head = |name: &str| match &value[name] {
            Value::Null => Some(None),
            named => claim::sequenced(named).map(Some),
        };
        let spans = |name: &str| -> Option<Vec<(u64, u64)>> {
            value[name].as_array().into_iter().flatten().map(span).collect()
        };
        Some(Loss {
            chain_id: value["chain_id"].as_str()?.to_owned(),
            had: head("had")?,
            left: head("left")?,
            missing: spans("receipts")?,
            records: spans("records")?,
            lone_records: value["lone_records"].as_u64().unwrap_or(0),
        })
    }

    /// Describes the loss in a sentence.
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        if !self.missing.is_empty() {
            let spans = spans_text(&self.missing);
            let had = self.had.as_ref().map_or(String::new(), |Head { length, hash, .. }| {
                format!(" of {length}, the last with the hash {hash}")
            });
            parts.push(format!("receipts {spans}{had}"));
        }
        if !self.records.is_empty() {
            parts.push(format!("the records of receipts {}", spans_text(&self.records)));
        }
        if self.lone_records > 0 {
            parts.push(format!("the receipts of {} records", self.lone_records));
        }
        let left = match &self.left {
            Some(Head { length, hash, .. }) => format!("receipt {length} ({hash}) is its last"),
            None => "nothing of it is left".to_owned(),
        };
        format!("chain {} lacks {}; {left}", self.chain_id, parts.join(", and "))
    }

    /// Reports whether just these receipts are missing between others, or before all others.
    pub(super) fn has_gap(&self, first: u64, last: u64) -> bool {
        self.missing.contains(&(first, last))
    }

    /// Reports whether a head that the chain had is lost with it.
    pub(super) fn covers(&self, head: &Head) -> bool {
        let is_other = self.had.as_ref().is_some_and(|had| {
            had.length < head.length || (had.length == head.length && had.hash != head.hash)
        });
        !is_other && within(&self.missing, head.length)
    }

    pub(super) fn lacks_record(&self, sequence: u64) -> bool {
        within(&self.records, sequence)
    }

    /// Reports whether this receipt is the last that was left.
    pub(super) fn ends_with(&self, sequence: u64, hash: Option<Hash>) -> bool {
        self.left.as_ref().is_some_and(|left| left.length == sequence && Some(left.hash) == hash)
    }
}

fn within(spans: &[(u64, u64)], sequence: u64) -> bool {
    spans.iter().any(|(first, last)| (*first..=*last).contains(&sequence))
}

/// Joins numbers, which are in order, to spans.
pub(super) fn spans_of(numbers: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match spans.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            Some(_) | None => spans.push((number, number)),
        }
    }
    spans
}

fn span_text((first, last): &(u64, u64)) -> std::borrow::Cow<'static, str> {
    let text = if first == last { first.to_string() } else { format!("{first}-{last}") };
    text.into()
}

fn spans_text(spans: &[(u64, u64)]) -> String {
    spans.iter().map(span_text).collect::<Vec<_>>().join(", ")
}

fn span(value: &Value) -> Option<(u64, u64)> {
    let text = value.as_str()?;
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_loss_is_read_as_it_was_written() {
        let head =
            |length| Some(Head { chain_id: "c".to_owned(), length, hash: Hash::of(b"head") });
        let all = Loss {
            chain_id: "c".to_owned(),
            had: head(9),
            left: head(5),
            missing: vec![(2, 2), (6, 9)],
            records: vec![(3, 4)],
            lone_records: 7,
        };
        let chain = Loss {
            had: head(3),
            left: None,
            missing: vec![(1, 3)],
            records: Vec::new(),
            lone_records: 0,
            ..all.clone()
        };
        for loss in [all, chain] {
            let mut text = String::new();
            loss.runtime().write(&mut text);
            let value: Value = serde_json::from_str(&text).unwrap();
            let receipt = json!({"issuer": {"runtime": {MEMBER: [value]}}});
            assert_eq!(Loss::all_of(&receipt), [loss]);
        }
    }

    #[test]
    fn a_loss_covers_no_more_than_it_names() {
        let head =
            |length, hash: &[u8]| Head { chain_id: "c".to_owned(), length, hash: Hash::of(hash) };
        let (had, left) = (Some(head(9, b"9")), Some(head(5, b"5")));
        let (missing, records) = (vec![(2, 2), (6, 9)], vec![(3, 4)]);
        let (chain_id, lone_records) = ("c".to_owned(), 0);
        let loss = Loss { chain_id, had, left, missing, records, lone_records };
        let covered: Vec<u64> = (1..=10).filter(|at| loss.covers(&head(*at, b"9"))).collect();
        assert_eq!(covered, [2, 6, 7, 8, 9]);
        assert!(!loss.covers(&head(9, b"another")));
        assert!(loss.has_gap(2, 2) && !loss.has_gap(2, 3) && !loss.has_gap(6, 8));
        assert!(loss.lacks_record(4) && !loss.lacks_record(5));
        assert!(loss.ends_with(5, Some(Hash::of(b"5"))) && !loss.ends_with(4, None));
        assert_eq!(spans_of([1, 2, 4, 6, 7]), [(1, 2), (4, 4), (6, 7)]);
    }
}
