//! Locks among processes and threads. The system releases them when the process ends, however it
//! ends.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use receipt::Hash;

use super::Space;
use super::error::VaultError;
use super::file::VaultFolder;

/// The time to wait for a process that changes the file, which takes milliseconds, or a minute if a
/// person has to unlock the key.
const CHANGE_MAX: Duration = Duration::from_secs(90);

/// The time to wait for the holder of a name: a request to another machine with its timeout.
const NAME_MAX: Duration = Duration::from_secs(90);

/// The interval between two attempts.
const LOOK: Duration = Duration::from_millis(10);

/// The right to change the file.
pub(super) struct FolderLock {
    _file: File,
}

/// The lock of one name, released when it is dropped.
#[derive(Debug)]
pub struct NameLock {
    _file: File,
}

impl FolderLock {
    pub(super) fn take(folder: &VaultFolder) -> Result<FolderLock, VaultError> {
        folder.create()?;
        let path = folder.path().join("lock");
        let file = locked(&path, CHANGE_MAX)?;
        Ok(FolderLock { _file: file.ok_or_else(|| busy(&path))? })
    }
}

impl NameLock {
    pub(super) fn take(
        folder: &VaultFolder,
        space: Space,
        name: &str,
    ) -> Result<NameLock, VaultError> {
        let path = path(folder, space, name)?;
        let file = locked(&path, NAME_MAX)?;
        Ok(NameLock { _file: file.ok_or_else(|| busy(&path))? })
    }

    pub(super) fn try_take(
        folder: &VaultFolder,
        space: Space,
        name: &str,
    ) -> Result<Option<NameLock>, VaultError> {
        let file = locked(&path(folder, space, name)?, Duration::ZERO)?;
        Ok(file.map(|file| NameLock { _file: file }))
    }
}

/// Returns the file of a name's lock. Its folder exists afterwards.
fn path(folder: &VaultFolder, space: Space, name: &str) -> Result<PathBuf, VaultError> {
    let locks = folder.path().join("locks");
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&locks);
    made.map_err(|error| VaultError::file(&locks, &error))?;
    // A name may have characters that a file's name must not have.
    let digest = Hash::of(name.as_bytes()).to_string();
    let digest = digest.trim_start_matches("sha256:");
    Ok(locks.join(format!("{}-{digest}", space.as_str())))
}

fn busy(path: &Path) -> VaultError {
    VaultError::Busy(path.display().to_string())
}

/// Opens a file, which stays there for good, and waits for its lock; `None` if that takes too long.
fn locked(path: &Path, wait: Duration) -> Result<Option<File>, VaultError> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(|error| VaultError::file(path, &error))?;
    let deadline = Instant::now() + wait;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) => return Err(VaultError::file(path, &error)),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(None),
            Err(TryLockError::WouldBlock) => std::thread::park_timeout(LOOK),
        }
    }
}
