//! The row of a chain in the table of chains, compared with the receipts of the chain. Anyone who can
//! write the file can change a row, but receipts are signed: nothing is signed onto a chain because of
//! what its row alone says.

use std::path::Path;

use receipt::PublicKey;
use receipt::audit::ReadReceipt;
use receipt::checkpoint::Head;
use receipt::verify::SignedReceipt;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use crate::database::WRITERS;
use crate::error::StoreError;
use crate::write::chain::{end_of, filed, filed_end_of};
use crate::write::compose::CHAIN_OPENED;
use crate::write::row::JournalRow;
use crate::write::{heads, journal};

/// The columns of a row that repeat what receipts say.
pub(crate) struct ChainRow {
    status: String,
    key: String,
    opened_at: String,
    pid: i64,
    preceding: Option<NamedEnd>,
}

/// The end of a chain, as another one names it: its id, its length, and the hash of its last receipt.
type NamedEnd = (String, i64, String);

/// The first and the last receipt of a chain, where they are valid.
#[derive(Default)]
pub(crate) struct SignedEnds {
    pub(crate) first: Option<Value>,
    pub(crate) last: Option<Value>,
}

impl ChainRow {
    pub(crate) fn read(db: &Connection, chain_id: &str) -> Result<Option<ChainRow>, StoreError> {
        let words = "SELECT status, key, preceding, preceding_sequence, preceding_hash, opened_at,
                       pid FROM chains WHERE chain_id = ?1";
        let mut statement = db.prepare_cached(words)?;
        let read = statement.query_row([chain_id], |row| {
            let before: (Option<String>, Option<i64>, Option<String>) =
                (row.get(2)?, row.get(3)?, row.get(4)?);
            let preceding = match before {
                (None, None, None) => None,
                (id, length, hash) => {
                    Some((id.unwrap_or_default(), length.unwrap_or(0), hash.unwrap_or_default()))
                }
            };
            let (opened_at, pid) = (row.get(5)?, row.get(6)?);
            Ok(ChainRow { status: row.get(0)?, key: row.get(1)?, opened_at, pid, preceding })
        });
        Ok(read.optional()?)
    }

    /// Returns the names of the columns that differ from what is signed.
    pub(crate) fn differing(&self, signed: &SignedEnds) -> Vec<&'static str> {
        let mut found = Vec::new();
        if let Some(last) = &signed.last {
            let is_same = match ended(last) {
                Some(status) => self.status == status,
                // How recovery leaves a chain that it cannot continue.
                None => ["open", "unclosed"].contains(&self.status.as_str()),
            };
            // A gate has found that the end is missing, and says so elsewhere.
            if !is_same && self.status != "damaged" {
                found.push("status");
            }
            if next_key(last).is_some_and(|key| key != self.key) {
                found.push("key");
            }
        }
        if let Some(first) = &signed.first {
            let opened = opened(first);
            for (name, is_same) in [
                ("opened_at", opened["at"] == self.opened_at),
                ("pid", opened["pid"] == self.pid),
                ("preceding", preceding(first) == self.preceding),
            ] {
                if !is_same {
                    found.push(name);
                }
            }
        }
        found
    }

    /// Makes the columns that differ repeat what is signed.
    pub(crate) fn correct(
        db: &Connection,
        chain_id: &str,
        signed: &SignedEnds,
        differing: &[&str],
    ) -> Result<(), StoreError> {
        let set = |column: &str, value: &dyn rusqlite::ToSql| {
            let words = format!("UPDATE chains SET {column} = ?2 WHERE chain_id = ?1");
            db.execute(&words, params![chain_id, value]).map(drop)
        };
        for name in differing {
            match (*name, &signed.first, &signed.last) {
                ("status", _, Some(last)) => set("status", &ended(last).unwrap_or("open"))?,
                ("key", _, Some(last)) => set("key", &next_key(last))?,
                ("opened_at", Some(first), _) => set("opened_at", &opened(first)["at"].as_str())?,
                ("pid", Some(first), _) => set("pid", &opened(first)["pid"].as_i64())?,
                ("preceding", Some(first), _) => {
                    let (id, length, hash) = match preceding(first) {
                        Some((id, length, hash)) => (Some(id), Some(length), Some(hash)),
                        None => (None, None, None),
                    };
                    set("preceding", &id)?;
                    set("preceding_sequence", &length)?;
                    set("preceding_hash", &hash)?;
                }
                _ => {}
            }
        }
        // The next checkpoint names the chain again.
        set("named", &0)?;
        Ok(())
    }
}

impl ChainRow {
    /// Makes a row that says how its chain ended say so no more, if it has neither receipts nor a
    /// length. Reports whether it did.
    pub(crate) fn leave_open(db: &Connection, chain_id: &str) -> Result<bool, StoreError> {
        let words = "UPDATE chains SET status = 'unclosed'
            WHERE chain_id = ?1 AND status IN ('complete', 'interrupted') AND length = 0
              AND NOT EXISTS (SELECT 1 FROM receipts WHERE receipts.chain_id = chains.chain_id)";
        Ok(db.execute(words, [chain_id])? > 0)
    }
}

/// Says that the row of a chain is not what its receipts say.
pub(crate) fn row_words(differing: &[&str]) -> String {
    let found = differing.join(", ");
    format!("the table of chains differs from what is signed: {found}")
}

impl SignedEnds {
    /// Takes the next receipt of a chain that is read from its beginning.
    pub(crate) fn take(&mut self, read: ReadReceipt) {
        let is_first = read.sequence == 1;
        let members = read.is_valid.then_some(read.members);
        if is_first {
            self.first.clone_from(&members);
        }
        self.last = members;
    }

    /// Reads the ends of a chain. Fails, in words, if one of them is not as one of these keys signed it.
    pub(crate) fn read(
        db: &Connection,
        keys: &[PublicKey],
        chain_id: &str,
    ) -> Result<Result<SignedEnds, String>, StoreError> {
        let (first, last) = match (end(db, chain_id, "ASC")?, end(db, chain_id, "DESC")?) {
            (Some(first), Some(last)) => (first, last),
            (None, _) | (_, None) => return Ok(Ok(SignedEnds::default())),
        };
        let last = last.members(keys, chain_id);
        // What is left of a chain whose beginning is missing says nothing about it.
        let first =
            if first.sequence == 1 { first.members(keys, chain_id).map(Some) } else { Ok(None) };
        Ok(first.and_then(|first| Ok(SignedEnds { first, last: Some(last?) })))
    }
}

/// Returns the head of a chain, if one of these keys signed its last receipt.
pub(crate) fn signed_head(
    db: &Connection,
    keys: &[PublicKey],
    chain_id: &str,
) -> Result<Option<Head>, StoreError> {
    let Some(last) = end(db, chain_id, "DESC")? else { return Ok(None) };
    let (length, hash) = (last.sequence, last.hash.parse());
    let is_signed = last.members(keys, chain_id).is_ok();
    let chain_id = chain_id.to_owned();
    Ok(hash.ok().filter(|_| is_signed).map(|hash| Head { chain_id, length, hash }))
}

/// A receipt at the end of a chain, as it is stored.
struct StoredEnd {
    sequence: u64,
    hash: String,
    text: String,
}

fn end(db: &Connection, chain_id: &str, order: &str) -> Result<Option<StoredEnd>, StoreError> {
    let words = format!(
        "SELECT sequence, receipt_hash, CAST(receipt_json AS BLOB) FROM receipts
         WHERE chain_id = ?1 ORDER BY sequence {order} LIMIT 1"
    );
    let mut statement = db.prepare_cached(&words)?;
    let read = statement.query_row([chain_id], |row| {
        let text = String::from_utf8_lossy(row.get_ref(2)?.as_bytes()?).into_owned();
        Ok(StoredEnd { sequence: row.get(0)?, hash: row.get(1)?, text })
    });
    Ok(read.optional()?)
}

impl StoredEnd {
    /// Returns the members of the receipt, if it is as it was signed, and in its place.
    fn members(self, keys: &[PublicKey], chain_id: &str) -> Result<Value, String> {
        let StoredEnd { sequence, hash, text } = self;
        let wrong = |why: String| format!("receipt {sequence} is not as it was signed: {why}");
        let (signed, members) =
            SignedReceipt::read(&text).map_err(|error| wrong(error.to_string()))?;
        let key = signed.key_among(keys).ok_or_else(|| wrong("no key of this home".to_owned()))?;
        signed.verify(key).map_err(|error| wrong(error.to_string()))?;
        let is_in_place = signed.link.chain_id == chain_id && signed.link.sequence == sequence;
        if !is_in_place || signed.hash.to_string() != hash {
            return Err(wrong("its columns differ".to_owned()));
        }
        Ok(members)
    }
}

/// Returns how a receipt ends its chain, in the word of the table.
pub(crate) fn ended(receipt: &Value) -> Option<&str> {
    let chain = &receipt["credentialSubject"]["chain"];
    (chain["terminal"] == true).then(|| chain["status"].as_str().unwrap_or("complete"))
}

/// Returns the fingerprint of the key that signs after a receipt.
fn next_key(receipt: &Value) -> Option<String> {
    let rotated = &receipt["credentialSubject"]["keyRotation"]["new_key_fingerprint"];
    if let Some(fingerprint) = rotated.as_str() {
        return Some(fingerprint.to_owned());
    }
    let issuer = receipt["issuer"]["id"].as_str()?;
    PublicKey::from_did(issuer).ok().map(|key| key.fingerprint().to_string())
}

fn opened(first: &Value) -> &Value {
    &first["issuer"]["runtime"][CHAIN_OPENED]
}

pub(crate) fn preceding(first: &Value) -> Option<NamedEnd> {
    let named = first.pointer("/issuer/runtime/preceding_chain")?;
    let hash = named["hash"].as_str()?.to_owned();
    Some((named["chain_id"].as_str()?.to_owned(), named["sequence"].as_i64()?, hash))
}

/// Returns the reason for which nothing may be signed onto a chain, although its writer is gone: its
/// row, its receipts and what others say of it do not agree.
pub(crate) fn contradiction(
    db: &Connection,
    (home, keys): (&Path, &[PublicKey]),
    chain_id: &str,
) -> Result<Option<String>, StoreError> {
    let signed = match SignedEnds::read(db, keys, chain_id)? {
        Ok(signed) => signed,
        Err(words) => return Ok(Some(words)),
    };
    let Some(row) = ChainRow::read(db, chain_id)? else { return Ok(None) };
    let found = row.differing(&signed);
    if !found.is_empty() {
        return Ok(Some(row_words(&found)));
    }
    if let Some(words) = misfiled(db, &home.join(WRITERS), chain_id)? {
        return Ok(Some(words));
    }
    if row.status != "open" {
        return Ok(None);
    }
    let reached = end_of(db, &home.join(WRITERS), chain_id)?.sequence;
    let words = "SELECT chain_id, preceding_sequence FROM chains
                 WHERE preceding = ?1 AND preceding_sequence > ?2 LIMIT 1";
    let later: Option<(String, u64)> = db
        .query_row(words, params![chain_id, reached], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((later, length)) = later {
        return Ok(Some(format!(
            "the chain has {reached} receipts, but had {length} when chain {later} began"
        )));
    }
    heads::unnamed(db, keys, chain_id)
}

/// Returns a reason for which a chain does not expire: its last receipt was not issued before this
/// time, whatever the columns say.
pub(crate) fn younger(
    db: &Connection,
    keys: &[PublicKey],
    (chain_id, cutoff): (&str, &str),
) -> Result<Option<String>, StoreError> {
    let Ok(SignedEnds { last: Some(last), .. }) = SignedEnds::read(db, keys, chain_id)? else {
        return Ok(None);
    };
    let issued = last["issuanceDate"].as_str().unwrap_or_default();
    Ok((issued >= cutoff).then(|| format!("its last receipt is of {issued}")))
}

/// Returns a reason to doubt the number of the last entry that was filed: receipts that the journal
/// promises up to it are not there, or later ones are.
pub(crate) fn misfiled(
    db: &Connection,
    writers: &Path,
    chain_id: &str,
) -> Result<Option<String>, StoreError> {
    let Some(filed) = filed(db, chain_id)? else { return Ok(None) };
    let Some(scan) = journal::scan(writers, chain_id) else { return Ok(None) };
    let reached = filed_end_of(db, chain_id)?.sequence;
    let promised = |row: &JournalRow| Some((row.entry <= filed, row.promise.as_ref()?.sequence));
    let mut promised = scan.rows.iter().filter_map(promised);
    let wrong = promised.find(|(is_filed, sequence)| *is_filed != (*sequence <= reached));
    Ok(wrong.map(|(_, sequence)| {
        format!(
            "the table of chains says that its journal is filed up to entry {filed}, which does not \
             agree with receipt {sequence}"
        )
    }))
}
