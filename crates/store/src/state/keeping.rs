//! Decides when the second copy of the decisions is written: at once after a change, but a large
//! one at most once a second, and at the latest when the ledger is closed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::decisions::{self, DecisionsFile};
use crate::database::connection::ReadOnlyFile;
use crate::database::lock::Lock;
use crate::database::{FILE, WRITERS, transaction};
use crate::error::StoreError;
use crate::limits::{DECISIONS_COST_MAX, DECISIONS_EVERY};

/// Keeps the second copy of a home's decisions.
#[derive(Clone)]
pub(crate) struct Keeper {
    home: PathBuf,
    progress: Arc<Mutex<Progress>>,
}

#[derive(Default)]
struct Progress {
    written: Option<Instant>,
    /// The duration of the last write.
    cost: Duration,
    /// A thread waits to write.
    is_due: bool,
}

/// The way in which a change reaches the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    AtOnce,
    After(Duration),
    /// A thread will write it already.
    Due,
}

impl Progress {
    fn pace(&self, now: Instant) -> Pace {
        let next = self.written.map(|written| written + DECISIONS_EVERY);
        match next {
            _ if self.is_due => Pace::Due,
            Some(next) if next > now && self.cost > DECISIONS_COST_MAX => Pace::After(next - now),
            Some(_) | None => Pace::AtOnce,
        }
    }
}

impl Keeper {
    pub(crate) fn of(home: &Path) -> Keeper {
        Keeper { home: home.to_owned(), progress: Arc::default() }
    }

    /// Writes a change that was just committed, or sees to it that it is written soon.
    pub(crate) fn changed(&self, db: &Connection) {
        let pace = self.progress().pace(Instant::now());
        match pace {
            Pace::AtOnce => self.write(db),
            Pace::Due => {}
            Pace::After(pause) => {
                self.progress().is_due = true;
                let keeper = self.clone();
                let later = std::thread::Builder::new().name("ledger-decisions".to_owned());
                let spawned = later.spawn(move || {
                    std::thread::park_timeout(pause);
                    keeper.finish();
                });
                if spawned.is_err() {
                    self.finish();
                }
            }
        }
    }

    /// Writes what is due.
    pub(crate) fn finish(&self) {
        if !self.progress().is_due {
            return;
        }
        match ReadOnlyFile::live(&self.home.join(FILE)).connect() {
            Ok(db) => self.write(&db),
            Err(error) => tracing::error!("cannot keep a copy of the decisions: {error}"),
        }
    }

    fn write(&self, db: &Connection) {
        let begun = Instant::now();
        self.progress().is_due = false;
        if let Err(error) = self.try_write(db) {
            tracing::error!("cannot keep a copy of the decisions: {error}");
        }
        let mut progress = self.progress();
        (progress.written, progress.cost) = (Some(Instant::now()), begun.elapsed());
    }

    /// Writes the file while no other process does, so that an older state never replaces a newer.
    fn try_write(&self, db: &Connection) -> Result<(), StoreError> {
        let _lock = Lock::decisions(&self.home.join(WRITERS))?;
        db.execute_batch("BEGIN")?;
        let written = decisions::write(db, &self.home);
        transaction::give_up(db);
        written
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Compares the two copies when the ledger is opened. Returns what an operator must know. The
/// caller holds the maintenance lock, has read the file before, and says whether the tables may be
/// older than the decisions.
pub(crate) fn reconcile(
    db: &Connection,
    (home, file): (&Path, &DecisionsFile),
    is_doubtful: bool,
) -> Result<Option<String>, StoreError> {
    // After the file: a process that decides now commits first, and writes the file afterwards.
    let number = decisions::number(db)?;
    let notice = match file {
        DecisionsFile::Valid(kept) if kept.number > number => {
            transaction::whole(db, |db| kept.restore(db))?;
            let (file, time) = (decisions::FILE, &kept.written_at);
            Some(format!("operator decisions were restored from {file}, written {time}"))
        }
        DecisionsFile::Valid(kept) if kept.number == number => None,
        DecisionsFile::Missing | DecisionsFile::Invalid(_) | DecisionsFile::Valid(_)
            if is_doubtful =>
        {
            transaction::whole(db, |db| decisions::fail_closed(db, number + 1))?;
            None
        }
        DecisionsFile::Invalid(why) => {
            tracing::error!("'{}' is not trusted: {why}; it is written anew", decisions::FILE);
            None
        }
        DecisionsFile::Missing | DecisionsFile::Valid(_) => None,
    };
    let is_current = match file {
        DecisionsFile::Valid(kept) => kept.number == decisions::number(db)?,
        DecisionsFile::Missing => decisions::number(db)? == 0,
        DecisionsFile::Invalid(_) => false,
    };
    if !is_current {
        Keeper::of(home).write(db);
    }
    Ok(notice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_is_written_once_a_second() {
        let now = Instant::now();
        let (quick, slow) = (Duration::ZERO, DECISIONS_COST_MAX * 2);
        let of = |written, cost, is_due| Progress { written, cost, is_due };
        let ago = |ms| now.checked_sub(Duration::from_millis(ms));
        for (progress, expected) in [
            (Progress::default(), Pace::AtOnce),
            (of(ago(1), quick, false), Pace::AtOnce),
            (of(ago(400), slow, false), Pace::After(Duration::from_millis(600))),
            (of(ago(2_000), slow, false), Pace::AtOnce),
            (of(ago(1), slow, true), Pace::Due),
        ] {
            assert_eq!(progress.pace(now), expected);
        }
    }
}
