//! An examination of a home's ledger that only reads: the database file, the journals, the keys, the
//! last checkpoint, the anchor and the copy of the decisions. It reports what is wrong and what is known.

use std::path::Path;

use domain::config::AnchorConfig;
use rusqlite::Connection;

use crate::anchored;
use crate::database::connection::ReadOnlyFile;
use crate::database::lock::Lock;
use crate::database::{FILE, WRITERS, schema};
use crate::error::StoreError;
use crate::evidence::{self, CheckpointFile, DatabaseFile};
use crate::keys;
use crate::state::decisions::{self, DecisionsFile};
use crate::write::journal::{self, DAMAGED_ENDING};

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

/// The journal of one chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalState {
    pub chain_id: String,
    /// A process writes it.
    pub is_alive: bool,
    /// Lines that can be read.
    pub entries: usize,
    pub damaged: usize,
    /// Entries that are not in the tables yet; none are known if the database is lost.
    pub unfiled: Option<usize>,
    /// Entries that cannot be read and are not in the tables.
    pub lost: u64,
}

impl Survey {
    /// Examines everything but the content of the database.
    pub fn of(home: &Path, anchor: Option<&AnchorConfig>) -> Survey {
        let mut survey =
            Survey { keys: keys::count(&home.join(keys::FOLDER)), ..Survey::default() };
        let db = survey.examine_database(home);
        survey.examine_journals(home, db.as_ref());
        survey.examine_set_aside(home);
        survey.examine_checkpoint(home);
        survey.examine_decisions(home, db.as_ref());
        if let Some(db) = &db {
            let examined = survey.examine_tables(home, db);
            survey.faults.extend(examined.err().map(|error| error.to_string()));
            survey.examine_anchor(home, anchor);
        }
        survey
    }

    /// Reports whether nothing was ever recorded in this home.
    pub fn is_new(&self) -> bool {
        self.database == FileState::Missing && self.faults.is_empty()
    }

    fn examine_database(&mut self, home: &Path) -> Option<Connection> {
        if let Some(words) = evidence::of_files(home) {
            self.faults.push(words);
        }
        match DatabaseFile::of(home) {
            DatabaseFile::Missing => return None,
            DatabaseFile::Empty => {
                self.database = FileState::Invalid("the file is empty".to_owned());
                return None;
            }
            DatabaseFile::Present => {}
        }
        let opened = ReadOnlyFile::at(&home.join(FILE)).and_then(|file| file.connect());
        let opened = opened.and_then(|db| {
            schema::check_format(&db)?;
            let is_current = schema::is_current(&db)?;
            Ok((db, is_current))
        });
        match opened {
            Ok((db, true)) => {
                self.database = FileState::Valid("readable".to_owned());
                Some(db)
            }
            Ok((_, false)) => {
                let words =
                    "it has the layout of an older version: start the gate once to migrate it";
                self.database = FileState::Invalid(words.to_owned());
                self.notes.push(format!("the database was not examined: {words}"));
                None
            }
            Err(error) => {
                self.database = FileState::Invalid(error.to_string());
                self.faults.push(error.of_reading().to_string());
                None
            }
        }
    }

    fn examine_tables(&mut self, home: &Path, db: &Connection) -> Result<(), StoreError> {
        self.faults.extend(evidence::of_tables(db, home)?);
        let folder = home.join(keys::FOLDER);
        let public = keys::all_public(&folder);
        let known = |fingerprint: &str| {
            public.iter().any(|key| key.fingerprint().to_string() == fingerprint)
        };
        let mut statement = db.prepare("SELECT DISTINCT key FROM chains")?;
        for key in statement.query_map([], |row| row.get::<_, String>(0))? {
            let key = key?;
            if !known(&key) {
                self.faults.push(format!("the public key {key}, which signed chains, is missing"));
            }
        }
        if let Some(key) = keys::named(db)?.filter(|key| !keys::has_secret(&folder, key)) {
            self.faults.push(format!("the secret half of the signing key {key} is missing"));
        }
        self.notes.extend(decisions::lost_at(db)?.map(|at| decisions::lost_words(&at)));
        Ok(())
    }

    fn examine_anchor(&mut self, home: &Path, anchor: Option<&AnchorConfig>) {
        match anchored::check(home, anchor) {
            Ok(check) => {
                self.faults.extend(check.faults);
                self.notes.extend(check.notes);
            }
            Err(error) => self.faults.push(error.to_string()),
        }
    }

    fn examine_journals(&mut self, home: &Path, db: Option<&Connection>) {
        let writers = home.join(WRITERS);
        for chain_id in journal::chains(&writers) {
            let is_alive = Lock::is_held(&writers, &chain_id);
            // In this order: a living writer files entries that are in the journal already.
            let filed = db.and_then(|db| filed(db, &chain_id));
            let Some(scan) = journal::scan(&writers, &chain_id) else {
                continue;
            };
            let last = filed.unwrap_or(0);
            let lost = if is_alive { 0 } else { scan.lost_after(last).count() };
            let unfiled = scan.rows.iter().filter(|row| row.entry > last).count();
            let (entries, damaged) = (scan.rows.len(), scan.damaged.len());
            if damaged > 0 {
                let words = format!("the journal of chain {chain_id} has {damaged} damaged lines");
                let end = match lost {
                    0 => "all of them are in the database already".to_owned(),
                    lost => format!("{lost} entries are lost, the rest will be recovered"),
                };
                self.faults.push(format!("{words}: {end}"));
            }
            if !is_alive && filed.is_some() && unfiled > 0 {
                self.notes.push(format!(
                    "the journal of chain {chain_id} has {unfiled} entries of a process that ended \
                     abruptly; the next start files them"
                ));
            }
            let unfiled = filed.map(|_| unfiled);
            self.journals.push(JournalState {
                chain_id,
                is_alive,
                entries,
                damaged,
                unfiled,
                lost,
            });
        }
    }

    fn examine_set_aside(&mut self, home: &Path) {
        let files = std::fs::read_dir(home.join(WRITERS)).into_iter().flatten().flatten();
        let paths = files.map(|file| file.path());
        let damaged =
            paths.filter(|path| path.extension().is_some_and(|end| end == DAMAGED_ENDING));
        let names = damaged.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        self.set_aside = names.collect();
        self.set_aside.sort_unstable();
        for name in &self.set_aside {
            self.notes.push(format!("damaged lines of a journal are kept in '{WRITERS}/{name}'"));
        }
    }

    fn examine_checkpoint(&mut self, home: &Path) {
        self.checkpoint = match evidence::checkpoint(home) {
            CheckpointFile::Missing => FileState::Missing,
            CheckpointFile::Invalid(why) => {
                self.faults.push(format!("the checkpoint is not trusted: {why}"));
                FileState::Invalid(why)
            }
            CheckpointFile::Valid(heads) => FileState::Valid(format!("{} chains", heads.len())),
        };
    }

    fn examine_decisions(&mut self, home: &Path, db: Option<&Connection>) {
        let number = db.and_then(|db| decisions::number(db).ok());
        self.decisions = match decisions::read(home) {
            DecisionsFile::Missing => {
                if number.is_some_and(|number| number > 0) {
                    let words = "the copy of the operators' decisions is missing; the next start";
                    self.notes.push(format!("{words} writes it anew"));
                }
                FileState::Missing
            }
            DecisionsFile::Invalid(why) => {
                self.faults
                    .push(format!("the copy of the operators' decisions is not trusted: {why}"));
                FileState::Invalid(why)
            }
            DecisionsFile::Valid(kept) => {
                if number.is_some_and(|number| kept.number > number) {
                    self.faults.push(
                        "the database has older decisions than their copy; the next start restores \
                         them"
                            .to_owned(),
                    );
                }
                FileState::Valid(format!("written {}", kept.written_at))
            }
        };
    }
}

fn filed(db: &Connection, chain_id: &str) -> Option<i64> {
    let words = "SELECT filed FROM chains WHERE chain_id = ?1";
    db.query_row(words, [chain_id], |row| row.get(0)).ok()
}

/// Returns the faults of the database file that SQLite finds in its structure. Takes seconds for a
/// large file.
pub fn integrity(home: &Path) -> Result<Vec<String>, StoreError> {
    let db = ReadOnlyFile::at(&home.join(FILE))?.connect()?;
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
