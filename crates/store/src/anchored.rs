//! Compares a home with the checkpoints that its anchor keeps. If the whole home is replaced by an
//! earlier copy, nothing in it shows that; what was kept outside does. A checkpoint counts if a key
//! of the home signed it. Only `accept` writes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use domain::config::AnchorConfig;
use receipt::checkpoint::{Checkpoint, Head};
use receipt::verify::SignedReceipt;
use receipt::{Hash, PublicKey};
use rusqlite::{Connection, OptionalExtension, params};

use crate::database::connection::ReadOnlyFile;
use crate::database::{FILE, WRITERS, schema, settings};
use crate::error::StoreError;
use crate::evidence;
use crate::keys;
use crate::limits::{ANCHOR_LINES_MAX, ANCHOR_TAIL_BYTES};
use crate::read::LedgerPlace;
use crate::state::decisions;

/// The setting with the hash of the last line whose losses a person has accepted.
const ACCEPTED: &str = "anchor_accepted";

/// The result of comparing a home with its anchor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnchorCheck {
    /// Everything that the anchor names and the home lacks, in words.
    pub faults: Vec<String>,
    /// Matters that could not be compared, in words.
    pub notes: Vec<String>,
    /// The number of checkpoints that were compared.
    pub compared: usize,
    /// The number of decisions that the anchor names, if the home has fewer.
    pub(crate) decisions: Option<i64>,
}

/// The kind of an anchor's line.
enum AnchorLine {
    Checkpoint(Checkpoint),
    /// It is signed, by no key of this home.
    Foreign,
    /// It is no checkpoint.
    Unreadable,
}

/// The state of the ledger according to the last lines of its anchor.
#[derive(Default)]
struct AnchoredState {
    /// The longest known head of each chain.
    heads: BTreeMap<String, Head>,
    decisions: u64,
    checkpoints: usize,
    foreign: usize,
    unreadable: usize,
}

/// Compares a home, without changing anything.
pub fn check(home: &Path, anchor: Option<&AnchorConfig>) -> Result<AnchorCheck, StoreError> {
    let mut check = match anchor {
        Some(AnchorConfig::File(_)) => {
            let db = ReadOnlyFile::at(&home.join(FILE))?.connect()?;
            if schema::is_current(&db)? {
                compare(&db, home, anchor)?
            } else {
                AnchorCheck::default()
            }
        }
        Some(AnchorConfig::Command(_)) | None => AnchorCheck::default(),
    };
    if let Some(AnchorConfig::Command(_)) = anchor {
        let words = "the anchor is a command, so that what it keeps cannot be compared here: pass \
                     its newest checkpoint to 'countersign receipt verify --head'";
        check.notes.push(words.to_owned());
    }
    Ok(check)
}

/// Compares a home with the last lines of the file that is its anchor, if it has one.
pub(crate) fn compare(
    db: &Connection,
    home: &Path,
    anchor: Option<&AnchorConfig>,
) -> Result<AnchorCheck, StoreError> {
    let Some(AnchorConfig::File(path)) = anchor else {
        return Ok(AnchorCheck::default());
    };
    let (path, mut check) = (home.join(path), AnchorCheck::default());
    let shown = format!("the anchor '{}'", path.display());
    if is_within(&path, home) {
        check.notes.push(format!(
            "{shown} lies in the home, so that an earlier copy of the home has an earlier anchor \
             too: keep it elsewhere"
        ));
    }
    // Read before the tables: what it names is in them by then.
    let lines = match last_lines(&path) {
        Ok(lines) => lines,
        Err(error) => {
            if schema::has_rows(db, "checkpoints")? {
                check.notes.push(format!(
                    "{shown} cannot be read ({error}), so that it would not show if this home had \
                     been replaced by an earlier copy"
                ));
            }
            return Ok(check);
        }
    };
    let state =
        AnchoredState::of(not_accepted(db, &lines)?, &keys::all_public(&home.join(keys::FOLDER)));
    check.compared = state.checkpoints;
    let was_accepted = settings::get(db, ACCEPTED)?.is_some();
    if check.compared == 0 && !was_accepted && schema::has_rows(db, "checkpoints")? {
        check.notes.push(format!(
            "{shown} has no checkpoint of this home, so that it would not show if the home had been \
             replaced by an earlier copy"
        ));
    }
    if state.foreign > 0 {
        check.faults.push(format!(
            "{shown} has checkpoints that no key of this home signed: they are of later keys, or of \
             another home"
        ));
    }
    if state.unreadable > 0 {
        let count = state.unreadable;
        check.notes.push(format!("{shown} has {count} lines near its end that are no checkpoints"));
    }
    let when = format!("at a checkpoint in {shown}");
    for head in state.heads.values() {
        check.faults.extend(lacking(db, home, head, &when)?);
    }
    let known = decisions::newest_number(db, home)?;
    if let Ok(named) = i64::try_from(state.decisions)
        && named > known
    {
        check.decisions = Some(named);
        check.faults.push(format!(
            "operators had made {named} decisions {when}, and the home has {known} of them"
        ));
    }
    Ok(check)
}

/// Returns the number of decisions that a ledger has; `None` if this program cannot read its tables.
pub fn decisions(file: &Path, place: LedgerPlace<'_>) -> Result<Option<u64>, StoreError> {
    let db = ReadOnlyFile::at(file)?.connect()?;
    if !schema::is_current(&db)? {
        return Ok(None);
    }
    let number = match place {
        LedgerPlace::Home(home) => decisions::newest_number(&db, home)?,
        LedgerPlace::Copy => decisions::number(&db)?,
    };
    Ok(u64::try_from(number).ok())
}

/// Reports whether a path leads into a folder, links resolved where they exist.
fn is_within(path: &Path, folder: &Path) -> bool {
    let resolved = path.ancestors().find_map(|part| part.canonicalize().ok());
    let folder = folder.canonicalize();
    resolved.zip(folder.ok()).is_some_and(|(path, folder)| path.starts_with(folder))
}

/// Lets the checkpoints that are in the anchor now count as lost, on a person's order.
pub(crate) fn accept(
    db: &Connection,
    home: &Path,
    anchor: Option<&AnchorConfig>,
) -> Result<(), StoreError> {
    if let Some(AnchorConfig::File(path)) = anchor
        && let Some(last) = last_lines(&home.join(path)).unwrap_or_default().last()
    {
        settings::set(db, ACCEPTED, &hash(last))?;
    }
    Ok(())
}

/// Returns the lines after the last one whose losses were accepted.
fn not_accepted<'a>(db: &Connection, lines: &'a [String]) -> Result<&'a [String], StoreError> {
    let accepted = settings::get(db, ACCEPTED)?;
    let accepted = lines.iter().rposition(|line| Some(hash(line)) == accepted);
    Ok(&lines[accepted.map_or(0, |last| last + 1)..])
}

fn hash(line: &str) -> String {
    Hash::of(line.as_bytes()).to_string()
}

/// Reads the last lines of the file; the first of them may be cut.
fn last_lines(path: &Path) -> io::Result<Vec<String>> {
    let about = fs::metadata(path)?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut file = File::open(path)?;
    let start = about.len().saturating_sub(ANCHOR_TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(ANCHOR_TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = if start > 0 { text.split_once('\n').map_or("", |(_, rest)| rest) } else { &text };
    let lines: Vec<&str> = whole.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(ANCHOR_LINES_MAX)..];
    Ok(last.iter().map(|line| (*line).to_owned()).collect())
}

impl AnchorLine {
    fn of(text: &str, keys: &[PublicKey]) -> AnchorLine {
        let Ok((signed, members)) = SignedReceipt::read(text) else {
            return AnchorLine::Unreadable;
        };
        match Checkpoint::of(&members) {
            None => AnchorLine::Unreadable,
            Some(checkpoint) if keys.iter().any(|key| signed.verify(key).is_ok()) => {
                AnchorLine::Checkpoint(checkpoint)
            }
            Some(_) => AnchorLine::Foreign,
        }
    }
}

impl AnchoredState {
    fn of(lines: &[String], keys: &[PublicKey]) -> AnchoredState {
        let mut state = AnchoredState::default();
        for line in lines {
            match AnchorLine::of(line, keys) {
                AnchorLine::Checkpoint(checkpoint) => state.add(checkpoint),
                AnchorLine::Foreign => state.foreign += 1,
                AnchorLine::Unreadable => state.unreadable += 1,
            }
        }
        state
    }

    fn add(&mut self, checkpoint: Checkpoint) {
        self.checkpoints += 1;
        self.decisions = self.decisions.max(checkpoint.decisions);
        for head in checkpoint.heads {
            let known = self.heads.get(&head.chain_id);
            if known.is_none_or(|known| known.length <= head.length) {
                self.heads.insert(head.chain_id.clone(), head);
            }
        }
    }
}

/// Returns a fault if the ledger does not have this head, or has another receipt in its place.
fn lacking(
    db: &Connection,
    home: &Path,
    head: &Head,
    when: &str,
) -> Result<Option<String>, StoreError> {
    let Head { chain_id, length, hash } = head;
    let found: Option<String> = db
        .prepare_cached("SELECT receipt_hash FROM receipts WHERE chain_id = ?1 AND sequence = ?2")?
        .query_row(params![chain_id, length], |row| row.get(0))
        .optional()?;
    Ok(match found {
        None => evidence::of_head(db, &home.join(WRITERS), head, when)?,
        Some(found) if found == hash.to_string() => None,
        Some(_) => Some(format!("receipt {length} of chain {chain_id} was another one {when}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchor");
        assert_eq!(last_lines(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(last_lines(folder.path()).is_err(), "a folder is no anchor");
        fs::write(&path, "").unwrap();
        assert_eq!(last_lines(&path).unwrap(), Vec::<String>::new());
        let many: String = (0..ANCHOR_LINES_MAX + 5).map(|line| format!("line {line}\n")).collect();
        fs::write(&path, &many).unwrap();
        let lines = last_lines(&path).unwrap();
        assert_eq!((lines.len(), lines[0].as_str()), (ANCHOR_LINES_MAX, "line 5"));
        let long = "x".repeat(usize::try_from(ANCHOR_TAIL_BYTES).unwrap());
        fs::write(&path, format!("{many}{long}\nlast\n")).unwrap();
        assert_eq!(last_lines(&path).unwrap(), ["last"], "the cut line is left out");
    }
}
