//! The checkpoints of a ledger in their order. Replayed, they give the heads of all chains at each
//! of them, and so the digest that it must state.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::Hash;
use crate::checkpoint::{self, Checkpoint, Head};

#[derive(Default)]
pub(super) struct History {
    moments: Vec<Moment>,
    /// The receipts that say that chains expired.
    expiries: Vec<Expiry>,
    required: Option<Required>,
}

/// A checkpoint and the place of its receipt.
pub(super) struct Moment {
    pub(super) chain_id: Arc<str>,
    pub(super) sequence: u64,
    pub(super) checkpoint: Checkpoint,
}

struct Expiry {
    gone: String,
    chain_id: String,
    sequence: u64,
}

struct Required {
    digest: Hash,
    count: Option<u64>,
}

/// A fault of a checkpoint: its chain, the index of its receipt, and the words.
pub(super) type CheckpointFault = (String, u64, String);

/// The heads at some moment, by chain.
#[derive(Default)]
struct Heads {
    by_chain: BTreeMap<String, Head>,
    /// A checkpoint left out some chains, so that heads may be out of date.
    is_partial: bool,
}

impl History {
    pub(super) fn push(&mut self, moment: Moment) {
        self.moments.push(moment);
    }

    pub(super) fn expire(&mut self, gone: &str, chain_id: &str, sequence: u64) {
        let (gone, chain_id) = (gone.to_owned(), chain_id.to_owned());
        self.expiries.push(Expiry { gone, chain_id, sequence });
    }

    pub(super) fn require(&mut self, digest: Hash, count: Option<u64>) {
        self.required = Some(Required { digest, count });
    }

    /// Returns a fault if a required checkpoint is not there.
    pub(super) fn absent(&self) -> Option<String> {
        let digest = self.required.as_ref()?.digest;
        let found = self.moments.iter().any(|moment| self.is_required(&moment.checkpoint));
        (!found).then(|| {
            format!(
                "no checkpoint has the head {digest}: what was recorded up to it is missing, or \
                 the head is of another ledger"
            )
        })
    }

    fn is_required(&self, checkpoint: &Checkpoint) -> bool {
        self.required.as_ref().is_some_and(|Required { digest, count }| {
            checkpoint.digest == *digest && count.is_none_or(|count| checkpoint.count == count)
        })
    }

    /// Replays the checkpoints, and returns the faults.
    pub(super) fn faults(&self) -> Vec<CheckpointFault> {
        let mut faults = Vec::new();
        let mut after: HashMap<(&str, u64), Vec<&Moment>> = HashMap::new();
        let mut first = Vec::new();
        let known: HashSet<(&str, u64)> = self.moments.iter().map(Moment::place).collect();
        for moment in &self.moments {
            let before = moment.checkpoint.previous.as_ref();
            match before.map(|head| (head.chain_id.as_str(), head.length)) {
                Some(place) if known.contains(&place) => {
                    after.entry(place).or_default().push(moment);
                }
                // A predecessor that is missing is a fault of its chain, unless that expired.
                Some(_) | None => first.push(moment),
            }
        }
        for start in first {
            let (mut heads, mut next) = (Heads::default(), Some(start));
            let mut ahead: Vec<&Expiry> = self.expiries.iter().collect();
            while let Some(moment) = next {
                heads.advance(moment, &mut ahead);
                let followers = after.remove(&moment.place()).unwrap_or_default();
                // The digest covers all heads, so that the last one is enough.
                if followers.is_empty() || self.is_required(&moment.checkpoint) {
                    faults.extend(heads.fault(moment));
                }
                faults.extend(followers.iter().skip(1).map(|other| {
                    other.fault(
                        "another checkpoint follows the same one: the ledger was replaced by an \
                         earlier copy",
                    )
                }));
                next = followers.first().copied();
            }
        }
        faults
    }
}

impl Moment {
    fn place(&self) -> (&str, u64) {
        (&self.chain_id, self.sequence)
    }

    fn fault(&self, words: &str) -> CheckpointFault {
        let sequence = self.sequence;
        let words = format!("checkpoint in receipt {sequence}: {words}");
        (self.chain_id.to_string(), sequence.saturating_sub(1), words)
    }
}

impl Heads {
    /// Applies a checkpoint, and the expiries that came before it.
    fn advance(&mut self, moment: &Moment, ahead: &mut Vec<&Expiry>) {
        for head in &moment.checkpoint.heads {
            self.by_chain.insert(head.chain_id.clone(), head.clone());
        }
        ahead.retain(|Expiry { gone, chain_id, sequence }| {
            let is_past = self.by_chain.get(chain_id).is_some_and(|head| head.length >= *sequence);
            if is_past {
                self.by_chain.remove(gone);
            }
            !is_past
        });
        self.is_partial = moment.checkpoint.omitted > 0;
    }

    /// Compares the digest of the checkpoint just applied, if all heads are known.
    fn fault(&self, moment: &Moment) -> Option<CheckpointFault> {
        let Checkpoint { count, digest, .. } = &moment.checkpoint;
        let is_whole = !self.is_partial && self.by_chain.len() as u64 == *count;
        let fits = !is_whole || checkpoint::digest(self.by_chain.values()) == *digest;
        (!fits).then(|| moment.fault("its digest is not that of the heads of all chains"))
    }
}
