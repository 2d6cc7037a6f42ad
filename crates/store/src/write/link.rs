//! The links of a chain: the place of a receipt, and its predecessor.

use receipt::Hash;
use receipt::content::{Body, Position, Receipt, Termination};
use receipt::key::SigningKey;

use crate::write::columns::Columns;

/// The place of a receipt in its chain, and its text, which has no proof until it is signed.
pub(crate) struct Link {
    pub(crate) sequence: u64,
    pub(crate) body: Body,
    pub(crate) columns: Columns,
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
        let sequence = self.sequence + 1;
        let position = Position { chain_id, sequence, previous: self.hash, termination };
        let (body, columns) = (receipt.body(&position), Columns::of(receipt, self.hash));
        *self = ChainEnd { sequence, hash: Some(body.hash()) };
        Link { sequence, body, columns, signed: None }
    }
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
