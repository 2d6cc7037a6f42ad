//! Searches a folder with several threads. One walks, and also searches when it is far enough
//! ahead; the others search the files it finds, and the results are assembled in the order of the
//! walk.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use super::search::{Desk, FileMatches, GrepSearch, Printout};
use crate::builtin::fault::Result;
use crate::builtin::root::Folder;
use crate::builtin::tree::{Notes, Tree, WalkStep};

/// More threads would only wait for the same disk.
const THREADS_MAX: usize = 4;

/// Files of one folder that are handed over together: handing over a single file costs about as
/// much as searching it.
const BATCH_FILES: usize = 32;

/// Batches not yet assembled. Each may hold as much as one result.
const UNDER_WAY_MAX: usize = 16;

/// Batches searched before other threads are started: starting one costs as much as searching some
/// files.
const ALONE_BATCHES: usize = 2;

struct Batch {
    number: usize,
    folder: Folder,
    names: Vec<OsString>,
}

type BatchResult = (usize, Result<FileMatches>);

pub(super) fn search(
    search: &GrepSearch<'_>,
    tree: &mut Tree<'_>,
    start: &Folder,
    wanted: Option<&dyn Fn(&Path) -> bool>,
) -> Result<Printout> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let (to_search, batches) = channel();
    let (to_print, searched) = channel();
    let batches = Mutex::new(batches);
    std::thread::scope(|scope| {
        let mut parallel = ParallelSearch {
            search,
            desk: search.desk(),
            to_search,
            batches: &batches,
            searched,
            start_others: &mut || {
                for _ in 1..threads {
                    let (batches, to_print) = (&batches, to_print.clone());
                    scope.spawn(move || work(search, batches, &to_print));
                }
            },
            batch: None,
            sent: 0,
            printed_batches: 0,
            waiting: BTreeMap::new(),
            printed: Printout::default(),
            notes: Notes::default(),
        };
        let walked = tree.walk(start, &mut |folder, name| {
            if wanted.is_some_and(|wanted| !wanted(&folder.path.join(&name))) {
                return Ok(WalkStep::More);
            }
            parallel.file(folder, name)
        });
        let gathered = walked.and_then(|()| parallel.rest());
        let ParallelSearch { printed, notes, .. } = parallel;
        tree.notes.append(notes);
        gathered.map(|()| printed)
    })
}

/// Searches until no batches are left or nothing receives the results.
fn work(search: &GrepSearch<'_>, batches: &Mutex<Receiver<Batch>>, to_print: &Sender<BatchResult>) {
    let mut desk = search.desk();
    loop {
        let next = batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(batch) = next else { return };
        if to_print.send(batch.searched(search, &mut desk)).is_err() {
            return;
        }
    }
}

impl Batch {
    fn searched(self, search: &GrepSearch<'_>, desk: &mut Desk) -> BatchResult {
        let mut found = FileMatches::default();
        let searched = self.names.iter().try_for_each(|name| {
            if found.printed.is_full {
                Ok(())
            } else {
                search.visit(desk, (&self.folder, name), &mut found)
            }
        });
        (self.number, searched.map(|()| found))
    }
}

/// The state of the thread that walks.
struct ParallelSearch<'a> {
    search: &'a GrepSearch<'a>,
    desk: Desk,
    to_search: Sender<Batch>,
    batches: &'a Mutex<Receiver<Batch>>,
    searched: Receiver<BatchResult>,
    start_others: &'a mut dyn FnMut(),
    /// The batch not handed over yet.
    batch: Option<Batch>,
    sent: usize,
    printed_batches: usize,
    /// Results that wait for an earlier one.
    waiting: BTreeMap<usize, Result<FileMatches>>,
    printed: Printout,
    notes: Notes,
}

impl ParallelSearch<'_> {
    fn file(&mut self, folder: &Folder, name: OsString) -> Result<WalkStep> {
        if self.batch.as_ref().is_some_and(|batch| batch.folder.path != folder.path) {
            self.send()?;
        }
        let batch = self.batch.get_or_insert_with(|| Batch {
            number: self.sent,
            folder: folder.clone(),
            names: Vec::with_capacity(BATCH_FILES),
        });
        batch.names.push(name);
        if batch.names.len() == BATCH_FILES {
            self.send()?;
        }
        Ok(if self.printed.is_full { WalkStep::Enough } else { WalkStep::More })
    }

    fn send(&mut self) -> Result<()> {
        if let Some(batch) = self.batch.take() {
            self.sent += 1;
            // The receiver lives as long as `self`.
            let _ = self.to_search.send(batch);
            if self.sent == ALONE_BATCHES {
                (self.start_others)();
            }
        }
        while self.sent - self.printed_batches > UNDER_WAY_MAX {
            self.take()?;
        }
        Ok(())
    }

    fn rest(&mut self) -> Result<()> {
        self.send()?;
        while self.printed_batches < self.sent && !self.printed.is_full {
            self.take()?;
        }
        Ok(())
    }

    /// Searches one batch, or waits for another thread's, and prints the batches whose turn it is.
    fn take(&mut self) -> Result<()> {
        // The thread that holds the lock takes a batch, or waits because there is none.
        let mine = self.batches.try_lock().ok().and_then(|batches| batches.try_recv().ok());
        let searched = match mine {
            Some(batch) => Some(batch.searched(self.search, &mut self.desk)),
            None => self.searched.recv().ok(),
        };
        self.waiting.extend(searched);
        self.waiting.extend(self.searched.try_iter());
        while let Some(found) = self.waiting.remove(&self.printed_batches) {
            let FileMatches { printed, notes } = found?;
            self.printed_batches += 1;
            self.notes.append(notes);
            if !self.printed.is_full {
                self.printed.append(self.search.gap(&self.printed), printed);
            }
        }
        Ok(())
    }
}
