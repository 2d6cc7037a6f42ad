//! The journal of an older program, which kept it in a table of the ledger.

use std::sync::Arc;

use rusqlite::{Connection, Row};

use crate::error::StoreError;
use crate::record::{CallEnd, CallStart};
use crate::write::row::{JournalRow, ReceiptPromise};

/// Returns the rows of a chain, in order.
pub(crate) fn read(db: &Connection, chain: i64) -> Result<Vec<JournalRow>, StoreError> {
    let mut statement = db.prepare(
        "SELECT entry, started, ended, arguments, response, hash, issued_at, sequence FROM journal
         WHERE chain = ?1 ORDER BY entry",
    )?;
    let mut rows = Vec::new();
    for row in statement.query_map([chain], parse)? {
        match row? {
            Ok(row) => rows.push(row),
            Err(error) => tracing::error!("a journal entry of an older program is lost: {error}"),
        }
    }
    Ok(rows)
}

/// Deletes the rows of a chain, all of which have been filed.
pub(crate) fn clear(db: &Connection, chain: i64) -> Result<(), StoreError> {
    db.execute("DELETE FROM journal WHERE chain = ?1", [chain])?;
    Ok(())
}

fn parse(row: &Row<'_>) -> rusqlite::Result<Result<JournalRow, StoreError>> {
    let entry = row.get(0)?;
    let started: Option<String> = row.get(1)?;
    let ended: Option<String> = row.get(2)?;
    let (arguments, response) = (row.get(3)?, row.get(4)?);
    let hash: Option<String> = row.get(5)?;
    let (issued_at, sequence) = (row.get(6)?, row.get(7)?);
    let parsed = move || {
        let unreadable = |error| {
            StoreError::Corrupt(format!("journal entry {entry}: {}", domain::json::explain(&error)))
        };
        // Parsed from bytes, as the lines of the journal are: parsing a string would need a second
        // copy of the parser.
        let started = started.map(|text| serde_json::from_slice::<CallStart>(text.as_bytes()));
        let mut started = started.transpose().map_err(unreadable)?;
        if let Some(started) = &mut started {
            started.arguments.kept = arguments;
        }
        let ended = ended.map(|text| serde_json::from_slice::<CallEnd>(text.as_bytes()));
        let mut ended = ended.transpose().map_err(unreadable)?;
        if let Some(ended) = &mut ended {
            ended.response.kept = response;
        }
        let (call, ended) = (started.map(Arc::new), ended.map(Arc::new));
        let promise = hash.map(|hash| ReceiptPromise { sequence, hash, issued_at });
        Ok(JournalRow { entry, call, start: None, ended, link: None, promise })
    };
    Ok(parsed())
}
