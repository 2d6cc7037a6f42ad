//! Walks the files below a folder over held descriptors, without following links. Optionally skips
//! what `.gitignore` and `.ignore` name, and `.git`.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, Dir, FileType, statat};

use super::fault::{Fault, Result};
use super::file;
use super::limits::{DEPTH_MAX, IGNORE_FILE_BYTES_MAX, NOTED_MAX};
use super::root::{Folder, RefusedFolders, Root};
use super::stop::Stop;

/// Read in each folder; the later one takes precedence.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The treatment of ignore files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnoreFiles {
    Honoured,
    Off,
}

pub(super) struct Tree<'a> {
    pub(super) root: &'a Root,
    pub(super) stop: &'a Stop,
    ignoring: IgnoreFiles,
    refused: RefusedFolders,
    rules: Vec<Gitignore>,
    /// The entries that could not be read, for people.
    pub(super) notes: Notes,
}

#[derive(Default)]
pub(super) struct Notes {
    said: Vec<String>,
    left_out: usize,
}

/// The decision whether the walk continues.
#[derive(PartialEq, Eq)]
pub(super) enum WalkStep {
    More,
    Enough,
}

impl<'a> Tree<'a> {
    pub(super) fn new(root: &'a Root, stop: &'a Stop, ignoring: IgnoreFiles) -> Tree<'a> {
        let (rules, notes) = (Vec::new(), Notes::default());
        Tree { root, stop, ignoring, refused: root.refused(), rules, notes }
    }

    /// Visits every file below the folder, by name within each.
    pub(super) fn walk(
        &mut self,
        folder: &Folder,
        visit: &mut dyn FnMut(&Folder, OsString) -> Result<WalkStep>,
    ) -> Result<()> {
        self.learn_above(folder);
        self.folder(folder, 0, visit).map(|_| ())
    }

    fn folder(
        &mut self,
        folder: &Folder,
        depth: usize,
        visit: &mut dyn FnMut(&Folder, OsString) -> Result<WalkStep>,
    ) -> Result<WalkStep> {
        self.stop.check()?;
        if depth > DEPTH_MAX {
            self.notes
                .add(format!("{}: nested too deeply", self.root.shown(&folder.path).display()));
            return Ok(WalkStep::More);
        }
        let known = self.rules.len();
        let entries = self.entries(folder);
        self.learn_listed(folder, &entries);
        let mut next = WalkStep::More;
        for (name, kind) in entries {
            let is_folder = kind == FileType::Directory;
            if next == WalkStep::Enough || self.is_ignored(folder, &name, is_folder) {
                continue;
            }
            match kind {
                FileType::RegularFile => next = visit(folder, name)?,
                FileType::Directory => match folder.enter(&name) {
                    // Skipped without a note.
                    Ok(inner) if self.refused.has(&inner) => {}
                    Ok(inner) => next = self.folder(&inner, depth + 1, visit)?,
                    Err(error) => self.note(folder, &name, Fault::system(Path::new(&name), error)),
                },
                _ => {}
            }
        }
        self.rules.truncate(known);
        Ok(next)
    }

    fn entries(&mut self, folder: &Folder) -> Vec<(OsString, FileType)> {
        let mut entries = Vec::new();
        let listed = match Dir::read_from(&*folder.fd) {
            Ok(listed) => listed,
            Err(error) => {
                self.note(folder, OsStr::new(""), Fault::system(&folder.path, error));
                return entries;
            }
        };
        for entry in listed.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not report the type.
                FileType::Unknown => statat(&*folder.fd, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode)),
                kind => kind,
            };
            entries.push((name.to_owned(), kind));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries
    }

    fn note(&mut self, folder: &Folder, name: &OsStr, fault: Fault) {
        let path = folder.path.join(name);
        let shown = self.root.shown(&path).display().to_string();
        self.notes.fault(&shown, fault);
    }

    fn is_ignored(&self, folder: &Folder, name: &OsStr, is_folder: bool) -> bool {
        if self.ignoring == IgnoreFiles::Off {
            return false;
        }
        if name == ".git" {
            return true;
        }
        if self.rules.is_empty() {
            return false;
        }
        let path = folder.path.join(name);
        let said = self.rules.iter().rev().map(|rules| rules.matched(&path, is_folder));
        said.into_iter().find(|said| !said.is_none()).is_some_and(|said| said.is_ignore())
    }

    /// Reads the ignore files between the root and the start of the walk.
    fn learn_above(&mut self, folder: &Folder) {
        let Ok(below) = folder.path.strip_prefix(&self.root.path) else { return };
        let Ok(mut at) = self.root.find_folder(None) else { return };
        for name in below.iter() {
            IGNORE_FILES.iter().for_each(|file| self.learn(&at, OsStr::new(file)));
            match at.enter(name) {
                Ok(next) => at = next,
                Err(_) => return,
            }
        }
    }

    /// Reads only ignore files that were listed: most folders have none, and probing for one costs
    /// more than the listing.
    fn learn_listed(&mut self, folder: &Folder, entries: &[(OsString, FileType)]) {
        for name in IGNORE_FILES.map(OsStr::new) {
            if entries.binary_search_by(|(listed, _)| listed.as_os_str().cmp(name)).is_ok() {
                self.learn(folder, name);
            }
        }
    }

    fn learn(&mut self, folder: &Folder, name: &OsStr) {
        if self.ignoring == IgnoreFiles::Off {
            return;
        }
        let Ok(opened) = file::open_in(folder, name) else { return };
        let mut text = Vec::new();
        if opened.file.take(IGNORE_FILE_BYTES_MAX).read_to_end(&mut text).is_err() {
            return;
        }
        let mut builder = GitignoreBuilder::new(&folder.path);
        for line in String::from_utf8_lossy(&text).lines() {
            // A line that is not a pattern is skipped, as in git.
            let _ = builder.add_line(None, line);
        }
        self.rules.extend(builder.build().ok());
    }
}

impl Notes {
    pub(super) fn add(&mut self, note: String) {
        if self.said.len() < NOTED_MAX {
            self.said.push(note);
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn fault(&mut self, shown: &str, fault: Fault) {
        if let Fault::Said(words) = fault {
            self.add(format!("{shown}: {words}"));
        }
    }

    pub(super) fn append(&mut self, next: Notes) {
        self.left_out += next.left_out;
        next.said.into_iter().for_each(|note| self.add(note));
    }

    /// Formats the notes as one block of text; `None` if there are none.
    pub(super) fn text(&self) -> Option<String> {
        if self.said.is_empty() {
            return None;
        }
        let mut text = format!("[not read:\n{}", self.said.join("\n"));
        if self.left_out > 0 {
            text.push_str(&format!("\nand {} more", self.left_out));
        }
        Some(text + "]")
    }
}
