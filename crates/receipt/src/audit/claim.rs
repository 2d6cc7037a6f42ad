//! Statements about a chain by others: it had this many receipts, and the last had this hash.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::Report;
use crate::Hash;
use crate::checkpoint::Head;

/// A statement that a chain had reached this head.
pub(super) struct ChainClaim {
    pub(super) witness: Witness,
    pub(super) head: Head,
}

/// The source of a statement.
#[derive(Clone)]
pub(super) enum Witness {
    /// The first receipt of a later chain.
    Beginning { by: String },
    /// A checkpoint in another chain.
    Checkpoint { by: Arc<str>, sequence: u64 },
    /// A checkpoint that is kept outside the ledger.
    Kept { place: Arc<str> },
    /// The ledger's table of chains.
    Table,
}

/// The receipts of a chain that are there, and those that are still to be signed.
#[derive(Clone, Copy)]
pub(super) struct Evidence<'a> {
    pub(super) hashes: &'a [Option<Hash>],
    /// The runs of receipts without a gap: the sequence of the first of each, and its index.
    pub(super) runs: &'a [(u64, usize)],
    pub(super) promised: &'a HashMap<u64, Hash>,
}

impl Evidence<'_> {
    /// Returns the hash of the receipt in a place, if there is one; the hash is unknown if the receipt
    /// cannot be read.
    pub(super) fn at(&self, sequence: u64) -> Option<Option<Hash>> {
        let ends = self.runs.iter().skip(1).map(|(_, index)| *index).chain([self.hashes.len()]);
        let mut runs = self.runs.iter().zip(ends);
        let there = runs.find_map(|((first, index), end)| {
            let at = usize::try_from(sequence.checked_sub(*first)?).ok()?.checked_add(*index)?;
            self.hashes.get(at).filter(|_| at < end).copied()
        });
        there.or_else(|| self.promised.get(&sequence).copied().map(Some))
    }
}

impl ChainClaim {
    /// Returns what the first receipt of a chain says about the chain before it.
    pub(super) fn of_beginning(by: &str, members: &Value) -> Option<ChainClaim> {
        let head = sequenced(members.pointer("/issuer/runtime/preceding_chain")?)?;
        Some(ChainClaim { witness: Witness::Beginning { by: by.to_owned() }, head })
    }

    /// Reports whether a receipt states it.
    pub(super) fn is_signed(&self) -> bool {
        match self.witness {
            Witness::Beginning { .. } | Witness::Checkpoint { .. } | Witness::Kept { .. } => true,
            Witness::Table => false,
        }
    }

    /// Returns the fault if the chain does not hold what is claimed.
    pub(super) fn fault(&self, evidence: Evidence<'_>) -> Option<(Option<u64>, String)> {
        let (sequence, when) = (self.head.length, self.witness.when());
        let index = sequence.checked_sub(1)?;
        match evidence.at(sequence) {
            None => Some((
                None,
                format!(
                    "the chain has {} receipts, but had {sequence} {when}: the end of the chain is \
                     missing",
                    evidence.hashes.len()
                ),
            )),
            Some(found) if found == Some(self.head.hash) => None,
            Some(_) => {
                let since = self.witness.since();
                Some((Some(index), format!("receipt {sequence} has changed since {since}")))
            }
        }
    }

    /// Returns a report if the chain had more receipts than it expired with.
    pub(super) fn contradicts(&self, gone: &Head) -> Option<Report> {
        let Head { chain_id, length, hash } = &self.head;
        let same = *length < gone.length || (*length == gone.length && *hash == gone.hash);
        let words = || {
            let when = self.witness.when();
            format!("the chain expired with {} receipts, but had {length} {when}", gone.length)
        };
        (!same).then(|| Report::broken(chain_id, words()))
    }

    pub(super) fn missing(&self) -> Report {
        let names = match &self.witness {
            Witness::Beginning { by } => format!("chain {by} names it as its preceding chain"),
            Witness::Checkpoint { by, sequence } => {
                format!("the checkpoint in receipt {sequence} of chain {by} names it")
            }
            Witness::Kept { place } => format!("the checkpoint in {place} names it"),
            Witness::Table => "the table of chains lists it".to_owned(),
        };
        Report::broken(&self.head.chain_id, format!("the chain is missing: {names}"))
    }
}

impl Witness {
    fn when(&self) -> String {
        match self {
            Witness::Beginning { by } => format!("when chain {by} began"),
            Witness::Checkpoint { by, sequence } => {
                format!("at the checkpoint in receipt {sequence} of chain {by}")
            }
            Witness::Kept { place } => format!("at the checkpoint in {place}"),
            Witness::Table => "according to the table of chains".to_owned(),
        }
    }

    fn since(&self) -> String {
        match self {
            Witness::Beginning { by } => format!("chain {by} began"),
            Witness::Checkpoint { by, sequence } => {
                format!("the checkpoint in receipt {sequence} of chain {by}")
            }
            Witness::Kept { place } => format!("the checkpoint in {place}"),
            Witness::Table => "it was filed".to_owned(),
        }
    }
}

/// Returns notes on statements about chains that are not there and need not be.
pub(super) fn unchecked(claims: &[ChainClaim]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut others = HashSet::new();
    for claim in claims {
        let chain_id = claim.head.chain_id.as_str();
        match claim.witness {
            Witness::Beginning { .. } => {
                notes.push(format!("note: the preceding chain, {chain_id}, is not in this file"));
            }
            Witness::Checkpoint { .. } | Witness::Kept { .. } | Witness::Table => {
                others.insert(chain_id);
            }
        }
    }
    if !others.is_empty() {
        let count = others.len();
        notes.push(format!("note: checkpoints name {count} chains that are not in this file"));
    }
    notes
}

/// Reads a head whose length is called a sequence.
pub(super) fn sequenced(value: &Value) -> Option<Head> {
    Some(Head {
        chain_id: value["chain_id"].as_str()?.to_owned(),
        length: value["sequence"].as_u64()?,
        hash: value["hash"].as_str()?.parse().ok()?,
    })
}
