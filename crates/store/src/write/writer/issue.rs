//! Receipts of the ledger's own: they are filed after all others, without the journal.

use std::sync::Arc;
use std::time::Instant;

use receipt::checkpoint::Checkpoint;
use receipt::content::Termination;
use receipt::key::SigningKey;

use super::Writer;
use crate::error::StoreError;
use crate::write::filing::{self, Consequence};
use crate::write::heads;
use crate::write::link::{Issuance, Link};
use crate::write::row::JournalRow;
use crate::write::{checkpoint_file, compose};

impl Writer {
    /// Rotates the signing key. The old key signs the announcement in the same transaction: no
    /// receipt is ever signed with an unannounced key.
    pub(super) fn rotate(&mut self) -> Result<Arc<SigningKey>, StoreError> {
        let new = self.keys.make()?;
        let fingerprint = new.public().fingerprint().to_string();
        let consequence = Consequence::Key(&fingerprint);
        self.issue(consequence, |issuance| Ok(compose::rotated(issuance, &new.public())))
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

    /// Names the heads of all chains, and returns the signed receipt.
    pub(super) fn checkpoint(&mut self) -> Result<String, StoreError> {
        self.issue_checkpoint(Consequence::Nothing, compose::checkpoint)
    }

    /// Files a receipt of the ledger's own after all others, together with its consequence.
    pub(super) fn issue(
        &mut self,
        consequence: Consequence<'_>,
        compose: impl FnOnce(Issuance<'_>) -> Result<Link, StoreError>,
    ) -> Result<(), StoreError> {
        self.issue_row(consequence, |_, issuance| compose(issuance))?;
        self.work.uncovered_since.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Files a receipt that names the heads of all chains as they are in the same transaction.
    fn issue_checkpoint(
        &mut self,
        consequence: Consequence<'_>,
        compose: impl FnOnce(Issuance<'_>, &Checkpoint) -> Link,
    ) -> Result<String, StoreError> {
        let known = self.keys.known();
        let mut heads = std::mem::take(&mut self.work.signed_heads);
        let row = self.issue_row(consequence, |db, issuance| {
            let chain_id = issuance.chain_id.to_owned();
            let checkpoint = heads::checkpoint(db, &known, &mut heads)?;
            let link = compose(issuance, &checkpoint);
            heads::remember(db, &checkpoint, &chain_id, &link)?;
            Ok(link)
        });
        self.work.signed_heads = heads;
        let row = row?;
        self.work.uncovered_since = None;
        let text = row.link.and_then(|link| link.signed).unwrap_or_default();
        checkpoint_file::replace(&self.home, &text, self.durability);
        if let Some(anchor) = &self.anchor {
            anchor.offer();
        }
        Ok(text)
    }

    fn issue_row(
        &mut self,
        consequence: Consequence<'_>,
        compose: impl FnOnce(&rusqlite::Connection, Issuance<'_>) -> Result<Link, StoreError>,
    ) -> Result<JournalRow, StoreError> {
        self.open_chain()?;
        self.file_all()?;
        let chain = self.work.chain.as_ref().expect("the chain was just opened");
        let mut end = chain.end;
        let (changed, row) = filing::file_own(&self.db, chain.by_ref(), consequence, |db| {
            let mut row = JournalRow::of_link(compose(db, chain.issuance(&mut end))?);
            row.sign(&chain.key);
            Ok(row)
        })?;
        self.changes.send_replace(changed);
        self.set_end(end);
        Ok(row)
    }

    /// Finishes the ledger: running calls are recorded as interrupted, and the chain gets its
    /// terminal receipt, which is a checkpoint too.
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
        self.issue_checkpoint(Consequence::Closed(termination), |issuance, checkpoint| {
            compose::closing(issuance, termination, Some(checkpoint))
        })?;
        if let Some(chain) = &self.work.chain {
            chain.journal.remove();
        }
        Ok(())
    }
}
