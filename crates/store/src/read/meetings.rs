//! Writes that met another agent's recent touch, among the changes of the ledger.

use jiff::Timestamp;
use rusqlite::{Connection, Row};
use touch::contention::ContentionKind;
use touch::targets::Access;

use super::runs::LedgerChange;
use crate::error::StoreError;
use crate::touches::who_of;

/// A write, and the touch of another agent that it met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMeeting {
    pub kind: ContentionKind,
    pub system: String,
    pub resource: String,
    pub gap_us: i64,
    /// The write.
    pub write: MetRecord,
    /// The touch that it met.
    pub other: MetRecord,
}

/// One side of a meeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetRecord {
    pub id: String,
    pub agent: String,
    pub server: String,
    pub tool: String,
    pub access: Access,
    pub at: Timestamp,
}

const SELECT: &str = "SELECT meetings.changed, meetings.kind, targets.system, targets.resource,
    meetings.gap_us,
    mine.id, my_agent.name, mine.server, mine.tool, 1, mine.started_us,
    theirs.id, their_agent.name, theirs.server, theirs.tool,
    (SELECT who FROM touches WHERE touches.number = theirs.number
       AND touches.target = meetings.target), theirs.started_us
  FROM meetings JOIN targets USING (target)
    JOIN activity AS mine ON mine.number = meetings.number
    JOIN agents AS my_agent ON my_agent.agent = mine.agent
    JOIN activity AS theirs ON theirs.number = meetings.other
    JOIN agents AS their_agent ON their_agent.agent = theirs.agent
  WHERE meetings.changed > ?1 ORDER BY meetings.changed LIMIT ?2";

/// Returns the meetings after a change, of which both records still exist.
pub(super) fn changed_after(
    db: &Connection,
    change: i64,
    limit: usize,
) -> Result<Vec<(i64, LedgerChange)>, StoreError> {
    let mut statement = db.prepare_cached(SELECT)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query([change, limit])?;
    let mut meetings = Vec::new();
    while let Some(row) = rows.next()? {
        meetings.push((row.get(0)?, LedgerChange::Meeting(Box::new(read(row)?))));
    }
    Ok(meetings)
}

fn read(row: &Row<'_>) -> Result<StoredMeeting, StoreError> {
    let kind: String = row.get(1)?;
    let unknown = || StoreError::Corrupt(format!("a meeting has the unknown kind '{kind}'"));
    Ok(StoredMeeting {
        kind: ContentionKind::parse(&kind).ok_or_else(unknown)?,
        system: row.get(2)?,
        resource: row.get(3)?,
        gap_us: row.get(4)?,
        write: side(row, 5)?,
        other: side(row, 11)?,
    })
}

fn side(row: &Row<'_>, at: usize) -> Result<MetRecord, StoreError> {
    let started_us: i64 = row.get(at + 5)?;
    let invalid = |_| StoreError::Corrupt("a meeting has an invalid time".to_owned());
    Ok(MetRecord {
        id: row.get(at)?,
        agent: row.get(at + 1)?,
        server: row.get(at + 2)?,
        tool: row.get(at + 3)?,
        access: who_of(row.get::<_, Option<i64>>(at + 4)?.unwrap_or(2)).1,
        at: Timestamp::from_microsecond(started_us).map_err(invalid)?,
    })
}
