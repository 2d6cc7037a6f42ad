//! The only route to a file. A path is walked component by component over directories that are held
//! open, no step follows a link implicitly, and a link's target is walked like the rest: swapping a
//! folder for a link during the walk does not redirect it. Forbidden folders are identified by
//! device and inode, whatever name leads there.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, openat, readlinkat, stat, statat};
use rustix::io::Errno;

use super::fault::{Fault, Result};
use super::limits;
use super::off_limits::OffLimits;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

pub(super) struct Root {
    /// The path without links.
    pub(super) path: PathBuf,
    /// The path as given, which may lead through links.
    given: PathBuf,
    /// The folder that no path may leave: the root, or `/` if outside access is allowed.
    anchor: Folder,
    off_limits: OffLimits,
}

/// A directory that is held open, and the path that led there.
#[derive(Clone)]
pub(super) struct Folder {
    pub(super) fd: Arc<OwnedFd>,
    pub(super) path: PathBuf,
}

/// The place a path leads to.
pub(super) enum Destination {
    Folder(Folder),
    /// An entry of a folder that is neither a folder nor, when it was checked, a link.
    File(Folder, OsString),
    /// Nothing exists; the missing names, in order.
    Missing(Folder, Vec<OsString>),
}

/// Identity of a file or folder, whatever its name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

/// The forbidden folders of one walk.
pub(super) struct RefusedFolders {
    ids: Vec<FileId>,
    paths: Vec<PathBuf>,
}

impl Root {
    pub(super) fn open(
        root: &Path,
        allow_outside: bool,
        off_limits: OffLimits,
    ) -> std::result::Result<Root, String> {
        let wrong = |words: String| format!("workspace root '{}': {words}", root.display());
        let path = root.canonicalize().map_err(|error| wrong(error.to_string()))?;
        let given = std::path::absolute(root).map_err(|error| wrong(error.to_string()))?;
        let anchor = if allow_outside { Path::new("/") } else { &path };
        let fd = openat(CWD, anchor, FOLDER | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| wrong(std::io::Error::from(error).to_string()))?;
        let anchor = Folder { fd: Arc::new(fd), path: anchor.to_owned() };
        let root = Root { path, given, anchor, off_limits };
        let refused = root.refused();
        let mut above = root.path.ancestors();
        if above.any(|folder| stat(folder).is_ok_and(|found| refused.ids.contains(&id(&found)))) {
            return Err(wrong(
                "it is inside Countersign's own home; choose another folder".to_owned(),
            ));
        }
        Ok(root)
    }

    /// Looked up for each walk: a home may be created after the root was opened.
    pub(super) fn refused(&self) -> RefusedFolders {
        let folders = &self.off_limits.folders;
        let ids = folders.iter().filter_map(|path| stat(path).ok()).map(|it| id(&it));
        let canonical = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        RefusedFolders { ids: ids.collect(), paths: folders.iter().map(canonical).collect() }
    }

    /// Refuses to change a file that is off limits. An existing file is identified by device and
    /// inode, whatever name or hard link leads to it; one that does not exist yet, by its folder
    /// and name.
    pub(super) fn check_change(&self, folder: &Folder, name: &OsStr) -> Result<()> {
        let here = fstat(&*folder.fd).ok().map(|found| id(&found));
        let found = statat(&*folder.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let found = found.map(|found| id(&found));
        let is_protected = |file: &PathBuf| {
            let same_file = || found.is_some() && stat(file).ok().map(|it| id(&it)) == found;
            let same_name = || {
                let same = file.file_name().is_some_and(|it| it.eq_ignore_ascii_case(name));
                let parent = || stat(file.parent()?).ok().map(|it| id(&it));
                same && here.is_some() && parent() == here
            };
            same_file() || same_name()
        };
        let path = || folder.path.join(name);
        let files = (self.off_limits.files)().map_err(|why| Fault::unchecked(&path(), &why))?;
        if files.iter().any(is_protected) { Err(Fault::protected(&path())) } else { Ok(()) }
    }

    /// Returns the path for an agent to use again: relative to the root if inside it.
    pub(super) fn shown<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.path).unwrap_or(path)
    }

    /// Resolves a path, links included.
    pub(super) fn find(&self, path: &str) -> Result<Destination> {
        for _ in 0..limits::ATTEMPTS_MAX {
            if let Some(place) = Walk::new(self, path)?.run()? {
                return Ok(place);
            }
        }
        Err(Fault::said(format!("'{path}' keeps changing; try again")))
    }

    pub(super) fn find_folder(&self, path: Option<&str>) -> Result<Folder> {
        match self.find(path.unwrap_or("."))? {
            Destination::Folder(folder) => Ok(folder),
            Destination::File(folder, name) => {
                Err(Fault::system(&folder.path.join(name), Errno::NOTDIR))
            }
            Destination::Missing(folder, names) => Err(missing(&folder, &names)),
        }
    }

    /// Splits a path into its parts below the anchor.
    fn parts(&self, path: &str) -> Result<Vec<OsString>> {
        if path.contains('\0') {
            return Err(Fault::said("a path must not contain a NUL character"));
        }
        let asked = Path::new(path);
        let below =
            [&self.path, &self.given].into_iter().find_map(|at| asked.strip_prefix(at).ok());
        let below = match below {
            Some(below) => below,
            None if asked.is_relative() => asked,
            None => return self.below_anchor(asked).ok_or_else(|| Fault::outside(path)),
        };
        let mut parts = self.below_anchor(&self.path).ok_or_else(|| Fault::outside(path))?;
        parts.extend(names(below));
        Ok(parts)
    }

    fn below_anchor(&self, path: &Path) -> Option<Vec<OsString>> {
        Some(names(path.strip_prefix(&self.anchor.path).ok()?).collect())
    }
}

impl RefusedFolders {
    pub(super) fn has(&self, folder: &Folder) -> bool {
        fstat(&*folder.fd).map_or(true, |found| self.ids.contains(&id(&found)))
    }

    /// Checks a path that does not exist yet.
    fn names(&self, path: &Path) -> bool {
        self.paths.iter().any(|refused| path.starts_with(refused))
    }
}

/// One attempt to resolve a path.
struct Walk<'a> {
    root: &'a Root,
    asked: &'a str,
    refused: RefusedFolders,
    /// The folders from the anchor down to the current one; `..` goes back up here, not on the
    /// disk.
    held: Vec<Folder>,
    /// The components still to be walked, the next one last.
    ahead: Vec<OsString>,
    links: usize,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Root, asked: &'a str) -> Result<Walk<'a>> {
        let mut ahead = root.parts(asked)?;
        ahead.reverse();
        let (refused, held) = (root.refused(), vec![root.anchor.clone()]);
        Ok(Walk { root, asked, refused, held, ahead, links: 0 })
    }

    fn here(&self) -> &Folder {
        self.held.last().expect("the anchor is always held")
    }

    /// Returns `None` if something changed during the walk, which must then start over.
    fn run(mut self) -> Result<Option<Destination>> {
        while let Some(name) = self.ahead.pop() {
            if name == ".." {
                if self.held.len() == 1 && self.root.anchor.path != Path::new("/") {
                    return Err(Fault::outside(self.asked));
                }
                self.held.truncate(self.held.len().saturating_sub(1).max(1));
                continue;
            }
            match self.here().enter(&name) {
                Ok(folder) if self.refused.has(&folder) => return Err(Fault::refused(self.asked)),
                Ok(folder) => self.held.push(folder),
                Err(Errno::NOENT) => return self.missing(name).map(Some),
                Err(Errno::NOTDIR | Errno::LOOP) => match self.here().link(&name) {
                    Ok(target) => self.follow(&target)?,
                    // Not a link: a file, if it is the last component.
                    Err(Errno::INVAL) if self.ahead.is_empty() => {
                        return Ok(Some(Destination::File(self.here().clone(), name)));
                    }
                    Err(Errno::INVAL) => return Err(self.fault(&name, Errno::NOTDIR)),
                    Err(Errno::NOENT) => return Ok(None),
                    Err(error) => return Err(self.fault(&name, error)),
                },
                Err(error) => return Err(self.fault(&name, error)),
            }
        }
        Ok(Some(Destination::Folder(self.here().clone())))
    }

    fn follow(&mut self, target: &Path) -> Result<()> {
        self.links += 1;
        if self.links > limits::LINKS_MAX {
            return Err(Fault::said(format!(
                "'{}' passes through too many symbolic links",
                self.asked
            )));
        }
        if !target.is_absolute() {
            self.ahead.extend(names(target).collect::<Vec<_>>().into_iter().rev());
            return Ok(());
        }
        let parts = self.root.below_anchor(target).ok_or_else(|| Fault::outside(self.asked))?;
        self.held.truncate(1);
        self.ahead.extend(parts.into_iter().rev());
        Ok(())
    }

    fn missing(mut self, name: OsString) -> Result<Destination> {
        let here = self.here().clone();
        self.ahead.push(name);
        self.ahead.reverse();
        let path = self.ahead.iter().fold(here.path.clone(), |path, name| path.join(name));
        if self.ahead.iter().any(|name| name == "..") {
            return Err(missing(&here, &self.ahead[..1]));
        }
        if self.refused.names(&path) {
            return Err(Fault::refused(self.asked));
        }
        Ok(Destination::Missing(here, self.ahead))
    }

    fn fault(&self, name: &OsStr, error: Errno) -> Fault {
        Fault::system(&self.here().path.join(name), error)
    }
}

pub(super) fn missing(folder: &Folder, names: &[OsString]) -> Fault {
    let path = names.iter().fold(folder.path.clone(), |path, name| path.join(name));
    Fault::system(&path, Errno::NOENT)
}

impl Folder {
    /// Opens a directory in this one, without following a link.
    pub(super) fn enter(&self, name: &OsStr) -> std::result::Result<Folder, Errno> {
        let fd = self.open(name, FOLDER, Mode::empty())?;
        Ok(Folder { fd: Arc::new(fd), path: self.path.join(name) })
    }

    /// Opens one name in this directory, without following a link.
    pub(super) fn open(
        &self,
        name: &OsStr,
        flags: OFlags,
        mode: Mode,
    ) -> std::result::Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            let beneath =
                ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
            match openat2(&*self.fd, name, flags, mode, beneath) {
                // An old kernel, or a sandbox that does not support the call.
                Err(Errno::NOSYS | Errno::PERM) => {}
                opened => return opened,
            }
        }
        openat(&*self.fd, name, flags, mode)
    }

    /// Reads the target of a link; `INVAL` if it is not one.
    fn link(&self, name: &OsStr) -> std::result::Result<PathBuf, Errno> {
        let target = readlinkat(&*self.fd, name, Vec::new())?;
        Ok(PathBuf::from(OsStr::from_bytes(target.to_bytes())))
    }
}

#[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
fn id(found: &Stat) -> FileId {
    FileId { device: found.st_dev as u64, inode: found.st_ino as u64 }
}

/// Returns the names in a path, without its root and `.`.
fn names(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}
