//! The lengths of chains that receipts state, by which a repair corrects the table of chains: nobody
//! signed that table.

use std::collections::HashMap;
use std::path::Path;

use receipt::PublicKey;
use receipt::checkpoint::{self, Checkpoint, Head};
use receipt::verify::SignedReceipt;
use rusqlite::{Connection, params};

use crate::error::StoreError;
use crate::write::chain_row::preceding;
use crate::write::compose::CHAIN_CLOSED;
use crate::write::{checkpoint_file, heads};

/// The lengths of chains that receipts and kept checkpoints state.
#[derive(Default)]
pub(crate) struct WitnessedLengths {
    /// The longest of each chain, and the longest that a checkpoint in the ledger names.
    longest: HashMap<String, u64>,
    named: HashMap<String, u64>,
    /// Chains have expired, and with them checkpoints.
    has_expired: bool,
}

impl WitnessedLengths {
    pub(crate) fn read(
        db: &Connection,
        home: &Path,
        keys: &[PublicKey],
    ) -> Result<WitnessedLengths, StoreError> {
        let mut statement =
            db.prepare("SELECT receipt_json FROM receipts WHERE own IN (?1, ?2) OR sequence = 1")?;
        let texts = [checkpoint::ACTION_TYPE, CHAIN_CLOSED];
        let texts = statement.query_map(texts, |row| row.get::<_, String>(0))?;
        let has_expired = !heads::expired(db, keys)?.is_empty();
        let mut lengths = WitnessedLengths { has_expired, ..WitnessedLengths::default() };
        for text in texts.filter_map(Result::ok) {
            let Ok((signed, members)) = SignedReceipt::read(&text) else { continue };
            if signed.key_among(keys).is_none_or(|key| signed.verify(key).is_err()) {
                continue;
            }
            if let Some((chain_id, length, _)) = preceding(&members) {
                add(&mut lengths.longest, &chain_id, u64::try_from(length).unwrap_or_default());
            }
            for head in Checkpoint::of(&members).into_iter().flat_map(|checkpoint| checkpoint.heads)
            {
                add(&mut lengths.longest, &head.chain_id, head.length);
                add(&mut lengths.named, &head.chain_id, head.length);
            }
        }
        for text in kept(home) {
            for head in heads::named_by(&text, keys) {
                add(&mut lengths.longest, &head.chain_id, head.length);
            }
        }
        Ok(lengths)
    }

    /// Makes the head in the row of a chain that of its last receipt, unless receipts state that it
    /// was longer. Returns what was corrected, in words.
    pub(crate) fn correct(
        &self,
        db: &Connection,
        signed: &Head,
    ) -> Result<Option<String>, StoreError> {
        let id = &signed.chain_id;
        let words = "SELECT chain_id, length, last_hash, named FROM chains WHERE chain_id = ?1";
        let mut statement = db.prepare_cached(words)?;
        let (head, length, named): (Option<Head>, i64, i64) = statement.query_row([id], |row| {
            Ok((
                heads::read(row).ok().flatten(),
                row.get(1).unwrap_or(-1),
                row.get(3).unwrap_or(-1),
            ))
        })?;
        let longest = self.longest.get(id).copied().unwrap_or_default();
        let stated = self.named.get(id).copied().unwrap_or_default();
        let is_head = head.as_ref() == Some(signed) || longest > signed.length;
        let is_known = i64::try_from(stated) == Ok(named) || named == 0;
        let is_named = if self.has_expired { named <= length } else { is_known };
        if is_head && is_named {
            return Ok(None);
        }
        if !is_head {
            let words = "UPDATE chains SET length = ?2, last_hash = ?3 WHERE chain_id = ?1";
            db.execute(words, params![id, signed.length, signed.hash.to_string()])?;
        }
        db.execute("UPDATE chains SET named = 0 WHERE chain_id = ?1", [id])?;
        Ok(Some(format!(
            "corrected the row of chain {id} in the table of chains: it said that the chain has \
             {length} receipts, of which checkpoints name {named}, and its last receipt is {} ({})",
            signed.length, signed.hash
        )))
    }
}

/// Returns the newest checkpoint, and those that were set aside.
fn kept(home: &Path) -> impl Iterator<Item = String> {
    let newest = checkpoint_file::kept_checkpoint(home).ok().flatten();
    let set_aside = checkpoint_file::set_aside(home).into_iter().map(|(_, text)| text);
    newest.into_iter().chain(set_aside)
}

fn add(lengths: &mut HashMap<String, u64>, chain_id: &str, length: u64) {
    let longest = lengths.entry(chain_id.to_owned()).or_default();
    *longest = length.max(*longest);
}
