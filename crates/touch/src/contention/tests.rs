//! Small histories with their edges, and random ones compared with the plain definition.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const MINUTE: i64 = 60_000_000;

fn hour(kind: Option<ContentionKind>) -> Question {
    Question { window_us: 60 * MINUTE, kind, edge: None, nesting: ContainerMeetings::Ignored }
}

/// A touch by names, as the histories in this file state it.
struct Told<'a, R> {
    agent: &'a str,
    system: &'a str,
    resource: &'a str,
    access: Access,
    at_us: i64,
    record: R,
}

impl<R: Copy> Contention<R> {
    fn tell(&mut self, told: Told<'_, R>) {
        let Told { agent, system, resource, access, at_us, record } = told;
        if self.site_number == 0 || (system, resource) != (&self.system, &self.resource) {
            self.turn_to(system, resource);
        }
        let agent = self.agent(agent);
        self.push(Touch { agent, access, at_us, record });
    }
}

/// Builds the graph of a history on one file; `a r 0` is a read by agent a at minute 0.
fn history(text: &str, question: Question) -> Graph<usize> {
    let mut contention = Contention::new(question);
    for (record, touch) in text.split(", ").filter(|touch| !touch.is_empty()).enumerate() {
        let parts: Vec<&str> = touch.split(' ').collect();
        let access = match parts[1] {
            "r" => Access::Read,
            "w" => Access::Write,
            _ => Access::Unknown,
        };
        let at_us = parts[2].parse::<i64>().unwrap() * MINUTE;
        contention.tell(Told {
            agent: parts[0],
            system: "fs",
            resource: "/x",
            access,
            at_us,
            record,
        });
    }
    contention.finish()
}

fn edges(graph: &Graph<usize>) -> Vec<String> {
    let line = |edge: &Edge<usize>| format!("{} {}>{}", edge.kind.as_str(), edge.from, edge.to);
    graph.edges.iter().map(line).collect()
}

#[test]
fn what_agents_did_decides_the_kind_of_edge() {
    for (text, expected) in [
        ("", vec![]),
        ("a w 0, a w 1", vec![]),
        ("a w 0, b w 1", vec!["write-write a>b"]),
        ("a r 0, b w 1", vec!["read-write a>b"]),
        ("a w 0, b r 1", vec!["read-write a>b"]),
        ("a r 0, b r 1", vec![]),
        ("a w 0, b w 60", vec!["write-write a>b"]),
        ("a w 0, b w 61", vec![]),
        ("b w 0, a w 1, b w 2", vec!["write-write b>a"]),
        ("a r 0, b w 1, a w 2", vec!["stale-read a>b", "write-write b>a", "read-write a>b"]),
        // looked again, so the content was current
        ("a r 0, b w 1, a r 2, a w 3", vec!["write-write b>a", "read-write a>b"]),
        // the read is outside the window
        ("a r 0, b w 59, a w 61", vec!["write-write b>a", "read-write a>b"]),
        // B wrote before the read
        ("b w 0, a r 1, a w 2", vec!["write-write b>a", "read-write b>a"]),
        ("a u 0, b w 1", vec!["unknown a>b"]),
        ("a u 0, b u 1", vec!["unknown a>b"]),
        ("a r 0, b u 1", vec!["unknown a>b"]),
        ("a u 0, a u 1", vec![]),
        // the unknown touch may have been a read
        ("a r 0, b u 1, a w 2", vec!["unknown a>b"]),
        ("a r 0, b r 0, a w 1, b w 2", vec!["stale-read b>a", "write-write a>b", "read-write b>a"]),
    ] {
        assert_eq!(edges(&history(text, hour(None))), expected, "{text}");
    }
}

#[test]
fn only_edges_of_the_requested_kind_are_returned() {
    let graph = history("a r 0, b r 1, b w 2", hour(Some(ContentionKind::ReadRead)));
    assert_eq!(edges(&graph), ["read-read a>b"]);
    let graph = history("a r 0, b w 1, a w 2", hour(Some(ContentionKind::StaleRead)));
    assert_eq!(edges(&graph), ["stale-read a>b"]);
    assert_eq!(graph.edges[0].records, [0, 1, 2]);
}

#[test]
fn the_published_form() {
    let graph = history("a r 0, b w 1, b w 3", hour(None)).with_records(|n| format!("r{n}"));
    assert_eq!(
        serde_json::to_value(&graph).unwrap(),
        serde_json::json!({
            "nodes": [
                {"agent": "b", "calls": 2, "reads": 0, "writes": 2, "unknown": 0, "resources": 1},
                {"agent": "a", "calls": 1, "reads": 1, "writes": 0, "unknown": 0, "resources": 1},
            ],
            "nodes_total": 2,
            "edges": [{
                "id": graph.edges[0].id.to_string(), "from": "a", "to": "b", "kind": "read-write", "system": "fs",
                "resources": ["/x"], "resources_total": 1, "meetings": 2,
                "first": "1970-01-01T00:01:00Z", "last": "1970-01-01T00:03:00Z",
                "smallest_gap_ms": 60_000, "records": ["r0", "r1"],
            }],
            "edges_total": 1,
        })
    );
}

#[test]
fn the_same_resource_of_another_system_is_another_thing() {
    let mut contention = Contention::new(hour(None));
    for (record, (agent, system, resource)) in
        [("a", "db", "/x"), ("b", "fs", "/x"), ("b", "fs", "/y")].into_iter().enumerate()
    {
        contention.tell(Told { agent, system, resource, access: Access::Write, at_us: 0, record });
    }
    let graph = contention.finish();
    assert!(graph.edges.is_empty());
    assert_eq!(graph.nodes[0].resources, 2);
}

/// Tells who met whom at which resource and container, with containers included.
fn nested(text: &str) -> Vec<String> {
    let question = Question { nesting: ContainerMeetings::Included, ..hour(None) };
    let mut touches: Vec<(&str, &str, &str, i64)> = Vec::new();
    for touch in text.split(", ") {
        let parts: Vec<&str> = touch.split(' ').collect();
        touches.push((parts[2], parts[0], parts[1], parts[3].parse().unwrap()));
    }
    touches.sort_by_key(|(resource, .., minute)| (*resource, *minute));
    let mut contention = Contention::new(question);
    for (record, (resource, agent, access, minute)) in touches.into_iter().enumerate() {
        let access = if access == "r" { Access::Read } else { Access::Write };
        let at_us = minute * MINUTE;
        contention.tell(Told { agent, system: "filesystem", resource, access, at_us, record });
    }
    let graph = contention.finish();
    let line = |edge: &Edge<usize>| {
        let (kind, from, to) = (edge.kind.as_str(), &edge.from, &edge.to);
        let (resources, containers) = (edge.resources.join("+"), edge.containers.join("+"));
        format!("{kind} {from}>{to} {resources} in {containers}")
    };
    graph.edges.iter().map(line).collect()
}

#[test]
fn a_container_meets_its_contents_but_siblings_do_not_meet() {
    for (text, expected) in [
        ("a w /d/x 0, b w /d/y 1", vec![]),
        ("a r /d 0, b w /d/x 1", vec!["read-write a>b /d/x in /d"]),
        ("a r /d 0, b r /d/x 1", vec![]),
        ("b w /d/x 0, a w /d 1", vec!["write-write b>a /d/x in /d"]),
        ("a w /d 0, b w /d/e/x 1", vec!["write-write a>b /d/e/x in /d"]),
        // another name in between that is no container
        ("a w /d 0, c r /d! 0, b w /d/x 1", vec!["write-write a>b /d/x in /d"]),
        ("a w /d 0, b w /dx 1", vec![]),
        ("a w /d 0, a w /d/x 1", vec![]),
        ("a w /d 0, b w /d/x 61", vec![]),
        (
            "a w /d 0, b w /d/e 1, c w /d/e/x 2",
            vec![
                "write-write a>b /d/e in /d",
                "write-write a>c /d/e/x in /d",
                "write-write b>c /d/e/x in /d/e",
            ],
        ),
        ("a w /d 0, b w /d/x 1, b w /d/y 2", vec!["write-write a>b /d/x+/d/y in /d+/d"]),
        (
            "a w /d 0, b w /d 1, b w /d/x 2",
            vec!["write-write a>b /d in ", "write-write a>b /d/x in /d"],
        ),
    ] {
        let mut found = nested(text);
        found.sort_unstable();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn one_edge_can_be_asked_for_by_its_id() {
    let text = "a r 0, b w 1, a w 2";
    let all = history(text, hour(None));
    for edge in &all.edges {
        let question = Question { edge: Some(edge.id), ..hour(None) };
        assert_eq!(history(text, question).edges, std::slice::from_ref(edge));
    }
}

#[test]
fn lists_are_bounded_and_the_closest_come_first() {
    let mut contention = Contention::new(hour(None));
    for number in 0..50 {
        let resource = format!("/{number:02}");
        for (agent, at_us) in [("a", 0), ("b", i64::from(50 - number) * 1000)] {
            let access = Access::Write;
            contention.tell(Told {
                agent,
                system: "fs",
                resource: &resource,
                access,
                at_us,
                record: number,
            });
        }
    }
    let graph = contention.finish();
    let edge = &graph.edges[0];
    assert_eq!((edge.resources.len(), edge.records.len(), edge.resources_total), (20, 20, 50));
    assert_eq!((&*edge.resources[0], edge.smallest_gap_ms, edge.meetings), ("/49", 1, 50));
}

#[test]
fn a_crowd_beyond_the_bound_still_meets_its_latest_agents() {
    let mut contention = Contention::new(hour(None));
    for turn in 0..10_000u32 {
        let agent = format!("agent-{}", turn % 200);
        let at_us = i64::from(turn);
        let access = Access::Write;
        contention.tell(Told {
            agent: &agent,
            system: "fs",
            resource: "/x",
            access,
            at_us,
            record: turn,
        });
    }
    let graph = contention.finish();
    assert_eq!(graph.nodes_total, 200);
    assert!(graph.nodes.iter().all(|node| node.resources == 1 && node.calls == 50));
    // Each agent meets the 63 before it in the round.
    assert_eq!(graph.edges_total, 200 * (CROWD_MAX - 1));
    assert_eq!(graph.edges.len(), EDGES_MAX);
}

#[derive(Clone, Debug)]
struct Plain {
    agent: String,
    key: (String, String),
    access: Access,
    at_us: i64,
}

fn touches() -> impl Strategy<Value = Vec<Plain>> {
    let touch = ("[a-d]", "[st]", "[xyz]", 0usize..3, 0i64..40).prop_map(
        |(agent, system, resource, access, at_us)| Plain {
            agent,
            key: (system, resource),
            access: Access::ALL[access],
            at_us,
        },
    );
    proptest::collection::vec(touch, 0..40).prop_map(|mut touches| {
        touches.sort_by(|a, b| (&a.key, a.at_us).cmp(&(&b.key, b.at_us)));
        touches
    })
}

#[derive(Debug, Default, PartialEq)]
struct Expected {
    from: String,
    meetings: u64,
    first: i64,
    last: i64,
    gap_us: i64,
    resources: BTreeSet<String>,
}

/// Agents in order, or in the direction of a stale read; the kind; the system.
type Place = (String, String, ContentionKind, String);

/// Compares every pair of touches, following the definition of the kinds.
fn by_definition(touches: &[Plain], window_us: i64) -> BTreeMap<Place, Expected> {
    let mut edges = BTreeMap::new();
    for (at, touch) in touches.iter().enumerate() {
        let earlier = |agent: &str, access: Access| {
            let same =
                |it: &&Plain| it.key == touch.key && it.agent == agent && it.access == access;
            touches[..at].iter().enumerate().rfind(move |(_, it)| same(it))
        };
        for other in ["a", "b", "c", "d"].into_iter().filter(|other| *other != touch.agent) {
            for access in Access::ALL {
                if let Some((_, before)) = earlier(other, access)
                    && touch.at_us - before.at_us <= window_us
                {
                    let kind = ContentionKind::of(access, touch.access);
                    note(&mut edges, (other, &touch.agent), kind, touch, before.at_us);
                }
            }
            if touch.access == Access::Write
                && let Some((read_at, read)) = earlier(&touch.agent, Access::Read)
                && let Some((write_at, write)) = earlier(other, Access::Write)
                && write_at > read_at
                && touch.at_us - read.at_us <= window_us
            {
                note(
                    &mut edges,
                    (&touch.agent, other),
                    ContentionKind::StaleRead,
                    touch,
                    write.at_us,
                );
            }
        }
    }
    edges
}

fn note(
    edges: &mut BTreeMap<Place, Expected>,
    (from, to): (&str, &str),
    kind: ContentionKind,
    touch: &Plain,
    before_us: i64,
) {
    let (low, high) =
        if kind == ContentionKind::StaleRead || from < to { (from, to) } else { (to, from) };
    let place = (low.to_owned(), high.to_owned(), kind, touch.key.0.clone());
    let edge = edges.entry(place).or_insert_with(|| Expected {
        from: from.to_owned(),
        first: i64::MAX,
        gap_us: i64::MAX,
        ..Expected::default()
    });
    if touch.at_us < edge.first {
        from.clone_into(&mut edge.from);
    }
    edge.meetings += 1;
    edge.first = edge.first.min(touch.at_us);
    edge.last = edge.last.max(touch.at_us);
    edge.gap_us = edge.gap_us.min(touch.at_us - before_us);
    edge.resources.insert(touch.key.1.clone());
}

fn gathered(touches: &[Plain]) -> Contention<usize> {
    let mut contention = Contention::new(Question { window_us: 20_000, ..hour(None) });
    for Plain { agent, key, access, at_us } in touches {
        let (system, resource, access) = (key.0.as_str(), key.1.as_str(), *access);
        let record = usize::try_from(*at_us).unwrap();
        contention.tell(Told { agent, system, resource, access, at_us: at_us * 1000, record });
    }
    contention
}

proptest! {
    #[test]
    fn gathering_in_two_parts_equals_gathering_at_once(touches in touches(), cut in 0usize..40) {
        // Between two resources.
        let near = touches.get(cut.min(touches.len().saturating_sub(1))).map(|touch| &touch.key);
        let cut = touches.iter().position(|touch| Some(&touch.key) == near).unwrap_or(0);
        let (first, later) = touches.split_at(cut);
        let whole = gathered(&touches).finish();
        prop_assert_eq!(gathered(first).followed_by(gathered(later)).finish(), whole);
    }

    #[test]
    fn agrees_with_the_definition(touches in touches(), window_us in 0i64..30) {
        let mut found = BTreeMap::new();
        for kind in ContentionKind::ALL {
            let mut contention = Contention::new(Question { window_us: window_us * 1000, ..hour(Some(kind)) });
            for (record, Plain { agent, key, access, at_us }) in touches.iter().enumerate() {
                let (system, resource) = (key.0.as_str(), key.1.as_str());
                // Milliseconds, so that the published gap is exact.
                contention.tell(Told { agent, system, resource, access: *access, at_us: at_us * 1000, record });
            }
            for edge in contention.finish().edges {
                let stays = kind == ContentionKind::StaleRead || edge.from < edge.to;
                let (low, high) = if stays { (&edge.from, &edge.to) } else { (&edge.to, &edge.from) };
                let expected = Expected {
                    from: edge.from.clone(),
                    meetings: edge.meetings,
                    first: edge.first / 1000,
                    last: edge.last / 1000,
                    gap_us: edge.smallest_gap_ms,
                    resources: edge.resources.iter().map(ToString::to_string).collect(),
                };
                prop_assert_eq!(edge.resources_total, edge.resources.len() as u64);
                found.insert((low.clone(), high.clone(), kind, edge.system), expected);
            }
        }
        prop_assert_eq!(found, by_definition(&touches, window_us));
    }
}
