//! The calls that the files of a home still hold, whatever has happened to them: read here without
//! the store, row by row and line by line.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use receipt::packed::unpack;
use rusqlite::Connection;
use serde_json::Value;

/// Everything that the files of a home say of calls. A call is known by its resource, which no other
/// call has.
#[derive(Default)]
pub(super) struct Remains {
    /// The calls whose outcome is known, and the chain of each.
    pub(super) ended: HashMap<String, String>,
    /// Those of them whose arguments and result are kept.
    pub(super) kept: HashSet<String>,
    /// The events that no gate has taken yet.
    pub(super) spooled: HashSet<String>,
    /// The highest number of a row.
    pub(super) highest: i64,
}

impl Remains {
    /// Reads a home in which no process is at work. Rows are looked up to the number `highest`, since
    /// a damaged file does not say how many it had.
    pub(super) fn of(home: &Path, highest: i64) -> Remains {
        let mut remains = Remains { highest, ..Remains::default() };
        let mut rows = Rows::default();
        let copy = tempfile::tempdir().unwrap();
        if let Some(db) = open_copy(home, copy.path()) {
            remains.highest = rows.read(&db, highest);
        }
        rows.add_to(&mut remains);
        let mut texts = Vec::new();
        for path in journals(home) {
            texts.push((chain_of(&path), fs::read(&path).unwrap()));
        }
        remains.add_lines(&rows, &texts);
        for file in fs::read_dir(home.join("spool")).into_iter().flatten().flatten() {
            let text = fs::read(file.path()).unwrap();
            remains.spooled.extend(resource_in(&serde_json::from_slice(&text).unwrap_or_default()));
        }
        remains
    }

    /// Adds the calls that end in a line of a journal and start in one, or in the tables.
    fn add_lines(&mut self, rows: &Rows, texts: &[(String, Vec<u8>)]) {
        let lines = texts.iter().flat_map(|(chain, text)| {
            let lines = text.split(|byte| *byte == b'\n').filter(|line| is_unchanged(line));
            lines.map(move |line| (chain, serde_json::from_slice::<Value>(line).unwrap()))
        });
        let (mut starts, mut ends) = (HashMap::new(), Vec::new());
        for (chain, line) in lines {
            if let Some(id) = line["started"]["id"].as_str() {
                starts.insert(id.to_owned(), resource_in(&parsed(&line["arguments"])));
            }
            if let Some(id) = line["ended"]["id"].as_str() {
                ends.push((id.to_owned(), chain.clone()));
            }
        }
        for (id, chain) in ends {
            let is_in_line = starts.contains_key(&id);
            let started = starts.get(&id).cloned().flatten();
            let Some(resource) = started.or_else(|| rows.starts.get(&id).cloned()) else {
                continue;
            };
            if is_in_line {
                self.kept.insert(resource.clone());
            }
            self.ended.insert(resource, chain);
        }
    }
}

/// The rows of the tables that can be read.
#[derive(Default)]
struct Rows {
    /// The resource and the chain of a receipt, by the id of its call.
    receipts: HashMap<String, (String, String)>,
    /// The resources of calls whose arguments are kept, by id.
    starts: HashMap<String, String>,
    /// The calls whose result is kept too.
    whole: HashSet<String>,
}

impl Rows {
    /// Reads each row by its number, so that no fault hides another row; returns the highest number.
    fn read(&mut self, db: &Connection, highest: i64) -> i64 {
        let highest_of = |table: &str| {
            let words = format!("SELECT max(number) FROM {table}");
            db.query_row(&words, [], |row| row.get::<_, Option<i64>>(0)).ok().flatten()
        };
        let tables = ["signed_receipts", "activity"];
        let last = tables.into_iter().filter_map(highest_of).max().unwrap_or(0).max(highest);
        for number in 1..=last {
            self.read_receipt(db, number);
            self.read_call(db, number);
        }
        last
    }

    fn read_receipt(&mut self, db: &Connection, number: i64) -> Option<()> {
        let words = "SELECT packed FROM signed_receipts WHERE number = ?1";
        let mut statement = db.prepare_cached(words).ok()?;
        let packed: Vec<u8> = statement.query_row([number], |row| row.get(0)).ok()?;
        let receipt: Value = serde_json::from_slice(&unpack(&packed)?).ok()?;
        let subject = &receipt["credentialSubject"];
        let resource = subject["action"]["target"]["resource"].as_str()?.to_owned();
        let chain = subject["chain"]["chain_id"].as_str()?.to_owned();
        let id = receipt["id"].as_str()?.strip_prefix("urn:receipt:")?.to_owned();
        if subject["outcome"]["status"] != "pending" {
            self.receipts.insert(id, (resource, chain));
        }
        Some(())
    }

    fn read_call(&mut self, db: &Connection, number: i64) -> Option<()> {
        let words = "SELECT id, arguments, receipt_id IS NOT NULL FROM activity
                     JOIN payloads USING (number) WHERE number = ?1";
        let mut statement = db.prepare_cached(words).ok()?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let (id, arguments, has_ended): (String, String, bool) =
            statement.query_row([number], read).ok()?;
        let resource = resource_in(&serde_json::from_str(&arguments).ok()?)?;
        if has_ended {
            self.whole.insert(id.clone());
        }
        self.starts.insert(id, resource);
        Some(())
    }

    fn add_to(&self, remains: &mut Remains) {
        for (id, (resource, chain)) in &self.receipts {
            remains.ended.insert(resource.clone(), chain.clone());
            if self.whole.contains(id) {
                remains.kept.insert(resource.clone());
            }
        }
    }
}

/// Opens a copy of the database, since reading one that was left may write.
fn open_copy(home: &Path, to: &Path) -> Option<Connection> {
    for name in ["ledger.db", "ledger.db-wal"] {
        if home.join(name).exists() {
            fs::copy(home.join(name), to.join(name)).unwrap();
        }
    }
    let file = to.join("ledger.db");
    file.exists().then(|| Connection::open(file).unwrap())
}

/// Reports whether a line of a journal is as it was written: its checksum, a CRC-32C in its last
/// member, is that of everything before.
fn is_unchanged(line: &[u8]) -> bool {
    const END: usize = r#","crc":"00000000"}"#.len();
    let Some(content) = line.len().checked_sub(END).map(|at| &line[..at]) else { return false };
    let sum = content.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    });
    line[content.len()..] == *format!(r#","crc":"{:08x}"}}"#, !sum).as_bytes()
}

/// Returns the journals of a home, the oldest first.
pub(super) fn journals(home: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(home.join("writers")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files.map(|file| file.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "journal"));
    paths.sort_unstable();
    paths
}

pub(super) fn chain_of(journal: &Path) -> String {
    journal.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// Returns the value in a text of JSON.
fn parsed(text: &Value) -> Value {
    text.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Returns the resource that arguments of a call, or an event in the spool, name.
fn resource_in(arguments: &Value) -> Option<String> {
    let names = ["path", "file_path"];
    let found = names.iter().find_map(|name| arguments[*name].as_str());
    let input = || arguments.as_object()?.values().find_map(resource_in);
    found.map(str::to_owned).or_else(input)
}
