//! Receipts and the chains that they form. Only `receipts` is required: another program's file with
//! the same table can be read too.

use std::path::Path;

use jiff::Timestamp;
use receipt::PublicKey;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::Value;

use super::cursor::{self, List};
use super::page::Page;
use super::reader::Reader;
use super::search::{Bounds, Conditions, Effort, Pace, Search, Total};
use crate::database::receipts::member;
use crate::database::{schema, timestamp};
use crate::error::StoreError;
use crate::keys;

/// A signed receipt, with the values that its columns repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReceipt {
    pub id: String,
    pub chain_id: String,
    pub sequence: u64,
    pub action_type: String,
    pub tool_name: String,
    pub risk_level: String,
    pub status: String,
    /// The time of the action, as the receipt writes it.
    pub timestamp: String,
    pub hash: String,
    pub previous_hash: Option<String>,
    /// The receipt itself, exactly as it was signed.
    pub text: String,
}

#[derive(Clone, Debug, Default)]
pub struct ReceiptFilter {
    pub chain_id: Option<String>,
    pub action_type: Option<String>,
    pub status: Option<String>,
    pub server: Option<String>,
    /// An agent's name, the part before its `#` (all its sessions), or the name of a token.
    pub agent: Option<String>,
    pub target_system: Option<String>,
    pub target_resource: Option<String>,
    /// The start time, inclusive.
    pub start: Option<Timestamp>,
    /// The end time, exclusive.
    pub end: Option<Timestamp>,
}

/// One page, newest first.
#[derive(Clone, Debug)]
pub struct Receipts {
    pub receipts: Vec<StoredReceipt>,
    /// As for activity, a page that is not full may have a next one.
    pub next_cursor: Option<String>,
    pub total: Total,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredChain {
    pub id: String,
    /// Unknown if another program wrote the chain.
    pub opening: Option<ChainOpening>,
    /// The number of receipts present.
    pub length: u64,
    pub last_hash: Option<String>,
    pub first_timestamp: Option<String>,
    pub last_timestamp: Option<String>,
}

/// The opening of a chain, and its present status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainOpening {
    /// `open`, `complete`, `interrupted`, `expired`, or `damaged` if its end is missing.
    pub status: String,
    pub opened_at: String,
    pub pid: u32,
    /// The fingerprint of the key that signs it; after a rotation, the last one.
    pub key: String,
    /// The newest chain at that time.
    pub preceding: Option<String>,
}

impl Reader {
    pub fn receipts(&self, filter: &ReceiptFilter, page: &Page) -> Result<Receipts, StoreError> {
        let list = filter.list();
        let below = match &page.cursor {
            Some(text) => Some(cursor::read(list, text)?),
            None => None,
        };
        self.pool.ask_at_once(|db| {
            let search = filter.search(db)?;
            let found = search.below(db, below, page.rows())?;
            let mut receipts = Vec::with_capacity(found.positions.len());
            for position in &found.positions {
                receipts.extend(filter.at(db, *position)?);
            }
            Ok(Receipts {
                receipts,
                next_cursor: found.more_below.map(|position| cursor::write(list, position)),
                total: search.count(db)?,
            })
        })
    }

    pub fn receipt(&self, id: &str) -> Result<Option<StoredReceipt>, StoreError> {
        self.pool.ask(|db| {
            let mut statement = db.prepare_cached(&select("id = ?1"))?;
            Ok(statement.query_row([id], read).optional()?)
        })
    }

    /// Returns every chain, newest first.
    pub fn chains(&self) -> Result<Vec<StoredChain>, StoreError> {
        self.pool.ask_at_once(|db| {
            let mut ids = opened(db)?;
            let known: std::collections::HashSet<String> = ids.iter().cloned().collect();
            ids.extend(received(db)?.into_iter().filter(|id| !known.contains(id)));
            ids.into_iter().map(|id| chain(db, id)).collect()
        })
    }

    /// Returns a chain; `None` if neither an opening nor a receipt exists.
    pub fn chain(&self, id: &str) -> Result<Option<StoredChain>, StoreError> {
        let chain = self.pool.ask_at_once(|db| chain(db, id.to_owned()))?;
        Ok((chain.opening.is_some() || chain.length > 0).then_some(chain))
    }

    /// Returns the newest receipt with a checkpoint, as it was signed.
    pub fn newest_checkpoint(&self) -> Result<Option<String>, StoreError> {
        self.pool.ask_at_once(|db| {
            if !schema::has_table(db, "checkpoints")? {
                return Ok(None);
            }
            let sql =
                "SELECT receipt_json FROM checkpoints JOIN receipts USING (chain_id, sequence)
                       ORDER BY number DESC LIMIT 1";
            Ok(db.query_row(sql, [], |row| row.get(0)).optional()?)
        })
    }

    /// Returns every public key in a folder of keys, the one that signs this ledger first.
    pub fn public_keys(&self, folder: &Path) -> Result<Vec<PublicKey>, StoreError> {
        self.pool.ask(|db| keys::public(folder, db))
    }
}

impl ReceiptFilter {
    /// Returns the list of a cursor. Within a chain a receipt's position is its sequence, which is
    /// indexed.
    fn list(&self) -> List {
        if self.chain_id.is_some() { List::Chain } else { List::Receipts }
    }

    fn search(&self, db: &Connection) -> Result<Search, StoreError> {
        let (position, ends) = match &self.chain_id {
            Some(_) => (
                "sequence",
                "SELECT MIN(sequence), MAX(sequence) FROM receipts WHERE chain_id = ?1",
            ),
            None => (
                "receipt_number",
                "SELECT MIN(receipt_number), MAX(receipt_number) FROM receipts WHERE ?1 IS NULL",
            ),
        };
        let mut conditions = Conditions::default();
        for (path, comparison, value) in [
            ("action.type", "=", self.action_type.clone()),
            ("outcome.status", "=", self.status.clone()),
            ("action.timestamp", ">=", self.start.map(timestamp::text)),
            ("action.timestamp", "<", self.end.map(timestamp::text)),
        ] {
            let member = member(&format!("$.credentialSubject.{path}"));
            conditions.add_if(&format!("{member} {comparison} ?"), value);
        }
        self.add_signed(&mut conditions);
        let pace = if conditions.is_empty() {
            Pace::AtOnce
        } else {
            let bounds =
                db.prepare_cached(ends)?.query_row([&self.chain_id], |row| Bounds::read(row, 0))?;
            Pace::InSteps(bounds.unwrap_or(Bounds { first: 0, last: -1 }))
        };
        conditions.add_if("chain_id = ?", self.chain_id.clone());
        let from = "receipts".to_owned();
        Ok(Search { from, position, conditions, pace, known_total: None, effort: Effort::USUAL })
    }

    /// Adds the conditions on what only the signed text says. Records may say it too, but they
    /// expire, and another program's file has none.
    fn add_signed(&self, conditions: &mut Conditions) {
        conditions
            .add_if(&format!("{} = ?", member("$.issuer.runtime.server")), self.server.clone());
        self.add_target(conditions);
        if let Some(agent) = &self.agent {
            let name = member("$.issuer.runtime.agent_id");
            // Sessions are `name#session`, and `$` is the character after `#`.
            let principal = member("$.credentialSubject.principal.id");
            let sql = format!("({principal} = ? OR {name} = ? OR ({name} >= ? AND {name} < ?))");
            let values =
                [format!("token:{agent}"), agent.clone(), format!("{agent}#"), format!("{agent}$")];
            conditions.add(&sql, values.map(rusqlite::types::Value::from));
        }
    }

    /// Adds the condition on targets: the main one, or one of the others.
    fn add_target(&self, conditions: &mut Conditions) {
        let given: Vec<(&str, &String)> =
            [("system", &self.target_system), ("resource", &self.target_resource)]
                .into_iter()
                .filter_map(|(name, value)| Some((name, value.as_ref()?)))
                .collect();
        if given.is_empty() {
            return;
        }
        let is = |json: &str, path: &str| {
            let each =
                given.iter().map(|(name, _)| format!("json_extract({json}, '{path}.{name}') = ?"));
            each.collect::<Vec<_>>().join(" AND ")
        };
        let main = is("receipt_json", "$.credentialSubject.action.target");
        let other = is("more.value", "$");
        let sql = format!(
            "CASE WHEN json_valid(receipt_json) THEN ({main}) OR EXISTS (SELECT 1
               FROM json_each(receipt_json, '$.issuer.runtime.targets') AS more WHERE {other}) END"
        );
        let values = given.iter().map(|(_, value)| (*value).clone().into());
        conditions.add(&sql, values.clone().chain(values));
    }

    fn at(&self, db: &Connection, position: i64) -> Result<Option<StoredReceipt>, StoreError> {
        let found = match &self.chain_id {
            Some(chain_id) => db
                .prepare_cached(&select("chain_id = ?1 AND sequence = ?2"))?
                .query_row((chain_id, position), read)
                .optional()?,
            None => db
                .prepare_cached(&select("receipt_number = ?1"))?
                .query_row([position], read)
                .optional()?,
        };
        Ok(found)
    }
}

/// Returns the readable part of a text. What is not UTF-8 must not pass for a receipt that differs
/// from it, so it is marked.
pub(super) fn text_of(value: ValueRef<'_>) -> rusqlite::Result<String> {
    let bytes = match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => {
            return Ok(value.as_str()?.to_owned());
        }
    };
    Ok(match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("(not UTF-8) {}", String::from_utf8_lossy(bytes)),
    })
}

/// A signed receipt and its place in the chain.
pub(super) struct ReceiptText {
    pub(super) sequence: i64,
    pub(super) text: String,
}

/// Returns the texts of a chain after a sequence.
pub(super) fn texts(
    db: &Connection,
    chain_id: &str,
    after: i64,
    limit: usize,
) -> Result<Vec<ReceiptText>, StoreError> {
    let mut statement = db.prepare_cached(
        "SELECT sequence, receipt_json FROM receipts WHERE chain_id = ?1 AND sequence > ?2
         ORDER BY sequence LIMIT ?3",
    )?;
    let rows = statement
        .query_map((chain_id, after, i64::try_from(limit).unwrap_or(i64::MAX)), |row| {
            Ok(ReceiptText { sequence: row.get(0)?, text: text_of(row.get_ref(1)?)? })
        })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the receipts of a chain after a sequence.
pub(super) fn stored_after(
    db: &Connection,
    (chain_id, after): (&str, i64),
    limit: usize,
) -> Result<Vec<StoredReceipt>, StoreError> {
    let which = "chain_id = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3";
    let mut statement = db.prepare_cached(&select(which))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(statement.query_map((chain_id, after, limit), read)?.collect::<Result<_, _>>()?)
}

fn select(which: &str) -> String {
    format!(
        "SELECT id, chain_id, sequence, tool_name, receipt_hash, receipt_json FROM receipts
         WHERE {which}"
    )
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredReceipt> {
    let text = text_of(row.get_ref(5)?)?;
    let members: Value = serde_json::from_str(&text).unwrap_or_default();
    let word = |path: &str| members.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let of_subject = |path| word(&format!("/credentialSubject/{path}")).unwrap_or_default();
    let tool: Option<String> = row.get(3)?;
    Ok(StoredReceipt {
        id: row.get(0)?,
        chain_id: row.get(1)?,
        sequence: row.get(2)?,
        action_type: of_subject("action/type"),
        tool_name: tool.or_else(|| word("/issuer/runtime/tool")).unwrap_or_default(),
        risk_level: of_subject("action/risk_level"),
        status: of_subject("outcome/status"),
        timestamp: of_subject("action/timestamp"),
        hash: row.get(4)?,
        previous_hash: word("/credentialSubject/chain/previous_receipt_hash"),
        text,
    })
}

/// Returns the chains that our processes opened, newest first.
fn opened(db: &Connection) -> Result<Vec<String>, StoreError> {
    if !schema::has_table(db, "chains")? {
        return Ok(Vec::new());
    }
    let mut statement = db.prepare_cached("SELECT chain_id FROM chains ORDER BY chain DESC")?;
    Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// Returns the chains that have receipts, of any program, with one seek in the index for each.
fn received(db: &Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = db.prepare_cached(
        "WITH RECURSIVE known (id) AS (
           SELECT MAX(chain_id) FROM receipts
           UNION ALL
           SELECT (SELECT MAX(chain_id) FROM receipts WHERE chain_id < known.id) FROM known
           WHERE known.id IS NOT NULL
         ) SELECT id FROM known WHERE id IS NOT NULL",
    )?;
    Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

fn chain(db: &Connection, id: String) -> Result<StoredChain, StoreError> {
    struct EndReceipt {
        hash: String,
        timestamp: Option<String>,
    }
    let end = |order: &str| -> Result<Option<EndReceipt>, StoreError> {
        let sql = format!(
            "SELECT receipt_hash, {} FROM receipts WHERE chain_id = ?1
             ORDER BY sequence {order} LIMIT 1",
            member("$.credentialSubject.action.timestamp")
        );
        let mut statement = db.prepare_cached(&sql)?;
        let read = |row: &Row<'_>| Ok(EndReceipt { hash: row.get(0)?, timestamp: row.get(1)? });
        Ok(statement.query_row([&id], read).optional()?)
    };
    let (first, last) = (end("ASC")?, end("DESC")?);
    let length = db
        .prepare_cached("SELECT COUNT(*) FROM receipts WHERE chain_id = ?1")?
        .query_row([&id], |row| row.get(0))?;
    let (last_hash, last_timestamp) = last.map(|last| (last.hash, last.timestamp)).unzip();
    Ok(StoredChain {
        opening: opening(db, &id)?,
        length,
        last_hash,
        first_timestamp: first.and_then(|first| first.timestamp),
        last_timestamp: last_timestamp.flatten(),
        id,
    })
}

fn opening(db: &Connection, id: &str) -> Result<Option<ChainOpening>, StoreError> {
    if !schema::has_table(db, "chains")? {
        return Ok(None);
    }
    let mut statement = db.prepare_cached(
        "SELECT status, opened_at, pid, key, preceding FROM chains WHERE chain_id = ?1",
    )?;
    let opening = statement.query_row([id], |row| {
        Ok(ChainOpening {
            status: row.get(0)?,
            opened_at: row.get(1)?,
            pid: row.get(2)?,
            key: row.get(3)?,
            preceding: row.get(4)?,
        })
    });
    Ok(opening.optional()?)
}
