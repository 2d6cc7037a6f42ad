//! The list of activity, and single records.

use rusqlite::Connection;

use super::cursor::{self, List};
use super::filter::RecordFilter;
use super::page::Page;
use super::reader::Reader;
use super::record::{self, Record, RecordDetail};
use super::search::{Effort, Hits, Search, Total};
use crate::database::change;
use crate::error::StoreError;

/// One page, newest first.
#[derive(Clone, Debug)]
pub struct Activity {
    pub records: Vec<Record>,
    /// Absent on the last page. A page may hold fewer records than requested, or none, and still
    /// have a next one: a search that no index answers stops after a second.
    pub next_cursor: Option<String>,
    /// The total of all pages.
    pub total: Total,
}

impl Reader {
    pub fn activity(&self, filter: &RecordFilter, page: &Page) -> Result<Activity, StoreError> {
        let below = match &page.cursor {
            Some(text) => Some(cursor::read(List::Activity, text)?),
            None => None,
        };
        self.pool.ask_at_once(|db| {
            let Some(search) = filter.search(db, Effort::USUAL)? else {
                return Ok(Activity::none());
            };
            Activity::page(db, &search, below, page.rows())
        })
    }

    /// Returns a record with its payloads.
    pub fn record(&self, id: &str) -> Result<Option<Record>, StoreError> {
        self.pool.ask_at_once(|db| record::of_id(db, id))
    }

    /// Returns the number of the last change by any process.
    pub fn latest_change(&self) -> Result<i64, StoreError> {
        self.pool.ask(change::latest)
    }
}

impl Activity {
    fn none() -> Activity {
        Activity { records: Vec::new(), next_cursor: None, total: Total::Exact(0) }
    }

    pub(super) fn page(
        db: &Connection,
        search: &Search,
        below: Option<i64>,
        limit: usize,
    ) -> Result<Activity, StoreError> {
        let found = search.below(db, below, limit)?;
        Ok(Activity {
            records: records(db, &found, RecordDetail::Brief)?,
            next_cursor: found.more_below.map(|position| cursor::write(List::Activity, position)),
            total: search.count(db)?,
        })
    }
}

pub(super) fn records(
    db: &Connection,
    found: &Hits,
    detail: RecordDetail,
) -> Result<Vec<Record>, StoreError> {
    let mut records = Vec::with_capacity(found.positions.len());
    for number in &found.positions {
        records.extend(record::of_number(db, *number, detail)?);
    }
    Ok(records)
}
