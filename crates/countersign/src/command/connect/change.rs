//! Changes to files that belong to other programs: written whole or not at all, with a copy of what
//! was there, and taken back byte for byte.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use domain::trust::{DifferenceLine, line_difference};
use serde::{Deserialize, Serialize};

use crate::exit::Failure;

/// Changes remembered for `--undo`; older ones are forgotten, their copies stay.
const CHANGES_MAX: usize = 200;

/// Settings files of clients are a few kilobytes; Claude Code's own can hold a history.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The text of a file before and after; `before` is `None` if there was no file.
#[derive(Clone, Debug)]
pub(super) struct FileChange {
    pub(super) file: PathBuf,
    pub(super) before: Option<String>,
    pub(super) after: String,
}

impl FileChange {
    pub(super) fn is_empty(&self) -> bool {
        self.before.as_deref() == Some(&self.after)
    }

    pub(super) fn difference(&self) -> Vec<DifferenceLine> {
        line_difference(self.before.as_deref().unwrap_or_default(), &self.after)
    }
}

/// One change that was made, kept in `<home>/connections.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MadeChange {
    pub(super) client: String,
    pub(super) file: PathBuf,
    /// The copy of the file as it was; absent if there was none.
    pub(super) before: Option<PathBuf>,
    /// The copy of the file as it was written.
    pub(super) after: PathBuf,
    /// Names of secrets that were stored for it.
    #[serde(default)]
    pub(super) secrets: Vec<String>,
}

/// The record of what was changed, in the home.
pub(super) struct Journal {
    folder: PathBuf,
    changes: Vec<MadeChange>,
}

impl Journal {
    pub(super) fn open(home: &Path) -> Result<Journal, Failure> {
        let folder = home.join("connections");
        let changes = match fs::read(folder.join("changes.json")) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| {
                let file = folder.join("changes.json");
                Failure::system(format!("'{}' is damaged: {error}", file.display()))
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed("read", &folder, &error)),
        };
        Ok(Journal { folder, changes })
    }

    pub(super) fn changes(&self) -> &[MadeChange] {
        &self.changes
    }

    /// Makes a change: the copies first, then the record, then the file.
    pub(super) fn make(
        &mut self,
        client: &str,
        change: &FileChange,
        secrets: Vec<String>,
    ) -> Result<(), Failure> {
        let before = match &change.before {
            Some(text) => Some(self.copy(client, "before", text)?),
            None => None,
        };
        let after = self.copy(client, "after", &change.after)?;
        let file = change.file.clone();
        self.changes.push(MadeChange { client: client.to_owned(), file, before, after, secrets });
        let surplus = self.changes.len().saturating_sub(CHANGES_MAX);
        self.changes.drain(..surplus);
        self.save()?;
        replace(&change.file, change.before.as_deref(), Some(&change.after))
    }

    /// Puts another text in place of what a file has `now`, and forgets the change.
    pub(super) fn restore(
        &mut self,
        index: usize,
        now: Option<&str>,
        restored: Option<&str>,
    ) -> Result<(), Failure> {
        replace(&self.changes[index].file, now, restored)?;
        self.changes.remove(index);
        self.save()
    }

    fn copy(&self, client: &str, moment: &str, text: &str) -> Result<PathBuf, Failure> {
        fs::create_dir_all(&self.folder).map_err(|error| failed("create", &self.folder, &error))?;
        for number in 1.. {
            let path = self.folder.join(format!("{client}-{number}-{moment}"));
            let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            match opened {
                Ok(mut file) => {
                    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
                    written.map_err(|error| failed("write", &path, &error))?;
                    return Ok(path);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed("write", &path, &error)),
            }
        }
        unreachable!("the numbers do not end")
    }

    fn save(&self) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(&self.changes)
            .map_err(|error| Failure::system(format!("cannot write the record: {error}")))?;
        let path = self.folder.join("changes.json");
        write_whole(&path, &text, 0o600).map_err(|error| failed("write", &path, &error))
    }
}

/// Returns the text of a file; `None` if it does not exist.
pub(super) fn text_of(path: &Path) -> Result<Option<String>, Failure> {
    let text = match fs::metadata(path) {
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

/// Puts the new text in place if the file still has the old one. A link stays a link.
fn replace(path: &Path, old: Option<&str>, new: Option<&str>) -> Result<(), Failure> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if text_of(&path)?.as_deref() != old {
        return Err(Failure::call(format!(
            "'{}' was changed just now by another program: nothing was written; try again",
            path.display()
        )));
    }
    let done = match new {
        Some(text) => {
            let mode = fs::metadata(&path).map_or(0o600, |about| about.mode() & 0o7777);
            path.parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| write_whole(&path, text, mode))
        }
        None => fs::remove_file(&path),
    };
    done.map_err(|error| failed("write", &path, &error))
}

fn write_whole(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".countersign-{}", std::process::id()));
    let beside = path.with_file_name(name);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&beside)
        .and_then(|mut file| {
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

fn failed(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::system(format!("cannot {verb} '{}': {error}", path.display()))
}
