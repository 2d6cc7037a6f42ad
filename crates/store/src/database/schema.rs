//! The tables, and the steps from the layout of one version to that of the next.
//!
//! They may change through a new step in `STEPS`; a step never changes once it is released. The
//! published table of receipts is that of an export (`read::export`).

use rusqlite::Connection;

use crate::error::StoreError;

/// The steps, one per version of the file; the version is SQLite's `user_version`.
const STEPS: &[&str] = &[FIRST];

/// SQLite's `application_id` of our files, "CSGN": it tells them from other files with receipts.
const APPLICATION: i32 = 0x4353_474e;

/// Creates everything. The order of columns matters where texts are long: SQLite reads a row from
/// its start, so a query that needs no long text must not have to pass one.
const FIRST: &str = include_str!("schema/first.sql");

/// Brings the file to the newest version. The caller holds the maintenance lock.
pub(crate) fn migrate(db: &mut Connection) -> Result<(), StoreError> {
    migrate_by(db, STEPS)
}

/// Takes the steps that the file lacks, each with its number in one transaction.
fn migrate_by(db: &mut Connection, steps: &[&str]) -> Result<(), StoreError> {
    let found = version(db)?.unwrap_or_default();
    if found > steps.len() {
        return Err(StoreError::Newer { found, newest: steps.len() });
    }
    for (done, step) in steps.iter().enumerate().skip(found) {
        let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", done + 1)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Refuses a ledger of a newer version, and one whose layout is not known. Another program's file of
/// receipts has neither.
pub(crate) fn check_format(db: &Connection) -> Result<(), StoreError> {
    if !is_ledger(db)? {
        return Ok(());
    }
    match version(db)? {
        Some(found) if found > STEPS.len() => Err(StoreError::Newer { found, newest: STEPS.len() }),
        Some(_) | None => Ok(()),
    }
}

/// Reports whether the file has all that this program reads and writes.
pub(crate) fn is_current(db: &Connection) -> Result<bool, StoreError> {
    Ok(version(db)? == Some(STEPS.len()))
}

/// Returns the tables that a ledger of the newest version lacks, in words.
pub(crate) fn lacking(db: &Connection) -> Result<Vec<String>, StoreError> {
    let names = |db: &Connection| -> Result<Vec<String>, StoreError> {
        let mut tables = db.prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table'")?;
        let names = tables.query_map([], |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    };
    let mut whole = Connection::open_in_memory()?;
    migrate(&mut whole)?;
    let (wanted, known) = (names(&whole)?, names(db)?);
    let lacking = wanted.into_iter().filter(|name| !known.contains(name));
    Ok(lacking.map(|name| format!("the table '{name}' is missing")).collect())
}

/// Returns the version of a ledger; none for a new file.
fn version(db: &Connection) -> Result<Option<usize>, StoreError> {
    let application: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application == APPLICATION {
        return Ok(Some(db.pragma_query_value(None, "user_version", |row| row.get(0))?));
    }
    let is_new = !db.prepare("SELECT 1 FROM main.sqlite_schema")?.exists([])?;
    if is_new { Ok(None) } else { Err(StoreError::UnknownLayout) }
}

/// Reports whether the file is a ledger, and not just one with receipts.
pub(crate) fn is_ledger(db: &Connection) -> Result<bool, StoreError> {
    Ok(has_table(db, "chains")? && has_table(db, "activity")?)
}

/// Reports whether the file has a table of this name.
pub(crate) fn has_table(db: &Connection, name: &str) -> Result<bool, StoreError> {
    let mut statement =
        db.prepare_cached("SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?1")?;
    Ok(statement.exists([name])?)
}

/// Reports whether a table has any row.
pub(crate) fn has_rows(db: &Connection, table: &str) -> Result<bool, StoreError> {
    Ok(db.prepare(&format!("SELECT 1 FROM {table} LIMIT 1"))?.exists([])?)
}

#[cfg(test)]
mod tests;
