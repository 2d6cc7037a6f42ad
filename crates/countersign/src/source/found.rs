//! A `countersign.json` in the folder where the program runs. Whoever made the folder made the
//! file: reading it must neither hang nor exhaust the program, whatever lies there.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use domain::config::{Config, Transport};
use receipt::Hash;
use rustix::fs::OFlags;

/// Found in the folder where the program runs.
pub(crate) const NAME: &str = "countersign.json";

/// The same, as people are told of it.
pub(crate) const SHOWN: &str = "./countersign.json";

/// Far more than a config for one folder takes.
const BYTES_MAX: u64 = 1024 * 1024;

/// The file as it was read: its hash is the one of this text.
pub(crate) struct FolderConfig {
    /// What trust in it is bound to, beside the hash.
    pub(crate) place: PathBuf,
    pub(crate) text: String,
    pub(crate) sha256: String,
}

/// Whether two paths lead to one file that is there.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_) | Err(_), _) => false,
    }
}

/// Where a file stands. Links to its folder are followed and a link that it is itself is not: what
/// is trusted in one folder must not be brought into another, where its commands are other ones.
pub(crate) fn place(file: &Path) -> Option<PathBuf> {
    let file = std::path::absolute(file).ok()?;
    let folder = file.parent()?;
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    Some(folder.join(file.file_name()?))
}

/// Reads a file; none where there is none. What cannot be used is told in one sentence.
pub(crate) fn read(file: &Path) -> Result<Option<FolderConfig>, String> {
    let opened = match open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("it cannot be read: {error}")),
    };
    let mut bytes = Vec::new();
    let Some(opened) = opened else { return Err("it is no regular file".to_owned()) };
    let reading = opened.take(BYTES_MAX + 1).read_to_end(&mut bytes);
    reading.map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(format!("it is larger than {} KiB", BYTES_MAX / 1024));
    }
    let sha256 = Hash::of(&bytes).to_string();
    let text = String::from_utf8(bytes).map_err(|error| {
        format!("it is no text: byte {} is not UTF-8", error.utf8_error().valid_up_to() + 1)
    })?;
    let place = place(file).ok_or("its folder cannot be told")?;
    Ok(Some(FolderConfig { place, text, sha256 }))
}

/// Has the servers of a folder's file start in that folder. It is where they start anyway; said like
/// this, an approval of one is bound to the folder, and does not hold for another folder's program
/// of the same relative name.
pub(crate) fn settle(config: &mut Config, own: &Config, file: &Path) {
    let Some(folder) = file.parent() else { return };
    for server in &mut config.servers {
        let is_own = own.server(&server.name).is_some_and(|own| own.transport == server.transport);
        match &mut server.transport {
            Transport::Stdio { cwd, .. } if !is_own => {
                let below = cwd.as_deref().map_or(folder.to_owned(), |cwd| folder.join(cwd));
                *cwd = Some(below.to_string_lossy().into_owned());
            }
            Transport::Stdio { .. } | Transport::Http { .. } | Transport::Sse { .. } => {}
        }
    }
}

/// Opens regular files only. To open a device can set it to work and to open a pipe can wait, so
/// it is looked at first; and again when it is open, should it have been replaced meanwhile.
fn open(file: &Path) -> std::io::Result<Option<File>> {
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let nonblock = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(nonblock).open(file)?;
    Ok(opened.metadata()?.is_file().then_some(opened))
}
