//! Signing and filing: committed rows become rows of the tables, a batch at a time.

use std::sync::Arc;
use std::time::Instant;

use receipt::key::SigningKey;
use rusqlite::Connection;

use super::commit::Tables;
use super::{Work, Writer};
use crate::database::{FILE, connection};
use crate::error::StoreError;
use crate::limits::FILE_AT_ONCE;
use crate::write::filing::{Consequence, Filer, Filing};
use crate::write::link::ChainRef;
use crate::write::row::JournalRow;
use crate::write::schedule::Situation;

/// The connection that files, separate from the writer's, so that a batch can be filed while the
/// writer commits.
pub(super) struct FilingConnection {
    db: Connection,
    filer: Filer,
}

/// Signed rows, and all that is needed to file them without the writer.
pub(super) struct Batch {
    rows: Vec<JournalRow>,
    chain_number: i64,
    chain_id: String,
    connection: FilingConnection,
}

/// A batch after its transaction.
pub(super) struct FiledBatch {
    connection: FilingConnection,
    result: Result<FiledRows, (StoreError, Vec<JournalRow>)>,
}

struct FiledRows {
    count: usize,
    bytes: usize,
    /// The number of the last change.
    changed: i64,
}

impl Batch {
    /// Files all the rows, or none. Between some and the next it lets `meanwhile` do other work.
    pub(super) fn file(mut self, meanwhile: impl FnMut()) -> FiledBatch {
        let result = match self.try_file(meanwhile) {
            Ok(changed) => {
                let bytes = self.rows.iter().map(JournalRow::bytes).sum();
                Ok(FiledRows { count: self.rows.len(), bytes, changed })
            }
            Err(error) => Err((error, self.rows)),
        };
        FiledBatch { connection: self.connection, result }
    }

    fn try_file(&mut self, mut meanwhile: impl FnMut()) -> Result<i64, StoreError> {
        let Batch { rows, chain_number, chain_id, connection } = self;
        let FilingConnection { db, filer } = connection;
        let chain = ChainRef { number: *chain_number, id: chain_id };
        let mut filing = Filing::begin(db, chain, rows)?;
        let mut filed = Ok(());
        for some in rows.chunks(FILE_AT_ONCE) {
            filed = filer.add(db, &mut filing, some);
            if filed.is_err() {
                break;
            }
            meanwhile();
        }
        filer.finish(db, filing, filed, Consequence::Nothing)
    }
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
        self.file(rows);
    }

    fn key_of_chain(&self) -> Arc<SigningKey> {
        let chain = self.work.chain.as_ref().expect("a commit belongs to an open chain");
        chain.key.clone()
    }

    /// Files a batch at once. No entries are committed meanwhile: while everything committed is
    /// being filed, more of them would never let that end.
    fn file(&mut self, rows: Vec<JournalRow>) {
        if let Some(batch) = self.begin_filing(rows) {
            let filed = batch.file(|| {});
            self.end_filing(filed);
        }
    }

    /// Returns a batch to file. None if it has to wait, and is kept.
    pub(super) fn begin_filing(&mut self, rows: Vec<JournalRow>) -> Option<Batch> {
        if self.work.backlog.batches().is_refused {
            self.work.backlog.keep_refused(rows);
            return None;
        }
        match self.filing_connection() {
            Ok(connection) => {
                let chain = self.work.chain.as_ref().expect("a signature belongs to an open chain");
                let (chain_number, chain_id) = (chain.number, chain.id.clone());
                Some(Batch { rows, chain_number, chain_id, connection })
            }
            Err(error) => {
                self.failed(&error);
                self.work.backlog.keep_refused(rows);
                None
            }
        }
    }

    fn filing_connection(&mut self) -> Result<FilingConnection, StoreError> {
        let connection = match self.work.filing.take() {
            Some(connection) => connection,
            None => {
                let db = connection::writing(&self.home.join(FILE), self.durability)?;
                FilingConnection { db, filer: Filer::default() }
            }
        };
        connection.db.busy_timeout(self.busy_timeout())?;
        Ok(connection)
    }

    pub(super) fn end_filing(&mut self, filed: FiledBatch) {
        self.work.filing = Some(filed.connection);
        self.work.holds_tables = false;
        match filed.result {
            Ok(FiledRows { count, bytes, changed }) => {
                self.work.backlog.count_filed(count);
                self.health.set_progress(self.work.backlog.progress());
                self.changes.send_replace(changed);
                self.log_copy.look();
                if self.retention.count_filed(count, bytes) {
                    self.schedule.hasten_upkeep(Instant::now());
                }
                self.guard_chain();
                if self.situation().begins_journal_anew() {
                    self.begin_journal_anew();
                }
            }
            Err((error, rows)) => {
                self.failed(&error);
                self.work.backlog.keep_refused(rows);
            }
        }
    }

    /// Commits waiting entries while a batch is being filed. The tables are being written, so that
    /// need not be checked.
    pub(super) fn commit_meanwhile(&mut self) {
        self.work.holds_tables = true;
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
            self.file(rows);
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
