//! The pace at which announced changes of a list are followed: the first one almost at once, those of
//! a storm at growing intervals.

use std::time::Duration;

use tokio::time::Instant;

use crate::limits::{RELIST_PAUSE, RELIST_PAUSE_MAX, RELIST_QUIET};

#[derive(Default)]
pub(super) struct RelistPace {
    /// The latest list that was due because of an announcement.
    due: Option<Instant>,
    interval: Duration,
}

impl RelistPace {
    /// Returns when to list again after an announcement; several share one list.
    pub(super) fn announced(&mut self, now: Instant) -> Instant {
        let soon = now + RELIST_PAUSE;
        let due = match self.due {
            Some(due) if now < due => due,
            Some(due) if now.duration_since(due) < RELIST_QUIET => {
                self.interval = (self.interval * 2).min(RELIST_PAUSE_MAX);
                soon.max(due + self.interval)
            }
            Some(_) | None => {
                self.interval = RELIST_PAUSE;
                soon
            }
        };
        self.due = Some(due);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Announces a change every 10 ms for a while; returns the times of the lists.
    fn storm(pace: &mut RelistPace, from: Instant, lasts: Duration) -> Vec<Instant> {
        let mut lists = Vec::new();
        let mut now = from;
        while now < from + lasts {
            lists.push(pace.announced(now));
            now += Duration::from_millis(10);
        }
        lists.dedup();
        lists
    }

    #[test]
    fn a_storm_is_followed_at_growing_intervals_and_a_single_change_at_once() {
        let (mut pace, start) = (RelistPace::default(), Instant::now());
        assert_eq!(pace.announced(start), start + RELIST_PAUSE);
        let later = start + RELIST_QUIET * 2;
        assert_eq!(pace.announced(later), later + RELIST_PAUSE, "a second change is too");
        let from = later + RELIST_QUIET * 2;
        let lists = storm(&mut pace, from, Duration::from_secs(60));
        assert_eq!(lists[0], from + RELIST_PAUSE);
        let pauses: Vec<Duration> = lists.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(pauses.is_sorted() && pauses[0] == RELIST_PAUSE * 2, "{pauses:?}");
        assert_eq!(pauses.last(), Some(&RELIST_PAUSE_MAX));
        assert!(lists.len() < 40, "{}", lists.len());
        let after = lists[lists.len() - 1] + RELIST_QUIET;
        assert_eq!(pace.announced(after), after + RELIST_PAUSE);
    }
}
