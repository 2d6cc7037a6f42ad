//! A transaction whose statements are prepared once: every call begins and commits one.

use rusqlite::Connection;

use crate::error::StoreError;

/// Runs the work in a transaction: all of it takes effect, or none.
pub(crate) fn whole<T>(
    db: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    begin(db)?;
    finish(db, work)
}

pub(crate) fn begin(db: &Connection) -> Result<(), StoreError> {
    db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    Ok(())
}

/// Runs the work of a transaction that was begun, and ends it.
pub(crate) fn finish<T>(
    db: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let done = work(db).and_then(|done| commit(db).map(|()| done));
    if done.is_err() {
        give_up(db);
    }
    done
}

fn commit(db: &Connection) -> Result<(), StoreError> {
    db.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

/// Rolls back a transaction that was begun.
pub(crate) fn give_up(db: &Connection) {
    if !db.is_autocommit() {
        // If this fails, SQLite has already rolled it back.
        let _ = db.execute_batch("ROLLBACK");
    }
}
