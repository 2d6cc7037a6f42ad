//! The locations of the user's files: system folders, this program, and the configuration, whether
//! it exists or not.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cli::Locations;

/// Returns the default folder of the home.
pub(crate) fn data() -> Option<PathBuf> {
    directory("XDG_DATA_HOME", ".local/share")
}

/// Returns the folder of programs' settings.
pub(crate) fn config() -> Option<PathBuf> {
    directory("XDG_CONFIG_HOME", ".config")
}

/// Returns the user's own config files: the named one and the default one.
pub(crate) fn config_files(place: &Locations) -> impl Iterator<Item = PathBuf> {
    let usual = config().map(|folder| folder.join("countersign/config.json"));
    place.config.clone().into_iter().chain(usual)
}

/// Returns the path of this program, to start it again as a supervisor.
pub(crate) fn own_program() -> Option<PathBuf> {
    // On Linux this names the running program even if a newer one replaced its file.
    let own = Path::new("/proc/self/exe");
    if own.exists() { Some(own.to_owned()) } else { std::env::current_exe().ok() }
}

/// Returns the folder of a home in which agent programs are probed.
pub(crate) fn probes(home: &Path) -> PathBuf {
    home.join("probes")
}

/// Finds a program as a shell would: by its path, or in the folders of `PATH`.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        let about = std::fs::metadata(path);
        about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    set(variable).or_else(|| Some(set("HOME")?.join(below_home)))
}
