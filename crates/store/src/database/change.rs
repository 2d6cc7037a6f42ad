//! The number that counts every change to a record, run or step, and every meeting of two agents, so
//! that all changes form one sequence.

use rusqlite::Connection;

use crate::database::schema;
use crate::error::StoreError;

macro_rules! latest {
    ($meetings:literal) => {
        concat!(
            "SELECT MAX(
               COALESCE((SELECT MAX(changed) FROM activity), 0),
               COALESCE((SELECT MAX(changed) FROM runs), 0),
               COALESCE((SELECT MAX(changed) FROM run_steps), 0)",
            $meetings,
            ")"
        )
    };
}

const LATEST: &str = latest!(", COALESCE((SELECT MAX(changed) FROM meetings), 0)");

/// A file of an older version has no meetings.
const LATEST_OF_OLDER: &str = latest!("");

/// Returns the number of the last change by any process.
pub(crate) fn latest(db: &Connection) -> Result<i64, StoreError> {
    let latest = db
        .prepare_cached(if schema::has_touches(db)? { LATEST } else { LATEST_OF_OLDER })?
        .query_row([], |row| row.get(0))?;
    Ok(latest)
}

/// Returns the number for a change that is about to be written.
pub(crate) fn next(db: &Connection) -> Result<i64, StoreError> {
    Ok(latest(db)? + 1)
}
