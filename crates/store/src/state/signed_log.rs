//! The signed log of decisions: what was decided, whatever the tables say. Its entries are in the
//! ledger's file, and a second time in a file next to it. Each names the hash of the entry before
//! it; from time to time one holds everything, and those before it are dropped.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use receipt::{Hash, PublicKey, statement};
use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::decision::{self, Change, Decision, DecisionKey, Decisions, Scope};
use crate::database::lock::Lock;
use crate::database::{WRITERS, timestamp};
use crate::error::StoreError;
use crate::keys;
use crate::limits::DECISION_ENTRIES_MAX;

/// The name of the second copy in the home.
pub(crate) const FILE: &str = "decisions.jsonl";

/// The purpose that the signatures name.
const PURPOSE: &str = "decisions";

/// A line of the log.
#[derive(Serialize, Deserialize)]
struct SignedLine<'a> {
    /// The fingerprint of the key that signed.
    key: String,
    signature: String,
    #[serde(borrow)]
    entry: &'a RawValue,
}

/// The change that one decision made, or everything that is decided.
#[derive(Serialize, Deserialize)]
struct LogEntry {
    /// Grows by one with every decision.
    number: i64,
    at: String,
    /// The hash of the line before; none where nothing is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    /// Nothing that was decided before and is not here counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_whole: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    set: Vec<Decision>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removed: Vec<DecisionKey>,
}

impl LogEntry {
    /// Reads a line, which one of these keys must have signed.
    fn read(line: &str, keys: &[PublicKey]) -> Result<LogEntry, String> {
        let explain = |error| text::json::explain(&error);
        let signed: SignedLine<'_> = serde_json::from_str(line).map_err(explain)?;
        let (content, signature) = (signed.entry.get(), &signed.signature);
        if !keys.iter().any(|key| statement::is_signed(key, PURPOSE, content, signature)) {
            return Err("no key of this home signed it".to_owned());
        }
        serde_json::from_str(content).map_err(explain)
    }
}

/// The content of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DecisionLog {
    /// The number of decisions so far.
    pub(crate) number: i64,
    /// The time of the last one.
    pub(crate) written_at: String,
    pub(crate) decisions: Decisions,
    /// The hash of the last line.
    pub(crate) last: Option<String>,
    pub(crate) entries: usize,
}

/// The second copy of the log in a home.
#[derive(Debug, Default)]
pub(crate) enum DecisionsFile {
    #[default]
    Missing,
    /// It cannot be trusted, for this reason.
    Invalid(String),
    /// With its text.
    Valid(Box<DecisionLog>, String),
}

/// Returns the number of decisions that the ledger's file names; no signature is checked.
pub(crate) fn number(db: &Connection) -> Result<i64, StoreError> {
    let words = "SELECT COALESCE(MAX(number), 0) FROM decisions";
    Ok(db.prepare_cached(words)?.query_row([], |row| row.get(0))?)
}

/// Returns the number of the last decision in the ledger's file, if one of these keys signed it.
pub(crate) fn signed_number(
    db: &Connection,
    keys: &[PublicKey],
) -> Result<Option<i64>, StoreError> {
    let words = "SELECT line FROM decisions ORDER BY number DESC LIMIT 1";
    let line: Option<String> =
        db.prepare_cached(words)?.query_row([], |row| row.get(0)).optional()?;
    Ok(line.and_then(|line| Some(LogEntry::read(&line, keys).ok()?.number)))
}

impl DecisionLog {
    /// Reads the log in the ledger's file. The inner error is the reason not to trust it.
    pub(crate) fn of_tables(
        db: &Connection,
        home: &Path,
    ) -> Result<Result<DecisionLog, String>, StoreError> {
        let lines = lines(db)?;
        if lines.is_empty() && !Decisions::of_tables(db, Scope::ALL)?.is_empty() {
            return Ok(Err("it is missing".to_owned()));
        }
        Ok(DecisionLog::of_lines(lines.iter().map(String::as_str), home))
    }

    fn of_lines<'a>(
        lines: impl Iterator<Item = &'a str>,
        home: &Path,
    ) -> Result<DecisionLog, String> {
        let keys = keys::all_public(&home.join(keys::FOLDER));
        let mut log = DecisionLog::default();
        lines.into_iter().try_for_each(|line| log.read(line, &keys))?;
        Ok(log)
    }

    fn read(&mut self, line: &str, keys: &[PublicKey]) -> Result<(), String> {
        let at = self.entries + 1;
        let entry = LogEntry::read(line, keys).map_err(|why| format!("line {at}: {why}"))?;
        let is_next = match &self.last {
            Some(last) => entry.number == self.number + 1 && entry.previous.as_ref() == Some(last),
            None => entry.is_whole || (entry.number == 1 && entry.previous.is_none()),
        };
        if !is_next {
            return Err(format!("the entry before line {at} is missing"));
        }
        self.add(entry, line);
        Ok(())
    }

    fn add(&mut self, entry: LogEntry, line: &str) {
        if entry.is_whole {
            self.decisions = Decisions::default();
        }
        self.decisions.remove(&entry.removed);
        self.decisions.set(entry.set);
        self.number = entry.number;
        self.written_at = entry.at;
        self.last = Some(Hash::of(line.as_bytes()).to_string());
        self.entries += 1;
    }

    /// Returns the log with one more decision, which is written in the transaction that makes it.
    pub(super) fn with(
        &self,
        change: Change,
        (db, home): (&Connection, &Path),
    ) -> Result<DecisionLog, StoreError> {
        let Change { set, removed } = change;
        let (number, previous) = (self.number + 1, self.last.clone());
        let at = timestamp::now();
        let mut entry = LogEntry { number, at, previous, is_whole: false, set, removed };
        let mut next = self.clone();
        if self.entries >= DECISION_ENTRIES_MAX {
            let mut all = self.decisions.clone();
            all.remove(&entry.removed);
            all.set(entry.set);
            entry = LogEntry { is_whole: true, set: all.all(), removed: Vec::new(), ..entry };
            next.entries = 0;
            db.execute("DELETE FROM decisions", [])?;
        }
        let line = sign(&entry, (db, home))?;
        insert(db, number, &line)?;
        next.add(entry, &line);
        Ok(next)
    }
}

/// Begins the log anew with what the tables say, as the decision of this number.
fn begin(db: &Connection, home: &Path, number: i64) -> Result<(), StoreError> {
    let set = Decisions::of_tables(db, Scope::ALL)?.all();
    let (at, removed) = (timestamp::now(), Vec::new());
    let entry = LogEntry { number, at, previous: None, is_whole: true, set, removed };
    db.execute("DELETE FROM decisions", [])?;
    insert(db, number, &sign(&entry, (db, home))?)
}

/// Withdraws every approval and every token, and quarantines every known server: what the tables
/// say may be older than what was decided. Restrictions stay.
pub(crate) fn fail_closed(db: &Connection, home: &Path, number: i64) -> Result<(), StoreError> {
    decision::withdraw_all(db, &timestamp::now())?;
    begin(db, home, number)?;
    count(db)
}

/// Ends the notice that decisions were lost.
pub(crate) fn end_notice(db: &Connection, home: &Path) -> Result<(), StoreError> {
    let before = DecisionLog::of_tables(db, home)?.map_err(damaged)?;
    decision::end_notice(db)?;
    let mut removed = before.decisions.clone();
    let loss = removed.within(Scope::LOSS);
    let change = Change::between(&loss, &Decisions::default());
    removed.remove(&change.removed);
    if !change.is_empty() {
        before.with(change, (db, home))?;
    }
    count(db)
}

/// Refuses to decide on a log that cannot be trusted.
pub(super) fn damaged(why: String) -> StoreError {
    StoreError::Write(format!(
        "the signed log of decisions is damaged ({why}): stop the gate and run 'countersign ledger \
         repair'"
    ))
}

/// Tells other processes that decisions have changed.
pub(super) fn count(db: &Connection) -> Result<(), StoreError> {
    db.prepare_cached("UPDATE state SET version = version + 1")?.execute([])?;
    Ok(())
}

fn sign(entry: &LogEntry, (db, home): (&Connection, &Path)) -> Result<String, StoreError> {
    let key = keys::current(&home.join(keys::FOLDER), db)?;
    let cannot = |error: serde_json::Error| StoreError::Write(error.to_string());
    let content = serde_json::value::to_raw_value(entry).map_err(cannot)?;
    serde_json::to_string(&SignedLine {
        key: key.public().fingerprint().to_string(),
        signature: statement::sign(&key, PURPOSE, content.get()),
        entry: &content,
    })
    .map_err(cannot)
}

fn insert(db: &Connection, number: i64, line: &str) -> Result<(), StoreError> {
    let words = "INSERT INTO decisions (number, line) VALUES (?1, ?2)";
    db.prepare_cached(words)?.execute((number, line))?;
    Ok(())
}

pub(super) fn lines(db: &Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = db.prepare_cached("SELECT line FROM decisions ORDER BY number")?;
    Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// Reads the second copy, without a line whose end a crash cut off.
pub(crate) fn read_copy(home: &Path) -> DecisionsFile {
    match complete_lines(home) {
        Ok(text) => match DecisionLog::of_lines(text.lines(), home) {
            Ok(log) => DecisionsFile::Valid(Box::new(log), text),
            Err(why) => DecisionsFile::Invalid(why),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => DecisionsFile::Missing,
        Err(error) => DecisionsFile::Invalid(error.to_string()),
    }
}

fn complete_lines(home: &Path) -> std::io::Result<String> {
    let mut text = fs::read_to_string(home.join(FILE))?;
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    Ok(text)
}

/// Makes the log of the second copy that of the ledger's file, and sets the tables to it.
pub(super) fn restore(
    db: &Connection,
    (kept, text): (&DecisionLog, &str),
) -> Result<(), StoreError> {
    db.execute("DELETE FROM decisions", [])?;
    let first = kept.number + 1 - i64::try_from(kept.entries).unwrap_or_default();
    (first..).zip(text.lines()).try_for_each(|(number, line)| insert(db, number, line))?;
    Decisions::of_tables(db, Scope::ALL)?.replace(db, &kept.decisions)?;
    count(db)
}

/// Brings the second copy to the state of the ledger's file, while no other process does, so that an
/// older state never replaces a newer. A crash leaves the earlier one or the new one.
pub(crate) fn write_copy(db: &Connection, home: &Path) -> Result<(), StoreError> {
    let _lock = Lock::decisions(&home.join(WRITERS))?;
    let path = home.join(FILE);
    let mut text = lines(db)?.join("\n");
    text.push('\n');
    let known = fs::read_to_string(&path).unwrap_or_default();
    let written = match text.strip_prefix(&*known) {
        Some("") => Ok(()),
        Some(rest) if !known.is_empty() => append(&path, rest),
        Some(_) | None => replace(&path, &text),
    };
    written.map_err(|error| StoreError::Write(format!("'{}': {error}", path.display())))
}

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()
}

fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension("jsonl.new");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
