//! The key of the vault: which one it is, where it is, and how it is made, loaded and discarded. A
//! key that is missing is an error; it is never replaced by another one.

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::digest;
use base64ct::{Base64, Encoding};
use domain::config::SecretsKey;
use serde::{Deserialize, Serialize};
use text::hex;
use zeroize::Zeroizing;

use super::error::VaultError;
use super::keychain::{Keychain, SystemKeychain};
use super::program::Programs;
use super::synced::{sync_folder, write_synced};

const KEY_BYTES: usize = 32;

/// The 32 bytes of a key, overwritten when they are dropped.
pub(super) type Key = Zeroizing<[u8; KEY_BYTES]>;

/// The number of bytes in a key's id.
const ID_BYTES: usize = 8;

/// The time for which a failure of the keychain or the command is repeated without another attempt:
/// otherwise each server would wait for its own timeout, and a person would be asked at every
/// attempt.
const FAILED_FOR: Duration = Duration::from_secs(10);

/// `auto` means the keychain, if it can be used: that of macOS needs no other program.
const PREFERS_KEYCHAIN: bool = cfg!(target_os = "macos");

/// The words for a key in the keychain although `auto` means a file.
const LEFT_IN_KEYCHAIN: &str = "the key of the secrets is in the OS keychain, but \"secrets.key\" in \
                                the config does not say so: set it to \"keychain\" to leave the key \
                                there, or to \"file\" and then set any secret again to move it";

/// The place of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyHolder {
    Keychain,
    File,
    /// The command of the config.
    Command,
}

impl KeyHolder {
    pub fn as_str(self) -> &'static str {
        match self {
            KeyHolder::Keychain => "keychain",
            KeyHolder::File => "file",
            KeyHolder::Command => "command",
        }
    }

    /// Returns the place in words.
    pub fn place(self) -> &'static str {
        match self {
            KeyHolder::Keychain => "in the OS keychain",
            KeyHolder::File => "in a file of the home",
            KeyHolder::Command => "printed by a command",
        }
    }

    /// Reports whether a key may stay here.
    pub(super) fn suits(self, choice: &SecretsKey) -> bool {
        match choice {
            SecretsKey::Auto => self != KeyHolder::Command,
            SecretsKey::Keychain => self == KeyHolder::Keychain,
            SecretsKey::File => self == KeyHolder::File,
            SecretsKey::Command(_) => self == KeyHolder::Command,
        }
    }
}

/// The key that a vault's file was encrypted with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyName {
    /// A random number, or for the key of a command its fingerprint.
    pub(super) id: String,
    pub(super) holder: KeyHolder,
}

/// The places of keys: a folder in the home, the keychain, and programs.
pub(super) struct KeyPlaces {
    pub(super) dir: PathBuf,
    pub(super) keychain: Arc<dyn Keychain>,
    pub(super) programs: Programs,
    /// `auto` means the keychain, if it can be used.
    pub(super) prefers_keychain: bool,
}

/// The key in memory, or the failure of a moment ago.
#[derive(Default)]
pub(super) struct LoadedKey {
    key: Option<(KeyName, Key)>,
    failure: Option<KeyFailure>,
}

struct KeyFailure {
    name: KeyName,
    choice: SecretsKey,
    error: VaultError,
    at: Instant,
}

impl KeyFailure {
    fn is_of(&self, name: &KeyName, choice: &SecretsKey) -> bool {
        self.name == *name && self.choice == *choice && self.at.elapsed() < FAILED_FOR
    }
}

impl LoadedKey {
    pub(super) fn get(
        &mut self,
        name: &KeyName,
        choice: &SecretsKey,
        places: &KeyPlaces,
    ) -> Result<Key, VaultError> {
        if let Some((known, key)) = &self.key
            && known == name
        {
            return Ok(key.clone());
        }
        if let Some(failure) = self.failure.as_ref().filter(|it| it.is_of(name, choice)) {
            return Err(failure.error.clone());
        }
        match places.load(name, choice) {
            Ok(key) => {
                self.keep(name, &key);
                Ok(key)
            }
            Err(error) => {
                // A file is read in no time.
                self.failure = (name.holder != KeyHolder::File).then(|| KeyFailure {
                    name: name.clone(),
                    choice: choice.clone(),
                    error: error.clone(),
                    at: Instant::now(),
                });
                Err(error)
            }
        }
    }

    pub(super) fn keep(&mut self, name: &KeyName, key: &Key) {
        self.key = Some((name.clone(), key.clone()));
    }
}

impl KeyPlaces {
    pub(super) fn new(dir: &Path) -> KeyPlaces {
        let programs = Programs::of_system();
        let keychain = Arc::new(SystemKeychain::new(&programs));
        KeyPlaces { dir: dir.to_owned(), keychain, programs, prefers_keychain: PREFERS_KEYCHAIN }
    }

    /// Makes a key where it was chosen to be, or takes that of the command.
    pub(super) fn make(&self, choice: &SecretsKey) -> Result<(KeyName, Key), VaultError> {
        let holder = match choice {
            SecretsKey::Command(words) => {
                let key = self.printed(words)?;
                return Ok((KeyName { id: fingerprint(&key), holder: KeyHolder::Command }, key));
            }
            SecretsKey::Keychain => KeyHolder::Keychain,
            SecretsKey::Auto if self.prefers_keychain => KeyHolder::Keychain,
            SecretsKey::Auto | SecretsKey::File => KeyHolder::File,
        };
        let name = KeyName { id: hex::encode(&random::<ID_BYTES>()?[..]), holder };
        let text = Zeroizing::new(hex::encode(&random::<KEY_BYTES>()?[..]));
        let name = self.put(name, &text, choice)?;
        // As it will be loaded later, so that nothing is encrypted with a key that was not kept.
        let key = self.load(&name, choice)?;
        Ok((name, key))
    }

    /// Puts a new key into its place. Without a keychain that can be used, `auto` means a file.
    fn put(&self, name: KeyName, key: &str, choice: &SecretsKey) -> Result<KeyName, VaultError> {
        if name.holder == KeyHolder::Keychain {
            match self.keychain.set(&name.id, key) {
                Ok(()) => return Ok(name),
                Err(fault) if *choice == SecretsKey::Auto => {
                    tracing::info!(
                        "no keychain for the key of the secrets, so it is in a file: {fault}"
                    );
                }
                Err(fault) => return Err(VaultError::Keychain(fault)),
            }
        }
        self.write(&name.id, key)?;
        Ok(KeyName { holder: KeyHolder::File, ..name })
    }

    pub(super) fn load(&self, name: &KeyName, choice: &SecretsKey) -> Result<Key, VaultError> {
        if !is_id(&name.id) {
            return Err(VaultError::Key(format!("has no valid id ('{}')", name.id.escape_debug())));
        }
        let text = match (name.holder, choice) {
            (KeyHolder::File, _) => self.read(&name.id)?,
            (KeyHolder::Keychain, _) => {
                self.keychain.get(&name.id).map_err(VaultError::Keychain)?
            }
            (KeyHolder::Command, SecretsKey::Command(words)) => {
                return same(self.printed(words)?, name).ok_or_else(|| another(&name.id));
            }
            (KeyHolder::Command, SecretsKey::Auto | SecretsKey::File | SecretsKey::Keychain) => {
                return self.exported(name);
            }
        };
        parsed(&text).ok_or_else(|| VaultError::Key(format!("{} is damaged", self.shown(name))))
    }

    /// Returns the key of a command that the config does not name any more, from the file into which
    /// a person has put it, so that it can be moved.
    fn exported(&self, name: &KeyName) -> Result<Key, VaultError> {
        let path = self.path(&name.id);
        if !path.exists() {
            return Err(VaultError::Key(format!(
                "comes from a command, which \"secrets.key\" in the config does not name any more: \
                 name it again, or, to move the key, have the command write it into '{}' (mode \
                 0600) and set any secret again",
                path.display()
            )));
        }
        let key = parsed(&self.read(&name.id)?).and_then(|key| same(key, name));
        key.ok_or_else(|| VaultError::Key(format!("is not the one in '{}'", path.display())))
    }

    /// Runs the command and returns the key that it prints.
    fn printed(&self, words: &[String]) -> Result<Key, VaultError> {
        let output = self.programs.run(words, None);
        let output = output.map_err(|fault| VaultError::Command(fault.to_string()))?;
        str::from_utf8(&output).ok().and_then(parsed).ok_or_else(|| {
            let words = "it did not print a key, which is one line with 32 bytes in Base64 or hex \
                         ('openssl rand -base64 32' makes one)";
            VaultError::Command(words.to_owned())
        })
    }

    /// Returns how to move a key that is not where the config says.
    pub(super) fn advice(&self, holder: KeyHolder, choice: &SecretsKey) -> Option<String> {
        let is_left = holder == KeyHolder::Keychain && *choice == SecretsKey::Auto;
        if is_left && !self.prefers_keychain {
            return Some(LEFT_IN_KEYCHAIN.to_owned());
        }
        (!holder.suits(choice)).then(|| {
            let place = holder.place();
            format!(
                "the key of the secrets is {place}, and not where \"secrets.key\" in the config \
                 says: set any secret again to move it"
            )
        })
    }

    pub(super) fn discard(&self, name: &KeyName) -> Result<(), VaultError> {
        if !is_id(&name.id) {
            return Ok(());
        }
        if name.holder == KeyHolder::Keychain {
            return self.keychain.remove(&name.id).map_err(VaultError::Keychain);
        }
        let path = self.path(&name.id);
        match fs::remove_file(&path).and_then(|()| sync_folder(&path)) {
            // The key of a command has a file only while it is moved.
            Err(error)
                if name.holder == KeyHolder::Command && error.kind() == ErrorKind::NotFound =>
            {
                Ok(())
            }
            removed => removed.map_err(|error| VaultError::file(&path, &error)),
        }
    }

    fn shown(&self, name: &KeyName) -> String {
        match name.holder {
            KeyHolder::File => format!("in '{}'", self.path(&name.id).display()),
            KeyHolder::Keychain => format!("in the OS keychain (id {})", name.id),
            KeyHolder::Command => format!("of the command (id {})", name.id),
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

/// Reads a key in hex or Base64, alone on its line.
fn parsed(text: &str) -> Option<Key> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if hex::decode(text, &mut key[..]).is_some() {
        return Some(key);
    }
    let length = Base64::decode(text, &mut key[..]).ok()?.len();
    (length == KEY_BYTES).then_some(key)
}

/// Returns an id that tells a key from others and gives nothing of it away.
fn fingerprint(key: &Key) -> String {
    let mut digest = digest::Context::new(&digest::SHA256);
    digest.update(b"countersign vault key\n");
    digest.update(&key[..]);
    hex::encode(&digest.finish().as_ref()[..ID_BYTES])
}

fn another(id: &str) -> VaultError {
    VaultError::Command(format!(
        "it printed another key than the one that the secrets are encrypted with (id {id}); have it \
         print that key again, or remove each secret with 'countersign secret remove NAME' and set \
         it again"
    ))
}

/// Returns the key if it is the one that the name was made for.
fn same(key: Key, name: &KeyName) -> Option<Key> {
    (fingerprint(&key) == name.id).then_some(key)
}
