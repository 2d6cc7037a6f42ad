//! A summary of recent activity.

use std::collections::HashMap;
use std::time::Duration;

use domain::tool::Class;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, Row};

use super::reader::Reader;
use crate::error::StoreError;
use crate::limits::SUMMARY_NAMES_MAX;
use crate::record::{RecordKind, RecordStatus};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    Hour,
    Day,
    Week,
    Month,
}

impl Period {
    pub const ALL: [Period; 4] = [Period::Hour, Period::Day, Period::Week, Period::Month];

    pub fn as_str(self) -> &'static str {
        match self {
            Period::Hour => "1h",
            Period::Day => "24h",
            Period::Week => "7d",
            Period::Month => "30d",
        }
    }

    pub fn parse(text: &str) -> Option<Period> {
        Period::ALL.into_iter().find(|period| period.as_str() == text)
    }

    /// Returns the width and the number of buckets; the last one is not over yet.
    fn buckets(self) -> (Duration, usize) {
        const MINUTE: Duration = Duration::from_secs(60);
        match self {
            Period::Hour => (MINUTE, 60),
            Period::Day => (MINUTE * 15, 96),
            Period::Week => (MINUTE * 120, 84),
            Period::Month => (MINUTE * 360, 120),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Summary {
    pub start: Timestamp,
    pub end: Timestamp,
    pub calls: u64,
    /// Every status, in the order of `Status::ALL`.
    pub by_status: Vec<(RecordStatus, u64)>,
    /// Busiest first, here and below.
    pub by_server: Vec<Tally<String>>,
    pub by_tool: Vec<Tally<ServerTool>>,
    pub by_intent: Vec<Tally<String>>,
    pub by_agent: Vec<Tally<String>>,
    pub buckets: Vec<Bucket>,
    pub bucket_width: Duration,
    /// Durations of calls that have ended.
    pub duration_p50: Option<Duration>,
    pub duration_p95: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally<T> {
    pub of: T,
    pub counts: Counts,
}

/// A tool and the server that offers it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerTool {
    pub server: String,
    pub tool: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub calls: u64,
    pub errors: u64,
    pub blocked: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub start: Timestamp,
    pub counts: Counts,
    /// Calls by effective class, refused ones too; a refused call may have none.
    pub reads: u64,
    pub writes: u64,
    pub destructive: u64,
}

impl Reader {
    /// Summarizes the period that ends now.
    pub fn summary(&self, period: Period, now: Timestamp) -> Result<Summary, StoreError> {
        let mut count = Count::new(period, now);
        self.pool.ask_at_once(|db| count.run(db))?;
        Ok(count.finish())
    }
}

type Names = HashMap<String, Counts>;

struct Count {
    start_us: i64,
    end_us: i64,
    width_us: i64,
    by_status: [u64; RecordStatus::ALL.len()],
    servers: HashMap<String, Names>,
    intents: Names,
    agents: HashMap<i64, Counts>,
    /// Filled once all are counted.
    agent_names: Names,
    buckets: Vec<Bucket>,
    durations_us: Vec<i64>,
}

impl Count {
    fn new(period: Period, now: Timestamp) -> Count {
        let (width, number) = period.buckets();
        let width_us = i64::try_from(width.as_micros()).expect("a bucket spans hours at most");
        let number_us = i64::try_from(number).expect("buckets are few");
        let end_us = (now.as_microsecond().div_euclid(width_us) + 1).saturating_mul(width_us);
        let start_us = end_us.saturating_sub(width_us * number_us);
        let mut start = Timestamp::from_microsecond(start_us).unwrap_or(Timestamp::MIN);
        let mut buckets = Vec::with_capacity(number);
        for _ in 0..number {
            let counts = Counts::default();
            buckets.push(Bucket { start, counts, reads: 0, writes: 0, destructive: 0 });
            start = start.checked_add(SignedDuration::from_micros(width_us)).unwrap_or(start);
        }
        Count {
            start_us,
            end_us,
            width_us,
            by_status: [0; RecordStatus::ALL.len()],
            servers: HashMap::new(),
            intents: Names::new(),
            agents: HashMap::new(),
            agent_names: Names::new(),
            buckets,
            durations_us: Vec::new(),
        }
    }

    fn run(&mut self, db: &Connection) -> Result<(), StoreError> {
        let mut statement = db.prepare_cached(&format!(
            "SELECT started_us, duration_us, agent, status, server, tool, intent_type,
               effective_class
             FROM activity INDEXED BY activity_started WHERE started_us >= ?1 AND started_us < ?2
               AND type NOT IN ({})",
            other_than_calls()
        ))?;
        let mut rows = statement.query([self.start_us, self.end_us])?;
        while let Some(row) = rows.next()? {
            self.add(row)?;
        }
        let mut names = db.prepare_cached("SELECT name FROM agents WHERE agent = ?1")?;
        for (agent, counts) in &self.agents {
            let name = names.query_row([agent], |row| row.get(0))?;
            self.agent_names.entry(name).or_default().merge(*counts);
        }
        Ok(())
    }

    fn add(&mut self, row: &Row<'_>) -> Result<(), StoreError> {
        let word = |column| word(row, column);
        let status = word(3)?.and_then(RecordStatus::parse);
        let status = status
            .ok_or_else(|| StoreError::Corrupt("a record has an unknown status".to_owned()))?;
        self.by_status[status as usize] += 1;
        let tools = known(&mut self.servers, word(4)?.unwrap_or_default());
        known(tools, word(5)?.unwrap_or_default()).add(status);
        if let Some(intent) = word(6)? {
            known(&mut self.intents, intent).add(status);
        }
        self.agents.entry(row.get(2)?).or_default().add(status);
        self.durations_us.extend(row.get::<_, Option<i64>>(1)?);
        let bucket = (row.get::<_, i64>(0)? - self.start_us) / self.width_us;
        if let Some(bucket) = usize::try_from(bucket).ok().and_then(|at| self.buckets.get_mut(at)) {
            bucket.add(status, word(7)?.and_then(Class::parse));
        }
        Ok(())
    }

    fn finish(mut self) -> Summary {
        let (p50, p95) = (self.percentile(50), self.percentile(95));
        let tools = self.servers.iter().flat_map(|(server, tools)| {
            tools.iter().map(move |(tool, counts)| {
                (ServerTool { server: server.clone(), tool: tool.clone() }, *counts)
            })
        });
        let by_tool = busiest(tools);
        let servers = self.servers.into_iter().map(|(server, tools)| {
            let mut whole = Counts::default();
            tools.into_values().for_each(|counts| whole.merge(counts));
            (server, whole)
        });
        Summary {
            start: Timestamp::from_microsecond(self.start_us).unwrap_or(Timestamp::MIN),
            end: Timestamp::from_microsecond(self.end_us).unwrap_or(Timestamp::MAX),
            calls: self.by_status.iter().sum(),
            by_status: RecordStatus::ALL.into_iter().zip(self.by_status).collect(),
            by_server: busiest(servers),
            by_tool,
            by_intent: busiest(self.intents),
            by_agent: busiest(self.agent_names),
            buckets: self.buckets,
            bucket_width: Duration::from_micros(self.width_us.unsigned_abs()),
            duration_p50: p50,
            duration_p95: p95,
        }
    }

    /// Returns the smallest duration that this percentage of calls does not exceed.
    fn percentile(&mut self, percent: usize) -> Option<Duration> {
        let last = self.durations_us.len().checked_sub(1)?;
        let at = (self.durations_us.len() * percent).div_ceil(100).saturating_sub(1).min(last);
        let (_, duration, _) = self.durations_us.select_nth_unstable(at);
        Some(Duration::from_micros(duration.unsigned_abs()))
    }
}

impl Counts {
    fn add(&mut self, status: RecordStatus) {
        self.calls += 1;
        match status {
            RecordStatus::Error | RecordStatus::Unknown => self.errors += 1,
            RecordStatus::Blocked => self.blocked += 1,
            RecordStatus::Pending
            | RecordStatus::Success
            | RecordStatus::Cancelled
            | RecordStatus::Interrupted => {}
        }
    }

    fn merge(&mut self, other: Counts) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.blocked += other.blocked;
    }
}

impl Bucket {
    fn add(&mut self, status: RecordStatus, class: Option<Class>) {
        self.counts.add(status);
        match class {
            Some(Class::Read) => self.reads += 1,
            Some(Class::Write) => self.writes += 1,
            Some(Class::Destructive) => self.destructive += 1,
            None => {}
        }
    }
}

/// Returns the kinds of records that are not calls, as SQL: decisions of people, and what the gate
/// records of itself, such as sign-ins.
fn other_than_calls() -> String {
    let is_other = |kind: &RecordKind| kind.is_decision() || *kind == RecordKind::System;
    let kinds = RecordKind::ALL.into_iter().filter(is_other);
    let words: Vec<String> = kinds.map(|kind| format!("'{}'", kind.as_str())).collect();
    words.join(", ")
}

fn word<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a str>, StoreError> {
    Ok(row.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from)?)
}

/// Returns the entry of a name; most names exist already and need no copy.
fn known<'a, T: Default>(names: &'a mut HashMap<String, T>, name: &str) -> &'a mut T {
    if !names.contains_key(name) {
        names.insert(name.to_owned(), T::default());
    }
    names.get_mut(name).expect("inserted above if it was missing")
}

fn busiest<T: Ord>(counted: impl IntoIterator<Item = (T, Counts)>) -> Vec<Tally<T>> {
    let mut tallies: Vec<_> =
        counted.into_iter().map(|(of, counts)| Tally { of, counts }).collect();
    tallies.sort_by(|a, b| b.counts.calls.cmp(&a.counts.calls).then_with(|| a.of.cmp(&b.of)));
    tallies.truncate(SUMMARY_NAMES_MAX);
    tallies
}
