//! Things that a call names in a roundabout way: an address next to a file, an object of a bucket by its
//! address or by its key, the tables of a statement, and the file that a command changes. Each has one
//! name, under which the record is found and agents meet.

use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::{Client, code};
use testkit::gate::Gate;
use testkit::program::{run, stderr, stdout};
use testkit::upstream::scripted;
use testkit::wait::eventually;

use crate::ledger::records_when;

use super::{event, gate, hooked, tree};

/// Starts a gate in front of two servers with the same tools, in a folder with a file.
async fn two_servers() -> (Gate, PathBuf) {
    let tools = json!([
        {"name": "load", "annotations": {"readOnlyHint": true}},
        {"name": "get", "annotations": {"readOnlyHint": true}},
        {"name": "download", "annotations": {"destructiveHint": false}},
        {"name": "put", "annotations": {"destructiveHint": false}},
        {"name": "execute_sql", "annotations": {"destructiveHint": false}},
    ]);
    let dir = tempfile::tempdir().unwrap();
    let folder = tree(dir.path());
    let server = |name: &str| {
        let mut server = scripted(dir.path(), name, &tools);
        server["cwd"] = json!(folder);
        server
    };
    let config = json!({"mcpServers": {"lake": server("lake"), "store": server("store")}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let gate = Gate::open(dir).await;
    for name in ["lake", "store"] {
        gate.ready(name).await;
    }
    (gate, folder)
}

async fn called(client: &Client, operation: &str, tool: &str, arguments: Value) {
    let answer = client.two_key_call(operation, tool, arguments).await;
    assert_eq!(code(&answer), "ok", "{tool}: {answer}");
}

/// Returns the records at the command line, the newest first.
async fn listed(gate: &Gate, filters: &[&str]) -> Vec<Value> {
    let arguments = [&["activity", "list", "-o", "json"], filters].concat();
    let output = run(gate.dir.path(), arguments).await;
    assert_eq!(output.status.code(), Some(0), "{filters:?}: {}", stderr(&output));
    let list: Value = serde_json::from_str(&stdout(&output)).unwrap();
    list["activities"].as_array().unwrap().clone()
}

/// Returns what a record says that its call touched, each as `access system resource`.
fn touched(record: &Value) -> Vec<String> {
    let text = |touch: &Value, name: &str| touch[name].as_str().unwrap().to_owned();
    let touches = record["targets"].as_array().into_iter().flatten();
    let mut touched: Vec<String> = touches
        .map(|it| format!("{} {} {}", text(it, "access"), text(it, "system"), text(it, "resource")))
        .collect();
    touched.sort();
    touched
}

/// Waits until agents have met in these ways, each as `kind system resource`.
async fn assert_met(gate: &Gate, expected: &[String]) {
    eventually(|| async {
        let (_, graph) = gate.rest(Method::GET, "/api/v1/contention", None).await;
        let edges = graph["edges"].as_array().unwrap().iter();
        let met: Vec<String> = edges
            .flat_map(|edge| {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                let of = format!("{} {}", text(&edge["kind"]), text(&edge["system"]));
                let resources = edge["resources"].as_array().unwrap();
                resources.iter().map(move |it| format!("{of} {}", text(it))).collect::<Vec<_>>()
            })
            .collect();
        expected.iter().all(|wanted| met.contains(wanted)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_address_beside_a_file_or_a_table_is_recorded_too() {
    let (gate, folder) = two_servers().await;
    let (one, other) = (gate.http().await, gate.http().await);
    let page = "https://h.example/x";
    let file = folder.join("real/f.txt").display().to_string();
    let beside_file = json!({"url": page, "path": "linked/f.txt"});
    called(&one, "write", "lake:download", beside_file).await;
    called(&one, "read", "lake:load", json!({"url": page, "table": "events"})).await;
    called(&other, "write", "store:put", json!({"url": page})).await;
    called(&other, "write", "store:put", json!({"path": file})).await;
    records_when(&gate.home(), |records| records.len() == 4).await;
    let found = listed(&gate, &["--target-resource", page]).await;
    let tools: Vec<&Value> = found.iter().map(|record| &record["tool_name"]).collect();
    assert_eq!(tools, ["put", "load", "download"]);
    assert_eq!(touched(&found[1]), ["read lake events".to_owned(), format!("read web {page}")]);
    assert_eq!(
        touched(&found[2]),
        [format!("read web {page}"), format!("write filesystem {file}")]
    );
    assert_met(
        &gate,
        &[format!("read-write web {page}"), format!("write-write filesystem {file}")],
    )
    .await;
}

#[tokio::test]
async fn an_object_by_its_address_and_by_its_key_is_one_thing() {
    let (gate, _) = two_servers().await;
    let (one, other) = (gate.http().await, gate.http().await);
    called(&one, "read", "lake:get", json!({"uri": "s3://b/a/k"})).await;
    called(&other, "write", "store:put", json!({"bucket": "b", "key": "a/k"})).await;
    // Another object of the bucket.
    called(&other, "write", "store:put", json!({"bucket": "b", "key": "a/other"})).await;
    records_when(&gate.home(), |records| records.len() == 3).await;
    let found = listed(&gate, &["--target-resource", "s3://b/a/k"]).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(touched(&found[0]), ["write store b/a/k", "write web s3://b/a/k"]);
    assert_eq!(touched(&found[1]), ["read lake b/a/k", "read web s3://b/a/k"]);
    assert_met(&gate, &["read-write web s3://b/a/k".to_owned()]).await;
}

/// Objects of one bucket are different resources, each inside the bucket.
#[tokio::test]
async fn objects_of_a_bucket_are_not_the_bucket() {
    let (gate, _) = two_servers().await;
    let (one, other) = (gate.http().await, gate.http().await);
    called(&one, "write", "lake:put", json!({"bucket": "b", "object": "x"})).await;
    called(&other, "write", "lake:put", json!({"bucket": "b", "object": "y"})).await;
    called(&other, "read", "lake:get", json!({"resource": "invoices/7"})).await;
    records_when(&gate.home(), |records| records.len() == 3).await;
    let (_, graph) = gate.rest(Method::GET, "/api/v1/contention", None).await;
    assert_eq!(graph["edges"], json!([]));
    assert_eq!(listed(&gate, &["--target-resource", "b/x"]).await.len(), 1);
    assert_eq!(listed(&gate, &["--under", "b"]).await.len(), 2);
    assert_eq!(listed(&gate, &["--target-resource", "invoices/7"]).await.len(), 1);
    called(&other, "write", "lake:put", json!({"bucket": "b", "object": "x"})).await;
    assert_met(&gate, &["write-write lake b/x".to_owned()]).await;
}

#[tokio::test]
async fn a_join_names_each_of_its_tables() {
    let (gate, _) = two_servers().await;
    let (one, other) = (gate.http().await, gate.http().await);
    let join = "SELECT u.name FROM orders AS o LEFT JOIN users u ON u.id = o.user_id";
    called(&one, "write", "lake:execute_sql", json!({"sql": join})).await;
    let update = "UPDATE users SET name = 'x' WHERE id = 1";
    called(&other, "write", "lake:execute_sql", json!({"sql": update})).await;
    let delete = "DELETE FROM orders WHERE id = 1";
    called(&other, "write", "lake:execute_sql", json!({"sql": delete})).await;
    records_when(&gate.home(), |records| records.len() == 3).await;
    for (table, statements) in [("users", 2), ("orders", 2)] {
        let found = listed(&gate, &["--target-resource", table]).await;
        assert_eq!(found.len(), statements, "{table}: {found:?}");
        assert_eq!(touched(&found[1]), ["read lake orders", "read lake users"]);
    }
    assert_met(&gate, &["read-write lake users".to_owned(), "read-write lake orders".to_owned()])
        .await;
}

/// A file that a command changes is recorded under its real name, whether the built-in shell runs the
/// command or an agent that reports it with a hook.
#[tokio::test]
async fn a_command_names_the_file_that_it_changes() {
    let gate = gate().await;
    let (dir, folder) = (gate.dir.path(), gate.dir.path().canonicalize().unwrap());
    let client = gate.http().await;
    let commands = [
        "sed -i s/one/two/ linked/f.txt",
        "sed --in-place=.bak -e s/two/three/ ./real//f.txt",
        "echo four > linked/f.txt",
        "echo five >> ~/link.txt",
        "sort real/f.txt | uniq > link.txt",
    ];
    for command in commands {
        let arguments = json!({"command": command});
        called(&client, "destructive", "workspace:Bash", arguments.clone()).await;
        hooked(dir, &event(&folder, "Bash", arguments, command)).await;
    }
    let count = 2 * commands.len();
    records_when(&gate.home(), |records| records.len() == count).await;
    let found = listed(&gate, &[]).await;
    let write = format!("write filesystem {}", folder.join("real/f.txt").display());
    for record in &found {
        assert_eq!(touched(record), [&*write], "{record}");
    }
    let text = std::fs::read_to_string(folder.join("real/f.txt")).unwrap();
    assert_eq!(text, "", "the last command reads what it has cut");
    let file = folder.join("real/f.txt").display().to_string();
    assert_met(&gate, &[format!("write-write filesystem {file}")]).await;
}

/// `~` is the home of whoever expands it. The gate's own tools do not expand it.
#[tokio::test]
async fn a_path_in_the_home_has_its_real_name() {
    let gate = gate().await;
    let (dir, folder) = (gate.dir.path(), gate.dir.path().canonicalize().unwrap());
    let client = gate.http().await;
    called(&client, "read", "s:read_file", json!({"path": "~/linked/f.txt"})).await;
    let own = json!({"file_path": "~/link.txt"});
    hooked(dir, &event(Path::new("/"), "Read", own, "t1")).await;
    records_when(&gate.home(), |records| records.len() == 2).await;
    for record in listed(&gate, &[]).await {
        let read = format!("read filesystem {}", folder.join("real/f.txt").display());
        assert_eq!(touched(&record), [read], "{record}");
    }
}

/// An address contains the same with a query, whose text the record does not keep.
#[tokio::test]
async fn an_address_is_the_container_of_the_same_with_a_query() {
    let (gate, _) = two_servers().await;
    let client = gate.http().await;
    let page = "https://h.example/a";
    for url in
        [page, "https://h.example/a?id=1", "https://h.example/a?id=2", "https://h.example/ab"]
    {
        called(&client, "read", "lake:get", json!({"url": url})).await;
    }
    records_when(&gate.home(), |records| records.len() == 4).await;
    let names = async |filters: &[&str]| -> Vec<String> {
        let found = listed(&gate, filters).await;
        found.iter().map(|it| touched(it)[0].trim_start_matches("read web ").to_owned()).collect()
    };
    assert_eq!(names(&["--target-resource", page]).await, [page]);
    let under = names(&["--under", page]).await;
    assert_eq!(under.len(), 3, "{under:?}");
    let with_query = &under[0];
    assert!(
        with_query.starts_with(&format!("{page}?")) && !with_query.contains("id="),
        "{under:?}"
    );
    assert_ne!(under[0], under[1], "another query is another resource");
    assert_eq!(names(&["--target-resource", with_query]).await, std::slice::from_ref(with_query));
    let around = names(&["--target-resource", with_query, "--containers"]).await;
    assert_eq!(around, [with_query.clone(), page.to_owned()]);
}
