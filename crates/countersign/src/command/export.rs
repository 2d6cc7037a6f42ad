//! Streams a response of any length to stdout or into a new file. The file is written under a
//! temporary name and renamed at the end, so a file with the final name is complete.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use axum::body::Body;
use http_body_util::BodyExt;

use crate::command::connect::move_to_free;
use crate::control::{Control, lost};
use crate::exit::Failure;
use crate::output::progress::while_waiting;
use crate::output::{self, Audience};

pub(super) async fn to(control: &Control, path: &str, file: Option<&Path>) -> Result<(), Failure> {
    let body = control.stream(path, &[]).await?;
    match file {
        None => pour(body, output::write).await,
        Some(file) => {
            let mut output = Output::create(file)?;
            while_waiting("exporting", pour(body, |bytes| output.write(bytes))).await?;
            output.finish()
        }
    }
}

async fn pour(
    mut body: Body,
    mut write: impl FnMut(&[u8]) -> Result<Audience, Failure>,
) -> Result<(), Failure> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(lost)?;
        let Some(bytes) = frame.data_ref() else { continue };
        if write(bytes)? == Audience::Gone {
            return Ok(());
        }
    }
    Ok(())
}

/// A file that is being written. If dropped before its end, it is removed.
pub(super) struct Output {
    file: File,
    place: PathBuf,
    /// The temporary file; none for a pipe or a device, which cannot be replaced.
    beside: Option<PathBuf>,
}

impl Output {
    pub(super) fn create(place: &Path) -> Result<Output, Failure> {
        let ending = format!(".partial-{}", std::process::id());
        let beside = (!is_special(place)).then(|| with_ending(place, &ending));
        let mut options = OpenOptions::new();
        options.write(true).mode(0o600);
        let file = match &beside {
            None => options.open(place),
            Some(path) => {
                refuse_existing(place)?;
                options.create_new(true).open(path)
            }
        };
        let file = file.map_err(|error| unwritten(place, &error))?;
        Ok(Output { file, place: place.to_owned(), beside })
    }

    /// Returns the file that is written, for a library that opens it itself.
    pub(super) fn path(&self) -> &Path {
        self.beside.as_deref().unwrap_or(&self.place)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<Audience, Failure> {
        self.file.write_all(bytes).map_err(|error| unwritten(&self.place, &error))?;
        Ok(Audience::There)
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let Some(beside) = self.beside.take() else { return Ok(()) };
        let moved = self.file.sync_all().and_then(|()| move_to_free(&beside, &self.place));
        moved.map_err(|error| {
            let _ = std::fs::remove_file(&beside);
            unwritten(&self.place, &error)
        })
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            let _ = std::fs::remove_file(beside);
        }
    }
}

/// Refuses a path that exists already: no file is overwritten.
pub(super) fn refuse_existing(place: &Path) -> Result<(), Failure> {
    match place.symlink_metadata() {
        Ok(_) if !is_special(place) => {
            Err(Failure::input(format!("'{}' exists: name another file", place.display())))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Reports whether the path is a pipe or a device, which is written to directly.
pub(super) fn is_special(place: &Path) -> bool {
    place.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Appends an ending: `a.jsonl` and `.pub.pem` make `a.jsonl.pub.pem`.
pub(super) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn unwritten(place: &Path, error: &std::io::Error) -> Failure {
    let what = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            "; nothing was kept: free some space, or write to another disk"
        }
        _ => "",
    };
    Failure::system(format!("cannot write '{}': {error}{what}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_appears_once_it_is_complete_and_replaces_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("a.jsonl");
        let exists = |failure: Failure| failure.message().contains("exists");
        drop(Output::create(&place).unwrap());
        assert!(!place.exists());
        let mut output = Output::create(&place).unwrap();
        output.write(b"new").unwrap();
        output.finish().unwrap();
        assert!(Output::create(&place).is_err_and(exists));
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "new");
        // A file created meanwhile is kept too, and so is another one next to it.
        let (place, partial) = (dir.path().join("b"), dir.path().join("b.partial"));
        std::fs::write(&partial, "theirs").unwrap();
        let output = Output::create(&place).unwrap();
        std::fs::write(&place, "theirs").unwrap();
        assert!(output.finish().is_err_and(exists));
        for file in [&place, &partial] {
            assert_eq!(std::fs::read_to_string(file).unwrap(), "theirs");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_full_disk_is_reported() {
        let mut output = Output::create(Path::new("/dev/full")).unwrap();
        let Err(failure) = output.write(b"x") else { panic!("it is full") };
        assert!(failure.message().contains("free some space"), "{}", failure.message());
        drop(output);
        assert!(Path::new("/dev/full").exists());
    }
}
