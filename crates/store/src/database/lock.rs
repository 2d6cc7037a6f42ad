//! Lock files in the home. A chain or run whose lock can be taken has lost its process.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::database::WRITERS;
use crate::error::StoreError;
use crate::limits::{MAINTENANCE_LOOK, MAINTENANCE_MAX};

/// A lock that the system releases when the process ends, however it ends.
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
    remains: bool,
}

impl Lock {
    /// Takes the lock of a chain; `None` if its writer lives. The file is removed with the lock.
    pub(crate) fn take(writers: &Path, chain_id: &str) -> Result<Option<Lock>, StoreError> {
        let path = writers.join(format!("{chain_id}.lock"));
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { file, path, remains: false })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(cannot(&path, &error)),
        }
    }

    /// Waits for the lock that allows one process at a time to migrate, apply retention or recover.
    pub(crate) fn maintenance(writers: &Path) -> Result<Lock, StoreError> {
        let deadline = Instant::now() + MAINTENANCE_MAX;
        loop {
            if let Some(lock) = Lock::try_maintenance(writers)? {
                return Ok(lock);
            }
            if Instant::now() >= deadline {
                let words = "another process has been maintaining it for too long; try again";
                return Err(StoreError::Write(words.to_owned()));
            }
            std::thread::park_timeout(MAINTENANCE_LOOK);
        }
    }

    /// Takes the maintenance lock; `None` if another process holds it.
    pub(crate) fn try_maintenance(writers: &Path) -> Result<Option<Lock>, StoreError> {
        let path = writers.join("maintenance.lock");
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { file, path, remains: true })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(cannot(&path, &error)),
        }
    }
}

/// Reports whether a process writes to the ledger of this home.
pub fn has_writer(home: &Path) -> bool {
    let writers = home.join(WRITERS);
    let files = std::fs::read_dir(&writers).into_iter().flatten().flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    names
        .filter_map(|name| Some(name.strip_suffix(".lock")?.to_owned()))
        .any(|chain_id| is_held(&writers, &chain_id))
}

/// Reports whether the writer of a chain lives. Creates nothing.
pub(crate) fn is_held(writers: &Path, chain_id: &str) -> bool {
    let path = writers.join(format!("{chain_id}.lock"));
    File::open(path)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.remains {
            // Removed while the lock is still held, so that no other process can hold it by then.
            let _ = std::fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Write(format!("cannot lock '{}': {error}", path.display()))
}
