//! Facts about programs, each kept while the program's file stays the same. Asking a
//! program can take a second, and so can hashing a large one; a run needs both before every step.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Facts of one kind, by program and question.
pub(super) struct KnownFacts<T>(Mutex<BTreeMap<(PathBuf, String), KnownFact<T>>>);

struct KnownFact<T> {
    file: FileState,
    fact: T,
}

/// The state of a file. Every change of its content changes the state.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl<T: Clone> KnownFacts<T> {
    pub(super) const fn new() -> KnownFacts<T> {
        KnownFacts(Mutex::new(BTreeMap::new()))
    }

    /// Returns the fact, which `find` finds if it is not known. A failure is not kept, nor is
    /// anything about a script: the program that it starts may change without it.
    pub(super) async fn get<E>(
        &self,
        program: &Path,
        question: &str,
        find: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let Some(file) = FileState::of(program) else { return find.await };
        let key = (program.to_owned(), question.to_owned());
        if let Some(known) = self.facts().get(&key).filter(|known| known.file == file) {
            return Ok(known.fact.clone());
        }
        let fact = find.await?;
        self.facts().insert(key, KnownFact { file, fact: fact.clone() });
        Ok(fact)
    }

    fn facts(&self) -> std::sync::MutexGuard<'_, BTreeMap<(PathBuf, String), KnownFact<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileState {
    /// Returns `None` for a script.
    fn of(program: &Path) -> Option<FileState> {
        if is_script(program) {
            return None;
        }
        program.metadata().ok().as_ref().map(FileState::from)
    }
}

impl From<&Metadata> for FileState {
    fn from(file: &Metadata) -> FileState {
        FileState {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

pub(super) fn is_script(path: &Path) -> bool {
    let mut start = [0; 2];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && &start == b"#!"
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Asks four times, replacing the program before the third, and returns the answers. Each answer
    /// is the number of times that the program itself has been asked.
    async fn answers(content: &str) -> Vec<u32> {
        let dir = tempfile::tempdir().unwrap();
        let (program, new) = (dir.path().join("program"), dir.path().join("new"));
        std::fs::write(&program, content).unwrap();
        let (known, mut found, mut answers) = (KnownFacts::new(), 0, Vec::new());
        for round in 0..4 {
            if round == 2 {
                std::fs::write(&new, content).unwrap();
                std::fs::rename(&new, &program).unwrap();
            }
            let find = async {
                found += 1;
                Ok::<_, Infallible>(found)
            };
            answers.push(known.get(&program, "--version", find).await.unwrap());
        }
        answers
    }

    #[tokio::test]
    async fn a_fact_is_found_once_for_each_file() {
        assert_eq!(answers("\x7fELF").await, [1, 1, 2, 2]);
    }

    #[tokio::test]
    async fn a_script_is_asked_each_time() {
        assert_eq!(answers("#!/bin/sh\n").await, [1, 2, 3, 4]);
    }

    #[tokio::test]
    async fn a_failure_is_not_kept_and_questions_are_told_apart() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let known = KnownFacts::new();
        assert_eq!(known.get(file.path(), "a", async { Err("busy") }).await, Err("busy"));
        let ask = async |question, answer| {
            known.get(file.path(), question, async { Ok::<_, Infallible>(answer) }).await.unwrap()
        };
        assert_eq!((ask("a", 1).await, ask("b", 2).await, ask("a", 3).await), (1, 2, 1));
        std::fs::write(file.path(), "longer").unwrap();
        assert_eq!(ask("a", 4).await, 4);
    }
}
