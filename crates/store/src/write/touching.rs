//! The touches of a record as it is filed, and the recent touch of another agent that a write meets.

use std::sync::LazyLock;

use rusqlite::{Connection, params};
use touch::contention::{FreshMeeting, FreshTouch, meeting};
use touch::targets::Access;

use crate::error::StoreError;
use crate::limits::{MEETING_LATER, MEETING_TOUCHES_MAX};
use crate::touches::{WINDOW, who, who_of};
use crate::write::inserting::Inserts;

/// A resource that a record touches, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetTouch {
    pub(crate) target: i64,
    pub(crate) access: Access,
}

/// A record that touches resources.
#[derive(Clone, Copy)]
pub(crate) struct TouchingRecord<'a> {
    pub(crate) agent: i64,
    pub(crate) name: &'a str,
    pub(crate) at_us: i64,
}

/// The meeting of a write with another agent's touch, to be stored and logged.
pub(crate) struct MetTouch {
    pub(crate) target: i64,
    pub(crate) meeting: FreshMeeting<String, i64>,
}

static TOUCHES: LazyLock<Inserts> = LazyLock::new(|| {
    // Those of a record that was lost may still be there.
    Inserts::new("INSERT OR IGNORE INTO", "touches", "target, started_us, who, number")
});

/// Inserts the touches of records, which are given with their numbers.
pub(crate) fn insert<'a>(
    db: &Connection,
    records: impl Iterator<Item = (i64, TouchingRecord<'a>, &'a [TargetTouch])>,
) -> Result<(), StoreError> {
    let touches: Vec<[i64; 4]> = records
        .flat_map(|(number, record, touched)| {
            touched.iter().map(move |touch| {
                [touch.target, record.at_us, who(record.agent, touch.access), number]
            })
        })
        .collect();
    TOUCHES.insert(db, &touches, |touch, values| touch.iter().try_for_each(|it| values.add(it)))
}

/// Returns the worst meeting of a record's writes with recent touches of other agents. The record's
/// own touches are not in the table yet.
pub(crate) fn met(
    db: &Connection,
    record: TouchingRecord<'_>,
    touched: &[TargetTouch],
) -> Result<Option<MetTouch>, StoreError> {
    let mut worst: Option<MetTouch> = None;
    for touch in touched.iter().filter(|touch| touch.access == Access::Write) {
        let recent = recent(db, record, touch.target)?;
        let write =
            FreshTouch { agent: record.name, access: touch.access, at_us: record.at_us, record: 0 };
        let by_name: Vec<FreshTouch<&str, i64>> = recent
            .iter()
            .map(|(name, one)| FreshTouch {
                agent: name.as_str(),
                access: one.access,
                at_us: one.at_us,
                record: one.record,
            })
            .collect();
        let window_us = i64::try_from(WINDOW.as_micros()).unwrap_or(i64::MAX);
        let Some(found) = meeting(&write, &by_name, window_us) else { continue };
        let is_worse = worst.as_ref().is_none_or(|known| {
            (found.kind, found.gap_us) < (known.meeting.kind, known.meeting.gap_us)
        });
        if is_worse {
            let other = FreshTouch {
                agent: found.other.agent.to_owned(),
                access: found.other.access,
                at_us: found.other.at_us,
                record: found.other.record,
            };
            let meeting = FreshMeeting { kind: found.kind, other, gap_us: found.gap_us };
            worst = Some(MetTouch { target: touch.target, meeting });
        }
    }
    Ok(worst)
}

type NamedTouch = (String, FreshTouch<i64, i64>);

/// Returns the most recent touches of a resource, with the names of their agents; none if no other
/// agent is among them. Refused calls and second records of one call touch nothing.
fn recent(
    db: &Connection,
    record: TouchingRecord<'_>,
    target: i64,
) -> Result<Vec<NamedTouch>, StoreError> {
    let window_us = i64::try_from(WINDOW.as_micros()).unwrap_or(i64::MAX);
    let later_us = i64::try_from(MEETING_LATER.as_micros()).unwrap_or(i64::MAX);
    let mut statement = db.prepare_cached(
        "SELECT who, started_us, number FROM touches
         WHERE target = ?1 AND started_us >= ?2 AND started_us <= ?3
         ORDER BY started_us DESC LIMIT ?4",
    )?;
    let bounds = (record.at_us.saturating_sub(window_us), record.at_us.saturating_add(later_us));
    let values = params![target, bounds.0, bounds.1, MEETING_TOUCHES_MAX];
    let rows = statement.query_map(values, |row| {
        let (agent, access) = who_of(row.get(0)?);
        Ok(FreshTouch { agent, access, at_us: row.get(1)?, record: row.get(2)? })
    })?;
    let touches: Vec<FreshTouch<i64, i64>> = rows.collect::<Result<_, _>>()?;
    if touches.iter().all(|touch| touch.agent == record.agent) {
        return Ok(Vec::new());
    }
    let mut name = db.prepare_cached(
        "SELECT agents.name FROM activity JOIN agents USING (agent)
         WHERE number = ?1 AND status <> 'blocked' AND joined IS NULL",
    )?;
    let mut named = Vec::new();
    for touch in touches {
        let mut rows = name.query([touch.record])?;
        if let Some(row) = rows.next()? {
            named.push((row.get(0)?, touch));
        }
    }
    Ok(named)
}
