//! A home with something in every table of its ledger, and a gate that runs over a copy of it. The
//! gate writes nothing on its own, so tests can edit and restore everything while it runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reqwest::Method;
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::client::two_keys;
use testkit::gate::Gate;
use testkit::program::{program, run, stderr, stdout};
use testkit::upstream::scripted;
use testkit::wait::eventually;
use testkit::wire::Wire;

use super::kinds::At;
use super::kinds::Tampering::{self, Again, Earlier, Files, Sql, Swap, Text};
use crate::events::hook;
use crate::runs;

/// A home that no gate runs over. Its chains, by the letter that the kinds use:
/// - `s`, of a `serve` that was killed: a read, a write, a failed and a refused call, a checkpoint
///   (5), two reads, two decisions, an action that a hook announced, its outcome, and the end (12)
/// - `w`, of a `wrap`: a call and the end
/// - `c`, of a `call`, which closed `s`: a call and the end
pub(super) struct Prepared {
    dir: TempDir,
}

/// A gate over a copy of the home, and one chain more, which is open and which no checkpoint names:
/// - `k`, of a `wrap` that was killed: three calls
pub(super) struct Stage {
    pub(super) gate: Gate,
    pub(super) db: Connection,
    chains: BTreeMap<char, String>,
    files: BTreeMap<String, Vec<u8>>,
    tables: Vec<String>,
}

impl Prepared {
    pub(super) async fn new() -> Prepared {
        let tools = json!([{"name": "say", "annotations": {"readOnlyHint": true}}, {"name": "put"},
            {"name": "fail", "x-do": "is_error"}, {"name": "long", "x-do": {"text": 70_000}},
            {"name": "drop", "annotations": {"destructiveHint": true}}]);
        let mut gate = Gate::start(
            |dir| json!({"s": scripted(dir, "s", &tools), "w": scripted(dir, "w", &tools)}),
            json!({}),
        )
        .await;
        let (one, other) = (gate.http().await, gate.http().await);
        let mut params = two_keys("read", "s:say", json!({"path": "/srv/a"}));
        params["arguments"]["intent"]["reason"] = "to look".into();
        params["arguments"]["intent"]["data_sensitivity"] = "private".into();
        params["_meta"]["traceparent"] =
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into();
        one.request("tools/call", params).await.unwrap();
        other.two_key_call("write", "s:put", json!({"path": "/srv/a"})).await;
        let mut wrap = wrapped(gate.dir.path()).await;
        wrap.call("1", "say", json!({"path": "/srv/w"})).await;
        wrap.close();
        wrap.ended().await;
        one.two_key_call("destructive", "s:fail", json!({})).await;
        one.two_key_call("read", "s:drop", json!({})).await;
        // Everything is filed by then.
        gate.rest(Method::GET, "/api/v1/chains", None).await;
        backup(&gate.home());
        made(&gate, "/api/v1/checkpoints", json!({})).await;
        one.two_key_call("read", "s:say", json!({})).await;
        one.two_key_call("read", "s:long", json!({})).await;
        made(&gate, "/api/v1/tokens", json!({"name": "ci", "operations": ["read"]})).await;
        made(&gate, "/api/v1/tools/s/drop/disable", json!({})).await;
        act_outside(&gate).await;
        let store = runs::open(&gate.home());
        runs::three(&store, &[]);
        store.close().await.unwrap();
        gate.kill().await;
        let prepared = Prepared { dir: gate.dir };
        call(prepared.dir.path()).await;
        prepared
    }

    /// Starts a gate over a copy of the home.
    pub(super) async fn stage(&self) -> Stage {
        let gate = Gate::open(copy(self.dir.path())).await;
        let mut wrap = wrapped(gate.dir.path()).await;
        for number in 1..=3 {
            wrap.call(number, "say", json!({"path": "/srv/k"})).await;
        }
        let db = testkit::ledger::edit(gate.home());
        let filed = "SELECT COUNT(*) = 3 FROM chains JOIN receipts USING (chain_id)
                     WHERE chains.status = 'open'";
        let is_filed =
            async || db.query_row(filed, [], |row| row.get::<_, bool>(0)).unwrap().then_some(());
        eventually(is_filed).await;
        let pid = rustix::process::Pid::from_raw(wrap.pid()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        wrap.ended().await;
        Stage::of(gate, db)
    }
}

/// Copies a folder with a home and its config, but for the sockets.
pub(super) fn copy(from: &Path) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["home", "home/keys", "home/writers"] {
        std::fs::create_dir(dir.path().join(folder)).unwrap();
    }
    let names = files(&from.join("home")).into_keys().map(|name| format!("home/{name}"));
    let servers = ["s.tools.json", "w.tools.json", "config.json"].map(str::to_owned);
    for name in names.chain(servers) {
        // With the permissions, which a gate checks.
        std::fs::copy(from.join(&name), dir.path().join(&name)).unwrap();
    }
    let config = dir.path().join("config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    let [from, to] = [from, dir.path()].map(|path| path.to_str().unwrap());
    std::fs::write(config, text.replace(from, to)).unwrap();
    dir
}

/// Returns the files of a home that hold the ledger, by name.
pub(super) fn files(home: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for folder in ["", "keys", "writers"] {
        for file in std::fs::read_dir(home.join(folder)).unwrap().map(Result::unwrap) {
            let name = PathBuf::from(folder).join(file.file_name());
            let name = name.to_str().unwrap().to_owned();
            // SQLite's index of the log is not part of the content.
            if file.metadata().unwrap().is_file() && !name.ends_with("-shm") {
                found.insert(name, std::fs::read(file.path()).unwrap());
            }
        }
    }
    found
}

/// Makes one call through a gate that starts for it, and recovers what others left.
pub(super) async fn call(dir: &Path) {
    let args = ["call", "tool-read", "--tool-name=s:say", "--config", "config.json"];
    let output = run(dir, args).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// Starts a `wrap`, which writes its own chain.
async fn wrapped(dir: &Path) -> Wire {
    let config: Value =
        serde_json::from_slice(&std::fs::read(dir.join("config.json")).unwrap()).unwrap();
    let entry = &config["mcpServers"]["w"];
    let mut command = program(dir);
    command.args(["wrap", "--name", "w", "--"]).arg(entry["command"].as_str().unwrap());
    command.arg(entry["args"][0].as_str().unwrap());
    let mut wire = Wire::open(command);
    wire.greet().await;
    wire
}

async fn made(gate: &Gate, path: &str, body: Value) {
    let body = (body != json!({})).then_some(body);
    let (status, answer) = gate.rest(Method::POST, path, body).await;
    assert!((200..300).contains(&status), "{path}: {answer}");
}

/// Reports an agent's own action, before and after it.
async fn act_outside(gate: &Gate) {
    for name in ["PreToolUse", "PostToolUse"] {
        let event = json!({"hook_event_name": name, "session_id": "session-1", "cwd": "/srv",
            "tool_name": "Edit", "tool_input": {"file_path": "/srv/b"}, "tool_use_id": "toolu_1"});
        hook(gate.dir.path(), event.to_string().as_bytes()).await;
    }
    let recorded = async || {
        let (_, page) = gate.rest(Method::GET, "/api/v1/activity?tool=Edit", None).await;
        (page["total"] == 2).then_some(())
    };
    eventually(recorded).await;
}

fn backup(home: &Path) {
    let to = home.join("earlier.db");
    testkit::ledger::edit(home).execute("VACUUM INTO ?1", [to.to_str().unwrap()]).unwrap();
}

impl Stage {
    fn of(gate: Gate, db: Connection) -> Stage {
        // An attacker is not kept from it by what refers to what.
        db.execute_batch("PRAGMA foreign_keys = off").unwrap();
        let names = |sql| -> Vec<String> {
            let mut statement = db.prepare(sql).unwrap();
            let names = statement.query_map([], |row| row.get(0)).unwrap();
            names.collect::<Result<_, _>>().unwrap()
        };
        let chains = "swck".chars().zip(names("SELECT chain_id FROM chains ORDER BY chain"));
        let chains: BTreeMap<char, String> = chains.collect();
        assert_eq!(chains.len(), 4, "{chains:?}");
        let tables = names("SELECT name FROM main.sqlite_schema WHERE type = 'table'");
        for table in &tables {
            let sql = format!("CREATE TEMP TABLE kept_{table} AS SELECT * FROM main.{table}");
            db.execute_batch(&sql).unwrap();
        }
        let files = files(&gate.home());
        Stage { gate, db, chains, files, tables }
    }

    pub(super) fn home(&self) -> PathBuf {
        self.gate.home()
    }

    /// Returns the ids of the chains, by letter.
    pub(super) fn chains(&self) -> &BTreeMap<char, String> {
        &self.chains
    }

    pub(super) fn tamper(&self, tampering: &Tampering) {
        match tampering {
            Sql(sql) => self.sql(sql),
            Text(at, change) => {
                let text = self.text(*at);
                let changed = change(text.clone());
                assert_ne!(changed, text);
                self.put(*at, &changed);
            }
            Swap(one, other) => {
                let (first, second) = (self.text(*one), self.text(*other));
                self.put(*one, &second);
                self.put(*other, &first);
            }
            Again((chain, sequence), onto) => {
                let columns = "own, receipt_json, receipt_hash";
                self.sql(&format!(
                    "INSERT INTO receipts (id, chain_id, sequence, {columns})
                     SELECT 'urn:again', '{{{onto}}}', (SELECT max(sequence) + 1 FROM receipts WHERE
                     chain_id='{{{onto}}}'), {columns} FROM receipts
                     WHERE chain_id='{{{chain}}}' AND sequence={sequence}"
                ));
            }
            Files(change) => {
                let before = files(&self.home());
                change(&self.home());
                assert!(files(&self.home()) != before, "nothing was changed");
            }
            Earlier => self.roll_back(),
        }
    }

    /// Executes SQL, after filling in the names of chains (`Tampering::Sql`).
    pub(super) fn sql(&self, sql: &str) {
        let mut sql = sql.to_owned();
        for (letter, id) in &self.chains {
            for length in 1..=4 {
                let head = format!(
                    "UPDATE chains SET length={length}, last_hash=(SELECT receipt_hash FROM receipts
                       WHERE chain_id='{id}' AND sequence={length}) WHERE chain_id='{id}'"
                );
                sql = sql.replace(&format!("{{{letter} ends at {length}}}"), &head);
            }
            sql = sql.replace(&format!("{{{letter}}}"), id);
        }
        let before = self.db.total_changes();
        self.db.execute_batch(&sql).unwrap_or_else(|error| panic!("{error}: {sql}"));
        assert!(self.db.total_changes() > before, "{sql}");
    }

    fn text(&self, (chain, sequence): At) -> String {
        let sql = "SELECT receipt_json FROM receipts WHERE chain_id=?1 AND sequence=?2";
        self.db.query_row(sql, (&self.chains[&chain], sequence), |row| row.get(0)).unwrap()
    }

    fn put(&self, (chain, sequence): At, text: &str) {
        let sql = "UPDATE receipts SET receipt_json=?3 WHERE chain_id=?1 AND sequence=?2";
        let before = self.db.total_changes();
        self.db.execute(sql, (&self.chains[&chain], sequence, text)).unwrap();
        assert_eq!(self.db.total_changes() - before, 1);
    }

    /// Makes the ledger what it was before the checkpoint.
    fn roll_back(&self) {
        let earlier = self.home().join("earlier.db");
        self.db.execute("ATTACH ?1 AS earlier", [earlier.to_str().unwrap()]).unwrap();
        self.refill(|table| format!("earlier.{table}"));
        self.db.execute_batch("DETACH earlier").unwrap();
    }

    fn refill(&self, source: impl Fn(&str) -> String) {
        let refill = self.tables.iter().map(|table| {
            format!(
                "DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM {};",
                source(table)
            )
        });
        let sql = format!("BEGIN IMMEDIATE; {} COMMIT", refill.collect::<String>());
        self.db.execute_batch(&sql).unwrap();
    }

    /// Makes the home what it was.
    pub(super) fn mend(&self) {
        self.refill(|table| format!("temp.kept_{table}"));
        let now = files(&self.home());
        for name in now.keys().filter(|name| !self.files.contains_key(*name)) {
            std::fs::remove_file(self.home().join(name)).unwrap();
        }
        for (name, kept) in &self.files {
            if now.get(name) != Some(kept) && !name.starts_with("ledger.db") {
                std::fs::write(self.home().join(name), kept).unwrap();
            }
        }
    }

    /// Returns the verdict of the command line, which must write nothing.
    pub(super) async fn verified(&self, kind: &str) -> Value {
        let before = files(&self.home());
        let output = self.gate.cli(&["receipt", "verify", "-o", "json"]).await;
        assert!(files(&self.home()) == before, "{kind}: verify wrote something");
        let answer: Value = serde_json::from_str(&stdout(&output))
            .unwrap_or_else(|error| panic!("{kind}: {error}: {}", stderr(&output)));
        let code = Some(if answer["valid"] == true { 0 } else { 1 });
        assert_eq!(output.status.code(), code, "{kind}: {answer}");
        answer
    }

    pub(super) async fn asked(&self, path: &str) -> Value {
        let (status, answer) = self.gate.rest(Method::GET, path, None).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }
}
