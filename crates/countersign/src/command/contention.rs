//! `countersign contention`: agents that touched the same resource, worst first.

use admin::view::{ContentionEdge, ContentionGraph};
use domain::ledger::contention::ContentionKind;
use jiff::Zoned;

use crate::cli::{Contention, Locations};
use crate::control::{Control, with_query};
use crate::exit::Failure;
use crate::output::{self, cut, local_time, milliseconds, read, table};

/// The number of resources in one line; the JSON holds more.
const RESOURCES_SHOWN: usize = 3;
const RESOURCE_WIDTH: usize = 60;

pub(crate) async fn run(place: &Locations, args: Contention) -> Result<(), Failure> {
    let path = |kind: Option<String>| {
        let own =
            vec![("window", args.window.clone()), ("system", args.system.clone()), ("kind", kind)];
        with_query("/api/v1/contention", &[own, args.span.values()].concat())
    };
    let control = Control::to_read(place, args.ledger.db.as_deref()).await?;
    let mut graph: ContentionGraph = read(&control.get(&path(args.kind.clone())).await?)?;
    if args.reads {
        let reads = Some(ContentionKind::ReadRead.as_str().to_owned());
        join(&mut graph, read(&control.get(&path(reads)).await?)?);
    }
    let none = if args.span.since.is_none() && args.span.until.is_none() {
        "no two agents used the same resource within the window in the last seven days"
    } else {
        "no two agents used the same resource within the window"
    };
    output::print(args.output, &graph, |graph| list(graph, none, &Zoned::now()))
}

/// Joins the edges of two graphs of the same agents.
fn join(graph: &mut ContentionGraph, other: ContentionGraph) {
    graph.edges_total += other.edges_total;
    graph.edges.extend(other.edges);
}

fn list(graph: &ContentionGraph, none: &str, now: &Zoned) -> String {
    if graph.edges.is_empty() {
        return none.to_owned();
    }
    let row = |edge: &ContentionEdge| {
        vec![
            edge.kind.clone(),
            edge.from.clone(),
            edge.to.clone(),
            edge.system.clone(),
            resources(edge),
            edge.meetings.to_string(),
            milliseconds(Some(edge.smallest_gap_ms as f64)),
            local_time(&edge.last, now),
        ]
    };
    let rows: Vec<Vec<String>> = graph.edges.iter().map(row).collect();
    let head = ["kind", "agent", "other agent", "system", "resources", "times", "gap", "last"];
    let table = table(&head, &rows);
    match graph.edges_total.saturating_sub(graph.edges.len()) {
        0 => table,
        more => format!("{table}\n({more} more: narrow the list with --window or --system)"),
    }
}

fn resources(edge: &ContentionEdge) -> String {
    let shown = edge.resources.iter().take(RESOURCES_SHOWN);
    let shown: Vec<String> = shown.map(|name| cut(name, RESOURCE_WIDTH)).collect();
    match edge.resources_total.saturating_sub(shown.len() as u64) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(kind: &str) -> ContentionEdge {
        ContentionEdge {
            from: "a#1".to_owned(),
            to: "b#2".to_owned(),
            kind: kind.to_owned(),
            system: "fs".to_owned(),
            resources: ["/1", "/2", "/3", "/4"].map(str::to_owned).to_vec(),
            resources_total: 30,
            meetings: 7,
            first: "2026-02-03T08:00:00Z".to_owned(),
            last: "2026-02-03T09:08:07Z".to_owned(),
            smallest_gap_ms: 1500,
            records: vec![],
        }
    }

    fn graph(edges: Vec<ContentionEdge>, edges_total: usize) -> ContentionGraph {
        ContentionGraph { nodes: vec![], nodes_total: 0, edges, edges_total }
    }

    #[test]
    fn an_edge_is_listed_on_one_line() {
        let now: Zoned = "2026-02-03T12:00:00+00:00[UTC]".parse().unwrap();
        assert_eq!(
            list(&graph(vec![edge("write-write")], 3), "none", &now),
            "KIND         AGENT  OTHER AGENT  SYSTEM  RESOURCES               TIMES  GAP    LAST\n\
             write-write  a#1    b#2          fs      /1, /2, /3 and 27 more  7      1.5 s  09:08:07\n\
             (2 more: narrow the list with --window or --system)"
        );
        assert_eq!(list(&graph(vec![], 0), "none", &now), "none");
    }

    #[test]
    fn read_read_edges_are_appended_to_the_others() {
        let mut all = graph(vec![edge("write-write")], 2);
        join(&mut all, graph(vec![edge("read-read")], 2));
        assert_eq!(all.edges_total, 4);
        assert_eq!(all.edges[1].kind, "read-read");
    }
}
