//! The end of a journal, in the lock file of its chain: after each commit, the last entry and the last
//! receipt that it promises. If the journal is cut or deleted before everything is filed, it shows.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::database::files_ending;
use crate::write::link::ChainEnd;
use crate::write::row::JournalRow;

/// Writes the end of a journal into the lock file of its chain. It is as long as the one before it.
pub(crate) fn write(lock: &File, entry: i64, end: ChainEnd) -> io::Result<()> {
    let hash = end.hash.map_or_else(String::new, |hash| hash.to_string());
    let text = format!("{entry:020} {:020} {hash:71}\n", end.sequence);
    lock.write_all_at(text.as_bytes(), 0)
}

/// Returns the last entry that the journal of a chain had; none if that is not known.
pub(crate) fn entry(writers: &Path, chain_id: &str) -> Option<i64> {
    let text = fs::read_to_string(writers.join(format!("{chain_id}.lock"))).ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Returns the last receipt that the journal of a chain promised: its number, and its hash.
pub(crate) fn promised(writers: &Path, chain_id: &str) -> Option<(u64, String)> {
    let text = fs::read_to_string(writers.join(format!("{chain_id}.lock"))).ok()?;
    let mut fields = text.split_ascii_whitespace().skip(1);
    let (sequence, hash) = (fields.next()?.parse().ok()?, fields.next()?);
    Some((sequence, hash.to_owned()))
}

/// Makes the promise of the last receipt that which the lock file of the chain has. Returns whether
/// the journal had another one: somebody wrote its last line anew, with a right checksum.
pub(crate) fn restore_promise(writers: &Path, chain_id: &str, rows: &mut [JournalRow]) -> bool {
    let Some((sequence, hash)) = promised(writers, chain_id) else { return false };
    let promises = rows.iter_mut().filter_map(|row| row.promise.as_mut());
    let mut others = promises.filter(|it| it.sequence == sequence && it.hash != hash);
    let Some(other) = others.next() else { return false };
    other.hash = hash;
    true
}

/// Returns the chains of whose journals the last entry is known.
pub(crate) fn chains(writers: &Path) -> Vec<String> {
    let mut chains = files_ending(writers, "lock");
    chains.retain(|chain| entry(writers, chain).is_some());
    chains
}

#[cfg(test)]
mod tests {
    use receipt::Hash;

    use super::*;

    #[test]
    fn an_end_replaces_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("c.lock")).unwrap();
        assert_eq!(entry(folder.path(), "c"), None, "nothing was committed");
        let end = ChainEnd { sequence: 7, hash: Some(Hash::of(b"")) };
        for (number, end) in [(1, ChainEnd::default()), (12, end), (13, end)] {
            write(&file, number, end).unwrap();
            assert_eq!(entry(folder.path(), "c"), Some(number));
            let promised = end.hash.map(|hash| (end.sequence, hash.to_string()));
            assert_eq!(super::promised(folder.path(), "c"), promised);
        }
        assert_eq!(file.metadata().unwrap().len(), 20 + 1 + 20 + 1 + 71 + 1);
        assert_eq!(chains(folder.path()), ["c"]);
    }
}
