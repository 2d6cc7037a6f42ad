//! Notices that a file has changed, without reading it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Metadata that distinguishes versions of a file without reading it.
#[derive(PartialEq, Eq)]
pub(crate) struct Fingerprint {
    modified: (i64, i64),
    /// The change time, which also shows that a file became readable.
    changed: (i64, i64),
    size: u64,
    inode: u64,
}

/// Returns the fingerprint of a file, if there is one.
pub(crate) fn fingerprint(path: &Path) -> Option<Fingerprint> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(Fingerprint {
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
        size: metadata.size(),
        inode: metadata.ino(),
    })
}
