//! Journals of processes that are gone. Their last entries are not in the tables until a gate starts
//! in the home and recovers them.

use std::fs::File;
use std::path::Path;

use crate::database::WRITERS;

/// Returns the number of journals in a home whose process is gone. Only looks: nothing is created.
pub fn abandoned_journals(home: &Path) -> usize {
    let Ok(files) = std::fs::read_dir(home.join(WRITERS)) else {
        return 0;
    };
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let journals = paths.filter(|path| path.extension().is_some_and(|ending| ending == "journal"));
    journals.filter(|path| !is_held(&path.with_extension("lock"))).count()
}

/// Reports whether a living process holds the lock. A shared lock needs no write access, and is
/// released at once.
fn is_held(lock: &Path) -> bool {
    File::open(lock).is_ok_and(|file| file.try_lock_shared().is_err())
}
