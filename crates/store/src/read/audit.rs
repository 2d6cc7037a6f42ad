//! A ledger's receipts for an audit, in the order in which it can follow the keys.

use std::time::Duration;

use receipt::audit::Audit;

use super::reader::Reader;
use crate::error::StoreError;

/// The time within which a process signs what it has committed, with some to spare. Until then another
/// chain may name receipts that cannot be read yet.
pub const SIGNING_TIME_MAX: Duration = Duration::from_millis(1500);

/// Tells a ledger whose receipts are all signed from one that may still be written to.
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
