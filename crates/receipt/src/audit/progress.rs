//! The check of one chain in an audit.

use std::collections::HashMap;

use super::Report;
use super::claim::{ChainClaim, Evidence};
use crate::chain::{Chain, ChainExpectation, ChainStatus, ReceiptCheck};
use crate::verify::{ReceiptError, SignedReceipt};
use crate::{Hash, PublicKey};

pub(super) struct ChainProgress {
    id: String,
    pub(super) check: Chain,
    /// The hash of each receipt; none where it cannot be read.
    pub(super) hashes: Vec<Option<Hash>>,
    /// Receipts that are committed and not signed yet, by their sequence.
    pub(super) promised: HashMap<u64, Hash>,
    pub(super) must_have_ended: bool,
    faulty: Option<String>,
    /// The first fault that others found, and the number of them.
    found: Option<(Option<u64>, String)>,
    found_count: u64,
    receipts: Option<Vec<ReceiptCheck>>,
}

impl ChainProgress {
    pub(super) fn new(chain_id: &str, key: PublicKey, lists_receipts: bool) -> ChainProgress {
        ChainProgress {
            id: chain_id.to_owned(),
            check: Chain::new(key),
            hashes: Vec::new(),
            promised: HashMap::new(),
            must_have_ended: false,
            faulty: None,
            found: None,
            found_count: 0,
            receipts: lists_receipts.then(Vec::new),
        }
    }

    /// Checks a receipt, and reports whether it is signed and in its place.
    pub(super) fn push(&mut self, parsed: Result<&SignedReceipt, &ReceiptError>) -> bool {
        let check = self.check.push_parsed(parsed);
        let valid = check.signature_valid && check.hash_link_valid && check.sequence_valid;
        if !valid && self.faulty.is_none() {
            self.faulty = Some(check.receipt_id.clone());
        }
        self.receipts.iter_mut().for_each(|receipts| receipts.push(check.clone()));
        self.hashes.push(parsed.ok().map(|signed| signed.hash));
        valid
    }

    pub(super) fn add_fault(&mut self, index: Option<u64>, words: String) {
        self.found_count += 1;
        self.found.get_or_insert((index, words));
    }

    pub(super) fn finish(self, claims: &[ChainClaim], expected: ChainExpectation) -> Report {
        let faults = self.check.faults();
        let check = self.check.finish(expected);
        let mut report = Report {
            chain_id: self.id,
            valid: check.valid,
            length: check.length,
            status: check.status,
            broken_at: check.broken_at,
            receipt_id: self.faulty.filter(|id| !id.is_empty()),
            faults: faults.max(u64::from(!check.valid)),
            error: check.error,
            receipts: self.receipts,
        };
        let evidence = Evidence { hashes: &self.hashes, promised: &self.promised };
        for (at, words) in claims.iter().filter_map(|claim| claim.fault(evidence)) {
            report.note(at, words);
        }
        let ended = match report.status {
            ChainStatus::Complete | ChainStatus::Interrupted => true,
            ChainStatus::Unknown => false,
        };
        if self.must_have_ended && !ended {
            let words = "the ledger marks the chain as ended, but its last receipt is not \
                         terminal: the end of the chain is missing";
            report.note(None, words.to_owned());
        }
        if let Some((at, words)) = self.found {
            report.note(at, words);
            report.faults += self.found_count - 1;
        }
        report
    }
}
