-- One per process that recorded anything.
CREATE TABLE chains (
  chain INTEGER PRIMARY KEY,
  chain_id TEXT NOT NULL UNIQUE,
  opened_at TEXT NOT NULL,
  pid INTEGER NOT NULL,
  -- The fingerprint of the key that signs.
  key TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'open',
  -- The last entry of its journal that is in the tables.
  filed INTEGER NOT NULL DEFAULT 0,
  -- The last receipt of the chain before it.
  preceding TEXT,
  preceding_sequence INTEGER,
  preceding_hash TEXT,
  -- The head as it was filed, and the length at which a checkpoint last named it: a chain whose end
  -- is cut off differs from them.
  length INTEGER NOT NULL DEFAULT 0,
  last_hash TEXT,
  named INTEGER NOT NULL DEFAULT 0
);

-- The signed receipts, with their texts packed. They are read through the view `receipts`, which each
-- connection makes for itself: it needs a function that unpacks them.
CREATE TABLE signed_receipts (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  chain_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  -- The type of an action of the ledger itself.
  own TEXT,
  hash BLOB NOT NULL,
  packed BLOB NOT NULL,
  UNIQUE (chain_id, sequence)
);
CREATE INDEX signed_receipts_own ON signed_receipts (own) WHERE own IS NOT NULL;

-- The receipts that name the heads of all chains.
CREATE TABLE checkpoints (
  number INTEGER PRIMARY KEY,
  chain_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  hash TEXT NOT NULL
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
  -- Counts all changes of records, runs and steps, and all meetings, in one sequence.
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
  -- The main resource; all of them are in touches.
  target INTEGER REFERENCES targets,
  target_basis TEXT,
  -- The tool-use id. Two records of one call have the same; the one whose touches do not count names
  -- the other in joined.
  correlation_id TEXT,
  joined TEXT,
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
CREATE INDEX activity_correlation ON activity (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX activity_joined ON activity (joined) WHERE joined IS NOT NULL;

CREATE TABLE payloads (
  number INTEGER PRIMARY KEY REFERENCES activity ON DELETE CASCADE,
  -- Before the long texts, so that lists read it without them.
  response_truncated INTEGER NOT NULL DEFAULT 0,
  arguments TEXT,
  response TEXT
);

-- The resources of each record. Contention reads every row, so agent and access are one number: the
-- agent times four, plus 0 for a read, 1 for a write, and 2 if that is unknown.
CREATE TABLE touches (
  target INTEGER NOT NULL,
  started_us INTEGER NOT NULL,
  who INTEGER NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (target, started_us, who, number)
) WITHOUT ROWID;
CREATE INDEX touches_number ON touches (number);

-- Writes that met another agent's recent touch.
CREATE TABLE meetings (
  changed INTEGER PRIMARY KEY,
  number INTEGER NOT NULL,
  other INTEGER NOT NULL,
  target INTEGER NOT NULL,
  kind TEXT NOT NULL,
  gap_us INTEGER NOT NULL
);
CREATE INDEX meetings_number ON meetings (number);

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
  trace_id TEXT,
  resumed_from TEXT
);
CREATE INDEX runs_status ON runs (status);
CREATE INDEX runs_workflow ON runs (workflow);
CREATE INDEX runs_started ON runs (started_us);

CREATE TABLE run_steps (
  run INTEGER NOT NULL REFERENCES runs (number),
  number INTEGER NOT NULL,
  changed INTEGER NOT NULL UNIQUE,
  state TEXT NOT NULL,
  root TEXT,
  visit INTEGER NOT NULL DEFAULT 0,
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
  stderr TEXT,
  UNIQUE (run, number)
);
CREATE INDEX run_steps_output ON run_steps (started_us)
  WHERE output IS NOT NULL OR stderr IS NOT NULL;

-- What another run needs to go on from one that stopped: its source, and the outcome of each state.
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

-- What the agents of a run wrote.
CREATE TABLE run_texts (
  run INTEGER NOT NULL REFERENCES runs (number),
  step INTEGER NOT NULL,
  position INTEGER NOT NULL,
  at_us INTEGER NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  UNIQUE (run, step, position)
);

-- What the process remembers beside its records, such as which key signs.
CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- Counts the decisions that people make while the program runs; they are in the tables below.
CREATE TABLE state (
  version INTEGER NOT NULL
);
INSERT INTO state (version) VALUES (0);

-- The signed log of these decisions; the tables below are made from it.
CREATE TABLE decisions (
  number INTEGER PRIMARY KEY,
  line TEXT NOT NULL
);

CREATE TABLE servers (
  name TEXT PRIMARY KEY,
  -- Its definition, where it was added at run time.
  added TEXT,
  disabled INTEGER NOT NULL DEFAULT 0,
  quarantined INTEGER NOT NULL DEFAULT 0,
  -- The identity that the approval is bound to, the text that was approved, and the file that its
  -- command started then.
  approved TEXT,
  approved_text TEXT,
  program TEXT,
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

-- For people who open the file.
CREATE VIEW calls AS
  SELECT activity.number, activity.id,
    strftime('%Y-%m-%dT%H:%M:%fZ', started_us / 1e6, 'unixepoch') AS started,
    agents.name AS agent, server, tool, status, error_code, intent_type, effective_class,
    targets.system AS target_system, targets.resource AS target_resource,
    duration_us / 1000.0 AS duration_ms, receipt_id
  FROM activity JOIN agents USING (agent) LEFT JOIN targets USING (target);
