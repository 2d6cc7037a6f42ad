//! The heads of all chains: what checkpoints name, and what shows that the end of a chain is
//! missing.

use std::collections::HashMap;
use std::path::Path;

use receipt::PublicKey;
use receipt::audit;
use receipt::checkpoint::{self, Checkpoint, Head};
use receipt::verify::SignedReceipt;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use crate::database::{receipts, transaction};
use crate::error::StoreError;
use crate::limits::HEADS_MAX;
use crate::state::signed_log;
use crate::write::chain::hash_at;
use crate::write::chain_row::signed_head;
use crate::write::checkpoint_file;
use crate::write::compose::{CHAIN_CLOSED, CHAIN_EXPIRED};
use crate::write::link::Link;

/// A chain as its row describes it.
struct KnownHead {
    head: Head,
    is_open: bool,
    is_named: bool,
}

/// The heads that were found signed, by chain: what was true of a chain once stays true.
#[derive(Default)]
pub(crate) struct SignedHeads(HashMap<String, Head>);

/// Returns the checkpoint of the present moment, within the transaction that files it. It names no
/// head that is not that of a receipt which one of these keys signed, and its digest covers none.
pub(crate) fn checkpoint(
    db: &Connection,
    keys: &[PublicKey],
    known: &mut SignedHeads,
) -> Result<Checkpoint, StoreError> {
    checkpoint_of(db, keys, |head| {
        if known.0.get(&head.chain_id) == Some(head) {
            return Ok(true);
        }
        let is_same = signed_head(db, keys, &head.chain_id)?.as_ref() == Some(head);
        if !is_same {
            tracing::error!(
                chain = %head.chain_id,
                "this chain is not as the table of chains says; no checkpoint names it"
            );
        } else {
            known.0.insert(head.chain_id.clone(), head.clone());
        }
        Ok(is_same)
    })
}

fn checkpoint_of(
    db: &Connection,
    keys: &[PublicKey],
    mut is_signed: impl FnMut(&Head) -> Result<bool, StoreError>,
) -> Result<Checkpoint, StoreError> {
    let mut heads = Vec::new();
    let mut all = Vec::new();
    let mut omitted = 0;
    for KnownHead { head, is_open, is_named } in known(db)? {
        let is_new = is_open || !is_named;
        if !is_signed(&head)? {
            continue;
        }
        if is_new && heads.len() == HEADS_MAX {
            omitted += 1;
        } else if is_new {
            heads.push(head.clone());
        }
        all.push(head);
    }
    let (digest, count) = (checkpoint::digest(&all), all.len() as u64);
    let decisions = signed_log::signed_number(db, keys)?;
    let decisions = decisions.and_then(|number| u64::try_from(number).ok()).unwrap_or_default();
    let previous = newest_signed(db, keys)?;
    Ok(Checkpoint { heads, omitted, count, digest, decisions, previous })
}

/// Remembers the receipt of a checkpoint, and which heads it names.
pub(crate) fn remember(
    db: &Connection,
    checkpoint: &Checkpoint,
    chain_id: &str,
    link: &Link,
) -> Result<(), StoreError> {
    let mut statement = db.prepare_cached("UPDATE chains SET named = ?2 WHERE chain_id = ?1")?;
    for head in &checkpoint.heads {
        statement.execute(params![head.chain_id, head.length])?;
    }
    db.prepare_cached("INSERT INTO checkpoints (chain_id, sequence, hash) VALUES (?1, ?2, ?3)")?
        .execute(params![chain_id, link.sequence, link.body.hash().to_string()])?;
    Ok(())
}

/// Returns the place and hash of the newest receipt with a checkpoint.
pub(crate) fn newest(db: &Connection) -> Result<Option<Head>, StoreError> {
    let mut statement = db.prepare_cached(
        "SELECT chain_id, sequence, hash FROM checkpoints ORDER BY number DESC LIMIT 1",
    )?;
    Ok(statement.query_row([], read).optional()?.flatten())
}

/// Returns the place and hash of the newest checkpoint that is signed and in its place.
fn newest_signed(db: &Connection, keys: &[PublicKey]) -> Result<Option<Head>, StoreError> {
    let mut statement = db.prepare_cached(
        "SELECT chain_id, sequence, hash FROM checkpoints ORDER BY number DESC LIMIT ?1",
    )?;
    let mut rows = statement.query([HEADS_MAX])?;
    while let Some(row) = rows.next()? {
        if let Some(place) = read(row)?
            && checkpoint_at(db, &place, keys)?.is_some()
        {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// Returns the places of all checkpoints, as their table lists them.
pub(crate) fn listed(db: &Connection) -> Result<Vec<Head>, StoreError> {
    let mut statement =
        db.prepare("SELECT chain_id, sequence, hash FROM checkpoints ORDER BY number")?;
    let rows = statement.query_map([], read)?;
    Ok(rows.filter_map(Result::transpose).collect::<Result<_, _>>()?)
}

/// Makes the table of checkpoints again if it does not list just those that one of these keys signed;
/// returns the places that it lacked, and those that it should not have had.
pub(crate) fn list_again(
    db: &Connection,
    keys: &[PublicKey],
) -> Result<(Vec<Head>, Vec<Head>), StoreError> {
    // By time: a repair may have found them in any order.
    let issued = receipts::member("$.issuanceDate");
    let mut statement = db.prepare(&format!(
        "SELECT receipt_json FROM receipts WHERE own IN (?1, ?2) ORDER BY {issued}, receipt_number"
    ))?;
    let texts = statement.query_map([checkpoint::ACTION_TYPE, CHAIN_CLOSED], |row| row.get(0))?;
    let mut signed = Vec::new();
    for text in texts {
        let text: String = text?;
        signed.extend(signed_checkpoint(&text, keys).map(|(own, _)| own));
    }
    let (listed, expired) = (listed(db)?, expired(db, keys)?);
    let lacked: Vec<Head> = signed.iter().filter(|it| !listed.contains(it)).cloned().collect();
    let is_wrong = |it: &&Head| !signed.contains(it) && !expired.contains(&it.chain_id);
    let wrong: Vec<Head> = listed.iter().filter(is_wrong).cloned().collect();
    if !lacked.is_empty() || !wrong.is_empty() {
        transaction::whole(db, |db| {
            db.execute("DELETE FROM checkpoints", [])?;
            let mut statement = db.prepare(
                "INSERT INTO checkpoints (chain_id, sequence, hash) VALUES (?1, ?2, ?3)",
            )?;
            for Head { chain_id, length, hash } in &signed {
                statement.execute(params![chain_id, length, hash.to_string()])?;
            }
            Ok(())
        })?;
    }
    Ok((lacked, wrong))
}

/// Reports whether the table of checkpoints lists one in this place.
pub(crate) fn is_listed(db: &Connection, place: &Head) -> Result<bool, StoreError> {
    let words = "SELECT 1 FROM checkpoints WHERE chain_id = ?1 AND sequence = ?2";
    Ok(db.prepare_cached(words)?.exists(params![place.chain_id, place.length])?)
}

/// Returns the newest checkpoint as it was signed, if it is there.
pub(crate) fn newest_text(
    db: &Connection,
    keys: &[PublicKey],
) -> Result<Option<String>, StoreError> {
    let Some(place) = newest_signed(db, keys)? else { return Ok(None) };
    let words = "SELECT receipt_json FROM receipts WHERE chain_id = ?1 AND sequence = ?2";
    let mut statement = db.prepare_cached(words)?;
    Ok(statement.query_row(params![place.chain_id, place.length], |row| row.get(0)).optional()?)
}

/// Returns the heads of all chains, sorted by chain.
fn known(db: &Connection) -> Result<Vec<KnownHead>, StoreError> {
    let mut statement = db.prepare_cached(
        "SELECT chain_id, length, last_hash, status = 'open', named = length FROM chains
         WHERE length > 0 AND status <> 'expired' ORDER BY chain_id",
    )?;
    let rows = statement.query_map([], |row| {
        let head = read(row)?;
        let (is_open, is_named) = (row.get(3)?, row.get(4)?);
        Ok(head.map(|head| KnownHead { head, is_open, is_named }))
    })?;
    // A row without a hash was tampered with, and does not stop the others.
    Ok(rows.filter_map(Result::transpose).collect::<Result<_, _>>()?)
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Option<Head>> {
    let hash: Option<String> = row.get(2)?;
    let (chain_id, length) = (row.get(0)?, row.get(1)?);
    let hash = hash.and_then(|hash| hash.parse().ok());
    Ok(hash.map(|hash| Head { chain_id, length, hash }))
}

/// Sets the heads of all chains to what their receipts say, after these were copied from elsewhere.
pub(crate) fn recount(db: &Connection) -> Result<(), StoreError> {
    db.execute_batch(
        "UPDATE chains SET
           length = COALESCE((SELECT MAX(sequence) FROM receipts
             WHERE receipts.chain_id = chains.chain_id), 0),
           last_hash = (SELECT receipt_hash FROM receipts
             WHERE receipts.chain_id = chains.chain_id ORDER BY sequence DESC LIMIT 1)",
    )?;
    Ok(())
}

/// Returns all chains whose expiry a receipt states that one of these keys signed.
pub(crate) fn expired(db: &Connection, keys: &[PublicKey]) -> Result<Vec<String>, StoreError> {
    let mut statement = db.prepare("SELECT receipt_json FROM receipts WHERE own = ?1")?;
    let texts = statement.query_map([CHAIN_EXPIRED], |row| row.get::<_, String>(0))?;
    let mut found = Vec::new();
    for text in texts {
        let Ok((signed, members)) = SignedReceipt::read(&text?) else { continue };
        if signed.key_among(keys).is_some_and(|key| signed.verify(key).is_ok()) {
            found.extend(audit::expired(&members).into_iter().map(|head| head.chain_id));
        }
    }
    Ok(found)
}

/// Returns the newest chains whose expiry the receipts of a chain state.
pub(crate) fn expired_by(db: &Connection, chain_id: &str) -> Result<Vec<Head>, StoreError> {
    let mut statement = db.prepare(
        "SELECT receipt_json FROM receipts WHERE chain_id = ?1 AND own = ?2
         ORDER BY sequence DESC",
    )?;
    let texts = statement.query_map([chain_id, CHAIN_EXPIRED], |row| row.get::<_, String>(0))?;
    let mut found = Vec::new();
    for text in texts {
        let members: Value = serde_json::from_str(&text?).unwrap_or_default();
        found.extend(audit::expired(&members));
        if found.len() >= HEADS_MAX {
            found.truncate(HEADS_MAX);
            break;
        }
    }
    Ok(found)
}

/// Marks a chain as damaged if its end is missing, so that nothing is ever signed onto what is
/// left. Returns whether it is.
pub(crate) fn set_damaged_aside(
    db: &Connection,
    (home, keys): (&Path, &[PublicKey]),
    chain_id: &str,
) -> Result<bool, StoreError> {
    let Some(lost) = lost_head(db, (home, keys), chain_id)? else {
        return Ok(false);
    };
    db.execute("UPDATE chains SET status = 'damaged' WHERE chain_id = ?1", [chain_id])?;
    tracing::error!(
        chain = %chain_id,
        "the end of this chain is missing: it had {} receipts; it is left as it is. Run \
         'countersign receipt verify' for details, and restore ledger.db from a backup",
        lost.length
    );
    Ok(true)
}

/// Says that the end of a chain is missing.
pub(crate) fn damaged_words(chain_id: &str) -> String {
    format!(
        "the end of chain {chain_id} is missing, and nothing is signed onto what is left: restore a \
         backup, or run 'countersign ledger repair' and then 'countersign ledger accept'"
    )
}

/// Returns a head that the chain is known to have had and has no longer.
fn lost_head(
    db: &Connection,
    (home, keys): (&Path, &[PublicKey]),
    chain_id: &str,
) -> Result<Option<Head>, StoreError> {
    let row = "SELECT chain_id, length, last_hash FROM chains WHERE chain_id = ?1 AND length > 0";
    let mut heads: Vec<Head> =
        db.query_row(row, [chain_id], read).optional()?.flatten().into_iter().collect();
    if let Some(newest) = newest(db)? {
        let named = checkpoint_at(db, &newest, keys)?.map(|checkpoint| checkpoint.heads);
        heads.extend(named.into_iter().flatten());
        heads.push(newest);
    }
    let kept = checkpoint_file::kept_checkpoint(home).ok().flatten();
    heads.extend(kept.iter().flat_map(|text| named_by(text, keys)));
    for head in heads.into_iter().filter(|head| head.chain_id == chain_id) {
        if hash_at(db, &head.chain_id, head.length)?.and_then(|hash| hash.parse().ok())
            != Some(head.hash)
        {
            return Ok(Some(head));
        }
    }
    Ok(None)
}

/// Returns the heads that the receipt of a checkpoint names, its own place among them.
pub(super) fn named_by(text: &str, keys: &[PublicKey]) -> Vec<Head> {
    let Some((own, checkpoint)) = signed_checkpoint(text, keys) else { return Vec::new() };
    checkpoint.heads.into_iter().chain([own]).collect()
}

/// Reads a receipt with a checkpoint that one of these keys signed; returns its place too.
pub(crate) fn signed_checkpoint(text: &str, keys: &[PublicKey]) -> Option<(Head, Checkpoint)> {
    let (signed, members) = SignedReceipt::read(text).ok()?;
    signed.verify(signed.key_among(keys)?).ok()?;
    let (chain_id, length) = (signed.link.chain_id.clone(), signed.link.sequence);
    Some((Head { chain_id, length, hash: signed.hash }, Checkpoint::of(&members)?))
}

/// Returns the checkpoint in this place, if it is signed and has this hash.
fn checkpoint_at(
    db: &Connection,
    place: &Head,
    keys: &[PublicKey],
) -> Result<Option<Checkpoint>, StoreError> {
    let words = "SELECT receipt_json FROM receipts WHERE chain_id = ?1 AND sequence = ?2";
    let mut statement = db.prepare_cached(words)?;
    let text: Option<String> =
        statement.query_row(params![place.chain_id, place.length], |row| row.get(0)).optional()?;
    let found = text.and_then(|text| signed_checkpoint(&text, keys));
    Ok(found.filter(|(own, _)| own == place).map(|(_, checkpoint)| checkpoint))
}

/// Returns a reason to doubt that a chain is open: the newest checkpoint, which names every open
/// chain, does not name this one, although it was filed before.
pub(crate) fn unnamed(
    db: &Connection,
    keys: &[PublicKey],
    chain_id: &str,
) -> Result<Option<String>, StoreError> {
    let Some(newest) = newest(db)? else { return Ok(None) };
    let is_older = "SELECT MIN(receipt_number) < (SELECT receipt_number FROM receipts
         WHERE chain_id = ?2 AND sequence = ?3) FROM receipts WHERE chain_id = ?1";
    let is_older: Option<bool> = db
        .prepare_cached(is_older)?
        .query_row(params![chain_id, newest.chain_id, newest.length], |row| row.get(0))?;
    if newest.chain_id == chain_id || is_older != Some(true) {
        return Ok(None);
    }
    let Some(checkpoint) = checkpoint_at(db, &newest, keys)? else { return Ok(None) };
    let is_named = checkpoint.heads.iter().any(|head| head.chain_id == chain_id);
    Ok((!is_named && checkpoint.omitted == 0).then(|| {
        let Head { chain_id: by, length, .. } = &newest;
        format!(
            "the table of chains lists it as open, but the checkpoint in receipt {length} of chain \
             {by} does not"
        )
    }))
}

#[cfg(test)]
mod tests {
    use receipt::Hash;

    use super::*;
    use crate::database::schema;

    const CHAINS: usize = HEADS_MAX + 200;

    fn ledger() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        schema::migrate(&mut db).unwrap();
        for number in 0..CHAINS {
            let id = format!("{number:05}");
            let hash = Hash::of(id.as_bytes()).to_string();
            db.execute(
                "INSERT INTO chains (chain_id, opened_at, pid, key, status, length, last_hash)
                 VALUES (?1, '', 0, '', 'complete', 3, ?2)",
                [id, hash],
            )
            .unwrap();
        }
        db
    }

    fn name(db: &Connection, checkpoint: &Checkpoint) {
        for head in &checkpoint.heads {
            let sql = "UPDATE chains SET named = ?2 WHERE chain_id = ?1";
            db.execute(sql, params![head.chain_id, head.length]).unwrap();
        }
    }

    #[test]
    fn a_checkpoint_names_what_is_open_or_has_changed_and_covers_all() {
        let db = ledger();
        let first = checkpoint_of(&db, &[], |_| Ok(true)).unwrap();
        assert_eq!((first.heads.len(), first.omitted), (HEADS_MAX, 200));
        assert_eq!(first.count, CHAINS as u64);
        name(&db, &first);
        let second = checkpoint_of(&db, &[], |_| Ok(true)).unwrap();
        assert_eq!((second.heads.len(), second.omitted), (200, 0));
        assert_eq!(second.digest, first.digest, "nothing has changed");
        name(&db, &second);
        db.execute_batch(
            "UPDATE chains SET status = 'open' WHERE chain_id = '00002';
             UPDATE chains SET length = 4 WHERE chain_id = '00001';
             UPDATE chains SET status = 'expired' WHERE chain_id = '00000';",
        )
        .unwrap();
        let third = checkpoint_of(&db, &[], |_| Ok(true)).unwrap();
        let named: Vec<&str> = third.heads.iter().map(|head| head.chain_id.as_str()).collect();
        assert_eq!(named, ["00001", "00002"]);
        assert_eq!(third.count, CHAINS as u64 - 1);
        assert_ne!(third.digest, second.digest);
    }
}
