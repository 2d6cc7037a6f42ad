//! Countersign's own files. Changing them would change what agents may do, so no built-in tool may,
//! whatever the workspace's root contains.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::Store;
use tools::builtin::OffLimits;

use crate::folders;
use crate::home::Home;

/// Denies all access to the home, and changes to the configuration, to the files of trusted folders
/// and to this program.
pub(crate) fn of(home: &Home, store: &Store) -> OffLimits {
    let mut known: Vec<PathBuf> = home.config_files().to_vec();
    known.extend(folders::own_program());
    known.extend(std::env::current_exe());
    let store = store.clone();
    let files = move || {
        let trusted = store.state().trusted_files().map_err(|error| error.to_string())?;
        let trusted = trusted.iter().map(|path| Path::new(path).to_owned());
        Ok(known.iter().cloned().chain(trusted).collect())
    };
    OffLimits { folders: vec![home.path().to_owned()], files: Arc::new(files) }
}
