//! Every column of a record that a view shows is bound by its receipt: an edit of any of them is
//! found.

use std::path::Path;

use domain::tool::Class;
use receipt::Hash;
use receipt::audit::{Audit, AuditDetail, AuditScope};
use receipt::canonical::Digest;
use receipt::chain::ChainExpectation;
use rusqlite::Connection;
use store::read::LedgerPlace;
use store::{CallEnd, CallStart, Entry, Payload, RecordStatus, Store};

use super::support::{Home, ended, started};

/// Columns that an edit may change unseen: the order of changes, which no view shows, the chain, which
/// receipts name, and the record of a text, which is then gone as retention removes it.
const FREE: [&str; 3] = ["activity.changed", "activity.chain", "payloads.number"];

fn faults(home: &Home) -> Vec<String> {
    let store = Store::open_to_read(&home.path().join(store::FILE), home.path()).unwrap();
    let keys = store.public_keys().unwrap();
    let mut audit = Audit::new(keys, None, AuditDetail::Chains).unwrap();
    store.read().audit(&mut audit, LedgerPlace::Home(home.path()), || ()).unwrap();
    let outcome = audit.finish(AuditScope::All, ChainExpectation::default());
    let of_chains = outcome.reports.iter().filter_map(|report| report.error.clone());
    if outcome.is_valid() { Vec::new() } else { of_chains.collect() }
}

/// Returns a home with one call that has something in every column.
async fn home(change: impl FnOnce(&mut CallStart, &mut CallEnd)) -> Home {
    let home = Home::new();
    let store = home.open();
    let mut start = started(Class::Write);
    let mut end = ended(&start);
    start.warnings = vec!["careful".to_owned()];
    start.trace_id = Some("4bf9".to_owned());
    end.warnings = vec!["empty".to_owned()];
    change(&mut start, &mut end);
    store.append(Entry::Started(Box::new(start))).await.unwrap();
    store.append(Entry::Ended(Box::new(end))).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(faults(&home), Vec::<String>::new());
    home
}

fn db(home: &Path) -> Connection {
    testkit::ledger::edit(home)
}

fn columns(home: &Home, table: &str) -> Vec<String> {
    let db = db(home.path());
    let mut statement = db.prepare("SELECT name FROM pragma_table_info(?1)").unwrap();
    let names = statement.query_map([table], |row| row.get(0)).unwrap();
    names.collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn an_edit_of_any_column_of_a_record_is_found() {
    let failed = |_: &mut CallStart, end: &mut CallEnd| {
        end.status = RecordStatus::Blocked;
        end.error_code = Some("TOOL_BLOCKED".into());
        end.error_message = Some("locked".to_owned());
    };
    let home = home(failed).await;
    for table in ["activity", "payloads", "agents", "targets"] {
        for column in columns(&home, table) {
            if FREE.contains(&&*format!("{table}.{column}")) {
                continue;
            }
            let copy = home.copy();
            let edit = format!(
                "PRAGMA foreign_keys = off;
                 UPDATE {table} SET {column} = CASE
                   WHEN '{column}' = 'status' THEN 'error'
                   WHEN typeof({column}) = 'integer' THEN 1 - {column}
                   ELSE COALESCE({column}, '') || 'x' END"
            );
            db(copy.path()).execute_batch(&edit).unwrap();
            assert_ne!(faults(&copy), Vec::<String>::new(), "{table}.{column}");
        }
    }
}

#[tokio::test]
async fn texts_that_are_cut_or_redacted_are_bound_by_a_hash_of_what_is_kept() {
    let exact = |text: &str| Some(Digest::Exact(Hash::of(text.as_bytes())));
    let kept = |text: &str| Payload {
        bytes: 100_000,
        digest: Some(Digest::of_text(r#"{"a":"secret"}"#)),
        kept: Some(text.to_owned()),
        truncated: true,
        kept_digest: exact(text),
    };
    let home = home(|start, end| {
        start.arguments = kept(r#"{"a":"[redacted]"}"#);
        end.response = kept(r#"{"content":"#);
    })
    .await;
    for (edit, name) in [
        ("arguments = '{\"a\":\"secret\"}'", "arguments"),
        ("arguments = '{}'", "arguments"),
        ("response = '{\"content\"'", "response"),
        ("response_truncated = 0", "response_truncated"),
    ] {
        let copy = home.copy();
        db(copy.path()).execute(&format!("UPDATE payloads SET {edit}"), []).unwrap();
        let found = faults(&copy).join(" ");
        assert!(found.contains(&format!("differs from the signed text: {name}")), "{found}");
    }
}

#[tokio::test]
async fn a_text_that_was_never_kept_is_not_believed() {
    let home = home(|start, end| {
        start.arguments.kept = None;
        end.response = Payload::default();
    })
    .await;
    db(home.path())
        .execute("INSERT INTO payloads (number, response) SELECT number, '{}' FROM activity", [])
        .unwrap();
    assert!(faults(&home).join(" ").contains("response"), "{:?}", faults(&home));
}

#[tokio::test]
async fn an_interrupted_call_whose_journal_is_gone_is_bound_as_the_tables_have_it() {
    let home = Home::new();
    let store = home.open();
    let mut start = started(Class::Write);
    start.warnings = vec!["careful".to_owned()];
    store.append(Entry::Started(Box::new(start))).await.unwrap();
    store.settled().await;
    let left = home.copy();
    store.close().await.unwrap();
    for file in std::fs::read_dir(left.path().join("writers")).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    left.open().close().await.unwrap();
    assert_eq!(faults(&left), Vec::<String>::new());
    for edit in ["warnings = '[]'", "arguments_bytes = 1"] {
        let copy = left.copy();
        db(copy.path()).execute(&format!("UPDATE activity SET {edit}"), []).unwrap();
        assert_ne!(faults(&copy), Vec::<String>::new(), "{edit}");
    }
    db(left.path()).execute("UPDATE payloads SET arguments = '{}'", []).unwrap();
    assert_ne!(faults(&left), Vec::<String>::new());
}
