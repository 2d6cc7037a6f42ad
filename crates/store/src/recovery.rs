//! What a process left behind that did not end well: entries in the journal, calls without an end,
//! a chain without its terminal receipt.

use std::path::Path;
use std::sync::Arc;

use receipt::content::Termination;
use rusqlite::Connection;

use crate::StoreError;
use crate::chain::{Chain, End, Lock};
use crate::compose;
use crate::drafts::interrupted;
use crate::filing::{Along, Clerk};
use crate::journal::{self, Row};
use crate::keys::Keys;
use crate::limits::FILE_MAX;
use crate::record::Started;

/// Closes every chain whose writer is gone. The caller holds the maintenance lock.
pub(crate) fn recover(
    db: &mut Connection,
    writers: &Path,
    keys: &Keys,
) -> Result<usize, StoreError> {
    let mut closed = 0;
    for left in left_open(db, writers)? {
        let Some(lock) = Lock::take(writers, &left.chain_id)? else {
            continue;
        };
        // Its writer may have ended it properly just before its lock was taken.
        if left_open(db, writers)?.iter().any(|chain| chain.number == left.number) {
            close(db, writers, left, lock, keys)?;
            closed += 1;
        }
    }
    Ok(closed)
}

struct Left {
    number: i64,
    chain_id: String,
    key: String,
    is_open: bool,
}

/// Chains that were not closed, and those of which something is left beside the tables.
fn left_open(db: &Connection, writers: &Path) -> Result<Vec<Left>, StoreError> {
    let mut statement = db.prepare(
        "SELECT chain, chain_id, key, status = 'open' FROM chains
         WHERE status = 'open' OR chain IN (SELECT chain FROM journal)
           OR chain_id IN (SELECT value FROM json_each(?1))
         ORDER BY chain",
    )?;
    let journals = serde_json::to_string(&journal::chains(writers)).unwrap_or_default();
    let rows = statement.query_map([journals], |row| {
        let (number, chain_id) = (row.get(0)?, row.get(1)?);
        Ok(Left { number, chain_id, key: row.get(2)?, is_open: row.get(3)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn close(
    db: &mut Connection,
    writers: &Path,
    left: Left,
    lock: Lock,
    keys: &Keys,
) -> Result<(), StoreError> {
    let key = keys.of(&left.key)?;
    let mut chain = Chain::adopt(db, writers, (left.number, left.chain_id), key, lock)?;
    let mut end = chain.end;
    let mut clerk = Clerk::default();
    let (mut rows, starts) = journal::Left::read(db, chain.number, &mut chain.journal)?.sort();
    for row in &mut rows {
        compose_again(&chain, &mut end, row);
        row.sign(&chain.key);
    }
    for rows in rows.chunks(FILE_MAX) {
        clerk.file(db, chain.owner(), rows, Along::Nothing)?;
    }
    if left.is_open {
        let mut rows = end_calls(db, &chain, &mut end, starts)?;
        rows.push(Row::of(compose::closing(chain.place(&mut end), Termination::Interrupted)));
        rows.iter_mut().for_each(|row| row.sign(&chain.key));
        clerk.file(db, chain.owner(), &rows, Along::Closed(Termination::Interrupted))?;
    } else {
        journal::clear(db, chain.number)?;
    }
    chain.journal.remove();
    Ok(())
}

/// The receipt that was committed with a call. Where its record says something else by now, or another
/// program made it, the receipt is issued anew and names the hash that was promised.
fn compose_again(chain: &Chain, end: &mut End, row: &mut Row) {
    let (Some(call), Some(ended), Some(promised)) = (&row.call, &row.ended, &row.promised) else {
        return;
    };
    let issued_at = promised.issued_at.clone().unwrap_or_else(compose::now);
    let mut after = *end;
    let mut link = compose::call(chain.place(&mut after), call, ended, &issued_at);
    if promised.issued_at.is_some() && link.body.hash().to_string() != promised.hash {
        tracing::warn!(call = %call.id, "its record is not the one that was committed");
        after = *end;
        link = compose::reissued(chain.place(&mut after), call, ended, &promised.hash);
    }
    *end = after;
    row.link = Some(link);
}

/// A receipt for each call that had started and not ended.
fn end_calls(
    db: &Connection,
    chain: &Chain,
    end: &mut End,
    starts: Vec<(i64, Arc<Started>)>,
) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    for (entry, call) in starts {
        if journal::is_pending(db, &call.id)? {
            let ended = interrupted(&call);
            let mut row = Row::of(compose::call(chain.place(end), &call, &ended, &compose::now()));
            (row.call, row.ended, row.start) = (Some(call), Some(Arc::new(ended)), Some(entry));
            rows.push(row);
        }
    }
    Ok(rows)
}
