//! Agents that touched the same thing. The touches come from one index, target by target and in
//! order of time, and are compared as they come; nothing but the graph is kept.

use std::thread::ScopedJoinHandle;
use std::time::Duration;

use domain::ledger::contention::{AgentNumber, Contention, Doing, Graph, Kind, Question, Touch};
use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, OptionalExtension};

use super::Reader;
use crate::StoreError;

/// Which meetings of agents are wanted.
#[derive(Clone, Debug)]
pub struct Meetings {
    /// Touches further apart than this are no meeting.
    pub window: Duration,
    pub system: Option<String>,
    /// `None`: every kind that is contention.
    pub kind: Option<Kind>,
    /// From this time on.
    pub start: Option<Timestamp>,
    /// Before this time.
    pub end: Option<Timestamp>,
}

/// An hour: two agents that far apart no longer work on the same thing at once.
pub const WINDOW: Duration = Duration::from_secs(3_600);

impl Default for Meetings {
    fn default() -> Meetings {
        Meetings { window: WINDOW, system: None, kind: None, start: None, end: None }
    }
}

/// Fewer records than this are read before a second thread has begun.
const SPLIT_MIN: i64 = 50_000;

/// Fewer ids than this are read before a second thread has begun.
const NAMES_SPLIT_MIN: usize = 1_000;

impl Reader {
    /// The graph, with records by their ids. A call that was refused touched nothing.
    pub fn contention(&self, wanted: &Meetings) -> Result<Graph<String>, StoreError> {
        self.meet(wanted, SPLIT_MIN)
    }

    /// The same, by two threads where there are more records than `split_min`.
    pub(super) fn meet(
        &self,
        wanted: &Meetings,
        split_min: i64,
    ) -> Result<Graph<String>, StoreError> {
        let middle = self.readers.ask(|db| middle(db, wanted.system.as_deref(), split_min))?;
        let contention = match &middle {
            None => self.gather(wanted, Part::All),
            // Each target is read whole by one of the two, so that it does not matter that they
            // may see the file a moment apart.
            Some(middle) => std::thread::scope(|scope| {
                let later = scope.spawn(|| self.gather(wanted, Part::From(middle)));
                let first = self.gather(wanted, Part::Before(middle))?;
                Ok(first.followed_by(joined(later)?))
            }),
        }?;
        self.name_records(contention.finish())
    }

    /// By two threads as well, where there are many.
    fn name_records(&self, graph: Graph<i64>) -> Result<Graph<String>, StoreError> {
        let mut numbers: Vec<i64> =
            graph.edges.iter().flat_map(|edge| &edge.records).copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let half = if numbers.len() < NAMES_SPLIT_MIN { 0 } else { numbers.len() / 2 };
        let (first, later) = numbers.split_at(half);
        let ask = |numbers| self.readers.ask_at_once(|db| ids(db, numbers));
        let ids = std::thread::scope(|scope| {
            let first = (!first.is_empty()).then(|| scope.spawn(|| ask(first)));
            let later = ask(later)?;
            let mut ids = first.map_or_else(|| Ok(Vec::new()), joined)?;
            ids.extend(later);
            Ok::<_, StoreError>(ids)
        })?;
        Ok(graph.with_records(|number| {
            let place = numbers.binary_search(&number);
            place.map_or_else(|_| String::new(), |place| ids[place].clone())
        }))
    }

    fn gather(&self, wanted: &Meetings, part: Part<'_>) -> Result<Contention<i64>, StoreError> {
        self.readers.ask_at_once(|db| {
            let question = Question {
                window_us: i64::try_from(wanted.window.as_micros()).unwrap_or(i64::MAX),
                kind: wanted.kind,
            };
            let mut contention = Contention::new(question);
            touch_all(db, wanted, part, &mut contention)?;
            Ok(contention)
        })
    }
}

/// A target, by system and resource.
type Middle = (String, String);

/// Which of the targets are looked at, in their order.
#[derive(Clone, Copy)]
enum Part<'a> {
    All,
    Before(&'a Middle),
    From(&'a Middle),
}

/// Where to cut the targets in two, if there is enough to read.
fn middle(
    db: &Connection,
    system: Option<&str>,
    split_min: i64,
) -> Result<Option<Middle>, StoreError> {
    // Each by itself, or every row would be looked at.
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
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    Ok(middle)
}

fn touch_all(
    db: &Connection,
    wanted: &Meetings,
    part: Part<'_>,
    contention: &mut Contention<i64>,
) -> Result<(), StoreError> {
    let mut touches = Touches::new(db, wanted, contention)?;
    let within = match part {
        Part::All => "?2 IS ?3",
        Part::Before(_) => "(system, resource) < (?2, ?3)",
        Part::From(_) => "(system, resource) >= (?2, ?3)",
    };
    let mut targets = db.prepare_cached(&format!(
        "SELECT target, system, resource FROM targets
         WHERE (?1 IS NULL OR system = ?1) AND {within} ORDER BY system, resource"
    ))?;
    let place = match part {
        Part::All => None,
        Part::Before(middle) | Part::From(middle) => Some(middle),
    };
    let (at_system, at_resource) = (place.map(|place| &place.0), place.map(|place| &place.1));
    let mut rows = targets.query((&wanted.system, at_system, at_resource))?;
    while let Some(row) = rows.next()? {
        let (system, resource) = (row.get_ref(1)?, row.get_ref(2)?);
        let system = system.as_str().map_err(rusqlite::Error::from)?;
        let resource = resource.as_str().map_err(rusqlite::Error::from)?;
        contention.turn_to(system, resource);
        touches.of(row.get(0)?, contention)?;
    }
    Ok(())
}

/// The touches of one target, in order of time. To compare each with a time that nobody gave would
/// cost a fifth of the whole.
macro_rules! touches {
    ($between:literal) => {
        concat!(
            "SELECT started_us, agent * 2 + (effective_class IS 'read'), number
             FROM activity INDEXED BY activity_target WHERE target = ?1 ",
            $between,
            " ORDER BY started_us"
        )
    };
}

pub(super) const TOUCHES: &str = touches!("");
pub(super) const TOUCHES_BETWEEN: &str = touches!("AND started_us >= ?2 AND started_us < ?3");

/// Reads the touches of one target after another.
struct Touches<'db> {
    statement: CachedStatement<'db>,
    between_us: Option<(i64, i64)>,
    /// By number; they are given from one on.
    agents: Vec<Option<AgentNumber>>,
    refused: Refused,
}

impl<'db> Touches<'db> {
    fn new(
        db: &'db Connection,
        wanted: &Meetings,
        contention: &mut Contention<i64>,
    ) -> Result<Touches<'db>, StoreError> {
        let agents = agents(db, contention)?;
        let is_bounded = wanted.start.is_some() || wanted.end.is_some();
        let between_us = is_bounded.then_some((
            wanted.start.map_or(i64::MIN, Timestamp::as_microsecond),
            wanted.end.map_or(i64::MAX, Timestamp::as_microsecond),
        ));
        let sql = if is_bounded { TOUCHES_BETWEEN } else { TOUCHES };
        let statement = db.prepare_cached(sql)?;
        Ok(Touches { statement, between_us, agents, refused: Refused::read(db)? })
    }

    fn of(&mut self, target: i64, contention: &mut Contention<i64>) -> Result<(), StoreError> {
        let mut rows = match self.between_us {
            Some((first, last)) => self.statement.query((target, first, last))?,
            None => self.statement.query([target])?,
        };
        while let Some(row) = rows.next()? {
            let record = row.get(2)?;
            if self.refused.has(record) {
                continue;
            }
            let who: usize = row.get(1)?;
            let agent = self.agents.get(who / 2).copied().flatten();
            let agent = agent.unwrap_or_else(|| contention.agent(""));
            let doing = if who % 2 == 1 { Doing::Read } else { Doing::Write };
            contention.push(Touch { agent, doing, at_us: row.get(0)?, record });
        }
        Ok(())
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

/// The numbers of refused calls, a bit for each record. The index of targets knows no status: it
/// would have to be written again when a call ends.
struct Refused {
    first: i64,
    bits: Vec<u64>,
}

impl Refused {
    fn read(db: &Connection) -> Result<Refused, StoreError> {
        let mut statement = db.prepare_cached(
            "SELECT number FROM activity INDEXED BY activity_unsuccessful
             WHERE status = 'blocked' AND status <> 'success' ORDER BY number",
        )?;
        let mut rows = statement.query([])?;
        let mut refused = Refused { first: 0, bits: Vec::new() };
        while let Some(row) = rows.next()? {
            let number = row.get(0)?;
            if refused.bits.is_empty() {
                refused.first = number;
            }
            if let Some((word, bit)) = refused.place(number) {
                if refused.bits.len() <= word {
                    refused.bits.resize(word + 1, 0);
                }
                refused.bits[word] |= bit;
            }
        }
        Ok(refused)
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

/// The ids of records. Asked for in order: neighbours lie on the same pages.
fn ids(db: &Connection, numbers: &[i64]) -> Result<Vec<String>, StoreError> {
    let mut statement = db.prepare_cached("SELECT id FROM activity WHERE number = ?1")?;
    let id = |number| statement.query_row([number], |row| row.get(0)).optional();
    let ids: Result<Vec<Option<String>>, _> = numbers.iter().map(id).collect();
    Ok(ids?.into_iter().map(Option::unwrap_or_default).collect())
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, StoreError>>) -> Result<T, StoreError> {
    let ended = |_| StoreError::Read("a reader of contention has ended".to_owned());
    thread.join().map_err(ended)?
}
