//! Finds the id that a part of it means: tables and the page show the ends of ids.

use rusqlite::Connection;

use super::filter::after;
use super::reader::Reader;
use crate::error::StoreError;

/// The shortest part of an id that is looked up; a shorter one matches too many.
pub const ID_PART_MIN: usize = 4;

/// The ids that are returned where several match.
const FOUND_MAX: usize = 5;

/// The ids of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    Record,
    Receipt,
    Run,
    Session,
}

impl IdKind {
    /// Returns the word for several of them.
    pub fn plural(self) -> &'static str {
        match self {
            IdKind::Record => "records",
            IdKind::Receipt => "receipts",
            IdKind::Run => "runs",
            IdKind::Session => "sessions",
        }
    }

    /// Returns the column, which has an index, and its table.
    fn column(self) -> (&'static str, &'static str) {
        match self {
            IdKind::Record => ("id", "activity"),
            IdKind::Receipt => ("id", "receipts"),
            IdKind::Run => ("id", "runs"),
            IdKind::Session => ("session_id", "activity"),
        }
    }

    /// Returns the beginning that all ids of ours have.
    fn beginning(self) -> &'static str {
        match self {
            IdKind::Receipt => "urn:receipt:",
            IdKind::Record | IdKind::Run | IdKind::Session => "",
        }
    }
}

impl Reader {
    /// Returns the ids that a text means: the id that it is, or else those that begin or end with it,
    /// of many only some. The ends are found by reading the index of all ids.
    pub fn ids(&self, kind: IdKind, text: &str) -> Result<Vec<String>, StoreError> {
        self.pool.ask_at_once(|db| {
            let (beginning, (column, table)) = (kind.beginning(), kind.column());
            let whole = if text.starts_with(beginning) {
                text.to_owned()
            } else {
                format!("{beginning}{text}")
            };
            let select = |which: &str| {
                format!("SELECT DISTINCT {column} FROM {table} WHERE {which} ORDER BY 1 LIMIT ?")
            };
            for is in [&*whole, text] {
                let known = ids(db, &select(&format!("{column} = ?")), (is, 1))?;
                if !known.is_empty() {
                    return Ok(known);
                }
            }
            if text.chars().count() < ID_PART_MIN {
                return Ok(Vec::new());
            }
            let mut found = match after(&whole) {
                Some(end) => {
                    let sql = select(&format!("{column} >= ? AND {column} < ?"));
                    ids(db, &sql, (&*whole, end, FOUND_MAX))?
                }
                None => Vec::new(),
            };
            let sql =
                select(&format!("{column} IS NOT NULL AND substr({column}, -length(?1)) = ?1"));
            found.extend(ids(db, &sql, (text, FOUND_MAX))?);
            found.sort();
            found.dedup();
            found.truncate(FOUND_MAX);
            Ok(found)
        })
    }
}

fn ids(
    db: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<String>, StoreError> {
    let mut statement = db.prepare_cached(sql)?;
    let ids = statement.query_map(values, |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}
