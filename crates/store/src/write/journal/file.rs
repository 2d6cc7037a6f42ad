//! The journal of one chain: a file to which entries are appended, a line each. Only the chain's
//! writer touches it, so a commit is one write, without locks and without SQLite's pages. The
//! writer holds a lock on the file, in case the chain's lock file is deleted.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use domain::config::Durability;
use receipt::Hash;

use super::line::{ChainHead, Header, Line, WrittenLine, read, write_line, write_row};
use super::scan::{DamagedLine, Scan};
use super::tail;
use crate::database::files_ending;
use crate::database::lock::is_at;
use crate::database::timestamp;
use crate::error::StoreError;
use crate::limits::JOURNAL_BYTES_KEPT;
use crate::write::link::ChainEnd;
use crate::write::row::{JournalRow, StartEntry};

pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    /// Written with the first entry; a chain that is recovered gets no entries.
    header: Option<Header>,
    /// The length of the committed content.
    length: u64,
    /// The number of the last entry.
    last: i64,
    /// Uncommitted bytes may lie beyond that length.
    is_torn: bool,
    durability: Durability,
    /// The lines about to be written; the next commit reuses the memory.
    lines: Vec<u8>,
}

impl Journal {
    /// Begins the journal of a new chain, whose lock the caller holds.
    pub(crate) fn begin(
        writers: &Path,
        header: Header,
        durability: Durability,
    ) -> Result<Journal, StoreError> {
        let path = path(writers, &header.chain);
        let journal = Journal::at(path, Some(header), durability)?;
        journal.ok_or_else(|| StoreError::Write("another process holds the journal".to_owned()))
    }

    /// Opens the journal that a dead process left; `None` if its writer lives, although the caller
    /// holds the lock of the chain.
    pub(crate) fn left(writers: &Path, chain_id: &str) -> Result<Option<Journal>, StoreError> {
        Journal::at(path(writers, chain_id), None, Durability::Process)
    }

    fn at(
        path: PathBuf,
        header: Option<Header>,
        durability: Durability,
    ) -> Result<Option<Journal>, StoreError> {
        loop {
            let file = create(&path, durability).map_err(|error| cannot(&path, &error))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(cannot(&path, &error)),
            }
            // Its writer may have begun another file meanwhile.
            if is_at(&file, &path) {
                let length = file.metadata().map_err(|error| cannot(&path, &error))?.len();
                let lines = Vec::new();
                let (last, is_torn) = (0, false);
                return Ok(Some(Journal {
                    file,
                    path,
                    header,
                    length,
                    last,
                    is_torn,
                    durability,
                    lines,
                }));
            }
        }
    }

    /// Commits rows and assigns their numbers.
    pub(crate) fn append(&mut self, rows: &mut [JournalRow]) -> Result<(), StoreError> {
        let mut last = self.last;
        self.lines.clear();
        if let (0, Some(header)) = (self.length, &self.header) {
            header.write(&mut self.lines);
        }
        for row in rows {
            last += 1;
            row.entry = last;
            write_row(&mut self.lines, row);
        }
        self.write()?;
        self.last = last;
        Ok(())
    }

    /// Tries to write an empty line, which has no meaning.
    pub(crate) fn probe(&mut self) -> Result<(), StoreError> {
        self.lines.clear();
        if let (0, Some(header)) = (self.length, &self.header) {
            header.write(&mut self.lines);
        }
        self.lines.push(b'\n');
        self.write()
    }

    fn write(&mut self) -> Result<(), StoreError> {
        let written = self.try_write();
        self.is_torn = written.is_err() && self.file.set_len(self.length).is_err();
        if self.lines.capacity() > JOURNAL_BYTES_KEPT {
            self.lines = Vec::new();
        }
        written.map_err(|error| cannot(&self.path, &error))
    }

    fn try_write(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.length)?;
        }
        self.file.write_all_at(&self.lines, self.length)?;
        sync(&self.file, self.durability)?;
        self.length += self.lines.len() as u64;
        Ok(())
    }

    /// Returns the number of the last entry.
    pub(crate) fn last(&self) -> i64 {
        self.last
    }

    /// Returns the last entry that a left journal had, according to the lock file of its chain.
    pub(crate) fn last_known(&self) -> Option<i64> {
        let chain_id = self.path.file_stem()?.to_str()?;
        tail::entry(self.path.parent()?, chain_id)
    }

    /// Makes the last promise that of the lock file; returns whether the journal had another one.
    pub(crate) fn restore_promise(&self, rows: &mut [JournalRow]) -> bool {
        let chain_id = self.path.file_stem().and_then(|name| name.to_str());
        let place = self.path.parent().zip(chain_id);
        place.is_some_and(|(writers, chain_id)| tail::restore_promise(writers, chain_id, rows))
    }

    /// Returns the length of the committed content.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Reports whether the file is where recovery looks for it.
    pub(crate) fn is_in_place(&self) -> bool {
        self.length == 0 || is_at(&self.file, &self.path)
    }

    /// Continues in a new file with only what is still needed: the starts of running calls, and
    /// rows that have not been filed. `head` is the last receipt of the chain, `key` the one that
    /// signs.
    pub(crate) fn begin_anew<'a>(
        &mut self,
        (head, key): (ChainEnd, String),
        running: impl Iterator<Item = StartEntry<'a>>,
        unfiled: impl Iterator<Item = &'a JournalRow> + Clone,
    ) -> Result<(), StoreError> {
        let first = unfiled.clone().next().map_or(i64::MAX, |row| row.entry);
        let ending = unfiled
            .clone()
            .filter_map(|row| Some(StartEntry { entry: row.start?, call: row.call.as_deref()? }));
        self.lines.clear();
        if let Some(header) = &mut self.header {
            header.filed = first.saturating_sub(1).min(self.last);
            header.head = filed_head(&header.chain, head, unfiled.clone());
            header.key = key;
            header.write(&mut self.lines);
        }
        for start in running.chain(ending).filter(|start| start.entry < first) {
            let line = WrittenLine {
                entry: start.entry,
                started: Some(start.call),
                arguments: start.call.arguments.kept.as_deref(),
                ..WrittenLine::default()
            };
            write_line(&mut self.lines, &line);
        }
        unfiled.for_each(|row| write_row(&mut self.lines, row));
        let new = self.new_path();
        let begun = create(&new, self.durability).and_then(|file| {
            // Before it has its name, so that no other process can take it for abandoned.
            file.lock()?;
            file.set_len(0)?;
            file.write_all_at(&self.lines, 0)?;
            sync(&file, self.durability)?;
            fs::rename(&new, &self.path)?;
            Ok(file)
        });
        self.file = begun.map_err(|error| {
            let _ = fs::remove_file(&new);
            cannot(&new, &error)
        })?;
        self.length = self.lines.len() as u64;
        sync_folder(&self.path, self.durability).map_err(|error| cannot(&self.path, &error))
    }

    /// Reads what a dead process left. An unfinished line was never confirmed to a caller.
    pub(crate) fn read(&mut self) -> Result<Scan, StoreError> {
        let mut text = Vec::new();
        self.file.read_to_end(&mut text).map_err(|error| cannot(&self.path, &error))?;
        Ok(Scan::of(&text))
    }

    /// Keeps damaged lines in a separate file, for a person to look at; returns its name.
    pub(crate) fn set_aside(&self, lines: &[DamagedLine]) -> Result<String, StoreError> {
        let path = self.path.with_extension(DAMAGED_ENDING);
        let mut options = OpenOptions::new();
        let written =
            options.append(true).create(true).mode(0o600).open(&path).and_then(|mut to| {
                for line in lines {
                    to.write_all(&line.bytes)?;
                    to.write_all(b"\n")?;
                }
                to.sync_all()
            });
        written.map_err(|error| cannot(&path, &error))?;
        Ok(path.file_name().unwrap_or_default().to_string_lossy().into_owned())
    }

    /// Keeps the journal under a name by which no process recovers it again; returns the name and
    /// the hash of its content. An empty one is removed.
    pub(crate) fn set_whole_aside(&self) -> Result<Option<(String, Hash)>, StoreError> {
        if self.length == 0 {
            self.remove();
            return Ok(None);
        }
        let failed = |error: io::Error| cannot(&self.path, &error);
        let hash = Hash::of_all(File::open(&self.path).map_err(failed)?).map_err(failed)?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let beginning = format!("{name}.aside-");
        let is_same = |kept: &String| {
            let file = File::open(self.path.with_file_name(kept));
            kept.starts_with(&beginning) && file.and_then(Hash::of_all).is_ok_and(|it| it == hash)
        };
        // A repair that made the database anew has read it again.
        if let Some(kept) = names_beside(&self.path).into_iter().find(is_same) {
            self.remove();
            return Ok(Some((kept, hash)));
        }
        let kept = format!("{beginning}{}", timestamp::now().replace(':', ""));
        fs::rename(&self.path, self.path.with_file_name(&kept)).map_err(failed)?;
        Ok(Some((kept, hash)))
    }

    /// Removes the journal, which is no longer needed.
    pub(crate) fn remove(&self) {
        // If it stays, the next process finds that all of it has been filed.
        let _ = fs::remove_file(&self.path);
        // Exists only if the process ended before it could replace the other.
        let _ = fs::remove_file(self.new_path());
    }

    fn new_path(&self) -> PathBuf {
        self.path.with_extension("journal-new")
    }
}

impl Drop for Journal {
    /// Removes an empty journal, such as that of a chain that could not be opened.
    fn drop(&mut self) {
        if self.length == 0 {
            self.remove();
        }
    }
}

/// The ending of a file with damaged lines of a journal.
pub(crate) const DAMAGED_ENDING: &str = "damaged";

/// Returns the last receipt of a chain that is filed when these rows are not.
fn filed_head<'a>(
    chain: &str,
    head: ChainEnd,
    unfiled: impl Iterator<Item = &'a JournalRow>,
) -> Option<ChainHead> {
    let (sequence, hash) = match unfiled.filter_map(|row| row.link.as_ref()).next() {
        Some(link) => (link.sequence - 1, link.previous?.to_string()),
        None => (head.sequence, head.hash?.to_string()),
    };
    Some(ChainHead { chain_id: chain.to_owned(), sequence, hash })
}

/// Returns the content of a chain's journal, in any process; `None` if there is no such file.
pub(crate) fn scan(writers: &Path, chain_id: &str) -> Option<Scan> {
    fs::read(path(writers, chain_id)).ok().map(|text| Scan::of(&text))
}

/// Returns the header of a chain's journal, in any process.
pub(crate) fn header(writers: &Path, chain_id: &str) -> Option<Header> {
    let mut line = Vec::new();
    let mut file = io::BufReader::new(File::open(path(writers, chain_id)).ok()?);
    io::BufRead::read_until(&mut file, b'\n', &mut line).ok()?;
    match read(line.strip_suffix(b"\n")?) {
        Ok(Line::Header(header)) => Some(*header),
        Ok(Line::Row(_)) | Err(_) => None,
    }
}

/// Returns the last receipt that a chain's journal promises, in any process.
pub(crate) fn end_of(writers: &Path, chain_id: &str) -> Option<ChainEnd> {
    let text = fs::read(path(writers, chain_id)).ok()?;
    let end = text.iter().rposition(|&byte| byte == b'\n')?;
    let lines = text[..end].rsplit(|&byte| byte == b'\n');
    let mut promises = lines.filter_map(|line| match read(line) {
        Ok(Line::Row(row)) => row.promise,
        Ok(Line::Header(_)) | Err(_) => None,
    });
    let last = promises.next()?;
    Some(ChainEnd { sequence: last.sequence, hash: Some(last.hash.parse().ok()?) })
}

/// Entries of a journal that have not been filed, and the receipts that they promise.
pub(crate) struct UnfiledPromises {
    pub(crate) entries: usize,
    /// Sequence and hash of each.
    pub(crate) receipts: Vec<(u64, Hash)>,
}

/// Returns what the journal of a chain holds beyond an entry, in any process; none without one.
pub(crate) fn unfiled(writers: &Path, chain_id: &str, filed: i64) -> Option<UnfiledPromises> {
    let mut rows = scan(writers, chain_id)?.rows;
    rows.retain(|row| row.entry > filed);
    let promise = |row: &JournalRow| {
        let promise = row.promise.as_ref()?;
        Some((promise.sequence, promise.hash.parse().ok()?))
    };
    let receipts = rows.iter().filter_map(promise).collect();
    Some(UnfiledPromises { entries: rows.len(), receipts })
}

/// Reports whether the journal of a chain or its lock file is there.
pub(crate) fn has_traces(writers: &Path, chain_id: &str) -> bool {
    let lock = writers.join(format!("{chain_id}.lock"));
    path(writers, chain_id).exists() || lock.exists()
}

/// Returns the names of the files in the folder of a file.
fn names_beside(path: &Path) -> Vec<String> {
    let files = path.parent().map(fs::read_dir).into_iter().flatten().flatten().flatten();
    files.filter_map(|file| file.file_name().into_string().ok()).collect()
}

/// Returns the chains that have a journal, the oldest first.
pub(crate) fn chains(writers: &Path) -> Vec<String> {
    // The ids of chains are ordered by time.
    files_ending(writers, "journal")
}

fn path(writers: &Path, chain_id: &str) -> PathBuf {
    writers.join(format!("{chain_id}.journal"))
}

fn create(path: &Path, durability: Durability) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    sync_folder(path, durability)?;
    Ok(file)
}

fn sync(file: &File, durability: Durability) -> io::Result<()> {
    match durability {
        Durability::Process => Ok(()),
        Durability::Disk => file.sync_data(),
    }
}

/// Syncs the folder, so that a file's name in it is as durable as its content.
fn sync_folder(path: &Path, durability: Durability) -> io::Result<()> {
    match (durability, path.parent()) {
        (Durability::Disk, Some(folder)) => File::open(folder)?.sync_all(),
        (Durability::Disk | Durability::Process, _) => Ok(()),
    }
}

fn cannot(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Write(format!("'{}': {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::record::tests::started;
    use crate::record::{CallEnd, CallStart};
    use crate::write::journal::Remnant;
    use crate::write::journal::line::HeaderFacts;

    fn begin(writers: &Path, durability: Durability) -> Journal {
        let (chain, key, opened_at) = ("c", String::new(), String::new());
        let facts = HeaderFacts { chain, key, opened_at, pid: 1, preceding: None };
        Journal::begin(writers, Header::new(facts), durability).unwrap()
    }

    fn call(id: &str) -> Arc<CallStart> {
        Arc::new(CallStart { id: id.to_owned(), ..started() })
    }

    fn start(id: &str) -> JournalRow {
        let call = Some(call(id));
        JournalRow { entry: 0, call, ended: None, start: None, link: None, promise: None }
    }

    fn end(id: &str, start: Option<i64>) -> JournalRow {
        let ended = Some(Arc::new(CallEnd::at_once(id.to_owned())));
        JournalRow { entry: 0, call: Some(call(id)), ended, start, link: None, promise: None }
    }

    /// Returns the remnant that a later process finds: the entries beyond `filed` with their calls,
    /// and the starts.
    fn found(writers: &Path, filed: i64) -> (Vec<(i64, String)>, Vec<i64>) {
        let scan = scan(writers, "c").unwrap();
        assert!(scan.damaged.is_empty() && scan.lost_after(filed).is_empty());
        let Remnant { unfiled, starts, .. } = Remnant::of(scan.rows, filed);
        let id =
            |row: &JournalRow| row.call.as_ref().map_or_else(String::new, |call| call.id.clone());
        let unfiled = unfiled.iter().map(|row| (row.entry, id(row))).collect();
        (unfiled, starts.into_iter().map(|start| start.entry).collect())
    }

    #[test]
    fn needed_rows_are_carried_over_into_a_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = begin(folder.path(), Durability::Disk);
        let mut rows = [start("runs"), start("ends"), start("new"), end("new", Some(3))];
        journal.append(&mut rows).unwrap();
        let mut later = [end("ends", Some(2)), start("last")];
        journal.append(&mut later).unwrap();
        let (unfiled, starts) = found(folder.path(), 4);
        assert_eq!(unfiled, [(5, "ends".to_owned()), (6, "last".to_owned())]);
        assert_eq!(starts, [1, 6]);

        let before = journal.length;
        let [running, ..] = &rows;
        let (entry, call) = (running.entry, running.call.as_deref().unwrap());
        let running = [StartEntry { entry, call }];
        let before_it = (ChainEnd::default(), "k".to_owned());
        journal.begin_anew(before_it, running.into_iter(), later.iter()).unwrap();
        let header = scan(folder.path(), "c").unwrap().header.unwrap();
        assert_eq!((header.filed, &*header.key, header.head), (4, "k", None));
        assert!(journal.length < before);
        assert_eq!(found(folder.path(), 4), (unfiled, starts));
        journal.append(&mut [end("last", Some(6))]).unwrap();
        assert_eq!(found(folder.path(), 6), (vec![(7, "last".to_owned())], vec![1]));
    }

    #[test]
    fn uncommitted_rows_are_truncated_before_the_next_write() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = begin(folder.path(), Durability::Process);
        journal.append(&mut [start("first")]).unwrap();
        // The state that a disk leaves if it fills up during a write.
        let mut torn = Vec::new();
        write_row(&mut torn, &JournalRow { entry: 2, ..start("refused") });
        write_row(&mut torn, &JournalRow { entry: 3, ..start("refused-too") });
        journal.file.write_all_at(&torn, journal.length).unwrap();
        journal.is_torn = true;
        journal.probe().unwrap();
        journal.append(&mut [end("first", Some(1))]).unwrap();
        let (unfiled, starts) = found(folder.path(), 0);
        assert_eq!(unfiled, [(1, "first".to_owned()), (2, "first".to_owned())]);
        assert_eq!(starts, Vec::<i64>::new());
    }

    #[test]
    fn a_journal_whose_writer_lives_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = begin(folder.path(), Durability::Process);
        journal.append(&mut [start("first")]).unwrap();
        assert!(Journal::left(folder.path(), "c").unwrap().is_none());
        let begun = (ChainEnd::default(), String::new());
        journal.begin_anew(begun, std::iter::empty(), [].iter()).unwrap();
        assert!(Journal::left(folder.path(), "c").unwrap().is_none(), "the new file");
        assert!(journal.is_in_place());
        fs::remove_file(folder.path().join("c.journal")).unwrap();
        assert!(!journal.is_in_place());
        let begun = (ChainEnd::default(), String::new());
        journal.begin_anew(begun, std::iter::empty(), [].iter()).unwrap();
        assert!(journal.is_in_place());
        drop(journal);
        assert!(Journal::left(folder.path(), "c").unwrap().is_some());
    }

    #[test]
    fn an_empty_journal_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let journal = begin(folder.path(), Durability::Process);
        assert_eq!(chains(folder.path()), ["c"]);
        drop(journal);
        assert_eq!(chains(folder.path()), Vec::<String>::new());
    }
}
