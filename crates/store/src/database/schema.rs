//! The tables, and the migrations from older files.
//!
//! `receipts` is a published format: other readers of receipts open a copy of the file. Other
//! tables may change through a new step in `STEPS`; a step never changes once it is released.

use rusqlite::Connection;

use crate::error::StoreError;

/// The migrations, one per version of the file; the version is SQLite's `user_version`.
const STEPS: &[&str] = &[FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH, SEVENTH, EIGHTH, NINTH];

/// Calls are committed to `journal`, which has no index and so costs little; from there they are
/// filed into the other tables, many at a time. `chains.filed` is the last entry that was filed;
/// the rows stay and are overwritten, which costs one page where a new row costs three.
const FIRST: &str = "
CREATE TABLE journal (
  slot INTEGER PRIMARY KEY,
  chain INTEGER NOT NULL,
  entry INTEGER NOT NULL,
  started TEXT,
  ended TEXT,
  arguments TEXT,
  response TEXT,
  sequence INTEGER,
  hash TEXT,
  body TEXT
);

CREATE TABLE chains (
  chain INTEGER PRIMARY KEY,
  chain_id TEXT NOT NULL UNIQUE,
  opened_at TEXT NOT NULL,
  pid INTEGER NOT NULL,
  key TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'open',
  filed INTEGER NOT NULL DEFAULT 0,
  preceding TEXT
);

CREATE TABLE receipts (
  id TEXT PRIMARY KEY,
  chain_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  action_type TEXT NOT NULL,
  tool_name TEXT NOT NULL DEFAULT '',
  risk_level TEXT NOT NULL,
  status TEXT NOT NULL,
  timestamp TEXT NOT NULL,
  issuer_id TEXT NOT NULL,
  principal_id TEXT,
  receipt_json TEXT NOT NULL,
  receipt_hash TEXT NOT NULL,
  previous_receipt_hash TEXT,
  created_at TEXT DEFAULT CURRENT_TIMESTAMP,
  UNIQUE (chain_id, sequence)
);

CREATE TABLE agents (
  agent INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  client TEXT NOT NULL,
  token TEXT NOT NULL,
  UNIQUE (name, client, token)
);

CREATE TABLE targets (
  target INTEGER PRIMARY KEY,
  system TEXT NOT NULL,
  resource TEXT NOT NULL,
  UNIQUE (system, resource)
);
-- Written only when a target is new, so that it costs no call.
CREATE INDEX targets_resource ON targets (resource);

CREATE TABLE activity (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  changed INTEGER NOT NULL UNIQUE,
  chain INTEGER NOT NULL,
  type TEXT NOT NULL,
  source TEXT NOT NULL,
  surface TEXT NOT NULL,
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  agent INTEGER NOT NULL REFERENCES agents,
  session_id TEXT,
  request_id TEXT,
  started_us INTEGER NOT NULL,
  duration_us INTEGER,
  status TEXT NOT NULL,
  error_code TEXT,
  error_message TEXT,
  tool_variant TEXT,
  intent_type TEXT,
  data_sensitivity TEXT,
  reason TEXT,
  effective_class TEXT,
  unverified INTEGER NOT NULL DEFAULT 0,
  target INTEGER REFERENCES targets,
  receipt_id TEXT,
  trace_id TEXT,
  warnings TEXT,
  arguments_bytes INTEGER NOT NULL DEFAULT 0,
  response_bytes INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX activity_started ON activity (started_us);
CREATE INDEX activity_agent ON activity (agent);
CREATE INDEX activity_tool ON activity (server, tool);
CREATE INDEX activity_intent ON activity (intent_type) WHERE intent_type IS NOT NULL;
CREATE INDEX activity_session ON activity (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX activity_unsuccessful ON activity (status) WHERE status <> 'success';
-- Covers what contention reads, so that it never touches the table.
CREATE INDEX activity_target ON activity (target, started_us, agent, effective_class, number)
  WHERE target IS NOT NULL;

CREATE TABLE payloads (
  number INTEGER PRIMARY KEY REFERENCES activity ON DELETE CASCADE,
  -- Before the long texts, so that lists read it without them.
  response_truncated INTEGER NOT NULL DEFAULT 0,
  arguments TEXT,
  response TEXT
);

-- What the process remembers beside its records, such as which key signs.
CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- For people who open the file.
CREATE VIEW calls AS
  SELECT activity.number, activity.id,
    strftime('%Y-%m-%dT%H:%M:%fZ', started_us / 1e6, 'unixepoch') AS started,
    agents.name AS agent, server, tool, status, error_code, intent_type, effective_class,
    targets.system AS target_system, targets.resource AS target_resource,
    duration_us / 1000.0 AS duration_ms, receipt_id
  FROM activity JOIN agents USING (agent) LEFT JOIN targets USING (target);
";

/// Decisions made by people while the program runs; `state` counts them. The index that contention
/// walks holds only the columns it reads: a flag for the class, and the row number that every index
/// has.
const SECOND: &str = "
DROP INDEX activity_target;
CREATE INDEX activity_target ON activity (target, started_us, agent, effective_class IS 'read')
  WHERE target IS NOT NULL;

CREATE TABLE state (
  version INTEGER NOT NULL
);
INSERT INTO state (version) VALUES (0);

CREATE TABLE servers (
  name TEXT PRIMARY KEY,
  -- Its definition, where it was added at run time.
  added TEXT,
  disabled INTEGER NOT NULL DEFAULT 0,
  quarantined INTEGER NOT NULL DEFAULT 0,
  -- The identity that the approval is bound to.
  approved TEXT,
  has_baseline INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- What servers offer: as it was approved, and as it waits for a review. With a rowid, since without
-- one every row over 1,000 bytes takes a page of its own.
CREATE TABLE items (
  server TEXT NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  listed INTEGER NOT NULL DEFAULT 1,
  approved_fingerprint TEXT,
  approved_us INTEGER,
  pending_fingerprint TEXT,
  pending_us INTEGER,
  approved_text TEXT,
  pending_text TEXT,
  UNIQUE (server, kind, name)
);

-- Tools that a person switched off.
CREATE TABLE switches (
  server TEXT NOT NULL,
  tool TEXT NOT NULL,
  PRIMARY KEY (server, tool)
) WITHOUT ROWID;

-- Revoked ones stay, so that they can be told from unknown ones.
CREATE TABLE tokens (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  hash BLOB NOT NULL UNIQUE,
  scope TEXT NOT NULL,
  created_us INTEGER NOT NULL,
  expires_us INTEGER,
  revoked_us INTEGER
);
CREATE UNIQUE INDEX tokens_name ON tokens (name) WHERE revoked_us IS NULL;

CREATE TABLE trusted_files (
  path TEXT PRIMARY KEY,
  sha256 TEXT NOT NULL
) WITHOUT ROWID;
";

/// Runs of workflows. Their changes are counted with those of `activity`, so that all changes form
/// one sequence.
const THIRD: &str = "
CREATE TABLE runs (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  changed INTEGER NOT NULL UNIQUE,
  workflow TEXT NOT NULL,
  version TEXT,
  file TEXT,
  pid INTEGER NOT NULL,
  started_us INTEGER NOT NULL,
  ended_us INTEGER,
  status TEXT NOT NULL,
  message TEXT,
  exit_code INTEGER,
  trace_id TEXT
);
CREATE INDEX runs_status ON runs (status);
CREATE INDEX runs_workflow ON runs (workflow);
CREATE INDEX runs_started ON runs (started_us);

CREATE TABLE run_steps (
  run INTEGER NOT NULL REFERENCES runs (number),
  number INTEGER NOT NULL,
  changed INTEGER NOT NULL UNIQUE,
  state TEXT NOT NULL,
  kind TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  provider TEXT,
  model TEXT,
  isolation TEXT,
  status TEXT NOT NULL,
  started_us INTEGER NOT NULL,
  ended_us INTEGER,
  exit_code INTEGER,
  tokens INTEGER,
  cost_usd REAL,
  error_code TEXT,
  error TEXT,
  -- Under which its calls are in activity; a list as JSON.
  sessions TEXT NOT NULL,
  output TEXT,
  UNIQUE (run, number)
);
CREATE INDEX run_steps_output ON run_steps (started_us) WHERE output IS NOT NULL;
";

/// The text of a receipt is composed again from the other columns of the journal, so that a page
/// holds several calls.
const FOURTH: &str = "
ALTER TABLE journal DROP COLUMN body;
ALTER TABLE journal ADD COLUMN issued_at TEXT;
ALTER TABLE chains ADD COLUMN preceding_sequence INTEGER;
ALTER TABLE chains ADD COLUMN preceding_hash TEXT;
";

/// Agent and class in one number: contention reads every entry of this index, and each column costs
/// time. `journal` is no longer written (see the module of that name); rows left by an older
/// program are read.
const FIFTH: &str = "
DROP INDEX activity_target;
CREATE INDEX activity_target
  ON activity (target, started_us, agent * 2 + (effective_class IS 'read'))
  WHERE target IS NOT NULL;
";

/// An approval of a server also keeps the text that was approved and the file that its command
/// started. Approvals of earlier versions have neither.
const SIXTH: &str = "
ALTER TABLE servers ADD COLUMN approved_text TEXT;
ALTER TABLE servers ADD COLUMN program TEXT;
";

/// The head of each chain as it was filed, and the length at which a checkpoint last named it: a
/// chain whose end is cut off differs from them. `checkpoints` lists the receipts that name heads.
const SEVENTH: &str = "
ALTER TABLE chains ADD COLUMN length INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chains ADD COLUMN last_hash TEXT;
ALTER TABLE chains ADD COLUMN named INTEGER NOT NULL DEFAULT 0;
UPDATE chains SET
  length = COALESCE((SELECT MAX(sequence) FROM receipts
    WHERE receipts.chain_id = chains.chain_id), 0),
  last_hash = (SELECT receipt_hash FROM receipts WHERE receipts.chain_id = chains.chain_id
    ORDER BY sequence DESC LIMIT 1);
CREATE TABLE checkpoints (
  number INTEGER PRIMARY KEY,
  chain_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  hash TEXT NOT NULL
);
";

/// Creates the table of touches from the records, which name one resource each. Contention reads every
/// row of it, so agent and access are one number: the agent times four, plus 0 for a read, 1 for a
/// write, and 2 if that is unknown. Rows of one record are found by `touches_number`.
macro_rules! touches {
    ($temporary:literal) => {
        concat!(
            "CREATE ",
            $temporary,
            " TABLE touches (
  target INTEGER NOT NULL,
  started_us INTEGER NOT NULL,
  who INTEGER NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (target, started_us, who, number)
) WITHOUT ROWID;
INSERT INTO touches (target, started_us, who, number)
  SELECT target, started_us, agent * 4 + CASE
      WHEN effective_class IS NULL THEN 2
      WHEN effective_class = 'read' THEN 0
      WHEN unverified AND intent_type IS NULL THEN 2
      ELSE 1 END, number
  FROM activity NOT INDEXED WHERE target IS NOT NULL ORDER BY target, started_us;
CREATE INDEX touches_number ON touches (number);
"
        )
    };
}

/// Touches, several for each call. Two records of one call have the same tool-use id
/// (`correlation_id`); the one whose touches do not count names the other in `joined`. `meetings`
/// holds writes that met another agent's recent touch; they are counted among the changes.
const EIGHTH: &str = concat!(
    touches!(""),
    "DROP INDEX activity_target;
ALTER TABLE activity ADD COLUMN correlation_id TEXT;
ALTER TABLE activity ADD COLUMN joined TEXT;
ALTER TABLE activity ADD COLUMN target_basis TEXT;
CREATE INDEX activity_correlation ON activity (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX activity_joined ON activity (joined) WHERE joined IS NOT NULL;
CREATE TABLE meetings (
  changed INTEGER PRIMARY KEY,
  number INTEGER NOT NULL,
  other INTEGER NOT NULL,
  target INTEGER NOT NULL,
  kind TEXT NOT NULL,
  gap_us INTEGER NOT NULL
);
CREATE INDEX meetings_number ON meetings (number);
"
);

/// The texts of a run's agents, and the data that another run needs to go on from one that stopped.
const NINTH: &str = "
ALTER TABLE runs ADD COLUMN resumed_from TEXT;
ALTER TABLE run_steps ADD COLUMN root TEXT;
ALTER TABLE run_steps ADD COLUMN visit INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_steps ADD COLUMN stderr TEXT;
DROP INDEX run_steps_output;
CREATE INDEX run_steps_output ON run_steps (started_us)
  WHERE output IS NOT NULL OR stderr IS NOT NULL;

CREATE TABLE run_sources (
  run INTEGER PRIMARY KEY REFERENCES runs (number),
  hash TEXT NOT NULL,
  dir TEXT NOT NULL,
  began_at TEXT NOT NULL,
  -- A list of names and values as JSON.
  inputs TEXT NOT NULL
);

CREATE TABLE run_outcomes (
  run INTEGER NOT NULL REFERENCES runs (number),
  state TEXT NOT NULL,
  status TEXT NOT NULL,
  exit_code INTEGER,
  tokens INTEGER,
  is_whole INTEGER NOT NULL,
  output TEXT NOT NULL,
  stderr TEXT NOT NULL,
  json TEXT,
  UNIQUE (run, state)
);

CREATE TABLE run_texts (
  run INTEGER NOT NULL REFERENCES runs (number),
  step INTEGER NOT NULL,
  position INTEGER NOT NULL,
  at_us INTEGER NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  UNIQUE (run, step, position)
);
";

/// Reports whether the file has what runs got with the ninth step.
pub(crate) fn has_run_texts(db: &Connection) -> Result<bool, StoreError> {
    has_table(db, "run_texts")
}

/// Gives a connection to a file of an older version a table of touches of its own, in memory.
pub(crate) fn stand_in_for_touches(db: &Connection) -> Result<(), StoreError> {
    if has_touches(db)? || !has_table(db, "activity")? || !has_table(db, "targets")? {
        return Ok(());
    }
    db.pragma_update(None, "temp_store", "memory")?;
    db.execute_batch(touches!("TEMP"))?;
    Ok(())
}

/// Reports whether the file itself has the table of touches, and the columns that came with it.
pub(crate) fn has_touches(db: &Connection) -> Result<bool, StoreError> {
    has_table(db, "touches")
}

/// Migrates the file to the newest version. The caller holds the maintenance lock.
pub(crate) fn migrate(db: &mut Connection) -> Result<(), StoreError> {
    let newest = STEPS.len();
    let found: usize = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > newest {
        return Err(StoreError::Newer { found, newest });
    }
    for (done, step) in STEPS.iter().enumerate().skip(found) {
        let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", done + 1)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Refuses a file of a newer version. Another program's file has versions of its own.
pub(crate) fn check_format(db: &Connection) -> Result<(), StoreError> {
    let found: usize = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > STEPS.len() && has_table(db, "chains")? {
        return Err(StoreError::Newer { found, newest: STEPS.len() });
    }
    Ok(())
}

/// Reports whether the file has all that this program reads and writes.
pub(crate) fn is_current(db: &Connection) -> Result<bool, StoreError> {
    let found: usize = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(found == STEPS.len())
}

/// Reports whether the file has a table of this name.
pub(crate) fn has_table(db: &Connection, name: &str) -> Result<bool, StoreError> {
    let mut statement =
        db.prepare_cached("SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?1")?;
    Ok(statement.exists([name])?)
}

/// Reports whether a table has any row.
pub(crate) fn has_rows(db: &Connection, table: &str) -> Result<bool, StoreError> {
    Ok(db.prepare(&format!("SELECT 1 FROM {table} LIMIT 1"))?.exists([])?)
}

#[cfg(test)]
mod tests;
