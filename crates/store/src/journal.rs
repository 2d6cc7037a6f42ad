//! The journal: where a call is committed before anybody is answered.

mod file;
mod table;

use std::collections::HashMap;
use std::sync::Arc;

use receipt::content::Body;
use rusqlite::Connection;

use crate::StoreError;
use crate::columns::Columns;
use crate::record::{Ended, Payload, Started};

pub(crate) use file::{Journal, chains, end_of};
pub(crate) use table::clear;

/// An entry on its way from the journal to where it is filed.
pub(crate) struct Row {
    /// Its number in the chain's journal; 0 for what is filed without having been there.
    pub(crate) entry: i64,
    /// Absent for receipts that no call left, such as the terminal one.
    pub(crate) call: Option<Arc<Started>>,
    pub(crate) ended: Option<Arc<Ended>>,
    /// The entry that holds the start of the call that ends here.
    pub(crate) start: Option<i64>,
    pub(crate) link: Option<Link>,
    /// What a dead process left says of its receipt.
    pub(crate) promised: Option<Promised>,
}

/// The hash under which a receipt was committed, and when that was: its text is made again from the
/// record. An older program did not keep the time.
pub(crate) struct Promised {
    pub(crate) hash: String,
    pub(crate) issued_at: Option<String>,
}

impl Row {
    /// A receipt that no call left.
    pub(crate) fn of(link: Link) -> Row {
        let link = Some(link);
        Row { entry: 0, call: None, ended: None, start: None, link, promised: None }
    }

    /// About what it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let kept = |payload: &Payload| payload.kept.as_ref().map_or(0, String::len);
        let body = self.link.as_ref().map_or(0, |link| link.body.text().len());
        body + self.call.as_ref().map_or(0, |call| kept(&call.arguments))
            + self.ended.as_ref().map_or(0, |ended| kept(&ended.response))
    }
}

/// The place of a receipt in its chain, and its text: without a proof until it is signed.
pub(crate) struct Link {
    pub(crate) sequence: u64,
    pub(crate) body: Body,
    pub(crate) columns: Columns,
    pub(crate) signed: Option<String>,
}

/// What a process that is gone has left of a chain.
pub(crate) struct Left {
    rows: Vec<Row>,
    /// Up to which entry it had been filed.
    filed: i64,
}

impl Left {
    pub(crate) fn read(
        db: &Connection,
        chain: i64,
        journal: &mut Journal,
    ) -> Result<Left, StoreError> {
        let filed = "SELECT filed FROM chains WHERE chain = ?1";
        let filed = db.query_row(filed, [chain], |row| row.get(0))?;
        let mut rows = table::read(db, chain)?;
        rows.extend(journal.read()?);
        Ok(Left { rows, filed })
    }

    /// What has not been filed, each end with its start; and the starts, of which some may have ended.
    pub(crate) fn sort(self) -> (Vec<Row>, Vec<(i64, Arc<Started>)>) {
        let mut starts: HashMap<String, (i64, Arc<Started>)> = HashMap::new();
        let mut unfiled: Vec<Row> = Vec::new();
        for mut row in self.rows {
            match (&row.call, &row.ended) {
                (Some(call), None) => {
                    starts.insert(call.id.clone(), (row.entry, call.clone()));
                }
                (None, Some(ended)) => {
                    if let Some((entry, call)) = starts.remove(&ended.id) {
                        (row.start, row.call) = (Some(entry), Some(call));
                    }
                }
                (Some(_), Some(_)) | (None, None) => {}
            }
            if row.entry > self.filed {
                unfiled.push(row);
            }
        }
        let mut starts: Vec<_> = starts.into_values().collect();
        starts.sort_by_key(|(entry, _)| *entry);
        (unfiled, starts)
    }
}

/// Whether a call was filed when it started and has not been ended.
pub(crate) fn is_pending(db: &Connection, id: &str) -> Result<bool, StoreError> {
    let found = db
        .prepare_cached(
            "SELECT 1 FROM activity WHERE id = ?1 AND status = 'pending' AND receipt_id IS NULL",
        )?
        .exists([id])?;
    Ok(found)
}

/// Says that the journal of a chain has been filed up to the last of these rows.
pub(crate) fn filed(db: &Connection, chain: i64, rows: &[Row]) -> Result<(), StoreError> {
    if let Some(last) = rows.last().filter(|last| last.entry > 0) {
        db.prepare_cached("UPDATE chains SET filed = ?2 WHERE chain = ?1")?
            .execute([chain, last.entry])?;
    }
    Ok(())
}
