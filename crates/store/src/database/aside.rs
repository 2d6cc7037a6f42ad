//! Files of a home that are kept under another name, so that nothing uses them any more.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use receipt::Hash;

use super::timestamp;
use crate::error::StoreError;

/// Renames a file of the home; says so, with its new name and its hash.
pub(crate) fn set_aside(home: &Path, name: &str) -> Result<String, StoreError> {
    let kept = kept_name(name);
    let cannot = |error| StoreError::Write(format!("cannot set '{name}' aside: {error}"));
    let hash = File::open(home.join(name)).and_then(Hash::of_all).map_err(cannot)?;
    fs::rename(home.join(name), home.join(&kept)).map_err(cannot)?;
    Ok(format!("set '{name}' aside as '{kept}' ({hash})"))
}

/// Writes lines to a file of the home; returns its name and the hash of its content.
pub(crate) fn keep_lines(
    home: &Path,
    name: &str,
    lines: &[String],
) -> Result<(String, Hash), StoreError> {
    let mut kept = kept_name(name);
    // The time in the name is in milliseconds.
    while home.join(&kept).exists() {
        std::thread::park_timeout(Duration::from_millis(1));
        kept = kept_name(name);
    }
    let cannot = |error| StoreError::Write(format!("cannot write '{kept}': {error}"));
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let text = lines.join("\n") + "\n";
    let written = options.open(home.join(&kept)).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        File::open(home)?.sync_all()
    });
    written.map_err(cannot)?;
    Ok((kept, Hash::of(text.as_bytes())))
}

fn kept_name(name: &str) -> String {
    format!("{name}.aside-{}", timestamp::now().replace(':', ""))
}
