//! The last checkpoints that the anchor of a home keeps, and what the ledger has of them. Only
//! `accept` writes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use domain::config::AnchorConfig;
use receipt::Hash;
use receipt::checkpoint::{Checkpoint, Head};
use rusqlite::Connection;

use super::{Evidence, HeadState, UntrustedCheckpoint, checkpoint};
use crate::database::settings;
use crate::error::StoreError;
use crate::limits::{ANCHOR_LINES_MAX, ANCHOR_TAIL_BYTES};

/// The setting with the hash of the last line whose losses a person has accepted.
const ACCEPTED: &str = "anchor_accepted";

/// The state of the ledger according to a file that is its anchor.
#[derive(Default)]
pub(crate) struct AnchoredState {
    /// The anchor, in words.
    pub(super) shown: String,
    /// It lies in the home.
    pub(super) is_within: bool,
    /// The reason for which it cannot be read.
    pub(super) error: Option<String>,
    /// A person has accepted losses.
    pub(super) was_accepted: bool,
    pub(crate) checkpoints: usize,
    /// Lines that no key of this home signed.
    pub(super) foreign: usize,
    /// Lines that are no checkpoints.
    pub(super) unreadable: usize,
    pub(super) decisions: u64,
    /// The longest known head of each chain.
    pub(super) heads: Vec<HeadState>,
    /// The hash of the last line.
    pub(super) last: Option<String>,
}

impl AnchoredState {
    /// Compares the last lines of an anchor with the tables; `None` if it is no file.
    pub(super) fn read(
        db: &Connection,
        evidence: &Evidence,
    ) -> Result<Option<AnchoredState>, StoreError> {
        let Evidence { home, keys, anchor, anchor_lines, .. } = evidence;
        let (Some(AnchorConfig::File(path)), Some(lines)) = (anchor, anchor_lines) else {
            return Ok(None);
        };
        let (path, accepted) = (home.join(path), settings::get(db, ACCEPTED)?);
        let mut state = AnchoredState {
            shown: format!("the anchor '{}'", path.display()),
            is_within: is_within(&path, home),
            error: lines.as_ref().err().map(|error| error.to_string()),
            was_accepted: accepted.is_some(),
            ..AnchoredState::default()
        };
        let lines = lines.as_deref().unwrap_or_default();
        state.last = lines.last().map(|line| hash(line));
        let accepted = lines.iter().rposition(|line| Some(hash(line)) == accepted);
        let mut heads = BTreeMap::new();
        for line in &lines[accepted.map_or(0, |last| last + 1)..] {
            match checkpoint(line, keys) {
                Ok(checkpoint) => state.add(checkpoint, &mut heads),
                Err(UntrustedCheckpoint::Foreign) => state.foreign += 1,
                Err(UntrustedCheckpoint::Unreadable(_)) => state.unreadable += 1,
            }
        }
        state.heads = evidence.look_up(db, heads.into_values().collect())?;
        Ok(Some(state))
    }

    fn add(&mut self, checkpoint: Checkpoint, heads: &mut BTreeMap<String, Head>) {
        self.checkpoints += 1;
        self.decisions = self.decisions.max(checkpoint.decisions);
        for head in checkpoint.heads {
            let known = heads.get(&head.chain_id);
            if known.is_none_or(|known| known.length <= head.length) {
                heads.insert(head.chain_id.clone(), head);
            }
        }
    }

    /// Lets the checkpoints that the anchor had count as lost, on a person's order.
    pub(crate) fn accept(&self, db: &Connection) -> Result<(), StoreError> {
        self.last.as_ref().map_or(Ok(()), |last| settings::set(db, ACCEPTED, last))
    }
}

/// Reports whether a path leads into a folder, links resolved where they exist.
fn is_within(path: &Path, folder: &Path) -> bool {
    let resolved = path.ancestors().find_map(|part| part.canonicalize().ok());
    let folder = folder.canonicalize();
    resolved.zip(folder.ok()).is_some_and(|(path, folder)| path.starts_with(folder))
}

fn hash(line: &str) -> String {
    Hash::of(line.as_bytes()).to_string()
}

/// Reads the last lines of the file; the first of them may be cut.
pub(super) fn last_lines(path: &Path) -> io::Result<Vec<String>> {
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
