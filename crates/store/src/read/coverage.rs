//! Counts the calls of each tool that had a target, and the rules that found it.

use jiff::Timestamp;
use rusqlite::params;

use super::reader::Reader;
use crate::database::schema;
use crate::error::StoreError;

/// The calls of one tool whose targets were found in one way, or not found for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetCoverage {
    pub server: String,
    pub tool: String,
    /// Absent in records of a program that did not say how it found a target.
    pub basis: Option<String>,
    pub has_target: bool,
    pub calls: u64,
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

macro_rules! coverage {
    ($basis:literal, $joined:literal) => {
        concat!(
            "SELECT server, tool, ",
            $basis,
            ", target IS NOT NULL, COUNT(*) FROM activity NOT INDEXED
             WHERE type IN ('tool_call', 'policy_decision') AND (?1 IS NULL OR server = ?1)
               AND started_us >= ?2 AND started_us < ?3 ",
            $joined,
            " GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 5 DESC, 3"
        )
    };
}

impl Reader {
    /// Counts calls by server, tool and rule. A call that two records show counts once.
    pub fn target_coverage(
        &self,
        filter: &CoverageFilter,
    ) -> Result<Vec<TargetCoverage>, StoreError> {
        let first_us = filter.start.map_or(i64::MIN, Timestamp::as_microsecond);
        let last_us = filter.end.map_or(i64::MAX, Timestamp::as_microsecond);
        self.pool.ask_in_passing(|db| {
            let sql = if schema::has_touches(db)? {
                coverage!("target_basis", "AND joined IS NULL")
            } else {
                coverage!("NULL", "")
            };
            let mut statement = db.prepare_cached(sql)?;
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
