//! Finds rows by conditions, newest first. A search that an index answers runs at once. Any other
//! proceeds in steps along the positions, and after a while returns what it has found: a search for
//! a rare word in a million records never blocks for long.

use std::ops::Range;
use std::time::{Duration, Instant};

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use crate::error::StoreError;
use crate::limits::{COUNT_TIME, SEARCH_STEP, SEARCH_TIME, SORT_MAX};

/// The number of matching rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    Exact(u64),
    /// A lower bound, because counting further would have taken too long.
    AtLeast(u64),
}

impl Total {
    pub fn count(self) -> u64 {
        match self {
            Total::Exact(count) | Total::AtLeast(count) => count,
        }
    }

    pub fn is_exact(self) -> bool {
        matches!(self, Total::Exact(_))
    }
}

/// SQL conditions and the values for their question marks.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    sql: String,
    values: Vec<Value>,
}

impl Conditions {
    pub(super) fn add(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) {
        if !self.sql.is_empty() {
            self.sql.push_str(" AND ");
        }
        self.sql.push_str(sql);
        self.values.extend(values);
    }

    /// Adds a condition if its value is given.
    pub(super) fn add_if(&mut self, sql: &str, value: Option<String>) {
        if let Some(value) = value {
            self.add(sql, [value.into()]);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sql.is_empty()
    }

    pub(super) fn and(mut self, other: &Conditions) -> Conditions {
        if !other.is_empty() {
            self.add(&other.sql, other.values.iter().cloned());
        }
        self
    }

    /// Requires these conditions or the others.
    pub(super) fn or(self, other: &Conditions) -> Conditions {
        let sql = format!("(({}) OR ({}))", self.sql, other.sql);
        Conditions { sql, values: [self.values, other.values.clone()].concat() }
    }

    pub(super) fn select(&self, what: &str, from: &str, tail: &str) -> String {
        match self.sql.as_str() {
            "" => format!("SELECT {what} FROM {from} {tail}"),
            sql => format!("SELECT {what} FROM {from} WHERE {sql} {tail}"),
        }
    }

    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }
}

/// Limits on the work of one step, and of the whole search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    pub(super) step: i64,
    pub(super) search: Duration,
    pub(super) count: Duration,
    pub(super) sort: u64,
}

impl Effort {
    pub(super) const USUAL: Effort =
        Effort { step: SEARCH_STEP, search: SEARCH_TIME, count: COUNT_TIME, sort: SORT_MAX };
}

/// Rows of a table, in descending order of a column of whole numbers.
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// The table and the index to use.
    pub(super) from: String,
    pub(super) position: &'static str,
    pub(super) conditions: Conditions,
    pub(super) pace: Pace,
    /// The total, if planning has already counted it.
    pub(super) known_total: Option<u64>,
    pub(super) effort: Effort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// An index finds these rows and no others, or few others.
    AtOnce,
    /// The search passes other rows; the first and last relevant positions are known.
    InSteps(Bounds),
}

/// The first and the last of some positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) first: i64,
    pub(super) last: i64,
}

impl Bounds {
    /// Reads the first and the last position from two columns; none if there are no positions.
    pub(super) fn read(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Bounds>> {
        let first: Option<i64> = row.get(column)?;
        let last: Option<i64> = row.get(column + 1)?;
        Ok(first.zip(last).map(|(first, last)| Bounds { first, last }))
    }
}

/// Positions of one page.
#[derive(Clone, Debug, Default)]
pub(super) struct Hits {
    pub(super) positions: Vec<i64>,
    /// There may be more below this position.
    pub(super) more_below: Option<i64>,
}

impl Search {
    /// Returns at most `limit` rows below a position.
    pub(super) fn below(
        &self,
        db: &Connection,
        below: Option<i64>,
        limit: usize,
    ) -> Result<Hits, StoreError> {
        let below = below.unwrap_or(i64::MAX);
        let mut found = Hits::default();
        match self.pace {
            Pace::AtOnce => self.take(db, i64::MIN..below, limit, &mut found)?,
            Pace::InSteps(Bounds { first, last }) => {
                let begun = Instant::now();
                let mut upper = below.min(last.saturating_add(1));
                while upper > first && found.more_below.is_none() {
                    let lower = upper.saturating_sub(self.effort.step).max(first);
                    self.take(db, lower..upper, limit, &mut found)?;
                    upper = lower;
                    if begun.elapsed() >= self.effort.search && upper > first {
                        found.more_below.get_or_insert(upper);
                    }
                }
            }
        }
        Ok(found)
    }

    /// Adds the rows of a range of positions, until there are `limit`.
    fn take(
        &self,
        db: &Connection,
        range: Range<i64>,
        limit: usize,
        found: &mut Hits,
    ) -> Result<(), StoreError> {
        let mut statement = db.prepare_cached(&self.page_sql())?;
        let bounds =
            [range.start, range.end, i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)];
        let values = self.conditions.values.iter().cloned().chain(bounds.map(Value::from));
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            if found.positions.len() == limit {
                found.more_below = found.positions.last().copied();
                break;
            }
            found.positions.push(row.get(0)?);
        }
        Ok(())
    }

    pub(super) fn page_sql(&self) -> String {
        let Search { from, position, .. } = self;
        self.between().select(position, from, &format!("ORDER BY {position} DESC LIMIT ?"))
    }

    fn between(&self) -> Conditions {
        let mut conditions = self.conditions.clone();
        conditions.add(&format!("{0} >= ? AND {0} < ?", self.position), []);
        conditions
    }

    pub(super) fn count(&self, db: &Connection) -> Result<Total, StoreError> {
        if let Some(count) = self.known_total {
            return Ok(Total::Exact(count));
        }
        match self.pace {
            Pace::AtOnce => {
                let sql = self.conditions.select("COUNT(*)", &self.from, "");
                let mut statement = db.prepare_cached(&sql)?;
                let values = params_from_iter(self.conditions.values.iter());
                Ok(Total::Exact(statement.query_row(values, |row| row.get(0))?))
            }
            Pace::InSteps(bounds) => self.count_in_steps(db, bounds),
        }
    }

    fn count_in_steps(&self, db: &Connection, bounds: Bounds) -> Result<Total, StoreError> {
        let Bounds { first, last } = bounds;
        let begun = Instant::now();
        let mut statement =
            db.prepare_cached(&self.between().select("COUNT(*)", &self.from, ""))?;
        let mut count = 0;
        let mut upper = last.saturating_add(1);
        while upper > first {
            if begun.elapsed() >= self.effort.count {
                return Ok(Total::AtLeast(count));
            }
            let lower = upper.saturating_sub(self.effort.step).max(first);
            let bounds = [lower, upper].map(Value::from);
            let values = self.conditions.values.iter().cloned().chain(bounds);
            count += statement.query_row(params_from_iter(values), |row| row.get::<_, u64>(0))?;
            upper = lower;
        }
        Ok(Total::Exact(count))
    }
}
