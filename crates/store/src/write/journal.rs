//! The journal: a call is committed here before the caller gets a response.

mod checksum;
mod file;
mod line;
mod scan;
pub(crate) mod tail;

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;

use crate::error::StoreError;
use crate::record::CallStart;
use crate::write::missing;
use crate::write::row::JournalRow;

pub(crate) use file::{
    DAMAGED_ENDING, Journal, UnfiledPromises, chains, end_of, has_traces, header, scan, unfiled,
};
pub(crate) use line::{Header, HeaderFacts};
pub(crate) use scan::{DamagedLine, LostEntries, Scan};

/// The part of a chain that a dead process left in its journal.
pub(crate) struct Remnant {
    /// Rows that have not been filed, each end with its start.
    pub(crate) unfiled: Vec<JournalRow>,
    /// The starts without an end in the journal, by entry; some may have ended nevertheless.
    pub(crate) starts: Vec<OpenStart>,
    pub(crate) damaged: Vec<DamagedLine>,
    /// Entries that were committed, not filed, and cannot be read.
    pub(crate) lost: LostEntries,
    /// The last line is not the one that was committed.
    pub(crate) is_rewritten: bool,
}

/// The start of a call whose end is not in the journal.
pub(crate) struct OpenStart {
    pub(crate) entry: i64,
    pub(crate) call: Arc<CallStart>,
}

impl Remnant {
    /// Reads what follows the last filed entry, as the tables name it.
    pub(crate) fn read(
        db: &Connection,
        chain: i64,
        journal: &mut Journal,
    ) -> Result<Remnant, StoreError> {
        let filed = filed(db, chain)?;
        let mut scan = journal.read()?;
        let is_rewritten = journal.restore_promise(&mut scan.rows);
        let lost = scan.lost_up_to(journal.last_known(), filed);
        let Scan { rows, damaged, .. } = scan;
        let sorted = Remnant::of(rows, filed);
        Ok(Remnant { damaged, lost, is_rewritten, ..sorted })
    }

    /// Reads whatever is in no table: each row is looked up, since the tables may have lost some
    /// that were filed.
    pub(crate) fn read_by_row(
        db: &Connection,
        chain: i64,
        journal: &mut Journal,
    ) -> Result<Remnant, StoreError> {
        let mut scan = journal.read()?;
        let is_rewritten = journal.restore_promise(&mut scan.rows);
        // If there are receipts of the chain, those that are missing among them are counted.
        let has_receipts = "SELECT EXISTS (SELECT 1 FROM receipts JOIN chains USING (chain_id)
             WHERE chain = ?1)";
        let has_receipts: bool = db.query_row(has_receipts, [chain], |row| row.get(0))?;
        let carried = scan.header.as_ref().filter(|_| has_receipts).map_or(0, |it| it.filed);
        let filed = filed(db, chain)?.max(carried);
        let lost = scan.lost_up_to(journal.last_known(), filed);
        let Scan { rows, damaged, .. } = scan;
        let Remnant { unfiled, starts, .. } = Remnant::of(rows, 0);
        let unfiled = missing::only(db, unfiled)?;
        Ok(Remnant { unfiled, starts, damaged, lost, is_rewritten })
    }

    /// Sorts rows that were filed up to an entry.
    fn of(rows: Vec<JournalRow>, filed: i64) -> Remnant {
        let mut starts: HashMap<String, OpenStart> = HashMap::new();
        let mut unfiled: Vec<JournalRow> = Vec::new();
        for mut row in rows {
            match (&row.call, &row.ended) {
                (Some(call), None) => {
                    let start = OpenStart { entry: row.entry, call: call.clone() };
                    starts.insert(call.id.clone(), start);
                }
                (None, Some(ended)) => {
                    if let Some(start) = starts.remove(&ended.id) {
                        let call = start.call.ended(ended);
                        (row.start, row.call) = (Some(start.entry), Some(call));
                    }
                }
                (Some(_), Some(_)) | (None, None) => {}
            }
            if row.entry > filed {
                unfiled.push(row);
            }
        }
        let mut starts: Vec<_> = starts.into_values().collect();
        starts.sort_by_key(|start| start.entry);
        let (damaged, lost, is_rewritten) = (Vec::new(), LostEntries::default(), false);
        Remnant { unfiled, starts, damaged, lost, is_rewritten }
    }
}

fn filed(db: &Connection, chain: i64) -> Result<i64, StoreError> {
    let words = "SELECT filed FROM chains WHERE chain = ?1";
    Ok(db.query_row(words, [chain], |row| row.get(0))?)
}
