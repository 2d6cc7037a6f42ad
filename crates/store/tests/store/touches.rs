//! Touches of calls: several resources each, one call seen twice, and writes that meet another agent.

use domain::tool::Class;
use jiff::SignedDuration;
use receipt::audit::{Audit, AuditDetail, AuditScope};
use receipt::chain::ChainExpectation;
use store::read::contention::ContentionFilter;
use store::read::{
    CoverageFilter, LedgerChange, LedgerPlace, Page, ReceiptFilter, Record, RecordFilter,
};
use store::record::{TARGET_OMITTED, TARGET_REDACTED, TARGETS_OMITTED};
use store::{CallEnd, CallStart, Entry, OutsideSource, RecordAgent, RecordStatus, Store};
use touch::contention::ContentionKind;
use touch::targets::{Access, Target, TargetBasis, Touched, Touches};

use super::support::{Home, started};

fn touched(system: &str, resource: &str, access: Access) -> Touched {
    Touched { target: Target::new(system, resource.to_owned()).unwrap(), access }
}

/// Returns a write of some files by an agent at the gate, with a tool-use id.
fn own(agent: &str, resources: &[&str], tool_use: Option<&str>) -> CallStart {
    let mut call = started(Class::Write);
    call.tool = "write_file".to_owned();
    call.variant = Some("call_tool_write".into());
    call.agent = RecordAgent {
        name: agent.to_owned(),
        client: "claude-code".to_owned(),
        token: "agent".to_owned(),
    };
    let all = resources.iter().map(|resource| touched("filesystem", resource, Access::Write));
    call.touches = Touches::new(all, TargetBasis::fixed("generic:path"));
    call.action.correlation_id = tool_use.map(str::to_owned);
    call
}

/// Returns an event about such a call.
fn event(resources: &[&str], tool_use: &str) -> CallStart {
    let mut call = own("claude-code#hook", resources, Some(tool_use));
    call.surface = "events".into();
    call.source = "hook".into();
    call.server = "gate".to_owned();
    call.tool = "files__write_file".to_owned();
    call.agent.token = "events".to_owned();
    call.session = Some("claude-session".to_owned());
    (call.variant, call.declared, call.request_id) = (None, None, None);
    call.touches = Touches::new(call.touches.all().to_vec(), TargetBasis::REPORTED);
    call.outside = Some(Box::new(OutsideSource {
        pid: Some(1),
        agent_id: Some("hook".to_owned()),
        ..OutsideSource::default()
    }));
    call
}

fn at_once(call: &CallStart, status: RecordStatus) -> CallEnd {
    CallEnd { status, ..CallEnd::at_once(call.id.clone()) }
}

async fn append(store: &Store, call: CallStart, status: RecordStatus) -> String {
    let (id, end) = (call.id.clone(), at_once(&call, status));
    store.append(Entry::Whole(Box::new(call), Box::new(end))).await.unwrap();
    store.settled().await;
    id
}

fn record(store: &Store, id: &str) -> Record {
    store.read().record(id).unwrap().unwrap()
}

fn edges(store: &Store) -> Vec<(String, ContentionKind)> {
    let graph = store.read().contention(&ContentionFilter::default()).unwrap();
    let pair = |from: &str, to: &str| format!("{from}>{to}");
    graph.edges.iter().map(|edge| (pair(&edge.from, &edge.to), edge.kind)).collect()
}

/// Asserts that the ledger verifies, touches and joins included.
fn assert_verifies(home: &Home, store: &Store) {
    assert_eq!(faults(home, store), Vec::<String>::new());
}

fn faults(home: &Home, store: &Store) -> Vec<String> {
    let keys = store.public_keys().unwrap();
    let mut audit = Audit::new(keys, None, AuditDetail::Chains).unwrap();
    store.read().audit(&mut audit, LedgerPlace::Home(home.path()), || ()).unwrap();
    let outcome = audit.finish(AuditScope::All, ChainExpectation::default());
    if outcome.is_valid() { Vec::new() } else { vec![format!("{:?}", outcome.reports)] }
}

#[tokio::test]
async fn all_targets_of_a_call_are_signed_found_and_in_contention() {
    let home = Home::new();
    let store = home.open();
    let mut call = own("a#1", &["/main", "/more"], None);
    let more = touched("web", "https://x.org/a", Access::Read);
    let all = call.touches.all().iter().cloned().chain([more]);
    call.touches = Touches::new(all.collect::<Vec<_>>(), TargetBasis::fixed("config"));
    let id = append(&store, call, RecordStatus::Success).await;
    append(&store, own("b#1", &["/more"], None), RecordStatus::Success).await;
    let found = record(&store, &id);
    let targets: Vec<_> = found.targets.iter().map(|it| (&*it.resource, it.access)).collect();
    let expected =
        [("/main", Access::Write), ("/more", Access::Write), ("https://x.org/a", Access::Read)];
    assert_eq!(targets, expected);
    assert_eq!(found.target_basis.as_deref(), Some("config"));
    for (system, resource) in [("filesystem", "/more"), ("web", "https://x.org/a")] {
        let (system, resource) = (Some(system.to_owned()), Some(resource.to_owned()));
        let filter = RecordFilter {
            target_system: system.clone(),
            target_resource: resource.clone(),
            ..RecordFilter::default()
        };
        let records = store.read().activity(&filter, &Page::first(9)).unwrap().records;
        assert!(records.iter().any(|record| record.id == id), "{resource:?}");
        let filter = ReceiptFilter {
            target_system: system,
            target_resource: resource,
            ..ReceiptFilter::default()
        };
        let receipts = store.read().receipts(&filter, &Page::first(9)).unwrap().receipts;
        assert!(receipts.iter().any(|receipt| receipt.id.ends_with(&id)));
    }
    // Both values must be of one target.
    let crossed = ReceiptFilter {
        target_system: Some("web".to_owned()),
        target_resource: Some("/more".to_owned()),
        ..ReceiptFilter::default()
    };
    assert_eq!(store.read().receipts(&crossed, &Page::first(9)).unwrap().receipts.len(), 0);
    assert_eq!(edges(&store), [("a#1>b#1".to_owned(), ContentionKind::WriteWrite)]);
    let look = home.look();
    let runtime = &look.receipt(&id).unwrap()["issuer"]["runtime"];
    assert_eq!(runtime["targets"][1]["resource"], "https://x.org/a");
    assert_eq!(
        (&runtime["target_access"], &runtime["target_basis"]),
        (&"write".into(), &"config".into())
    );
    assert_verifies(&home, &store);
    store.close().await.unwrap();
}

/// Files the records of one call in every order: the announcement, the call itself, the report.
#[tokio::test]
async fn one_call_seen_by_gate_and_hook_is_one_touch_in_whichever_order_it_arrives() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        let home = Home::new();
        let store = home.open();
        let mut before = event(&["/x"], "toolu_1");
        let mut call = own("claude-code#mcp", &["/x"], Some("toolu_1"));
        let mut after = event(&["/x"], "toolu_1");
        before.at = call.at - SignedDuration::from_millis(20);
        after.at = call.at + SignedDuration::from_millis(20);
        call.at = before.at + SignedDuration::from_millis(10);
        let ids = [&before, &call, &after].map(|call| call.id.clone());
        let statuses = [RecordStatus::Pending, RecordStatus::Success, RecordStatus::Success];
        let calls = [before, call, after];
        for at in order {
            append(&store, calls[at].clone(), statuses[at]).await;
        }
        let [before, call, after] = ids.map(|id| record(&store, &id));
        assert_eq!(before.joined.as_ref(), Some(&call.id), "{order:?}");
        assert_eq!(after.joined.as_ref(), Some(&call.id), "{order:?}");
        assert_eq!((before.status, call.joined), (RecordStatus::Success, None), "{order:?}");
        let mut joined = call.joined_by.clone();
        joined.sort();
        let mut expected = vec![before.id, after.id];
        expected.sort();
        assert_eq!(joined, expected);
        assert_eq!(edges(&store), [], "{order:?}");
        let nodes = store.read().contention(&ContentionFilter::default()).unwrap().nodes;
        let counted: Vec<_> = nodes.iter().map(|node| (&*node.agent, node.calls)).collect();
        assert_eq!(counted, [("claude-code#mcp", 1)], "{order:?}");
        let rows = store.read().target_coverage(&CoverageFilter::default()).unwrap();
        assert_eq!(rows.iter().map(|row| row.calls).sum::<u64>(), 1, "counted once");
        assert_verifies(&home, &store);
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_running_call_takes_its_events_when_it_starts_and_ends() {
    let home = Home::new();
    let store = home.open();
    let mut before = event(&["/x"], "toolu_1");
    let call = own("claude-code#mcp", &["/x"], Some("toolu_1"));
    before.at = call.at - SignedDuration::from_millis(5);
    let announced = append(&store, before, RecordStatus::Pending).await;
    store.append(Entry::Started(Box::new(call.clone()))).await.unwrap();
    store.settled().await;
    assert_eq!(record(&store, &announced).joined.as_ref(), Some(&call.id));
    assert_eq!(record(&store, &announced).status, RecordStatus::Pending);
    store.append(Entry::Ended(Box::new(at_once(&call, RecordStatus::Error)))).await.unwrap();
    store.settled().await;
    assert_eq!(record(&store, &announced).status, RecordStatus::Error);
    assert_verifies(&home, &store);
    store.close().await.unwrap();
}

#[tokio::test]
async fn an_announced_call_ends_with_its_report_and_without_one_after_an_hour() {
    let home = Home::new();
    let store = home.open();
    let (mut before, after) = (event(&["/x"], "toolu_1"), event(&["/x"], "toolu_1"));
    before.at = after.at - SignedDuration::from_secs(3);
    let mut denied = event(&["/y"], "toolu_2");
    denied.at -= SignedDuration::from_hours(2);
    let mut recent = event(&["/z"], "toolu_3");
    recent.at -= SignedDuration::from_mins(20);
    let [denied, recent] = [
        append(&store, denied, RecordStatus::Pending).await,
        append(&store, recent, RecordStatus::Pending).await,
    ];
    let announced = append(&store, before, RecordStatus::Pending).await;
    let reported = append(&store, after, RecordStatus::Error).await;
    let found = record(&store, &announced);
    assert_eq!((found.status, found.joined.as_ref()), (RecordStatus::Error, Some(&reported)));
    assert_eq!(found.duration, Some(std::time::Duration::from_secs(3)));
    store.close().await.unwrap();
    // Upkeep begins with the next start.
    let store = home.open();
    while record(&store, &denied).status == RecordStatus::Pending {
        store.settled().await;
    }
    assert_eq!(record(&store, &denied).status, RecordStatus::Interrupted);
    assert_eq!(record(&store, &recent).status, RecordStatus::Pending);
    assert_verifies(&home, &store);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_foreign_tool_use_id_hides_nothing() {
    let home = Home::new();
    let store = home.open();
    // A program's own tool wrote the file; a stranger calls the gate with the same id.
    let mut write = event(&["/x"], "toolu_1");
    (write.server, write.tool) = ("claude-code".to_owned(), "Write".to_owned());
    let write = append(&store, write, RecordStatus::Success).await;
    append(&store, own("stranger#1", &["/x"], Some("toolu_1")), RecordStatus::Success).await;
    assert_eq!(record(&store, &write).joined, None);
    assert_eq!(edges(&store).len(), 1, "the two are in contention");
    // A call through the gate, reported by its hook; a stranger uses the id too.
    let call = own("claude-code#mcp", &["/y"], Some("toolu_2"));
    let mut report = event(&["/y"], "toolu_2");
    report.at = call.at + SignedDuration::from_millis(1);
    append(&store, call, RecordStatus::Success).await;
    let report = append(&store, report, RecordStatus::Success).await;
    assert!(record(&store, &report).joined.is_some());
    append(&store, own("stranger#1", &["/y"], Some("toolu_2")), RecordStatus::Success).await;
    assert_eq!(record(&store, &report).joined, None, "two agents use the id");
    let pairs: Vec<String> = edges(&store).into_iter().map(|(pair, _)| pair).collect();
    assert!(pairs.contains(&"claude-code#mcp>stranger#1".to_owned()), "{pairs:?}");
    // An event of another resource stays.
    append(&store, own("claude-code#mcp", &["/z"], Some("toolu_3")), RecordStatus::Success).await;
    let other = append(&store, event(&["/other"], "toolu_3"), RecordStatus::Success).await;
    assert_eq!(record(&store, &other).joined, None);
    assert_verifies(&home, &store);
    store.close().await.unwrap();
}

fn meetings(store: &Store) -> Vec<(String, String, ContentionKind, String)> {
    let changes = store.read().changes_after(0, 1_000).unwrap();
    let met = changes.into_iter().filter_map(|(_, change)| match change {
        LedgerChange::Meeting(met) => Some(*met),
        LedgerChange::Record(_) | LedgerChange::Run(_) | LedgerChange::Step(..) => None,
    });
    met.map(|met| (met.write.agent, met.other.agent, met.kind, met.resource)).collect()
}

#[tokio::test]
async fn a_write_that_meets_another_agents_touch_is_a_change_of_its_own() {
    let home = Home::new();
    let store = home.open();
    let read = |agent: &str, resource: &str| {
        let mut call = own(agent, &[], None);
        let all = [touched("filesystem", resource, Access::Read)];
        call.touches = Touches::new(all, TargetBasis::fixed("generic:path"));
        call
    };
    append(&store, read("a#1", "/x"), RecordStatus::Success).await;
    append(&store, read("b#1", "/x"), RecordStatus::Success).await;
    append(&store, own("a#1", &["/mine"], None), RecordStatus::Success).await;
    append(&store, own("c#1", &["/refused"], None), RecordStatus::Blocked).await;
    append(&store, own("a#1", &["/refused"], None), RecordStatus::Success).await;
    assert_eq!(meetings(&store), [], "nobody wrote what another had touched");
    append(&store, own("b#1", &["/x", "/mine"], None), RecordStatus::Success).await;
    append(&store, own("a#1", &["/x"], None), RecordStatus::Success).await;
    let expected = [
        ("b#1", "a#1", ContentionKind::WriteWrite, "/mine"),
        ("a#1", "b#1", ContentionKind::StaleRead, "/x"),
    ];
    let found = meetings(&store);
    let found: Vec<_> =
        found.iter().map(|(a, b, kind, path)| (&**a, &**b, *kind, &**path)).collect();
    assert_eq!(found, expected);
    assert_eq!(*store.changes().borrow(), store.read().latest_change().unwrap());
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_changed_touch_or_join_is_found_and_a_repair_makes_touches_again() {
    let home = Home::new();
    let store = home.open();
    append(&store, own("a#1", &["/x", "/y"], Some("toolu_1")), RecordStatus::Success).await;
    append(&store, own("b#1", &["/x"], None), RecordStatus::Success).await;
    store.close().await.unwrap();
    let file = home.path().join(store::FILE);
    for (sql, word) in [
        ("UPDATE touches SET who = who - 1 WHERE number = 1", "touches"),
        ("UPDATE touches SET started_us = started_us + 1 WHERE number = 1", "touches"),
        ("DELETE FROM touches WHERE number = 1", "touches"),
        (
            "INSERT INTO touches SELECT target, started_us + 1, who, 77 FROM touches LIMIT 1",
            "no record",
        ),
        (
            "UPDATE activity SET joined = (SELECT id FROM activity WHERE number = 2)
            WHERE number = 1",
            "joined",
        ),
        ("UPDATE activity SET correlation_id = 'x' WHERE number = 1", "correlation_id"),
        ("UPDATE activity SET target_basis = 'x' WHERE number = 1", "target_basis"),
    ] {
        let copy = home.copy();
        let db = rusqlite::Connection::open(copy.path().join(store::FILE)).unwrap();
        assert!(db.execute(sql, []).unwrap() > 0, "{sql}");
        drop(db);
        let store = Store::open_to_read(&copy.path().join(store::FILE), copy.path()).unwrap();
        let found = faults(&copy, &store).join(" ");
        assert!(found.contains(word), "{sql}: {found}");
    }
    rusqlite::Connection::open(&file).unwrap().execute("DELETE FROM touches", []).unwrap();
    let done = store::repair::repair(home.path(), None).unwrap();
    assert!(done.iter().any(|words| words.contains("made 3 again")), "{done:?}");
    let store = home.open();
    assert_eq!(edges(&store).len(), 1);
    assert_verifies(&home, &store);
    store.close().await.unwrap();
}

#[tokio::test]
async fn what_a_tool_opened_replaces_what_its_call_named() {
    let home = Home::new();
    let store = home.open();
    append(&store, own("victim#1", &["/plan"], None), RecordStatus::Success).await;
    let opened =
        Touches::new([touched("filesystem", "/plan", Access::Write)], TargetBasis::WORKSPACE);
    // One end is written with its start; the start of the other has been filed.
    let mut ids = Vec::new();
    for is_filed in [false, true] {
        let call = own("agent#1", &["/decoy"], None);
        let ended = CallEnd { touches: opened.clone(), ..at_once(&call, RecordStatus::Success) };
        ids.push(call.id.clone());
        store.append(Entry::Started(Box::new(call))).await.unwrap();
        if is_filed {
            store.settled().await;
            assert_eq!(record(&store, &ids[1]).targets[0].resource, "/decoy");
        }
        store.append(Entry::Ended(Box::new(ended))).await.unwrap();
        store.settled().await;
    }
    for id in &ids {
        let found = record(&store, id);
        let targets: Vec<_> = found.targets.iter().map(|it| &*it.resource).collect();
        assert_eq!(
            (targets, found.target_basis.as_deref()),
            (vec!["/plan"], Some("builtin:workspace"))
        );
        let filter = ReceiptFilter {
            target_system: Some("filesystem".to_owned()),
            target_resource: Some("/plan".to_owned()),
            ..ReceiptFilter::default()
        };
        let receipts = store.read().receipts(&filter, &Page::first(9)).unwrap().receipts;
        assert!(receipts.iter().any(|receipt| receipt.id.ends_with(id)), "{id}");
    }
    assert_eq!(edges(&store), [("victim#1>agent#1".to_owned(), ContentionKind::WriteWrite)]);
    assert_verifies(&home, &store);
}

#[tokio::test]
async fn dropped_and_shortened_targets_are_counted_by_agent() {
    let home = Home::new();
    let store = home.open();
    append(&store, own("plain#1", &["/a"], None), RecordStatus::Success).await;
    let with = |agent: &str, warnings: &[&str]| {
        let mut call = own(agent, &["/a"], None);
        call.warnings = warnings.iter().map(|warning| (*warning).to_owned()).collect();
        call
    };
    let mut dropped = own("a#1", &[], None);
    dropped.touches = Touches::nothing(TargetBasis::TOO_LONG);
    append(&store, dropped, RecordStatus::Success).await;
    append(&store, with("a#1", &[TARGETS_OMITTED, TARGET_REDACTED]), RecordStatus::Success).await;
    append(&store, with("a#1", &[TARGET_OMITTED]), RecordStatus::Blocked).await;
    append(&store, with("b#1", &["another", TARGET_REDACTED]), RecordStatus::Success).await;
    // The names of arguments are the caller's choice.
    let keys = [TARGET_OMITTED, TARGET_REDACTED].map(|note| format!("keys: '\"{note}\"', x"));
    append(&store, with("c#1", &[&keys[0], &keys[1]]), RecordStatus::Success).await;
    let losses = store.read().target_losses(&CoverageFilter::default()).unwrap();
    let found: Vec<_> =
        losses.iter().map(|one| (one.agent.as_str(), one.dropped, one.shortened)).collect();
    assert_eq!(found, [("a#1", 3, 1), ("b#1", 0, 1)]);
    let elsewhere = CoverageFilter { server: Some("none".to_owned()), ..CoverageFilter::default() };
    assert!(store.read().target_losses(&elsewhere).unwrap().is_empty());
}
