//! The number that counts every change to a record, run or step, and every meeting of two agents, so
//! that all changes form one sequence.

use rusqlite::Connection;

use crate::error::StoreError;

const LATEST: &str = "SELECT MAX(
    COALESCE((SELECT MAX(changed) FROM activity), 0),
    COALESCE((SELECT MAX(changed) FROM runs), 0),
    COALESCE((SELECT MAX(changed) FROM run_steps), 0),
    COALESCE((SELECT MAX(changed) FROM meetings), 0))";

/// Returns the number of the last change by any process.
pub(crate) fn latest(db: &Connection) -> Result<i64, StoreError> {
    Ok(db.prepare_cached(LATEST)?.query_row([], |row| row.get(0))?)
}

/// Returns the number for a change that is about to be written.
pub(crate) fn next(db: &Connection) -> Result<i64, StoreError> {
    Ok(latest(db)? + 1)
}
