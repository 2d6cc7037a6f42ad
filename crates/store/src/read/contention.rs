//! Agents that touched the same resource. The touches come from one table, by target and time, and are
//! compared as they are read; only the graph is kept.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::Null;
use rusqlite::{Connection, OptionalExtension};
use touch::contention::{
    AgentNumber, ContainerMeetings, Contention, ContentionKind, EdgeId, Graph, Question, Touch,
};

use super::reader::Reader;
use crate::error::StoreError;
pub use crate::touches::WINDOW;
use crate::touches::who_of;

/// A filter of meetings between agents.
#[derive(Clone, Debug)]
pub struct ContentionFilter {
    /// The longest time between two touches that count as a meeting.
    pub window: Duration,
    pub system: Option<String>,
    /// `None`: every kind that is contention.
    pub kind: Option<ContentionKind>,
    /// The start time, inclusive.
    pub start: Option<Timestamp>,
    /// The end time, exclusive.
    pub end: Option<Timestamp>,
    /// Only the edge with this id.
    pub edge: Option<EdgeId>,
    pub containers: ContainerMeetings,
}

impl Default for ContentionFilter {
    fn default() -> ContentionFilter {
        ContentionFilter {
            window: WINDOW,
            system: None,
            kind: None,
            start: None,
            end: None,
            edge: None,
            containers: ContainerMeetings::Ignored,
        }
    }
}

/// The number of records below which starting a second thread takes longer than reading them.
const SPLIT_MIN: i64 = 50_000;

/// The number of ids below which starting a second thread takes longer than reading them.
const NAMES_SPLIT_MIN: usize = 1_000;

impl Reader {
    /// Returns the graph, with records by their ids. A refused call touched nothing, and a call that
    /// several records show counts once.
    pub fn contention(&self, filter: &ContentionFilter) -> Result<Graph<String>, StoreError> {
        self.meet(filter, SPLIT_MIN)
    }

    /// Builds the graph, with two threads if there are more records than `split_min`.
    pub(super) fn meet(
        &self,
        filter: &ContentionFilter,
        split_min: i64,
    ) -> Result<Graph<String>, StoreError> {
        // A container and its contents may lie on both sides.
        let is_split = filter.containers == ContainerMeetings::Ignored;
        let split_min = if is_split { split_min } else { i64::MAX };
        let middle = self.pool.ask(|db| middle(db, filter.system.as_deref(), split_min))?;
        let contention = match &middle {
            None => self.gather(filter, TargetRange::All),
            // One of the two reads each target in full, so it does not matter that they may see the
            // file a moment apart.
            Some(middle) => std::thread::scope(|scope| {
                let later = scope.spawn(|| self.gather(filter, TargetRange::From(middle)));
                let first = self.gather(filter, TargetRange::Before(middle))?;
                Ok(first.followed_by(joined(later)?))
            }),
        }?;
        self.name_records(contention.finish())
    }

    /// Replaces numbers by ids, also with two threads if there are many.
    fn name_records(&self, graph: Graph<i64>) -> Result<Graph<String>, StoreError> {
        let mut numbers: Vec<i64> =
            graph.edges.iter().flat_map(|edge| &edge.records).copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let half = if numbers.len() < NAMES_SPLIT_MIN { 0 } else { numbers.len() / 2 };
        let (first, later) = numbers.split_at(half);
        let ask = |numbers| self.pool.ask_at_once(|db| ids(db, numbers));
        let (first, later) = std::thread::scope(|scope| {
            let first = (!first.is_empty()).then(|| scope.spawn(|| ask(first)));
            let later = ask(later)?;
            Ok::<_, StoreError>((first.map_or_else(|| Ok(Ids::default()), joined)?, later))
        })?;
        Ok(graph.with_records(|number| {
            let place = numbers.binary_search(&number).unwrap_or(usize::MAX);
            let id = if place < half { first.get(place) } else { later.get(place - half) };
            id.to_owned()
        }))
    }

    fn gather(
        &self,
        filter: &ContentionFilter,
        range: TargetRange<'_>,
    ) -> Result<Contention<i64>, StoreError> {
        self.pool.ask_at_once(|db| {
            let question = Question {
                window_us: i64::try_from(filter.window.as_micros()).unwrap_or(i64::MAX),
                kind: filter.kind,
                edge: filter.edge,
                nesting: filter.containers,
            };
            touch_all(db, filter, range, Contention::new(question))
        })
    }
}

/// The target at which the work is split.
struct Middle {
    system: String,
    resource: String,
}

/// A range of targets, in their order.
#[derive(Clone, Copy)]
enum TargetRange<'a> {
    All,
    Before(&'a Middle),
    From(&'a Middle),
}

/// Finds the target at which to split the work, if there is enough to read.
fn middle(
    db: &Connection,
    system: Option<&str>,
    split_min: i64,
) -> Result<Option<Middle>, StoreError> {
    // Separate queries; a combined one would examine every row.
    let spread: Option<i64> = db.query_row(
        "SELECT (SELECT max(number) FROM activity) - (SELECT min(number) FROM activity)",
        [],
        |row| row.get(0),
    )?;
    if spread.is_none_or(|spread| spread < split_min) {
        return Ok(None);
    }
    let middle = db
        .query_row(
            "SELECT system, resource FROM targets WHERE ?1 IS NULL OR system = ?1
             ORDER BY system, resource
             LIMIT 1 OFFSET (SELECT count(*) / 2 FROM targets WHERE ?1 IS NULL OR system = ?1)",
            [system],
            |row| Ok(Middle { system: row.get(0)?, resource: row.get(1)? }),
        )
        .optional()?;
    Ok(middle)
}

fn touch_all(
    db: &Connection,
    filter: &ContentionFilter,
    range: TargetRange<'_>,
    contention: Contention<i64>,
) -> Result<Contention<i64>, StoreError> {
    let desk = Desk::set_up(db)?;
    let mut builder = ContentionBuilder::new(db, contention)?;
    let is_bounded = filter.start.is_some() || filter.end.is_some();
    let first_us = filter.start.map_or(i64::MIN, Timestamp::as_microsecond);
    let last_us = filter.end.map_or(i64::MAX, Timestamp::as_microsecond);
    let mut touches = db.prepare(if is_bounded { TOUCHES_BETWEEN } else { TOUCHES })?;
    let within = match range {
        TargetRange::All => "?2 IS ?3",
        TargetRange::Before(_) => "(system, resource) < (?2, ?3)",
        TargetRange::From(_) => "(system, resource) >= (?2, ?3)",
    };
    let mut targets = db.prepare(&format!(
        "SELECT target, system, resource FROM targets
         WHERE (?1 IS NULL OR system = ?1) AND {within} ORDER BY system, resource"
    ))?;
    let place = match range {
        TargetRange::All => None,
        TargetRange::Before(middle) | TargetRange::From(middle) => Some(middle),
    };
    let at_system = place.map(|middle| &middle.system);
    let at_resource = place.map(|middle| &middle.resource);
    let mut rows = targets.query((&filter.system, at_system, at_resource))?;
    while let Some(row) = rows.next()? {
        let (system, resource) = (row.get_ref(1)?, row.get_ref(2)?);
        let system = system.as_str().map_err(rusqlite::Error::from)?;
        let resource = resource.as_str().map_err(rusqlite::Error::from)?;
        builder.turn_to(system, resource);
        desk.put(builder);
        let target: i64 = row.get(0)?;
        let done = |_: &rusqlite::Row<'_>| Ok(());
        if is_bounded {
            touches.query_row((target, first_us, last_us), done)?;
        } else {
            touches.query_row([target], done)?;
        }
        builder = desk.take()?;
    }
    Ok(builder.contention)
}

/// Selects the touches of one target, in order of time. Comparing each with an absent time limit
/// would cost a fifth of the whole.
macro_rules! touches {
    ($between:literal) => {
        concat!("SELECT gather(started_us, who, number) FROM touches WHERE target = ?1 ", $between)
    };
}

pub(super) const TOUCHES: &str = touches!("");
pub(super) const TOUCHES_BETWEEN: &str = touches!("AND started_us >= ?2 AND started_us < ?3");

/// The touches gathered so far, and the tables needed to read another.
struct ContentionBuilder {
    contention: Contention<i64>,
    /// Agents by number, starting from one.
    agents: Vec<Option<AgentNumber>>,
    silent: SilentRecords,
    latest_us: i64,
}

impl ContentionBuilder {
    fn new(
        db: &Connection,
        mut contention: Contention<i64>,
    ) -> Result<ContentionBuilder, StoreError> {
        let agents = agents(db, &mut contention)?;
        Ok(ContentionBuilder {
            contention,
            agents,
            silent: SilentRecords::read(db)?,
            latest_us: i64::MIN,
        })
    }

    fn turn_to(&mut self, system: &str, resource: &str) {
        self.contention.turn_to(system, resource);
        self.latest_us = i64::MIN;
    }

    fn push(&mut self, at_us: i64, who: i64, record: i64) -> rusqlite::Result<()> {
        // SQL does not guarantee this order to an aggregate; walking an index does.
        if at_us < self.latest_us {
            let error = "the touches of a target came out of order";
            return Err(rusqlite::Error::UserFunctionError(error.into()));
        }
        self.latest_us = at_us;
        if self.silent.has(record) {
            return Ok(());
        }
        let (agent, access) = who_of(who);
        let agent = usize::try_from(agent).ok().and_then(|at| self.agents.get(at)?.as_ref());
        let agent = agent.copied().unwrap_or_else(|| self.contention.agent(""));
        self.contention.push(Touch { agent, access, at_us, record });
        Ok(())
    }
}

/// Holds the builder between two targets. SQLite takes it for the rows of one target and puts it
/// back: stepping through those rows from outside costs half as much again.
#[derive(Clone)]
pub(super) struct Desk(Arc<Mutex<Option<ContentionBuilder>>>);

impl Desk {
    /// Registers `gather` on the connection.
    pub(super) fn set_up(db: &Connection) -> Result<Desk, StoreError> {
        let desk = Desk(Arc::default());
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
        db.create_aggregate_function("gather", 3, flags, desk.clone())?;
        Ok(desk)
    }

    fn put(&self, builder: ContentionBuilder) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(builder);
    }

    fn take(&self) -> rusqlite::Result<ContentionBuilder> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let error = "a target's touches were not gathered one after the other";
        taken.ok_or_else(|| rusqlite::Error::UserFunctionError(error.into()))
    }
}

impl Aggregate<ContentionBuilder, Null> for Desk {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<ContentionBuilder> {
        self.take()
    }

    fn step(&self, row: &mut Context<'_>, builder: &mut ContentionBuilder) -> rusqlite::Result<()> {
        builder.push(row.get(0)?, row.get(1)?, row.get(2)?)
    }

    fn finalize(
        &self,
        _: &mut Context<'_>,
        all: Option<ContentionBuilder>,
    ) -> rusqlite::Result<Null> {
        if let Some(builder) = all {
            self.put(builder);
        }
        Ok(Null)
    }
}

fn agents(
    db: &Connection,
    contention: &mut Contention<i64>,
) -> Result<Vec<Option<AgentNumber>>, StoreError> {
    let mut statement = db.prepare_cached("SELECT agent, name FROM agents ORDER BY agent")?;
    let mut rows = statement.query([])?;
    let mut agents = Vec::new();
    while let Some(row) = rows.next()? {
        agents.resize(row.get(0)?, None);
        let name = row.get_ref(1)?;
        agents.push(Some(contention.agent(name.as_str().map_err(rusqlite::Error::from)?)));
    }
    Ok(agents)
}

/// The numbers of records whose touches do not count, a bit for each: refused calls, and second
/// records of one call. The table of touches does not say so, because it would have to be rewritten
/// when a call ends.
struct SilentRecords {
    first: i64,
    bits: Vec<u64>,
}

impl SilentRecords {
    fn read(db: &Connection) -> Result<SilentRecords, StoreError> {
        let mut statement = db.prepare_cached(SILENT)?;
        let mut rows = statement.query([])?;
        let mut silent = SilentRecords { first: 0, bits: Vec::new() };
        while let Some(row) = rows.next()? {
            let number = row.get(0)?;
            if silent.bits.is_empty() {
                silent.first = number;
            }
            if let Some((word, bit)) = silent.place(number) {
                if silent.bits.len() <= word {
                    silent.bits.resize(word + 1, 0);
                }
                silent.bits[word] |= bit;
            }
        }
        Ok(silent)
    }

    fn has(&self, number: i64) -> bool {
        let place = self.place(number);
        place.is_some_and(|(word, bit)| self.bits.get(word).is_some_and(|bits| bits & bit != 0))
    }

    fn place(&self, number: i64) -> Option<(usize, u64)> {
        let offset = usize::try_from(number.checked_sub(self.first)?).ok()?;
        Some((offset / 64, 1 << (offset % 64)))
    }
}

const SILENT: &str = "SELECT number FROM activity INDEXED BY activity_unsuccessful
      WHERE status = 'blocked' AND status <> 'success'
    UNION SELECT number FROM activity INDEXED BY activity_joined WHERE joined IS NOT NULL
    ORDER BY number";

/// The ids of records in one buffer: there can be tens of thousands.
#[derive(Default)]
struct Ids {
    text: String,
    ends: Vec<usize>,
}

impl Ids {
    fn get(&self, place: usize) -> &str {
        let start = place.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.ends.get(place).map_or("", |end| &self.text[start.unwrap_or(0)..*end])
    }
}

/// Reads ids in order, since neighbours lie on the same pages. A deleted record has no id.
fn ids(db: &Connection, numbers: &[i64]) -> Result<Ids, StoreError> {
    let mut statement = db.prepare_cached("SELECT id FROM activity WHERE number = ?1")?;
    let mut ids = Ids::default();
    for number in numbers {
        let mut rows = statement.query([number])?;
        if let Some(row) = rows.next()? {
            ids.text.push_str(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?);
        }
        ids.ends.push(ids.text.len());
    }
    Ok(ids)
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, StoreError>>) -> Result<T, StoreError> {
    let ended = |_| StoreError::Read("a reader of contention has ended".to_owned());
    thread.join().map_err(ended)?
}
