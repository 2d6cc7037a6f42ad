//! The resources that a record touches, and how their table encodes who touched them.

use std::time::Duration;

use rusqlite::Connection;
use touch::targets::Access;

use crate::error::StoreError;

/// An hour: two agents that far apart no longer work on the same thing at once.
pub const WINDOW: Duration = Duration::from_secs(3_600);

/// A touched resource, as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTouch {
    pub system: String,
    pub resource: String,
    pub access: Access,
}

/// Returns the number that encodes an agent and an access in the table of touches.
pub(crate) fn who(agent: i64, access: Access) -> i64 {
    agent * 4 + access as i64
}

/// Returns the agent and the access that a number encodes.
pub(crate) fn who_of(who: i64) -> (i64, Access) {
    let access = usize::try_from(who & 3).ok().and_then(|at| Access::ALL.get(at));
    (who >> 2, access.copied().unwrap_or_default())
}

/// Returns the resources of a record, the main one first.
pub(crate) fn of_record(db: &Connection, number: i64) -> Result<Vec<RecordedTouch>, StoreError> {
    let mut statement = db.prepare_cached(
        "SELECT system, resource, who FROM touches JOIN targets USING (target)
         WHERE touches.number = ?1
         ORDER BY touches.target IS NOT (SELECT target FROM activity WHERE number = ?1),
           touches.target",
    )?;
    let rows = statement.query_map([number], |row| {
        let (_, access) = who_of(row.get(2)?);
        Ok(RecordedTouch { system: row.get(0)?, resource: row.get(1)?, access })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
