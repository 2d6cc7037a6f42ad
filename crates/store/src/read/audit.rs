//! Reads a ledger's receipts for an audit, in the order in which it can follow the keys.

use std::time::Duration;

use receipt::audit::Audit;

use super::reader::Reader;
use crate::error::StoreError;

/// The time within which a process signs its commits, with a margin. Until then another chain may
/// name receipts that cannot be read yet.
pub const SIGNING_TIME_MAX: Duration = Duration::from_millis(1500);

/// Distinguishes a ledger whose receipts are all signed from one that may still be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    Settled,
    Any,
}

impl Reader {
    /// Passes every receipt that the audit wants to `each`.
    pub fn audit(
        &self,
        audit: &mut Audit,
        age: Age,
        mut each: impl FnMut(),
    ) -> Result<(), StoreError> {
        // Oldest first, so that a key is known once another has handed over to it.
        for chain in self.chains()?.iter().rev() {
            let count = if audit.is_wanted(&chain.id) { usize::MAX } else { 1 };
            for text in self.receipt_texts(&chain.id).take(count) {
                // A chain that cannot be read to its end is broken; the others are checked.
                let text = text.unwrap_or_default();
                audit.push_to(&chain.id, &text);
                each();
                if text.is_empty() {
                    break;
                }
            }
            let status = chain.opening.as_ref().map(|opening| opening.status.as_str());
            if age == Age::Settled && matches!(status, Some("complete" | "interrupted")) {
                audit.must_have_ended(&chain.id);
            }
        }
        Ok(())
    }
}
