//! A folder searched by several threads. One walks, others search what it comes upon, and what they
//! find is put together in the order of the walk.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use super::{Found, Printed, Search};
use crate::builtin::fault::Result;
use crate::builtin::root::Folder;
use crate::builtin::tree::{Next, Notes, Tree};

/// More threads wait for the same disk.
const THREADS_MAX: usize = 4;

/// Files of one folder that are handed over together: to hand over one costs about as much as to
/// search it.
const BATCH_FILES: usize = 32;

/// Batches that are not put together yet. Each may have found as much as one answer holds.
const UNDER_WAY_MAX: usize = 16;

struct Batch {
    number: usize,
    folder: Folder,
    names: Vec<OsString>,
}

type Searched = (usize, Result<Found>);

pub(super) fn search(
    search: &Search<'_>,
    tree: &mut Tree<'_>,
    start: &Folder,
    wanted: &dyn Fn(&Path) -> bool,
) -> Result<Printed> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let (to_search, batches) = channel();
    let (to_print, searched) = channel();
    let batches = Mutex::new(batches);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (batches, to_print) = (&batches, to_print.clone());
            scope.spawn(move || work(search, batches, &to_print));
        }
        let mut gathering = Gathering {
            search,
            to_search,
            searched,
            batch: None,
            sent: 0,
            printed_batches: 0,
            waiting: BTreeMap::new(),
            printed: Printed::default(),
            notes: Notes::default(),
        };
        let walked = tree.walk(start, &mut |_, folder, name| {
            if !wanted(&folder.path.join(name)) {
                return Ok(Next::More);
            }
            gathering.file(folder, name.to_owned())
        });
        let gathered = walked.and_then(|()| gathering.rest());
        let Gathering { printed, notes, .. } = gathering;
        tree.notes.append(notes);
        gathered.map(|()| printed)
    })
}

/// Searches until there is nothing more, or nobody who wants it.
fn work(search: &Search<'_>, batches: &Mutex<Receiver<Batch>>, to_print: &Sender<Searched>) {
    let mut searcher = search.searcher();
    loop {
        let next = batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Batch { number, folder, names }) = next else { return };
        let mut found = Found::default();
        let searched = names.iter().try_for_each(|name| match found.printed.is_full {
            true => Ok(()),
            false => search.visit(&mut searcher, (&folder, name), &mut found),
        });
        if to_print.send((number, searched.map(|()| found))).is_err() {
            return;
        }
    }
}

/// The side of the thread that walks.
struct Gathering<'a> {
    search: &'a Search<'a>,
    to_search: Sender<Batch>,
    searched: Receiver<Searched>,
    /// What is not handed over yet.
    batch: Option<Batch>,
    sent: usize,
    printed_batches: usize,
    /// Searched before an earlier one.
    waiting: BTreeMap<usize, Result<Found>>,
    printed: Printed,
    notes: Notes,
}

impl Gathering<'_> {
    fn file(&mut self, folder: &Folder, name: OsString) -> Result<Next> {
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
        Ok(if self.printed.is_full { Next::Enough } else { Next::More })
    }

    fn send(&mut self) -> Result<()> {
        if let Some(batch) = self.batch.take() {
            self.sent += 1;
            // The threads live as long as this does.
            let _ = self.to_search.send(batch);
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

    /// Waits for one batch, and prints those whose turn it is.
    fn take(&mut self) -> Result<()> {
        if let Ok((number, found)) = self.searched.recv() {
            self.waiting.insert(number, found);
        }
        while let Some(found) = self.waiting.remove(&self.printed_batches) {
            let Found { printed, notes } = found?;
            self.printed_batches += 1;
            self.notes.append(notes);
            if !self.printed.is_full {
                self.printed.append(self.search.gap(&self.printed), printed);
            }
        }
        Ok(())
    }
}
