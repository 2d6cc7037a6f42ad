//! The auditor of chains, shared by the command line, the REST API, copies and the page. It checks
//! each chain on its own, and that every chain still holds what others state about it: the chain
//! after it names its end, and checkpoints name the heads of all. It keeps 32 bytes per receipt,
//! because chains arrive in any order.

mod claim;
mod history;
pub mod loss;
mod progress;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use self::claim::{ChainClaim, Witness};
use self::history::{History, Moment};
use self::loss::Loss;
use self::progress::ChainProgress;
use super::chain::{ChainExpectation, ChainStatus, ReceiptCheck};
use super::checkpoint::{Checkpoint, Head};
use super::verify::{ReceiptError, SignedReceipt};
use super::{Hash, PublicKey};

/// Marks a chain that was deleted on purpose.
const CHAIN_EXPIRED: &str = "agent_receipts.chain_expired";

/// The name in reports of faults that belong to no chain.
pub const WHOLE_LEDGER: &str = "ledger";

/// The verdict on one chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    pub chain_id: String,
    pub valid: bool,
    pub length: u64,
    pub status: ChainStatus,
    pub broken_at: Option<u64>,
    /// The broken receipt's id, if it can be read.
    pub receipt_id: Option<String>,
    /// The first fault.
    pub error: Option<String>,
    /// The number of faults.
    pub faults: u64,
    /// Every receipt, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipts: Option<Vec<ReceiptCheck>>,
}

/// The verdict on all chains.
#[derive(Debug, PartialEq, Eq)]
pub struct AuditOutcome {
    pub reports: Vec<Report>,
    /// The things that could not be checked.
    pub notes: Vec<String>,
}

impl AuditOutcome {
    pub fn is_valid(&self) -> bool {
        self.reports.iter().all(|report| report.valid)
    }
}

/// The level of detail in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditDetail {
    Chains,
    Receipts,
}

/// The set of chains that should be present: all of them or only some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditScope {
    All,
    Part,
}

/// An audit in progress: `push` each receipt, then `finish`.
pub struct Audit {
    trusted: Vec<PublicKey>,
    detail: AuditDetail,
    /// The only chain to report on, if one was requested.
    only: Option<String>,
    chains: Vec<ChainProgress>,
    places: HashMap<String, usize>,
    claims: Vec<ChainClaim>,
    history: History,
    /// The chains that were deleted on purpose, each with its last receipt.
    expired: HashMap<String, Head>,
    /// The losses that a person has accepted, each with the words that say so.
    accepted: HashMap<String, (Loss, String)>,
    latest: Option<String>,
    notes: Vec<String>,
    /// Faults that belong to no chain.
    others: Vec<String>,
}

/// A receipt that was read, for those who compare it with something else.
pub struct ReadReceipt {
    /// Its index among the receipts of its chain that are there.
    pub index: u64,
    /// Its number in its chain.
    pub sequence: u64,
    pub hash: Hash,
    pub members: Value,
    /// It is signed and in its place.
    pub is_valid: bool,
}

/// A receipt that was parsed and verified on its own. This is most of an audit's work, and can be
/// done in advance on another thread.
pub struct ExaminedReceipt(Result<(SignedReceipt, Value), ReceiptError>);

impl ExaminedReceipt {
    pub fn new(raw: &str, keys: &[PublicKey]) -> ExaminedReceipt {
        let mut read = SignedReceipt::read(raw);
        if let Ok((signed, _)) = &mut read {
            signed.prove(keys);
        }
        ExaminedReceipt(read)
    }
}

impl Audit {
    /// Creates an audit whose chains may begin with any of these keys. Returns `None` without keys,
    /// since nothing could be trusted.
    pub fn new(
        trusted: Vec<PublicKey>,
        only: Option<String>,
        detail: AuditDetail,
    ) -> Option<Audit> {
        (!trusted.is_empty()).then(|| Audit {
            trusted,
            only,
            detail,
            chains: Vec::new(),
            places: HashMap::new(),
            claims: Vec::new(),
            history: History::default(),
            expired: HashMap::new(),
            accepted: HashMap::new(),
            latest: None,
            notes: Vec::new(),
            others: Vec::new(),
        })
    }

    /// Reports whether another chain names this one.
    pub fn is_named(&self, chain_id: &str) -> bool {
        self.claims.iter().any(|claim| claim.head.chain_id == chain_id)
    }

    pub fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    pub fn has_one_chain(&self) -> bool {
        self.chains.len() == 1
    }

    /// Reports whether a receipt says that this chain was deleted on purpose.
    pub fn is_expired(&self, chain_id: &str) -> bool {
        self.expired.contains_key(chain_id)
    }

    /// Adds the next receipt of the chain that it names. An unreadable receipt belongs to the chain
    /// before it; returns `None` if there is none.
    pub fn push(&mut self, raw: &str) -> Option<()> {
        let parsed = SignedReceipt::read(raw);
        let chain_id = match &parsed {
            Ok((signed, _)) => signed.link.chain_id.clone(),
            Err(_) => named_chain(raw).or_else(|| self.latest.clone())?,
        };
        self.take(&chain_id, parsed);
        self.latest = Some(chain_id);
        Some(())
    }

    /// Adds the next receipt of a chain as the ledger stores it, and returns what was read.
    pub fn push_to(&mut self, chain_id: &str, raw: &str) -> Option<ReadReceipt> {
        self.take(chain_id, SignedReceipt::read(raw))
    }

    /// Does the same with a receipt that was examined ahead.
    pub fn push_examined(
        &mut self,
        chain_id: &str,
        examined: ExaminedReceipt,
    ) -> Option<ReadReceipt> {
        self.take(chain_id, examined.0)
    }

    /// Returns the keys that are trusted so far.
    pub fn trusted(&self) -> &[PublicKey] {
        &self.trusted
    }

    /// Takes in what a receipt of a chain that is not audited states about others. Returns its
    /// members if a trusted key signed it.
    pub fn hear(&mut self, raw: &str) -> Option<Value> {
        let (signed, members) = SignedReceipt::read(raw).ok()?;
        signed.verify(signed.key_among(&self.trusted)?).ok()?;
        self.take_checkpoint(&signed, &members);
        Some(members)
    }

    /// Takes in the losses that a person has accepted, before the receipts of their chains. A later
    /// receipt replaces what an earlier one says of the same chain.
    pub fn accept(&mut self, raw: &str) {
        let Ok((signed, members)) = SignedReceipt::read(raw) else { return };
        let key = signed.key_among(&self.trusted);
        if key.is_none_or(|key| signed.verify(key).is_err())
            || action_type(&members) != Some(loss::ACTION_TYPE)
        {
            return;
        }
        for loss in Loss::all_of(&members) {
            let link = &signed.link;
            let words = format!(
                "note: {}: a person accepted this on {} (receipt {} of chain {})",
                loss.words(),
                members["issuanceDate"].as_str().unwrap_or_default(),
                link.sequence,
                link.chain_id
            );
            if loss.left.is_none() {
                // Later checkpoints do not count it.
                self.history.expire(&loss.chain_id, &link.chain_id, link.sequence);
            }
            self.accepted.insert(loss.chain_id.clone(), (loss, words));
        }
    }

    /// Returns everything that is missing and that no person has accepted, as it is known so far. That
    /// the table of chains names more is no loss: nobody signed it.
    pub fn losses(&self) -> Vec<Loss> {
        let mut claimed: HashMap<&str, Vec<&ChainClaim>> = HashMap::new();
        for claim in self.claims.iter().filter(|claim| claim.is_signed()) {
            claimed.entry(&claim.head.chain_id).or_default().push(claim);
        }
        let known = self
            .chains
            .iter()
            .filter_map(|chain| chain.loss(&claimed.remove(chain.id()).unwrap_or_default()));
        let mut losses: Vec<Loss> = known.collect();
        for (chain_id, claims) in claimed {
            let heads = claims.iter().map(|claim| &claim.head);
            let had = heads.max_by_key(|head| head.length);
            let is_accepted =
                |had: &&Head| self.accepted.get(chain_id).is_some_and(|(loss, _)| loss.covers(had));
            if let Some(had) = had.filter(|had| !self.is_expired(chain_id) && !is_accepted(had)) {
                losses.push(Loss {
                    chain_id: chain_id.to_owned(),
                    missing: vec![(1, had.length)],
                    had: Some(had.clone()),
                    left: None,
                    records: Vec::new(),
                    lone_records: 0,
                });
            }
        }
        losses.sort_by(|one, other| one.chain_id.cmp(&other.chain_id));
        losses
    }

    /// Requires the receipt of a checkpoint that was kept elsewhere, and all the heads that it names.
    /// Returns the number of decisions that it names.
    pub fn require(&mut self, kept_in: &str, raw: &str) -> Option<u64> {
        let read = SignedReceipt::read(raw).and_then(|(signed, members)| {
            // Rotations may lead to its key later, when all receipts have been read.
            if let Some(key) = signed.key_among(&self.trusted) {
                signed.verify(key)?;
            }
            let checkpoint = Checkpoint::of(&members);
            Ok((signed, checkpoint.ok_or(ReceiptError::Malformed("issuer.runtime.checkpoint"))?))
        });
        let (signed, checkpoint) = match read {
            Ok(read) => read,
            Err(error) => {
                self.others.push(format!("{kept_in} is not a checkpoint: {error}"));
                return None;
            }
        };
        let link = &signed.link;
        let (chain_id, length) = (link.chain_id.clone(), link.sequence);
        let own = Head { chain_id, length, hash: signed.hash };
        let witness = Witness::Kept { place: kept_in.into() };
        for head in checkpoint.heads.into_iter().chain([own]) {
            self.claims.push(ChainClaim { witness: witness.clone(), head });
        }
        Some(checkpoint.decisions)
    }

    /// Requires a checkpoint with this digest, of this many chains if that is known.
    pub fn require_digest(&mut self, digest: Hash, count: Option<u64>) {
        self.history.require(digest, count);
    }

    /// Records the head of a chain, according to the ledger's own tables.
    pub fn must_have(&mut self, head: Head) {
        self.claims.push(ChainClaim { witness: Witness::Table, head });
    }

    /// Records that this chain has ended, according to the ledger.
    pub fn must_have_ended(&mut self, chain_id: &str) {
        if self.is_wanted(chain_id) {
            let place = self.place(chain_id, None);
            self.chains[place].must_have_ended = true;
        }
    }

    /// Records receipts of a chain that are committed, but not signed yet.
    pub fn expect_later(&mut self, chain_id: &str, promised: Vec<(u64, Hash)>) {
        if self.is_wanted(chain_id) {
            let place = self.place(chain_id, None);
            self.chains[place].promised.extend(promised);
        }
    }

    /// Records a fault of a chain that others found.
    pub fn fault(&mut self, chain_id: &str, index: Option<u64>, words: String) {
        if self.is_wanted(chain_id) {
            let place = self.place(chain_id, None);
            self.chains[place].add_fault(index, words);
        }
    }

    /// Records that the record of a receipt is missing, given its index and its number. That is no
    /// fault if a person has accepted it.
    pub fn missing_record(&mut self, chain_id: &str, (index, sequence): (u64, u64)) {
        if !self.is_wanted(chain_id) {
            return;
        }
        let place = self.place(chain_id, None);
        if self.chains[place].lacks_record(sequence) {
            let words = format!("receipt {sequence}: its record is missing from activity");
            self.chains[place].add_fault(Some(index), words);
        }
    }

    /// Records that the receipt of a record is missing.
    pub fn missing_receipt(&mut self, chain_id: &str, words: String) {
        if self.is_wanted(chain_id) {
            let place = self.place(chain_id, None);
            self.chains[place].add_lone_record(words);
        }
    }

    /// Records a fault that belongs to no chain.
    pub fn fault_of_ledger(&mut self, words: String) {
        self.others.push(words);
    }

    /// Records something that could not be checked.
    pub fn note(&mut self, words: String) {
        self.notes.push(words);
    }

    /// Returns the verdict on an export. If it holds a single chain, its first receipt may name a
    /// chain that was left out on purpose.
    pub fn finish_export(self, expected: ChainExpectation) -> AuditOutcome {
        let scope = if self.has_one_chain() { AuditScope::Part } else { AuditScope::All };
        self.finish(scope, expected)
    }

    pub fn finish(mut self, scope: AuditScope, expected: ChainExpectation) -> AuditOutcome {
        if scope == AuditScope::All && self.only.is_none() {
            for (chain_id, index, words) in self.history.faults() {
                self.fault(&chain_id, Some(index), words);
            }
        }
        self.others.extend(self.history.absent());
        if self.only.is_some() {
            self.others.clear();
        }
        let Audit { only, chains, places, claims, expired, accepted, mut notes, others, .. } = self;
        let is_accepted =
            |head: &Head| accepted.get(&head.chain_id).is_some_and(|(loss, _)| loss.covers(head));
        if only.is_none() {
            let mut words: Vec<String> =
                accepted.values().map(|(_, words)| words.clone()).collect();
            words.sort_unstable();
            notes.extend(words);
        }
        let mut missing: Vec<Report> = Vec::new();
        let mut unchecked: Vec<ChainClaim> = Vec::new();
        let mut claimed: HashMap<usize, Vec<ChainClaim>> = HashMap::new();
        for claim in claims {
            let chain_id = &claim.head.chain_id;
            match (places.get(chain_id), expired.get(chain_id)) {
                (Some(place), _) => claimed.entry(*place).or_default().push(claim),
                (None, _) if only.is_some() => {}
                (None, Some(gone)) => missing.extend(claim.contradicts(gone)),
                (None, None) if is_accepted(&claim.head) => {}
                (None, None) if scope == AuditScope::Part => unchecked.push(claim),
                (None, None) => match missing.iter_mut().find(|it| it.chain_id == *chain_id) {
                    Some(known) => known.faults += 1,
                    None => missing.push(claim.missing()),
                },
            }
        }
        notes.extend(claim::unchecked(&unchecked));
        let reports = chains.into_iter().enumerate().map(|(place, chain)| {
            chain.finish(&claimed.remove(&place).unwrap_or_default(), expected)
        });
        let others = others.into_iter().map(|words| Report::broken(WHOLE_LEDGER, words));
        AuditOutcome { reports: reports.chain(missing).chain(others).collect(), notes }
    }

    fn take(
        &mut self,
        chain_id: &str,
        parsed: Result<(SignedReceipt, Value), ReceiptError>,
    ) -> Option<ReadReceipt> {
        let place = self.places.get(chain_id);
        let is_first = place.is_none_or(|place| self.chains[*place].hashes.is_empty());
        let signed = parsed.as_ref().map(|(signed, _)| signed);
        // A chain that was not requested is not checked, but its statements about others count.
        let (index, valid) = if self.is_wanted(chain_id) {
            let place = self.place(chain_id, signed.ok());
            let chain = &mut self.chains[place];
            let valid = chain.push(signed, &self.trusted);
            let key = chain.check.active_key();
            if valid && !self.trusted.contains(key) {
                self.trusted.push(key.clone());
            }
            (chain.hashes.len() as u64 - 1, valid)
        } else {
            (0, true)
        };
        let (signed, members) = parsed.ok()?;
        if is_first {
            self.claims.extend(ChainClaim::of_beginning(chain_id, &members));
        }
        if valid {
            self.take_checkpoint(&signed, &members);
            if action_type(&members) == Some(CHAIN_EXPIRED) {
                self.expire(&signed, expired(&members));
            }
        }
        let (sequence, hash) = (signed.link.sequence, signed.hash);
        Some(ReadReceipt { index, sequence, hash, members, is_valid: valid })
    }

    fn expire(&mut self, signed: &SignedReceipt, gone: Vec<Head>) {
        for gone in gone {
            let link = &signed.link;
            self.history.expire(&gone.chain_id, &link.chain_id, link.sequence);
            self.expired.insert(gone.chain_id.clone(), gone);
        }
    }

    fn take_checkpoint(&mut self, signed: &SignedReceipt, members: &Value) {
        let Some(checkpoint) = Checkpoint::of(members) else { return };
        let link = &signed.link;
        let by: Arc<str> = link.chain_id.as_str().into();
        let witness = Witness::Checkpoint { by: by.clone(), sequence: link.sequence };
        // What it says of its own chain is in its link.
        let others = checkpoint.heads.iter().chain(&checkpoint.previous);
        for head in others.filter(|head| head.chain_id != link.chain_id) {
            self.claims.push(ChainClaim { witness: witness.clone(), head: head.clone() });
        }
        if self.only.is_none() {
            self.history.push(Moment { chain_id: by, sequence: link.sequence, checkpoint });
        }
    }

    /// Reports whether the verdict on every chain is wanted.
    pub fn wants_all(&self) -> bool {
        self.only.is_none()
    }

    /// Reports whether the verdict on this chain is wanted; for other chains, only their start
    /// counts.
    pub fn is_wanted(&self, chain_id: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == chain_id)
    }

    /// Returns the index of a chain, adding it if new; its first receipt says which key it began
    /// with.
    fn place(&mut self, chain_id: &str, first: Option<&SignedReceipt>) -> usize {
        if let Some(place) = self.places.get(chain_id) {
            return *place;
        }
        let lists = self.detail == AuditDetail::Receipts;
        let accepted = self.accepted.get(chain_id).map(|(loss, _)| loss.clone());
        let key = self.key_of(first).clone();
        let chain = ChainProgress::new(chain_id, key, (lists, accepted));
        self.chains.push(chain);
        self.places.insert(chain_id.to_owned(), self.chains.len() - 1);
        self.chains.len() - 1
    }

    /// Returns the trusted key that the first receipt names. If none matches, any of them will show
    /// that.
    fn key_of(&self, first: Option<&SignedReceipt>) -> &PublicKey {
        let named = first.and_then(|signed| {
            let fits = |key: &&PublicKey| signed.verify(key).is_ok();
            signed.key_among(&self.trusted).or_else(|| self.trusted.iter().find(fits))
        });
        named.unwrap_or(&self.trusted[0])
    }
}

impl Report {
    /// Returns the report on a chain that has no receipts and is not expected to have any.
    pub fn empty(chain_id: String) -> Report {
        Report {
            chain_id,
            valid: true,
            length: 0,
            status: ChainStatus::Unknown,
            broken_at: None,
            receipt_id: None,
            error: None,
            faults: 0,
            receipts: Some(Vec::new()),
        }
    }

    /// Returns the report on a chain of which nothing is there.
    fn broken(chain_id: &str, words: String) -> Report {
        let mut report = Report { receipts: None, ..Report::empty(chain_id.to_owned()) };
        report.note(None, words);
        report
    }

    /// Records a fault; the first one is reported.
    fn note(&mut self, at: Option<u64>, words: String) {
        self.faults += 1;
        if self.valid {
            self.valid = false;
            self.broken_at = at;
            self.error = Some(words);
        }
    }
}

/// Returns the chains whose expiry a receipt states: of one chain, and again of those whose expiry
/// that chain stated.
pub fn expired(members: &Value) -> Vec<Head> {
    let runtime = &members["issuer"]["runtime"];
    let before = runtime["expired_before"].as_array().into_iter().flatten();
    before.chain([&runtime["expired_chain"]]).filter_map(claim::sequenced).collect()
}

fn action_type(members: &Value) -> Option<&str> {
    members.pointer("/credentialSubject/action/type")?.as_str()
}

/// Returns the chain that a receipt names that is not valid otherwise.
fn named_chain(raw: &str) -> Option<String> {
    let members: Value = serde_json::from_str(raw).ok()?;
    Some(members.pointer("/credentialSubject/chain/chain_id")?.as_str()?.to_owned())
}
