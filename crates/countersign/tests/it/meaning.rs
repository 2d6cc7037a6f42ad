//! Search by meaning: needs in other words than the tool's, through the running gate, and the
//! vectors behind it.

use std::path::Path;

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::client::Client;
use testkit::gate::Gate;
use testkit::program::stdout;
use testkit::upstream::scripted;
use testkit::wait::eventually_within;

/// The longest time that the vectors of a large set may take on a busy machine.
const VECTORS_PATIENCE: std::time::Duration = std::time::Duration::from_mins(5);

/// Waits until every tool has a vector; false on a processor without vector instructions.
pub(crate) async fn is_learned(gate: &Gate, tools: usize) -> bool {
    eventually_within(VECTORS_PATIENCE, || async {
        let (_, status) = gate.rest(Method::GET, "/api/v1/status", None).await;
        let search = &status["search"];
        let is_ready = search["tools"] == tools && search["vectors"] == tools;
        (is_ready || search["learned"] == false).then(|| search["learned"] == true)
    })
    .await
}

fn learned() -> Value {
    json!({"search": {"learned": true}})
}

fn household(dir: &Path) -> Value {
    let tools = json!([
        {"name": "store_fact", "description": "Saves a piece of knowledge about a person or thing"},
        {"name": "send_invoice", "description": "Bills a customer"},
        {"name": "start_oven", "description": "Heats the oven to a temperature"},
        {"name": "read_sensor", "description": "Returns the temperature of a room"},
    ]);
    json!({"home": scripted(dir, "home", &tools)})
}

async fn found(client: &Client, query: &str) -> Vec<String> {
    let answer = client.document("retrieve_tools", json!({"query": query})).await;
    let tools = answer["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn smoke_needs_in_other_words_find_their_tool_and_a_restart_computes_nothing() {
    let mut gate = Gate::start(household, learned()).await;
    gate.ready("home").await;
    if !is_learned(&gate, 4).await {
        return testkit::run::skipped("this processor computes no vectors");
    }
    gate.log_line("computed=4").await;
    let client = gate.http().await;
    for (query, first) in [
        ("remember that Anna likes tea", "home:store_fact"),
        ("charge my client for the work", "home:send_invoice"),
        ("I want to bake a cake", "home:start_oven"),
        ("is it cold in here?", "home:read_sensor"),
        // An exact name comes first, whatever it means.
        ("send_invoice", "home:send_invoice"),
        ("home:start_oven", "home:start_oven"),
        // A typo, where no word is known.
        ("temperatre", "home:start_oven"),
    ] {
        assert_eq!(found(&client, query).await.first().map(String::as_str), Some(first), "{query}");
    }
    // The model reads no script but Latin.
    assert!(found(&client, "茶が好き").await.is_empty());
    let query = ["tools", "search", "--explain", "remember", "the", "temperature"];
    let table = stdout(&gate.cli(&query).await);
    let line = table.lines().find(|line| line.contains("home:read_sensor")).unwrap();
    assert!(line.contains("temperatur") && line.contains("0."), "{table}");
    drop(client);
    assert_eq!(gate.end().await, Some(0));
    gate.restart().await;
    gate.ready("home").await;
    assert!(is_learned(&gate, 4).await);
    gate.log_line("computed=0 stored=4").await;
    assert!(stdout(&gate.cli(&["status"]).await).contains("by words and meaning"));
}

#[tokio::test]
async fn unapproved_and_switched_off_text_is_not_found_by_meaning() {
    let servers = |dir: &Path| {
        let mut servers = household(dir);
        servers["home"]["quarantined"] = json!(true);
        let tools = json!([{"name": "open_door", "description": "Lets a visitor in"}]);
        servers["door"] = scripted(dir, "door", &tools);
        servers
    };
    let gate = Gate::start(servers, learned()).await;
    gate.ready("door").await;
    gate.server_when("home", |entry| entry["state"] == "quarantined").await;
    if !is_learned(&gate, 1).await {
        return testkit::run::skipped("this processor computes no vectors");
    }
    let client = gate.http().await;
    let names = found(&client, "remember that Anna likes tea").await;
    assert!(names.iter().all(|name| name.starts_with("door:")), "{names:?}");
    assert_eq!(found(&client, "there is a guest outside").await, ["door:open_door"]);
    gate.rewrite(|config| config["search"] = json!({"learned": false}));
    eventually_within(VECTORS_PATIENCE, || async {
        found(&client, "there is a guest outside").await.is_empty().then_some(())
    })
    .await;
    assert!(stdout(&gate.cli(&["status"]).await).contains("by words"));
}

#[derive(Deserialize)]
struct RetrievalSet {
    tools: Vec<Value>,
    queries: Vec<RetrievalQuery>,
}

#[derive(Deserialize)]
struct RetrievalQuery {
    query: String,
    gold: Vec<String>,
}

/// Serves the tools of a set: `server:tool` as a tool of that server, others as tools of one.
fn served(dir: &Path, set: &RetrievalSet) -> Value {
    let mut servers = serde_json::Map::new();
    for tool in &set.tools {
        let name = tool["name"].as_str().unwrap();
        let (server, name) = name.split_once(':').unwrap_or(("all", name));
        let server: String = server.chars().map(plain).collect();
        let mut tool = tool.clone();
        tool["name"] = json!(name);
        let tools = servers.entry(server).or_insert_with(|| json!([]));
        tools.as_array_mut().unwrap().push(tool);
    }
    servers.iter().map(|(name, tools)| (name.clone(), scripted(dir, name, tools))).collect()
}

fn plain(letter: char) -> char {
    if letter.is_ascii_alphanumeric() { letter } else { '-' }
}

/// Prints recall at 1 and 5 for each set, measured through `retrieve_tools`. More sets can be named
/// in a variable.
#[tokio::test]
async fn long_recall_through_the_gate_stays_above_its_floor() {
    if !testkit::run::is_long_or_skipped() {
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../search/testdata/retrieval");
    let mut sets = vec![
        (here.join("dev-bfcl.json"), 0.81, 0.97),
        (here.join("dev-metatool.json"), 0.64, 0.82),
    ];
    if let Some(more) = std::env::var_os("COUNTERSIGN_RETRIEVAL_SETS") {
        sets.extend(std::env::split_paths(&more).map(|path| (path, 0.61, 0.84)));
    }
    for (path, first_min, five_min) in sets {
        let text = std::fs::read_to_string(&path).unwrap();
        let set: RetrievalSet = serde_json::from_str(&text).unwrap();
        let gate = Gate::start(|dir| served(dir, &set), learned()).await;
        let names: std::collections::BTreeSet<&str> =
            set.tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert!(is_learned(&gate, names.len()).await, "this processor computes no vectors");
        let client = gate.http().await;
        let (mut first, mut five) = (0.0, 0.0);
        for RetrievalQuery { query, gold } in &set.queries {
            let asked = json!({"query": query, "limit": 5});
            let answer = client.document("retrieve_tools", asked).await;
            let right = answer["tools"].as_array().unwrap().iter().map(|tool| {
                let name = tool["name"].as_str().unwrap();
                let bare = name.strip_prefix("all:").unwrap_or(name);
                let is_gold = |gold: &&String| gold.chars().map(plain).eq(bare.chars().map(plain));
                gold.iter().find(is_gold).is_some()
            });
            let right: Vec<bool> = right.collect();
            let of = gold.len().max(1) as f64;
            first += f64::from(u8::from(right.first() == Some(&true))) / of;
            five += right.iter().filter(|right| **right).count() as f64 / of;
        }
        let count = set.queries.len() as f64;
        let (first, five) = (first / count, five / count);
        println!("{}: recall@1 {first:.4}, recall@5 {five:.4}", path.display());
        assert!(first >= first_min && five >= five_min, "{first:.4} {five:.4}");
        assert_eq!(gate.stop().await, Some(0));
    }
}
