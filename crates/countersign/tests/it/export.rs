//! Exports of a whole ledger through REST, of any size: the gate holds little of it at once.

use std::collections::HashSet;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use domain::tool::Class;
use futures_util::future::join_all;
use jiff::Timestamp;
use receipt::RiskLevel;
use serde_json::Value;
use store::{
    CallEnd, CallStart, Entry, Payload, ReceiptAction, RecordAgent, RecordKind, RecordStatus,
    Store, Word,
};
use testkit::gate::{Gate, http_client};
use touch::targets::Touches;

use crate::misbehaving::memory_kb;

/// The memory growth allowed during the export of a ledger that is larger than this.
const GROWTH_KB_MAX: u64 = 30 * 1024;

/// Entries appended before the first of them is awaited.
const BATCH: usize = 1_000;

/// Returns the number of records and their size: more in all than the allowed growth.
fn size() -> (usize, usize) {
    if testkit::run::is_long() { (100_000, 1_000) } else { (5_000, 12_000) }
}

fn payload(text: String) -> Payload {
    Payload { bytes: text.len(), kept: Some(text), ..Payload::default() }
}

fn entry(number: usize, bytes: usize) -> Entry {
    let id = format!("0190{number:08}");
    let started = CallStart {
        id: id.clone(),
        kind: RecordKind::ToolCall,
        source: Word::Borrowed("mcp"),
        surface: Word::Borrowed("discovery"),
        server: "files".to_owned(),
        tool: "read".to_owned(),
        agent: RecordAgent::default(),
        session: None,
        request_id: None,
        at: Timestamp::now(),
        variant: None,
        declared: None,
        sensitivity: None,
        reason: None,
        effective: Some(Class::Read),
        unverified: false,
        warnings: Vec::new(),
        touches: Touches::default(),
        trace_id: None,
        arguments: payload(r#"{"path":"/a"}"#.to_owned()),
        action: ReceiptAction {
            kind: "filesystem.file.read".into(),
            risk: RiskLevel::Low,
            correlation_id: None,
        },
        outside: None,
    };
    let ended = CallEnd {
        id,
        status: RecordStatus::Success,
        error_code: None,
        error_message: None,
        duration: Duration::from_millis(1),
        response: payload(format!("\"{}\"", "x".repeat(bytes))),
        warnings: Vec::new(),
        touches: Touches::default(),
    };
    Entry::Whole(Box::new(started), Box::new(ended))
}

async fn fill(home: &Path, records: usize, bytes: usize) {
    std::fs::DirBuilder::new().mode(0o700).create(home).unwrap();
    let store = Store::open(home, &domain::config::Ledger::default()).unwrap();
    for first in (0..records).step_by(BATCH) {
        let numbers = first..records.min(first + BATCH);
        let appended = join_all(numbers.map(|number| store.append(entry(number, bytes)))).await;
        assert!(appended.iter().all(Result::is_ok));
    }
    store.close().await.unwrap();
}

/// Reads an export to its end, line by line. Returns its size, and the maximum growth of the gate
/// meanwhile.
async fn export(gate: &Gate, format: &str, mut line: impl FnMut(&str)) -> (usize, u64) {
    let before = memory_kb(gate.pid());
    let url = format!("http://{}/api/v1/activity/export?format={format}", gate.address);
    let request = http_client().get(url).bearer_auth(gate.secret("api-key"));
    let mut response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let (mut rest, mut bytes, mut most) = (Vec::new(), 0, before);
    while let Some(piece) = response.chunk().await.unwrap() {
        bytes += piece.len();
        rest.extend_from_slice(&piece);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            line(str::from_utf8(&rest[..end]).unwrap());
            rest.drain(..=end);
        }
        most = most.max(memory_kb(gate.pid()));
    }
    assert_eq!(rest, b"", "the last line is whole");
    (bytes, most - before)
}

#[tokio::test]
async fn long_export_of_a_large_ledger_takes_little_memory() {
    let (records, size) = size();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.json"), r#"{"mcpServers": {}}"#).unwrap();
    fill(&dir.path().join("home"), records, size).await;
    let gate = Gate::open(dir).await;
    let mut ids = HashSet::new();
    let (bytes, growth_kb) = export(&gate, "jsonl", |line| {
        let record: Value = serde_json::from_str(line).unwrap();
        assert!(ids.insert(record["id"].as_str().unwrap().to_owned()), "{} twice", record["id"]);
    })
    .await;
    assert_eq!(ids.len(), records);
    let too_much = usize::try_from(GROWTH_KB_MAX).unwrap() * 1024;
    assert!(bytes > too_much, "{bytes} bytes would fit into memory");
    assert!(growth_kb < GROWTH_KB_MAX, "it grew by {growth_kb} kB for {bytes} bytes");
    let mut lines = 0;
    let (bytes, growth_kb) = export(&gate, "csv", |_| lines += 1).await;
    assert_eq!(lines, records + 1, "a head and a line for each");
    assert!(growth_kb < GROWTH_KB_MAX, "it grew by {growth_kb} kB for {bytes} bytes");
}
