//! The home: the user's own folder with the two secrets, the sockets and the records.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use domain::config;
use redact::Credential;
use redact::KnownSecrets;
use store::Store;

use crate::cli::Locations;
use crate::exit::Failure;
use crate::folders;

/// The number of random bytes in a secret.
const SECRET_BYTES: usize = 32;

/// The user who may change every file anyway.
const ROOT: u32 = 0;

/// The mode of a folder in which everybody renames only what is theirs.
const STICKY: u32 = 0o1000;

/// Overrides the admin key in the home.
const API_KEY_VARIABLE: &str = "COUNTERSIGN_API_KEY";

#[derive(Clone)]
pub(crate) struct Home {
    path: PathBuf,
    config_files: Vec<PathBuf>,
}

/// A secret in memory, which cannot be printed by accident.
#[derive(Clone)]
pub(crate) struct Secret(String);

impl Secret {
    /// Returns a key for requests within this process, which no other process can send.
    pub(crate) fn of_process() -> Secret {
        Secret("of-process".to_owned())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl Home {
    /// Finds the home, which need not exist. Refuses one that another user owns: that user knows its
    /// keys and decides what is in it.
    pub(crate) fn of(place: &Locations) -> Result<Home, Failure> {
        let path = match &place.home {
            Some(path) => path.clone(),
            None => folders::data()
                .ok_or_else(|| {
                    Failure::system("no home directory: set HOME, or pass a folder with --home")
                })?
                .join("countersign"),
        };
        let path = std::path::absolute(&path).map_err(|error| {
            Failure::system(format!("cannot resolve the home '{}': {error}", path.display()))
        })?;
        let config_files = folders::config_files(place);
        let config_files = config_files.filter_map(|file| std::path::absolute(file).ok()).collect();
        check_owners(&path)?;
        Ok(Home { path, config_files })
    }

    /// Makes the folder if it is missing, and closes it to others if it is open.
    pub(crate) fn prepare(&self) -> Result<(), Failure> {
        let fail = |what: &str, error: std::io::Error| {
            Failure::system(format!("cannot {what} the home '{}': {error}", self.path.display()))
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
            .map_err(|error| fail("create", error))?;
        let mode = fs::metadata(&self.path).map_err(|error| fail("read", error))?.mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(&self.path, Permissions::from_mode(0o700))
                .map_err(|error| fail("restrict access to", error))?;
        }
        Ok(())
    }

    /// Refuses a home that does not exist, for commands that only read it.
    pub(crate) fn must_exist(&self) -> Result<(), Failure> {
        if self.path.is_dir() {
            return Ok(());
        }
        Err(Failure::input(format!(
            "NOT_FOUND: the home '{}' does not exist, so there is nothing to read: pass another \
             folder with --home, or run 'countersign serve' to create it",
            self.path.display()
        )))
    }

    /// Returns the ledger of the home, which must exist.
    pub(crate) fn ledger(&self) -> Result<PathBuf, Failure> {
        let file = self.path.join(store::FILE);
        if file.exists() {
            return Ok(file);
        }
        Err(Failure::input(format!(
            "NOT_FOUND: the home '{}' has no ledger yet: nothing has been recorded in it",
            self.path.display()
        )))
    }

    /// Opens the ledger to write, and creates it if there is none.
    pub(crate) fn store(&self, ledger: &config::Ledger) -> Result<Store, Failure> {
        Store::open(&self.path, ledger).map_err(Failure::store)
    }

    /// Returns the process id of the `serve` that runs here, or ran last.
    pub(crate) fn serve_pid(&self) -> Option<u32> {
        fs::read_to_string(self.path.join("serve.lock")).ok()?.trim().parse().ok()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the user's own config files, in effect now or without `--config`; not all of them
    /// need to exist.
    pub(crate) fn config_files(&self) -> &[PathBuf] {
        &self.config_files
    }

    pub(crate) fn control_socket(&self) -> PathBuf {
        self.path.join("control.sock")
    }

    pub(crate) fn events_socket(&self) -> PathBuf {
        self.path.join("events.sock")
    }

    pub(crate) fn api_key_file(&self) -> PathBuf {
        self.path.join("api-key")
    }

    pub(crate) fn agent_token_file(&self) -> PathBuf {
        self.path.join("agent-token")
    }

    /// Returns the admin key: from the environment, otherwise from the home. Created at the first
    /// start.
    pub(crate) fn api_key(&self) -> Result<Secret, Failure> {
        match std::env::var(API_KEY_VARIABLE) {
            Ok(key) if !key.trim().is_empty() => Ok(Secret(key.trim().to_owned())),
            _ => secret(&self.api_key_file(), Credential::AdminKey),
        }
    }

    pub(crate) fn agent_token(&self) -> Result<Secret, Failure> {
        secret(&self.agent_token_file(), Credential::AgentToken)
    }

    /// Returns the default token unless it was never made: a gate that does not accept it makes none.
    pub(crate) fn existing_agent_token(&self) -> Result<Option<Secret>, Failure> {
        let is_made = self.agent_token_file().exists();
        is_made.then(|| self.agent_token()).transpose()
    }

    /// Adds the keys of the home to what no record or log may hold. Those that the gate made are known
    /// by their form; the operator may have chosen others.
    pub(crate) fn hide_keys(&self, known: &KnownSecrets) {
        let files = [self.api_key_file(), self.agent_token_file()];
        let written = files.iter().filter_map(|file| fs::read_to_string(file).ok());
        for key in std::env::var(API_KEY_VARIABLE).into_iter().chain(written) {
            known.keep(key.trim());
        }
    }

    /// Takes the lock that `serve` holds for its lifetime; the error names the current holder.
    pub(crate) fn lock(&self) -> Result<File, Failure> {
        let path = self.path.join("serve.lock");
        let fail = |error: std::io::Error| {
            Failure::system(format!("cannot lock '{}': {error}", path.display()))
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(fail)?;
        if file.try_lock().is_err() {
            let mut pid = String::new();
            let _ = file.read_to_string(&mut pid);
            return Err(Failure::system(format!(
                "another 'serve' (pid {}) is running in the home '{}': stop it, or use another \
                 --home",
                pid.trim(),
                self.path.display()
            )));
        }
        file.set_len(0).map_err(fail)?;
        writeln!(file, "{}", std::process::id()).map_err(fail)?;
        Ok(file)
    }
}

/// Refuses a home of another user, also behind a link, and one with an entry of another user, who
/// may have put it there while the folder was open.
fn check_owners(home: &Path) -> Result<(), Failure> {
    let own = rustix::process::geteuid().as_raw();
    let Ok(folder) = fs::metadata(home) else { return Ok(()) };
    if folder.uid() != own {
        return Err(Failure::system(format!(
            "the home '{}' belongs to another user (uid {}), who could read its keys and change its \
             records: run this command as that user, or pass a folder of your own with --home",
            home.display(),
            folder.uid()
        )));
    }
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let owner = entry.metadata().map_or(own, |about| about.uid());
        if owner != own && owner != ROOT {
            return Err(Failure::system(format!(
                "'{}' belongs to another user (uid {owner}), who could have the gate trust it: \
                 remove it, or run 'chown {own}' on it if its content is yours",
                entry.path().display()
            )));
        }
    }
    Ok(())
}

/// Returns the folder on the way to the home in which another user can put one in its place, and who
/// that is. Not a reason to refuse: in containers, such folders are common and of one's own.
pub(crate) fn swappable(home: &Path) -> Option<(PathBuf, String)> {
    let own = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let home = home.canonicalize().ok()?;
    home.ancestors().skip(1).find_map(|folder| {
        let about = fs::metadata(folder).ok()?;
        let who = swapper(&about, own, group)?;
        Some((folder.to_owned(), who))
    })
}

/// Returns who else can rename what is in a folder. The group of this user alone counts as this user.
fn swapper(about: &fs::Metadata, own: u32, group: u32) -> Option<String> {
    let (mode, owner) = (about.mode(), about.uid());
    if owner != own && owner != ROOT {
        return Some(format!("its owner (uid {owner})"));
    }
    if mode & STICKY != 0 {
        return None;
    }
    if mode & 0o002 != 0 {
        return Some("everybody".to_owned());
    }
    let is_shared = about.gid() != ROOT && !(about.gid() == group && group == own);
    (mode & 0o020 != 0 && is_shared).then(|| format!("its group (gid {})", about.gid()))
}

/// Reads a secret, or creates it. Refuses a file that others can read, since its content is no
/// longer secret.
fn secret(path: &Path, kind: Credential) -> Result<Secret, Failure> {
    let fail = |error: std::io::Error| {
        Failure::system(format!("cannot read the key file '{}': {error}", path.display()))
    };
    match File::open(path) {
        Ok(mut file) => {
            let mode = file.metadata().map_err(fail)?.mode() & 0o777;
            if mode & 0o077 != 0 {
                return Err(Failure::system(format!(
                    "other users can read the key file '{}' (mode {mode:o}): run 'chmod 600' on it, \
                     or delete it to get a new key",
                    path.display()
                )));
            }
            let mut text = String::new();
            file.read_to_string(&mut text).map_err(fail)?;
            if text.trim().is_empty() {
                return Err(Failure::system(format!(
                    "the key file '{}' is empty: delete it to get a new key",
                    path.display()
                )));
            }
            Ok(Secret(text.trim().to_owned()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => make(path, kind),
        Err(error) => Err(fail(error)),
    }
}

fn make(path: &Path, kind: Credential) -> Result<Secret, Failure> {
    let mut random = [0; SECRET_BYTES];
    getrandom::fill(&mut random)
        .map_err(|error| Failure::system(format!("cannot generate a key: {error}")))?;
    let key = kind.text(&random);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| writeln!(file, "{key}"));
    match written {
        Ok(()) => Ok(Secret(key)),
        // Another process created it a moment ago.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => secret(path, kind),
        Err(error) => Err(Failure::system(format!("cannot write '{}': {error}", path.display()))),
    }
}
