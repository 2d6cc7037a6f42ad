//! The evidence by which a home is judged: what its files say, each read once. A start reads the
//! little that shows whether `ledger.db` is the database that the home belongs to; a check reads
//! everything. Nothing is written here, and `judge` says what the evidence means.

pub(crate) mod anchor;
pub(crate) mod finding;
pub(crate) mod judge;

use std::io;
use std::path::{Path, PathBuf};

use domain::config::AnchorConfig;
use jiff::Timestamp;
use receipt::PublicKey;
use receipt::checkpoint::{Checkpoint, Head};
use receipt::verify::SignedReceipt;
use rusqlite::Connection;

use crate::database::connection::ReadOnlyFile;
use crate::database::lock::Lock;
use crate::database::{FILE, WRITERS, files_ending, schema};
use crate::error::StoreError;
use crate::keys;
use crate::state::keeping::Decided;
use crate::state::signed_log::{self, DecisionsFile};
use crate::upkeep::clock;
use crate::write::checkpoint_file::kept_checkpoint;
use crate::write::journal::{self, DAMAGED_ENDING};
use crate::write::journal_state::{JournalDepth, JournalState};
use crate::write::{chain, heads};
use anchor::AnchoredState;

/// The database that a repair fills, until it is complete.
pub(crate) const UNFINISHED_FILE: &str = "ledger.db.new";

/// Everything by which a home is judged.
#[derive(Default)]
pub(crate) struct Evidence {
    pub(crate) home: PathBuf,
    pub(crate) database: DatabaseState,
    /// A repair of the database did not finish.
    is_unfinished: bool,
    /// The number of files with public keys, and those keys that can be read.
    pub(crate) key_files: usize,
    keys: Vec<PublicKey>,
    /// The fingerprints of the keys that have signed, in order.
    pub(crate) used_keys: Vec<String>,
    /// The chains that have a journal.
    chains: Vec<String>,
    pub(crate) journals: Vec<JournalState>,
    /// Files with lines of journals that were damaged when they were recovered.
    pub(crate) set_aside: Vec<String>,
    pub(crate) decisions: DecisionsFile,
    /// The newest checkpoint, if there is a file.
    pub(crate) checkpoint: Option<Result<Checkpoint, UntrustedCheckpoint>>,
    /// The heads that it names, its own place among them, and the place of the newest one in the
    /// tables.
    heads: Vec<HeadState>,
    /// The place of the newest checkpoint, if the file has an older one and no process will replace
    /// it.
    pub(crate) newer_checkpoint: Option<Head>,
    /// The key that signs, according to the tables, and whether its secret half is there.
    pub(crate) key: Option<String>,
    has_secret: bool,
    /// The decisions in the database; none before it is read.
    decided: Option<Decided>,
    /// The clock is behind the last receipt or far ahead of the newest record, in words.
    clock: Option<String>,
    /// Chains whose rows say that their end is missing, and those whose rows name another end than
    /// their last receipt, with words that say so.
    damaged: Vec<String>,
    other_ends: Vec<String>,
    has_checkpoints: bool,
    /// The keys that signed chains.
    signers: Vec<String>,
    anchor: Option<AnchorConfig>,
    /// The last lines of an anchor that is a file.
    anchor_lines: Option<io::Result<Vec<String>>>,
    pub(crate) anchored: Option<AnchoredState>,
    /// The reason for which the tables could not be read to the end.
    unread: Option<StoreError>,
}

/// The state of the database file, judged by its size or by opening it.
#[derive(Default)]
pub(crate) enum DatabaseState {
    #[default]
    Missing,
    /// It exists and has no content.
    Empty,
    Present,
    /// It has the layout of an older version.
    Outdated,
    Unreadable(StoreError),
}

/// A head that a chain had, and what the ledger has of it.
pub(crate) struct HeadState {
    head: Head,
    /// The hash of the receipt in its place, if that was looked up.
    found: Option<String>,
    /// The last receipt of the chain, if some could be missing: none was found in the place of the
    /// head, and the chain has not expired.
    reached: Option<u64>,
    /// Entries in the journal that can no longer be read; recovery signs for them.
    damaged: u64,
}

/// The reason not to trust a text as a checkpoint.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UntrustedCheckpoint {
    #[error("no key of this home signed it")]
    Foreign,
    #[error("{0}")]
    Unreadable(String),
}

impl Evidence {
    /// Reads the files that show whether the home has been used, without opening the database.
    pub(crate) fn of_files(home: &Path, anchor: Option<&AnchorConfig>) -> Evidence {
        let folder = home.join(keys::FOLDER);
        // In this order: what a checkpoint names is in the tables by the time they are read, and
        // the key that signed it is in the folder.
        let anchor_lines = match anchor {
            Some(AnchorConfig::File(path)) => Some(anchor::last_lines(&home.join(path))),
            Some(AnchorConfig::Command(_)) | None => None,
        };
        let checkpoint = kept_checkpoint(home);
        let keys = keys::all_public(&folder);
        let checkpoint = match checkpoint {
            Ok(text) => text.map(|text| self::checkpoint(&text, &keys)),
            Err(error) => Some(Err(UntrustedCheckpoint::Unreadable(error.to_string()))),
        };
        Evidence {
            home: home.to_owned(),
            database: match std::fs::metadata(home.join(FILE)) {
                Err(_) => DatabaseState::Missing,
                Ok(found) if found.len() == 0 => DatabaseState::Empty,
                Ok(_) => DatabaseState::Present,
            },
            is_unfinished: home.join(UNFINISHED_FILE).exists(),
            key_files: keys::count(&folder),
            keys,
            used_keys: keys::used(&folder),
            chains: journal::chains(&home.join(WRITERS)),
            checkpoint,
            decisions: signed_log::read_copy(home),
            anchor: anchor.cloned(),
            anchor_lines,
            ..Evidence::default()
        }
    }

    /// Reads everything but the content of the database, which other processes may be writing.
    pub(crate) fn in_full(home: &Path, anchor: Option<&AnchorConfig>) -> Evidence {
        let mut evidence = Evidence::of_files(home, anchor);
        let set_aside = files_ending(&home.join(WRITERS), DAMAGED_ENDING).into_iter();
        evidence.set_aside = set_aside.map(|name| format!("{name}.{DAMAGED_ENDING}")).collect();
        let db = evidence.open();
        let journals = evidence.journals(db.as_ref(), JournalDepth::Everything);
        // They are examined even if the tables cannot be read.
        let alone = |_| evidence.journals(None, JournalDepth::Everything);
        evidence.journals = journals.or_else(alone).unwrap_or_default();
        if let Some(db) = &db {
            let read = evidence.add_anchor(db).and_then(|()| evidence.add_heads(db));
            evidence.unread = read.and_then(|()| evidence.add_signers(db)).err();
        }
        evidence
    }

    /// Adds what a start compares with the tables: of the journals, little more than the headers.
    pub(crate) fn add_tables(&mut self, db: &Connection) -> Result<(), StoreError> {
        self.journals = self.journals(Some(db), JournalDepth::Header)?;
        self.add_heads(db)?;
        self.add_signers(db)?;
        self.add_anchor(db)
    }

    /// Adds what is compared with the anchor.
    pub(crate) fn add_anchor(&mut self, db: &Connection) -> Result<(), StoreError> {
        self.key = keys::named(db)?;
        let folder = self.home.join(keys::FOLDER);
        self.has_secret = self.key.as_ref().is_some_and(|key| keys::has_secret(&folder, key));
        self.decided = Some(Decided::read(db, &self.home)?);
        self.has_checkpoints = schema::has_rows(db, "checkpoints")?;
        self.anchored = AnchoredState::read(db, self)?;
        Ok(())
    }

    fn add_heads(&mut self, db: &Connection) -> Result<(), StoreError> {
        let now = Timestamp::now();
        self.clock = match clock::behind(db, now)? {
            None => clock::ahead(db, now)?,
            behind => behind,
        };
        self.add_ends(db)?;
        let (newest, heads) = (heads::newest(db)?, self.checkpoint.iter().flatten());
        let mut heads: Vec<Head> = heads.flat_map(|known| known.heads.clone()).collect();
        if let Some(newest) = newest.filter(|newest| !heads.contains(newest)) {
            self.newer_checkpoint = self.is_newer(db, &newest)?.then(|| newest.clone());
            heads.push(newest);
        }
        self.heads = self.look_up(db, heads)?;
        Ok(())
    }

    /// Reports whether the file has an older checkpoint than the one in this place, and stays so.
    fn is_newer(&self, db: &Connection, newest: &Head) -> Result<bool, StoreError> {
        let Some(Ok(_)) = &self.checkpoint else { return Ok(false) };
        if Lock::is_held(&self.home.join(WRITERS), &newest.chain_id) {
            return Ok(false);
        }
        // It may have been replaced since it was read.
        let kept = kept_checkpoint(&self.home).ok().flatten();
        match kept.and_then(|text| heads::signed_checkpoint(&text, &self.keys)) {
            Some((own, _)) => Ok(own != *newest && heads::is_listed(db, &own)?),
            None => Ok(false),
        }
    }

    /// Compares heads with the receipts. That a chain has expired counts only if a receipt states it.
    fn look_up(&self, db: &Connection, heads: Vec<Head>) -> Result<Vec<HeadState>, StoreError> {
        let (writers, mut expired) = (self.home.join(WRITERS), None);
        let mut states = Vec::new();
        for head in heads {
            let mut state = HeadState::read(db, &writers, head)?;
            if state.found.is_none() && state.reached.is_none() {
                if expired.is_none() {
                    expired = Some(heads::expired(db, &self.keys)?);
                }
                let is_stated = expired.iter().flatten().any(|id| *id == state.head.chain_id);
                state.reached = (!is_stated).then_some(0);
            }
            states.push(state);
        }
        Ok(states)
    }

    /// Compares the head in each row of the table of chains with the last receipt of the chain.
    fn add_ends(&mut self, db: &Connection) -> Result<(), StoreError> {
        let mut statement = db.prepare(
            "SELECT chain_id, status, length, last_hash, reached,
               (SELECT receipt_hash FROM receipts
                WHERE receipts.chain_id = ends.chain_id AND sequence = reached)
             FROM (SELECT chain_id, status, length, last_hash, (SELECT MAX(sequence) FROM receipts
                WHERE receipts.chain_id = chains.chain_id) AS reached
               FROM chains WHERE status <> 'expired') AS ends",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (chain_id, status): (String, String) = (row.get(0)?, row.get(1)?);
            let (length, reached): (i64, Option<i64>) = (row.get(2)?, row.get(4)?);
            if status == "damaged" {
                self.damaged.push(chain_id);
                continue;
            }
            let (known, last): (Option<String>, Option<String>) = (row.get(3)?, row.get(5)?);
            if reached.unwrap_or(0) == length && known == last {
                continue;
            }
            let end = match reached {
                None => "has none".to_owned(),
                Some(reached) if reached == length => "its last one is another".to_owned(),
                Some(reached) => format!("its last one is receipt {reached}"),
            };
            self.other_ends.push(format!(
                "the table of chains says that chain {chain_id} has {length} receipts, and {end}"
            ));
        }
        Ok(())
    }

    fn add_signers(&mut self, db: &Connection) -> Result<(), StoreError> {
        let mut statement = db.prepare("SELECT DISTINCT key FROM chains")?;
        let signers = statement.query_map([], |row| row.get(0))?;
        self.signers = signers.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Opens the database for reading, if it has the present layout.
    fn open(&mut self) -> Option<Connection> {
        let DatabaseState::Present = self.database else { return None };
        let opened = ReadOnlyFile::at(&self.home.join(FILE)).and_then(|file| file.connect());
        let opened = opened.and_then(|db| {
            schema::check_format(&db)?;
            Ok((schema::is_current(&db)?, db))
        });
        match opened {
            Ok((true, db)) => return Some(db),
            Ok((false, _)) => self.database = DatabaseState::Outdated,
            Err(error) => self.database = DatabaseState::Unreadable(error),
        }
        None
    }

    fn journals(
        &self,
        db: Option<&Connection>,
        depth: JournalDepth,
    ) -> Result<Vec<JournalState>, StoreError> {
        let writers = self.home.join(WRITERS);
        let read = |id: &String| JournalState::read(db, (&writers, id), depth).transpose();
        let mut chains = journal::tail::chains(&writers);
        chains.retain(|id| !self.chains.contains(id));
        self.chains.iter().chain(&chains).filter_map(read).collect()
    }

    /// Returns the number of decisions that the tables or their copy have.
    pub(crate) fn known_decisions(&self, in_tables: i64) -> i64 {
        match &self.decisions {
            DecisionsFile::Valid(kept, _) => kept.number.max(in_tables),
            DecisionsFile::Missing | DecisionsFile::Invalid(_) => in_tables,
        }
    }

    /// Returns the number of decisions that the checkpoints name.
    pub(crate) fn named_decisions(&self) -> i64 {
        let newest = self.checkpoint.iter().flatten().map(|checkpoint| checkpoint.decisions);
        let anchored = self.anchored.iter().map(|state| state.decisions);
        let named = newest.chain(anchored).max().unwrap_or_default();
        i64::try_from(named).unwrap_or(i64::MAX)
    }

    /// Returns these decisions and those of the home, if it has fewer.
    fn lost_decisions(&self, named: u64) -> Option<(u64, i64)> {
        let known = self.known_decisions(self.decided.as_ref()?.number);
        u64::try_from(known).is_ok_and(|known| known < named).then_some((named, known))
    }
}

impl HeadState {
    /// Looks for the receipt in the place of a head, and if there is none, for the end of the chain.
    fn read(db: &Connection, writers: &Path, head: Head) -> Result<HeadState, StoreError> {
        let id = &head.chain_id;
        let found = chain::hash_at(db, id, head.length)?;
        let reached = if found.is_none() { chain::reach(db, writers, id)? } else { None };
        let mut damaged = 0;
        if reached.is_some_and(|reached| reached < head.length) {
            let scan = journal::scan(writers, id).filter(|scan| !scan.damaged.is_empty());
            let filed = chain::filed(db, id)?.unwrap_or(0);
            damaged = scan.map_or(0, |scan| scan.lost_after(filed).count());
        }
        Ok(HeadState { head, found, reached, damaged })
    }
}

/// Reads a checkpoint, which one of these keys must have signed. Its own place is among its heads.
fn checkpoint(text: &str, keys: &[PublicKey]) -> Result<Checkpoint, UntrustedCheckpoint> {
    let unreadable = UntrustedCheckpoint::Unreadable;
    let (signed, members) =
        SignedReceipt::read(text).map_err(|error| unreadable(error.to_string()))?;
    let checkpoint = Checkpoint::of(&members);
    let mut checkpoint = checkpoint.ok_or_else(|| unreadable("it names no chains".to_owned()))?;
    let is_ours = keys.iter().any(|key| signed.verify(key).is_ok());
    let (chain_id, length) = (signed.link.chain_id.clone(), signed.link.sequence);
    checkpoint.heads.retain(|head| head.chain_id != chain_id);
    checkpoint.heads.push(Head { chain_id, length, hash: signed.hash });
    if is_ours { Ok(checkpoint) } else { Err(UntrustedCheckpoint::Foreign) }
}
