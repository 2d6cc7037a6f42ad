//! Copies of chains placed back in the home: exports in `<home>/copies`, which can be checked like
//! the ledger. They are only read.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use jiff::Timestamp;

use crate::error::StoreError;

/// The name of the folder in the home.
pub const COPIES: &str = "copies";

/// The number of files that are listed.
const COPIES_MAX: usize = 100;

/// The maximum size of one line: ten times the size limit of a receipt.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

const ENDING: &str = ".jsonl";

/// An export in that folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainCopy {
    pub name: String,
    pub bytes: u64,
    pub modified_at: Option<Timestamp>,
}

/// Lists the copies in a home, by name. A missing folder holds none.
pub(crate) fn list(home: &Path) -> Vec<ChainCopy> {
    let entries = std::fs::read_dir(home.join(COPIES)).into_iter().flatten().flatten();
    let mut copies: Vec<ChainCopy> = entries
        .filter_map(|entry| {
            let (name, metadata) = (entry.file_name().into_string().ok()?, entry.metadata().ok()?);
            let is_copy = metadata.is_file() && name.ends_with(ENDING);
            let modified_at = metadata.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
            is_copy.then_some(ChainCopy { name, bytes: metadata.len(), modified_at })
        })
        .collect();
    copies.sort_by(|one, other| one.name.cmp(&other.name));
    copies.truncate(COPIES_MAX);
    copies
}

/// Returns the lines of a copy; none if there is no such file.
pub(crate) fn lines(
    home: &Path,
    name: &str,
) -> Result<Option<impl Iterator<Item = Result<String, StoreError>> + use<>>, StoreError> {
    // Only listed files are opened, so that a name cannot lead elsewhere.
    if !list(home).iter().any(|copy| copy.name == name) {
        return Ok(None);
    }
    let fault = |error: std::io::Error| StoreError::Read(format!("copy: {error}"));
    let mut reader = BufReader::new(File::open(home.join(COPIES).join(name)).map_err(fault)?);
    Ok(Some(std::iter::from_fn(move || {
        let mut line = Vec::new();
        match reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => Some(Ok(String::from_utf8_lossy(&line).trim().to_owned())),
            Err(error) => Some(Err(fault(error))),
        }
    })))
}
