//! Times and durations as the API writes them.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Writes a time in UTC, to the millisecond.
pub(crate) fn moment(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// Counts milliseconds, with microseconds after the point.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

/// Counts the milliseconds between two times; none if the clock was set back in between.
pub(crate) fn lasted(from: Timestamp, to: Option<Timestamp>) -> Option<f64> {
    let lasted = to?.duration_since(from).max(SignedDuration::ZERO);
    Some(milliseconds(lasted.unsigned_abs()))
}
