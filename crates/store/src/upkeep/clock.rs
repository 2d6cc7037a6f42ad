//! Time as retention counts it. A clock that jumped ahead says nothing of the age of what was recorded
//! before: of such a jump, no time counts, so that nothing is deleted because of it. A home that was
//! not used for more than a day looks the same, and keeps its records for as much longer.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use crate::database::{receipts, settings};
use crate::error::StoreError;

/// The name of the setting. All processes of the home observe it, also those that start later.
const SETTING: &str = "clock_jumps";

/// The lead of the clock over the newest record that is taken for a jump.
const LEAD_MAX: SignedDuration = SignedDuration::from_hours(24);

/// The time by which the clock may be behind the last receipt, such as after it was set.
const LAG_MAX: SignedDuration = SignedDuration::from_mins(1);

/// The jumps that are kept; more of them are joined, the oldest first.
const JUMPS_MAX: usize = 64;

/// A jump of the clock: the newest time that was recorded before it, and the time of the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ClockJump {
    before_us: i64,
    after_us: i64,
}

/// The present time, and the jumps that led to it, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct LedgerClock {
    now_us: i64,
    jumps: Vec<ClockJump>,
}

impl LedgerClock {
    pub(crate) fn read(db: &Connection, now: Timestamp) -> Result<LedgerClock, StoreError> {
        Ok(LedgerClock { now_us: now.as_microsecond(), jumps: kept(db)? })
    }

    /// Returns the time so many days ago, in microseconds, without the time of jumps.
    pub(crate) fn days_ago(&self, days: u32) -> i64 {
        let mut left = i64::from(days).saturating_mul(microseconds(SignedDuration::from_hours(24)));
        let mut from = self.now_us;
        for jump in self.jumps.iter().rev() {
            let since = from.saturating_sub(jump.after_us);
            if since >= left {
                break;
            }
            left -= since.max(0);
            from = jump.before_us;
        }
        from.saturating_sub(left)
    }
}

/// Examines the clock at the start of a process, before it writes anything, and keeps a jump.
pub(crate) fn examine(db: &Connection, now: Timestamp) -> Result<(), StoreError> {
    match newest(db)? {
        Some(newest_us) => note(db, newest_us, now),
        None => Ok(()),
    }
}

/// Keeps a jump, if the clock is more than a day ahead of the time that it should have at least.
pub(crate) fn note(db: &Connection, known_us: i64, now: Timestamp) -> Result<(), StoreError> {
    let kept = kept(db)?;
    let jumps = noted(kept.clone(), known_us, now.as_microsecond());
    if jumps == kept {
        return Ok(());
    }
    let text = serde_json::to_string(&jumps).expect("numbers have a JSON form");
    settings::set(db, SETTING, &text)?;
    if jumps.last().is_some_and(|jump| jump.before_us == known_us) {
        let newest = Timestamp::from_microsecond(known_us).unwrap_or(Timestamp::UNIX_EPOCH);
        tracing::warn!("{}", ahead_words(newest));
    }
    Ok(())
}

/// Returns the jumps with the one that the clock shows. Those that lie ahead of it were of a wrong
/// clock, which has been corrected since.
fn noted(mut jumps: Vec<ClockJump>, known_us: i64, now_us: i64) -> Vec<ClockJump> {
    jumps.retain(|jump| jump.after_us <= now_us);
    if now_us.saturating_sub(known_us) > microseconds(LEAD_MAX) {
        jumps.retain(|jump| jump.before_us < known_us);
        jumps.push(ClockJump { before_us: known_us, after_us: now_us });
    }
    while let [first, second, ..] = jumps[..]
        && jumps.len() > JUMPS_MAX
    {
        let joined = ClockJump { before_us: first.before_us, after_us: second.after_us };
        jumps.splice(..2, [joined]);
    }
    jumps
}

/// Says that the clock is behind the last receipt, if it is.
pub(crate) fn behind(db: &Connection, now: Timestamp) -> Result<Option<String>, StoreError> {
    let last = last_receipt(db)?.filter(|last| last.duration_since(now) > LAG_MAX);
    Ok(last.map(|last| {
        format!(
            "the last receipt is of {last:.0}, which is later than the clock says now: the clock was \
             wrong then, or is wrong now"
        )
    }))
}

/// Says that the clock is far ahead of the newest record, if it is. Nothing may have been recorded for
/// as long.
pub(crate) fn ahead(db: &Connection, now: Timestamp) -> Result<Option<String>, StoreError> {
    let newest = newest(db)?.and_then(|newest| Timestamp::from_microsecond(newest).ok());
    let newest = newest.filter(|newest| now.duration_since(*newest) > LEAD_MAX);
    Ok(newest.map(ahead_words))
}

fn ahead_words(newest: Timestamp) -> String {
    format!(
        "the newest record is of {newest:.0}, more than a day before the time that the clock shows: \
         nothing was recorded since, or the clock is wrong; retention does not count the time between"
    )
}

fn kept(db: &Connection) -> Result<Vec<ClockJump>, StoreError> {
    let text = settings::get(db, SETTING)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

/// Returns the time of the newest record or receipt, in microseconds.
fn newest(db: &Connection) -> Result<Option<i64>, StoreError> {
    let record: Option<i64> =
        db.query_row("SELECT MAX(started_us) FROM activity", [], |row| row.get(0))?;
    Ok(record.max(last_receipt(db)?.map(Timestamp::as_microsecond)))
}

fn last_receipt(db: &Connection) -> Result<Option<Timestamp>, StoreError> {
    let issued = receipts::member("$.issuanceDate");
    let words = format!("SELECT {issued} FROM receipts ORDER BY receipt_number DESC LIMIT 1");
    let found: Option<Option<String>> = db.query_row(&words, [], |row| row.get(0)).optional()?;
    Ok(found.flatten().and_then(|text| text.parse().ok()))
}

fn microseconds(duration: SignedDuration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    fn jump(before: i64, after: i64) -> ClockJump {
        ClockJump { before_us: before * HOUR, after_us: after * HOUR }
    }

    #[test]
    fn a_clock_that_is_a_day_ahead_has_jumped() {
        for (what, now, newest, kept, expected) in [
            ("a day is fine", 24, 0, vec![], vec![]),
            ("more than a day", 25, 0, vec![], vec![jump(0, 25)]),
            ("again, and nothing was recorded", 60, 0, vec![jump(0, 25)], vec![jump(0, 60)]),
            ("soon after", 30, 26, vec![jump(0, 25)], vec![jump(0, 25)]),
            ("another", 90, 30, vec![jump(0, 25)], vec![jump(0, 25), jump(30, 90)]),
            ("a corrected clock", 2, 1, vec![jump(0, 900)], vec![]),
            ("the time of the wrong one stays", 2, 901, vec![jump(0, 900)], vec![]),
        ] {
            assert_eq!(noted(kept, newest * HOUR, now * HOUR), expected, "{what}");
        }
        let many: Vec<ClockJump> = (0..70).map(|at| jump(at * 100, at * 100 + 50)).collect();
        let joined = noted(many, 7_000 * HOUR, 7_001 * HOUR);
        assert_eq!((joined.len(), joined[0]), (JUMPS_MAX, jump(0, 650)));
    }

    #[test]
    fn a_clock_far_ahead_of_the_newest_record_is_told() {
        let mut db = Connection::open_in_memory().unwrap();
        crate::database::schema::migrate(&mut db).unwrap();
        receipts::view_ours(&db).unwrap();
        assert_eq!(ahead(&db, Timestamp::now()).unwrap(), None, "nothing was recorded");
        db.execute("INSERT INTO agents VALUES (1, '', '', '')", []).unwrap();
        let at = Timestamp::from_second(1_700_000_000).unwrap();
        db.execute(
            "INSERT INTO activity (id, changed, chain, type, source, surface, server, tool, agent,
               started_us, status)
             VALUES ('1', 1, 1, '', '', '', '', '', 1, ?1, '')",
            [at.as_microsecond()],
        )
        .unwrap();
        let later = |hours| ahead(&db, at + SignedDuration::from_hours(hours)).unwrap();
        assert_eq!(later(24), None);
        let words = "the newest record is of 2023-11-14T22:13:20Z, more than a day before";
        assert!(later(25).unwrap().starts_with(words));
    }

    #[test]
    fn the_time_of_jumps_does_not_count() {
        let clock = |now: i64, jumps| LedgerClock { now_us: now * HOUR, jumps };
        let ago = |now: i64, jumps, days| clock(now, jumps).days_ago(days) / HOUR;
        assert_eq!(ago(1_000, vec![], 2), 952);
        // The clock jumped by 500 hours, 100 hours ago.
        let jumped = || vec![jump(400, 900)];
        assert_eq!(ago(1_000, jumped(), 2), 952, "all of it is after the jump");
        assert_eq!(ago(1_000, jumped(), 5), 380, "100 hours since, and 20 before");
        assert_eq!(ago(901, jumped(), 1), 377);
        let twice = vec![jump(100, 200), jump(300, 900)];
        assert_eq!(ago(910, twice, 5), 90, "10, 100, and 10 before both");
    }
}
