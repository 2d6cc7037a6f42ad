//! Pages, single records, changes.

use domain::tool::Class;

use super::rig::{Rig, Row, call, end, store};
use crate::error::StoreError;
use crate::read::{LedgerChange, Page, RecordDetail, RecordFilter};
use crate::record::{Entry, RecordStatus};

#[test]
fn pages_go_from_the_newest_to_the_oldest() {
    let rig = Rig::new(&vec![Row::plain(); 250]);
    let (mut page, mut numbers) = (Page::first(100), Vec::new());
    loop {
        let found = rig.reader.activity(&RecordFilter::default(), &page).unwrap();
        assert_eq!(found.total.count(), 250);
        numbers.extend(found.records.iter().map(|record| record.number));
        let Some(cursor) = found.next_cursor else { break };
        page.cursor = Some(cursor);
    }
    assert_eq!(numbers, (1..=250).rev().collect::<Vec<i64>>());
}

#[test]
fn a_page_has_one_to_a_hundred_records() {
    let rig = Rig::new(&vec![Row::plain(); 130]);
    for (limit, expected) in [(0, 1), (1, 1), (100, 100), (101, 100), (usize::MAX, 100)] {
        let found = rig.reader.activity(&RecordFilter::default(), &Page::first(limit)).unwrap();
        assert_eq!(found.records.len(), expected, "limit {limit}");
    }
}

#[test]
fn an_export_goes_over_many_pages_and_leaves_out_what_is_new() {
    let rig = Rig::new(&vec![Row::plain(); 700]);
    let mut records = rig.reader.records(RecordFilter::default(), RecordDetail::Brief);
    let first = records.next().unwrap().unwrap();
    let agent = "(SELECT MIN(agent) FROM agents)";
    let sql = format!(
        "INSERT INTO activity (id, changed, chain, type, source, surface, server, tool, agent,
           started_us, status) VALUES ('new', 9999, 1, 'tool_call', '', '', '', '', {agent}, 0, '')"
    );
    rig.db.execute(&sql, []).unwrap();
    let rest: Vec<i64> = records.map(|record| record.unwrap().number).collect();
    assert_eq!((first.number, rest), (700, (1..700).rev().collect()));
}

#[test]
fn an_invalid_cursor_is_rejected() {
    let rig = Rig::new(&[Row::plain()]);
    for bad in [
        "",
        "a",
        "a0",
        "a-1",
        "A1",
        "a01",
        "a1 ",
        "r1",
        "c1",
        "1",
        "aFF",
        "a+1",
        "aé",
        "%00",
        "affffffffffffffff",
        "a8000000000000000",
        "a1;DROP TABLE activity",
    ] {
        let page = Page { limit: 10, cursor: Some(bad.to_owned()) };
        let error = rig.reader.activity(&RecordFilter::default(), &page).unwrap_err();
        assert!(matches!(&error, StoreError::Cursor(text) if text == bad), "{bad}: {error}");
        assert_eq!(error.code(), domain::Code::InvalidRequest);
        assert!(error.to_string().contains(&format!("'{bad}' is not a cursor")), "{error}");
    }
}

#[tokio::test]
async fn a_record_tells_all_that_was_appended() {
    let call = call("0190-1", "claude-code#1", Class::Write, "/a", 0);
    let (_home, store) = store(vec![(call.clone(), RecordStatus::Success)]).await;
    let shown = store.read().record("0190-1").unwrap().unwrap();
    assert_eq!((shown.status, shown.kind), (RecordStatus::Success, call.kind));
    assert_eq!(shown.agent, call.agent);
    assert_eq!(shown.timestamp, call.at);
    assert_eq!(shown.duration, Some(std::time::Duration::from_millis(12)));
    assert_eq!(shown.effective_class, Some(Class::Write));
    assert!(shown.unverified && shown.response_truncated);
    assert_eq!(shown.warnings, ["readOnlyHint"]);
    assert_eq!((shown.arguments_bytes, shown.response_bytes), (9, 70_000));
    assert_eq!(shown.receipt_id.as_deref(), Some("urn:receipt:0190-1"));
    assert_eq!(shown.trace_id.as_deref(), Some("4bf9"));
    assert_eq!(shown.tool_variant.as_deref(), Some("call_tool_write"));
    assert_eq!((shown.session_id.as_deref(), shown.request_id.as_deref()), (Some("s1"), Some("7")));
    let target = shown.target.unwrap();
    assert_eq!((&*target.system, &*target.resource), ("files", "/a"));
    let intent = shown.intent.unwrap();
    assert_eq!(intent.operation_type.as_deref(), Some("write"));
    assert_eq!(intent.data_sensitivity.as_deref(), Some("unknown"));
    assert_eq!(intent.reason.as_deref(), Some("tidy up"));
    assert_eq!(shown.payloads.arguments.as_deref(), Some("{\"a\":\"b\"}"));
    assert_eq!(shown.payloads.response.as_deref(), Some("{\"cut"));
    let listed = store.read().activity(&RecordFilter::default(), &Page::first(1)).unwrap();
    assert_eq!(listed.records[0].payloads, crate::read::Payloads::default());
    assert!(listed.records[0].response_truncated);
    assert_eq!(store.read().record("0190-2").unwrap(), None);
}

#[tokio::test]
async fn changes_are_ordered_and_a_call_reappears_when_it_ends() {
    let (_home, store) = store(Vec::new()).await;
    let reader = store.read();
    assert_eq!(reader.latest_change().unwrap(), 0);
    let started = call("1", "a#1", Class::Write, "/a", 0);
    store.append(Entry::Started(Box::new(started))).await.unwrap();
    store.settled().await;
    let whole = (call("2", "a#1", Class::Read, "/a", 1), end("2", RecordStatus::Error));
    store.append(Entry::Whole(Box::new(whole.0), Box::new(whole.1))).await.unwrap();
    store.settled().await;
    let seen = |after, limit| -> Vec<(String, RecordStatus)> {
        let changes = reader.changes_after(after, limit).unwrap().into_iter();
        let record = |(number, change)| match change {
            LedgerChange::Record(record) => {
                assert_eq!(record.changed, number);
                (record.id, record.status)
            }
            LedgerChange::Run(_) | LedgerChange::Step(..) => panic!("nothing runs"),
            LedgerChange::Meeting(_) => panic!("one agent meets nobody"),
        };
        changes.map(record).collect()
    };
    let (first, second) =
        (("1".to_owned(), RecordStatus::Pending), ("2".to_owned(), RecordStatus::Error));
    assert_eq!(seen(0, 10), [first.clone(), second.clone()]);
    assert_eq!(seen(0, 1), [first]);
    let before = reader.latest_change().unwrap();
    store.append(Entry::Ended(Box::new(end("1", RecordStatus::Success)))).await.unwrap();
    store.settled().await;
    assert_eq!(seen(before, 10), [("1".to_owned(), RecordStatus::Success)]);
    assert_eq!(*store.changes().borrow(), reader.latest_change().unwrap());
}
