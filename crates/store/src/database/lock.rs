//! Lock files in the home. A chain or run whose lock can be taken has lost its process.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::database::files_ending;
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
        loop {
            let file = open(&path)?;
            match file.try_lock() {
                // Its holder may have removed the file after it was opened here.
                Ok(()) if !is_at(&file, &path) => {}
                Ok(()) => return Ok(Some(Lock { file, path, remains: false })),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(cannot(&path, &error)),
            }
        }
    }

    /// Reports whether a process writes a chain, without taking its lock for longer than that.
    pub(crate) fn is_held(writers: &Path, chain_id: &str) -> bool {
        ["lock", "journal"].iter().any(|ending| {
            let file = File::open(writers.join(format!("{chain_id}.{ending}")));
            file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
        })
    }

    /// Returns the chains whose lock files are held.
    pub(crate) fn held(writers: &Path) -> Vec<String> {
        let mut chains = files_ending(writers, "lock");
        chains.retain(|name| name != "maintenance" && name != "decisions");
        chains.retain(|name| Lock::is_held(writers, name));
        chains
    }

    /// Leaves the file in place once the lock is released.
    pub(crate) fn leaving_its_file(self) -> Lock {
        let mut lock = self;
        lock.remains = true;
        lock
    }

    /// Returns the file, whose content its holder may write.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Reports whether the lock's file is still where other processes look for it.
    pub(crate) fn is_in_place(&self) -> bool {
        is_at(&self.file, &self.path)
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

    /// Waits for the lock that allows one process at a time to write the copy of the decisions, in
    /// milliseconds.
    pub(crate) fn decisions(writers: &Path) -> Result<Lock, StoreError> {
        let path = writers.join("decisions.lock");
        let file = open(&path)?;
        file.lock().map_err(|error| cannot(&path, &error))?;
        Ok(Lock { file, path, remains: true })
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

/// Reports whether a path leads to this open file.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let number = |found: std::io::Result<std::fs::Metadata>| {
        found.ok().map(|found| (found.dev(), found.ino()))
    };
    let open = number(file.metadata());
    open.is_some() && open == number(std::fs::metadata(path))
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.remains && self.is_in_place() {
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
