//! The ledger's file: opening it, its tables, its transactions, and its lock files. Everything else
//! uses a connection from here; this module does not know what the rows mean.

pub(crate) mod aside;
pub(crate) mod change;
pub(crate) mod connection;
pub(crate) mod lock;
pub(crate) mod receipts;
pub(crate) mod schema;
pub(crate) mod settings;
pub(crate) mod timestamp;
pub(crate) mod transaction;

use std::path::Path;

/// The name of the ledger's file in the home.
pub const FILE: &str = "ledger.db";

/// The folder in the home that holds the locks of writers.
pub(crate) const WRITERS: &str = "writers";

/// Returns the names of the files in a folder that have this ending, without it, sorted.
pub(crate) fn files_ending(folder: &Path, ending: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = files.map(|file| file.path());
    let found = paths.filter(|path| path.extension().is_some_and(|end| end == ending));
    let names = found.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}
