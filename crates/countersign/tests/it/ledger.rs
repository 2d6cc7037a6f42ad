//! The ledger as seen by anyone who opens the file with SQLite: its rows as JSON, and every chain
//! verified with the keys next to it.

use std::path::Path;

use receipt::PublicKey;
use receipt::chain::{ChainCheck, ChainExpectation, verify};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value};
use testkit::wait::eventually;

/// A call with all its related rows.
const RECORDS: &str = "
SELECT activity.*, agents.name AS agent_name, agents.client, agents.token, targets.system,
  targets.resource, payloads.arguments, payloads.response, payloads.response_truncated,
  chains.chain_id, receipts.receipt_json
FROM activity JOIN agents USING (agent) JOIN chains USING (chain) LEFT JOIN targets USING (target)
  LEFT JOIN payloads USING (number) LEFT JOIN receipts ON receipts.id = receipt_id
ORDER BY number";

fn open(home: &Path) -> Connection {
    testkit::ledger::read(home)
}

pub(crate) fn rows(home: &Path, sql: &str) -> Vec<Value> {
    let db = open(home);
    let mut statement = db.prepare(sql).unwrap();
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let read = |row: &rusqlite::Row<'_>| {
        let members = names.iter().enumerate();
        let members = members.map(|(n, name)| Ok((name.clone(), value(row.get_ref(n)?))));
        members.collect::<rusqlite::Result<Map<String, Value>>>().map(Value::Object)
    };
    statement.query_map([], read).unwrap().map(Result::unwrap).collect()
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => str::from_utf8(text).expect("texts are UTF-8").into(),
        ValueRef::Blob(_) => panic!("there are no blobs"),
    }
}

pub(crate) fn count(home: &Path, sql: &str) -> i64 {
    open(home).query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Returns the number of processes that left something to file, or are at work.
pub(crate) fn journals(home: &Path) -> usize {
    let files = std::fs::read_dir(home.join("writers")).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "journal")).count()
}

/// Returns every record, oldest first, with its receipt in `receipt` and that receipt's open object
/// in `runtime`.
pub(crate) fn records(home: &Path) -> Vec<Value> {
    let mut records = rows(home, RECORDS);
    for record in &mut records {
        if let Some(text) = record["receipt_json"].as_str() {
            let receipt: Value = serde_json::from_str(text).unwrap();
            record["runtime"] = receipt["issuer"]["runtime"].clone();
            record["action"] = receipt["credentialSubject"]["action"].clone();
            record["outcome"] = receipt["credentialSubject"]["outcome"].clone();
            record["receipt"] = receipt;
        }
    }
    records
}

/// Waits until the records match: they are filed a moment after their calls got a response.
pub(crate) async fn records_when(home: &Path, fits: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    eventually(|| async {
        let records = records(home);
        fits(&records).then_some(records)
    })
    .await
}

/// Returns the only record of a tool, once its call has ended.
pub(crate) async fn record(home: &Path, tool: &str) -> Value {
    let fits = |record: &Value| record["tool"] == tool && record["status"] != "pending";
    let records = records_when(home, |records| records.iter().any(fits)).await;
    let found: Vec<&Value> = records.iter().filter(|record| record["tool"] == tool).collect();
    assert_eq!(found.len(), 1, "one call of {tool}, one record: {found:?}");
    found[0].clone()
}

/// Returns every receipt as it was signed, chain after chain.
pub(crate) fn receipts(home: &Path) -> Vec<Value> {
    let sql = "SELECT receipts.* FROM receipts LEFT JOIN chains USING (chain_id)
               ORDER BY chain, sequence";
    rows(home, sql)
}

pub(crate) fn public_keys(home: &Path) -> Vec<PublicKey> {
    let files = std::fs::read_dir(home.join("keys")).unwrap().map(|file| file.unwrap().path());
    let public = files.filter(|path| path.to_string_lossy().ends_with(".public.pem"));
    let read = |path| PublicKey::from_pem(&std::fs::read_to_string(path).unwrap()).unwrap();
    public.map(read).collect()
}

/// Returns the key that a receipt names as its signer.
pub(crate) fn key_of(home: &Path, receipt: &str) -> PublicKey {
    let receipt: Value = serde_json::from_str(receipt).unwrap();
    let method = receipt["proof"]["verificationMethod"].as_str().unwrap().to_owned();
    let keys = public_keys(home).into_iter();
    let mut keys = keys.filter(|key| method.split('#').next() == Some(&key.did()));
    keys.next().unwrap_or_else(|| panic!("no key of {method}"))
}

/// Verifies every chain; each must be intact, and its rows must match its receipts.
pub(crate) fn whole_chains(home: &Path) -> Vec<(Value, ChainCheck)> {
    let chains = rows(home, "SELECT * FROM chains ORDER BY chain");
    let receipts = receipts(home);
    let mut checked = Vec::new();
    for chain in chains {
        let own: Vec<&Value> =
            receipts.iter().filter(|row| row["chain_id"] == chain["chain_id"]).collect();
        if own.is_empty() {
            continue;
        }
        let texts: Vec<&str> =
            own.iter().map(|row| row["receipt_json"].as_str().unwrap()).collect();
        let check = verify(&texts, &key_of(home, texts[0]), ChainExpectation::default());
        assert!(check.valid, "{chain}: {:?}", check.error);
        for row in own {
            let receipt: Value =
                serde_json::from_str(row["receipt_json"].as_str().unwrap()).unwrap();
            let place = &receipt["credentialSubject"]["chain"];
            assert_eq!(row["sequence"], place["sequence"], "{row}");
            assert_eq!(row["previous_receipt_hash"], place["previous_receipt_hash"], "{row}");
        }
        checked.push((chain, check));
    }
    checked
}

/// Returns the ledger's part of `/status`.
pub(crate) async fn health(gate: &testkit::gate::Gate) -> Value {
    let (_, status) = gate.rest(reqwest::Method::GET, "/api/v1/status", None).await;
    status["ledger"].clone()
}
