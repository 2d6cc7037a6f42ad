//! The configuration in effect: found, read, checked and merged.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use domain::config::{self, Config, Faults, ParsedConfig};
use store::state::OperatorState;

pub(crate) mod found;

use self::found::{FolderConfig, SHOWN};
use crate::cli::Locations;
use crate::exit::Failure;
use crate::folders;
use crate::home::Home;

/// The user whose files everybody trusts already.
const ROOT: u32 = 0;

/// The user's own configuration.
#[derive(Clone)]
pub(crate) struct OwnConfig {
    pub(crate) config: Config,
    /// The file it was read from; none if there is none.
    pub(crate) file: Option<PathBuf>,
    pub(crate) notes: Vec<String>,
}

/// The configuration in effect.
pub(crate) struct Source {
    pub(crate) config: Config,
    /// The user's own file; none if there is none.
    pub(crate) file: Option<PathBuf>,
    pub(crate) notes: Vec<String>,
    /// The state of a file in the folder; none if there is none.
    pub(crate) folder: Option<Folder>,
}

pub(crate) struct Folder {
    pub(crate) status: FolderStatus,
    /// The trusted hash, whether or not it is the hash of this text.
    pub(crate) trusted: Option<String>,
}

pub(crate) enum FolderStatus {
    /// All of the file is in effect.
    Trusted,
    /// Only the file's restrictions are in effect.
    Untrusted,
    /// None of the file is in effect because of these faults.
    Wrong(String),
}

impl Folder {
    /// Reports whether the file can only restrict.
    pub(crate) fn is_untrusted(&self) -> bool {
        matches!(self.status, FolderStatus::Untrusted)
    }
}

impl FolderStatus {
    pub(crate) fn words(&self) -> &'static str {
        match self {
            FolderStatus::Trusted => "trusted",
            FolderStatus::Untrusted => "not trusted: it can only restrict",
            FolderStatus::Wrong(_) => "not valid: none of it takes effect",
        }
    }
}

impl Source {
    /// Logs the notes.
    pub(crate) fn log_notes(&self) {
        for note in &self.notes {
            tracing::warn!("{note}");
        }
    }
}

/// Returns the user's own config file, whether it exists or not.
pub(crate) fn path(place: &Locations) -> Option<PathBuf> {
    folders::config_files(place).next()
}

/// Returns the file in the folder, whether it exists or not; none if it is the user's own, which
/// has no effect as a folder's file.
pub(crate) fn folder_path(place: &Locations) -> Option<PathBuf> {
    let file = PathBuf::from(SHOWN);
    let is_own = path(place).is_some_and(|own| found::is_same(&own, &file));
    (!place.alone && !is_own).then_some(file)
}

pub(crate) fn own(place: &Locations) -> Result<OwnConfig, Failure> {
    let must_exist = place.config.is_some();
    match path(place) {
        Some(path) if must_exist || path.exists() => read(&path),
        _ => Ok(OwnConfig { config: Config::default(), file: None, notes: Vec::new() }),
    }
}

fn read(path: &Path) -> Result<OwnConfig, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::config(format!("cannot read config '{}': {error}", path.display()))
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let shared = check_writers(&file.metadata().map_err(unreadable)?)
        .map_err(|words| Failure::config(format!("config '{}' {words}", path.display())))?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(unreadable)?;
    match config::parse(&text) {
        Ok(parsed) => {
            let notes = parsed.notes.iter().map(ToString::to_string);
            let notes = shared.map(str::to_owned).into_iter().chain(notes);
            let notes = notes.map(|note| format!("{}: {note}", path.display())).collect();
            Ok(OwnConfig { config: parsed.config, file: Some(path.to_owned()), notes })
        }
        Err(faults) => {
            Err(Failure::config(format!("config '{}' is not valid:\n{faults}", path.display())))
        }
    }
}

/// Refuses a config that somebody else decides on: it names the programs that the gate runs.
/// Returns a warning about one that a group shares.
fn check_writers(file: &Metadata) -> Result<Option<&'static str>, String> {
    let own = rustix::process::geteuid().as_raw();
    let (owner, mode) = (file.uid(), file.mode() & 0o777);
    if owner != own && owner != ROOT {
        return Err(format!(
            "belongs to another user (uid {owner}), who could have the gate run anything: run \
             'chown {own}' on it, or copy it"
        ));
    }
    if mode & 0o002 != 0 {
        return Err(format!(
            "can be written by everybody (mode {mode:o}), who could have the gate run anything: \
             run 'chmod o-w' on it"
        ));
    }
    Ok((mode & 0o020 != 0).then_some(
        "its group can write it and so have the gate run anything; 'chmod g-w' ends that",
    ))
}

impl OwnConfig {
    /// Merges the folder's file: all of a trusted one, only the restrictions of another.
    pub(crate) fn with_folder(self, place: &Locations) -> Source {
        let found = match folder_path(place).map(|file| found::read(&file)) {
            None | Some(Ok(None)) => {
                let OwnConfig { config, file, notes } = self;
                return Source { config, file, notes, folder: None };
            }
            Some(Ok(Some(found))) => found,
            Some(Err(words)) => return self.without_folder(words.clone(), &words, None),
        };
        let trusted = trusted(place, &found.place);
        let unknown = trusted.as_ref().err().cloned();
        let trusted = trusted.unwrap_or_default();
        let is_trusted = trusted.as_ref() == Some(&found.sha256);
        let laid = if is_trusted {
            config::lay_over(self.config.clone(), &found.text)
        } else {
            config::overlay(self.config.clone(), &found.text)
        };
        let ParsedConfig { mut config, notes: more } = match laid {
            Ok(laid) => laid,
            Err(faults) => {
                return self.without_folder(faults.to_string(), &first(&faults), trusted);
            }
        };
        found::settle(&mut config, &self.config, &found.place);
        let mut notes = self.notes;
        notes.extend(unknown.map(|error| {
            format!("{SHOWN}: cannot check whether it is trusted, so it can only restrict: {error}")
        }));
        if trusted.is_some() && !is_trusted {
            notes.push(format!(
                "{SHOWN}: it has changed since it was trusted, so it can only restrict; review it \
                 and run `countersign config trust` again"
            ));
        }
        notes.extend(more.iter().map(|note| format!("{SHOWN}: {note}")));
        let status = if is_trusted { FolderStatus::Trusted } else { FolderStatus::Untrusted };
        Source { config, file: self.file, notes, folder: Some(Folder { status, trusted }) }
    }

    fn without_folder(self, faults: String, words: &str, trusted: Option<String>) -> Source {
        let mut notes = self.notes;
        notes.push(format!("{SHOWN}: none of it takes effect: {words}"));
        let folder = Some(Folder { status: FolderStatus::Wrong(faults), trusted });
        Source { config: self.config, file: self.file, notes, folder }
    }
}

/// Returns one line for the log, which a foreign file must not flood.
fn first(faults: &Faults) -> String {
    let first = faults.list.first().map(ToString::to_string).unwrap_or_default();
    match faults.list.len() + faults.left_out {
        0 | 1 => first,
        all => format!("{first}; and {} more: see `countersign config check`", all - 1),
    }
}

/// Returns the hash under which a file is trusted, if it is.
fn trusted(place: &Locations, file: &Path) -> Result<Option<String>, String> {
    let home = Home::of(place).map_err(|failure| failure.message().to_owned())?;
    // A path that cannot be stored cannot have been trusted.
    let Some(file) = file.to_str() else { return Ok(None) };
    let state = OperatorState::of_home(home.path()).map_err(|error| error.to_string())?;
    match state {
        Some(state) => state.trusted_file(file).map_err(|error| error.to_string()),
        None => Ok(None),
    }
}

/// Returns the file to trust, or to stop trusting: the named one, or the one in this folder.
pub(crate) fn to_trust(file: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let file = file.unwrap_or_else(|| PathBuf::from(SHOWN));
    if file.file_name().is_some_and(|name| name == found::NAME) {
        return Ok(file);
    }
    Err(Failure::input(format!(
        "'{}' cannot be trusted: only a file named '{}' can",
        file.display(),
        found::NAME
    )))
}

/// Reads a file that a user wants to trust.
pub(crate) fn read_to_trust(file: &Path) -> Result<FolderConfig, Failure> {
    match found::read(file) {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err(Failure::input(format!("file '{}' not found", file.display()))),
        Err(words) => Err(Failure::config(format!("'{}': {words}", file.display()))),
    }
}
