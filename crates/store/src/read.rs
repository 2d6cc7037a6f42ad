//! Queries of the ledger. Each blocks its thread; readers never delay the writer. A query holds the
//! file only for one page, so that the write-ahead log can be copied back in between.

pub(crate) mod accepted;
pub mod activity;
mod agents;
mod audit;
pub mod contention;
pub(crate) mod copies;
mod coverage;
mod cursor;
mod export;
mod filter;
mod ids;
mod meetings;
mod near;
mod page;
mod pool;
mod published;
mod reader;
pub mod receipts;
mod record;
pub mod runs;
mod search;
mod stamps;
pub mod summary;

#[cfg(test)]
mod tests;

pub use crate::touches::RecordedTouch;
pub use activity::Activity;
pub use agents::SeenAgent;
pub(crate) use audit::records::{AlteredRecord, altered as altered_records};
pub(crate) use audit::touches::signed as signed_touches;
pub use audit::{AuditSource, LedgerPlace, SIGNING_TIME_MAX};
pub use coverage::{CoverageFilter, TargetCoverage, TargetLosses};
pub use export::{ReceiptTexts, Records};
pub use filter::{RecordFilter, TouchAccess};
pub use ids::{ID_PART_MIN, IdKind};
pub use meetings::{MetRecord, StoredMeeting};
pub use near::NearNames;
pub use page::{PAGE_MAX, Page};
pub use reader::Reader;
pub use receipts::{ChainOpening, ReceiptFilter, Receipts, StoredChain, StoredReceipt};
pub use record::{Payloads, Record, RecordDetail, RecordedIntent};
pub use runs::{LedgerChange, Run, RunFilter, Runs};
pub use search::Total;
pub use stamps::ReceiptStamp;
pub use summary::{Period, Summary};
