//! Inserts many rows with one statement. SQLite then opens each index once for all of them, and
//! finds the place of a row beside the one before.

use rusqlite::{CachedStatement, Connection, ToSql};

use crate::error::StoreError;

/// The numbers of rows that one statement can insert, most first.
const COUNTS: [usize; 4] = [8, 4, 2, 1];

/// The statements that insert into a table, one for each number of rows.
pub(crate) struct Inserts {
    statements: [String; COUNTS.len()],
}

/// The values of rows, in the order of their columns.
pub(crate) struct Values<'s, 'db> {
    statement: &'s mut CachedStatement<'db>,
    last: usize,
}

impl Inserts {
    /// Returns the statements that begin with these words, such as `INSERT OR FAIL INTO`. Without a
    /// conflict clause SQLite would keep a journal of each page that a statement changes, to undo
    /// half of it; here it is the whole transaction that is undone.
    pub(crate) fn new(words: &str, table: &str, columns: &str) -> Inserts {
        let row = format!("({})", vec!["?"; columns.split(',').count()].join(", "));
        let statement = |count: usize| {
            format!("{words} {table} ({columns}) VALUES {}", vec![&*row; count].join(", "))
        };
        Inserts { statements: COUNTS.map(statement) }
    }

    /// Inserts a row for each of these; `add` adds its values.
    pub(crate) fn insert<T>(
        &self,
        db: &Connection,
        mut rows: &[T],
        add: impl Fn(&T, &mut Values<'_, '_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        for (count, statement) in COUNTS.iter().zip(&self.statements) {
            while rows.len() >= *count {
                let (some, rest) = rows.split_at(*count);
                let mut statement = db.prepare_cached(statement)?;
                let mut values = Values { statement: &mut statement, last: 0 };
                some.iter().try_for_each(|row| add(row, &mut values))?;
                statement.raw_execute()?;
                rows = rest;
            }
        }
        Ok(())
    }
}

impl Values<'_, '_> {
    pub(crate) fn add(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.last += 1;
        self.statement.raw_bind_parameter(self.last, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_inserted_once_and_in_order() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)").unwrap();
        let inserts = Inserts::new("INSERT OR FAIL INTO", "t", "a, b");
        let mut expected = Vec::new();
        for count in [0, 1, 3, 7, 8, 9, 15, 39] {
            let first = expected.len() as i64;
            let rows: Vec<i64> = (first..first + count).collect();
            inserts
                .insert(&db, &rows, |row, values| {
                    values.add(row)?;
                    values.add(row.to_string())
                })
                .unwrap();
            expected.extend(rows.iter().map(|row| (*row, row.to_string())));
        }
        let mut statement = db.prepare("SELECT a, b FROM t ORDER BY a").unwrap();
        let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(found.collect::<Result<Vec<(i64, String)>, _>>().unwrap(), expected);
        let again = inserts.insert(&db, &[99, 1], |row, values| {
            values.add(row)?;
            values.add("")
        });
        assert!(again.is_err(), "a row is there already");
    }
}
