//! Changes to files that belong to other programs, and the record of those that were made, with
//! copies of the files before and after.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::settings_file::{Access, SettingsFile, failed, text_of};
use crate::exit::Failure;
use crate::output;
use clients::edit::{self, EditFault, EntryEdit, Reversal};
use clients::{Preview, SettingsSyntax};

/// Changes remembered for `--undo`; the oldest units beyond that are forgotten.
const CHANGES_MAX: usize = 200;

/// The members of a file that are to change.
#[derive(Clone, Debug)]
pub(super) enum Edits {
    Entries(Vec<EntryEdit>),
    /// Items to add to lists.
    Items(Map<String, Value>),
}

/// A file with what is to change in it, and its text before and after, if known yet.
#[derive(Clone, Debug)]
pub(super) struct FileChange {
    pub(super) file: PathBuf,
    target: SettingsFile,
    pub(super) syntax: SettingsSyntax,
    /// The member of the file that holds what changes.
    pub(super) section: &'static str,
    pub(super) edits: Edits,
    pub(super) before: Option<String>,
    pub(super) after: String,
    mode: Option<u32>,
    pub(super) access: Access,
}

impl FileChange {
    /// Reads a file in which nothing changes yet. If the folder may be somebody else's, links do not
    /// lead out of it.
    pub(super) fn of(
        file: PathBuf,
        within: Option<&Path>,
        syntax: SettingsSyntax,
        section: &'static str,
    ) -> Result<FileChange, Failure> {
        let target = SettingsFile::at(&file, within)?;
        let (before, mode) = target.read()?.unzip();
        let after = before.clone().unwrap_or_default();
        let edits = Edits::Entries(Vec::new());
        let access = Access::Kept;
        Ok(FileChange { file, target, syntax, section, edits, before, after, mode, access })
    }

    /// Returns the entries of the file, as they are after the change.
    pub(super) fn entries(&self) -> Result<Map<String, Value>, Failure> {
        edit::servers(&self.after, self.syntax, self.section)
            .map_err(|fault| unreadable(&self.file, &fault))
    }

    /// Sets an entry, or removes it.
    pub(super) fn set(&mut self, name: &str, to: Option<Value>) -> Result<(), Failure> {
        let before = self.before.as_deref().unwrap_or_default();
        let from = edit::servers(before, self.syntax, self.section);
        let from = from.map_err(|fault| unreadable(&self.file, &fault))?.remove(name);
        if let Edits::Entries(edits) = &mut self.edits {
            edits.retain(|edit| edit.name != name);
            edits.push(EntryEdit { name: name.to_owned(), from, to });
        }
        self.finish()
    }

    /// Adds items to lists, instead of changing entries.
    pub(super) fn extend(&mut self, lists: Map<String, Value>) -> Result<(), Failure> {
        self.edits = Edits::Items(lists);
        self.finish()
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.after = self.applied(self.before.as_deref())?;
        Ok(())
    }

    fn applied(&self, text: Option<&str>) -> Result<String, Failure> {
        let text = text.unwrap_or_default();
        let applied = match &self.edits {
            // An empty text stays one if there is nothing to set.
            Edits::Entries(edits) => edit::apply(text, self.syntax, self.section, edits),
            Edits::Items(lists) => edit::extend_lists(text, self.section, lists),
        };
        applied.map_err(|fault| unreadable(&self.file, &fault))
    }

    pub(super) fn is_empty(&self) -> bool {
        let is_same = self.before.as_deref().unwrap_or_default() == self.after;
        is_same && self.narrowed_from().is_none()
    }

    /// Returns the permissions that the change takes away from other users.
    pub(super) fn narrowed_from(&self) -> Option<u32> {
        self.mode.filter(|mode| self.access == Access::Private && mode & 0o077 != 0)
    }

    /// Formats the change as lines with signs.
    pub(super) fn shown(&self) -> Vec<String> {
        let before = self.before.as_deref().unwrap_or_default();
        let narrowed = self.narrowed_from();
        let title = narrowed.map_or(format!("--- {}", self.file.display()), |mode| {
            format!("--- {} (mode {mode:o}, will be 600)", self.file.display())
        });
        let preview = Preview::new(&[before, &self.after], self.syntax, self.section);
        preview.lines(title, before, &self.after)
    }
}

/// One change that was made, kept in `<home>/connections/changes.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MadeChange {
    /// The changes of one unit are taken back together or not at all.
    pub(super) unit: u64,
    pub(super) client: String,
    pub(super) file: PathBuf,
    /// The file with its links resolved.
    pub(super) target: PathBuf,
    pub(super) syntax: SettingsSyntax,
    pub(super) section: String,
    /// The copy of the file as it was; absent if there was none.
    pub(super) before: Option<PathBuf>,
    /// The copy of the file as it was written.
    pub(super) after: PathBuf,
    /// The permissions that were taken away from other users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<u32>,
    #[serde(flatten)]
    pub(super) kept: KeptSecrets,
}

/// The secrets that were stored for a change besides the file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct KeptSecrets {
    pub(super) secrets: Vec<StoredSecret>,
    /// The agent token that was issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<String>,
}

/// A secret by its name, with the time it was set: a later one is somebody else's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredSecret {
    pub(super) name: String,
    pub(super) set_at: Timestamp,
}

/// The file of a change as it was and as it was written.
pub(super) struct ChangedTexts {
    pub(super) before: Option<String>,
    pub(super) after: String,
}

impl MadeChange {
    pub(super) fn texts(&self) -> Result<ChangedTexts, Failure> {
        let missing = |path: &Path| {
            Failure::system(format!(
                "the copy '{}' is missing: '{}' cannot be restored",
                path.display(),
                self.file.display()
            ))
        };
        let read = |path: &PathBuf| text_of(path)?.ok_or_else(|| missing(path));
        Ok(ChangedTexts {
            before: self.before.as_ref().map(read).transpose()?,
            after: read(&self.after)?,
        })
    }

    /// Returns the present text without the change; the error says what stands in the way.
    pub(super) fn reverted(
        &self,
        texts: &ChangedTexts,
        now: Option<&str>,
        loose: Option<&str>,
    ) -> Result<Option<String>, String> {
        let ChangedTexts { before, after } = texts;
        let Some(now) = now else {
            return if before.is_none() { Ok(None) } else { Err("it is gone".to_owned()) };
        };
        if now == after || before.as_deref() == Some(now) {
            return Ok(before.clone());
        }
        let reversal = Reversal {
            before: before.as_deref().unwrap_or_default(),
            after,
            syntax: self.syntax,
            section: &self.section,
            loose,
        };
        let text = reversal.apply(now).map_err(|EditFault(fault)| fault)?;
        Ok(Some(text).filter(|text| before.is_some() || !edit::is_empty(text)))
    }
}

impl MadeChange {
    fn copies(&self) -> impl Iterator<Item = &PathBuf> {
        self.before.iter().chain([&self.after])
    }
}

/// The right to change the record of a home, which one command has at a time. The system releases
/// it when the process ends.
pub(super) struct JournalLock {
    _file: File,
}

impl JournalLock {
    /// Waits for other commands, one of which may be asking a person.
    pub(super) fn take(home: &Path) -> Result<JournalLock, Failure> {
        let folder = folder(home);
        fs::create_dir_all(&folder).map_err(|error| failed("create", &folder, &error))?;
        let path = folder.join("lock");
        let fail = |error: std::io::Error| failed("lock", &path, &error);
        let opened =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = opened.map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                output::note("waiting for another 'countersign connect' of this home to end");
                file.lock().map_err(fail)?;
            }
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
        Ok(JournalLock { _file: file })
    }
}

fn folder(home: &Path) -> PathBuf {
    home.join("connections")
}

/// The record of what was changed, in the home.
pub(super) struct Journal {
    folder: PathBuf,
    changes: Vec<MadeChange>,
}

impl Journal {
    pub(super) fn open(home: &Path) -> Result<Journal, Failure> {
        let folder = folder(home);
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

    /// Returns the copies of a client's files as they were before a unit of changes.
    pub(super) fn backups(&self, unit: u64, client: &str) -> Vec<PathBuf> {
        let made = self.changes.iter();
        let made = made.filter(|change| change.unit == unit && change.client == client);
        made.filter_map(|change| change.before.clone()).collect()
    }

    /// Returns the number of a unit that has no changes yet.
    pub(super) fn next_unit(&self) -> u64 {
        self.changes.iter().map(|change| change.unit + 1).max().unwrap_or_default()
    }

    /// Makes a change: the copies first, then the record, then the file. If the file has changed by
    /// then, the change is made in the text that it has.
    pub(super) fn make(
        &mut self,
        unit: u64,
        client: &str,
        change: &FileChange,
        kept: KeptSecrets,
    ) -> Result<(), Failure> {
        let index = self.changes.len();
        let written = change.target.replace(change.access, &mut |now| {
            let after = change.applied(now)?;
            if now.unwrap_or_default() != after {
                remove_copies(self.changes.drain(index..));
                let before = now.map(|now| self.copy(client, "before", now)).transpose()?;
                let after = self.copy(client, "after", &after)?;
                self.changes.push(MadeChange {
                    unit,
                    client: client.to_owned(),
                    file: change.file.clone(),
                    target: change.target.path().to_owned(),
                    syntax: change.syntax,
                    section: change.section.to_owned(),
                    before,
                    after,
                    mode: change.narrowed_from(),
                    kept: kept.clone(),
                });
                self.save()?;
            }
            Ok(Some(after).filter(|after| now.is_some() || !after.is_empty()))
        });
        if written.is_err() && self.changes.len() > index {
            self.end(index..self.changes.len())?;
        }
        let surplus = self.surplus();
        if surplus > 0 {
            self.end(0..surplus)?;
        }
        written
    }

    /// Forgets the changes of a unit, and removes their copies.
    pub(super) fn forget(&mut self, unit: u64) -> Result<(), Failure> {
        let is_of_unit = |change: &mut MadeChange| change.unit == unit;
        let ended: Vec<MadeChange> = self.changes.extract_if(.., is_of_unit).collect();
        self.save()?;
        remove_copies(ended);
        Ok(())
    }

    /// Ends the record of some changes, and then removes their copies.
    fn end(&mut self, changes: Range<usize>) -> Result<(), Failure> {
        let ended: Vec<MadeChange> = self.changes.drain(changes).collect();
        self.save()?;
        remove_copies(ended);
        Ok(())
    }

    /// Returns the number of the oldest changes that are too many, in whole units. The newest unit
    /// always stays.
    fn surplus(&self) -> usize {
        let least = self.changes.len().saturating_sub(CHANGES_MAX);
        let starts_unit = |at: &usize| self.changes[*at].unit != self.changes[at - 1].unit;
        (least.max(1)..self.changes.len()).find(starts_unit).filter(|_| least > 0).unwrap_or(0)
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
        let record = SettingsFile::at(&self.folder.join("changes.json"), None)?;
        record.replace(Access::Private, &mut |_| Ok(Some(text.clone())))
    }
}

/// Removes the copies of changes whose record has ended: they may hold secrets.
fn remove_copies(ended: impl IntoIterator<Item = MadeChange>) {
    for change in ended {
        change.copies().for_each(|copy| drop(fs::remove_file(copy)));
    }
}

pub(super) fn unreadable(file: &Path, EditFault(fault): &EditFault) -> Failure {
    Failure::input(format!("'{}' is left alone: {fault}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a record of units with this many changes each, and a copy of each file.
    fn journal(folder: &Path, sizes: &[usize]) -> Journal {
        let units = sizes.iter().zip(0..);
        let units = units.flat_map(|(size, unit)| std::iter::repeat_n(unit, *size));
        let change = |(number, unit): (usize, u64)| {
            let after = folder.join(format!("x-{number}-after"));
            fs::write(&after, "secret").unwrap();
            MadeChange {
                unit,
                client: "x".to_owned(),
                file: folder.join("x"),
                target: folder.join("x"),
                syntax: SettingsSyntax::Json,
                section: "s".to_owned(),
                before: None,
                after,
                mode: None,
                kept: KeptSecrets::default(),
            }
        };
        Journal { folder: folder.to_owned(), changes: units.enumerate().map(change).collect() }
    }

    #[test]
    fn too_many_changes_end_in_whole_units() {
        let folder = tempfile::tempdir().unwrap();
        let of = |odd: usize, pairs: usize| [vec![1; odd], vec![2; pairs]].concat();
        for (sizes, surplus) in [
            (of(0, 100), 0),
            (of(1, 100), 1),
            (of(0, 101), 2),
            ([of(0, 100), vec![1]].concat(), 2),
            ([of(0, 100), vec![3]].concat(), 4),
        ] {
            assert_eq!(journal(folder.path(), &sizes).surplus(), surplus, "{sizes:?}");
        }
    }

    #[test]
    fn copies_go_with_their_record() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = journal(folder.path(), &[1, 2, 1]);
        journal.forget(1).unwrap();
        journal.end(0..1).unwrap();
        let mut left: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["changes.json", "x-3-after"]);
    }
}
