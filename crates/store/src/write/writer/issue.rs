//! Receipts of the ledger's own: they are filed after all others, without the journal.

use std::sync::Arc;

use receipt::content::Termination;
use receipt::key::SigningKey;

use super::Writer;
use crate::error::StoreError;
use crate::write::compose;
use crate::write::filing::Consequence;
use crate::write::link::{Issuance, Link};
use crate::write::row::JournalRow;

impl Writer {
    /// Rotates the signing key. The old key signs the announcement in the same transaction: no
    /// receipt is ever signed with an unannounced key.
    pub(super) fn rotate(&mut self) -> Result<Arc<SigningKey>, StoreError> {
        let new = self.keys.make()?;
        let fingerprint = new.public().fingerprint().to_string();
        let consequence = Consequence::Key(&fingerprint);
        self.issue(consequence, |issuance| compose::rotated(issuance, &new.public()))
            .inspect_err(|_| self.keys.discard(&new))?;
        if let Some(chain) = &mut self.work.chain {
            chain.key = new.clone();
        }
        self.keys.set_current(new.clone());
        self.keys.mark_used();
        // Its header names the key.
        self.work.is_journal_due = true;
        Ok(new)
    }

    /// Files a receipt of the ledger's own after all others, together with its consequence.
    pub(super) fn issue(
        &mut self,
        consequence: Consequence<'_>,
        compose: impl FnOnce(Issuance<'_>) -> Link,
    ) -> Result<(), StoreError> {
        self.open_chain()?;
        self.file_all()?;
        let Some(chain) = &self.work.chain else {
            return Ok(());
        };
        let mut end = chain.end;
        let mut row = JournalRow::of_link(compose(chain.issuance(&mut end)));
        row.sign(&chain.key);
        let changed = self.work.clerk.file(&self.db, chain.by_ref(), &[row], consequence)?;
        self.changes.send_replace(changed);
        self.set_end(end);
        Ok(())
    }

    /// Finishes the ledger: running calls are recorded as interrupted, and the chain gets its
    /// terminal receipt.
    pub(super) fn finish(&mut self) -> Result<(), StoreError> {
        let interrupted = self.work.drafts.interrupt();
        if !interrupted.is_empty() {
            let rows = self.write(&interrupted)?;
            self.keep(rows);
        }
        if self.work.chain.is_none() {
            return Ok(());
        }
        let termination = Termination::Complete;
        self.issue(Consequence::Closed(termination), |issuance| {
            compose::closing(issuance, termination)
        })?;
        if let Some(chain) = &self.work.chain {
            chain.journal.remove();
        }
        Ok(())
    }
}
