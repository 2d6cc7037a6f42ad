//! A ledger's receipts for an audit, in the order in which it can follow the keys.

use receipt::audit::Audit;

use super::Reader;
use crate::StoreError;

/// Whether all that was committed to a ledger has been signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    Settled,
    Any,
}

impl Reader {
    /// Hands over every receipt that the audit wants; `each` is called for each of them.
    pub fn audit(
        &self,
        audit: &mut Audit,
        age: Age,
        mut each: impl FnMut(),
    ) -> Result<(), StoreError> {
        // The oldest first: a key that another handed over to is known by then.
        for chain in self.chains()?.iter().rev() {
            let count = if audit.is_wanted(&chain.id) { usize::MAX } else { 1 };
            for text in self.receipt_texts(&chain.id).take(count) {
                audit.push_to(&chain.id, &text?);
                each();
            }
            let status = chain.opening.as_ref().map(|opening| opening.status.as_str());
            if age == Age::Settled && matches!(status, Some("complete" | "interrupted")) {
                audit.must_have_ended(&chain.id);
            }
        }
        Ok(())
    }
}
