//! Counts the calls of each tool that had a target, and the rules that found it.

use jiff::Timestamp;
use rusqlite::params;

use super::reader::Reader;
use crate::error::StoreError;
use crate::record::{TARGET_OMITTED, TARGET_REDACTED, TARGETS_OMITTED};

/// Agents that are listed for the targets they lack.
const LOSSES_MAX: usize = 100;

/// The calls of one tool whose targets were found in one way, or not found for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetCoverage {
    pub server: String,
    pub tool: String,
    /// Absent in records that name no rule, such as events without a resource.
    pub basis: Option<String>,
    pub has_target: bool,
    pub calls: u64,
}

/// An agent whose records do not tell all that it touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetLosses {
    pub agent: String,
    /// Its calls of which a target is left out.
    pub dropped: u64,
    /// Its calls of which a target has a part of its name.
    pub shortened: u64,
}

/// The calls that are counted.
#[derive(Clone, Debug, Default)]
pub struct CoverageFilter {
    pub server: Option<String>,
    /// The start time, inclusive.
    pub start: Option<Timestamp>,
    /// The end time, exclusive.
    pub end: Option<Timestamp>,
}

impl CoverageFilter {
    fn period_us(&self) -> (i64, i64) {
        let us = |time: Option<Timestamp>, open| time.map_or(open, Timestamp::as_microsecond);
        (us(self.start, i64::MIN), us(self.end, i64::MAX))
    }
}

const COVERAGE: &str = "SELECT server, tool, target_basis, target IS NOT NULL, COUNT(*)
    FROM activity NOT INDEXED
    WHERE type IN ('tool_call', 'policy_decision') AND (?1 IS NULL OR server = ?1)
      AND started_us >= ?2 AND started_us < ?3 AND joined IS NULL
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 5 DESC, 3";

const LOSSES: &str = "SELECT name, SUM(is_dropped), SUM(is_shortened) FROM
      (SELECT agents.name, target_basis LIKE 'dropped:%'
         OR EXISTS (SELECT 1 FROM json_each(warnings) WHERE value IN (?5, ?6)) AS is_dropped,
         EXISTS (SELECT 1 FROM json_each(warnings) WHERE value = ?7) AS is_shortened
       FROM activity NOT INDEXED JOIN agents USING (agent)
       WHERE type IN ('tool_call', 'policy_decision') AND (?1 IS NULL OR server = ?1)
         AND started_us >= ?2 AND started_us < ?3 AND joined IS NULL)
    GROUP BY name HAVING SUM(is_dropped) > 0 OR SUM(is_shortened) > 0
    ORDER BY 2 DESC, 3 DESC, 1 LIMIT ?4";

impl Reader {
    /// Counts, by agent, the calls of which a target was dropped or shortened, the most first.
    pub fn target_losses(&self, filter: &CoverageFilter) -> Result<Vec<TargetLosses>, StoreError> {
        let (first_us, last_us) = filter.period_us();
        self.pool.ask_in_passing(|db| {
            let mut statement = db.prepare_cached(LOSSES)?;
            let notes = (TARGET_OMITTED, TARGETS_OMITTED, TARGET_REDACTED);
            let values =
                params![filter.server, first_us, last_us, LOSSES_MAX, notes.0, notes.1, notes.2];
            let rows = statement.query_map(values, |row| {
                let count = |at| row.get::<_, Option<u64>>(at).map(Option::unwrap_or_default);
                Ok(TargetLosses { agent: row.get(0)?, dropped: count(1)?, shortened: count(2)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Counts calls by server, tool and rule. A call that two records show counts once.
    pub fn target_coverage(
        &self,
        filter: &CoverageFilter,
    ) -> Result<Vec<TargetCoverage>, StoreError> {
        let (first_us, last_us) = filter.period_us();
        self.pool.ask_in_passing(|db| {
            let mut statement = db.prepare_cached(COVERAGE)?;
            let rows = statement.query_map(params![filter.server, first_us, last_us], |row| {
                Ok(TargetCoverage {
                    server: row.get(0)?,
                    tool: row.get(1)?,
                    basis: row.get(2)?,
                    has_target: row.get(3)?,
                    calls: row.get(4)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}
