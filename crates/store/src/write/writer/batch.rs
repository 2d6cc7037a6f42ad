//! Signing and filing: committed rows become rows of the tables, a batch at a time.

use std::sync::Arc;
use std::time::Instant;

use receipt::key::SigningKey;

use super::commit::Tables;
use super::{Work, Writer};
use crate::error::StoreError;
use crate::limits::FILE_AT_ONCE;
use crate::write::filing::{Consequence, Filing};
use crate::write::link::ChainRef;
use crate::write::row::JournalRow;
use crate::write::schedule::Situation;

/// The work between the rows that are filed.
#[derive(Clone, Copy)]
pub(super) enum Interlude {
    /// Commits new entries, so that no caller waits for all of the rows.
    Commits,
    /// None: while everything committed is being filed, more commits would never let that end.
    Nothing,
}

impl Writer {
    /// Hands the next batch to the signer.
    pub(super) fn sign(&mut self) {
        let key = self.key_of_chain();
        self.signer.sign(self.work.backlog.batch_for_signer(), key);
    }

    /// Signs and files the next batch on this thread.
    pub(super) fn sign_and_file(&mut self) {
        let key = self.key_of_chain();
        let mut rows = self.work.backlog.next_batch();
        rows.iter_mut().for_each(|row| row.sign(&key));
        self.file(rows, Interlude::Nothing);
    }

    fn key_of_chain(&self) -> Arc<SigningKey> {
        let chain = self.work.chain.as_ref().expect("a commit belongs to an open chain");
        chain.key.clone()
    }

    pub(super) fn file(&mut self, rows: Vec<JournalRow>, interlude: Interlude) {
        if self.work.backlog.batches().is_refused {
            return self.work.backlog.keep_refused(rows);
        }
        match self.try_file(&rows, interlude) {
            Ok(changed) => {
                self.work.backlog.count_filed(rows.len());
                self.health.set_progress(self.work.backlog.progress());
                self.changes.send_replace(changed);
                self.log_copy.look();
                let bytes = rows.iter().map(JournalRow::bytes).sum();
                if self.retention.count_filed(rows.len(), bytes) {
                    self.schedule.hasten_upkeep(Instant::now());
                }
                self.guard_chain();
                if self.situation().begins_journal_anew() {
                    self.begin_journal_anew();
                }
            }
            Err(error) => {
                self.failed(&error);
                self.work.backlog.keep_refused(rows);
            }
        }
    }

    fn try_file(&mut self, rows: &[JournalRow], interlude: Interlude) -> Result<i64, StoreError> {
        let chain = self.work.chain.as_ref().expect("a signature belongs to an open chain");
        let (number, id) = (chain.number, chain.id.clone());
        let mut filing = Filing::begin(&self.db, ChainRef { number, id: &id }, rows)?;
        let mut filed = Ok(());
        for some in rows.chunks(FILE_AT_ONCE) {
            filed = self.work.filer.add(&self.db, &mut filing, some);
            match (&filed, interlude) {
                (Ok(()), Interlude::Commits) => self.commit_meanwhile(),
                (Ok(()), Interlude::Nothing) => {}
                (Err(_), _) => break,
            }
        }
        self.work.filer.finish(&self.db, filing, filed, Consequence::Nothing)
    }

    /// Commits waiting entries. The tables are being written, so that need not be checked.
    fn commit_meanwhile(&mut self) {
        if self.situation().lets_commit_beside_filing() {
            let submissions = self.gather();
            self.commit(submissions, Tables::Writable);
        }
    }

    /// Notices if somebody deleted the lock file of the chain, or its journal.
    fn guard_chain(&mut self) {
        let Some(chain) = &mut self.work.chain else {
            return;
        };
        chain.guard(&self.writers);
        if !chain.journal.is_in_place() {
            tracing::warn!(chain = %chain.id, "the chain's journal was deleted; it is written anew");
            self.work.is_journal_due = true;
        }
    }

    /// Removes filed rows from the journal.
    fn begin_journal_anew(&mut self) {
        self.work.is_journal_due = false;
        let Work { chain: Some(chain), drafts, backlog, .. } = &mut self.work else {
            return;
        };
        let begun = (chain.end, chain.key.public().fingerprint().to_string());
        if let Err(error) = chain.journal.begin_anew(begun, drafts.running(), backlog.rows()) {
            tracing::warn!("cannot shrink the journal, which keeps growing: {error}");
        }
    }

    pub(super) fn refile(&mut self) {
        if let Some(rows) = self.work.backlog.take_refused() {
            self.file(rows, Interlude::Nothing);
            if !self.work.backlog.batches().is_refused {
                self.recovered();
            }
        }
    }

    /// Signs and files everything committed, on this thread.
    pub(super) fn file_all(&mut self) -> Result<(), StoreError> {
        self.refile();
        loop {
            let Situation { unfiled, batches, .. } = self.situation();
            if batches.is_refused {
                return Err(self.health.fault());
            }
            if unfiled.rows == 0 {
                return Ok(());
            }
            self.sign_and_file();
        }
    }
}
