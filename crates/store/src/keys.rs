//! The signing keys, in the user's own files. The ledger names the key that signs, so that a
//! rotation and the receipt that announces it are one transaction.

pub(crate) mod query;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use receipt::key::{PublicKey, SigningKey};
use rusqlite::Connection;

use crate::database::settings;
use crate::error::StoreError;

/// The folder of the keys in the home.
pub(crate) const FOLDER: &str = vault::KEYS_FOLDER;

const SETTING: &str = "signing_key";

pub(crate) struct Keys {
    dir: PathBuf,
    current: Arc<SigningKey>,
    /// The last key that is known to be marked as used.
    marked: Option<String>,
}

impl Keys {
    /// Opens the key that the ledger names. If it names none, takes the newest key, or creates one.
    /// The caller holds the maintenance lock.
    pub(crate) fn open(dir: &Path, db: &Connection) -> Result<Keys, StoreError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(|error| unusable(dir, error))?;
        let current = match settings::get(db, SETTING)? {
            Some(fingerprint) => load(dir, &fingerprint)?,
            None => {
                let key = match newest(dir)? {
                    Some(path) => read(&path)?,
                    None => make(dir)?,
                };
                remember(db, &key.public().fingerprint().to_string())?;
                key
            }
        };
        Ok(Keys { dir: dir.to_owned(), current: Arc::new(current), marked: None })
    }

    pub(crate) fn current(&self) -> Arc<SigningKey> {
        self.current.clone()
    }

    /// Returns the key that signs now, which another process may have changed.
    pub(crate) fn refreshed(&mut self, db: &Connection) -> Result<Arc<SigningKey>, StoreError> {
        if let Some(fingerprint) = settings::get(db, SETTING)? {
            self.current = self.of(&fingerprint)?;
        }
        Ok(self.current())
    }

    pub(crate) fn set_current(&mut self, key: Arc<SigningKey>) {
        self.current = key;
    }

    /// Writes a new pair of files; nothing signs with it yet.
    pub(crate) fn make(&self) -> Result<Arc<SigningKey>, StoreError> {
        make(&self.dir).map(Arc::new)
    }

    /// Removes a pair of files with which nothing was signed.
    pub(crate) fn discard(&self, key: &SigningKey) {
        let fingerprint = key.public().fingerprint().to_string();
        for ending in [SECRET_ENDING, PUBLIC_ENDING] {
            let _ = fs::remove_file(path(&self.dir, &fingerprint, ending));
        }
    }

    /// Keeps in the folder that the current key has signed, so that a database that names an
    /// earlier one is recognised as old. Called once there is a chain.
    pub(crate) fn mark_used(&mut self) {
        let fingerprint = self.current.public().fingerprint().to_string();
        if self.marked.as_ref() != Some(&fingerprint) {
            match mark(&self.dir, &fingerprint) {
                Ok(()) => self.marked = Some(fingerprint),
                Err(error) => tracing::error!("cannot record that the key is used: {error}"),
            }
        }
    }

    /// Returns every public key of the home, the current one even if its file is missing.
    pub(crate) fn known(&self) -> Vec<PublicKey> {
        let mut known = all_public(&self.dir);
        known.push(self.current.public());
        known
    }

    /// Returns the key that a chain was written with.
    pub(crate) fn of(&self, fingerprint: &str) -> Result<Arc<SigningKey>, StoreError> {
        if self.current.public().fingerprint().to_string() == fingerprint {
            return Ok(self.current());
        }
        load(&self.dir, fingerprint).map(Arc::new)
    }
}

/// Returns every public key that ever signed here, the current one first.
pub(crate) fn public(dir: &Path, db: &Connection) -> Result<Vec<PublicKey>, StoreError> {
    let mut keys = Vec::new();
    let current = settings::get(db, SETTING)?;
    let files = match fs::read_dir(dir) {
        Ok(files) => files,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(keys),
        Err(error) => return Err(unusable(dir, error)),
    };
    for file in files {
        let path = file.map_err(|error| unusable(dir, error))?.path();
        if !path.to_string_lossy().ends_with(PUBLIC_ENDING) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| unusable(&path, error))?;
        keys.push(PublicKey::from_pem(&text).map_err(|error| unusable(&path, error))?);
    }
    keys.sort_by_key(|key| current.as_deref() != Some(&*key.fingerprint().to_string()));
    Ok(keys)
}

/// The file in the folder with the fingerprints of all keys that have signed, in order.
const USED: &str = "used";

/// Returns the fingerprints of the keys that have signed, in order.
pub(crate) fn used(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join(USED)).unwrap_or_default();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn mark(dir: &Path, fingerprint: &str) -> Result<(), StoreError> {
    // One process at a time: the others would overwrite what this one adds.
    let folder = File::open(dir).map_err(|error| unusable(dir, error))?;
    folder.lock().map_err(|error| unusable(dir, error))?;
    let mut keys = used(dir);
    if keys.iter().any(|known| known == fingerprint) {
        return Ok(());
    }
    keys.push(fingerprint.to_owned());
    write(&dir.join(USED), &(keys.join("\n") + "\n"), 0o644)
}

/// Returns the fingerprint of the key that the ledger names.
pub(crate) fn named(db: &Connection) -> Result<Option<String>, StoreError> {
    settings::get(db, SETTING)
}

/// Returns every public key in a folder that can be read.
pub(crate) fn all_public(dir: &Path) -> Vec<PublicKey> {
    let files = fs::read_dir(dir).into_iter().flatten().flatten().map(|file| file.path());
    let public = files.filter(|path| path.to_string_lossy().ends_with(PUBLIC_ENDING));
    let texts = public.filter_map(|path| fs::read_to_string(path).ok());
    texts.filter_map(|text| PublicKey::from_pem(&text).ok()).collect()
}

/// Writes the public halves that are missing, from their secret halves; returns what was written, in
/// words. Without them, nothing that those keys signed could be trusted.
pub(crate) fn complete(dir: &Path) -> Result<Vec<String>, StoreError> {
    let files = fs::read_dir(dir).into_iter().flatten().flatten().map(|file| file.path());
    let secret = files.filter(|path| path.to_string_lossy().ends_with(SECRET_ENDING));
    let mut words = Vec::new();
    // A key that cannot be used is reported once something needs it.
    for key in secret.filter_map(|path| read(&path).ok()) {
        let fingerprint = key.public().fingerprint().to_string();
        let public = path(dir, &fingerprint, PUBLIC_ENDING);
        if !public.exists() {
            write(&public, &key.public().to_pem(), 0o644)?;
            words.push(format!(
                "the public half of the key {fingerprint} was missing: made it again from the \
                 secret half"
            ));
        }
    }
    Ok(words)
}

/// Returns the number of public keys in a folder.
pub(crate) fn count(dir: &Path) -> usize {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter(|file| file.file_name().to_string_lossy().ends_with(PUBLIC_ENDING)).count()
}

/// Loads the key that the ledger names.
pub(crate) fn current(dir: &Path, db: &Connection) -> Result<SigningKey, StoreError> {
    let fingerprint =
        named(db)?.ok_or_else(|| StoreError::Key("the ledger names no signing key".to_owned()))?;
    load(dir, &fingerprint)
}

/// Says that the secret half of a key is gone.
pub(crate) fn secret_missing(fingerprint: &str) -> String {
    format!("the secret half of the signing key {fingerprint} is missing")
}

/// Reports whether the secret half of a key is in the folder.
pub(crate) fn has_secret(dir: &Path, fingerprint: &str) -> bool {
    path(dir, fingerprint, SECRET_ENDING).exists()
}

/// Makes a new key that signs from now on, in place of one whose secret half is gone; returns its
/// fingerprint. Earlier keys stay retired, even where their secret halves are still there.
pub(crate) fn succeed(dir: &Path, db: &Connection) -> Result<String, StoreError> {
    let fingerprint = make(dir)?.public().fingerprint().to_string();
    remember(db, &fingerprint)?;
    Ok(fingerprint)
}

/// Stores which key signs from now on.
pub(crate) fn remember(db: &Connection, fingerprint: &str) -> Result<(), StoreError> {
    settings::set(db, SETTING, fingerprint)
}

const PUBLIC_ENDING: &str = ".public.pem";
const SECRET_ENDING: &str = ".secret.pem";

/// The number of hex digits of a fingerprint in its files' names.
const NAME_DIGITS: usize = 16;

fn path(dir: &Path, fingerprint: &str, ending: &str) -> PathBuf {
    let digits = fingerprint.trim_start_matches("sha256:");
    let name: String = digits.chars().take(NAME_DIGITS).collect();
    dir.join(format!("{name}{ending}"))
}

fn load(dir: &Path, fingerprint: &str) -> Result<SigningKey, StoreError> {
    let path = path(dir, fingerprint, SECRET_ENDING);
    let key = read(&path)?;
    if key.public().fingerprint().to_string() != fingerprint {
        return Err(StoreError::Key(format!(
            "the signing key '{}' was replaced; restore the original from your backup",
            path.display()
        )));
    }
    Ok(key)
}

/// Reads a key. Refuses a file that others can read, since it is no longer secret.
fn read(path: &Path) -> Result<SigningKey, StoreError> {
    let mut file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => StoreError::Key(format!(
            "the signing key '{}' is missing; restore it from your backup, or run 'countersign \
             ledger repair' to continue with a new key",
            path.display()
        )),
        _ => unusable(path, error),
    })?;
    let mode = file.metadata().map_err(|error| unusable(path, error))?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(StoreError::Key(format!(
            "other users can read the signing key '{}' (mode {mode:o}); run 'chmod 600' on it, and \
             'countersign keys rotate' if someone may have read it",
            path.display()
        )));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|error| unusable(path, error))?;
    SigningKey::from_pem(&text).map_err(|error| unusable(path, error))
}

fn newest(dir: &Path) -> Result<Option<PathBuf>, StoreError> {
    let mut found = Vec::new();
    for file in fs::read_dir(dir).map_err(|error| unusable(dir, error))? {
        let path = file.map_err(|error| unusable(dir, error))?.path();
        if path.to_string_lossy().ends_with(SECRET_ENDING) {
            let modified = fs::metadata(&path).map_err(|error| unusable(&path, error))?.mtime();
            found.push((modified, path));
        }
    }
    Ok(found.into_iter().max().map(|(_, path)| path))
}

fn make(dir: &Path) -> Result<SigningKey, StoreError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| {
        StoreError::Key(format!("cannot get random bytes for a signing key: {error}"))
    })?;
    let key = SigningKey::from_seed(&seed);
    let fingerprint = key.public().fingerprint().to_string();
    // In this order, so that a crash in between leaves no secret without its public half.
    write(&path(dir, &fingerprint, PUBLIC_ENDING), &key.public().to_pem(), 0o644)?;
    write(&path(dir, &fingerprint, SECRET_ENDING), key.to_pem().as_str(), 0o600)?;
    Ok(key)
}

/// Writes a file under a temporary name and renames it: a crash leaves a complete file or none.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), StoreError> {
    let beside = path.with_extension("pem.new");
    let written = || {
        let _ = fs::remove_file(&beside);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        // Otherwise a power failure may undo the rename, and receipts name a key that is gone.
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    written().map_err(|error| unusable(path, error))
}

fn unusable(path: &Path, error: impl std::fmt::Display) -> StoreError {
    StoreError::Key(format!("cannot use '{}': {error}", path.display()))
}
