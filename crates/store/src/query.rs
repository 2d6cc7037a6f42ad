//! Questions about what was done. Each blocks the thread that asks; readers never hold up the
//! writer. A question holds the file only for as long as one page takes, so that the write-ahead
//! log can be copied back in between.

pub mod activity;
mod audit;
mod connection;
pub mod contention;
mod cursor;
mod export;
mod filter;
pub mod receipts;
mod record;
pub mod runs;
mod search;
pub mod summary;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

pub use activity::Activity;
pub use audit::{Age, SIGNING_TIME_MAX};
pub use export::{Records, Texts};
pub use filter::Filter;
pub use receipts::{Chain, Opening, Receipt, ReceiptFilter, Receipts};
pub use record::{Detail, Intent, Payloads, Record};
pub use runs::{Change, Run, RunFilter, Runs};
pub use search::Total;
pub use summary::{Period, Summary};

use crate::StoreError;
use connection::Readers;
pub(crate) use connection::look;

/// A ledger to read from; clones are the same one.
#[derive(Clone)]
pub struct Reader {
    readers: Arc<Readers>,
}

impl Reader {
    /// The ledger of a home, which may be written to meanwhile.
    pub(crate) fn live(file: &Path) -> Reader {
        Reader { readers: Arc::new(Readers::live(file)) }
    }

    /// Any file with receipts: a ledger, a copy of one, or what another program wrote in the same
    /// form. Nothing is written beside it. One without receipts is an error.
    pub fn open(file: &Path) -> Result<Reader, StoreError> {
        let reader = Reader { readers: Arc::new(Readers::of_file(file)?) };
        reader.readers.ask(receipts::check)?;
        Ok(reader)
    }
}

/// How much of a list, and from where on.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// 1 to [`PAGE_MAX`]; others are taken as the nearest of these.
    pub limit: usize,
    /// Where an earlier page ended.
    pub cursor: Option<String>,
}

/// Rows of one page: what a person can look through.
pub const PAGE_MAX: usize = 100;

impl Page {
    pub fn first(limit: usize) -> Page {
        Page { limit, cursor: None }
    }

    fn rows(&self) -> usize {
        self.limit.clamp(1, PAGE_MAX)
    }
}
