//! Servers that were added, switched, quarantined or approved at run time.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row};

use super::OperatorState;
use super::decision::{KeptServer, Scope};
use crate::error::StoreError;

/// The decisions about a server. A server without decisions has no entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerState {
    pub name: String,
    /// The entry of `mcpServers` as JSON without its secrets, for a server that was added at run
    /// time.
    pub added: Option<String>,
    /// Switched off by a person.
    pub disabled: bool,
    /// Put (back) into quarantine by a person or by a changed command line.
    pub quarantined: bool,
    /// The identity that a person's approval is bound to. It stays if the server is put in
    /// quarantine again.
    pub approved: Option<String>,
    /// The definition that was approved.
    pub approved_text: Option<String>,
    /// The file that its command started when it was approved, or first seen if it is pinned.
    pub program: Option<String>,
    /// Its first list was taken as approved.
    pub has_baseline: bool,
}

const COLUMNS: &str =
    "name, added, disabled, quarantined, approved, approved_text, program, has_baseline";

/// The version of a server that a person approves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovedServer<'a> {
    pub identity: &'a str,
    pub text: &'a str,
    pub program: Option<&'a str>,
}

impl OperatorState {
    /// Returns the servers, sorted by name.
    pub fn servers(&self) -> Result<Vec<ServerState>, StoreError> {
        self.ask_decided(|db, signed| {
            let words = format!("SELECT {COLUMNS} FROM servers ORDER BY name");
            let mut statement = db.prepare_cached(&words)?;
            let servers = statement.query_map([], read)?.collect::<Result<Vec<_>, _>>()?;
            let Some(signed) = signed else { return Ok(servers) };
            let known = servers.into_iter().map(|server| (server.name.clone(), server));
            let mut known: BTreeMap<String, ServerState> = known.collect();
            for decided in signed.servers() {
                let name = decided.name.clone();
                known
                    .entry(name.clone())
                    .or_insert_with(|| ServerState { name, ..ServerState::default() });
            }
            let undecided = KeptServer::default();
            let strict = known.into_values().map(|server| {
                let decided = signed.server(&server.name).unwrap_or(&undecided);
                server.stricter(decided)
            });
            Ok(strict.collect())
        })
    }

    pub fn server(&self, name: &str) -> Result<Option<ServerState>, StoreError> {
        Ok(self.servers()?.into_iter().find(|server| server.name == name))
    }

    /// Makes a server that nothing is known of wait for a review, after decisions were lost: its
    /// first list would otherwise count as approved.
    pub fn await_review(&self, name: &str) -> Result<(), StoreError> {
        self.sign(Scope::server(name), |db| set_baseline(db, name))
    }

    /// Adds a server afresh: everything known under that name is deleted.
    pub fn add_server(&self, name: &str, definition_json: &str) -> Result<(), StoreError> {
        self.decide(Scope::whole_server(name), |db| {
            forget(db, name)?;
            let words = "INSERT INTO servers (name, added) VALUES (?1, ?2)";
            db.execute(words, [name, definition_json])?;
            Ok(())
        })
    }

    /// Removes a server with all decisions about its items; returns whether there was anything.
    pub fn remove_server(&self, name: &str) -> Result<bool, StoreError> {
        self.decide(Scope::whole_server(name), |db| forget(db, name))
    }

    /// Forgets the items that the server listed, and lifts its quarantine: the next list is its
    /// first. Tools that were switched off stay so.
    pub fn begin_server_anew(&self, name: &str) -> Result<(), StoreError> {
        self.decide(Scope::items(name), |db| {
            db.execute("DELETE FROM items WHERE server = ?1", [name])?;
            let words = "UPDATE servers SET has_baseline = 0, quarantined = 0, approved = NULL,
                           approved_text = NULL, program = NULL
                         WHERE name = ?1";
            db.execute(words, [name])?;
            Ok(())
        })
    }

    pub fn set_server_disabled(&self, name: &str, disabled: bool) -> Result<(), StoreError> {
        self.decide(Scope::server(name), |db| {
            db.execute(
                "INSERT INTO servers (name, disabled) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET disabled = excluded.disabled
                 WHERE disabled <> excluded.disabled",
                (name, disabled),
            )?;
            Ok(())
        })
    }

    pub fn quarantine_server(&self, name: &str) -> Result<(), StoreError> {
        self.decide(Scope::server(name), |db| {
            db.execute(
                "INSERT INTO servers (name, quarantined) VALUES (?1, 1)
                 ON CONFLICT (name) DO UPDATE SET quarantined = 1 WHERE NOT quarantined",
                [name],
            )?;
            Ok(())
        })
    }

    /// Binds the approval to this version of the server, and lifts its quarantine.
    pub fn approve_server(
        &self,
        name: &str,
        approved: ApprovedServer<'_>,
    ) -> Result<(), StoreError> {
        let ApprovedServer { identity, text, program } = approved;
        self.decide(Scope::server(name), |db| {
            db.execute(
                "INSERT INTO servers (name, approved, approved_text, program)
                 VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (name) DO UPDATE SET quarantined = 0, approved = excluded.approved,
                   approved_text = excluded.approved_text, program = excluded.program
                 WHERE quarantined OR approved IS NOT excluded.approved
                   OR approved_text IS NOT excluded.approved_text
                   OR program IS NOT excluded.program",
                (name, identity, text, program),
            )?;
            Ok(())
        })
    }

    /// Keeps the file that a server's command starts.
    pub fn keep_program(&self, name: &str, program: &str) -> Result<(), StoreError> {
        self.decide(Scope::server(name), |db| {
            db.execute(
                "INSERT INTO servers (name, program) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET program = excluded.program
                 WHERE program IS NOT excluded.program",
                [name, program],
            )?;
            Ok(())
        })
    }
}

impl ServerState {
    /// Returns the stricter of the tables and what was decided: what allows something counts where
    /// both agree on it, what restricts counts where either says so.
    fn stricter(self, decided: &KeptServer) -> ServerState {
        let is_approved = self.approved == decided.approved;
        let added = self.added.filter(|added| Some(added) == decided.added.as_ref());
        ServerState {
            added,
            disabled: self.disabled || decided.disabled,
            quarantined: self.quarantined || decided.quarantined || !is_approved,
            approved: self.approved.filter(|_| is_approved),
            approved_text: self.approved_text.filter(|_| is_approved),
            program: decided.program.clone(),
            has_baseline: self.has_baseline || decided.has_baseline,
            name: self.name,
        }
    }
}

/// Records that the first list of a server was taken as approved.
pub(super) fn set_baseline(db: &Connection, name: &str) -> Result<(), StoreError> {
    db.execute(
        "INSERT INTO servers (name, has_baseline) VALUES (?1, 1)
         ON CONFLICT (name) DO UPDATE SET has_baseline = 1 WHERE NOT has_baseline",
        [name],
    )?;
    Ok(())
}

/// Deletes all that is known of a server; returns whether there was anything.
fn forget(db: &Connection, name: &str) -> Result<bool, StoreError> {
    let mut rows = 0;
    for words in [
        "DELETE FROM servers WHERE name = ?1",
        "DELETE FROM items WHERE server = ?1",
        "DELETE FROM switches WHERE server = ?1",
    ] {
        rows += db.execute(words, [name])?;
    }
    Ok(rows > 0)
}

fn read(row: &Row<'_>) -> rusqlite::Result<ServerState> {
    Ok(ServerState {
        name: row.get(0)?,
        added: row.get(1)?,
        disabled: row.get(2)?,
        quarantined: row.get(3)?,
        approved: row.get(4)?,
        approved_text: row.get(5)?,
        program: row.get(6)?,
        has_baseline: row.get(7)?,
    })
}
