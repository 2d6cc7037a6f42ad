//! Recovery after a process that did not end properly: entries in the journal, calls without an
//! end, a chain without its terminal receipt.

use std::path::Path;
use std::sync::Arc;

use receipt::content::Termination;
use rusqlite::Connection;

use crate::database::WRITERS;
use crate::database::lock::Lock;
use crate::database::timestamp;
use crate::error::StoreError;
use crate::keys::Keys;
use crate::limits::FILE_MAX;
use crate::record::CallEnd;
use crate::write::chain::OpenChain;
use crate::write::compose;
use crate::write::filing::{Clerk, Consequence};
use crate::write::heads;
use crate::write::journal::{self, OpenStart, Remnant};
use crate::write::link::{ChainEnd, ChainRef};
use crate::write::row::JournalRow;

/// Closes every chain whose writer is gone. The caller holds the maintenance lock.
pub(crate) fn recover(db: &mut Connection, home: &Path, keys: &Keys) -> Result<usize, StoreError> {
    let writers = &home.join(WRITERS);
    let mut closed = 0;
    for left in abandoned(db, writers)? {
        let Some(lock) = Lock::take(writers, &left.chain_id)? else {
            continue;
        };
        // Its writer may have ended it properly just before its lock was taken.
        let is_left = abandoned(db, writers)?.iter().any(|chain| chain.number == left.number);
        if is_left && !heads::set_damaged_aside(db, home, &left.chain_id)? {
            close(db, writers, left, lock, keys)?;
            closed += 1;
        }
    }
    Ok(closed)
}

struct AbandonedChain {
    number: i64,
    chain_id: String,
    key: String,
    is_open: bool,
}

/// Returns chains that were not closed, and those with a leftover journal.
fn abandoned(db: &Connection, writers: &Path) -> Result<Vec<AbandonedChain>, StoreError> {
    let mut statement = db.prepare(
        "SELECT chain, chain_id, key, status = 'open' FROM chains
         WHERE status <> 'damaged' AND (status = 'open' OR chain IN (SELECT chain FROM journal)
           OR chain_id IN (SELECT value FROM json_each(?1)))
         ORDER BY chain",
    )?;
    let journals = serde_json::to_string(&journal::chains(writers)).unwrap_or_default();
    let rows = statement.query_map([journals], |row| {
        let (number, chain_id) = (row.get(0)?, row.get(1)?);
        Ok(AbandonedChain { number, chain_id, key: row.get(2)?, is_open: row.get(3)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn close(
    db: &mut Connection,
    writers: &Path,
    left: AbandonedChain,
    lock: Lock,
    keys: &Keys,
) -> Result<(), StoreError> {
    let key = keys.of(&left.key)?;
    let mut chain = OpenChain::adopt(
        db,
        writers,
        ChainRef { number: left.number, id: &left.chain_id },
        key,
        lock,
    )?;
    let mut end = chain.end;
    let mut clerk = Clerk::default();
    let Remnant { mut unfiled, starts } = Remnant::read(db, chain.number, &mut chain.journal)?;
    for row in &mut unfiled {
        compose_again(&chain, &mut end, row);
        row.sign(&chain.key);
    }
    for rows in unfiled.chunks(FILE_MAX) {
        clerk.file(db, chain.by_ref(), rows, Consequence::Nothing)?;
    }
    if left.is_open {
        let mut rows = end_calls(db, &chain, &mut end, starts)?;
        rows.push(JournalRow::of_link(compose::closing(
            chain.issuance(&mut end),
            Termination::Interrupted,
            None,
        )));
        rows.iter_mut().for_each(|row| row.sign(&chain.key));
        clerk.file(db, chain.by_ref(), &rows, Consequence::Closed(Termination::Interrupted))?;
    } else {
        journal::clear(db, chain.number)?;
    }
    chain.journal.remove();
    Ok(())
}

/// Composes the receipt that was committed with a call. If its record differs by now, or another
/// program made it, the receipt is issued anew and names the promised hash.
fn compose_again(chain: &OpenChain, end: &mut ChainEnd, row: &mut JournalRow) {
    let (Some(call), Some(ended), Some(promise)) = (&row.call, &row.ended, &row.promise) else {
        return;
    };
    let issued_at = promise.issued_at.clone().unwrap_or_else(timestamp::now);
    let mut after = *end;
    let mut link = compose::call(chain.issuance(&mut after), call, ended, &issued_at);
    if promise.issued_at.is_some() && link.body.hash().to_string() != promise.hash {
        tracing::warn!(call = %call.id, "the record of this call differs from the committed one");
        after = *end;
        link = compose::reissued(chain.issuance(&mut after), call, ended, &promise.hash);
    }
    *end = after;
    row.link = Some(link);
}

/// Issues a receipt for each call that had started and not ended.
fn end_calls(
    db: &Connection,
    chain: &OpenChain,
    end: &mut ChainEnd,
    starts: Vec<OpenStart>,
) -> Result<Vec<JournalRow>, StoreError> {
    let mut rows = Vec::new();
    for OpenStart { entry, call } in starts {
        if is_pending(db, &call.id)? {
            let ended = CallEnd::interrupted(&call);
            let mut row = JournalRow::of_link(compose::call(
                chain.issuance(end),
                &call,
                &ended,
                &timestamp::now(),
            ));
            (row.call, row.ended, row.start) = (Some(call), Some(Arc::new(ended)), Some(entry));
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Reports whether a call was filed when it started and has not been ended.
fn is_pending(db: &Connection, id: &str) -> Result<bool, StoreError> {
    let found = db
        .prepare_cached(
            "SELECT 1 FROM activity WHERE id = ?1 AND status = 'pending' AND receipt_id IS NULL",
        )?
        .exists([id])?;
    Ok(found)
}
