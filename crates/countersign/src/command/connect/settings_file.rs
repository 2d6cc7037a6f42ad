//! A settings file of another program: read whole, and replaced so that no edit is lost. The new
//! text changes places with the old one in one step; what comes out must be what the new text was
//! made from, otherwise the two change back and the work starts over.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::exit::Failure;

#[cfg(test)]
mod tests;

/// Settings files of clients are a few kilobytes; Claude Code's own can hold a history.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Tries to write a file that others change, and the pause between two of them: together a second.
const TRIES_MAX: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Tries to read a file that another program may be in the middle of writing.
const READS_MAX: u32 = 5;

/// Permissions of a file that only its owner may read.
const PRIVATE: u32 = 0o600;

/// Computes the new text from the present one; `None` means no file. It is called again whenever the
/// file has changed, and must return its own result unchanged.
pub(super) type Edit<'a> = dyn FnMut(Option<&str>) -> Result<Option<String>, Failure> + 'a;

/// The permissions that a file has after it was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// As before; a new file is private.
    Kept,
    /// Only its owner can read it.
    Private,
    Mode(u32),
}

/// A file that may be replaced, with all links resolved: a link stays a link.
#[derive(Clone, Debug)]
pub(super) struct SettingsFile {
    path: PathBuf,
}

/// The file as it was read.
struct Present {
    text: String,
    mode: u32,
    group: u32,
}

impl SettingsFile {
    /// Resolves the links of a path. Links in a folder that may be somebody else's must not lead out
    /// of it: `within`.
    pub(super) fn at(path: &Path, within: Option<&Path>) -> Result<SettingsFile, Failure> {
        let resolved = match path.canonicalize() {
            Ok(resolved) => resolved,
            Err(_) if path.is_symlink() => {
                return Err(Failure::input(format!(
                    "'{}' is a link that leads nowhere: remove it, or make the file that it names",
                    path.display()
                )));
            }
            Err(_) => beside_parent(path),
        };
        let within = within.and_then(|folder| folder.canonicalize().ok());
        if within.is_some_and(|folder| !resolved.starts_with(folder)) {
            return Err(Failure::input(format!(
                "'{}' is a link that leads out of this folder, to '{}': it is left alone",
                path.display(),
                resolved.display()
            )));
        }
        Ok(SettingsFile { path: resolved })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the text and the permissions; `None` if there is no file.
    pub(super) fn read(&self) -> Result<Option<(String, u32)>, Failure> {
        Ok(self.present()?.map(|present| (present.text, present.mode)))
    }

    /// Puts the text that `edit` makes of the present one in its place.
    pub(super) fn replace(&self, access: Access, edit: &mut Edit<'_>) -> Result<(), Failure> {
        for number in 1..=TRIES_MAX {
            if number > 1 {
                thread::park_timeout(PAUSE);
            }
            let present = self.present()?;
            let wanted = match edit(present.as_ref().map(|present| &*present.text)) {
                // Another program may be in the middle of writing it.
                Err(_) if number < READS_MAX => continue,
                wanted => wanted?,
            };
            let mode = access.mode(present.as_ref());
            let is_done = match (&present, &wanted) {
                (Some(present), Some(text)) => present.text == *text && present.mode == mode,
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            if is_done {
                return Ok(());
            }
            // The next round reads the file back.
            match wanted {
                Some(text) => self.put(present.as_ref(), &text, mode)?,
                None => self.take_away(present.as_ref())?,
            }
        }
        Err(Failure::call(format!(
            "CHANGED: another program keeps changing '{}': close it and try again",
            self.path.display()
        )))
    }

    /// Reads the file, unless replacing it would take it from somebody.
    fn present(&self) -> Result<Option<Present>, Failure> {
        let Some(text) = text_of(&self.path)? else { return Ok(None) };
        let about = match fs::metadata(&self.path) {
            Ok(about) => about,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &self.path, &error)),
        };
        let mode = about.mode() & 0o7777;
        let refusal = if about.uid() != rustix::process::geteuid().as_raw() {
            format!("belongs to another user (uid {}): run this command as that user", about.uid())
        } else if mode & 0o200 == 0 {
            "is read-only: run 'chmod u+w' on it if it may be changed".to_owned()
        } else if about.nlink() > 1 {
            format!("has {} names, which writing it would part: keep one of them", about.nlink())
        } else {
            return Ok(Some(Present { text, mode, group: about.gid() }));
        };
        Err(Failure::input(format!("'{}' {refusal}", self.path.display())))
    }

    /// Puts a text in place if the file still has the present one; otherwise does nothing.
    fn put(&self, present: Option<&Present>, text: &str, mode: u32) -> Result<(), Failure> {
        let fail = |error: &std::io::Error| failed("write", &self.path, error);
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(|error| fail(&error))?;
        }
        let beside = self.write_beside(present, text, mode)?;
        moment::reached(&self.path);
        let placed = match present {
            None => move_to_free(&beside, &self.path),
            Some(present) if !has_text(&self.path, &present.text) => {
                let _ = fs::remove_file(&beside);
                return Ok(());
            }
            Some(present) => {
                moment::reached(&self.path);
                match exchange(&beside, &self.path) {
                    Ok(()) => return self.settle(&beside, &present.text, text),
                    Err(error) if is_unsupported(error) => fs::rename(&beside, &self.path),
                    Err(error) => Err(error.into()),
                }
            }
        };
        if let Err(error) = placed {
            let _ = fs::remove_file(&beside);
            // Another program made or removed the file.
            let is_changed = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists);
            return if is_changed { Ok(()) } else { Err(fail(&error)) };
        }
        sync_folder(&self.path);
        Ok(())
    }

    /// Removes what the exchange took out, if the new text was made from it. Otherwise exchanges
    /// again: then another program wrote in between.
    fn settle(&self, beside: &Path, old: &str, new: &str) -> Result<(), Failure> {
        let fail = |error: Errno| failed("write", &self.path, &error.into());
        moment::reached(&self.path);
        if is_settled(beside, old) {
            let _ = fs::remove_file(beside);
            sync_folder(&self.path);
            return Ok(());
        }
        exchange(beside, &self.path).map_err(|error| self.kept(beside, &error.to_string()))?;
        moment::reached(&self.path);
        if is_settled(beside, new) {
            let _ = fs::remove_file(beside);
            return Ok(());
        }
        // That was written after the exchange, so it is newer than what has just been put back.
        exchange(beside, &self.path).map_err(fail)?;
        Err(self.kept(beside, "another program changed it twice meanwhile"))
    }

    /// Removes the file if it still has the present text; otherwise does nothing.
    fn take_away(&self, present: Option<&Present>) -> Result<(), Failure> {
        let Some(present) = present else { return Ok(()) };
        let beside = self.write_beside(Some(present), "", PRIVATE)?;
        moment::reached(&self.path);
        let taken = fs::rename(&self.path, &beside);
        if let Err(error) = taken {
            let _ = fs::remove_file(&beside);
            let is_gone = error.kind() == ErrorKind::NotFound;
            return if is_gone { Ok(()) } else { Err(failed("remove", &self.path, &error)) };
        }
        if is_settled(&beside, &present.text) {
            let _ = fs::remove_file(&beside);
            sync_folder(&self.path);
            return Ok(());
        }
        move_to_free(&beside, &self.path)
            .map_err(|error| self.kept(&beside, &format!("it could not be put back: {error}")))
    }

    fn kept(&self, beside: &Path, reason: &str) -> Failure {
        Failure::call(format!(
            "CHANGED: '{}' was changed by another program while it was written ({reason}): its \
             other text is kept in '{}'",
            self.path.display(),
            beside.display()
        ))
    }

    /// Writes a text to a new file in the same folder.
    fn write_beside(
        &self,
        present: Option<&Present>,
        text: &str,
        mode: u32,
    ) -> Result<PathBuf, Failure> {
        let (beside, mut file) = self.create_beside()?;
        let written = file
            .set_permissions(fs::Permissions::from_mode(mode))
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.sync_all())
            .and_then(|()| file.metadata());
        let about = written.map_err(|error| {
            let _ = fs::remove_file(&beside);
            failed("write", &self.path, &error)
        })?;
        if mode == PRIVATE && about.mode() & 0o077 != 0 {
            let _ = fs::remove_file(&beside);
            return Err(Failure::system(format!(
                "'{}' cannot be closed to other users: its file system has no permissions",
                self.path.display()
            )));
        }
        if let Some(present) = present.filter(|present| present.group != about.gid()) {
            // Fails for a group that we are not in; then the file gets our own.
            let _ = fchown(&file, None, Some(present.group));
        }
        Ok(beside)
    }

    fn create_beside(&self) -> Result<(PathBuf, File), Failure> {
        for number in 1.. {
            let mut name = self.path.file_name().unwrap_or_default().to_owned();
            name.push(format!(".countersign-{}-{number}", std::process::id()));
            let beside = self.path.with_file_name(name);
            let opened =
                OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&beside);
            match opened {
                Ok(file) => return Ok((beside, file)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed("write", &self.path, &error)),
            }
        }
        unreachable!("the numbers do not end")
    }
}

impl Access {
    fn mode(self, present: Option<&Present>) -> u32 {
        match (self, present) {
            (Access::Kept, Some(present)) => present.mode,
            (Access::Kept, None) | (Access::Private, _) => PRIVATE,
            (Access::Mode(mode), _) => mode,
        }
    }
}

/// Returns the text of a file; `None` if it does not exist.
pub(super) fn text_of(path: &Path) -> Result<Option<String>, Failure> {
    let text = match fs::metadata(path) {
        // Reading a pipe would wait, and reading a device may do anything.
        Ok(about) if !about.is_file() => {
            return Err(Failure::input(format!("'{}' is not a regular file", path.display())));
        }
        Ok(about) if about.len() > FILE_BYTES_MAX => {
            return Err(Failure::input(format!("'{}' is too large to edit", path.display())));
        }
        Ok(_) => fs::read(path),
        Err(error) => Err(error),
    };
    match text {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| {
            Failure::input(format!("'{}' is not UTF-8 and is left alone", path.display()))
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path, &error)),
    }
}

pub(super) fn failed(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::system(format!("cannot {verb} '{}': {error}", path.display()))
}

/// Resolves the links to the folder of a file that does not exist.
fn beside_parent(path: &Path) -> PathBuf {
    let existing = path.ancestors().skip(1).find_map(|folder| {
        let resolved = folder.canonicalize().ok()?;
        Some(resolved.join(path.strip_prefix(folder).ok()?))
    });
    existing.unwrap_or_else(|| path.to_owned())
}

/// Reports whether a file that was taken out has this text for good: no process is writing to it.
fn is_settled(path: &Path, text: &str) -> bool {
    has_text(path, text) && !writers::has_any(path) && has_text(path, text)
}

/// Reports whether a file can be read and has this text.
fn has_text(path: &Path, text: &str) -> bool {
    text_of(path).is_ok_and(|found| found.as_deref() == Some(text))
}

fn exchange(one: &Path, other: &Path) -> rustix::io::Result<()> {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)
}

/// Moves a file to a name that no file has.
pub(in crate::command) fn move_to_free(from: &Path, to: &Path) -> std::io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(error) if is_unsupported(error) => {
            fs::hard_link(from, to).and_then(|()| fs::remove_file(from))
        }
        moved => moved.map_err(std::io::Error::from),
    }
}

/// Reports whether the file system cannot rename in this way.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Makes a rename outlast a crash of the machine, if the file system can.
fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent() {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

/// Finds programs that still write to a file that was taken out of its place.
#[cfg(target_os = "linux")]
mod writers {
    use std::fs;
    use std::path::Path;

    /// Reports whether a process of this user has the file open for writing. The path is one without links.
    pub(super) fn has_any(path: &Path) -> bool {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        processes.into_iter().any(|process| {
            // Those of other users cannot be read; they cannot write here either.
            let files = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
            files.into_iter().any(|file| {
                let opened = fs::read_link(file.path()).unwrap_or_default();
                opened == path
                    && is_for_writing(&process.path().join("fdinfo").join(file.file_name()))
            })
        })
    }

    /// Reads the flags with which a file was opened.
    fn is_for_writing(about: &Path) -> bool {
        let text = fs::read_to_string(about).unwrap_or_default();
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        flags.is_some_and(|flags| flags & 0o3 != 0)
    }
}

#[cfg(not(target_os = "linux"))]
mod writers {
    pub(super) fn has_any(_path: &std::path::Path) -> bool {
        false
    }
}

/// The moments at which an edit of another program would be lost without a check. Tests use them.
#[cfg(not(test))]
mod moment {
    pub(super) fn reached(_path: &std::path::Path) {}
}

#[cfg(test)]
use tests::moment;
