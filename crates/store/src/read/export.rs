//! Exports all matches one by one. The next page is read when the last one is used up, so that
//! neither memory nor the file is held for long.

use std::vec;

use super::filter::RecordFilter;
use super::reader::Reader;
use super::receipts::ReceiptText;
use super::record::{Record, RecordDetail};
use super::search::{Effort, Search};
use super::{activity, receipts};
use crate::error::StoreError;
use crate::limits::EXPORT_PAGE;

/// Records, newest first; those added meanwhile are left out.
pub struct Records {
    reader: Reader,
    filter: RecordFilter,
    detail: RecordDetail,
    /// Planned with the first page, and kept.
    search: Option<Search>,
    page: vec::IntoIter<Record>,
    /// The start of the next page; `None` after the last one.
    below: Option<i64>,
}

/// The receipts of one chain as they were signed, in order.
pub struct ReceiptTexts {
    reader: Reader,
    chain_id: String,
    page: vec::IntoIter<ReceiptText>,
    /// The last sequence so far; `None` after the last page.
    after: Option<i64>,
}

impl Reader {
    /// Returns all matching records.
    pub fn records(&self, filter: RecordFilter, detail: RecordDetail) -> Records {
        let page = Vec::new().into_iter();
        let below = Some(i64::MAX);
        Records { reader: self.clone(), filter, detail, search: None, page, below }
    }

    /// Returns the signed texts of a chain.
    pub fn receipt_texts(&self, chain_id: &str) -> ReceiptTexts {
        let page = Vec::new().into_iter();
        let chain_id = chain_id.to_owned();
        ReceiptTexts { reader: self.clone(), chain_id, page, after: Some(i64::MIN) }
    }
}

impl Records {
    fn turn(&mut self, below: i64) -> Result<(), StoreError> {
        let (filter, detail, kept) = (&self.filter, self.detail, self.search.take());
        let (search, records, below) = self.reader.pool.ask_in_passing(|db| {
            let chosen = match kept {
                Some(search) => Some(search),
                None => filter.search(db, Effort::USUAL)?,
            };
            let Some(search) = chosen else {
                return Ok((None, Vec::new(), None));
            };
            let found = search.below(db, Some(below), EXPORT_PAGE)?;
            let records = activity::records(db, &found, detail)?;
            Ok((Some(search), records, found.more_below))
        })?;
        (self.search, self.page, self.below) = (search, records.into_iter(), below);
        Ok(())
    }
}

impl Iterator for Records {
    type Item = Result<Record, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.page.next() {
                return Some(Ok(record));
            }
            let below = self.below.take()?;
            if let Err(error) = self.turn(below) {
                return Some(Err(error));
            }
        }
    }
}

impl Iterator for ReceiptTexts {
    type Item = Result<String, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(ReceiptText { sequence, text }) = self.page.next() {
                if self.page.len() == 0 {
                    self.after = Some(sequence);
                }
                return Some(Ok(text));
            }
            let after = self.after.take()?;
            let chain_id = &self.chain_id;
            let pool = &self.reader.pool;
            match pool.ask_in_passing(|db| receipts::texts(db, chain_id, after, EXPORT_PAGE)) {
                Ok(texts) => self.page = texts.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
