//! The private folder of a step: 0700, in the home, named after the process that made it, so that
//! leftovers of a killed process can be told from folders in use.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, test_kill_process};

const STEPS: &str = "steps";

pub(super) struct Folder(PathBuf);

/// Returns the folder of this process's step with that number.
pub(crate) fn path_of(home: &Path, number: usize) -> PathBuf {
    home.join(STEPS).join(format!("{}-{number}", std::process::id()))
}

impl Folder {
    pub(super) fn make(home: &Path, number: usize) -> Result<Folder, String> {
        let path = path_of(home, number);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| format!("cannot create the folder '{}': {error}", path.display()))?;
        Ok(Folder(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file that only the user can read.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        open.and_then(|mut file| file.write_all(bytes))
            .map_err(|error| format!("cannot write '{}': {error}", path.display()))?;
        Ok(path)
    }

    pub(super) fn remove(&self) {
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!("cannot remove '{}': {error}", self.0.display());
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes the folders of dead processes.
pub(crate) fn purge(home: &Path) {
    remove(home, |pid| pid.is_none_or(|pid| test_kill_process(pid).is_err()));
}

/// Removes the folders of this process.
pub(super) fn remove_own(home: &Path) {
    let own = rustix::process::getpid();
    remove(home, |pid| pid == Some(own));
}

/// Removes the folders that match, by the process in their name.
fn remove(home: &Path, is_wanted: impl Fn(Option<Pid>) -> bool) {
    for entry in fs::read_dir(home.join(STEPS)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.split('-').next()?.parse().ok());
        if is_wanted(pid.and_then(Pid::from_raw)) {
            Folder(entry.path()).remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_dead_processes_are_removed_and_others_kept() {
        let home = tempfile::tempdir().expect("a folder");
        let kept = Folder::make(home.path(), 0).expect("it can be made");
        kept.write("a", b"text").expect("it can be written");
        let left = home.path().join("steps/4194304999-0");
        fs::create_dir(&left).expect("it can be made");
        fs::write(left.join("step.json"), "{}").expect("it can be written");
        purge(home.path());
        assert!(kept.path().join("a").exists());
        assert!(!left.exists());
        let path = kept.path().to_owned();
        drop(kept);
        assert!(!path.exists());
    }
}
