//! Secrets in the definitions of servers that were added at run time, in `<home>/secrets.json`
//! (0600). They are not in the ledger's file, because copies of that are given away.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};

use super::{Location, OperatorState};
use crate::error::StoreError;

/// The file's name in the home.
pub const FILE: &str = "secrets.json";

/// The secrets of each server, in the order in which its definition refers to them.
pub type ServerSecrets = BTreeMap<String, Vec<String>>;

impl OperatorState {
    /// Returns the secrets of all servers; those that cannot be read are missing.
    pub fn server_secrets(&self) -> Result<ServerSecrets, StoreError> {
        match self.secrets_file() {
            Some(file) => read(&file),
            None => Ok(self.in_process().clone()),
        }
    }

    /// Replaces the secrets of a server; without any, its entry is removed.
    pub fn keep_secrets(&self, name: &str, secrets: &[String]) -> Result<(), StoreError> {
        let Some(file) = self.secrets_file() else {
            put(&mut self.in_process(), name, secrets);
            return Ok(());
        };
        // The transaction keeps other processes from changing the file meanwhile.
        self.change(|_| keep(&file, name, secrets))
    }

    fn in_process(&self) -> MutexGuard<'_, ServerSecrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn secrets_file(&self) -> Option<PathBuf> {
        match &self.place {
            Location::File(file, _) | Location::Look(file) => Some(file.with_file_name(FILE)),
            Location::Memory => None,
        }
    }
}

fn keep(file: &Path, name: &str, secrets: &[String]) -> Result<(), StoreError> {
    let mut all = read(file)?;
    if !put(&mut all, name, secrets) {
        return Ok(());
    }
    write(file, &all).map_err(|error| unusable(file, &error))
}

/// Replaces the secrets of a server; returns whether that changed anything.
fn put(all: &mut ServerSecrets, name: &str, secrets: &[String]) -> bool {
    let before = match secrets {
        [] => all.remove(name),
        secrets => all.insert(name.to_owned(), secrets.to_vec()),
    };
    before.as_deref().unwrap_or_default() != secrets
}

fn read(file: &Path) -> Result<ServerSecrets, StoreError> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ServerSecrets::new()),
        Err(error) => return Err(unusable(file, &error)),
    };
    // The text is not part of the message: it is secret.
    serde_json::from_str(&text).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        unusable(file, &format!("not the JSON that was written ({place})"))
    })
}

/// Replaces the file as a whole, so that a crash leaves the old one or the new one.
fn write(file: &Path, secrets: &ServerSecrets) -> std::io::Result<()> {
    let new = file.with_extension("json.new");
    let mut out =
        OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
    out.write_all(&serde_json::to_vec_pretty(secrets)?)?;
    out.sync_all()?;
    fs::rename(&new, file)
}

fn unusable(file: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Write(format!("cannot use '{}': {error}", file.display()))
}
