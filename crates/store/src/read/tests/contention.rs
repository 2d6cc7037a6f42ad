//! Contention from calls to graph.

use std::time::Duration;

use domain::tool::Class;
use touch::contention::ContentionKind;

use super::rig::{call, store};
use crate::Store;
use crate::read::contention::ContentionFilter;
use crate::record::RecordStatus;

async fn history() -> (tempfile::TempDir, Store) {
    use Class::{Destructive, Read, Write};
    use RecordStatus::{Blocked, Error, Interrupted, Success};
    let calls = [
        ("1", "a#1", Read, "/x", 0, Success),
        ("2", "b#1", Write, "/x", 60, Success),
        ("3", "a#1", Destructive, "/x", 90, Error),
        // refused: touched nothing
        ("4", "c#1", Write, "/x", 91, Blocked),
        // the process ended meanwhile: may have touched it
        ("5", "d#1", Write, "/y", 0, Interrupted),
        ("6", "a#1", Write, "/y", 4_000, Success),
        ("7", "a#1", Read, "/z", 0, Success),
        ("8", "b#1", Read, "/z", 1, Success),
    ];
    let calls = calls.map(|(id, agent, class, resource, second, status)| {
        (call(id, agent, class, resource, second), status)
    });
    store(calls.to_vec()).await
}

fn edges(store: &Store, wanted: &ContentionFilter) -> Vec<String> {
    let graph = store.read().contention(wanted).unwrap();
    let by_two = store.read().meet(wanted, 0).unwrap();
    assert_eq!(by_two, graph, "two threads find what one finds");
    let edges = graph.edges.iter().map(|edge| {
        let (kind, resources, records) =
            (edge.kind.as_str(), edge.resources.join(","), edge.records.join(","));
        format!("{kind} {}>{} {}{resources} {records}", edge.from, edge.to, edge.system)
    });
    edges.collect()
}

#[tokio::test]
async fn agents_that_touched_the_same_resource_are_linked() {
    let (_home, store) = history().await;
    let usual = ContentionFilter::default();
    assert_eq!(
        edges(&store, &usual),
        [
            "stale-read a#1>b#1 files/x 1,2,3",
            "write-write b#1>a#1 files/x 2,3",
            "read-write a#1>b#1 files/x 1,2",
        ]
    );
    let nodes = store.read().contention(&usual).unwrap().nodes;
    let nodes: Vec<_> = nodes.iter().map(|node| (&*node.agent, node.calls)).collect();
    assert_eq!(nodes, [("a#1", 4), ("b#1", 2), ("d#1", 1)]);
}

#[tokio::test]
async fn contention_is_filtered_by_window_kind_system_and_time() {
    let (_home, store) = history().await;
    let usual = ContentionFilter::default;
    let kind = |kind| ContentionFilter { kind: Some(kind), ..usual() };
    assert_eq!(edges(&store, &kind(ContentionKind::ReadRead)), ["read-read a#1>b#1 files/z 7,8"]);
    assert_eq!(
        edges(&store, &kind(ContentionKind::WriteWrite)),
        ["write-write b#1>a#1 files/x 2,3"]
    );
    let wide =
        ContentionFilter { window: Duration::from_secs(7_200), ..kind(ContentionKind::WriteWrite) };
    assert_eq!(
        edges(&store, &wide),
        ["write-write b#1>a#1 files/x 2,3", "write-write d#1>a#1 files/y 5,6"]
    );
    let narrow = ContentionFilter { window: Duration::from_secs(29), ..usual() };
    assert_eq!(edges(&store, &narrow), Vec::<String>::new());
    let elsewhere = ContentionFilter { system: Some("github".to_owned()), ..usual() };
    assert_eq!(store.read().contention(&elsewhere).unwrap().nodes, []);
    let at = |second: i64| Some(jiff::Timestamp::from_second(1_700_000_000 + second).unwrap());
    let later = ContentionFilter { start: at(60), end: at(91), ..usual() };
    assert_eq!(edges(&store, &later), ["write-write b#1>a#1 files/x 2,3"]);
}
