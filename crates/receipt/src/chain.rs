//! Verifies a chain of receipts one by one in constant memory: order, links, a single chain id,
//! nothing after a terminal receipt, and key changes at rotations.

use serde::Serialize;

use super::content::Termination;
use super::verify::{ChainLink, ReceiptError, SignedReceipt};
use super::{Hash, PublicKey};

/// Facts about a chain known from elsewhere. Without them a truncated tail cannot be detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainExpectation {
    pub length: Option<u64>,
    pub final_hash: Option<Hash>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainCheck {
    pub valid: bool,
    pub length: u64,
    pub status: ChainStatus,
    /// The index of the first invalid receipt.
    pub broken_at: Option<u64>,
    pub error: Option<String>,
    pub receipts: Vec<ReceiptCheck>,
}

/// The chain's end, according to its last receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChainStatus {
    Complete,
    Interrupted,
    Unknown,
}

impl ChainStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            ChainStatus::Complete => "complete",
            ChainStatus::Interrupted => "interrupted",
            ChainStatus::Unknown => "unknown",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReceiptCheck {
    pub index: u64,
    /// Empty if the receipt could not be read.
    pub receipt_id: String,
    pub signature_valid: bool,
    pub hash_link_valid: bool,
    pub sequence_valid: bool,
}

/// A verification in progress. `push` each receipt in order, then `finish`.
#[derive(Clone, Debug)]
pub struct Chain {
    active_key: PublicKey,
    length: u64,
    chain_id: Option<String>,
    /// The previous receipt; `None` at the start and after an unreadable one.
    previous: Option<PreviousReceipt>,
    status: ChainStatus,
    broken: Option<(u64, String)>,
    faults: u64,
}

#[derive(Clone, Debug)]
struct PreviousReceipt {
    sequence: u64,
    hash: Hash,
}

/// Verifies a whole chain and lists each of its receipts.
pub fn verify<R: AsRef<str>>(
    receipts: impl IntoIterator<Item = R>,
    key: &PublicKey,
    expected: ChainExpectation,
) -> ChainCheck {
    let mut chain = Chain::new(key.clone());
    let checks = receipts.into_iter().map(|raw| chain.push(raw.as_ref())).collect();
    ChainCheck { receipts: checks, ..chain.finish(expected) }
}

impl Chain {
    /// Starts a chain whose first receipt was signed with `key`.
    pub fn new(key: PublicKey) -> Chain {
        Chain {
            active_key: key,
            length: 0,
            chain_id: None,
            previous: None,
            status: ChainStatus::Unknown,
            broken: None,
            faults: 0,
        }
    }

    pub fn push(&mut self, raw: &str) -> ReceiptCheck {
        self.push_parsed(SignedReceipt::parse(raw).as_ref())
    }

    /// Adds a receipt that was parsed already.
    pub fn push_parsed(&mut self, parsed: Result<&SignedReceipt, &ReceiptError>) -> ReceiptCheck {
        let index = self.length;
        let check = match parsed {
            Ok(signed) => self.take(index, signed),
            Err(error) => self.pass_over(index, error),
        };
        self.length += 1;
        check
    }

    /// Returns the number of receipts with a fault so far.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// Returns the hash of the last receipt; `None` at the start and after an unreadable one.
    pub fn last_hash(&self) -> Option<Hash> {
        self.previous.as_ref().map(|previous| previous.hash)
    }

    /// Returns the key that must sign the next receipt.
    pub fn active_key(&self) -> &PublicKey {
        &self.active_key
    }

    /// Passes over receipts whose loss is known, up to this one, which names the hash of the last of
    /// them. Another key may sign since.
    pub fn pass_gap(&mut self, next: &SignedReceipt, key: Option<&PublicKey>) {
        let before = next.link.sequence.checked_sub(1).zip(next.link.previous);
        self.previous = before.map(|(sequence, hash)| PreviousReceipt { sequence, hash });
        if next.verify(&self.active_key).is_err()
            && let Some(key) = key
        {
            self.active_key = key.clone();
        }
    }

    /// Returns the outcome with an empty list of receipts: `push` returned them one by one.
    pub fn finish(mut self, expected: ChainExpectation) -> ChainCheck {
        self.compare(expected);
        let (broken_at, error) = self.broken.unzip();
        ChainCheck {
            valid: broken_at.is_none(),
            length: self.length,
            status: self.status,
            broken_at,
            error,
            receipts: Vec::new(),
        }
    }

    fn take(&mut self, index: u64, signed: &SignedReceipt) -> ReceiptCheck {
        let signature = signed.verify(&self.active_key);
        let sequence = self.check_sequence(index, &signed.link);
        let hash_link = self.check_hash_link(index, &signed.link);
        let check = ReceiptCheck {
            index,
            receipt_id: signed.id.clone(),
            signature_valid: signature.is_ok(),
            hash_link_valid: hash_link.is_ok(),
            sequence_valid: sequence.is_ok(),
        };
        let signature = signature.map_err(|error| error.to_string());
        let trusted = signature.is_ok();
        let results = [
            self.check_chain_id(&signed.link),
            signature,
            self.check_not_ended(),
            sequence,
            hash_link,
            self.rotate(signed, trusted),
        ];
        self.faults += u64::from(results.iter().any(Result::is_err));
        for result in results {
            self.note(index, result);
        }
        self.advance(signed);
        check
    }

    fn pass_over(&mut self, index: u64, error: &ReceiptError) -> ReceiptCheck {
        self.faults += 1;
        self.note(index, Err(error.to_string()));
        self.previous = None;
        self.status = ChainStatus::Unknown;
        ReceiptCheck {
            index,
            receipt_id: String::new(),
            signature_valid: false,
            hash_link_valid: false,
            sequence_valid: false,
        }
    }

    fn advance(&mut self, signed: &SignedReceipt) {
        let link = &signed.link;
        self.chain_id.get_or_insert_with(|| link.chain_id.clone());
        self.previous = Some(PreviousReceipt { sequence: link.sequence, hash: signed.hash });
        self.status = match link.termination {
            None => ChainStatus::Unknown,
            Some(Termination::Complete) => ChainStatus::Complete,
            Some(Termination::Interrupted) => ChainStatus::Interrupted,
        };
    }

    fn check_chain_id(&self, link: &ChainLink) -> Result<(), String> {
        match &self.chain_id {
            Some(expect) if *expect != link.chain_id => {
                Err(format!("belongs to chain \"{}\", expected \"{expect}\"", link.chain_id))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_not_ended(&self) -> Result<(), String> {
        match self.status {
            ChainStatus::Unknown => Ok(()),
            ChainStatus::Complete | ChainStatus::Interrupted => {
                Err("follows a terminal receipt".to_owned())
            }
        }
    }

    fn check_sequence(&self, index: u64, link: &ChainLink) -> Result<(), String> {
        let expect = match &self.previous {
            Some(previous) => previous.sequence.saturating_add(1),
            None if index == 0 => 1,
            None => return Err(unreadable("sequence")),
        };
        if link.sequence != expect {
            return Err(format!("sequence is {}, expected {expect}", link.sequence));
        }
        Ok(())
    }

    fn check_hash_link(&self, index: u64, link: &ChainLink) -> Result<(), String> {
        let expect = match &self.previous {
            Some(previous) => Some(previous.hash),
            None if index == 0 => None,
            None => return Err(unreadable("previous_receipt_hash")),
        };
        if link.previous == expect {
            return Ok(());
        }
        let show = |hash: Option<Hash>| hash.map_or("null".to_owned(), |hash| hash.to_string());
        Err(format!(
            "previous_receipt_hash is {}, but the hash of the previous receipt is {}",
            show(link.previous),
            show(expect)
        ))
    }

    /// Follows a rotation, but not one in a receipt whose own signature is invalid: anyone could
    /// have put it there.
    fn rotate(&mut self, signed: &SignedReceipt, trusted: bool) -> Result<(), String> {
        let Some(event) = &signed.rotation else { return Ok(()) };
        let rotation = event.as_ref().map_err(|error| error.to_string())?;
        let next = rotation.follow(&self.active_key).map_err(|error| error.to_string())?;
        if trusted {
            self.active_key = next.clone();
        }
        Ok(())
    }

    fn compare(&mut self, expected: ChainExpectation) {
        let last = self.length.saturating_sub(1);
        if let Some(length) = expected.length.filter(|length| *length != self.length) {
            let found = self.length;
            self.fail(last, || format!("the chain has {found} receipts, expected {length}"));
        }
        let final_hash = self.previous.as_ref().map(|previous| previous.hash);
        if let Some(hash) = expected.final_hash.filter(|hash| Some(*hash) != final_hash) {
            let found = final_hash.map_or("none".to_owned(), |hash| hash.to_string());
            self.fail(last, || format!("the hash of the last receipt is {found}, expected {hash}"));
        }
    }

    fn note(&mut self, index: u64, result: Result<(), String>) {
        if let Err(reason) = result {
            self.fail(index, || format!("receipt at index {index}: {reason}"));
        }
    }

    fn fail(&mut self, index: u64, error: impl FnOnce() -> String) {
        if self.broken.is_none() {
            self.broken = Some((index, error()));
        }
    }
}

fn unreadable(what: &str) -> String {
    format!("{what} cannot be checked because the previous receipt could not be read")
}
