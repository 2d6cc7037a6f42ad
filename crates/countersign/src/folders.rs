//! Where files lie that belong to the person: the folders of the system, this program, and the
//! configuration, whether it is there or not.

use std::path::{Path, PathBuf};

use crate::cli::Locations;

/// Where the home is, unless another is named.
pub(crate) fn data() -> Option<PathBuf> {
    directory("XDG_DATA_HOME", ".local/share")
}

/// The person's own config files: the one that is named, and the one that is read where none is.
pub(crate) fn config_files(place: &Locations) -> impl Iterator<Item = PathBuf> {
    let folder = directory("XDG_CONFIG_HOME", ".config");
    let usual = folder.map(|folder| folder.join("countersign/config.json"));
    place.config.clone().into_iter().chain(usual)
}

/// This program, to be started again as a supervisor.
pub(crate) fn own_program() -> Option<PathBuf> {
    // On Linux this names the running program even if its file was replaced by a newer one.
    let own = Path::new("/proc/self/exe");
    if own.exists() { Some(own.to_owned()) } else { std::env::current_exe().ok() }
}

fn directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    set(variable).or_else(|| Some(set("HOME")?.join(below_home)))
}
