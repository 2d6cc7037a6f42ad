//! Files in folders that are held open: opened for reading, and replaced as a whole.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, mkdirat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::fault::{Fault, Result};
use super::limits;
use super::root::{Destination, Folder, Root, missing};

/// A regular file, open for reading, and its location.
pub(super) struct OpenFile {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

pub(super) fn open(root: &Root, path: &str) -> Result<OpenFile> {
    match root.find(path)? {
        Destination::Folder(folder) => Err(Fault::is_folder(&folder.path)),
        Destination::Missing(folder, names) => Err(missing(&folder, &names)),
        Destination::File(folder, name) => open_in(&folder, &name),
    }
}

pub(super) fn open_in(folder: &Folder, name: &OsStr) -> Result<OpenFile> {
    let path = folder.path.join(name);
    // A pipe without a writer must not block the thread.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = folder.open(name, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP => {
            Fault::said(format!("'{}' was replaced by a link; try again", path.display()))
        }
        error => Fault::system(&path, error),
    })?;
    let file = File::from(fd);
    let found = file.metadata().map_err(|error| Fault::io(&path, &error))?;
    if found.is_dir() {
        return Err(Fault::is_folder(&path));
    }
    if !found.is_file() {
        return Err(Fault::said(format!("'{}' is not a regular file", path.display())));
    }
    Ok(OpenFile { file, path, bytes: found.len() })
}

/// Writes a whole file, replacing an existing one and creating missing parent folders.
pub(super) fn write(root: &Root, path: &str, content: &[u8]) -> Result<PathBuf> {
    match root.find(path)? {
        Destination::Folder(folder) => Err(Fault::is_folder(&folder.path)),
        Destination::File(folder, name) => replace(root, &folder, &name, content),
        Destination::Missing(folder, names) => {
            let (name, above) = names.split_last().expect("at least one name is missing");
            let folder = make_all(root, folder, above)?;
            replace(root, &folder, name, content)
        }
    }
}

fn make_all(root: &Root, mut folder: Folder, names: &[OsString]) -> Result<Folder> {
    let refused = root.refused();
    for name in names {
        let path = folder.path.join(name);
        match mkdirat(&*folder.fd, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(Fault::system(&path, error)),
        }
        folder = folder.enter(name).map_err(|error| Fault::system(&path, error))?;
        if refused.has(&folder) {
            return Err(Fault::refused(&path.to_string_lossy()));
        }
    }
    Ok(folder)
}

/// Writes a temporary file next to the target, then renames it: no reader sees half a file, and a
/// link put there meanwhile is replaced, not followed.
pub(super) fn replace(
    root: &Root,
    folder: &Folder,
    name: &OsStr,
    content: &[u8],
) -> Result<PathBuf> {
    root.check_change(folder, name)?;
    let path = folder.path.join(name);
    let mode = match statat(&*folder.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => return Err(Fault::is_folder(&path)),
            FileType::RegularFile => Some(Mode::from_raw_mode(found.st_mode & 0o777)),
            FileType::Symlink => None,
            _ => return Err(Fault::said(format!("'{}' is not a regular file", path.display()))),
        },
        Err(Errno::NOENT) => None,
        Err(error) => return Err(Fault::system(&path, error)),
    };
    let mut temporary = Temporary::make(folder, mode.unwrap_or(Mode::from_raw_mode(0o666)))?;
    // Before the content: only readers of the target may read it there.
    if let Some(mode) = mode {
        fchmod(&temporary.file, mode).map_err(|error| Fault::system(&path, error))?;
    }
    let written = temporary.file.write_all(content).map_err(|error| Fault::io(&path, &error));
    written?;
    renameat(&*folder.fd, &temporary.name, &*folder.fd, name)
        .map_err(|error| Fault::system(&path, error))?;
    temporary.is_kept = true;
    Ok(path)
}

/// A file that is deleted unless it was moved into place.
struct Temporary {
    folder: Arc<std::os::fd::OwnedFd>,
    name: String,
    file: File,
    is_kept: bool,
}

impl Temporary {
    fn make(folder: &Folder, mode: Mode) -> Result<Temporary> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        for _ in 0..limits::ATTEMPTS_MAX {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!(".countersign-{}-{count}.tmp", std::process::id());
            match folder.open(name.as_ref(), flags, mode) {
                Ok(fd) => {
                    let (folder, file) = (folder.fd.clone(), File::from(fd));
                    return Ok(Temporary { folder, name, file, is_kept: false });
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(Fault::system(&folder.path.join(name), error)),
            }
        }
        Err(Fault::said(format!("cannot create a temporary file in '{}'", folder.path.display())))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = unlinkat(&*self.folder, &self.name, AtFlags::empty());
        }
    }
}
