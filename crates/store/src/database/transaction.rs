//! A transaction whose words are planned once: it is begun and committed for every call.

use rusqlite::Connection;

use crate::error::StoreError;

/// Does some work as a whole, or not at all.
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

/// Does the work of a transaction that was begun, and ends it.
pub(crate) fn finish<T>(
    db: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let done = work(db).and_then(|done| {
        db.prepare_cached("COMMIT")?.execute([])?;
        Ok(done)
    });
    if done.is_err() {
        give_up(db);
    }
    done
}

/// Nothing of a transaction that was begun is kept.
pub(crate) fn give_up(db: &Connection) {
    if !db.is_autocommit() {
        // SQLite has given it up itself where this fails.
        let _ = db.execute_batch("ROLLBACK");
    }
}
