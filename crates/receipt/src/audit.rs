//! The auditor of chains, shared by the command line, the REST API, copies and the page. It checks
//! each chain on its own, and that a chain named by another as its predecessor exists up to the
//! point it had reached. It keeps 32 bytes per receipt, because chains arrive in any order.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chain::{Chain, ChainExpectation, ChainStatus, ReceiptCheck};
use super::verify::SignedReceipt;
use super::{Hash, PublicKey};

/// Marks a chain that was deleted on purpose.
const CHAIN_EXPIRED: &str = "agent_receipts.chain_expired";

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
    pub error: Option<String>,
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
    expired: HashSet<String>,
    latest: Option<String>,
}

/// A statement at the start of one chain about another.
struct ChainClaim {
    by: String,
    chain_id: String,
    sequence: u64,
    hash: Option<Hash>,
}

struct ChainProgress {
    id: String,
    check: Chain,
    /// The hash of each receipt, as its successor records it.
    hashes: Vec<Option<Hash>>,
    last: String,
    faulty: Option<String>,
    must_have_ended: bool,
    receipts: Option<Vec<ReceiptCheck>>,
}

/// The fields of a receipt that are needed before it is checked.
#[derive(Deserialize)]
struct ReceiptSummary<'a> {
    #[serde(borrow, rename = "credentialSubject")]
    subject: Subject<'a>,
    #[serde(default)]
    issuer: Value,
}

#[derive(Deserialize)]
struct Subject<'a> {
    #[serde(borrow)]
    action: ActionType<'a>,
    #[serde(borrow)]
    chain: ChainPlace<'a>,
}

#[derive(Deserialize)]
struct ActionType<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
}

#[derive(Deserialize)]
struct ChainPlace<'a> {
    #[serde(borrow)]
    chain_id: Cow<'a, str>,
    #[serde(borrow)]
    previous_receipt_hash: Option<Cow<'a, str>>,
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
            expired: HashSet::new(),
            latest: None,
        })
    }

    /// Reports whether the start of another chain names this one.
    pub fn is_named(&self, chain_id: &str) -> bool {
        self.claims.iter().any(|claim| claim.chain_id == chain_id)
    }

    pub fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    pub fn has_one_chain(&self) -> bool {
        self.chains.len() == 1
    }

    /// Adds the next receipt of the chain that it names. An unreadable receipt belongs to the chain
    /// before it; returns `None` if there is none.
    pub fn push(&mut self, raw: &str) -> Option<()> {
        let glance: Option<ReceiptSummary<'_>> = serde_json::from_str(raw).ok();
        let chain_id = match &glance {
            Some(glance) => glance.subject.chain.chain_id.clone().into_owned(),
            None => self.latest.clone()?,
        };
        self.take(&chain_id, raw, glance);
        self.latest = Some(chain_id);
        Some(())
    }

    /// Adds the next receipt of a chain as the ledger stores it.
    pub fn push_to(&mut self, chain_id: &str, raw: &str) {
        self.take(chain_id, raw, serde_json::from_str(raw).ok());
    }

    /// Records that this chain has ended, according to the ledger.
    pub fn must_have_ended(&mut self, chain_id: &str) {
        if self.is_wanted(chain_id) {
            let place = self.place(chain_id, "");
            self.chains[place].must_have_ended = true;
        }
    }

    /// Returns the verdict on an export. If it holds a single chain, its first receipt may name a
    /// chain that was left out on purpose.
    pub fn finish_export(self, expected: ChainExpectation) -> AuditOutcome {
        let scope = if self.has_one_chain() { AuditScope::Part } else { AuditScope::All };
        self.finish(scope, expected)
    }

    pub fn finish(self, scope: AuditScope, expected: ChainExpectation) -> AuditOutcome {
        let Audit { only, chains, places, claims, expired, .. } = self;
        let mut notes = Vec::new();
        let mut missing: Vec<Report> = Vec::new();
        let mut claimed: HashMap<usize, Vec<ChainClaim>> = HashMap::new();
        for claim in claims {
            match places.get(&claim.chain_id) {
                Some(place) => claimed.entry(*place).or_default().push(claim),
                None if only.is_some() || expired.contains(&claim.chain_id) => {}
                None if scope == AuditScope::Part => notes.push(claim.unchecked()),
                None if missing.iter().any(|known| known.chain_id == claim.chain_id) => {}
                None => missing.push(claim.missing()),
            }
        }
        let reports = chains.into_iter().enumerate().map(|(place, chain)| {
            chain.finish(&claimed.remove(&place).unwrap_or_default(), expected)
        });
        AuditOutcome { reports: reports.chain(missing).collect(), notes }
    }

    fn take(&mut self, chain_id: &str, raw: &str, glance: Option<ReceiptSummary<'_>>) {
        let is_first = !self.places.contains_key(chain_id);
        let valid = if self.is_wanted(chain_id) {
            let place = self.place(chain_id, raw);
            let chain = &mut self.chains[place];
            let valid = chain.push(raw, glance.as_ref());
            let key = chain.check.active_key();
            if valid && !self.trusted.contains(key) {
                self.trusted.push(key.clone());
            }
            valid
        } else {
            // Not requested, but its statements about other chains count.
            true
        };
        let Some(glance) = glance else { return };
        if is_first {
            self.claims.extend(ChainClaim::of(chain_id, &glance.issuer));
        }
        if valid && glance.subject.action.r#type == CHAIN_EXPIRED {
            let gone = glance.issuer.pointer("/runtime/expired_chain/chain_id");
            self.expired.extend(gone.and_then(Value::as_str).map(str::to_owned));
        }
    }

    /// Reports whether the verdict on this chain is wanted; for other chains, only their start
    /// counts.
    pub fn is_wanted(&self, chain_id: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == chain_id)
    }

    /// Returns the index of a chain, adding it if new; its first receipt says which key it began
    /// with.
    fn place(&mut self, chain_id: &str, first: &str) -> usize {
        if let Some(place) = self.places.get(chain_id) {
            return *place;
        }
        let check = Chain::new(self.key_of(first).clone());
        let (id, last) = (chain_id.to_owned(), String::new());
        let hashes = Vec::new();
        self.chains.push(ChainProgress {
            id,
            check,
            hashes,
            last,
            faulty: None,
            must_have_ended: false,
            receipts: (self.detail == AuditDetail::Receipts).then(Vec::new),
        });
        self.places.insert(chain_id.to_owned(), self.chains.len() - 1);
        self.chains.len() - 1
    }

    /// Returns the trusted key that the first receipt names. If none matches, any of them will show
    /// that.
    fn key_of(&self, first: &str) -> &PublicKey {
        let named = SignedReceipt::parse(first).ok().and_then(|signed| {
            let fits = |key: &&PublicKey| signed.verify(key).is_ok();
            signed.key_among(&self.trusted).or_else(|| self.trusted.iter().find(fits))
        });
        named.unwrap_or(&self.trusted[0])
    }
}

impl ChainProgress {
    /// Checks a receipt, and reports whether it is signed and in its place.
    fn push(&mut self, raw: &str, glance: Option<&ReceiptSummary<'_>>) -> bool {
        let check = self.check.push(raw);
        let valid = check.signature_valid && check.hash_link_valid && check.sequence_valid;
        if !valid && self.faulty.is_none() {
            self.faulty = Some(check.receipt_id.clone());
        }
        self.receipts.iter_mut().for_each(|receipts| receipts.push(check.clone()));
        if let Some(last) = self.hashes.last_mut() {
            let previous =
                glance.and_then(|glance| glance.subject.chain.previous_receipt_hash.as_ref());
            *last = previous.and_then(|hash| hash.parse().ok());
        }
        self.hashes.push(None);
        self.last.clear();
        self.last.push_str(raw);
        valid
    }

    fn finish(mut self, claims: &[ChainClaim], expected: ChainExpectation) -> Report {
        if let Some(last) = self.hashes.last_mut() {
            *last = SignedReceipt::parse(&self.last).ok().map(|signed| signed.hash);
        }
        let check = self.check.finish(expected);
        let mut report = Report {
            chain_id: self.id,
            valid: check.valid,
            length: check.length,
            status: check.status,
            broken_at: check.broken_at,
            receipt_id: self.faulty.filter(|id| !id.is_empty()),
            error: check.error,
            receipts: self.receipts,
        };
        for claim in claims {
            report.note(claim.fault(&self.hashes));
        }
        let ended = match report.status {
            ChainStatus::Complete | ChainStatus::Interrupted => true,
            ChainStatus::Unknown => false,
        };
        if self.must_have_ended && !ended {
            let words = "the ledger marks the chain as ended, but its last receipt is not \
                         terminal: the end of the chain is missing";
            report.note(Some((None, words.to_owned())));
        }
        report
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
            receipts: Some(Vec::new()),
        }
    }

    /// Records a fault; only the first one is reported.
    fn note(&mut self, fault: Option<(Option<u64>, String)>) {
        if let (true, Some((at, words))) = (self.valid, fault) {
            self.valid = false;
            self.broken_at = at;
            self.error = Some(words);
        }
    }
}

impl ChainClaim {
    fn of(by: &str, issuer: &Value) -> Option<ChainClaim> {
        let before = issuer.pointer("/runtime/preceding_chain")?;
        Some(ChainClaim {
            by: by.to_owned(),
            chain_id: before["chain_id"].as_str()?.to_owned(),
            sequence: before["sequence"].as_u64()?,
            hash: before["hash"].as_str().and_then(|hash| hash.parse().ok()),
        })
    }

    fn fault(&self, hashes: &[Option<Hash>]) -> Option<(Option<u64>, String)> {
        let (by, sequence) = (&self.by, self.sequence);
        let index = sequence.checked_sub(1)?;
        match usize::try_from(index).ok().and_then(|index| hashes.get(index)) {
            None => Some((
                None,
                format!(
                    "the chain has {} receipts, but had {sequence} when chain {by} began: the end \
                     of the chain is missing",
                    hashes.len()
                ),
            )),
            Some(found) if *found == self.hash => None,
            Some(_) => Some((
                Some(index),
                format!("receipt {sequence} has changed since chain {by} began"),
            )),
        }
    }

    fn missing(&self) -> Report {
        Report {
            chain_id: self.chain_id.clone(),
            valid: false,
            length: 0,
            status: ChainStatus::Unknown,
            broken_at: None,
            receipt_id: None,
            error: Some(format!(
                "the chain is missing: chain {} names it as its preceding chain",
                self.by
            )),
            receipts: None,
        }
    }

    fn unchecked(&self) -> String {
        format!("note: the preceding chain, {}, is not in this file", self.chain_id)
    }
}
