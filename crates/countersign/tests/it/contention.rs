//! Agents that touch the same resource, from their calls to the response of `/contention`.

use std::process::Stdio;

use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::client::{Client, PATIENCE};
use testkit::gate::{Gate, http_client};
use testkit::program::{program, run, stdout};
use testkit::upstream::scripted;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::ledger::records_when;

fn tools() -> Value {
    json!([
        {"name": "get", "annotations": {"readOnlyHint": true}},
        {"name": "put", "annotations": {"destructiveHint": false}},
    ])
}

/// Starts a gate in front of two servers with the same tools.
async fn gate() -> Gate {
    let servers = |dir: &std::path::Path| json!({"one": scripted(dir, "one", &tools()), "two": scripted(dir, "two", &tools())});
    Gate::start(servers, json!({})).await
}

async fn get(client: &Client, server: &str, args: Value) {
    let answer = client.two_key_call("read", &format!("{server}:get"), args).await;
    assert_ne!(answer["isError"], true, "{answer}");
}

async fn put(client: &Client, server: &str, args: Value) {
    let answer = client.two_key_call("write", &format!("{server}:put"), args).await;
    assert_ne!(answer["isError"], true, "{answer}");
}

/// Returns `(kind, system, resource, from, to)` of every edge.
async fn edges(gate: &Gate, query: &str) -> Vec<(String, String, String, String, String)> {
    let path = format!("/api/v1/contention{query}");
    let (status, graph) = gate.rest(Method::GET, &path, None).await;
    assert_eq!(status, 200, "{graph}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let edges = graph["edges"].as_array().unwrap().iter();
    let mut edges: Vec<_> = edges
        .flat_map(|edge| {
            let resources = edge["resources"].as_array().unwrap().iter();
            resources.map(|resource| {
                (
                    text(&edge["kind"]),
                    text(&edge["system"]),
                    text(resource),
                    text(&edge["from"]),
                    text(&edge["to"]),
                )
            })
        })
        .collect();
    edges.sort();
    edges
}

#[tokio::test]
async fn smoke_agents_sharing_a_repository_table_or_url_are_in_contention() {
    let gate = gate().await;
    let (a, b) = (gate.http().await, gate.http().await);
    let repo = json!({"owner": "o", "repo": "r"});
    put(&a, "one", repo.clone()).await;
    put(&b, "one", repo).await;
    let table = json!({"table": "events", "database": "analytics"});
    get(&a, "one", table.clone()).await;
    put(&b, "one", table).await;
    get(&a, "one", json!({"url": "https://Example.com/x/"})).await;
    put(&b, "one", json!({"url": "https://me:pw@example.com:443/x?utm_source=a"})).await;
    put(&a, "one", json!({"url": "https://example.com/x#f"})).await;
    // Two reads, or one agent alone, are not contention.
    get(&a, "one", json!({"path": "/read"})).await;
    get(&b, "one", json!({"path": "/read"})).await;
    put(&a, "one", json!({"path": "/mine"})).await;
    put(&a, "one", json!({"path": "/mine"})).await;
    let records = records_when(&gate.home(), |records| records.len() == 11).await;
    let agent = |n: usize| records[n]["agent_name"].as_str().unwrap().to_owned();
    let (a, b) = (agent(0), agent(1));
    assert_ne!(a, b);
    let found = edges(&gate, "").await;
    let has = |kind: &str, system: &str, resource: &str| {
        let edge = (kind.into(), system.into(), resource.into(), a.clone(), b.clone());
        assert!(found.contains(&edge), "{edge:?} is not among {found:#?}");
    };
    has("write-write", "one", "o/r");
    has("read-write", "one", "analytics.events");
    has("stale-read", "web", "https://example.com/x");
    for (_, _, resource, ..) in &found {
        assert!(!matches!(resource.as_str(), "/read" | "/mine"), "{found:#?}");
    }
    let only = edges(&gate, "?kind=stale-read").await;
    assert!(only.iter().all(|edge| edge.0 == "stale-read") && !only.is_empty(), "{only:#?}");
}

#[tokio::test]
async fn tables_of_one_name_on_two_servers_are_two_tables() {
    let gate = gate().await;
    let (a, b) = (gate.http().await, gate.http().await);
    let table = json!({"table": "events"});
    put(&a, "one", table.clone()).await;
    put(&b, "two", table.clone()).await;
    records_when(&gate.home(), |records| records.len() == 2).await;
    assert_eq!(edges(&gate, "").await, []);
    put(&b, "one", table).await;
    records_when(&gate.home(), |records| records.len() == 3).await;
    let found = edges(&gate, "").await;
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((&*found[0].0, &*found[0].1, &*found[0].2), ("write-write", "one", "events"));
    assert_eq!(edges(&gate, "?system=two").await, []);
    let (status, answer) = gate.rest(Method::GET, "/api/v1/contention?kind=quarrel", None).await;
    assert_eq!(status, 400, "{answer}");
}

#[tokio::test]
async fn one_pair_is_explained_in_sentences_over_rest_and_on_the_command_line() {
    let gate = gate().await;
    let (a, b) = (gate.http().await, gate.http().await);
    let file = json!({"path": "/plan"});
    get(&a, "one", file.clone()).await;
    put(&b, "one", file.clone()).await;
    put(&a, "one", file).await;
    records_when(&gate.home(), |records| records.len() == 3).await;
    let (_, graph) = gate.rest(Method::GET, "/api/v1/contention", None).await;
    let edge = &graph["edges"][0];
    assert_eq!(
        (&edge["kind"], &edge["words"]),
        (&json!("stale-read"), &json!("wrote after an outdated read"))
    );
    let id = edge["id"].as_str().unwrap();
    let (status, told) = gate.rest(Method::GET, &format!("/api/v1/contention/{id}"), None).await;
    assert_eq!(status, 200, "{told}");
    assert_eq!(told["edge"], *edge);
    let story: Vec<&str> =
        told["story"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!((story.len(), told["records"].as_array().unwrap().len()), (5, 3), "{story:#?}");
    assert!(story[1].contains("read '/plan' (one:get)"), "{story:#?}");
    assert!(story[3].contains("wrote it (one:put)"), "{story:#?}");
    assert!(story[4].contains("did not read it again"), "{story:#?}");
    let shown = run(gate.dir.path(), ["contention", "explain", id]).await;
    assert!(stdout(&shown).contains(story[4]), "{}", stdout(&shown));
    let listed = stdout(&run(gate.dir.path(), ["contention"]).await);
    assert!(listed.contains(id) && listed.contains("wrote after an outdated read"), "{listed}");
    for unknown in ["0123456789ab", "odd"] {
        let (status, _) =
            gate.rest(Method::GET, &format!("/api/v1/contention/{unknown}"), None).await;
        assert_eq!(status, 404);
    }
}

#[tokio::test]
async fn a_folder_meets_its_files_on_request() {
    let gate = gate().await;
    let (a, b) = (gate.http().await, gate.http().await);
    get(&a, "one", json!({"path": "/d"})).await;
    put(&b, "one", json!({"path": "/d/x"})).await;
    put(&a, "one", json!({"path": "/d/y"})).await;
    records_when(&gate.home(), |records| records.len() == 3).await;
    assert_eq!(edges(&gate, "").await, []);
    let found = edges(&gate, "?containers=true").await;
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((&*found[0].0, &*found[0].2), ("read-write", "/d/x"));
    let listed = stdout(&run(gate.dir.path(), ["contention", "--containers"]).await);
    assert!(listed.contains("/d/x in /d"), "{listed}");
}

/// A write that meets another agent is reported at once: as an event, in the log, and by
/// `contention --watch`.
#[tokio::test]
async fn a_meeting_is_told_as_it_happens() {
    let gate = gate().await;
    let (a, b) = (gate.http().await, gate.http().await);
    let mut child = program(gate.dir.path())
        .args(["contention", "--watch"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let next = async |lines: &mut tokio::io::Lines<_>| {
        tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("a line").unwrap().unwrap()
    };
    assert!(next(&mut lines).await.starts_with("TIME"));
    let url = format!("http://{}/api/v1/events", gate.address);
    let mut events =
        http_client().get(url).bearer_auth(gate.secret("api-key")).send().await.unwrap();
    assert!(events.chunk().await.unwrap().unwrap().starts_with(b"event: ledger"));
    get(&a, "one", json!({"path": "/read"})).await;
    get(&b, "one", json!({"path": "/read"})).await;
    get(&a, "one", json!({"path": "/plan"})).await;
    put(&b, "one", json!({"path": "/plan"})).await;
    let mut text = String::new();
    let event = loop {
        let chunk = tokio::time::timeout(PATIENCE, events.chunk()).await.expect("an event");
        text.push_str(&String::from_utf8_lossy(&chunk.unwrap().unwrap()));
        if let Some((_, rest)) = text.split_once("event: contention\n")
            && let Some((event, _)) = rest.split_once("\n\n")
        {
            let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
            break serde_json::from_str::<Value>(data).unwrap();
        }
    };
    assert_eq!((&event["kind"], &event["resource"]), (&json!("read-write"), &json!("/plan")));
    assert_eq!(
        (&event["write"]["tool"], &event["other"]["tool"]),
        (&json!("one:put"), &json!("one:get"))
    );
    assert_ne!(event["write"]["agent"], event["other"]["agent"]);
    let line = next(&mut lines).await;
    assert!(
        line.contains("one read, the other wrote") && line.ends_with("filesystem /plan"),
        "{line}"
    );
    let logged = gate.log_line("contention: an agent wrote").await;
    assert!(logged.contains("/plan"), "{logged}");
    let pid = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let status = tokio::time::timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(lines.next_line().await.unwrap(), None, "one meeting, one line");
}

#[tokio::test]
async fn coverage_counts_calls_with_a_target_by_server_tool_and_rule() {
    let gate = gate().await;
    let a = gate.http().await;
    get(&a, "one", json!({"path": "/x"})).await;
    get(&a, "one", json!({})).await;
    put(&a, "one", json!({"path": "/x"})).await;
    records_when(&gate.home(), |records| records.len() == 3).await;
    let shown = run(gate.dir.path(), ["targets", "coverage", "-o", "json"]).await;
    let list: Value = serde_json::from_str(&stdout(&shown)).unwrap();
    let server = &list["servers"][0];
    assert_eq!(
        (&server["server"], &server["calls"], &server["with_target"]),
        (&json!("one"), &json!(3), &json!(2))
    );
    assert_eq!(server["tools"][0]["with_target"], 1, "{server}");
    let table = stdout(&run(gate.dir.path(), ["targets", "coverage", "-v"]).await);
    assert!(table.contains("2 (66 %)") && table.contains("one:get"), "{table}");
}
