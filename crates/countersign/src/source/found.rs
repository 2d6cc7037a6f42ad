//! A `countersign.json` in the working directory. Its author may be anyone who made the folder:
//! reading it must neither hang nor exhaust the program, whatever it is.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use domain::config::{Config, StdioTransport, Transport};
use receipt::Hash;
use rustix::fs::OFlags;

/// The file's name in the working directory.
pub(crate) const NAME: &str = "countersign.json";

/// The file's name in messages.
pub(crate) const SHOWN: &str = "./countersign.json";

/// The size limit: far more than a config for one folder takes.
const BYTES_MAX: u64 = 1024 * 1024;

/// The file as it was read; its hash is the one of this text.
pub(crate) struct FolderConfig {
    /// The location that trust is bound to, together with the hash.
    pub(crate) place: PathBuf,
    pub(crate) text: String,
    pub(crate) sha256: String,
}

/// Reports whether two paths lead to the same existing file.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_) | Err(_), _) => false,
    }
}

/// Returns the location of a file. Links to its folder are followed, but not a link that is the
/// file itself: a file trusted in one folder must not be linked into another, where its commands
/// are different programs.
pub(crate) fn place(file: &Path) -> Option<PathBuf> {
    let file = std::path::absolute(file).ok()?;
    let folder = file.parent()?;
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    Some(folder.join(file.file_name()?))
}

/// Reads a file; none if it does not exist. An error is one sentence.
pub(crate) fn read(file: &Path) -> Result<Option<FolderConfig>, String> {
    let opened = match open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("it cannot be read: {error}")),
    };
    let mut bytes = Vec::new();
    let Some(opened) = opened else { return Err("it is not a regular file".to_owned()) };
    let reading = opened.take(BYTES_MAX + 1).read_to_end(&mut bytes);
    reading.map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(format!("it is larger than {} KiB", BYTES_MAX / 1024));
    }
    let sha256 = Hash::of(&bytes).to_string();
    let text = String::from_utf8(bytes).map_err(|error| {
        format!("it is not text: byte {} is not UTF-8", error.utf8_error().valid_up_to() + 1)
    })?;
    let place = place(file).ok_or("its folder cannot be determined")?;
    Ok(Some(FolderConfig { place, text, sha256 }))
}

/// Sets the working directory of the file's servers to its folder. They start there anyway, but an
/// explicit directory binds an approval to the folder, so it does not hold for another folder's
/// program with the same relative name.
pub(crate) fn settle(config: &mut Config, own: &Config, file: &Path) {
    let Some(folder) = file.parent() else { return };
    for server in &mut config.servers {
        let is_own = own.server(&server.name).is_some_and(|own| own.transport == server.transport);
        if let Transport::Stdio(StdioTransport { cwd, .. }) = &mut server.transport
            && !is_own
        {
            let below = cwd.as_deref().map_or(folder.to_owned(), |cwd| folder.join(cwd));
            *cwd = Some(below.to_string_lossy().into_owned());
        }
    }
}

/// Opens regular files only. Opening a device can activate it and opening a pipe can block, so the
/// type is checked first, and again once open, in case the file was replaced.
fn open(file: &Path) -> std::io::Result<Option<File>> {
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let nonblock = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(nonblock).open(file)?;
    Ok(opened.metadata()?.is_file().then_some(opened))
}
