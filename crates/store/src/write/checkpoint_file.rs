//! The newest checkpoint, in a file next to the database: if the database is replaced by an earlier
//! copy, the file shows it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use domain::config::Durability;

/// The name of the file in the home. It holds a signed receipt on one line.
pub const CHECKPOINT_FILE: &str = "checkpoint.json";

/// Says that there is no file, although there are checkpoints.
pub(crate) const FILE_MISSING: &str = "checkpoint.json is missing, so that it would not show if the \
    whole ledger had been replaced by an earlier copy";

/// Returns the signed receipt in the file; none if there is no file.
pub fn kept_checkpoint(home: &Path) -> io::Result<Option<String>> {
    match fs::read(home.join(CHECKPOINT_FILE)) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the names and texts of the files that a repair or a start has set aside. What they name is
/// missing until a person accepts it.
pub(crate) fn set_aside(home: &Path) -> Vec<(String, String)> {
    let beginning = format!("{CHECKPOINT_FILE}.aside-");
    let files = fs::read_dir(home).into_iter().flatten().flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(&beginning)).collect();
    names.sort_unstable();
    let read = |name: String| {
        let bytes = fs::read(home.join(&name)).ok()?;
        Some((name, String::from_utf8_lossy(&bytes).trim().to_owned()))
    };
    names.into_iter().filter_map(read).collect()
}

/// Replaces the file; readers find the old one or the new one. A failure does no harm to the
/// ledger, and the next checkpoint repairs it.
pub(crate) fn replace(home: &Path, receipt: &str, durability: Durability) {
    let path = home.join(CHECKPOINT_FILE);
    if let Err(error) = try_replace(home, &path, receipt, durability) {
        tracing::warn!("cannot write '{}': {error}", path.display());
    }
}

fn try_replace(home: &Path, path: &Path, receipt: &str, durability: Durability) -> io::Result<()> {
    // Of this process alone, since several may write at the same time.
    let beside = home.join(format!("{CHECKPOINT_FILE}.{}", std::process::id()));
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(format!("{receipt}\n").as_bytes())?;
    if durability == Durability::Disk {
        file.sync_all()?;
    }
    fs::rename(&beside, path).inspect_err(|_| drop(fs::remove_file(&beside)))?;
    match durability {
        Durability::Disk => File::open(home)?.sync_all(),
        Durability::Process => Ok(()),
    }
}
