//! The operators' decisions, each under a key: as they are in the tables, and how tables are set to
//! them. Texts are left out: fingerprints suffice to recognise what was approved.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::{Connection, Params, Row, params};
use serde::{Deserialize, Serialize};

use super::tokens::TokenRecord;
use crate::database::settings;
use crate::error::StoreError;

/// The setting with the time at which decisions were lost; absent once a person has reviewed that.
const LOST: &str = "decisions_lost";

/// The kind of a decision and the names of its subject.
pub(crate) type DecisionKey = Vec<String>;

/// A decision that is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "lowercase")]
pub(crate) enum Decision {
    Server(KeptServer),
    /// A tool that is switched off.
    Switch(KeptSwitch),
    Approval(KeptApproval),
    Token(KeptToken),
    /// A file that is trusted.
    File(KeptFile),
    /// Decisions were lost, and nobody has reviewed that yet.
    Loss(KeptLoss),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecisionKind {
    Server,
    Switch,
    Approval,
    Token,
    File,
    Loss,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KeptServer {
    pub(super) name: String,
    /// The definition of a server that was added at run time, with references to its secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) added: Option<String>,
    pub(super) disabled: bool,
    pub(super) quarantined: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) approved: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) program: Option<String>,
    pub(super) has_baseline: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptSwitch {
    pub(super) server: String,
    pub(super) tool: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptApproval {
    pub(super) server: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) fingerprint: String,
    pub(super) at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptToken {
    pub(super) name: String,
    /// SHA-256 of the token, in hex.
    pub(super) sha256: String,
    pub(super) scope: String,
    pub(super) created: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revoked: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptFile {
    pub(super) path: String,
    pub(super) sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptLoss {
    pub(super) at: String,
}

/// The decisions that a change can concern: those of some kinds, perhaps of one server alone. A
/// change reads no others, so that thousands of approvals slow down nothing else.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    kinds: &'a [DecisionKind],
    server: Option<&'a str>,
}

impl<'a> Scope<'a> {
    pub(super) const ALL: Scope<'static> = Scope {
        kinds: &[
            DecisionKind::Server,
            DecisionKind::Switch,
            DecisionKind::Approval,
            DecisionKind::Token,
            DecisionKind::File,
            DecisionKind::Loss,
        ],
        server: None,
    };
    pub(super) const TOKENS: Scope<'static> = Scope { kinds: &[DecisionKind::Token], server: None };
    pub(super) const FILES: Scope<'static> = Scope { kinds: &[DecisionKind::File], server: None };
    pub(super) const LOSS: Scope<'static> = Scope { kinds: &[DecisionKind::Loss], server: None };

    /// The server itself, without its tools.
    pub(super) fn server(name: &'a str) -> Scope<'a> {
        Scope { kinds: &[DecisionKind::Server], server: Some(name) }
    }

    pub(super) fn switches(server: &'a str) -> Scope<'a> {
        Scope { kinds: &[DecisionKind::Switch], server: Some(server) }
    }

    /// A server and its approvals.
    pub(super) fn items(server: &'a str) -> Scope<'a> {
        let kinds = &[DecisionKind::Server, DecisionKind::Approval];
        Scope { kinds, server: Some(server) }
    }

    /// All that is decided about a server.
    pub(super) fn whole_server(name: &'a str) -> Scope<'a> {
        let kinds = &[DecisionKind::Server, DecisionKind::Switch, DecisionKind::Approval];
        Scope { kinds, server: Some(name) }
    }
}

impl DecisionKind {
    fn word(self) -> &'static str {
        match self {
            DecisionKind::Server => "server",
            DecisionKind::Switch => "switch",
            DecisionKind::Approval => "approval",
            DecisionKind::Token => "token",
            DecisionKind::File => "file",
            DecisionKind::Loss => "loss",
        }
    }

    fn key<const N: usize>(self, names: [&str; N]) -> DecisionKey {
        let names = names.into_iter().map(str::to_owned);
        std::iter::once(self.word().to_owned()).chain(names).collect()
    }
}

impl Decision {
    fn key(&self) -> DecisionKey {
        match self {
            Decision::Server(it) => DecisionKind::Server.key([&it.name]),
            Decision::Switch(it) => DecisionKind::Switch.key([&it.server, &it.tool]),
            Decision::Approval(it) => DecisionKind::Approval.key([&it.server, &it.kind, &it.name]),
            Decision::Token(it) => DecisionKind::Token.key([&it.sha256]),
            Decision::File(it) => DecisionKind::File.key([&it.path]),
            Decision::Loss(_) => DecisionKind::Loss.key([]),
        }
    }

    /// Names the subject for people.
    fn subject(&self) -> String {
        match self {
            Decision::Server(it) => format!("server '{}'", it.name),
            Decision::Switch(it) => format!("the switch of '{}:{}'", it.server, it.tool),
            Decision::Approval(it) => {
                format!("the approval of {} '{}' of server '{}'", it.kind, it.name, it.server)
            }
            Decision::Token(it) => format!("token '{}'", it.name),
            Decision::File(it) => format!("trust in '{}'", it.path),
            Decision::Loss(_) => "the notice that decisions were lost".to_owned(),
        }
    }
}

impl KeptToken {
    /// Reports whether a token is exactly the decided one.
    pub(super) fn is(&self, token: &TokenRecord) -> bool {
        let us = |at: Option<Timestamp>| at.map(Timestamp::as_microsecond);
        self.name == token.name
            && self.scope == token.scope
            && self.created == token.created_at.as_microsecond()
            && self.expires == us(token.expires_at)
            && self.revoked == us(token.revoked_at)
    }
}

/// Decisions by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decisions(BTreeMap<DecisionKey, Decision>);

/// The difference between two states.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) set: Vec<Decision>,
    pub(super) removed: Vec<DecisionKey>,
}

impl Change {
    pub(super) fn between(before: &Decisions, after: &Decisions) -> Change {
        let set = after.0.iter().filter(|(key, decision)| before.0.get(*key) != Some(decision));
        let removed = before.0.keys().filter(|key| !after.0.contains_key(*key));
        Change {
            set: set.map(|(_, decision)| decision.clone()).collect(),
            removed: removed.cloned().collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.removed.is_empty()
    }
}

impl Decisions {
    /// Reads decisions from the tables.
    pub(super) fn of_tables(db: &Connection, scope: Scope<'_>) -> Result<Decisions, StoreError> {
        let mut found = Decisions::default();
        for kind in scope.kinds {
            let decisions = match kind {
                DecisionKind::Server => servers(db, scope.server)?,
                DecisionKind::Switch => switches(db, scope.server)?,
                DecisionKind::Approval => approvals(db, scope.server)?,
                DecisionKind::Token => tokens(db)?,
                DecisionKind::File => files(db)?,
                DecisionKind::Loss => {
                    lost_at(db)?.map(|at| Decision::Loss(KeptLoss { at })).into_iter().collect()
                }
            };
            found.set(decisions);
        }
        Ok(found)
    }

    /// Returns the decisions of a scope.
    pub(super) fn within(&self, scope: Scope<'_>) -> Decisions {
        let mut found = BTreeMap::new();
        for kind in scope.kinds {
            let first: DecisionKey = match scope.server {
                Some(server) => kind.key([server]),
                None => kind.key([]),
            };
            let those =
                self.0.range(first.clone()..).take_while(|(key, _)| key.starts_with(&first));
            found.extend(those.map(|(key, decision)| (key.clone(), decision.clone())));
        }
        Decisions(found)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn set(&mut self, decisions: Vec<Decision>) {
        self.0.extend(decisions.into_iter().map(|decision| (decision.key(), decision)));
    }

    pub(super) fn remove(&mut self, keys: &[DecisionKey]) {
        keys.iter().for_each(|key| drop(self.0.remove(key)));
    }

    pub(super) fn all(&self) -> Vec<Decision> {
        self.0.values().cloned().collect()
    }

    pub(super) fn server(&self, name: &str) -> Option<&KeptServer> {
        match self.0.get(&DecisionKind::Server.key([name]))? {
            Decision::Server(server) => Some(server),
            _ => None,
        }
    }

    pub(super) fn servers(&self) -> impl Iterator<Item = &KeptServer> {
        self.0.values().filter_map(|decision| match decision {
            Decision::Server(server) => Some(server),
            _ => None,
        })
    }

    pub(super) fn switched_off(&self) -> impl Iterator<Item = &KeptSwitch> {
        self.0.values().filter_map(|decision| match decision {
            Decision::Switch(switch) => Some(switch),
            _ => None,
        })
    }

    /// Returns the fingerprint of the approved version of an item.
    pub(super) fn approved(&self, server: &str, kind: &str, name: &str) -> Option<&str> {
        match self.0.get(&DecisionKind::Approval.key([server, kind, name]))? {
            Decision::Approval(approval) => Some(&approval.fingerprint),
            _ => None,
        }
    }

    pub(super) fn token(&self, sha256: &str) -> Option<&KeptToken> {
        match self.0.get(&DecisionKind::Token.key([sha256]))? {
            Decision::Token(token) => Some(token),
            _ => None,
        }
    }

    /// Returns the hash of a trusted file.
    pub(super) fn file(&self, path: &str) -> Option<&str> {
        match self.0.get(&DecisionKind::File.key([path]))? {
            Decision::File(file) => Some(&file.sha256),
            _ => None,
        }
    }

    pub(super) fn lost_at(&self) -> Option<&str> {
        match self.0.get(&DecisionKind::Loss.key([]))? {
            Decision::Loss(loss) => Some(&loss.at),
            _ => None,
        }
    }

    /// Names the subjects on which the tables differ from these decisions.
    pub(super) fn differing(&self, tables: &Decisions) -> Vec<String> {
        let Change { set, removed } = Change::between(self, tables);
        let removed = removed.iter().filter_map(|key| self.0.get(key));
        set.iter().chain(removed).map(Decision::subject).collect()
    }

    /// Sets the tables, which hold these decisions, to others. Texts are kept where the tables have
    /// them; an item whose approval is withdrawn waits for a review.
    pub(super) fn replace(&self, db: &Connection, wanted: &Decisions) -> Result<(), StoreError> {
        let Change { mut set, removed } = Change::between(self, wanted);
        for decision in removed.iter().filter_map(|key| self.0.get(key)) {
            remove(db, decision)?;
        }
        // Two tokens may have swapped their names.
        for token in set.iter().filter(|decision| matches!(decision, Decision::Token(_))) {
            remove(db, token)?;
        }
        set.sort_by_key(|decision| match decision {
            Decision::Token(token) => token.created,
            _ => 0,
        });
        set.iter().try_for_each(|decision| put(db, decision))
    }
}

/// Returns when decisions were lost according to the tables, unless a person has reviewed that.
pub(super) fn lost_at(db: &Connection) -> Result<Option<String>, StoreError> {
    settings::get(db, LOST)
}

/// Withdraws every approval and every token, and quarantines every known server. Restrictions stay.
pub(super) fn withdraw_all(db: &Connection, at: &str) -> Result<(), StoreError> {
    db.execute_batch(
        "DELETE FROM tokens;
         DELETE FROM trusted_files;
         UPDATE servers SET quarantined = 1, approved = NULL, approved_text = NULL, has_baseline = 1;",
    )?;
    db.execute(&format!("{UNAPPROVE} WHERE approved_fingerprint IS NOT NULL"), [])?;
    settings::set(db, LOST, at)
}

/// Ends the notice that decisions were lost.
pub(super) fn end_notice(db: &Connection) -> Result<(), StoreError> {
    settings::remove(db, LOST)
}

/// Makes approved versions wait for a review, unless a later version waits already.
const UNAPPROVE: &str = "UPDATE items SET
   pending_us = iif(pending_fingerprint IS NULL, approved_us, pending_us),
   pending_text = iif(pending_fingerprint IS NULL, approved_text, pending_text),
   pending_fingerprint = COALESCE(pending_fingerprint, approved_fingerprint),
   approved_fingerprint = NULL, approved_text = NULL, approved_us = NULL";

fn remove(db: &Connection, decision: &Decision) -> Result<(), StoreError> {
    let run = |words: &str, values: &[&str]| -> Result<(), StoreError> {
        db.prepare_cached(words)?.execute(rusqlite::params_from_iter(values))?;
        Ok(())
    };
    match decision {
        Decision::Server(it) => run("DELETE FROM servers WHERE name = ?1", &[&it.name]),
        Decision::Switch(it) => {
            let words = "DELETE FROM switches WHERE server = ?1 AND tool = ?2";
            run(words, &[&it.server, &it.tool])
        }
        Decision::Approval(it) => {
            let words = format!("{UNAPPROVE} WHERE server = ?1 AND kind = ?2 AND name = ?3");
            run(&words, &[&it.server, &it.kind, &it.name])
        }
        Decision::Token(it) => run("DELETE FROM tokens WHERE hash = unhex(?1)", &[&it.sha256]),
        Decision::File(it) => run("DELETE FROM trusted_files WHERE path = ?1", &[&it.path]),
        Decision::Loss(_) => end_notice(db),
    }
}

fn put(db: &Connection, decision: &Decision) -> Result<(), StoreError> {
    fn run(db: &Connection, words: &str, values: impl Params) -> Result<(), StoreError> {
        db.prepare_cached(words)?.execute(values)?;
        Ok(())
    }
    match decision {
        Decision::Server(it) => run(
            db,
            "INSERT INTO servers (name, added, disabled, quarantined, approved, program,
               has_baseline)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (name) DO UPDATE SET added = excluded.added,
               disabled = excluded.disabled, quarantined = excluded.quarantined,
               approved_text = iif(approved IS excluded.approved, approved_text, NULL),
               approved = excluded.approved, program = excluded.program,
               has_baseline = excluded.has_baseline",
            params![
                it.name,
                it.added,
                it.disabled,
                it.quarantined,
                it.approved,
                it.program,
                it.has_baseline
            ],
        ),
        Decision::Switch(it) => {
            let words =
                "INSERT INTO switches (server, tool) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            run(db, words, [&it.server, &it.tool])
        }
        // The text of the version may be that which waits for a review.
        Decision::Approval(it) => run(
            db,
            "INSERT INTO items (server, kind, name, listed, approved_fingerprint, approved_us,
               approved_text)
             VALUES (?1, ?2, ?3, 0, ?4, ?5, '')
             ON CONFLICT (server, kind, name) DO UPDATE SET
               approved_text = CASE excluded.approved_fingerprint
                 WHEN approved_fingerprint THEN approved_text
                 WHEN pending_fingerprint THEN pending_text ELSE '' END,
               pending_text = iif(pending_fingerprint IS excluded.approved_fingerprint, NULL,
                 pending_text),
               pending_us = iif(pending_fingerprint IS excluded.approved_fingerprint, NULL,
                 pending_us),
               pending_fingerprint = NULLIF(pending_fingerprint, excluded.approved_fingerprint),
               approved_fingerprint = excluded.approved_fingerprint,
               approved_us = excluded.approved_us",
            params![it.server, it.kind, it.name, it.fingerprint, it.at],
        ),
        Decision::Token(it) => run(
            db,
            "INSERT INTO tokens (name, hash, scope, created_us, expires_us, revoked_us)
             VALUES (?1, unhex(?2), ?3, ?4, ?5, ?6)",
            params![it.name, it.sha256, it.scope, it.created, it.expires, it.revoked],
        ),
        Decision::File(it) => run(
            db,
            "INSERT INTO trusted_files (path, sha256) VALUES (?1, ?2)
             ON CONFLICT (path) DO UPDATE SET sha256 = excluded.sha256",
            [&it.path, &it.sha256],
        ),
        Decision::Loss(it) => settings::set(db, LOST, &it.at),
    }
}

fn servers(db: &Connection, server: Option<&str>) -> Result<Vec<Decision>, StoreError> {
    let words = "SELECT name, added, disabled, quarantined, approved, program, has_baseline
                 FROM servers";
    rows(db, words, ("name", server), |row| {
        Ok(Decision::Server(KeptServer {
            name: row.get(0)?,
            added: row.get(1)?,
            disabled: row.get(2)?,
            quarantined: row.get(3)?,
            approved: row.get(4)?,
            program: row.get(5)?,
            has_baseline: row.get(6)?,
        }))
    })
}

fn switches(db: &Connection, server: Option<&str>) -> Result<Vec<Decision>, StoreError> {
    rows(db, "SELECT server, tool FROM switches", ("server", server), |row| {
        Ok(Decision::Switch(KeptSwitch { server: row.get(0)?, tool: row.get(1)? }))
    })
}

fn approvals(db: &Connection, server: Option<&str>) -> Result<Vec<Decision>, StoreError> {
    let words = "SELECT server, kind, name, approved_fingerprint, approved_us FROM items";
    let found = rows(db, words, ("server", server), |row| {
        let fingerprint: Option<String> = row.get(3)?;
        let Some(fingerprint) = fingerprint else { return Ok(None) };
        let at: Option<i64> = row.get(4)?;
        Ok(Some(Decision::Approval(KeptApproval {
            server: row.get(0)?,
            kind: row.get(1)?,
            name: row.get(2)?,
            fingerprint,
            at: at.unwrap_or_default(),
        })))
    })?;
    Ok(found.into_iter().flatten().collect())
}

fn tokens(db: &Connection) -> Result<Vec<Decision>, StoreError> {
    let words = "SELECT name, lower(hex(hash)), scope, created_us, expires_us, revoked_us
                 FROM tokens";
    rows(db, words, ("name", None), |row| {
        Ok(Decision::Token(KeptToken {
            name: row.get(0)?,
            sha256: row.get(1)?,
            scope: row.get(2)?,
            created: row.get(3)?,
            expires: row.get(4)?,
            revoked: row.get(5)?,
        }))
    })
}

fn files(db: &Connection) -> Result<Vec<Decision>, StoreError> {
    rows(db, "SELECT path, sha256 FROM trusted_files", ("path", None), |row| {
        Ok(Decision::File(KeptFile { path: row.get(0)?, sha256: row.get(1)? }))
    })
}

/// Returns the rows of a table, or those with this value in a column.
fn rows<T>(
    db: &Connection,
    words: &str,
    (column, value): (&str, Option<&str>),
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    let Some(value) = value else {
        let mut statement = db.prepare_cached(words)?;
        return Ok(statement.query_map([], read)?.collect::<Result<_, _>>()?);
    };
    let mut statement = db.prepare_cached(&format!("{words} WHERE {column} = ?1"))?;
    Ok(statement.query_map([value], read)?.collect::<Result<_, _>>()?)
}
