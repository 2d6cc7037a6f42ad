//! Filters of the activity, and the index to use for each.

mod target;

use domain::tool::Class;
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::search::{Bounds, Conditions, Effort, Pace, Search};
use crate::error::StoreError;
use crate::record::{RecordKind, RecordStatus};
pub use target::TouchAccess;
pub(super) use target::{after, is_pattern};

/// Filters on records; a record must match all that are given.
#[derive(Clone, Debug, Default)]
pub struct RecordFilter {
    pub kind: Option<RecordKind>,
    pub server: Option<String>,
    pub tool: Option<String>,
    pub status: Option<RecordStatus>,
    pub intent_type: Option<String>,
    pub effective_class: Option<Class>,
    /// An agent's name, the part before its `#` (all its sessions), or the name of a token.
    pub agent: Option<String>,
    pub session_id: Option<String>,
    pub request_id: Option<String>,
    pub target_system: Option<String>,
    /// A resource by its name; `*` in it is any text.
    pub target_resource: Option<String>,
    /// A resource and everything in it, such as a folder.
    pub under: Option<String>,
    /// Adds the containers of `target_resource`, or else of `under`.
    pub containers: bool,
    /// The effect on the resource.
    pub access: Option<TouchAccess>,
    /// The start time, inclusive.
    pub start: Option<Timestamp>,
    /// The end time, exclusive.
    pub end: Option<Timestamp>,
    /// Text anywhere in the tool, the server, the reason, the error message or a target. ASCII
    /// case is ignored.
    pub text: Option<String>,
}

/// The order in which an index returns its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    ByNumber,
    /// One agent after the other.
    ByAgent,
    /// Some other order, to be sorted.
    Mixed,
}

/// One condition, and the index that can find its records.
struct Criterion {
    lead: Option<Lead>,
    conditions: Conditions,
}

/// The index that can find the records of a condition.
enum Lead {
    Index(&'static str, Order),
    /// The table of touches, by this condition on targets.
    Touches(Conditions),
}

/// Touches of one record that a search expects at most; most records have fewer.
const TOUCHES_PER_RECORD: u64 = 4;

/// Walks the records one by one, even if an index exists.
const WALK: &str = "activity NOT INDEXED";

/// A search whose leading condition is chosen next.
struct SearchPlan {
    rest: Conditions,
    effort: Effort,
}

impl SearchPlan {
    fn search(&self, from: &str, conditions: Conditions, pace: Pace) -> Search {
        let (from, effort) = (from.to_owned(), self.effort);
        Search { from, position: "number", conditions, pace, known_total: None, effort }
    }

    /// Walks along records in the order of their numbers.
    fn walk(
        &self,
        db: &Connection,
        from: &str,
        leading: &Conditions,
    ) -> Result<Option<Search>, StoreError> {
        let pace = pace_through_all(db, &self.rest)?;
        let both = leading.clone().and(&self.rest);
        Ok(pace.map(|pace| self.search(from, both, pace)))
    }

    fn by_index(
        &self,
        db: &Connection,
        (index, order): (&str, Order),
        conditions: &Conditions,
    ) -> Result<Option<Search>, StoreError> {
        let from = format!("activity INDEXED BY {index}");
        let extent = match order {
            Order::ByNumber => return self.walk(db, &from, conditions),
            Order::ByAgent => extent(db, &extent_of_agents(), conditions)?,
            Order::Mixed => extent(db, &conditions.select(EXTENT, &from, ""), conditions)?,
        };
        let Some(Extent { count, bounds }) = extent else {
            return Ok(None);
        };
        let known_total = self.rest.is_empty().then_some(count);
        let both = conditions.clone().and(&self.rest);
        let search = if count <= self.effort.sort {
            self.search(&from, both, Pace::AtOnce)
        } else {
            self.search(WALK, both, Pace::InSteps(bounds))
        };
        Ok(Some(Search { known_total, ..search }))
    }

    /// Finds the records of touches. A record that touches several of the targets counts once.
    fn by_touches(
        &self,
        db: &Connection,
        targets: &Conditions,
        conditions: &Conditions,
    ) -> Result<Option<Search>, StoreError> {
        let Some(Extent { count, bounds }) =
            extent(db, &targets.select(EXTENT, "touches", ""), targets)?
        else {
            return Ok(None);
        };
        // Counting the records among very many touches would take as long as the walk.
        let records = if count <= TOUCHES_PER_RECORD * self.effort.sort {
            let sql = targets.select("COUNT(DISTINCT number)", "touches", "");
            let mut statement = db.prepare_cached(&sql)?;
            statement.query_row(params_from_iter(targets.values()), |row| row.get(0))?
        } else {
            u64::MAX
        };
        if records > self.effort.sort {
            let both = conditions.clone().and(&self.rest);
            return Ok(Some(self.search(WALK, both, Pace::InSteps(bounds))));
        }
        let mut among = Conditions::default();
        let sql = format!("number IN ({})", targets.select("number", "touches", ""));
        among.add(&sql, targets.values().iter().cloned());
        let known_total = self.rest.is_empty().then_some(records);
        let search = self.search("activity", among.and(&self.rest), Pace::AtOnce);
        Ok(Some(Search { known_total, ..search }))
    }
}

impl RecordFilter {
    /// Plans the search for these records. `None`: there are none.
    pub(super) fn search(
        &self,
        db: &Connection,
        effort: Effort,
    ) -> Result<Option<Search>, StoreError> {
        let Some(mut criteria) = self.criteria(db)? else {
            return Ok(None);
        };
        let leader = criteria.iter().position(|criterion| criterion.lead.is_some());
        let lead = leader.map(|at| criteria.remove(at));
        let rest = criteria
            .iter()
            .fold(Conditions::default(), |all, criterion| all.and(&criterion.conditions));
        let plan = SearchPlan { rest, effort };
        match lead {
            None => plan.walk(db, WALK, &Conditions::default()),
            Some(Criterion { lead: Some(Lead::Touches(targets)), conditions }) => {
                plan.by_touches(db, &targets, &conditions)
            }
            Some(Criterion { lead: Some(Lead::Index(index, order)), conditions }) => {
                plan.by_index(db, (index, order), &conditions)
            }
            Some(Criterion { lead: None, conditions }) => plan.walk(db, WALK, &conditions),
        }
    }

    /// Returns the conditions, usually most selective first. `None`: one names an unknown agent.
    fn criteria(&self, db: &Connection) -> Result<Option<Vec<Criterion>>, StoreError> {
        let mut criteria = Vec::new();
        criteria.extend(self.session_id.as_ref().map(|id| {
            Criterion::led(
                "activity_session",
                Order::ByNumber,
                "session_id = ?",
                [id.clone().into()],
            )
        }));
        criteria.extend(self.touches());
        criteria.extend(self.status.map(of_status));
        if let Some(agent) = &self.agent {
            let Some(criterion) = of_agent(db, agent)? else {
                return Ok(None);
            };
            criteria.push(criterion);
        }
        criteria.extend(self.tool_of_server());
        criteria.extend(self.intent_type.as_ref().map(|intent| {
            Criterion::led(
                "activity_intent",
                Order::ByNumber,
                "intent_type = ?",
                [intent.clone().into()],
            )
        }));
        criteria.extend(self.time());
        criteria.extend(self.kind.map(|kind| Criterion::plain("type = ?", [text(kind.as_str())])));
        let classes = [self.effective_class, self.class_of_access()].into_iter().flatten();
        criteria.extend(
            classes.map(|class| Criterion::plain("effective_class = ?", [text(class.as_str())])),
        );
        criteria.extend(
            self.request_id
                .as_ref()
                .map(|id| Criterion::plain("request_id = ?", [id.clone().into()])),
        );
        criteria.extend(self.text.as_deref().filter(|text| !text.is_empty()).map(holding));
        Ok(Some(criteria))
    }

    fn tool_of_server(&self) -> Option<Criterion> {
        let (order, sql, values) = match (&self.server, &self.tool) {
            (None, None) => return None,
            (Some(server), Some(tool)) => {
                (Order::ByNumber, "server = ? AND tool = ?".to_owned(), vec![server, tool])
            }
            (Some(server), None) => (Order::Mixed, "server = ?".to_owned(), vec![server]),
            (None, Some(tool)) => {
                (Order::Mixed, format!("server IN ({SERVERS}) AND tool = ?"), vec![tool])
            }
        };
        let values = values.into_iter().cloned().map(Value::from);
        Some(Criterion::led("activity_tool", order, &sql, values))
    }

    fn time(&self) -> Option<Criterion> {
        let conditions = self.period();
        let lead = Some(Lead::Index("activity_started", Order::Mixed));
        (!conditions.is_empty()).then_some(Criterion { lead, conditions })
    }

    fn period(&self) -> Conditions {
        let mut conditions = Conditions::default();
        if let Some(start) = self.start {
            conditions.add("started_us >= ?", [start.as_microsecond().into()]);
        }
        if let Some(end) = self.end {
            conditions.add("started_us < ?", [end.as_microsecond().into()]);
        }
        conditions
    }

    /// Returns the class that the touches require.
    fn class_of_access(&self) -> Option<Class> {
        self.access.and_then(TouchAccess::class)
    }
}

impl Criterion {
    fn led(
        index: &'static str,
        order: Order,
        sql: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Criterion {
        Criterion { lead: Some(Lead::Index(index, order)), ..Criterion::plain(sql, values) }
    }

    fn plain(sql: &str, values: impl IntoIterator<Item = Value>) -> Criterion {
        let mut conditions = Conditions::default();
        conditions.add(sql, values);
        Criterion { lead: None, conditions }
    }
}

/// Selects every server that was ever called, with one seek in the index for each.
const SERVERS: &str = "WITH RECURSIVE known (name) AS (
    SELECT MIN(server) FROM activity
    UNION ALL
    SELECT (SELECT MIN(server) FROM activity WHERE server > known.name) FROM known
    WHERE known.name IS NOT NULL
  ) SELECT name FROM known WHERE name IS NOT NULL";

/// Returns the condition on a status. Most calls succeed, so an index of those would not help.
fn of_status(status: RecordStatus) -> Criterion {
    let values = [text(status.as_str())];
    match status {
        RecordStatus::Success => Criterion::plain("status = ?", values),
        RecordStatus::Pending
        | RecordStatus::Error
        | RecordStatus::Blocked
        | RecordStatus::Cancelled
        | RecordStatus::Interrupted
        | RecordStatus::Unknown => {
            // The second half repeats the partial index's condition, by which SQLite recognizes it.
            let sql = "status = ? AND status <> 'success'";
            Criterion::led("activity_unsuccessful", Order::ByNumber, sql, values)
        }
    }
}

/// Selects the agents of a name: sessions are `name#session`, and `$` is the character after `#`.
const AGENTS: &str =
    "SELECT agent FROM agents WHERE name = ? OR (name >= ? AND name < ?) OR token = ?";

fn of_agent(db: &Connection, agent: &str) -> Result<Option<Criterion>, StoreError> {
    let names = [agent.to_owned(), format!("{agent}#"), format!("{agent}$"), agent.to_owned()];
    let mut statement = db.prepare_cached(&format!("{AGENTS} LIMIT 2"))?;
    let agents: Vec<i64> = statement
        .query_map(params_from_iter(&names), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let criterion = match agents[..] {
        [] => return Ok(None),
        [agent] => Criterion::led("activity_agent", Order::ByNumber, "agent = ?", [agent.into()]),
        _ => {
            let sql = format!("agent IN ({AGENTS})");
            Criterion::led("activity_agent", Order::ByAgent, &sql, names.map(Value::from))
        }
    };
    Ok(Some(criterion))
}

fn holding(words: &str) -> Criterion {
    let sql = r"(tool LIKE ? ESCAPE '\' OR server LIKE ? ESCAPE '\' OR reason LIKE ? ESCAPE '\'
      OR error_message LIKE ? ESCAPE '\' OR EXISTS (SELECT 1 FROM touches
        WHERE touches.number = activity.number AND touches.target IN (SELECT target FROM targets
          WHERE system LIKE ? ESCAPE '\' OR resource LIKE ? ESCAPE '\')))";
    let mut pattern = String::from("%");
    for character in words.chars().take(TEXT_MAX) {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    Criterion::plain(sql, std::iter::repeat_n(Value::from(pattern), 6))
}

/// The number of characters of a text that are searched for. SQLite takes no pattern much longer
/// than this, and people type no longer ones.
const TEXT_MAX: usize = 1_000;

/// Returns the pace of a walk: with further conditions, a search passes other records on the way.
fn pace_through_all(db: &Connection, rest: &Conditions) -> Result<Option<Pace>, StoreError> {
    if rest.is_empty() {
        return Ok(Some(Pace::AtOnce));
    }
    let bounds = db
        .prepare_cached(
            "SELECT (SELECT MIN(number) FROM activity), (SELECT MAX(number) FROM activity)",
        )?
        .query_row([], |row| Bounds::read(row, 0))?;
    Ok(bounds.map(Pace::InSteps))
}

const EXTENT: &str = "COUNT(*), MIN(number), MAX(number)";

/// Selects the extent of several agents, each separately: the ends are found without reading the
/// records between them.
fn extent_of_agents() -> String {
    let of_one = |what: &str| {
        format!("(SELECT {what} FROM activity INDEXED BY activity_agent WHERE agent = known.agent)")
    };
    format!(
        "SELECT SUM({}), MIN({}), MAX({}) FROM ({AGENTS}) AS known",
        of_one("COUNT(*)"),
        of_one("MIN(number)"),
        of_one("MAX(number)"),
    )
}

/// The number of records that an index finds, and the bounds of their numbers.
struct Extent {
    count: u64,
    bounds: Bounds,
}

fn extent(
    db: &Connection,
    sql: &str,
    conditions: &Conditions,
) -> Result<Option<Extent>, StoreError> {
    let extent =
        db.prepare_cached(sql)?.query_row(params_from_iter(conditions.values()), |row| {
            let (count, bounds) = (row.get::<_, Option<u64>>(0)?, Bounds::read(row, 1)?);
            Ok(count.zip(bounds).map(|(count, bounds)| Extent { count, bounds }))
        })?;
    Ok(extent)
}

fn text(word: &str) -> Value {
    word.to_owned().into()
}
