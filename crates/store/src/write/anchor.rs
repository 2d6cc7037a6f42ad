//! The anchor: a file or a command outside the ledger that receives each checkpoint. Calls never
//! wait for it. If it is slow or fails, only the newest checkpoint is delivered later.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use domain::config::AnchorConfig;
use jiff::Timestamp;

use crate::error::StoreError;
use crate::limits::{
    ANCHOR_CLOSE_MAX, ANCHOR_LOOK, ANCHOR_PAUSE_MAX, ANCHOR_PAUSE_MIN, ANCHOR_TIME_MAX,
    ANCHOR_WORDS_MAX,
};
use crate::write::checkpoint_file::{CHECKPOINT_FILE, kept_checkpoint};
use crate::write::health::Health;

/// The delivering thread.
pub(crate) struct Anchor {
    slot: Arc<Slot>,
    health: Arc<Health>,
    thread: JoinHandle<()>,
}

/// The place in which a checkpoint waits: the file holds the newest one.
#[derive(Default)]
struct Slot {
    state: Mutex<SlotState>,
    changed: Condvar,
}

#[derive(Default)]
struct SlotState {
    /// There is a checkpoint that has not been delivered.
    is_waiting: bool,
    is_closing: bool,
    is_done: bool,
}

impl Anchor {
    /// Starts the thread, if an anchor is configured.
    pub(crate) fn spawn(
        home: &Path,
        config: Option<&AnchorConfig>,
        health: &Arc<Health>,
    ) -> Result<Option<Anchor>, StoreError> {
        let Some(config) = config else {
            return Ok(None);
        };
        health.set_anchor(|_| ());
        let slot = Arc::new(Slot::default());
        let delivery =
            Delivery { home: home.to_owned(), config: config.clone(), health: health.clone() };
        let shared = slot.clone();
        let thread = thread::Builder::new()
            .name("ledger-anchor".to_owned())
            .spawn(move || delivery.run(&shared))
            .map_err(|error| StoreError::Write(format!("cannot start a thread: {error}")))?;
        Ok(Some(Anchor { slot, health: health.clone(), thread }))
    }

    /// Announces a new checkpoint.
    pub(crate) fn offer(&self) {
        self.health.set_anchor(|health| {
            health.waiting_since.get_or_insert_with(Timestamp::now);
        });
        self.slot.lock().is_waiting = true;
        self.slot.changed.notify_all();
    }

    /// Ends the thread after one last attempt, for which it waits a moment.
    pub(crate) fn finish(self) {
        let deadline = Instant::now() + ANCHOR_CLOSE_MAX;
        let mut state = self.slot.lock();
        state.is_closing = true;
        self.slot.changed.notify_all();
        while !state.is_done {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return tracing::warn!("the anchor has not taken the last checkpoint in time");
            }
            state = self.slot.wait(state, left);
        }
        drop(state);
        let _ = self.thread.join();
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, SlotState>,
        time: Duration,
    ) -> MutexGuard<'a, SlotState> {
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until there is something to deliver; false once nothing more will come.
    fn next(&self) -> bool {
        let mut state = self.lock();
        loop {
            if state.is_waiting {
                state.is_waiting = false;
                return true;
            }
            if state.is_closing {
                state.is_done = true;
                self.changed.notify_all();
                return false;
            }
            state = self.wait(state, ANCHOR_PAUSE_MAX);
        }
    }

    /// Puts a checkpoint back that could not be delivered, and pauses unless the process ends.
    fn put_back(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut state = self.lock();
        if state.is_closing {
            return;
        }
        state.is_waiting = true;
        while !state.is_closing {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.wait(state, left);
        }
    }
}

/// Delivers checkpoints, on the thread.
struct Delivery {
    home: PathBuf,
    config: AnchorConfig,
    health: Arc<Health>,
}

impl Delivery {
    fn run(&self, slot: &Slot) {
        let mut failures = 0;
        while slot.next() {
            match self.deliver() {
                Ok(()) => {
                    failures = 0;
                    let is_newest = !slot.lock().is_waiting;
                    self.health.set_anchor(|health| {
                        health.delivered_at = Some(Timestamp::now());
                        health.error = None;
                        if is_newest {
                            health.waiting_since = None;
                        }
                    });
                }
                Err(words) => {
                    failures += 1;
                    tracing::warn!(
                        "the anchor did not take a checkpoint (try {failures}): {words}"
                    );
                    self.health.set_anchor(|health| health.error = Some(words));
                    slot.put_back(pause(failures));
                }
            }
        }
    }

    fn deliver(&self) -> Result<(), String> {
        match &self.config {
            AnchorConfig::File(path) => self.append(&self.home.join(path)),
            AnchorConfig::Command(words) => self.execute(words),
        }
    }

    fn append(&self, path: &Path) -> Result<(), String> {
        let receipt = kept_checkpoint(&self.home).map_err(|error| error.to_string())?;
        let Some(receipt) = receipt else {
            return Err(format!("{CHECKPOINT_FILE} is missing"));
        };
        let mut options = OpenOptions::new();
        let appended =
            options.append(true).create(true).mode(0o600).open(path).and_then(|mut file| {
                // A line that a crash cut short stays alone.
                let start = if is_torn(path) { "\n" } else { "" };
                file.write_all(format!("{start}{receipt}\n").as_bytes())?;
                file.sync_data()
            });
        appended.map_err(|error| format!("cannot append to '{}': {error}", path.display()))
    }

    /// Runs the command with the checkpoint as its standard input.
    fn execute(&self, words: &[String]) -> Result<(), String> {
        let Some((program, args)) = words.split_first() else {
            return Err("the command is empty".to_owned());
        };
        let input = File::open(self.home.join(CHECKPOINT_FILE))
            .map_err(|error| format!("cannot read {CHECKPOINT_FILE}: {error}"))?;
        let mut child = Command::new(program)
            .args(args)
            .current_dir(&self.home)
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start '{program}': {error}"))?;
        let status = ended(&mut child).map_err(|error| format!("'{program}': {error}"))?;
        let Some(status) = status else {
            let seconds = ANCHOR_TIME_MAX.as_secs();
            return Err(format!("'{program}' was killed after {seconds} seconds"));
        };
        if status.success() {
            return Ok(());
        }
        let mut said = Vec::new();
        if let Some(output) = child.stderr.take() {
            let _ = output.take(ANCHOR_WORDS_MAX).read_to_end(&mut said);
        }
        let said = String::from_utf8_lossy(&said);
        Err(format!("'{program}' ended with {status}: {}", said.trim()))
    }
}

/// Reports whether the last line of a file lacks its end, if the file can be read.
fn is_torn(path: &Path) -> bool {
    let mut last = [b'\n'];
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)
    });
    read.is_ok() && last != *b"\n"
}

/// Waits for a process, and kills it when its time is over.
fn ended(child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + ANCHOR_TIME_MAX;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::park_timeout(ANCHOR_LOOK);
    }
}

/// Returns the pause after this many failures in a row.
fn pause(failures: u32) -> Duration {
    let doubled = ANCHOR_PAUSE_MIN.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
    doubled.min(ANCHOR_PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_is_torn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchor");
        assert!(!is_torn(&path), "there is no file");
        for (text, expected) in [("", false), ("{}\n", false), ("{}\n{", true)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(is_torn(&path), expected, "{text:?}");
        }
    }

    #[test]
    fn pauses_grow_to_a_bound() {
        for (failures, seconds) in [(1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (u32::MAX, 300)] {
            assert_eq!(pause(failures), Duration::from_secs(seconds), "{failures}");
        }
    }
}
