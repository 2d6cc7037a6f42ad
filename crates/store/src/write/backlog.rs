//! Rows that are committed but not yet filed. They wait in the order of their commits, and leave in
//! batches: to the signer and back, and again if a batch could not be filed.

use std::collections::VecDeque;
use std::time::Instant;

use crate::write::row::JournalRow;
use crate::write::schedule::{Batches, UnfiledRows};

#[derive(Default)]
pub(crate) struct Backlog {
    unfiled: VecDeque<WaitingRow>,
    bytes: usize,
    progress: Progress,
    is_at_signer: bool,
    signed: Vec<JournalRow>,
    refused: Option<Vec<JournalRow>>,
}

struct WaitingRow {
    since: Instant,
    row: JournalRow,
}

/// Rows committed and rows filed since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) committed: u64,
    pub(crate) filed: u64,
}

impl Backlog {
    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }

    pub(crate) fn unfiled(&self) -> UnfiledRows {
        let oldest = self.unfiled.front().map(|waiting| waiting.since);
        UnfiledRows { rows: self.unfiled.len(), bytes: self.bytes, oldest }
    }

    pub(crate) fn batches(&self) -> Batches {
        Batches {
            at_signer: self.is_at_signer,
            is_signed: !self.signed.is_empty(),
            is_refused: self.refused.is_some(),
        }
    }

    /// Returns the rows that are in no batch, oldest first.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &JournalRow> + Clone {
        self.unfiled.iter().map(|waiting| &waiting.row)
    }

    /// Keeps committed rows until they are filed.
    pub(crate) fn keep(&mut self, rows: Vec<JournalRow>, now: Instant) {
        self.progress.committed += rows.len() as u64;
        self.bytes += rows.iter().map(JournalRow::bytes).sum::<usize>();
        self.unfiled.extend(rows.into_iter().map(|row| WaitingRow { since: now, row }));
    }

    /// Takes the next rows to file.
    pub(crate) fn next_batch(&mut self) -> Vec<JournalRow> {
        let count = self.unfiled().batch();
        let rows: Vec<_> = self.unfiled.drain(..count).map(|waiting| waiting.row).collect();
        self.bytes -= rows.iter().map(JournalRow::bytes).sum::<usize>();
        rows
    }

    /// Takes the next rows for the signer.
    pub(crate) fn batch_for_signer(&mut self) -> Vec<JournalRow> {
        self.is_at_signer = true;
        self.next_batch()
    }

    /// Keeps the batch that the signer returned.
    pub(crate) fn keep_signed(&mut self, rows: Vec<JournalRow>) {
        self.is_at_signer = false;
        self.signed = rows;
    }

    pub(crate) fn take_signed(&mut self) -> Vec<JournalRow> {
        std::mem::take(&mut self.signed)
    }

    /// Keeps a batch that could not be filed, or not before an earlier one.
    pub(crate) fn keep_refused(&mut self, rows: Vec<JournalRow>) {
        self.refused.get_or_insert_default().extend(rows);
    }

    pub(crate) fn take_refused(&mut self) -> Option<Vec<JournalRow>> {
        self.refused.take()
    }

    /// Counts rows that were filed.
    pub(crate) fn count_filed(&mut self, rows: usize) {
        self.progress.filed += rows as u64;
    }
}
