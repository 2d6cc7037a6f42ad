//! Fills a new database with what the home still holds: receipts from copies of chains, and the rows
//! of a damaged database that can be read.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use receipt::content::Termination;
use receipt::verify::SignedReceipt;
use receipt::{PublicKey, packed};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, Row, params};
use serde_json::Value;
use touch::targets::Access;

use super::salvage;
use crate::database::{WRITERS, receipts, transaction};
use crate::error::StoreError;
use crate::evidence::UNFINISHED_FILE;
use crate::keys;
use crate::read::copies::COPIES;
use crate::read::signed_touches;
use crate::touches::who;
use crate::upkeep::expiry::EXPORTS;
use crate::write::chain::filed_end_of;
use crate::write::link::own_type;
use crate::write::{heads, journal};

/// The tables of a database, in the order in which they refer to each other. Touches are made again
/// from the receipts.
const TABLES: [&str; 20] = [
    "settings",
    "decisions",
    "servers",
    "items",
    "switches",
    "tokens",
    "trusted_files",
    "chains",
    "agents",
    "targets",
    "activity",
    "payloads",
    "meetings",
    "signed_receipts",
    "checkpoints",
    "runs",
    "run_steps",
    "run_sources",
    "run_outcomes",
    "run_texts",
];

/// Numbers on damaged pages after which the rest of a table is given up, those up to which every one is
/// tried, and the distance of those that are tried after them.
const MISSED_MAX: i64 = 100_000;
const MISSED_NEAR: i64 = 512;
const MISSED_STRIDE: i64 = 64;

/// Copies the rows of a damaged database that can be read, and adds the receipts on its other pages;
/// returns what was recovered, in words.
pub(super) fn from_damaged(
    db: &Connection,
    home: &Path,
    (file, name): (&Path, &str),
) -> Result<Vec<String>, StoreError> {
    let mut words = Vec::new();
    if let Some(damaged) = salvage::open(file, &home.join(UNFINISHED_FILE))? {
        for table in TABLES {
            // A record whose agent or target cannot be read is made as it was signed later.
            db.pragma_update(None, "foreign_keys", table != "activity")?;
            let copied = transaction::whole(db, |db| copy_table(db, &damaged.db, table))?;
            if copied > 0 {
                words.push(format!("recovered {copied} rows of '{table}' from '{name}'"));
            }
        }
        damaged.close();
    }
    words.extend(from_pages(db, home, (file, name))?);
    heads::recount(db)?;
    let touches = make_touches(db)?;
    if touches > 0 {
        words.push(format!("made {touches} touches of resources again from the receipts"));
    }
    if words.is_empty() {
        words.push(format!("nothing of the damaged database '{name}' can be read"));
    }
    Ok(words)
}

/// Adds the receipts on the pages of a damaged database that no table has; returns what was added, in
/// words.
pub(super) fn from_pages(
    db: &Connection,
    home: &Path,
    (file, name): (&Path, &str),
) -> Result<Option<String>, StoreError> {
    let keys = keys::all_public(&home.join(keys::FOLDER));
    let expired = heads::expired(db, &keys)?;
    // Chains have numbers in the order of their ids, which are made of the time.
    db.execute_batch("CREATE TEMP TABLE found (chain_id TEXT, sequence INTEGER, text TEXT)")?;
    salvage::receipts(file, |text| {
        let Ok(signed) = SignedReceipt::parse(&text) else { return Ok(()) };
        let values = params![signed.link.chain_id, signed.link.sequence, text];
        db.prepare_cached("INSERT INTO found VALUES (?1, ?2, ?3)")?.execute(values)?;
        Ok(())
    })?;
    let added = transaction::whole(db, |db| {
        let mut statement = db.prepare("SELECT text FROM found ORDER BY chain_id, sequence")?;
        let texts = statement.query_map([], |row| row.get::<_, String>(0))?;
        texts.map(|text| add_text(db, &text?, (&keys, &expired))).sum::<Result<usize, StoreError>>()
    })?;
    db.execute_batch("DROP TABLE temp.found")?;
    let words = || format!("found {added} more receipts on the pages of '{name}'");
    Ok((added > 0).then(words))
}

/// Adds the touches that records lack: from their receipts, and of a call without one from its main
/// target. Returns their number.
pub(super) fn make_touches(db: &Connection) -> Result<usize, StoreError> {
    transaction::whole(db, |db| {
        let mut statement = db.prepare(
            "SELECT activity.number, activity.agent, started_us, system, resource, receipt_json
             FROM activity LEFT JOIN targets USING (target)
               LEFT JOIN receipts ON receipts.id = activity.receipt_id",
        )?;
        let mut rows = statement.query([])?;
        let mut made = 0;
        while let Some(row) = rows.next()? {
            let receipt = row.get_ref(5)?.as_bytes_or_null().ok().flatten().unwrap_or_default();
            let receipt: Option<Value> = serde_json::from_slice(receipt).ok();
            let touched = match receipt {
                Some(receipt) => signed_touches(&receipt),
                None => {
                    let name = |at| row.get::<_, Option<String>>(at);
                    let main = name(3)?.zip(name(4)?);
                    main.map(|(system, path)| (system, path, Access::Unknown)).into_iter().collect()
                }
            };
            for (system, resource, access) in touched {
                let target = target_number(db, &system, &resource)?;
                let values = params![
                    target,
                    row.get::<_, i64>(2)?,
                    who(row.get(1)?, access),
                    row.get::<_, i64>(0)?
                ];
                made += db
                    .prepare_cached("INSERT OR IGNORE INTO touches VALUES (?1, ?2, ?3, ?4)")?
                    .execute(values)?;
            }
        }
        Ok(made)
    })
}

/// Reports whether a record names a target and has no touch of it.
pub(super) fn lacks_touches(db: &Connection) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM activity WHERE target IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM touches WHERE touches.number = activity.number) LIMIT 1";
    Ok(db.prepare(sql)?.exists([])?)
}

pub(super) fn target_number(
    db: &Connection,
    system: &str,
    resource: &str,
) -> Result<i64, StoreError> {
    let words = "INSERT OR IGNORE INTO targets (system, resource) VALUES (?1, ?2)";
    db.prepare_cached(words)?.execute([system, resource])?;
    let words = "SELECT target FROM targets WHERE system = ?1 AND resource = ?2";
    Ok(db.prepare_cached(words)?.query_row([system, resource], |row| row.get(0))?)
}

/// Copies the rows of a table in their order, and after a fault each one by its number. Returns how
/// many rows the table has got.
fn copy_table(db: &Connection, damaged: &Connection, table: &str) -> Result<i64, StoreError> {
    let count = format!("SELECT count(*) FROM {table}");
    let rows = || db.query_row(&count, [], |row| row.get::<_, i64>(0));
    let before = rows()?;
    if copy_rows(db, damaged, (table, None)).is_err() {
        copy_by_number(db, damaged, table);
    }
    Ok(rows()? - before)
}

/// Copies the rows of a table one by one. Numbers without a row are skipped where the table has a next
/// one. Those on damaged pages are tried, at first all of them and then some, until none may follow.
fn copy_by_number(db: &Connection, damaged: &Connection, table: &str) {
    let number_after = |number: i64| -> rusqlite::Result<Option<i64>> {
        let words = format!("SELECT MIN(rowid) FROM {table} WHERE rowid > ?1");
        damaged.prepare_cached(&words)?.query_row([number], |row| row.get(0))
    };
    // Some tables have no numbers, and are small.
    if damaged.prepare(&format!("SELECT rowid FROM {table}")).is_err() {
        return;
    }
    let (mut next, mut missed) = (1, 0);
    while missed < MISSED_MAX {
        let stride = if missed < MISSED_NEAR { 1 } else { MISSED_STRIDE };
        match copy_rows(db, damaged, (table, Some(next))) {
            // The numbers that were left out may be there too.
            Ok(_) if stride > 1 => next -= stride - 1,
            Ok(true) => next += 1,
            Ok(false) => match number_after(next) {
                Ok(Some(found)) => next = found,
                Ok(None) => return,
                Err(_) => {
                    (next, missed) = (next + 1, missed + 1);
                    continue;
                }
            },
            Err(_) => {
                (next, missed) = (next + stride, missed + stride);
                continue;
            }
        }
        missed = 0;
    }
}

/// Copies all rows of a table, or the one of a number. Reports whether there were any.
fn copy_rows(
    db: &Connection,
    damaged: &Connection,
    (table, number): (&str, Option<i64>),
) -> rusqlite::Result<bool> {
    let condition = number.map_or("", |_| "WHERE rowid = ?1");
    let mut statement = damaged.prepare_cached(&format!("SELECT * FROM {table} {condition}"))?;
    let columns = statement.column_count();
    let places = vec!["?"; columns].join(", ");
    // Named, since a file of another version may have others.
    let names = statement.column_names().collect::<Vec<_>>().join(", ");
    let insert = format!("INSERT OR REPLACE INTO {table} ({names}) VALUES ({places})");
    let mut rows = statement.query(rusqlite::params_from_iter(number))?;
    let mut is_any = false;
    while let Some(row) = rows.next()? {
        let values: Vec<SqlValue> =
            (0..columns).map(|column| row.get(column)).collect::<Result<_, _>>()?;
        if table == "signed_receipts" && !is_sound(row) {
            continue;
        }
        // A row that the new tables refuse is damaged too.
        let _ = db.prepare_cached(&insert)?.execute(rusqlite::params_from_iter(values));
        is_any = true;
    }
    Ok(is_any)
}

/// Reports whether a receipt has the hash that is beside it: of a damaged page, SQLite reads whatever is
/// there.
fn is_sound(row: &Row<'_>) -> bool {
    let text = row.get_ref("packed").map(receipts::text);
    let text = text.ok().and_then(|text| String::from_utf8(text.into_owned()).ok());
    let signed = text.and_then(|text| SignedReceipt::parse(&text).ok());
    let hash: Option<Vec<u8>> = row.get("hash").ok();
    signed.is_some_and(|signed| Some(&signed.hash.as_bytes()[..]) == hash.as_deref())
}

/// Adds the receipts of every copy of a chain that a key of this home signed, if their places are
/// free and the chain has not expired; returns what was added, in words.
pub(super) fn from_copies(db: &Connection, home: &Path) -> Result<Vec<String>, StoreError> {
    let keys = keys::all_public(&home.join(keys::FOLDER));
    let expired = heads::expired(db, &keys)?;
    let mut words = Vec::new();
    for folder in [COPIES, EXPORTS] {
        let files = fs::read_dir(home.join(folder)).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = files.map(|file| file.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
        paths.sort_unstable();
        for path in paths {
            let added = transaction::whole(db, |db| from_copy(db, &path, (&keys, &expired)))?;
            if added > 0 {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                words.push(format!("added {added} receipts from '{folder}/{name}'"));
            }
        }
    }
    if !words.is_empty() {
        heads::recount(db)?;
        mark_filed(db, home)?;
    }
    Ok(words)
}

fn from_copy(
    db: &Connection,
    path: &Path,
    (keys, expired): (&[PublicKey], &[String]),
) -> Result<usize, StoreError> {
    let cannot = |error: std::io::Error| StoreError::Read(format!("'{}': {error}", path.display()));
    let mut added = 0;
    for line in BufReader::new(fs::File::open(path).map_err(cannot)?).split(b'\n') {
        let line = line.map_err(cannot)?;
        let Ok(text) = str::from_utf8(&line) else { continue };
        added += add_text(db, text.trim(), (keys, expired))?;
    }
    Ok(added)
}

/// Adds a receipt with its chain, if one of these keys signed it, its place is free and the chain has
/// not expired; returns the number of receipts that were added.
fn add_text(
    db: &Connection,
    text: &str,
    (keys, expired): (&[PublicKey], &[String]),
) -> Result<usize, StoreError> {
    let Ok(signed) = SignedReceipt::parse(text) else { return Ok(0) };
    let Some(key) = keys.iter().find(|key| signed.verify(key).is_ok()) else { return Ok(0) };
    if expired.contains(&signed.link.chain_id) {
        return Ok(0);
    }
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let added = add_receipt(db, &signed, text, &value)?;
    if added > 0 {
        add_chain(db, &signed, &value, key)?;
    }
    Ok(added)
}

/// Adds the rows of chains that only have receipts; returns what was added, in words.
pub(super) fn lost_chains(db: &Connection, keys: &[PublicKey]) -> Result<Vec<String>, StoreError> {
    let mut statement = db.prepare(
        "SELECT DISTINCT chain_id FROM receipts
         WHERE chain_id NOT IN (SELECT chain_id FROM chains) ORDER BY chain_id",
    )?;
    let chains = statement.query_map([], |row| row.get(0))?;
    let chains: Vec<String> = chains.collect::<Result<_, _>>()?;
    let mut words = Vec::new();
    for chain in chains {
        let last = "SELECT receipt_json FROM receipts WHERE chain_id = ?1
            ORDER BY sequence DESC LIMIT 1";
        let text: String = db.query_row(last, [&chain], |row| row.get(0))?;
        let Ok((signed, value)) = SignedReceipt::read(&text) else { continue };
        let key = signed.key_among(keys).filter(|key| signed.verify(key).is_ok());
        if let Some(key) = key.filter(|_| signed.link.chain_id == chain) {
            add_chain(db, &signed, &value, key)?;
            words.push(format!("the table of chains lists again chain {chain}"));
        }
    }
    if !words.is_empty() {
        heads::recount(db)?;
    }
    Ok(words)
}

/// Adds the chain of a receipt; a terminal receipt ends it, and recovery ends any other.
fn add_chain(
    db: &Connection,
    signed: &SignedReceipt,
    value: &Value,
    key: &PublicKey,
) -> Result<(), StoreError> {
    let before = value.pointer("/issuer/runtime/preceding_chain");
    let text = |name: &str| before.and_then(|before| before[name].as_str());
    db.prepare_cached(
        "INSERT INTO chains (chain, chain_id, opened_at, pid, key, preceding, preceding_sequence,
           preceding_hash)
         VALUES ((SELECT chain FROM activity WHERE receipt_id = ?7
             AND chain NOT IN (SELECT chain FROM chains)), ?1, ?2, 0, ?3, ?4, ?5, ?6)
         ON CONFLICT (chain_id) DO UPDATE SET key = excluded.key",
    )?
    .execute(params![
        signed.link.chain_id,
        value["issuanceDate"].as_str().unwrap_or_default(),
        key.fingerprint().to_string(),
        text("chain_id"),
        before.and_then(|before| before["sequence"].as_u64()),
        text("hash"),
        signed.id,
    ])?;
    if let Some(termination) = signed.link.termination {
        let words = "UPDATE chains SET status = ?2 WHERE chain_id = ?1";
        db.execute(words, [&signed.link.chain_id, Termination::as_str(termination)])?;
    }
    Ok(())
}

fn add_receipt(
    db: &Connection,
    signed: &SignedReceipt,
    text: &str,
    value: &Value,
) -> Result<usize, StoreError> {
    let own = value["credentialSubject"]["action"]["type"].as_str().and_then(own_type);
    let added = db
        .prepare_cached(
            "INSERT OR IGNORE INTO signed_receipts (id, chain_id, sequence, own, hash, packed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            signed.id,
            signed.link.chain_id,
            signed.link.sequence,
            own,
            signed.hash.as_bytes(),
            packed::pack(text),
        ])?;
    Ok(added)
}

/// Marks entries of journals as filed whose receipts came from a copy.
fn mark_filed(db: &Connection, home: &Path) -> Result<(), StoreError> {
    let writers = home.join(WRITERS);
    for chain_id in journal::chains(&writers) {
        let Some(header) = journal::header(&writers, &chain_id) else { continue };
        let end = filed_end_of(db, &chain_id)?;
        if header.head.as_ref().is_some_and(|head| head.sequence <= end.sequence) {
            let words = "UPDATE chains SET filed = MAX(filed, ?2) WHERE chain_id = ?1";
            db.execute(words, params![chain_id, header.filed])?;
        }
    }
    Ok(())
}
