//! Which configuration is in force: found, read and checked.

use std::path::{Path, PathBuf};

use domain::config::{self, Config};

use crate::cli::Place;
use crate::exit::Failure;
use crate::home;

/// Found in the folder where the program runs.
const FOLDER_FILE: &str = "countersign.json";

pub(crate) struct Source {
    pub(crate) config: Config,
    /// The file it was read from; none when there is none.
    pub(crate) file: Option<PathBuf>,
    pub(crate) notes: Vec<String>,
}

impl Source {
    /// Puts the notes into the log.
    pub(crate) fn tell_notes(&self) {
        for note in &self.notes {
            tracing::warn!("{note}");
        }
    }
}

/// The person's own config file, whether it is there or not.
pub(crate) fn path(place: &Place) -> Option<PathBuf> {
    let own = || Some(home::config_dir()?.join("countersign/config.json"));
    place.config.clone().or_else(own)
}

pub(crate) fn load(place: &Place) -> Result<Source, Failure> {
    let must_exist = place.config.is_some();
    let mut source = match path(place) {
        Some(path) if must_exist || path.exists() => read(&path)?,
        _ => Source { config: Config::default(), file: None, notes: Vec::new() },
    };
    source.notes.extend(folder_note(source.file.as_deref()));
    Ok(source)
}

fn read(path: &Path) -> Result<Source, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::config(format!("cannot read config '{}': {error}", path.display()))
    })?;
    match config::parse(&text) {
        Ok(parsed) => {
            let notes = parsed.notes.iter().map(|note| format!("{}: {note}", path.display()));
            let notes = notes.collect();
            Ok(Source { config: parsed.config, file: Some(path.to_owned()), notes })
        }
        Err(faults) => {
            Err(Failure::config(format!("config '{}' is wrong:\n{faults}", path.display())))
        }
    }
}

/// A config that merely lies in the folder must not run code or change policy.
fn folder_note(used: Option<&Path>) -> Option<String> {
    let found = std::fs::canonicalize(FOLDER_FILE).ok()?;
    if used.is_some_and(|used| std::fs::canonicalize(used).is_ok_and(|used| used == found)) {
        return None;
    }
    Some(format!(
        "./{FOLDER_FILE} was found and ignored; name it with --config to use it as your own"
    ))
}
