//! The journal of one chain: a file to which entries are appended, a line each. Only the chain's
//! writer touches it, so a commit is one write, without locks and without SQLite's pages.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::config::Durability;
use receipt::Hash;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::limits::JOURNAL_BYTES_KEPT;
use crate::record::{CallEnd, CallStart};
use crate::write::link::ChainEnd;
use crate::write::row::{JournalRow, ReceiptPromise, StartEntry};

pub(crate) struct Journal {
    file: File,
    path: PathBuf,
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

/// An entry as it is written.
#[derive(Default, Serialize)]
struct WrittenLine<'a> {
    entry: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<&'a CallStart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<&'a CallEnd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<WrittenPromise<'a>>,
}

/// The promise of a receipt, whose text is composed again from the rest.
#[derive(Serialize)]
struct WrittenPromise<'a> {
    sequence: u64,
    hash: Hash,
    issued_at: &'a str,
}

/// An entry as it is read.
#[derive(Deserialize)]
struct ReadLine {
    entry: i64,
    started: Option<CallStart>,
    arguments: Option<String>,
    ended: Option<CallEnd>,
    response: Option<String>,
    receipt: Option<ReadPromise>,
}

#[derive(Deserialize)]
struct ReadPromise {
    sequence: u64,
    hash: String,
    issued_at: String,
}

impl Journal {
    /// Opens the journal of a chain whose lock the caller holds. A new chain has an empty one.
    pub(crate) fn open(
        writers: &Path,
        chain_id: &str,
        durability: Durability,
    ) -> Result<Journal, StoreError> {
        let path = path(writers, chain_id);
        let opened = create(&path, durability).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length, file) = opened.map_err(|error| cannot(&path, &error))?;
        let lines = Vec::new();
        Ok(Journal { file, path, length, last: 0, is_torn: false, durability, lines })
    }

    /// Commits rows and assigns their numbers.
    pub(crate) fn append(&mut self, rows: &mut [JournalRow]) -> Result<(), StoreError> {
        let mut last = self.last;
        self.lines.clear();
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

    /// Returns the length of the committed content.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Continues in a new file with only what is still needed: the starts of running calls, and
    /// rows that have not been filed.
    pub(crate) fn begin_anew<'a>(
        &mut self,
        running: impl Iterator<Item = StartEntry<'a>>,
        unfiled: impl Iterator<Item = &'a JournalRow> + Clone,
    ) -> Result<(), StoreError> {
        let first = unfiled.clone().next().map_or(i64::MAX, |row| row.entry);
        let ending = unfiled
            .clone()
            .filter_map(|row| Some(StartEntry { entry: row.start?, call: row.call.as_deref()? }));
        self.lines.clear();
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

    /// Reads all that a dead process left, in order. An unfinished line was never confirmed to a
    /// caller.
    pub(crate) fn read(&mut self) -> Result<Vec<JournalRow>, StoreError> {
        let mut text = Vec::new();
        self.file.read_to_end(&mut text).map_err(|error| cannot(&self.path, &error))?;
        whole_lines(&text).map(|line| self.parse(line)).collect()
    }

    fn parse(&self, line: &[u8]) -> Result<JournalRow, StoreError> {
        let found: ReadLine = serde_json::from_slice(line).map_err(|error| {
            let name = self.path.display();
            let words = String::from_utf8_lossy(&line[..line.len().min(24)]).into_owned();
            let why = domain::json::explain(&error);
            StoreError::CorruptJournal(format!("'{name}', line starting with '{words}': {why}"))
        })?;
        let (mut started, mut ended) = (found.started, found.ended);
        if let Some(started) = &mut started {
            started.arguments.kept = found.arguments;
        }
        if let Some(ended) = &mut ended {
            ended.response.kept = found.response;
        }
        let promise = found.receipt.map(|receipt| ReceiptPromise {
            hash: receipt.hash,
            issued_at: Some(receipt.issued_at),
        });
        let (call, ended) = (started.map(Arc::new), ended.map(Arc::new));
        Ok(JournalRow { entry: found.entry, call, ended, start: None, link: None, promise })
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

/// Returns the last receipt that a chain's journal promises, in any process.
pub(crate) fn end_of(writers: &Path, chain_id: &str) -> Option<ChainEnd> {
    let text = fs::read(path(writers, chain_id)).ok()?;
    let lines: Vec<&[u8]> = whole_lines(&text).collect();
    let receipts = lines.iter().rev().filter_map(|line| {
        let found: ReadLine = serde_json::from_slice(line).ok()?;
        found.receipt
    });
    let last = receipts.into_iter().next()?;
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
    let text = fs::read(path(writers, chain_id)).ok()?;
    let read = |line| serde_json::from_slice(line).ok().filter(|it: &ReadLine| it.entry > filed);
    let lines: Vec<ReadLine> = whole_lines(&text).filter_map(read).collect();
    let promise = |line: &ReadLine| {
        let receipt = line.receipt.as_ref()?;
        Some((receipt.sequence, receipt.hash.parse().ok()?))
    };
    let receipts = lines.iter().filter_map(promise).collect();
    Some(UnfiledPromises { entries: lines.len(), receipts })
}

/// Returns the chains that have a journal.
pub(crate) fn chains(writers: &Path) -> Vec<String> {
    let files = fs::read_dir(writers).into_iter().flatten().flatten();
    let paths = files.map(|file| file.path());
    let journals = paths.filter(|path| path.extension().is_some_and(|end| end == "journal"));
    journals.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
}

fn path(writers: &Path, chain_id: &str) -> PathBuf {
    writers.join(format!("{chain_id}.journal"))
}

fn write_row(lines: &mut Vec<u8>, row: &JournalRow) {
    let started = row.call.as_deref().filter(|_| row.start.is_none());
    let ended = row.ended.as_deref();
    let receipt = row.link.as_ref().map(|link| WrittenPromise {
        sequence: link.sequence,
        hash: link.body.hash(),
        issued_at: &link.columns.issued_at,
    });
    let line = WrittenLine {
        entry: row.entry,
        started,
        arguments: started.and_then(|started| started.arguments.kept.as_deref()),
        ended,
        response: ended.and_then(|ended| ended.response.kept.as_deref()),
        receipt,
    };
    write_line(lines, &line);
}

fn write_line(lines: &mut Vec<u8>, line: &WrittenLine<'_>) {
    serde_json::to_writer(&mut *lines, line).expect("text and numbers can be written to memory");
    lines.push(b'\n');
}

fn whole_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    lines.filter_map(|line| line.strip_suffix(b"\n")).filter(|line| !line.is_empty())
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
    use super::*;
    use crate::record::tests::started;
    use crate::write::journal::Remnant;

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
        let rows = Journal::open(writers, "c", Durability::Process).unwrap().read().unwrap();
        let Remnant { unfiled, starts } = Remnant::of(rows, filed);
        let id =
            |row: &JournalRow| row.call.as_ref().map_or_else(String::new, |call| call.id.clone());
        let unfiled = unfiled.iter().map(|row| (row.entry, id(row))).collect();
        (unfiled, starts.into_iter().map(|start| start.entry).collect())
    }

    #[test]
    fn needed_rows_are_carried_over_into_a_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), "c", Durability::Disk).unwrap();
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
        journal.begin_anew(running.into_iter(), later.iter()).unwrap();
        assert!(journal.length < before);
        assert_eq!(found(folder.path(), 4), (unfiled, starts));
        journal.append(&mut [end("last", Some(6))]).unwrap();
        assert_eq!(found(folder.path(), 6), (vec![(7, "last".to_owned())], vec![1]));
    }

    #[test]
    fn uncommitted_rows_are_truncated_before_the_next_write() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), "c", Durability::Process).unwrap();
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
    fn an_empty_journal_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path(), "c", Durability::Process).unwrap();
        assert_eq!(chains(folder.path()), ["c"]);
        drop(journal);
        assert_eq!(chains(folder.path()), Vec::<String>::new());
    }
}
