//! The check of one chain in an audit.

use std::collections::{BTreeSet, HashMap};

use super::Report;
use super::claim::{ChainClaim, Evidence};
use super::loss::{self, Loss};
use crate::chain::{Chain, ChainExpectation, ChainStatus, ReceiptCheck};
use crate::checkpoint::Head;
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
    /// The runs of receipts without a gap: the sequence of the first of each, and its index.
    runs: Vec<(u64, usize)>,
    /// The loss that a person has accepted.
    accepted: Option<Loss>,
    /// Receipts whose records are missing.
    lacking: Vec<u64>,
    /// The number of records whose receipts are missing, and words about the first.
    lone_records: u64,
    lone_words: Option<String>,
    faulty: Option<String>,
    /// The first fault that others found, and the number of them.
    found: Option<(Option<u64>, String)>,
    found_count: u64,
    receipts: Option<Vec<ReceiptCheck>>,
}

impl ChainProgress {
    pub(super) fn new(
        chain_id: &str,
        key: PublicKey,
        (lists_receipts, accepted): (bool, Option<Loss>),
    ) -> ChainProgress {
        ChainProgress {
            id: chain_id.to_owned(),
            check: Chain::new(key),
            hashes: Vec::new(),
            promised: HashMap::new(),
            must_have_ended: false,
            runs: Vec::new(),
            accepted,
            lacking: Vec::new(),
            lone_records: 0,
            lone_words: None,
            faulty: None,
            found: None,
            found_count: 0,
            receipts: lists_receipts.then(Vec::new),
        }
    }

    /// Checks a receipt, and reports whether it is signed and in its place.
    pub(super) fn push(
        &mut self,
        parsed: Result<&SignedReceipt, &ReceiptError>,
        trusted: &[PublicKey],
    ) -> bool {
        let (expected, found) = (self.next(), parsed.ok().map(|signed| signed.link.sequence));
        if let (Ok(signed), Some(loss)) = (parsed, &self.accepted)
            && signed.link.sequence > expected
            && loss.has_gap(expected, signed.link.sequence - 1)
        {
            self.check.pass_gap(signed, signed.key_among(trusted));
        }
        if self.runs.is_empty() || found.is_some_and(|found| found != expected) {
            self.runs.push((found.unwrap_or(expected), self.hashes.len()));
        }
        let check = self.check.push_parsed(parsed);
        let valid = check.signature_valid && check.hash_link_valid && check.sequence_valid;
        if !valid && self.faulty.is_none() {
            self.faulty = Some(check.receipt_id.clone());
        }
        self.receipts.iter_mut().for_each(|receipts| receipts.push(check.clone()));
        self.hashes.push(parsed.ok().map(|signed| signed.hash));
        valid
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the sequence that follows the last receipt.
    fn next(&self) -> u64 {
        self.runs
            .last()
            .map_or(1, |(first, index)| first.saturating_add((self.hashes.len() - index) as u64))
    }

    /// Records that the record of a receipt is missing; returns false if that was accepted.
    pub(super) fn lacks_record(&mut self, sequence: u64) -> bool {
        self.lacking.push(sequence);
        !self.accepted.as_ref().is_some_and(|loss| loss.lacks_record(sequence))
    }

    /// Records that the receipt of a record is missing.
    pub(super) fn add_lone_record(&mut self, words: String) {
        self.lone_records += 1;
        self.lone_words.get_or_insert(words);
    }

    /// Returns everything that the chain lacks of what is known of it.
    pub(super) fn loss(&self, claims: &[&ChainClaim]) -> Option<Loss> {
        let mut missing = Vec::new();
        let ends = self.runs.iter().skip(1).map(|(_, index)| *index).chain([self.hashes.len()]);
        let mut next = 1;
        for ((first, index), end) in self.runs.iter().zip(ends) {
            if *first > next {
                missing.push((next, first - 1));
            }
            next = first.saturating_add((end - index) as u64);
        }
        let last = self.promised.keys().copied().max().unwrap_or(0).max(next - 1);
        let evidence =
            Evidence { hashes: &self.hashes, runs: &self.runs, promised: &self.promised };
        // Another receipt is in the place of one that is lost, such as that of a repair.
        let is_replaced = |head: &&Head| {
            let there = evidence.at(head.length).flatten();
            head.length <= last && there.is_some_and(|there| there != head.hash)
        };
        let replaced: BTreeSet<u64> = claims
            .iter()
            .map(|claim| &claim.head)
            .filter(is_replaced)
            .map(|it| it.length)
            .collect();
        missing.extend(loss::spans_of(replaced));
        missing.sort_unstable();
        let is_lost = |head: &&Head| head.length > last || is_replaced(head);
        let beyond = claims.iter().map(|claim| &claim.head).filter(is_lost);
        let earlier = self.accepted.iter().filter_map(|loss| loss.had.as_ref());
        let had = beyond.chain(earlier).max_by_key(|head| head.length).cloned();
        if let Some(had) = had.as_ref().filter(|had| had.length > last) {
            missing.push((last + 1, had.length));
        }
        let hash = self.hashes.last().copied().flatten();
        let left = hash.map(|hash| Head { chain_id: self.id.clone(), length: next - 1, hash });
        let (chain_id, records) = (self.id.clone(), loss::spans_of(self.lacking.iter().copied()));
        let loss = Loss { chain_id, had, left, missing, records, lone_records: self.lone_records };
        (loss.is_any() && self.accepted.as_ref() != Some(&loss)).then_some(loss)
    }

    pub(super) fn add_fault(&mut self, index: Option<u64>, words: String) {
        self.found_count += 1;
        self.found.get_or_insert((index, words));
    }

    pub(super) fn finish(self, claims: &[ChainClaim], expected: ChainExpectation) -> Report {
        let (faults, last) = (self.check.faults(), self.next().saturating_sub(1));
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
        let accepted = self.accepted.as_ref();
        let evidence =
            Evidence { hashes: &self.hashes, runs: &self.runs, promised: &self.promised };
        let is_accepted = |claim: &&ChainClaim| accepted.is_some_and(|it| it.covers(&claim.head));
        let claims = claims.iter().filter(|claim| !is_accepted(claim));
        for (at, words) in claims.filter_map(|claim| claim.fault(evidence)) {
            report.note(at, words);
        }
        let ended = match report.status {
            ChainStatus::Complete | ChainStatus::Interrupted => true,
            ChainStatus::Unknown => false,
        };
        let final_hash = self.hashes.last().copied().flatten();
        let is_known = accepted.is_some_and(|loss| loss.ends_with(last, final_hash));
        if self.must_have_ended && !ended && !is_known {
            let words = "the ledger marks the chain as ended, but its last receipt is not \
                         terminal: the end of the chain is missing";
            report.note(None, words.to_owned());
        }
        let known = accepted.map_or(0, |loss| loss.lone_records);
        if let Some(words) = self.lone_words.filter(|_| self.lone_records > known) {
            report.note(None, words);
            report.faults += self.lone_records - known - 1;
        }
        if let Some((at, words)) = self.found {
            report.note(at, words);
            report.faults += self.found_count - 1;
        }
        report
    }
}
