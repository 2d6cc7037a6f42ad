//! The signed account of a repair: what was lost, what was issued again, what was set aside.

use std::borrow::Cow;

use receipt::{RiskLevel, Runtime};

use crate::write::compose;
use crate::write::journal::LostEntries;
use crate::write::link::{Issuance, Link};

/// The type of the action that repairs the ledger.
pub(crate) const LEDGER_REPAIRED: &str = "agent_receipts.ledger_repaired";

/// The number of gaps that a receipt lists; their count is always complete.
const SPANS_MAX: usize = 100;

/// The damage that recovery found in the journal of one chain.
#[derive(Debug, Default)]
pub(crate) struct JournalRepair {
    pub(crate) chain_id: String,
    /// The chain's number in the tables.
    pub(crate) number: i64,
    /// Committed entries that cannot be read and were not filed.
    pub(crate) lost: LostEntries,
    /// Receipts that must have been in the chain and are in no table.
    pub(crate) lost_receipts: u64,
    /// Receipts issued anew, each naming the hash that was promised.
    pub(crate) reissued: u64,
    /// Ends of calls of which nothing else is known.
    pub(crate) ends_without_start: u64,
    /// Neither the journal nor the lock file is there, which would say what the journal held.
    pub(crate) is_gone: bool,
    /// A person ordered it: each row was looked up in the tables, and receipts are counted there.
    pub(crate) is_by_row: bool,
    /// The starts of filed calls may be missing in the journal.
    pub(crate) may_lack_starts: bool,
    /// Records of calls without an end that the journal does not know, although no line of it is lost.
    pub(crate) strange_starts: Vec<String>,
    /// The file that has the damaged lines.
    pub(crate) set_aside: Option<String>,
    /// The key of the chain, if its secret half is gone, and the chain's last receipt.
    pub(crate) missing_key: Option<String>,
    pub(crate) ended_at: Option<u64>,
}

/// Says that nothing tells what the journal of a chain held last.
pub(crate) fn gone_words(chain: &str) -> String {
    format!(
        "the journal of chain {chain} is gone, and its lock file with it: entries of its last \
         moments may be lost"
    )
}

impl JournalRepair {
    /// Reports whether the chain cannot be what it would have been, so that a receipt must say so.
    pub(crate) fn is_needed(&self) -> bool {
        !self.lost.is_empty()
            || self.lost_receipts > 0
            || self.ends_without_start > 0
            || self.missing_key.is_some()
            || self.is_gone
    }

    /// Counts the receipts that are missing before one whose place was promised.
    pub(crate) fn note_place(&mut self, promised: u64, reached: u64) {
        // Entries that are lost had receipts too, and are counted with the others.
        let expected = reached + 1 + self.lost_receipts;
        let is_elsewhere = self.missing_key.is_some();
        if let Some(gap) = promised.checked_sub(expected)
            && !is_elsewhere
        {
            self.lost_receipts += gap;
        }
    }

    /// Describes the repair in a sentence, if there was anything to repair.
    pub(crate) fn words(&self) -> Option<String> {
        if !self.is_needed() {
            return None;
        }
        let chain = &self.chain_id;
        if let Some(key) = &self.missing_key {
            return Some(format!(
                "chain {chain} could not be continued because the secret half of its key {key} is \
                 gone; what its journal held was signed in another chain"
            ));
        }
        if self.is_gone {
            return Some(gone_words(chain));
        }
        let (lost, receipts) = (self.lost.count() + self.ends_without_start, self.lost_receipts);
        let aside = match &self.set_aside {
            Some(file) => format!("; damaged lines are in writers/{file}"),
            None => String::new(),
        };
        Some(format!(
            "the journal of chain {chain} is damaged or incomplete: {lost} entries and {receipts} \
             receipts are lost, everything else was recovered{aside}"
        ))
    }

    fn runtime(&self) -> Runtime<'_> {
        let mut repaired = Runtime::new();
        repaired.insert("subject", "journal");
        repaired.insert("chain_id", &*self.chain_id);
        repaired.insert("lost_entries", self.lost.count() + self.ends_without_start);
        repaired.insert("lost_receipts", self.lost_receipts);
        repaired.insert("reissued", self.reissued);
        if self.is_gone {
            repaired.insert("journal", "gone");
        }
        if !self.lost.is_empty() {
            let spans = self.lost.spans.iter().take(SPANS_MAX);
            let spans = spans.map(|(first, last)| Cow::Owned(format!("{first}-{last}")));
            repaired.insert("entries", spans.collect::<Vec<Cow<'_, str>>>());
        }
        if let Some(file) = &self.set_aside {
            repaired.insert("set_aside", &**file);
        }
        if let Some(key) = &self.missing_key {
            repaired.insert("missing_key", &**key);
        }
        if let Some(sequence) = self.ended_at {
            repaired.insert("ended_at", sequence);
        }
        repaired
    }
}

/// Composes the receipt that replaces what is missing in a chain.
pub(crate) fn repaired_journal(issuance: Issuance<'_>, repair: &JournalRepair) -> Link {
    repaired(issuance, repair.runtime())
}

/// Composes the receipt of a repair.
pub(crate) fn repaired(issuance: Issuance<'_>, account: Runtime<'_>) -> Link {
    let mut runtime = issuance.beginning.map(compose::beginning).unwrap_or_default();
    runtime.insert("ledger_repaired", account);
    compose::own(issuance, LEDGER_REPAIRED, (RiskLevel::High, runtime), None, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_receipts_are_counted_once() {
        let mut repair = JournalRepair::default();
        // The place that was promised, the place reached before it, and what is missing so far.
        for (promised, reached, missing) in
            [(1, 0, 0), (2, 1, 0), (5, 2, 2), (6, 3, 2), (9, 4, 4), (10, 5, 4), (3, 6, 4)]
        {
            repair.note_place(promised, reached);
            assert_eq!(repair.lost_receipts, missing, "{promised}");
        }
        assert!(repair.is_needed() && repair.words().is_some());
        assert!(JournalRepair::default().words().is_none());
    }
}
