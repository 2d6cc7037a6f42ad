//! Events that hooks stored while no gate was running, in `<home>/spool`: one frame a line. The
//! size of a second file counts the events that no longer fitted.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use domain::ledger::frame::EventFrame;
use gateway::events::{Arrival, Events};

use crate::home::Home;

/// The maximum size of the waiting events; at a few kilobytes each, thousands of them.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

const EVENTS: &str = "events.jsonl";
/// The spool while it is being read; left here by a gate that was killed meanwhile.
const TAKEN: &str = "events.taken.jsonl";
const DROPPED: &str = "dropped";

fn folder(home: &Home) -> PathBuf {
    home.path().join("spool")
}

/// Stores an event for the next gate, or counts it if the spool is full.
pub(crate) fn append(home: &Home, frame: &str) -> io::Result<()> {
    let folder = folder(home);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let mut events = open(&folder.join(EVENTS))?;
    if events.metadata()?.len() + frame.len() as u64 > BYTES_MAX {
        return open(&folder.join(DROPPED))?.write_all(b"x");
    }
    // One write, so that concurrent hooks do not mix their lines.
    events.write_all(format!("{frame}\n").as_bytes())
}

fn open(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// Reads the stored events. A frame may be read twice, but is never lost.
pub(crate) async fn take(home: &Home, events: &Events) {
    let folder = folder(home);
    let taken = folder.join(TAKEN);
    take_file(&taken, events).await;
    if fs::rename(folder.join(EVENTS), &taken).is_ok() {
        take_file(&taken, events).await;
    }
    let dropped = folder.join(DROPPED);
    if let Ok(file) = fs::metadata(&dropped)
        && fs::remove_file(&dropped).is_ok()
    {
        events.drop_events(file.len());
    }
}

async fn take_file(path: &Path, events: &Events) {
    let Ok(text) = fs::read(path) else {
        return;
    };
    let mut count = 0;
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match EventFrame::parse(line) {
            Ok(frame) => {
                events.record(frame, None, Arrival::Spool).await;
                count += 1;
            }
            Err(fault) => tracing::warn!("skipped an event in the spool: {fault}"),
        }
    }
    tracing::info!(events = count, "imported hook events from the spool");
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!("cannot remove '{}': {error}", path.display());
    }
}
