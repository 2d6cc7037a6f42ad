//! `countersign contention`: agents that touched the same thing, the worst first.

use domain::ledger::contention::Kind;
use jiff::Zoned;
use serde_json::Value;

use crate::cli::{Contention, Place};
use crate::control::{Control, with_query};
use crate::exit::Failure;
use crate::output::{self, cut, entries, local_time, milliseconds, table, text};
use gateway::plan::Reach;

/// Resources in one line; the JSON holds more.
const RESOURCES_SHOWN: usize = 3;
const RESOURCE_WIDTH: usize = 60;

pub(crate) async fn run(place: &Place, args: Contention) -> Result<(), Failure> {
    let path = |kind: Option<String>| {
        let own =
            vec![("window", args.window.clone()), ("system", args.system.clone()), ("kind", kind)];
        with_query("/api/v1/contention", &[own, args.span.values()].concat())
    };
    let answer = Control::with(place, Reach::Nothing, async |control| {
        let mut answer = control.get(&path(args.kind.clone())).await?;
        if args.reads {
            let reads = Some(Kind::ReadRead.as_str().to_owned());
            join(&mut answer, control.get(&path(reads)).await?);
        }
        Ok(answer)
    })
    .await?;
    output::print(args.output, &answer, |answer| list(answer, &Zoned::now()))
}

/// The edges of both graphs; their agents are the same.
fn join(graph: &mut Value, mut other: Value) {
    let total = |graph: &Value| graph["edges_total"].as_u64().unwrap_or_default();
    graph["edges_total"] = (total(graph) + total(&other)).into();
    if let (Some(edges), Some(more)) =
        (graph["edges"].as_array_mut(), other["edges"].as_array_mut())
    {
        edges.append(more);
    }
}

fn list(answer: &Value, now: &Zoned) -> String {
    let edges = entries(answer, "edges");
    if edges.is_empty() {
        return "no two agents touched the same thing within the window".to_owned();
    }
    let row = |edge: &Value| {
        vec![
            text(edge, "kind"),
            text(edge, "from"),
            text(edge, "to"),
            text(edge, "system"),
            resources(edge),
            edge["meetings"].to_string(),
            milliseconds(&edge["smallest_gap_ms"]),
            local_time(&text(edge, "last"), now),
        ]
    };
    let rows: Vec<Vec<String>> = edges.iter().map(row).collect();
    let head = ["kind", "who", "whom", "system", "resources", "times", "gap", "last"];
    let table = table(&head, &rows);
    let left_off = answer["edges_total"].as_u64().unwrap_or_default();
    match left_off.saturating_sub(edges.len() as u64) {
        0 => table,
        more => format!("{table}\n({more} more: narrow it with --window or --system)"),
    }
}

fn resources(edge: &Value) -> String {
    let all = entries(edge, "resources");
    let shown = all.iter().take(RESOURCES_SHOWN).filter_map(Value::as_str);
    let shown: Vec<String> = shown.map(|name| cut(name, RESOURCE_WIDTH)).collect();
    let total = edge["resources_total"].as_u64().unwrap_or(all.len() as u64);
    match total.saturating_sub(shown.len() as u64) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edge(kind: &str) -> Value {
        json!({"from": "a#1", "to": "b#2", "kind": kind, "system": "fs",
            "resources": ["/1", "/2", "/3", "/4"], "resources_total": 30, "meetings": 7,
            "first": "2026-02-03T08:00:00Z", "last": "2026-02-03T09:08:07Z",
            "smallest_gap_ms": 1500, "records": []})
    }

    #[test]
    fn an_edge_is_a_line() {
        let now: Zoned = "2026-02-03T12:00:00+00:00[UTC]".parse().unwrap();
        let graph = json!({"nodes": [], "edges": [edge("write-write")], "edges_total": 3});
        assert_eq!(
            list(&graph, &now),
            "KIND         WHO  WHOM  SYSTEM  RESOURCES               TIMES  GAP    LAST\n\
             write-write  a#1  b#2   fs      /1, /2, /3 and 27 more  7      1.5 s  09:08:07\n\
             (2 more: narrow it with --window or --system)"
        );
        let none = json!({"nodes": [], "edges": [], "edges_total": 0});
        assert!(list(&none, &now).starts_with("no two agents"));
    }

    #[test]
    fn reads_are_added_to_the_rest() {
        let graph = |kind: &str| json!({"nodes": [], "edges": [edge(kind)], "edges_total": 2});
        let mut all = graph("write-write");
        join(&mut all, graph("read-read"));
        assert_eq!(all["edges_total"], 4);
        assert_eq!(all["edges"][1]["kind"], "read-read");
    }
}
