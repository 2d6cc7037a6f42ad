//! The vault: people's secrets and the grants of servers, encrypted in one file of the home. The
//! key is in a separate file, in the OS keychain, or printed by a command. Names are not encrypted,
//! so that they can be listed without the key.
//!
//! Every change is on the disk before the call returns. Everything here blocks, for a minute if the
//! keychain or the command asks a person: call it off the async threads.

mod error;
mod file;
mod key;
mod keychain;
mod lock;
mod program;
mod seal;
mod secret;
mod synced;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use domain::config::SecretsKey;
use jiff::Timestamp;

pub use error::VaultError;
pub use key::KeyHolder;
pub use lock::NameLock;
pub use secret::Secret;

use file::{VaultEntry, VaultFile, VaultFolder};
use key::{Key, KeyName, KeyPlaces, LoadedKey};
use lock::FolderLock;

/// The folder of the home with its private keys, those of the ledger too.
pub const KEYS_FOLDER: &str = "keys";

/// The folder of the vault in the home.
pub const VAULT_FOLDER: &str = "secrets";

/// The longest value, which is longer than any token or certificate with its key.
pub const SECRET_BYTES_MAX: usize = 64 * 1024;
/// The longest name.
pub const SECRET_NAME_BYTES_MAX: usize = 512;
/// The most entries: the file is rewritten at every change.
pub const SECRETS_MAX: usize = 1_000;

/// A kind of entry. The same name in two spaces means two entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// Values that people set, for `${secret:NAME}`.
    Secret,
    /// Tokens that a server issued when a person signed in.
    Grant,
}

impl Space {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Space::Secret => "secret",
            Space::Grant => "grant",
        }
    }
}

/// An entry without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretName {
    pub name: String,
    pub set_at: Timestamp,
}

/// A handle to the vault of a home; clones share the key once it is loaded.
#[derive(Clone)]
pub struct Vault {
    inner: Arc<Inner>,
}

struct Inner {
    folder: VaultFolder,
    keys: KeyPlaces,
    choice: Mutex<SecretsKey>,
    loaded: Mutex<LoadedKey>,
    advised: Once,
}

impl Vault {
    /// Returns the vault of a home. Opens nothing: files, the keychain and the command are used when
    /// a secret is needed.
    pub fn of_home(home: &Path) -> Vault {
        Vault::with_keys(home, KeyPlaces::new(&home.join(KEYS_FOLDER)))
    }

    fn with_keys(home: &Path, keys: KeyPlaces) -> Vault {
        let inner = Inner {
            folder: VaultFolder::new(home.join(VAULT_FOLDER)),
            keys,
            choice: Mutex::new(SecretsKey::Auto),
            loaded: Mutex::default(),
            advised: Once::new(),
        };
        Vault { inner: Arc::new(inner) }
    }

    /// Sets where the key is to be. It takes effect when the next entry is set: until then the key
    /// stays where it is.
    pub fn choose_key(&self, choice: SecretsKey) {
        *hold(&self.inner.choice) = choice;
    }

    fn choice(&self) -> SecretsKey {
        hold(&self.inner.choice).clone()
    }

    /// Returns the file of the vault, which may not exist yet.
    pub fn file(&self) -> PathBuf {
        self.inner.folder.file()
    }

    /// Returns where the key is; `None` if nothing has been stored yet.
    pub fn key_holder(&self) -> Result<Option<KeyHolder>, VaultError> {
        Ok(self.inner.folder.read()?.map(|file| file.key.holder))
    }

    /// Returns how to move the key, if it is not where it was chosen to be.
    pub fn key_advice(&self) -> Result<Option<String>, VaultError> {
        let holder = self.key_holder()?;
        Ok(holder.and_then(|holder| self.inner.keys.advice(holder, &self.choice())))
    }

    /// Returns the names in a space, in order. Does not need the key.
    pub fn names(&self, space: Space) -> Result<Vec<SecretName>, VaultError> {
        let entries = self.inner.folder.read()?.map(|file| file.entries).unwrap_or_default();
        let entries = entries.into_iter().filter(|entry| entry.space == space.as_str());
        let named = entries.map(|entry| SecretName { name: entry.name, set_at: entry.set_at });
        Ok(named.collect())
    }

    /// Returns a value, or `None` if there is none under this name.
    pub fn get(&self, space: Space, name: &str) -> Result<Option<Secret>, VaultError> {
        let mut file = self.inner.folder.read()?;
        loop {
            let Some(found) = file else { return Ok(None) };
            let Some(entry) = found.entry(space, name) else { return Ok(None) };
            match self.opened(&found.key, entry) {
                Ok(secret) => {
                    self.log_advice(found.key.holder);
                    return Ok(Some(secret));
                }
                Err(error) => {
                    // Another process may have replaced the key since the file was read.
                    file = self.inner.folder.read()?;
                    if file.as_ref().is_none_or(|now| now.key == found.key) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Stores a value under a name, in place of an earlier one, and returns where its key is.
    pub fn set(&self, space: Space, name: &str, value: &Secret) -> Result<KeyHolder, VaultError> {
        check(name, value)?;
        let _lock = FolderLock::take(&self.inner.folder)?;
        let old = self.inner.folder.read()?;
        let (mut file, key) = match &old {
            Some(file) => self.with_chosen_key(file)?,
            None => {
                let (name, key) = self.inner.keys.make(&self.choice())?;
                (VaultFile::new(name), key)
            }
        };
        let entry = VaultEntry::new(space, name, Timestamp::now());
        let entry = seal::close(&key, &file.key.id, entry, value)?;
        file.put(entry);
        if file.entries.len() > SECRETS_MAX {
            let words = format!("there are {SECRETS_MAX} already: remove some that are not used");
            return Err(VaultError::Input(words));
        }
        self.inner.folder.write(&file)?;
        hold(&self.inner.loaded).keep(&file.key, &key);
        self.discard_key(old.filter(|old| old.key != file.key));
        Ok(file.key.holder)
    }

    /// Removes a value; returns false if there was none. Does not need the key, which is removed
    /// with the last entry.
    pub fn remove(&self, space: Space, name: &str) -> Result<bool, VaultError> {
        if self.inner.folder.read()?.is_none() {
            return Ok(false);
        }
        let _lock = FolderLock::take(&self.inner.folder)?;
        let Some(mut file) = self.inner.folder.read()? else { return Ok(false) };
        if !file.take(space, name) {
            return Ok(false);
        }
        if file.entries.is_empty() {
            self.inner.folder.remove()?;
            self.discard_key(Some(file));
        } else {
            self.inner.folder.write(&file)?;
        }
        Ok(true)
    }

    /// Waits for the lock of a name, which one holder at a time has, among all processes: for the
    /// time of a refresh, say. It does not keep others from reading and writing the entry.
    pub fn lock(&self, space: Space, name: &str) -> Result<NameLock, VaultError> {
        NameLock::take(&self.inner.folder, space, name)
    }

    /// Takes the lock of a name; `None` if somebody else has it.
    pub fn try_lock(&self, space: Space, name: &str) -> Result<Option<NameLock>, VaultError> {
        NameLock::try_take(&self.inner.folder, space, name)
    }

    /// Returns the file with its key where it was chosen to be. If that is elsewhere, the entries
    /// are encrypted anew, with another key.
    fn with_chosen_key(&self, file: &VaultFile) -> Result<(VaultFile, Key), VaultError> {
        let choice = self.choice();
        if file.key.holder.suits(&choice) {
            return Ok((file.clone(), self.key(&file.key)?));
        }
        // First, so that no new key is made if the old one cannot be had.
        self.key(&file.key)?;
        let (name, key) = self.inner.keys.make(&choice)?;
        let mut moved = VaultFile::new(name);
        for entry in &file.entries {
            let value = self.opened(&file.key, entry)?;
            let bare = VaultEntry { sealed: String::new(), ..entry.clone() };
            moved.put(seal::close(&key, &moved.key.id, bare, &value)?);
        }
        Ok((moved, key))
    }

    /// Logs once how to move a key that is not where it was chosen to be.
    fn log_advice(&self, holder: KeyHolder) {
        if let Some(advice) = self.inner.keys.advice(holder, &self.choice()) {
            self.inner.advised.call_once(|| tracing::warn!("{advice}"));
        }
    }

    fn opened(&self, name: &KeyName, entry: &VaultEntry) -> Result<Secret, VaultError> {
        let key = self.key(name)?;
        seal::open(&key, &name.id, entry).ok_or_else(|| {
            let what = format!("the {} '{}' cannot be decrypted", entry.space, entry.name);
            VaultError::damaged(&self.file(), &what)
        })
    }

    /// Returns the key, loaded at its first use. One thread at a time asks for it.
    fn key(&self, name: &KeyName) -> Result<Key, VaultError> {
        let choice = self.choice();
        hold(&self.inner.loaded).get(name, &choice, &self.inner.keys)
    }

    /// Removes the key of a file that is no longer in use. If that fails, a key is left that opens
    /// nothing.
    fn discard_key(&self, unused: Option<VaultFile>) {
        if let Some(VaultFile { key, .. }) = unused
            && let Err(error) = self.inner.keys.discard(&key)
        {
            tracing::warn!("cannot remove a key that is no longer used: {error}");
        }
    }
}

fn check(name: &str, value: &Secret) -> Result<(), VaultError> {
    let is_name = !name.is_empty() && !name.contains(char::is_control);
    if !is_name || name.len() > SECRET_NAME_BYTES_MAX {
        let words = format!(
            "the name of a secret has 1 to {SECRET_NAME_BYTES_MAX} bytes and no control characters"
        );
        return Err(VaultError::Input(words));
    }
    if value.expose().is_empty() || value.expose().len() > SECRET_BYTES_MAX {
        let words = format!("the value of '{name}' must have 1 to {SECRET_BYTES_MAX} bytes");
        return Err(VaultError::Input(words));
    }
    Ok(())
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
