//! The resources that a record touches.

use rusqlite::Connection;
use touch::targets::Access;

use crate::error::StoreError;
use crate::write::touching::who_of;

/// A touched resource, as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTouch {
    pub system: String,
    pub resource: String,
    pub access: Access,
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
