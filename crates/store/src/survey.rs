//! An examination of a home's ledger that only reads: all the evidence, and what it shows in words.

use std::path::Path;

use domain::config::AnchorConfig;
use rusqlite::Connection;

use crate::database::connection::ReadOnlyFile;
use crate::database::lock::Lock;
use crate::database::{FILE, WRITERS, schema};
use crate::error::StoreError;
use crate::evidence::finding::{FindingKind, words_of};
use crate::evidence::{DatabaseState, Evidence, judge};
use crate::state::signed_log::DecisionsFile;
use crate::write::journal;
pub use crate::write::journal_state::JournalState;

/// The faults of the file that are reported; more of the same would not help.
const INTEGRITY_FAULTS_MAX: u32 = 20;

/// The state of a home's ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    pub database: FileState,
    /// Public keys of the home.
    pub keys: usize,
    pub journals: Vec<JournalState>,
    /// Files with lines of journals that were damaged when they were recovered.
    pub set_aside: Vec<String>,
    pub checkpoint: FileState,
    pub decisions: FileState,
    /// Faults, in words.
    pub faults: Vec<String>,
    /// Matters that are no faults, in words.
    pub notes: Vec<String>,
}

/// A file of the home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FileState {
    #[default]
    Missing,
    /// It cannot be used, for this reason.
    Invalid(String),
    /// Its content, in words.
    Valid(String),
}

impl Survey {
    /// Examines everything but the content of the database.
    pub fn of(home: &Path, anchor: Option<&AnchorConfig>) -> Survey {
        let evidence = Evidence::in_full(home, anchor);
        let findings = judge::judge(&evidence);
        Survey {
            database: match &evidence.database {
                DatabaseState::Missing => FileState::Missing,
                DatabaseState::Empty => FileState::Invalid("the file is empty".to_owned()),
                DatabaseState::Present => FileState::Valid("readable".to_owned()),
                DatabaseState::Outdated => FileState::Invalid(judge::OUTDATED.to_owned()),
                DatabaseState::Unreadable(error) => FileState::Invalid(error.to_string()),
            },
            checkpoint: match &evidence.checkpoint {
                None => FileState::Missing,
                Some(Ok(known)) => FileState::Valid(format!("{} chains", known.heads.len())),
                Some(Err(why)) => FileState::Invalid(why.to_string()),
            },
            decisions: match &evidence.decisions {
                DecisionsFile::Missing => FileState::Missing,
                DecisionsFile::Valid(kept, _) => {
                    FileState::Valid(format!("written {}", kept.written_at))
                }
                DecisionsFile::Invalid(why) => FileState::Invalid(why.clone()),
            },
            keys: evidence.key_files,
            journals: evidence.journals,
            set_aside: evidence.set_aside,
            faults: words_of(&findings, FindingKind::is_fault),
            notes: words_of(&findings, |kind| !kind.is_fault()),
        }
    }

    /// Reports whether nothing was ever recorded in this home.
    pub fn is_new(&self) -> bool {
        self.database == FileState::Missing && self.faults.is_empty()
    }
}

/// Returns the faults of the database file that SQLite finds in its structure, and the tables that it
/// lacks. Takes seconds for a large file.
pub fn integrity(home: &Path) -> Result<Vec<String>, StoreError> {
    let db = ReadOnlyFile::at(&home.join(FILE))?.connect()?;
    let faults = structure(&db)?;
    let is_ours = faults.is_empty() && schema::is_current(&db)?;
    if is_ours { schema::lacking(&db) } else { Ok(faults) }
}

fn structure(db: &Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = db.prepare(&format!("PRAGMA quick_check({INTEGRITY_FAULTS_MAX})"))?;
    let mut faults = Vec::new();
    let mut rows = statement.query([])?;
    loop {
        match rows.next() {
            Ok(Some(row)) => faults.extend(row.get::<_, String>(0).ok().filter(|it| it != "ok")),
            Ok(None) => return Ok(faults),
            Err(error) => {
                faults.push(error.to_string());
                return Ok(faults);
            }
        }
    }
}

/// Returns the number of journals whose process is gone: their last entries are not in the tables
/// until a gate starts in the home.
pub fn abandoned_journals(home: &Path) -> usize {
    let writers = home.join(WRITERS);
    journal::chains(&writers).iter().filter(|id| !Lock::is_held(&writers, id)).count()
}

/// Returns the chains that living processes write.
pub fn living(home: &Path) -> Vec<String> {
    let writers = home.join(WRITERS);
    let chains = journal::chains(&writers).into_iter();
    let mut living: Vec<String> = chains.filter(|id| Lock::is_held(&writers, id)).collect();
    living.extend(Lock::held(&writers));
    living.sort_unstable();
    living.dedup();
    living
}
