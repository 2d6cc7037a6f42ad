//! The second copy of the operator's decisions: a signed file next to the database. If the database
//! is lost, they are restored from it; without a valid copy, nothing counts as approved.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::BufWriter;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use receipt::statement;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::database::{settings, timestamp};
use crate::error::StoreError;
use crate::keys;

/// The name of the file in the home.
pub(crate) const FILE: &str = "decisions.json";

/// The setting that counts changes of decisions.
const NUMBER: &str = "decisions";

/// The setting with the time at which decisions were lost; absent once a person has reviewed that.
const LOST: &str = "decisions_lost";

/// The purpose that the signature names.
const PURPOSE: &str = "decisions";

/// The file as it is written and read.
#[derive(Serialize, Deserialize)]
struct SignedFile<'a> {
    /// The fingerprint of the key that signed.
    key: String,
    signature: String,
    #[serde(borrow)]
    decisions: &'a RawValue,
}

/// All decisions of a home, without texts: fingerprints suffice to recognise what was approved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Decisions {
    /// Grows with every change.
    pub(crate) number: i64,
    pub(crate) written_at: String,
    /// Decisions were lost, and that has not been reviewed yet.
    pub(crate) lost_at: Option<String>,
    servers: Vec<KeptServer>,
    /// Tools that are switched off, by server.
    switched_off: Vec<KeptSwitch>,
    approved: Vec<KeptApproval>,
    tokens: Vec<KeptToken>,
    trusted_files: Vec<KeptFile>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct KeptServer {
    name: String,
    /// The definition of a server that was added at run time, with references to its secrets.
    added: Option<String>,
    disabled: bool,
    quarantined: bool,
    approved: Option<String>,
    program: Option<String>,
    has_baseline: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KeptSwitch {
    server: String,
    tool: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KeptApproval {
    server: String,
    kind: String,
    name: String,
    fingerprint: String,
    at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KeptToken {
    name: String,
    /// SHA-256 of the token, in hex.
    sha256: String,
    scope: String,
    created: i64,
    expires: Option<i64>,
    revoked: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KeptFile {
    path: String,
    sha256: String,
}

/// The state of the decisions file in a home.
#[derive(Debug, Default)]
pub(crate) enum DecisionsFile {
    #[default]
    Missing,
    /// It cannot be trusted, for this reason.
    Invalid(String),
    Valid(Box<Decisions>),
}

/// Counts a change of decisions, in the transaction that makes it.
pub(super) fn count(db: &Connection) -> Result<(), StoreError> {
    db.prepare_cached(
        "INSERT INTO settings (name, value) VALUES (?1, '1')
         ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1",
    )?
    .execute([NUMBER])?;
    Ok(())
}

/// Returns the number of changes so far.
pub(crate) fn number(db: &Connection) -> Result<i64, StoreError> {
    Ok(settings::get(db, NUMBER)?.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// Returns when decisions were lost, unless a person has reviewed that.
pub(crate) fn lost_at(db: &Connection) -> Result<Option<String>, StoreError> {
    Ok(settings::get(db, LOST)?.filter(|text| !text.is_empty()))
}

/// Says to an operator that decisions were lost.
pub(crate) fn lost_words(at: &str) -> String {
    format!(
        "the operators' decisions were lost on {at}: servers that are not in the config, and all \
         tools that it does not approve, wait for a review, and tokens are gone; review them with \
         'countersign upstream review NAME', then end this notice with 'countersign ledger repair'"
    )
}

/// Ends the notice that decisions were lost.
pub(crate) fn end_notice(db: &Connection) -> Result<(), StoreError> {
    count(db)?;
    settings::set(db, LOST, "")
}

impl Decisions {
    /// Reads all decisions from the tables.
    fn of_tables(db: &Connection) -> Result<Decisions, StoreError> {
        Ok(Decisions {
            number: number(db)?,
            written_at: timestamp::now(),
            lost_at: lost_at(db)?,
            servers: servers(db)?,
            switched_off: rows(db, "SELECT server, tool FROM switches ORDER BY 1, 2", |row| {
                Ok(KeptSwitch { server: row.get(0)?, tool: row.get(1)? })
            })?,
            approved: rows(
                db,
                "SELECT server, kind, name, approved_fingerprint, approved_us FROM items
                 WHERE approved_fingerprint IS NOT NULL ORDER BY 1, 2, 3",
                |row| {
                    let (server, kind, name) = (row.get(0)?, row.get(1)?, row.get(2)?);
                    let (fingerprint, at) = (row.get(3)?, row.get(4)?);
                    Ok(KeptApproval { server, kind, name, fingerprint, at })
                },
            )?,
            tokens: rows(
                db,
                "SELECT name, lower(hex(hash)), scope, created_us, expires_us, revoked_us
                 FROM tokens ORDER BY number",
                |row| {
                    let (name, sha256, scope) = (row.get(0)?, row.get(1)?, row.get(2)?);
                    let (created, expires, revoked) = (row.get(3)?, row.get(4)?, row.get(5)?);
                    Ok(KeptToken { name, sha256, scope, created, expires, revoked })
                },
            )?,
            trusted_files: rows(db, "SELECT path, sha256 FROM trusted_files ORDER BY 1", |row| {
                Ok(KeptFile { path: row.get(0)?, sha256: row.get(1)? })
            })?,
        })
    }

    /// Replaces the decisions in the tables by these. Texts that the tables have are kept.
    pub(crate) fn restore(&self, db: &Connection) -> Result<(), StoreError> {
        let texts: HashMap<(String, String, String, String), String> = rows(
            db,
            "SELECT server, kind, name, approved_fingerprint, approved_text FROM items
             WHERE approved_fingerprint IS NOT NULL AND approved_text IS NOT NULL",
            |row| Ok(((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?), row.get(4)?)),
        )?
        .into_iter()
        .collect();
        for table in ["servers", "items", "switches", "tokens", "trusted_files"] {
            db.execute(&format!("DELETE FROM {table}"), [])?;
        }
        for server in &self.servers {
            server.insert(db)?;
        }
        for KeptSwitch { server, tool } in &self.switched_off {
            db.execute("INSERT INTO switches (server, tool) VALUES (?1, ?2)", [server, tool])?;
        }
        for KeptApproval { server, kind, name, fingerprint, at } in &self.approved {
            let key = (server.clone(), kind.clone(), name.clone(), fingerprint.clone());
            let text = texts.get(&key).map_or("", String::as_str);
            db.prepare_cached(
                "INSERT INTO items (server, kind, name, listed, approved_fingerprint, approved_us,
                   approved_text)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                server,
                kind,
                name,
                !text.is_empty(),
                fingerprint,
                at,
                text
            ])?;
        }
        for token in &self.tokens {
            token.insert(db)?;
        }
        for KeptFile { path, sha256 } in &self.trusted_files {
            db.execute("INSERT INTO trusted_files (path, sha256) VALUES (?1, ?2)", [path, sha256])?;
        }
        settings::set(db, NUMBER, &self.number.to_string())?;
        settings::set(db, LOST, self.lost_at.as_deref().unwrap_or_default())?;
        db.execute("UPDATE state SET version = version + 1", [])?;
        Ok(())
    }
}

fn servers(db: &Connection) -> Result<Vec<KeptServer>, StoreError> {
    let words = "SELECT name, added, disabled, quarantined, approved, program, has_baseline
                 FROM servers ORDER BY name";
    rows(db, words, |row| {
        Ok(KeptServer {
            name: row.get(0)?,
            added: row.get(1)?,
            disabled: row.get(2)?,
            quarantined: row.get(3)?,
            approved: row.get(4)?,
            program: row.get(5)?,
            has_baseline: row.get(6)?,
        })
    })
}

impl KeptServer {
    fn insert(&self, db: &Connection) -> Result<(), StoreError> {
        db.execute(
            "INSERT INTO servers (name, added, disabled, quarantined, approved, program,
               has_baseline)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                self.name,
                self.added,
                self.disabled,
                self.quarantined,
                self.approved,
                self.program,
                self.has_baseline,
            ],
        )?;
        Ok(())
    }
}

impl KeptToken {
    fn insert(&self, db: &Connection) -> Result<(), StoreError> {
        db.execute(
            "INSERT INTO tokens (name, hash, scope, created_us, expires_us, revoked_us)
             VALUES (?1, unhex(?2), ?3, ?4, ?5, ?6)",
            params![self.name, self.sha256, self.scope, self.created, self.expires, self.revoked],
        )?;
        Ok(())
    }
}

fn rows<T>(
    db: &Connection,
    words: &str,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = db.prepare_cached(words)?;
    Ok(statement.query_map([], read)?.collect::<Result<_, _>>()?)
}

/// Withdraws every approval and every token, and quarantines every known server: what the tables
/// say may be older than what was decided. Restrictions stay.
pub(crate) fn fail_closed(db: &Connection, number: i64) -> Result<(), StoreError> {
    db.execute_batch(
        "DELETE FROM tokens;
         DELETE FROM trusted_files;
         UPDATE servers SET quarantined = 1, approved = NULL, approved_text = NULL, has_baseline = 1;
         UPDATE items SET
           pending_us = iif(pending_fingerprint IS NULL, approved_us, pending_us),
           pending_text = iif(pending_fingerprint IS NULL, approved_text, pending_text),
           pending_fingerprint = COALESCE(pending_fingerprint, approved_fingerprint),
           approved_fingerprint = NULL, approved_text = NULL, approved_us = NULL;
         UPDATE state SET version = version + 1;",
    )?;
    settings::set(db, NUMBER, &number.to_string())?;
    settings::set(db, LOST, &timestamp::now())
}

/// Makes servers of the configuration wait for a review while the notice of lost decisions stands:
/// their first list would otherwise count as approved.
pub(super) fn await_review(db: &Connection, name: &str) -> Result<(), StoreError> {
    db.prepare_cached(
        "INSERT INTO servers (name, has_baseline) VALUES (?1, 1)
         ON CONFLICT (name) DO UPDATE SET has_baseline = 1 WHERE NOT has_baseline",
    )?
    .execute([name])?;
    Ok(())
}

/// Reads the file of a home, which one of the home's keys must have signed.
pub(crate) fn read(home: &Path) -> DecisionsFile {
    let text = match fs::read_to_string(home.join(FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return DecisionsFile::Missing;
        }
        Err(error) => return DecisionsFile::Invalid(error.to_string()),
    };
    let file: SignedFile<'_> = match serde_json::from_str(&text) {
        Ok(file) => file,
        Err(error) => return DecisionsFile::Invalid(text::json::explain(&error)),
    };
    let keys = keys::all_public(&home.join(keys::FOLDER));
    let (content, signature) = (file.decisions.get(), &file.signature);
    if !keys.iter().any(|key| statement::is_signed(key, PURPOSE, content, signature)) {
        return DecisionsFile::Invalid("no key of this home signed it".to_owned());
    }
    match serde_json::from_str(content) {
        Ok(decisions) => DecisionsFile::Valid(Box::new(decisions)),
        Err(error) => DecisionsFile::Invalid(text::json::explain(&error)),
    }
}

/// Writes the file: a crash leaves the earlier one or the new one.
pub(super) fn write(db: &Connection, home: &Path) -> Result<(), StoreError> {
    let key = keys::current(&home.join(keys::FOLDER), db)?;
    let decisions = Decisions::of_tables(db)?;
    let cannot = |error: &dyn std::fmt::Display| {
        StoreError::Write(format!("'{}': {error}", home.join(FILE).display()))
    };
    let content = serde_json::to_string_pretty(&decisions).map_err(|error| cannot(&error))?;
    let content = RawValue::from_string(content).map_err(|error| cannot(&error))?;
    let file = SignedFile {
        key: key.public().fingerprint().to_string(),
        signature: statement::sign(&key, PURPOSE, content.get()),
        decisions: &content,
    };
    replace(&home.join(FILE), &file).map_err(|error| cannot(&error))
}

fn replace(path: &Path, content: &SignedFile<'_>) -> std::io::Result<()> {
    let beside: PathBuf = path.with_extension("json.new");
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    let mut writer = BufWriter::new(file);
    serde_json::to_writer_pretty(&mut writer, content)?;
    writer.into_inner()?.sync_all()?;
    fs::rename(&beside, path)?;
    path.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}
