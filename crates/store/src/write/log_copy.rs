//! Copies the write-ahead log into the file on a separate thread: it waits for the disk, which no
//! call should.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, Thread};

use rusqlite::Connection;

use crate::database::FILE;
use crate::error::StoreError;
use crate::limits::{LOG_COPY_BYTES, LOG_COPY_EVERY, LOG_COPY_PASSES_MAX, PAGE_BYTES};

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
    while ended.recv_timeout(LOG_COPY_EVERY) == Err(RecvTimeoutError::Timeout) {
        thread::park();
        // The log keeps its size when it is begun anew: only a small file says something.
        let bytes = std::fs::metadata(log).map_or(0, |log| log.len());
        if bytes < LOG_COPY_BYTES {
            continue;
        }
        if db.is_none() {
            db = Connection::open(file).ok();
        }
        if let Some(db) = db.as_ref().filter(|db| bytes_to_copy(db) >= LOG_COPY_BYTES) {
            copy(db);
        }
    }
}

/// Returns the bytes that were added to the log since the last copy.
fn bytes_to_copy(db: &Connection) -> u64 {
    let pages = db.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| {
        let [added, copied] = [row.get::<_, i64>(1)?, row.get::<_, i64>(2)?];
        Ok(u64::try_from(added - copied).unwrap_or_default())
    });
    pages.unwrap_or_default() * u64::from(PAGE_BYTES)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_copied_counts_no_more_although_the_log_keeps_its_size() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(FILE);
        let [writer, copier] = [(); 2].map(|()| Connection::open(&file).unwrap());
        let set_up = format!("PRAGMA page_size = {PAGE_BYTES}; PRAGMA journal_mode = wal;");
        writer.execute_batch(&set_up).unwrap();
        writer.execute_batch("PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (v BLOB);").unwrap();
        let fill = "INSERT INTO t VALUES (zeroblob(?))";
        let size = || std::fs::metadata(home.path().join(format!("{FILE}-wal"))).unwrap().len();

        let bytes = LOG_COPY_BYTES + 1;
        writer.execute(fill, [bytes]).unwrap();
        assert!((bytes..2 * bytes).contains(&bytes_to_copy(&copier)));
        let grown = size();
        copy(&copier);
        assert_eq!((bytes_to_copy(&copier), size()), (0, grown));
        writer.execute(fill, [1]).unwrap();
        assert_eq!(size(), grown, "the log is begun anew in its place");
        assert!(bytes_to_copy(&copier) < LOG_COPY_BYTES / 100);
    }
}
