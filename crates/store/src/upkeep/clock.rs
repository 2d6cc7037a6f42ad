//! The guard against a wrong clock. If the clock of a start is more than a day ahead of the newest
//! record, it may be wrong, and everything may look old: nothing is deleted for an hour.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use crate::database::settings;
use crate::error::StoreError;

/// The name of the setting. All processes of the home observe it, also those that start later.
const SETTING: &str = "retention_pause";

/// The lead of the clock over the newest record that is taken for a possible fault.
const LEAD_MAX: SignedDuration = SignedDuration::from_hours(24);

/// The time for which nothing is deleted then, so that an operator can correct the clock.
const PAUSE: SignedDuration = SignedDuration::from_hours(1);

/// A time in which nothing is deleted, and the newest record at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RetentionPause {
    newest_us: i64,
    until_us: i64,
}

/// Examines the clock at the start of a process, before it writes anything.
pub(crate) fn examine(db: &Connection, now: Timestamp) -> Result<(), StoreError> {
    let Some(pause) = needed(now.as_microsecond(), newest(db)?, kept(db)?) else {
        return Ok(());
    };
    let text = serde_json::to_string(&pause).expect("numbers have a JSON form");
    settings::set(db, SETTING, &text)?;
    let newest = Timestamp::from_microsecond(pause.newest_us).unwrap_or(Timestamp::UNIX_EPOCH);
    tracing::warn!(
        "the clock is more than a day ahead of the newest record ({newest:.0}): retention deletes \
         nothing for an hour; check the clock"
    );
    Ok(())
}

/// Reports whether nothing is to be deleted now.
pub(crate) fn is_paused(db: &Connection, now: Timestamp) -> Result<bool, StoreError> {
    Ok(kept(db)?.is_some_and(|pause| pause.holds(now.as_microsecond())))
}

impl RetentionPause {
    /// Reports whether the pause holds. One that ends later than it could was set by a wrong clock,
    /// which has been corrected since.
    fn holds(self, now_us: i64) -> bool {
        let pause_us = microseconds(PAUSE);
        now_us < self.until_us && self.until_us <= now_us.saturating_add(pause_us)
    }
}

/// Returns the pause that a start needs, unless it was already observed for the same newest record.
fn needed(
    now_us: i64,
    newest_us: Option<i64>,
    kept: Option<RetentionPause>,
) -> Option<RetentionPause> {
    let newest_us = newest_us?;
    let is_ahead = now_us.saturating_sub(newest_us) > microseconds(LEAD_MAX);
    let is_known = kept.is_some_and(|pause| {
        pause.holds(now_us) || (pause.newest_us == newest_us && pause.until_us <= now_us)
    });
    let until_us = now_us.saturating_add(microseconds(PAUSE));
    (is_ahead && !is_known).then_some(RetentionPause { newest_us, until_us })
}

fn kept(db: &Connection) -> Result<Option<RetentionPause>, StoreError> {
    Ok(settings::get(db, SETTING)?.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Returns the time of the newest record or receipt, in microseconds.
fn newest(db: &Connection) -> Result<Option<i64>, StoreError> {
    let record: Option<i64> =
        db.query_row("SELECT MAX(started_us) FROM activity", [], |row| row.get(0))?;
    let receipt: Option<Option<String>> = db
        .query_row("SELECT created_at FROM receipts ORDER BY rowid DESC LIMIT 1", [], |row| {
            row.get(0)
        })
        .optional()?;
    let receipt = receipt.flatten().and_then(|text| text.parse::<Timestamp>().ok());
    Ok(record.max(receipt.map(Timestamp::as_microsecond)))
}

fn microseconds(duration: SignedDuration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn a_clock_that_is_a_day_ahead_pauses_retention_for_an_hour() {
        let pause = |newest_us, until_us| Some(RetentionPause { newest_us, until_us });
        for (what, now, newest, kept, expected) in [
            ("an empty ledger", 100 * HOUR, None, None, None),
            ("a day is fine", 24 * HOUR, Some(0), None, None),
            ("more than a day", 25 * HOUR, Some(0), None, pause(0, 26 * HOUR)),
            ("already paused", 25 * HOUR + 9, Some(0), pause(0, 26 * HOUR), None),
            ("already observed", 26 * HOUR, Some(0), pause(0, 26 * HOUR), None),
            ("a later record", 60 * HOUR, Some(HOUR), pause(0, 26 * HOUR), pause(HOUR, 61 * HOUR)),
            ("a corrected clock", 30 * HOUR, Some(0), pause(0, 900 * HOUR), pause(0, 31 * HOUR)),
        ] {
            assert_eq!(needed(now, newest, kept), expected, "{what}");
        }
    }

    #[test]
    fn a_pause_ends_and_one_of_a_wrong_clock_does_not_hold() {
        let pause = RetentionPause { newest_us: 0, until_us: 26 * HOUR };
        let holds = [24, 25, 26].map(|hour| pause.holds(hour * HOUR));
        assert_eq!(holds, [false, true, false]);
    }
}
