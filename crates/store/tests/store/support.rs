//! A ledger in its own folder, entries for it, and a view of the results.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use domain::tool::Class;
use jiff::Timestamp;
use receipt::RiskLevel;
use receipt::canonical::Digest;
use receipt::chain::{ChainExpectation, ChainStatus, verify};
use receipt::{Hash, PublicKey};
use rusqlite::Connection;
use serde_json::Value;
use store::{
    CallEnd, CallStart, Entry, Payload, ReceiptAction, RecordAgent, RecordKind, RecordStatus,
    Safety, Store,
};
use touch::targets::{Access, Target, Touches};

pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn open(&self) -> Store {
        Store::open(self.path(), &rules()).unwrap()
    }

    pub(crate) fn look(&self) -> Look {
        Look::at(self.path())
    }

    /// Returns a copy as a killed process would leave it: nothing holds its locks.
    pub(crate) fn copy(&self) -> Home {
        let copy = Home::new();
        for folder in ["", "keys", "writers"] {
            fs::create_dir_all(copy.path().join(folder)).unwrap();
            for file in fs::read_dir(self.path().join(folder)).unwrap().map(Result::unwrap) {
                if file.file_type().unwrap().is_file() {
                    fs::copy(file.path(), copy.path().join(folder).join(file.file_name())).unwrap();
                }
            }
        }
        copy
    }
}

pub(crate) fn rules() -> domain::config::Ledger {
    domain::config::Ledger::default()
}

pub(crate) fn payload(text: &str) -> Payload {
    Payload {
        bytes: text.len(),
        digest: Some(Digest::of_text(text)),
        kept: Some(text.to_owned()),
        truncated: false,
        kept_digest: None,
    }
}

pub(crate) fn started(class: Class) -> CallStart {
    let text = r#"{"path":"/srv/notes.txt","limit":20}"#;
    CallStart {
        id: uuid::Uuid::now_v7().to_string(),
        kind: RecordKind::ToolCall,
        source: Cow::Borrowed("mcp"),
        surface: Cow::Borrowed("mcp"),
        server: "files".to_owned(),
        tool: "read_text".to_owned(),
        agent: RecordAgent {
            name: "claude-1".to_owned(),
            client: "claude".to_owned(),
            token: "agent".to_owned(),
        },
        session: Some("session-1".to_owned()),
        request_id: Some("7".to_owned()),
        at: Timestamp::now(),
        variant: Some(Cow::Borrowed(class.variant())),
        declared: Some(Cow::Borrowed(class.as_str())),
        sensitivity: Some(Cow::Borrowed("internal")),
        reason: Some("to see what \"it\" says".to_owned()),
        effective: Some(class),
        unverified: false,
        warnings: vec![],
        touches: Touches::reported(
            Target::new("files", "/srv/notes.txt".to_owned()),
            Access::of(Some(class)),
        ),
        trace_id: None,
        arguments: payload(text),
        action: ReceiptAction {
            kind: Cow::Borrowed("filesystem.file.read"),
            risk: RiskLevel::Low,
            correlation_id: Some("toolu_1".to_owned()),
        },
        outside: None,
    }
}

pub(crate) fn ended(call: &CallStart) -> CallEnd {
    CallEnd {
        id: call.id.clone(),
        status: RecordStatus::Success,
        error_code: None,
        error_message: None,
        duration: Duration::from_millis(12),
        response: payload(r#"{"content":[{"type":"text","text":"hello"}]}"#),
        warnings: Vec::new(),
        touches: Touches::default(),
    }
}

pub(crate) fn whole(class: Class) -> (String, Entry) {
    let call = started(class);
    let (id, end) = (call.id.clone(), ended(&call));
    (id, Entry::Whole(Box::new(call), Box::new(end)))
}

/// Makes a call from its start to its end, as the pipeline does.
pub(crate) async fn call(
    store: &Store,
    class: Class,
) -> Result<(String, Safety), store::StoreError> {
    let call = started(class);
    let (id, end) = (call.id.clone(), ended(&call));
    store.append(Entry::Started(Box::new(call))).await?;
    let safe = store.append(Entry::Ended(Box::new(end))).await?;
    Ok((id, safe))
}

pub(crate) fn db(home: &Path) -> Connection {
    testkit::ledger::read(home)
}

pub(crate) fn journal_file(home: &Path, chain: &str) -> PathBuf {
    home.join("writers").join(format!("{chain}.journal"))
}

/// Returns the journal of a chain, without its header.
pub(crate) fn journal(home: &Path, chain: &str) -> Vec<Value> {
    let text = fs::read_to_string(journal_file(home, chain)).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.contains("\"journal\":"));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The content of the file, with every chain verified.
pub(crate) struct Look {
    pub(crate) chains: Vec<ChainLook>,
    /// The status of each call by its id.
    pub(crate) calls: HashMap<String, String>,
    /// Entries that are not filed.
    pub(crate) journal: usize,
}

pub(crate) struct ChainLook {
    pub(crate) id: String,
    pub(crate) row_status: String,
    pub(crate) status: ChainStatus,
    pub(crate) receipts: Vec<Value>,
}

impl Look {
    pub(crate) fn at(home: &Path) -> Look {
        let db = db(home);
        let texts = receipts(&db);
        let mut statement =
            db.prepare("SELECT chain_id, status FROM chains ORDER BY chain").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let chains = rows
            .map(|row| {
                let (id, status): (String, String) = row.unwrap();
                check_chain(home, id.clone(), status, texts.get(&id).map_or(&[], Vec::as_slice))
            })
            .collect();
        let mut statement = db.prepare("SELECT id, status FROM activity").unwrap();
        let calls = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let calls = calls.map(Result::unwrap).collect();
        let mut statement = db.prepare("SELECT chain_id, filed FROM chains").unwrap();
        let filed = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let unfiled = filed.map(|chain| {
            let (id, filed): (String, i64) = chain.unwrap();
            let entries = journal(home, &id);
            entries.iter().filter(|entry| entry["entry"].as_i64().unwrap() > filed).count()
        });
        Look { chains, calls, journal: unfiled.sum() }
    }

    pub(crate) fn receipt(&self, call: &str) -> Option<&Value> {
        let id = format!("urn:receipt:{call}");
        self.chains.iter().flat_map(|chain| &chain.receipts).find(|receipt| receipt["id"] == *id)
    }

    pub(crate) fn status(&self, call: &str) -> &str {
        self.calls.get(call).map_or("absent", String::as_str)
    }

    /// Asserts that the call succeeded and its receipt says so.
    pub(crate) fn assert_recorded(&self, call: &str) {
        assert_eq!(self.status(call), "success", "call {call}");
        assert!(self.receipt(call).is_some(), "call {call} has no receipt");
    }
}

fn receipts(db: &Connection) -> BTreeMap<String, Vec<String>> {
    let mut statement = db
        .prepare(
            "SELECT chain_id, sequence, receipt_json, id, receipt_hash FROM receipts
             ORDER BY chain_id, sequence",
        )
        .unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut chains: BTreeMap<String, Vec<String>> = BTreeMap::new();
    while let Some(row) = rows.next().unwrap() {
        let text: String = row.get(2).unwrap();
        let receipt: Value = serde_json::from_str(&text).unwrap();
        let chain_id = &receipt["credentialSubject"]["chain"]["chain_id"];
        for (column, value) in [(0, chain_id), (3, &receipt["id"])] {
            let column: Option<String> = row.get(column).unwrap();
            assert_eq!(column.as_deref(), value.as_str(), "{text}");
        }
        let signed = receipt::verify::SignedReceipt::parse(&text).unwrap();
        assert_eq!(row.get::<_, String>(4).unwrap(), signed.hash.to_string());
        let chain = chains.entry(row.get(0).unwrap()).or_default();
        chain.push(text);
        assert_eq!(row.get::<_, u64>(1).unwrap(), chain.len() as u64, "a gap");
    }
    chains
}

static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let text = include_str!("../../../receipt/tests/vectors/spec/schema/agent-receipt.schema.json");
    jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap()
});

fn check_chain(home: &Path, id: String, row_status: String, texts: &[String]) -> ChainLook {
    let receipts: Vec<Value> =
        texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    for receipt in &receipts {
        if let Err(error) = SCHEMA.validate(receipt) {
            panic!("{error} in {receipt:#}");
        }
    }
    let Some(first) = receipts.first() else {
        return ChainLook { id, row_status, status: ChainStatus::Unknown, receipts };
    };
    let key = PublicKey::from_did(first["issuer"]["id"].as_str().unwrap()).unwrap();
    assert!(public_keys(home).contains(&key.fingerprint()), "signed by a key that is not ours");
    let check = verify(texts, &key, ChainExpectation::default());
    assert!(check.valid, "chain {id}: {:?}", check.error);
    ChainLook { id, row_status, status: check.status, receipts }
}

pub(crate) fn public_keys(home: &Path) -> Vec<Hash> {
    let files = fs::read_dir(home.join("keys")).unwrap().map(|file| file.unwrap().path());
    files
        .filter(|path| path.to_string_lossy().ends_with(".public.pem"))
        .map(|path| {
            let text = fs::read_to_string(path).unwrap();
            PublicKey::from_pem(&text).unwrap().fingerprint()
        })
        .collect()
}

/// Polls the writer until the condition holds, for a minute at most; it applies retention in between.
pub(crate) async fn until(store: &Store, so: impl Fn() -> bool) {
    let waiting = async {
        while !so() {
            store.settled().await;
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting)
        .await
        .expect("the condition holds in time");
}
