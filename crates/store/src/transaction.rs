//! A transaction whose words are planned once: it is begun and committed for every call.

use rusqlite::Connection;

use crate::StoreError;

/// Does some work as a whole, or not at all.
pub(crate) fn whole<T>(
    db: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let done = work(db).and_then(|done| {
        db.prepare_cached("COMMIT")?.execute([])?;
        Ok(done)
    });
    if done.is_err() && !db.is_autocommit() {
        // SQLite has given it up itself where this fails.
        let _ = db.execute_batch("ROLLBACK");
    }
    done
}
