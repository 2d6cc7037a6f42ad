//! The links of a chain: the place of a receipt, and its predecessor.

use receipt::Hash;
use receipt::content::{Body, Position, Receipt, Termination};
use receipt::key::SigningKey;

/// The place of a receipt in its chain, and its text, which has no proof until it is signed.
pub(crate) struct Link {
    pub(crate) sequence: u64,
    pub(crate) previous: Option<Hash>,
    /// The id of the receipt.
    pub(crate) id: String,
    /// The type of an action of the ledger itself.
    pub(crate) own: Option<String>,
    pub(crate) issued_at: String,
    pub(crate) body: Body,
    pub(crate) signed: Option<String>,
}

/// The last receipt of a chain so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct ChainEnd {
    pub(crate) sequence: u64,
    pub(crate) hash: Option<Hash>,
}

impl ChainEnd {
    /// Links a receipt to its predecessor, and makes it the new end.
    pub(crate) fn link(
        &mut self,
        chain_id: &str,
        receipt: &Receipt<'_>,
        termination: Option<Termination>,
    ) -> Link {
        let (sequence, previous) = (self.sequence + 1, self.hash);
        let position = Position { chain_id, sequence, previous, termination };
        let body = receipt.body(&position);
        *self = ChainEnd { sequence, hash: Some(body.hash()) };
        let (id, issued_at) = (receipt_id(receipt.id), receipt.issued_at.to_owned());
        let own = own_type(receipt.action.action_type).map(str::to_owned);
        Link { sequence, previous, id, own, issued_at, body, signed: None }
    }
}

/// Returns the id of the receipt of a call or an action.
pub(crate) fn receipt_id(id: &str) -> String {
    format!("urn:receipt:{id}")
}

/// Returns the type of an action if it is one of the ledger itself.
pub(crate) fn own_type(action_type: &str) -> Option<&str> {
    Some(action_type).filter(|kind| kind.starts_with("agent_receipts."))
}

/// The newest chain at the time when another was opened.
#[derive(Clone)]
pub(crate) struct PrecedingChain {
    pub(crate) chain_id: String,
    pub(crate) sequence: u64,
    pub(crate) hash: Hash,
}

/// The beginning of a chain, which its first receipt states.
#[derive(Clone)]
pub(crate) struct ChainBeginning {
    pub(crate) opened_at: String,
    pub(crate) pid: u32,
    /// The chain before it, so that its deletion is detected.
    pub(crate) preceding: Option<PrecedingChain>,
}

/// Everything needed to issue the next receipt of a chain.
pub(crate) struct Issuance<'a> {
    pub(crate) chain_id: &'a str,
    pub(crate) key: &'a SigningKey,
    pub(crate) end: &'a mut ChainEnd,
    /// Stated by the first receipt of a chain.
    pub(crate) beginning: Option<&'a ChainBeginning>,
}

/// A chain, by its number in the tables and its id in receipts.
#[derive(Clone, Copy)]
pub(crate) struct ChainRef<'a> {
    pub(crate) number: i64,
    pub(crate) id: &'a str,
}
