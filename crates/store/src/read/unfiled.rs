//! Journals of processes that are gone. Their last entries are not in the tables until a gate starts
//! in the home and recovers them.

use std::path::Path;

use crate::database::WRITERS;
use crate::database::lock::Lock;
use crate::write::journal;

/// Returns the number of journals in a home whose process is gone. Only looks: nothing is created.
pub fn abandoned_journals(home: &Path) -> usize {
    let writers = home.join(WRITERS);
    journal::chains(&writers).iter().filter(|id| !Lock::is_held(&writers, id)).count()
}
