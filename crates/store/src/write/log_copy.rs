//! Copies the write-ahead log into the file on a separate thread: it waits for the disk, which no
//! call should.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, Thread};

use rusqlite::Connection;

use crate::database::FILE;
use crate::error::StoreError;
use crate::limits::{LOG_COPY_BYTES, LOG_COPY_EVERY, LOG_COPY_PASSES_MAX};

/// The copying thread, which ends when this is dropped.
pub(crate) struct LogCopy {
    alive: Option<SyncSender<()>>,
    thread: Thread,
}

impl LogCopy {
    pub(crate) fn spawn(home: &Path) -> Result<LogCopy, StoreError> {
        let (file, log) = (home.join(FILE), home.join(format!("{FILE}-wal")));
        let (alive, ended) = sync_channel(0);
        let thread = thread::Builder::new()
            .name("ledger-log-copy".to_owned())
            .spawn(move || run(&file, &log, &ended))
            .map_err(|error| StoreError::Write(format!("cannot start a thread: {error}")))?;
        Ok(LogCopy { alive: Some(alive), thread: thread.thread().clone() })
    }

    /// Notifies the thread that the log has grown. It checks soon, and sleeps until then.
    pub(crate) fn look(&self) {
        self.thread.unpark();
    }
}

impl Drop for LogCopy {
    fn drop(&mut self) {
        self.alive = None;
        self.thread.unpark();
    }
}

fn run(file: &Path, log: &PathBuf, ended: &Receiver<()>) {
    let mut db = None;
    // The log keeps its size when it restarts, so only growth or age is significant.
    while ended.recv_timeout(LOG_COPY_EVERY) == Err(RecvTimeoutError::Timeout) {
        thread::park();
        let bytes = std::fs::metadata(log).map_or(0, |log| log.len());
        if bytes < LOG_COPY_BYTES {
            continue;
        }
        if db.is_none() {
            db = Connection::open(file).ok();
        }
        if let Some(db) = &db {
            copy(db);
        }
    }
}

/// Copies the log until nothing was added to it meanwhile. Only then does the writer begin it anew;
/// otherwise it would grow until the writer has to copy it, and calls would wait for that. What
/// fails now is done later.
fn copy(db: &Connection) {
    let mut copied = None;
    for _ in 0..LOG_COPY_PASSES_MAX {
        let pages: Option<i64> =
            db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1)).ok();
        if pages.is_none() || pages == copied {
            return;
        }
        copied = pages;
    }
}
