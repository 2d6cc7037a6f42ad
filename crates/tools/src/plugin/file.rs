//! Files of a plugin, read with limits; anything but a plain file is rejected without blocking.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use text::hex;

use super::limits;

const CHUNK_BYTES: usize = 64 * 1024;

/// A small file, and the digest of its bytes.
pub(super) struct TextFile {
    pub(super) text: String,
    pub(super) sha256: String,
}

pub(super) fn read_text(path: &Path) -> Result<TextFile, String> {
    let file = open(path, limits::YAML_BYTES_MAX)?;
    let mut bytes = Vec::new();
    let read = file.take(limits::YAML_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| fault(path, error))?;
    if bytes.len() as u64 > limits::YAML_BYTES_MAX {
        return Err(fault(path, "too large"));
    }
    let sha256 = hex::encode(&Sha256::digest(&bytes));
    let text = String::from_utf8(bytes).map_err(|_| fault(path, "not UTF-8"))?;
    Ok(TextFile { text, sha256 })
}

/// Computes the digest of an executable.
pub(super) fn digest(path: &Path) -> Result<String, String> {
    let file = open(path, limits::EXECUTABLE_BYTES_MAX)?;
    if file.metadata().map_err(|error| fault(path, error))?.mode() & 0o111 == 0 {
        return Err(fault(path, "not executable (chmod +x)"));
    }
    pour(file, &mut std::io::sink()).map_err(|error| fault(path, error))
}

/// Copies an executable into a new file, and returns the digest of the copy.
pub(super) fn copy(from: &Path, to: &Path) -> Result<String, String> {
    let file = open(from, limits::EXECUTABLE_BYTES_MAX)?;
    let new = OpenOptions::new().write(true).create_new(true).mode(0o700).open(to);
    let mut new = new.map_err(|error| fault(to, error))?;
    pour(file, &mut new).map_err(|error| fault(from, error))
}

fn open(path: &Path, bytes_max: u64) -> Result<File, String> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| fault(path, error))?;
    let about = file.metadata().map_err(|error| fault(path, error))?;
    if !about.is_file() {
        return Err(fault(path, "not a file"));
    }
    if about.len() > bytes_max {
        return Err(fault(path, "too large"));
    }
    Ok(file)
}

fn pour(from: File, to: &mut impl Write) -> std::io::Result<String> {
    let mut from = from.take(limits::EXECUTABLE_BYTES_MAX);
    let (mut hasher, mut chunk) = (Sha256::new(), vec![0; CHUNK_BYTES]);
    loop {
        match from.read(&mut chunk)? {
            0 => return Ok(hex::encode(&hasher.finalize())),
            read => {
                hasher.update(&chunk[..read]);
                to.write_all(&chunk[..read])?;
            }
        }
    }
}

fn fault(path: &Path, error: impl std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}
