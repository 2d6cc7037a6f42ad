//! The key of the vault: which one it is, where it is, and how it is made, loaded and discarded. A
//! key that is missing is an error; it is never replaced by another one.

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::config::SecretsKey;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::error::VaultError;
use super::file::{sync_folder, write_synced};
use super::keychain::{Keychain, KeychainFault, SystemKeychain};
use super::seal::{KEY_BYTES, Key};

/// The number of random bytes in a key's id.
const ID_BYTES: usize = 8;

/// The time for which the failure to load the key is repeated without another attempt: a keychain
/// that hangs must not make each server wait for its own timeout.
const FAILED_FOR: Duration = Duration::from_secs(2);

/// The place of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyHolder {
    Keychain,
    File,
}

impl KeyHolder {
    pub fn as_str(self) -> &'static str {
        match self {
            KeyHolder::Keychain => "keychain",
            KeyHolder::File => "file",
        }
    }

    /// Reports whether a key may stay here.
    pub(super) fn suits(self, choice: SecretsKey) -> bool {
        match choice {
            SecretsKey::Auto => true,
            SecretsKey::Keychain => self == KeyHolder::Keychain,
            SecretsKey::File => self == KeyHolder::File,
        }
    }
}

/// The key that a vault's file was encrypted with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyName {
    pub(super) id: String,
    pub(super) holder: KeyHolder,
}

/// The places of keys: a folder in the home, and the keychain.
pub(super) struct KeyPlaces {
    dir: PathBuf,
    keychain: Arc<dyn Keychain>,
}

/// The key in memory, or the failure of a moment ago.
#[derive(Default)]
pub(super) struct LoadedKey {
    key: Option<(KeyName, Key)>,
    failure: Option<(KeyName, VaultError, Instant)>,
}

impl LoadedKey {
    pub(super) fn get(&mut self, name: &KeyName, places: &KeyPlaces) -> Result<Key, VaultError> {
        if let Some((known, key)) = &self.key
            && known == name
        {
            return Ok(key.clone());
        }
        if let Some((failed, error, at)) = &self.failure
            && failed == name
            && at.elapsed() < FAILED_FOR
        {
            return Err(error.clone());
        }
        match places.load(name) {
            Ok(key) => {
                self.key = Some((name.clone(), key.clone()));
                Ok(key)
            }
            Err(error) => {
                self.failure = Some((name.clone(), error.clone(), Instant::now()));
                Err(error)
            }
        }
    }
}

impl KeyPlaces {
    pub(super) fn new(dir: &Path) -> KeyPlaces {
        KeyPlaces::with(dir, Arc::new(SystemKeychain))
    }

    pub(super) fn with(dir: &Path, keychain: Arc<dyn Keychain>) -> KeyPlaces {
        KeyPlaces { dir: dir.to_owned(), keychain }
    }

    /// Makes a new key where it was chosen to be. Without a choice that is the keychain, or a file
    /// if there is no keychain that can be used.
    pub(super) fn make(&self, choice: SecretsKey) -> Result<KeyName, VaultError> {
        let id = hex(&random::<ID_BYTES>()?[..]);
        let key = Zeroizing::new(hex(&random::<KEY_BYTES>()?[..]));
        let in_file = |id: String| {
            self.write(&id, &key)?;
            Ok(KeyName { id, holder: KeyHolder::File })
        };
        if choice == SecretsKey::File {
            return in_file(id);
        }
        match self.keychain.set(&id, &key) {
            Ok(()) => Ok(KeyName { id, holder: KeyHolder::Keychain }),
            Err(fault) if choice == SecretsKey::Auto => {
                tracing::info!(
                    "no keychain for the key of the secrets, so it is in a file: {fault}"
                );
                in_file(id)
            }
            Err(fault) => Err(VaultError::Keychain(fault.to_string())),
        }
    }

    pub(super) fn load(&self, name: &KeyName) -> Result<Key, VaultError> {
        if !is_id(&name.id) {
            return Err(VaultError::Key(format!("has no valid id ('{}')", name.id.escape_debug())));
        }
        let text = match name.holder {
            KeyHolder::File => self.read(&name.id)?,
            KeyHolder::Keychain => self.keychain.get(&name.id).map_err(|fault| match fault {
                KeychainFault::NoItem => {
                    VaultError::Key(format!("is not in the OS keychain any more (id {})", name.id))
                }
                fault => VaultError::Keychain(fault.to_string()),
            })?,
        };
        of_hex(text.trim())
            .ok_or_else(|| VaultError::Key(format!("{} is damaged", self.shown(name))))
    }

    pub(super) fn discard(&self, name: &KeyName) -> Result<(), VaultError> {
        if !is_id(&name.id) {
            return Ok(());
        }
        match name.holder {
            KeyHolder::File => {
                let path = self.path(&name.id);
                let removed = fs::remove_file(&path).and_then(|()| sync_folder(&path));
                removed.map_err(|error| VaultError::file(&path, &error))
            }
            KeyHolder::Keychain => {
                let removed = self.keychain.remove(&name.id);
                removed.map_err(|fault| VaultError::Keychain(fault.to_string()))
            }
        }
    }

    fn shown(&self, name: &KeyName) -> String {
        match name.holder {
            KeyHolder::File => format!("in '{}'", self.path(&name.id).display()),
            KeyHolder::Keychain => format!("in the OS keychain (id {})", name.id),
        }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.dir.join(format!("vault-{id}.key"))
    }

    fn write(&self, id: &str, key: &str) -> Result<(), VaultError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.dir);
        made.map_err(|error| VaultError::file(&self.dir, &error))?;
        let path = self.path(id);
        write_synced(&path, key.as_bytes()).map_err(|error| VaultError::file(&path, &error))
    }

    /// Reads a key from its file. Refuses a file that others can read, since it is no longer
    /// secret.
    fn read(&self, id: &str) -> Result<Zeroizing<String>, VaultError> {
        let path = self.path(id);
        let unusable = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => VaultError::Key(format!("'{}' is missing", path.display())),
            _ => VaultError::file(&path, &error),
        };
        let file = File::open(&path).map_err(unusable)?;
        let mode = file.metadata().map_err(unusable)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            let words = format!("other users can read it (mode {mode:o}): run 'chmod 600' on it");
            return Err(VaultError::file(&path, &words));
        }
        let mut text = Zeroizing::new(String::with_capacity(2 * KEY_BYTES + 2));
        file.take(2 * KEY_BYTES as u64 + 2).read_to_string(&mut text).map_err(unusable)?;
        Ok(text)
    }
}

fn random<const BYTES: usize>() -> Result<Zeroizing<[u8; BYTES]>, VaultError> {
    let mut bytes = Zeroizing::new([0; BYTES]);
    getrandom::fill(&mut bytes[..]).map_err(|error| {
        VaultError::Key(format!("cannot be made without random bytes: {error}"))
    })?;
    Ok(bytes)
}

fn is_id(id: &str) -> bool {
    id.len() == 2 * ID_BYTES && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)].into());
        text.push(DIGITS[usize::from(byte & 15)].into());
    }
    text
}

fn of_hex(text: &str) -> Option<Key> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    (text.len() == 2 * KEY_BYTES).then_some(key)
}
