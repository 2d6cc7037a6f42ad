//! The vectors of tools in a file of the home, so that a start computes none again. The file can be
//! deleted at any time. It knows nothing of the ledger, nor of what a vector is.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const KEY_BYTES: usize = 32;
const CHECK_BYTES: usize = 8;

/// A larger file is begun anew: it holds mostly vectors of texts that are gone. Some hundred thousand
/// vectors.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The key of a vector: the hash of the text that it was made from.
pub type VectorKey = [u8; KEY_BYTES];

/// The stored vectors of one version of the model.
pub struct VectorFile {
    path: PathBuf,
    vector_bytes: usize,
}

impl VectorFile {
    pub(crate) fn new(home: &Path, model: &str, vector_bytes: usize) -> VectorFile {
        VectorFile { path: home.join(format!("vectors-{model}.bin")), vector_bytes }
    }

    /// Returns all vectors by their keys; none if there is no file. Damaged ones are left out.
    pub fn load(&self) -> HashMap<VectorKey, Box<[u8]>> {
        let is_too_large = |file: &fs::Metadata| file.len() > FILE_BYTES_MAX;
        if fs::metadata(&self.path).as_ref().is_ok_and(is_too_large) {
            let _ = fs::remove_file(&self.path);
        }
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return HashMap::new(),
            Err(error) => {
                tracing::warn!("cannot read '{}': {error}", self.path.display());
                return HashMap::new();
            }
        };
        let mut found = HashMap::new();
        let mut rest = &bytes[..];
        while let Some(row) = rest.get(..self.row_bytes()) {
            let (body, check) = row.split_at(row.len() - CHECK_BYTES);
            match body.split_first_chunk::<KEY_BYTES>() {
                Some((key, vector)) if checksum(body) == check => {
                    found.insert(*key, vector.into());
                    rest = &rest[row.len()..];
                }
                // A row that was cut off by a crash: the next one begins somewhere within.
                _ => rest = &rest[1..],
            }
        }
        found
    }

    /// Adds vectors. A failure costs only the time to make them again.
    pub fn append<'a>(&self, vectors: impl IntoIterator<Item = (&'a VectorKey, &'a [u8])>) {
        let mut rows = Vec::new();
        for (key, vector) in vectors {
            let start = rows.len();
            rows.extend_from_slice(key);
            rows.extend_from_slice(vector);
            let check = checksum(&rows[start..]);
            rows.extend_from_slice(&check);
        }
        if rows.is_empty() || self.path.parent() == Some(Path::new("")) {
            return;
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path);
        // One write, so that rows of several processes do not mix.
        if let Err(error) = file.and_then(|mut file| file.write_all(&rows)) {
            tracing::warn!("cannot write '{}': {error}", self.path.display());
        }
    }

    fn row_bytes(&self) -> usize {
        KEY_BYTES + self.vector_bytes + CHECK_BYTES
    }
}

/// FNV-1a: against damage, not against people, who could change anything in the home.
fn checksum(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix).to_le_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use super::*;

    #[test]
    fn vectors_are_found_again_and_damaged_ones_are_left_out() {
        let home = tempfile::tempdir().unwrap();
        let file = VectorFile::new(home.path(), "m", 3);
        assert!(file.load().is_empty());
        let keys = [[1; 32], [2; 32], [3; 32]];
        file.append([(&keys[0], &b"abc"[..]), (&keys[1], &b"def"[..])]);
        let path = home.path().join("vectors-m.bin");
        let mut bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 2 * file.row_bytes());
        // The second row is cut off, and another process continues.
        bytes.truncate(file.row_bytes() + 20);
        fs::write(&path, &bytes).unwrap();
        file.append([(&keys[2], &b"ghi"[..])]);
        let found = file.load();
        assert_eq!(found.len(), 2);
        assert_eq!((&*found[&keys[0]], &*found[&keys[2]]), (&b"abc"[..], &b"ghi"[..]));
        let other = VectorFile::new(home.path(), "n", 3);
        assert!(other.load().is_empty(), "another model has vectors of its own");
    }
}
