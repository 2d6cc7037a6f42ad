//! Call counters for monitoring. A call costs a few atomic additions, and the number of counters is
//! bounded: names come from the catalog and from our own enums, never from callers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use domain::Code;
use domain::tool::Class;
use store::RecordStatus;

use crate::limits::COUNTED_SERVERS_MAX;

/// Upper bounds of the duration buckets: from a call answered from memory to the longest that the
/// default timeout allows.
pub const DURATION_BUCKETS: [Duration; 14] = [
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(120),
];

const CLASSES: usize = Class::ALL.len();
const STATUSES: usize = RecordStatus::ALL.len();

#[derive(Default)]
pub struct Metrics {
    /// Tallies by server name; the empty name counts servers that are not in the catalog. A removed
    /// server keeps its counts, since a counter never decreases.
    servers: RwLock<HashMap<Arc<str>, Tally>>,
    durations: [Histogram; CLASSES],
    codes: Codes,
    sessions: AtomicUsize,
}

struct Codes([AtomicU64; Code::ALL.len()]);

impl Default for Codes {
    fn default() -> Self {
        Codes(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// Counts by class (`None` for a refused call without one) and by status.
#[derive(Default)]
struct Tally([[AtomicU64; STATUSES]; CLASSES + 1]);

#[derive(Default)]
struct Histogram {
    /// One more than there are bounds, for durations above all of them.
    buckets: [AtomicU64; DURATION_BUCKETS.len() + 1],
    nanoseconds: AtomicU64,
}

/// The number of a server's calls that ended with this class and status.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallCounter {
    pub server: Arc<str>,
    /// `None` if the call was refused and nothing valid told its class.
    pub class: Option<Class>,
    pub status: &'static str,
    pub count: u64,
}

/// The durations of the calls of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Durations {
    pub class: Class,
    /// Counts of the single buckets, not cumulative; the last has no upper bound.
    pub counts: [u64; DURATION_BUCKETS.len() + 1],
    pub sum: Duration,
}

impl Metrics {
    /// Counts a call that was made and has ended.
    pub(crate) fn ended(
        &self,
        server: Option<&Arc<str>>,
        class: Class,
        status: RecordStatus,
        took: Duration,
    ) {
        self.count(server, Some(class), status);
        self.durations[class as usize].add(took);
    }

    /// Counts a call that was refused and not made.
    pub(crate) fn refused(&self, server: Option<&Arc<str>>, class: Option<Class>) {
        self.count(server, class, RecordStatus::Blocked);
    }

    /// Counts an error response with this code.
    pub(crate) fn answered(&self, code: Code) {
        add(&self.codes.0[code as usize], 1);
    }

    pub(crate) fn session_opened(&self) {
        self.sessions.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn session_ended(&self) {
        self.sessions.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the nonzero counters, sorted.
    pub fn calls(&self) -> Vec<CallCounter> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        let mut calls = Vec::new();
        for (server, tally) in &*servers {
            let classes = Class::ALL.into_iter().map(Some).chain([None]);
            for (class, counts) in classes.zip(&tally.0) {
                calls.extend(RecordStatus::ALL.iter().zip(counts).map(|(status, count)| {
                    CallCounter {
                        server: server.clone(),
                        class,
                        status: status.as_str(),
                        count: read(count),
                    }
                }));
            }
        }
        calls.retain(|calls| calls.count > 0);
        calls.sort();
        calls
    }

    pub fn durations(&self) -> [Durations; CLASSES] {
        Class::ALL.map(|class| {
            let histogram = &self.durations[class as usize];
            Durations {
                class,
                counts: histogram.buckets.each_ref().map(read),
                sum: Duration::from_nanos(read(&histogram.nanoseconds)),
            }
        })
    }

    /// Returns how many calls, refused or failed, ended with each code.
    pub fn codes(&self) -> impl Iterator<Item = (Code, u64)> {
        Code::ALL.iter().copied().zip(self.codes.0.iter().map(read))
    }

    /// Returns the number of open MCP sessions, over HTTP and stdio.
    pub fn sessions(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    fn count(&self, server: Option<&Arc<str>>, class: Option<Class>, status: RecordStatus) {
        let name = server.map_or("", |name| name);
        {
            let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(tally) = servers.get(name) {
                return tally.add(class, status);
            }
        }
        self.count_first(name, class, status);
    }

    /// Counts the first call of a server; beyond the limit it counts as unknown.
    #[cold]
    fn count_first(&self, name: &str, class: Option<Class>, status: RecordStatus) {
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        let has_room = servers.len() < COUNTED_SERVERS_MAX || servers.contains_key(name);
        let name = if has_room { name } else { "" };
        servers.entry(name.into()).or_default().add(class, status);
    }
}

impl Tally {
    fn add(&self, class: Option<Class>, status: RecordStatus) {
        let class = class.map_or(CLASSES, |class| class as usize);
        add(&self.0[class][status as usize], 1);
    }
}

impl Histogram {
    fn add(&self, took: Duration) {
        add(&self.buckets[DURATION_BUCKETS.partition_point(|end| *end < took)], 1);
        add(&self.nanoseconds, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enum_values_match_their_positions_in_the_lists() {
        assert!(Class::ALL.iter().enumerate().all(|(place, class)| *class as usize == place));
        assert!(
            RecordStatus::ALL.iter().enumerate().all(|(place, status)| *status as usize == place)
        );
        assert!(Code::ALL.iter().enumerate().all(|(place, code)| *code as usize == place));
        assert!(DURATION_BUCKETS.is_sorted());
    }

    #[test]
    fn calls_are_counted_by_server_class_and_status() {
        let metrics = Metrics::default();
        let server: Arc<str> = "s".into();
        metrics.ended(Some(&server), Class::Read, RecordStatus::Success, Duration::from_millis(1));
        metrics.ended(Some(&server), Class::Read, RecordStatus::Success, Duration::from_secs(600));
        metrics.ended(
            Some(&server),
            Class::Write,
            RecordStatus::Error,
            Duration::from_nanos(1_000_001),
        );
        metrics.refused(Some(&server), Some(Class::Destructive));
        metrics.refused(Some(&server), None);
        metrics.refused(None, None);
        let calls: Vec<_> = metrics
            .calls()
            .into_iter()
            .map(|calls| {
                let class = calls.class.map_or("", Class::as_str);
                format!("{} {class} {} {}", calls.server, calls.status, calls.count)
            })
            .collect();
        let expected = [
            "  blocked 1",
            "s  blocked 1",
            "s read success 2",
            "s write error 1",
            "s destructive blocked 1",
        ];
        assert_eq!(calls, expected);
        let [read, write, destructive] = metrics.durations();
        assert_eq!((read.counts[0], read.counts[DURATION_BUCKETS.len()]), (1, 1));
        assert_eq!(read.sum, Duration::from_millis(600_001));
        assert_eq!((write.counts[0], write.counts[1]), (0, 1));
        assert_eq!(destructive.counts.iter().sum::<u64>(), 0);
    }

    #[test]
    fn the_number_of_servers_is_bounded() {
        let metrics = Metrics::default();
        for n in 0..2 * COUNTED_SERVERS_MAX {
            metrics.refused(Some(&format!("s{n}").into()), None);
        }
        let calls = metrics.calls();
        assert!(calls.len() <= COUNTED_SERVERS_MAX + 1, "{}", calls.len());
        assert_eq!(&*calls[0].server, "");
        assert_eq!(calls[0].count, COUNTED_SERVERS_MAX as u64);
        assert_eq!(
            calls.iter().map(|calls| calls.count).sum::<u64>(),
            2 * COUNTED_SERVERS_MAX as u64
        );
    }
}
