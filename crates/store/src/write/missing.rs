//! The part of a journal that the tables lack, looked up row by row. The number of the last filed
//! entry is not trusted where the tables may have lost rows.

use rusqlite::{Connection, OptionalExtension};

use crate::error::StoreError;
use crate::upkeep::stated::StatedDeletions;
use crate::write::chain::{filed_end_of, hash_at};
use crate::write::filing;
use crate::write::link::{ChainEnd, ChainRef};
use crate::write::row::{JournalRow, ReceiptPromise};

/// The state of a call in the tables.
enum CallState {
    Absent,
    Started,
    Ended,
}

/// Keeps the rows of which the record or the receipt is in no table.
pub(crate) fn only(db: &Connection, rows: Vec<JournalRow>) -> Result<Vec<JournalRow>, StoreError> {
    let (mut missing, stated) = (Vec::new(), StatedDeletions::of_home(db)?);
    for mut row in rows {
        if is_missing(db, &mut row, &stated)? {
            missing.push(row);
        }
    }
    Ok(missing)
}

/// Reports whether a part of a row is in no table. A record that was deleted, as a receipt states, is
/// not missing.
fn is_missing(
    db: &Connection,
    row: &mut JournalRow,
    stated: &StatedDeletions,
) -> Result<bool, StoreError> {
    let is_deleted = row.call.as_ref().is_some_and(|call| stated.cover(&call.agent.token, call.at));
    let Some(ended) = &row.ended else {
        let Some(call) = &row.call else { return Ok(false) };
        return Ok(!is_deleted && matches!(state(db, &call.id)?, CallState::Absent));
    };
    Ok(match state(db, &ended.id)? {
        CallState::Absent if !is_deleted => true,
        CallState::Started => true,
        CallState::Absent | CallState::Ended if filing::has_receipt(db, &ended.id)? => false,
        CallState::Absent | CallState::Ended => {
            if let Some(promise) = &mut row.promise {
                promise.is_recorded = true;
            }
            row.promise.is_some()
        }
    })
}

fn state(db: &Connection, call: &str) -> Result<CallState, StoreError> {
    let words = "SELECT status = 'pending' AND receipt_id IS NULL FROM activity WHERE id = ?1";
    let is_pending: Option<bool> =
        db.prepare_cached(words)?.query_row([call], |row| row.get(0)).optional()?;
    Ok(match is_pending {
        None => CallState::Absent,
        Some(true) => CallState::Started,
        Some(false) => CallState::Ended,
    })
}

/// Returns the end of the chain before the place of a promised receipt, if that place is free and the
/// receipt before it is known: it is in the tables, or was composed last.
pub(crate) fn place_before(
    db: &Connection,
    chain: ChainRef<'_>,
    promise: &ReceiptPromise,
    last: ChainEnd,
) -> Result<Option<ChainEnd>, StoreError> {
    let Some(before) = promise.sequence.checked_sub(1) else { return Ok(None) };
    if hash_at(db, chain.id, promise.sequence)?.is_some() {
        return Ok(None);
    }
    if before == 0 {
        return Ok(Some(ChainEnd::default()));
    }
    if last.sequence == before {
        return Ok(Some(last));
    }
    let hash = hash_at(db, chain.id, before)?.and_then(|hash| hash.parse().ok());
    Ok(hash.map(|hash| ChainEnd { sequence: before, hash: Some(hash) }))
}

/// Returns how many receipts a chain had that are neither in the tables nor promised by these rows.
pub(crate) fn lost_receipts(
    db: &Connection,
    chain: &str,
    rows: &[JournalRow],
) -> Result<u64, StoreError> {
    let words = "SELECT count(*) FROM receipts WHERE chain_id = ?1";
    let filed: u64 = db.query_row(words, [chain], |row| row.get(0))?;
    let promised = rows.iter().filter_map(|row| row.promise.as_ref());
    let (promises, highest) = promised
        .fold((0, 0), |(count, highest), promise| (count + 1, promise.sequence.max(highest)));
    let highest = filed_end_of(db, chain)?.sequence.max(highest);
    Ok(highest.saturating_sub(filed + promises))
}
