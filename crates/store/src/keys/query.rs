//! The key of the short hash that replaces the query of an address. Without it, the query that a
//! target belongs to cannot be guessed by trial.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use text::hex;

/// The file in the folder of the keys.
const FILE: &str = "query.key";

const BYTES: usize = 32;

/// Returns the key of this home, made now if it is missing, damaged or known to others: then targets
/// get new hashes, and nothing else is lost. The caller holds the maintenance lock.
pub(crate) fn query_key(dir: &Path) -> [u8; BYTES] {
    if let Some(key) = read(dir) {
        return key;
    }
    let mut key = [0; BYTES];
    if let Err(error) = getrandom::fill(&mut key) {
        tracing::warn!("cannot get random bytes for the key of query hashes: {error}");
    }
    if let Err(error) = write(dir, &key) {
        tracing::warn!("cannot keep the key of query hashes, which end with this process: {error}");
    }
    key
}

/// Returns the key if it is there and secret.
pub(crate) fn read(dir: &Path) -> Option<[u8; BYTES]> {
    let path = dir.join(FILE);
    let is_secret = fs::metadata(&path).is_ok_and(|file| file.mode() & 0o077 == 0);
    let text = fs::read_to_string(&path).ok().filter(|_| is_secret)?;
    let mut key = [0; BYTES];
    hex::decode(text.trim(), &mut key)?;
    Some(key)
}

/// Writes the key under a temporary name and renames it: a crash leaves a complete file or none.
fn write(dir: &Path, key: &[u8; BYTES]) -> std::io::Result<()> {
    let beside = dir.join(format!("{FILE}.new"));
    let _ = fs::remove_file(&beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    writeln!(file, "{}", hex::encode(key))?;
    file.sync_all()?;
    fs::rename(&beside, dir.join(FILE))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_a_lost_one_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        assert_eq!(read(dir), None);
        let key = query_key(dir);
        assert_ne!(key, [0; BYTES]);
        assert_eq!((query_key(dir), read(dir)), (key, Some(key)));
        let path = dir.join(FILE);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let mut last = key;
        for text in ["", "00ff", &"zz".repeat(BYTES), &"é".repeat(BYTES), &"00".repeat(BYTES + 1)]
        {
            fs::write(&path, text).unwrap();
            let new = query_key(dir);
            assert_ne!(new, last, "{text}");
            assert_eq!(query_key(dir), new);
            last = new;
        }
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert_ne!(query_key(dir), last, "others may have read it");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_only_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("none");
        assert_ne!(query_key(&missing), query_key(&missing));
        assert!(!missing.exists());
    }
}
