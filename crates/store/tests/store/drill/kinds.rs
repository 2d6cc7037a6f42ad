//! The kinds of damage.

use std::fs;
use std::path::Path;

use super::super::support::{Home, journal_file};
use super::{Prepared, settle};

/// The answer of a start.
#[derive(Clone, Copy)]
pub(super) enum Start {
    Silent,
    /// It tells the operator this.
    Told(&'static str),
    /// That depends on which pages are damaged.
    Any,
    /// It refuses, and says this.
    Refused(&'static str),
}

pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) damage: fn(&Prepared, &Path),
    pub(super) starts: Start,
    /// Words of a check; empty if it finds nothing.
    pub(super) found: &'static str,
}

impl Kind {
    /// Reports whether no repair makes the ledger verify: nothing is left that says who signed it.
    pub(super) fn is_hopeless(&self) -> bool {
        self.name == "no keys"
    }
}

use Start::{Any, Refused, Silent, Told};

const fn kind(
    name: &'static str,
    damage: fn(&Prepared, &Path),
    starts: Start,
    found: &'static str,
) -> Kind {
    Kind { name, damage, starts, found }
}

const NO_FILE: &str = "it has 1 signing key, 1 journal, a checkpoint, operator decisions";
const NOT_ONE: &str = "file is not a database";
const MALFORMED: &str = "database disk image is malformed";
const RECORD: &str = "its record differs from the signed text";
const ENTRIES: &str = "its journal lacks 4 entries that were committed and not filed";
const LOST: &str = "4 entries and 0 receipts are lost";

pub(super) const KINDS: &[Kind] = &[
    kind("nothing", |_, _| (), Silent, ""),
    // The database as a file.
    kind(
        "no database",
        |_, home| remove_database(home),
        Refused(NO_FILE),
        "is missing, but the home",
    ),
    kind(
        "an empty database",
        |_, home| replace(home, ""),
        Refused(NO_FILE),
        "is empty, but the home",
    ),
    kind(
        "noise for a database",
        |_, home| replace(home, &"noise\n".repeat(9_999)),
        Refused(NOT_ONE),
        NOT_ONE,
    ),
    kind("no first page", |_, home| fill(home, |_| (0, 1)), Refused(NOT_ONE), NOT_ONE),
    kind("a hole", |_, home| fill(home, |all| (all - 9, all - 6)), Any, "btreeInitPage"),
    kind("no last pages", |_, home| fill(home, |all| (all - 4, all)), Any, "btreeInitPage"),
    kind("cut by a third", |_, home| cut(home, |all| all * 2 / 3), Refused(MALFORMED), MALFORMED),
    kind("cut by a page", |_, home| cut(home, |all| all - 1), Refused(MALFORMED), MALFORMED),
    kind("cut to a page", |_, home| cut(home, |_| 1), Refused(MALFORMED), MALFORMED),
    kind(
        "no table of receipts",
        |_, home| sql(home, "DROP TABLE signed_receipts"),
        Refused("no such table"),
        "no such table",
    ),
    kind(
        "no table of records",
        |_, home| sql(home, "PRAGMA foreign_keys = off; DROP TABLE activity"),
        Refused("no such table"),
        "no such table",
    ),
    kind(
        "an older database",
        |it, home| replace_by(&it.older, home),
        Refused("only 0 of 9 receipts can be found"),
        "but 9 at the last checkpoint",
    ),
    kind(
        "another home's database",
        |it, home| replace_by(&it.other, home),
        Refused("only 0 of 9 receipts can be found"),
        "but 9 at the last checkpoint",
    ),
    // Receipts.
    kind(
        "no receipts of the killed",
        |it, home| rows(it, home, "DELETE FROM receipts WHERE chain_id='{killed}'"),
        Told("says that chain"),
        "has 14 receipts, and has none",
    ),
    kind(
        "a hole in its receipts",
        |it, home| {
            rows(
                it,
                home,
                "DELETE FROM receipts WHERE chain_id='{killed}' AND sequence BETWEEN 3 AND 5",
            )
        },
        Silent,
        "sequence is 6, expected 3",
    ),
    kind(
        "no receipts of the copied",
        |it, home| rows(it, home, "DELETE FROM receipts WHERE chain_id='{copied}'"),
        Refused("has 0 receipts, but 3"),
        "has 0 receipts, but 3",
    ),
    kind(
        "no receipts of the ended",
        |it, home| rows(it, home, "DELETE FROM receipts WHERE chain_id='{ended}'"),
        Refused("has 0 receipts, but 9"),
        "has 0 receipts, but 9",
    ),
    kind(
        "an altered receipt of the killed",
        |it, home| alter(it, home, 2),
        Silent,
        "signature does not match",
    ),
    kind(
        "an altered receipt of the copied",
        |it, home| alter(it, home, 0),
        Silent,
        "signature does not match",
    ),
    kind(
        "an altered receipt of the ended",
        |it, home| alter(it, home, 1),
        Silent,
        "signature does not match",
    ),
    kind("another hash", |it, home| rows(it, home, OTHER_HASH), Silent, "the columns hash differ"),
    kind(
        "another place",
        |it, home| {
            rows(
                it,
                home,
                "UPDATE receipts SET sequence=99 WHERE chain_id='{killed}' AND sequence=2",
            )
        },
        Told("its last one is receipt 99"),
        "its last one is receipt 99",
    ),
    kind(
        "no checkpoints listed",
        |_, home| sql(home, "DELETE FROM checkpoints"),
        Silent,
        "the table of checkpoints lacks the one in receipt 3",
    ),
    // Chains.
    kind(
        "a chain that never was",
        |it, home| rows(it, home, NEVER_WAS),
        Silent,
        "touches belong to no record",
    ),
    kind(
        "no chains",
        |_, home| sql(home, "DELETE FROM chains"),
        Silent,
        "the chain is not in the table of chains",
    ),
    kind(
        "an end taken back",
        |it, home| rows(it, home, "UPDATE chains SET status='open' WHERE chain_id='{ended}'"),
        Told("nothing is signed onto chain"),
        "differs from what is signed: status",
    ),
    kind(
        "filed too much",
        |it, home| rows(it, home, "UPDATE chains SET filed=filed+9 WHERE chain_id='{killed}'"),
        Told("which does not agree with receipt 15"),
        "which does not agree with receipt 15",
    ),
    kind(
        "filed too little",
        |it, home| rows(it, home, "UPDATE chains SET filed=filed-2 WHERE chain_id='{killed}'"),
        Told("which does not agree with receipt 14"),
        "which does not agree with receipt 14",
    ),
    kind(
        "a longer chain",
        |it, home| rows(it, home, "UPDATE chains SET length=99 WHERE chain_id='{ended}'"),
        Told("has 99 receipts, and its last one is receipt 9"),
        "has 99 receipts",
    ),
    // Records.
    kind(
        "no records",
        |_, home| sql(home, "DELETE FROM payloads; DELETE FROM activity"),
        Silent,
        "its record is missing",
    ),
    kind(
        "altered records of the killed",
        |it, home| rows(it, home, ALTERED_KILLED),
        Silent,
        RECORD,
    ),
    kind("altered records of the ended", |it, home| rows(it, home, ALTERED_ENDED), Silent, RECORD),
    kind(
        "an agent of another name",
        |_, home| sql(home, "UPDATE agents SET name='nobody'"),
        Silent,
        RECORD,
    ),
    kind(
        "a resource of another name",
        |_, home| sql(home, "UPDATE targets SET resource='/etc/passwd'"),
        Silent,
        RECORD,
    ),
    kind(
        "altered texts",
        |_, home| {
            sql(home, "UPDATE payloads SET arguments='{}', response='{}', response_truncated=1")
        },
        Silent,
        RECORD,
    ),
    kind("no touches", |_, home| sql(home, "DELETE FROM touches"), Silent, "touches"),
    kind("a call made up", |_, home| sql(home, MADE_UP), Silent, "record made-up names no receipt"),
    // What else the tables know.
    kind(
        "no settings",
        |_, home| sql(home, "DELETE FROM settings"),
        Refused("it names no signing key"),
        "it names no signing key",
    ),
    kind(
        "a switch turned back",
        |_, home| sql(home, "DELETE FROM switches"),
        Told("the switch of 'files:delete'"),
        "the switch of 'files:delete'",
    ),
    kind(
        "no decisions",
        |_, home| sql(home, "DELETE FROM decisions"),
        Told("were restored from decisions.jsonl"),
        "the signed log of decisions is damaged",
    ),
    // The journal.
    kind(
        "no journal",
        |it, home| fs::remove_file(journal_file(home, &it.chains[2])).unwrap(),
        Told(LOST),
        ENTRIES,
    ),
    kind(
        "an empty journal",
        |it, home| fs::write(journal_file(home, &it.chains[2]), "").unwrap(),
        Told(LOST),
        ENTRIES,
    ),
    kind("half a journal", |it, home| halve(it, home, b""), Told(LOST), ENTRIES),
    kind(
        "noise in the journal",
        |it, home| halve(it, home, b"noise\n"),
        Told(LOST),
        "1 damaged lines: 4 entries are lost",
    ),
    kind(
        "no journal and no lock",
        |_, home| clear(home, "writers"),
        Told("and its lock file with it"),
        "and its lock file with it",
    ),
    kind(
        "neither database nor journal",
        |it, home| {
            remove_database(home);
            fs::remove_file(journal_file(home, &it.chains[2])).unwrap();
        },
        Refused("has been used before"),
        "is missing, but the home",
    ),
    kind(
        "no database and half a journal",
        |it, home| {
            remove_database(home);
            halve(it, home, b"noise\n");
        },
        Refused(NO_FILE),
        "is missing, but the home",
    ),
    // What stands beside them.
    kind(
        "no checkpoint file",
        |_, home| fs::remove_file(home.join("checkpoint.json")).unwrap(),
        Told("checkpoint.json is missing"),
        "",
    ),
    kind(
        "noise for a checkpoint",
        |_, home| fs::write(home.join("checkpoint.json"), "noise").unwrap(),
        Told("the checkpoint is not trusted"),
        "the checkpoint is not trusted",
    ),
    kind("an older checkpoint", older_checkpoint, Told("checkpoint.json is older"), ""),
    kind(
        "no copy of the decisions",
        |_, home| fs::remove_file(home.join("decisions.jsonl")).unwrap(),
        Silent,
        "",
    ),
    kind(
        "no secret key",
        |_, home| keys(home, ".secret.pem"),
        Refused("is missing; restore it"),
        "the secret half of the signing key",
    ),
    kind(
        "no public key",
        |_, home| keys(home, ".public.pem"),
        Told("the public half of the key"),
        "the public key",
    ),
    kind(
        "no list of used keys",
        |_, home| fs::remove_file(home.join("keys/used")).unwrap(),
        Silent,
        "",
    ),
    kind(
        "no keys",
        |_, home| clear(home, "keys"),
        Refused("is missing; restore it"),
        "the secret half of the signing key",
    ),
];

const OTHER_HASH: &str = "UPDATE receipts SET receipt_hash='sha256:' || hex(zeroblob(32))
    WHERE chain_id='{killed}' AND sequence=2";
const NEVER_WAS: &str = "DELETE FROM activity
      WHERE chain=(SELECT chain FROM chains WHERE chain_id='{killed}');
    DELETE FROM receipts WHERE chain_id='{killed}'; DELETE FROM chains WHERE chain_id='{killed}'";
const ALTERED_KILLED: &str = "UPDATE activity SET status='error', reason='no reason', tool='other'
    WHERE chain=(SELECT chain FROM chains WHERE chain_id='{killed}')";
const ALTERED_ENDED: &str = "UPDATE activity SET duration_us=1, effective_class='read'
    WHERE chain=(SELECT chain FROM chains WHERE chain_id='{ended}')";
const MADE_UP: &str =
    "INSERT INTO activity (id, changed, chain, type, source, surface, server, tool,
      agent, started_us, status)
    SELECT 'made-up', changed + 1000, chain, type, source, surface, server, 'delete_all', agent,
      started_us, 'pending' FROM activity WHERE number = 1";

const PAGE: usize = 8192;

fn remove_database(home: &Path) {
    for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        let _ = fs::remove_file(home.join(name));
    }
}

fn replace(home: &Path, text: &str) {
    remove_database(home);
    fs::write(home.join("ledger.db"), text).unwrap();
}

/// Overwrites pages of the database.
fn fill(home: &Path, which: fn(usize) -> (usize, usize)) {
    let file = home.join("ledger.db");
    let mut bytes = fs::read(&file).unwrap();
    let (first, last) = which(bytes.len() / PAGE);
    bytes[first * PAGE..last * PAGE].fill(0x5a);
    fs::write(&file, bytes).unwrap();
}

fn cut(home: &Path, left: fn(usize) -> usize) {
    let file = home.join("ledger.db");
    let mut bytes = fs::read(&file).unwrap();
    bytes.truncate(left(bytes.len() / PAGE) * PAGE);
    fs::write(&file, bytes).unwrap();
}

/// Replaces the database by that of another home.
fn replace_by(other: &Home, home: &Path) {
    remove_database(home);
    fs::copy(other.path().join("ledger.db"), home.join("ledger.db")).unwrap();
}

fn older_checkpoint(prepared: &Prepared, home: &Path) {
    let name = "checkpoint.json";
    fs::copy(prepared.older.path().join(name), home.join(name)).unwrap();
}

fn sql(home: &Path, sql: &str) {
    let db = testkit::ledger::edit(home);
    let before = db.total_changes();
    db.execute_batch(sql).unwrap();
    assert!(sql.contains("DROP") || db.total_changes() > before, "{sql}");
    drop(db);
    settle(home);
}

fn rows(prepared: &Prepared, home: &Path, text: &str) {
    let names = ["{copied}", "{ended}", "{killed}"].into_iter().zip(&prepared.chains);
    sql(home, &names.fold(text.to_owned(), |text, (name, chain)| text.replace(name, chain)));
}

/// Changes the text of the second receipt of a chain.
fn alter(prepared: &Prepared, home: &Path, chain: usize) {
    let text = "UPDATE receipts SET receipt_json=replace(receipt_json, 'read_text', 'read_test')
        WHERE sequence=2 AND chain_id=";
    sql(home, &format!("{text}'{}'", prepared.chains[chain]));
}

/// Replaces the second half of the journal, from the beginning of a line.
fn halve(prepared: &Prepared, home: &Path, by: &[u8]) {
    let file = journal_file(home, &prepared.chains[2]);
    let mut text = fs::read(&file).unwrap();
    let middle = text.len() / 2;
    let end = text[..middle].iter().rposition(|byte| *byte == b'\n').unwrap();
    text.truncate(end + 1);
    text.extend_from_slice(by);
    fs::write(&file, text).unwrap();
}

/// Removes all files of a folder.
fn clear(home: &Path, folder: &str) {
    remove_files(home, folder, "");
}

fn keys(home: &Path, ending: &str) {
    remove_files(home, "keys", ending);
}

fn remove_files(home: &Path, folder: &str, ending: &str) {
    for file in fs::read_dir(home.join(folder)).unwrap().map(Result::unwrap) {
        if file.file_name().to_string_lossy().ends_with(ending) {
            fs::remove_file(file.path()).unwrap();
        }
    }
}
