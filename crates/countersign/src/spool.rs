//! Events of hooks on their way into the ledger, in `<home>/spool`: one file for each, from which
//! any gate takes them. A hook writes its file under another name and renames it, so it never waits
//! and no gate sees half an event. An event's id is in the name of its file and becomes that of its
//! record, so an event is recorded once even if a gate is killed while it takes it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use gateway::events::{Events, SpoolNote};
use mcp::task;
use store::Store;
use tokio_util::sync::CancellationToken;
use touch::frame::EventFrame;
use uuid::Uuid;

use crate::home::Home;

/// The maximum size of the waiting events on disk; thousands of them.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The space that a small file takes.
const BLOCK_BYTES: u64 = 4096;

/// Time between two looks of a gate into the spool.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Time that a gate has to look at the process of a hook. The agent waits for that, so it is short.
const NOTE_TIME_MAX: Duration = Duration::from_millis(100);

/// Events taken in one go.
const BATCH_MAX: usize = 256;

/// A file being written; one this old belongs to a hook that was killed.
const UNFINISHED_AGE_MAX: Duration = Duration::from_secs(60);

const WAITING: &str = "json";
const UNFINISHED: &str = "new";
/// An event that a gate is recording; left by a gate that was killed meanwhile.
const TAKEN: &str = "taken";

/// Grows by a byte with each event that did not fit.
const DROPPED: &str = "dropped";
/// The number of those that receipts account for.
const COUNTED: &str = "dropped.counted";
/// Held by the gate that takes events.
const LOCK: &str = "lock";

/// The events of a home that wait for a gate.
#[derive(Clone)]
pub(crate) struct Spool {
    folder: PathBuf,
    events_socket: PathBuf,
}

/// An event's file.
struct SpoolFile {
    path: PathBuf,
    id: Uuid,
    bytes: u64,
}

impl Spool {
    pub(crate) fn of(home: &Home) -> Spool {
        Spool { folder: home.path().join("spool"), events_socket: home.events_socket() }
    }

    /// Stores an event for the next gate, or counts it if the spool is full.
    pub(crate) fn append(&self, frame: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let used: u64 = self.files(WAITING)?.iter().map(SpoolFile::blocks).sum();
        let bytes = frame.len() as u64;
        if used + blocks(bytes) > BYTES_MAX {
            let mut dropped = OpenOptions::new();
            let dropped = dropped.create(true).append(true).mode(0o600);
            return dropped.open(self.folder.join(DROPPED))?.write_all(b"x");
        }
        let id = Uuid::now_v7();
        let name = format!("{id}-{bytes}");
        let unfinished = self.folder.join(format!("{name}.{UNFINISHED}"));
        let mut file =
            OpenOptions::new().create_new(true).write(true).mode(0o600).open(&unfinished)?;
        let written = file.write_all(frame.as_bytes());
        self.notify_gate(SpoolNote::of(id, frame.as_bytes()));
        let moved = written
            .and_then(|()| fs::rename(&unfinished, self.folder.join(format!("{name}.{WAITING}"))));
        if moved.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        moved
    }

    /// Shows this process to the gate that runs here, if one does, as the sender of an event. On a
    /// separate thread, which ends with this process: a gate that is stopped may not answer.
    fn notify_gate(&self, note: SpoolNote) {
        let socket = self.events_socket.clone();
        let (done, told) = mpsc::channel();
        let tell = move || {
            let telling = UnixStream::connect(socket).and_then(|mut stream| {
                stream.write_all(&note.frame())?;
                stream.shutdown(Shutdown::Write)?;
                // The gate closes the connection once it has read the note.
                stream.read(&mut [0])
            });
            let _ = done.send(telling.is_ok());
        };
        if thread::Builder::new().name("note".to_owned()).spawn(tell).is_ok() {
            let _ = told.recv_timeout(NOTE_TIME_MAX);
        }
    }

    /// Sorts out what killed processes left. Call it after the ledger was opened, which recovers
    /// their records.
    pub(crate) fn tidy(&self, store: &Store) -> io::Result<()> {
        let Some(_lock) = self.lock()? else { return Ok(()) };
        for SpoolFile { path, id, .. } in self.files(TAKEN)? {
            match store.read().record(&id.to_string()) {
                Ok(Some(_)) => fs::remove_file(&path)?,
                Ok(None) => fs::rename(&path, path.with_extension(WAITING))?,
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        for SpoolFile { path, .. } in self.files(UNFINISHED)? {
            let age = fs::metadata(&path)?.modified()?.elapsed().unwrap_or_default();
            if age > UNFINISHED_AGE_MAX {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Records waiting events as they come, until `stop` is cancelled.
    pub(crate) async fn watch(self, events: Events, stop: CancellationToken) {
        let mut told = None;
        while !stop.is_cancelled() {
            match self.take(&events, &stop).await {
                Ok(0) => told = None,
                Ok(count) => {
                    tracing::debug!(events = count, "recorded hook events");
                    continue;
                }
                Err(error) => {
                    let error = error.to_string();
                    if told.as_ref() != Some(&error) {
                        tracing::warn!("hook events wait in the spool: {error}");
                        told = Some(error);
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Records some of the waiting events, the oldest first; returns how many files it removed.
    async fn take(&self, events: &Events, stop: &CancellationToken) -> io::Result<usize> {
        let spool = self.clone();
        let looking = task::spawn_blocking(move || spool.look());
        let Some(found) = looking.await.map_err(io::Error::other)?? else { return Ok(0) };
        let FoundEvents { files, dropped, lock: _lock } = found;
        let mut count = 0;
        for file in files {
            if stop.is_cancelled() {
                break;
            }
            self.take_file(&file, events).await?;
            count += 1;
        }
        if let Some(dropped) = dropped {
            events.record_dropped(dropped.new).await.map_err(io::Error::other)?;
            self.write_counted(dropped.all)?;
        }
        Ok(count)
    }

    async fn take_file(&self, file: &SpoolFile, events: &Events) -> io::Result<()> {
        let taken = file.path.with_extension(TAKEN);
        fs::rename(&file.path, &taken)?;
        let text = fs::read(&taken)?;
        match EventFrame::parse(&text) {
            Ok(frame) => {
                if let Err(error) = events.record_spooled(frame, file.id, &text).await {
                    fs::rename(&taken, &file.path)?;
                    return Err(io::Error::other(error));
                }
            }
            Err(fault) => {
                tracing::warn!("dropped an event from the spool: {fault}");
                events.drop_events(1);
            }
        }
        fs::remove_file(&taken)
    }

    /// Returns what waits, with the lock; `None` if nothing does or another gate takes it.
    fn look(&self) -> io::Result<Option<FoundEvents>> {
        let waits = |spool: &Spool| -> io::Result<(Vec<SpoolFile>, Option<DropCount>)> {
            Ok((spool.files(WAITING)?, spool.dropped()?))
        };
        let (files, dropped) = waits(self)?;
        if files.is_empty() && dropped.is_none() {
            return Ok(None);
        }
        let Some(lock) = self.lock()? else { return Ok(None) };
        // Another gate may have taken them before it gave up the lock.
        let (mut files, dropped) = waits(self)?;
        files.sort_by_key(|file| file.id);
        files.truncate(BATCH_MAX);
        Ok(Some(FoundEvents { files, dropped, lock }))
    }

    fn lock(&self) -> io::Result<Option<File>> {
        let file =
            OpenOptions::new().create(true).append(true).mode(0o600).open(self.folder.join(LOCK));
        match file {
            Ok(file) => Ok(file.try_lock().is_ok().then_some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn files(&self, extension: &str) -> io::Result<Vec<SpoolFile>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        for entry in entries {
            files.extend(SpoolFile::at(entry?.path(), extension));
        }
        Ok(files)
    }

    fn dropped(&self) -> io::Result<Option<DropCount>> {
        let all = match fs::metadata(self.folder.join(DROPPED)) {
            Ok(file) => file.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let counted = fs::read_to_string(self.folder.join(COUNTED)).unwrap_or_default();
        let new = all.saturating_sub(counted.trim().parse().unwrap_or(0));
        Ok((new > 0).then_some(DropCount { all, new }))
    }

    fn write_counted(&self, count: u64) -> io::Result<()> {
        let new = self.folder.join(format!("{COUNTED}.{UNFINISHED}"));
        let mut file =
            OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
        writeln!(file, "{count}")?;
        fs::rename(new, self.folder.join(COUNTED))
    }
}

/// The events that a gate found.
struct FoundEvents {
    files: Vec<SpoolFile>,
    dropped: Option<DropCount>,
    lock: File,
}

struct DropCount {
    all: u64,
    /// Those that no receipt accounts for.
    new: u64,
}

impl SpoolFile {
    /// Reads the name, which also holds the size: a hook adds sizes up without opening files.
    fn at(path: PathBuf, extension: &str) -> Option<SpoolFile> {
        let name = Path::new(path.file_name()?);
        if name.extension()? != extension {
            return None;
        }
        let (id, bytes) = name.file_stem()?.to_str()?.rsplit_once('-')?;
        let (id, bytes) = (id.parse().ok()?, bytes.parse().ok()?);
        Some(SpoolFile { path, id, bytes })
    }

    fn blocks(&self) -> u64 {
        blocks(self.bytes)
    }
}

fn blocks(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES).max(1) * BLOCK_BYTES
}
