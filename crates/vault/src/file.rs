//! The file of the vault: its form, and how it is read and replaced. A crash leaves the old file
//! or the new one.

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Space;
use super::error::VaultError;
use super::key::KeyName;
use super::synced::{sync_folder, write_synced};

const FILE: &str = "vault.json";
const VERSION: u32 = 1;

/// The longest file: it is rewritten as a whole at every change, and read at every use.
const FILE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The content of the file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VaultFile {
    version: u32,
    pub(super) key: KeyName,
    pub(super) entries: Vec<VaultEntry>,
}

/// An entry as it is stored.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VaultEntry {
    pub(super) space: String,
    pub(super) name: String,
    pub(super) set_at: Timestamp,
    /// The nonce, the encrypted value and its tag in Base64.
    pub(super) sealed: String,
}

/// The part that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl VaultEntry {
    pub(super) fn new(space: Space, name: &str, set_at: Timestamp) -> VaultEntry {
        let (space, name) = (space.as_str().to_owned(), name.to_owned());
        VaultEntry { space, name, set_at, sealed: String::new() }
    }

    fn is(&self, space: &str, name: &str) -> bool {
        self.space == space && self.name == name
    }
}

impl VaultFile {
    pub(super) fn new(key: KeyName) -> VaultFile {
        VaultFile { version: VERSION, key, entries: Vec::new() }
    }

    pub(super) fn entry(&self, space: Space, name: &str) -> Option<&VaultEntry> {
        self.entries.iter().find(|entry| entry.is(space.as_str(), name))
    }

    pub(super) fn put(&mut self, entry: VaultEntry) {
        self.entries.retain(|known| !known.is(&entry.space, &entry.name));
        self.entries.push(entry);
        self.entries.sort_by(|a, b| (&a.space, &a.name).cmp(&(&b.space, &b.name)));
    }

    /// Removes an entry; returns whether there was one.
    pub(super) fn take(&mut self, space: Space, name: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| !entry.is(space.as_str(), name));
        self.entries.len() < before
    }

    fn parse(path: &Path, bytes: &[u8]) -> Result<VaultFile, VaultError> {
        let unreadable = |error: serde_json::Error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            VaultError::damaged(path, &format!("not the JSON that was written ({place})"))
        };
        let Versioned { version } = serde_json::from_slice(bytes).map_err(unreadable)?;
        if version > VERSION {
            return Err(VaultError::Newer(path.display().to_string()));
        }
        let file: VaultFile = serde_json::from_slice(bytes).map_err(unreadable)?;
        let mut names: Vec<_> = file.entries.iter().map(|it| (&it.space, &it.name)).collect();
        names.sort_unstable();
        names.dedup();
        if names.len() < file.entries.len() {
            return Err(VaultError::damaged(path, "a name occurs twice"));
        }
        Ok(file)
    }
}

/// The folder of the vault in the home.
pub(super) struct VaultFolder {
    path: PathBuf,
}

impl VaultFolder {
    pub(super) fn new(path: PathBuf) -> VaultFolder {
        VaultFolder { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self) -> PathBuf {
        self.path.join(FILE)
    }

    pub(super) fn create(&self) -> Result<(), VaultError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        made.map_err(|error| VaultError::file(&self.path, &error))
    }

    /// Returns the content; `None` if nothing has been stored yet.
    pub(super) fn read(&self) -> Result<Option<VaultFile>, VaultError> {
        let path = self.file();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(VaultError::file(&path, &error)),
        };
        let mut bytes = Vec::new();
        let reading = file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
        reading.map_err(|error| VaultError::file(&path, &error))?;
        if bytes.len() > FILE_BYTES_MAX {
            return Err(VaultError::damaged(&path, "it is too long"));
        }
        VaultFile::parse(&path, &bytes).map(Some)
    }

    /// Replaces the content. The caller holds the lock of the folder.
    pub(super) fn write(&self, file: &VaultFile) -> Result<(), VaultError> {
        let text = serde_json::to_vec_pretty(file);
        let text = text.map_err(|error| VaultError::file(&self.file(), &error))?;
        if text.len() > FILE_BYTES_MAX {
            let words = "the secrets would exceed 16 MiB together: remove some that are not used";
            return Err(VaultError::Input(words.to_owned()));
        }
        write_synced(&self.file(), &text).map_err(|error| VaultError::file(&self.file(), &error))
    }

    /// Removes the file. The caller holds the lock of the folder.
    pub(super) fn remove(&self) -> Result<(), VaultError> {
        let removed = fs::remove_file(self.file()).and_then(|()| sync_folder(&self.file()));
        removed.map_err(|error| VaultError::file(&self.file(), &error))
    }
}
