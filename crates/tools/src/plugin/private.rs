//! The private folder of one running plugin: 0700, with a path short enough for a socket in it,
//! named after the process that made it. It is removed with the plugin; folders left by a killed
//! process are removed when the next one is made.

use std::fs::{DirBuilder, DirEntry};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, getuid, test_kill_process};

use super::limits;

static NUMBER: AtomicUsize = AtomicUsize::new(0);

const ATTEMPTS_MAX: usize = 100;

/// The first part of a folder's name in the temporary folder, which others use as well.
const TEMPORARY: &str = "countersign-plugin-";

pub(super) struct Private(PathBuf);

impl Private {
    /// Creates a folder within this one, or in the temporary folder if its path would be too long.
    pub(super) fn make(within: &Path) -> Result<Private, String> {
        let fault = |path: &Path, error: std::io::Error| {
            format!("cannot create the folder '{}': {error}", path.display())
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(within)
            .map_err(|error| fault(within, error))?;
        let within = within.canonicalize().map_err(|error| fault(within, error))?;
        let temporary = std::env::temp_dir();
        purge(&within, "");
        purge(&temporary, TEMPORARY);
        let room = limits::SOCKET_PATH_BYTES_MAX - limits::SOCKET_NAME_BYTES;
        let is_short = |path: &Path| path.as_os_str().as_bytes().len() <= room;
        for _ in 0..ATTEMPTS_MAX {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}", std::process::id());
            let mut path = within.join(&name);
            if !is_short(&path) {
                path = temporary.join(format!("{TEMPORARY}{name}"));
            }
            if !is_short(&path) {
                return Err(format!("the path '{}' is too long for a socket", path.display()));
            }
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let whole = path.canonicalize().map_err(|error| fault(&path, error))?;
                    return Ok(Private(whole));
                }
                // The folder of another user, or of an older process with the same id.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(fault(&path, error)),
            }
        }
        Err(format!("cannot create a folder in '{}': every name is taken", within.display()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes folders of ours that processes left which are gone.
fn purge(within: &Path, prefix: &str) {
    for entry in std::fs::read_dir(within).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let own = name.to_str().and_then(|name| name.strip_prefix(prefix));
        let pid = own.and_then(|name| name.split_once('-')?.0.parse().ok());
        if let Some(pid) = pid.and_then(Pid::from_raw)
            && test_kill_process(pid) == Err(Errno::SRCH)
            && is_ours(&entry)
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Reports whether an entry is a folder of this user. A link is not followed.
fn is_ours(entry: &DirEntry) -> bool {
    entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == getuid().as_raw())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_private_and_removed_with_those_of_dead_processes() {
        let home = tempfile::tempdir().unwrap();
        let left = home.path().join("2147480000-1");
        std::fs::create_dir(&left).unwrap();
        let folder = Private::make(home.path()).unwrap();
        let path = folder.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert!(!left.exists() && path.starts_with(home.path().canonicalize().unwrap()));
        std::fs::write(path.join("x"), "y").unwrap();
        drop(folder);
        assert!(!path.exists() && home.path().exists());
    }

    #[test]
    fn an_oversized_path_is_replaced_by_a_short_one() {
        let home = tempfile::tempdir().unwrap();
        let long = home.path().join("x".repeat(100));
        let left = std::env::temp_dir().join(format!("{TEMPORARY}2147480001-7"));
        std::fs::create_dir_all(left.join("inside")).unwrap();
        let other = std::env::temp_dir().join(format!("{TEMPORARY}{}-other", std::process::id()));
        std::fs::create_dir_all(&other).unwrap();
        let folder = Private::make(&long).unwrap();
        assert!(!left.exists(), "the folder of a dead process");
        std::fs::remove_dir(&other).expect("the folder of a living process");
        assert!(!folder.path().starts_with(&long), "{}", folder.path().display());
        assert!(folder.path().as_os_str().len() < 80);
    }
}
