//! `countersign contention`: agents that touched the same resource, worst first; meetings as they
//! happen; and the story of two agents.

mod watch;

use admin::view::{ContentionEdge, ContentionGraph, ContentionStory};
use jiff::Zoned;
use touch::contention::ContentionKind;

use super::targets::with_losses;
use crate::cli::{Contention, ContentionSearch, ContentionVerb};
use crate::control::{Control, encode, with_query};
use crate::exit::Failure;
use crate::output::{self, cut, local_time, milliseconds, plain, read, table};
use crate::site::Site;

/// The number of resources in one line; the JSON holds more.
const RESOURCES_SHOWN: usize = 3;
const RESOURCE_WIDTH: usize = 60;

pub(crate) async fn run(site: &Site, args: Contention) -> Result<(), Failure> {
    match args.verb {
        Some(ContentionVerb::Explain { id, search, output }) => {
            let path = format!("/api/v1/contention/{}", encode(&id));
            let path = with_query(&path, &search.values(None));
            let control = Control::to_read(site, search.ledger.db.as_deref()).await?;
            let answer: ContentionStory = read(&control.get(&path).await?)?;
            output::print(output, &answer, told)
        }
        None if args.watch => watch::run(site, &args).await,
        None => list_edges(site, args).await,
    }
}

async fn list_edges(site: &Site, args: Contention) -> Result<(), Failure> {
    let Contention { search, kind, reads, output, .. } = args;
    let path = |kind: Option<String>| with_query("/api/v1/contention", &search.values(kind));
    let control = Control::to_read(site, search.ledger.db.as_deref()).await?;
    let mut graph: ContentionGraph = read(&control.get(&path(kind)).await?)?;
    if reads {
        let kind = Some(ContentionKind::ReadRead.as_str().to_owned());
        join(&mut graph, read(&control.get(&path(kind)).await?)?);
    }
    let none = if search.span.since.is_none() && search.span.until.is_none() {
        "no two agents used the same resource within the window in the last seven days"
    } else {
        "no two agents used the same resource within the window"
    };
    let shown =
        |graph: &ContentionGraph| with_losses(list(graph, none, &Zoned::now()), &graph.losses);
    output::print(output, &graph, shown)
}

impl ContentionSearch {
    fn values(&self, kind: Option<String>) -> Vec<(&'static str, Option<String>)> {
        let own = vec![
            ("window", self.window.clone()),
            ("system", self.system.clone()),
            ("kind", kind),
            ("containers", self.containers.then(|| "true".to_owned())),
        ];
        [own, self.span.values()].concat()
    }
}

/// Tells a story, one sentence a line, with the records behind it.
fn told(story: &ContentionStory) -> String {
    let ContentionEdge { words, from, to, .. } = &story.edge;
    let mut lines = vec![format!("{}: {} and {}", words, plain(from), plain(to)), String::new()];
    lines.extend(story.story.iter().map(|sentence| plain(sentence)));
    lines.push(String::new());
    let id = |record: &admin::view::ActivityRecord| record.id.clone();
    let records: Vec<String> = story.records.iter().map(id).collect();
    lines.push(format!("records: {}", records.join(", ")));
    lines.join("\n")
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
            edge.words.clone(),
            edge.from.clone(),
            edge.to.clone(),
            edge.system.clone(),
            resources(edge),
            edge.meetings.to_string(),
            milliseconds(Some(edge.smallest_gap_ms as f64)),
            local_time(&edge.last, now),
            edge.id.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = graph.edges.iter().map(row).collect();
    let head =
        ["what", "agent", "other agent", "system", "resources", "times", "gap", "last", "id"];
    let table = table(&head, &rows);
    match graph.edges_total.saturating_sub(graph.edges.len()) {
        0 => table,
        more => format!("{table}\n({more} more: narrow the list with --window or --system)"),
    }
}

fn resources(edge: &ContentionEdge) -> String {
    let shown = edge.resources.iter().enumerate().take(RESOURCES_SHOWN);
    let shown = shown.map(|(at, name)| match edge.containers.get(at) {
        Some(container) => {
            format!("{} in {}", cut(name, RESOURCE_WIDTH), cut(container, RESOURCE_WIDTH))
        }
        None => cut(name, RESOURCE_WIDTH),
    });
    let shown: Vec<String> = shown.collect();
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
            id: "0123456789ab".to_owned(),
            from: "a#1".to_owned(),
            to: "b#2".to_owned(),
            kind: kind.to_owned(),
            words: ContentionKind::parse(kind).unwrap().words().to_owned(),
            system: "fs".to_owned(),
            resources: ["/1", "/2", "/3", "/4"].map(str::to_owned).to_vec(),
            containers: vec![],
            resources_total: 30,
            meetings: 7,
            first: "2026-02-03T08:00:00Z".to_owned(),
            last: "2026-02-03T09:08:07Z".to_owned(),
            smallest_gap_ms: 1500,
            records: vec![],
        }
    }

    fn graph(edges: Vec<ContentionEdge>, edges_total: usize) -> ContentionGraph {
        ContentionGraph { nodes: vec![], nodes_total: 0, edges, edges_total, losses: vec![] }
    }

    #[test]
    fn an_edge_is_listed_on_one_line() {
        let now: Zoned = "2026-02-03T12:00:00+00:00[UTC]".parse().unwrap();
        assert_eq!(
            list(&graph(vec![edge("write-write")], 3), "none", &now),
            "WHAT        AGENT  OTHER AGENT  SYSTEM  RESOURCES               TIMES  GAP    LAST      ID\n\
             both wrote  a#1    b#2          fs      /1, /2, /3 and 27 more  7      1.5 s  09:08:07  0123456789ab\n\
             (2 more: narrow the list with --window or --system)"
        );
        assert_eq!(list(&graph(vec![], 0), "none", &now), "none");
    }

    #[test]
    fn a_container_is_named_beside_its_contents() {
        let mut within = edge("read-write");
        (within.resources, within.resources_total) = (vec!["/a/b".to_owned()], 1);
        within.containers = vec!["/a".to_owned()];
        assert_eq!(resources(&within), "/a/b in /a");
    }

    #[test]
    fn read_read_edges_are_appended_to_the_others() {
        let mut all = graph(vec![edge("write-write")], 2);
        join(&mut all, graph(vec![edge("read-read")], 2));
        assert_eq!(all.edges_total, 4);
        assert_eq!(all.edges[1].kind, "read-read");
    }
}
