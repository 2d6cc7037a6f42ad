//! The journal: where a call is committed before anybody is answered. One row per entry, no index.

use std::collections::HashMap;
use std::sync::Arc;

use domain::ledger::receipt::Body;
use rusqlite::{Connection, Row as SqlRow, params};

use crate::StoreError;
use crate::columns::Columns;
use crate::record::{Ended, Payload, Started};

/// An entry on its way from the journal to where it is filed.
pub(crate) struct Row {
    /// Its number in the chain's journal; 0 for what is filed without having been there.
    pub(crate) entry: i64,
    /// The row of the table that holds it.
    pub(crate) slot: i64,
    /// Absent for receipts that no call left, such as the terminal one.
    pub(crate) call: Option<Arc<Started>>,
    pub(crate) ended: Option<Arc<Ended>>,
    /// The slot that holds the start of the call that ends here. It is not written over until then,
    /// so that the end of the process does not take the start along.
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
        Row { entry: 0, slot: 0, call: None, ended: None, start: None, link, promised: None }
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

/// Where entries are written: over rows that have been filed, as far as there are any.
#[derive(Default)]
pub(crate) struct Slots {
    free: Vec<i64>,
    /// Slots at the end of `free` that the transaction under way has written.
    taken: usize,
    /// The last entry that is committed, and the last that was written.
    committed: i64,
    written: i64,
}

impl Slots {
    /// Writes a row and gives it its number and place.
    pub(crate) fn write(
        &mut self,
        db: &Connection,
        chain: i64,
        row: &mut Row,
    ) -> Result<(), StoreError> {
        let slot = self.free.iter().rev().nth(self.taken).copied();
        let mut statement = db.prepare_cached(match slot {
            Some(_) => {
                "UPDATE journal SET chain = ?2, entry = ?3, started = ?4, ended = ?5,
                   arguments = ?6, response = ?7, sequence = ?8, hash = ?9, issued_at = ?10
                 WHERE slot = ?1"
            }
            None => {
                "INSERT INTO journal (slot, chain, entry, started, ended, arguments, response,
                   sequence, hash, issued_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
            }
        })?;
        let link = row.link.as_ref();
        let started = row.call.as_deref().filter(|_| row.start.is_none());
        row.entry = self.written + 1;
        statement.execute(params![
            slot,
            chain,
            row.entry,
            started.map(text).transpose()?,
            row.ended.as_deref().map(text).transpose()?,
            started.and_then(|started| started.arguments.kept.as_deref()),
            row.ended.as_deref().and_then(|ended| ended.response.kept.as_deref()),
            link.map(|link| link.sequence),
            link.map(|link| link.body.hash().to_string()),
            link.map(|link| &link.columns.issued_at),
        ])?;
        self.written = row.entry;
        row.slot = match slot {
            Some(slot) => {
                self.taken += 1;
                slot
            }
            None => db.last_insert_rowid(),
        };
        Ok(())
    }

    /// The transaction was committed.
    pub(crate) fn keep(&mut self) {
        self.free.truncate(self.free.len() - std::mem::take(&mut self.taken));
        self.committed = self.written;
    }

    /// The transaction was not committed.
    pub(crate) fn undo(&mut self) {
        self.taken = 0;
        self.written = self.committed;
    }

    /// What these rows hold has been filed; starts of calls that still run stay.
    pub(crate) fn release(&mut self, rows: &[Row]) {
        let starts = rows.iter().filter_map(|row| row.start);
        let ends = rows.iter().filter(|row| row.ended.is_some()).map(|row| row.slot);
        self.free.extend(starts.chain(ends));
    }
}

/// What a process that is gone has not filed, each end with its start.
pub(crate) fn unfiled(db: &Connection, chain: i64) -> Result<Vec<Row>, StoreError> {
    let (filed, rows) = left(db, chain)?;
    let mut starts: HashMap<String, (i64, Arc<Started>)> = HashMap::new();
    let mut unfiled: Vec<Row> = Vec::new();
    for mut row in rows {
        match (&row.call, &row.ended) {
            (Some(call), None) => {
                starts.insert(call.id.clone(), (row.slot, call.clone()));
            }
            (None, Some(ended)) => {
                if let Some((slot, call)) = starts.remove(&ended.id) {
                    (row.start, row.call) = (Some(slot), Some(call));
                }
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        if row.entry > filed {
            unfiled.push(row);
        }
    }
    Ok(unfiled)
}

/// The starts of calls that never ended, once all that was left has been filed.
pub(crate) fn open_calls(db: &Connection, chain: i64) -> Result<Vec<Row>, StoreError> {
    let (_, rows) = left(db, chain)?;
    let mut open = Vec::new();
    for row in rows {
        if let (Some(call), None) = (&row.call, &row.ended)
            && is_pending(db, &call.id)?
        {
            open.push(row);
        }
    }
    Ok(open)
}

/// Up to where a chain has been filed, and the rows that still say something: those beyond it, and
/// starts.
fn left(db: &Connection, chain: i64) -> Result<(i64, Vec<Row>), StoreError> {
    let filed: i64 =
        db.query_row("SELECT filed FROM chains WHERE chain = ?1", [chain], |row| row.get(0))?;
    let mut statement = db.prepare(
        "SELECT entry, slot, started, ended, arguments, response, hash, issued_at FROM journal
         WHERE chain = ?1 AND (entry > ?2 OR ended IS NULL) ORDER BY entry",
    )?;
    let rows = statement.query_map([chain, filed], read)?;
    let rows = rows.map(|row| row.map_err(StoreError::from).and_then(|row| row));
    Ok((filed, rows.collect::<Result<_, _>>()?))
}

/// Whether a call was filed when it started and has not been ended.
fn is_pending(db: &Connection, id: &str) -> Result<bool, StoreError> {
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

/// Nothing of a chain is left to be filed.
pub(crate) fn clear(db: &Connection, chain: i64) -> Result<(), StoreError> {
    db.execute("DELETE FROM journal WHERE chain = ?1", [chain])?;
    Ok(())
}

fn text<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Write(error.to_string()))
}

fn read(row: &SqlRow<'_>) -> rusqlite::Result<Result<Row, StoreError>> {
    let (entry, slot) = (row.get(0)?, row.get(1)?);
    let started: Option<String> = row.get(2)?;
    let ended: Option<String> = row.get(3)?;
    let (arguments, response) = (row.get(4)?, row.get(5)?);
    let hash: Option<String> = row.get(6)?;
    let issued_at = row.get(7)?;
    let parsed = move || {
        let unreadable = |error| StoreError::Corrupt(format!("journal entry {entry}: {error}"));
        let started = started.map(|text| serde_json::from_str::<Started>(&text)).transpose();
        let mut started = started.map_err(unreadable)?;
        if let Some(started) = &mut started {
            started.arguments.kept = arguments;
        }
        let ended = ended.map(|text| serde_json::from_str::<Ended>(&text)).transpose();
        let mut ended = ended.map_err(unreadable)?;
        if let Some(ended) = &mut ended {
            ended.response.kept = response;
        }
        Ok(Row {
            entry,
            slot,
            call: started.map(Arc::new),
            start: None,
            ended: ended.map(Arc::new),
            link: None,
            promised: hash.map(|hash| Promised { hash, issued_at }),
        })
    };
    Ok(parsed())
}
