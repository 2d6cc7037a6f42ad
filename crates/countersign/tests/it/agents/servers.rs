//! The tools offered to an agent in a step: its own, the built-in ones, those of servers; and two
//! agents at once, each with its own.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testkit::upstream::scripted;

use super::stage::Stage;
use super::{ours, say};
use crate::ledger::records_when;

const BUILT_IN: [&str; 6] = ["Bash", "Edit", "Glob", "Grep", "Read", "Write"];

/// Two servers whose tools have no schema, one with a tool switched off.
fn servers(stage: &Stage) -> Value {
    let tool = |name: &str| json!([{"name": name}, {"name": "off"}]);
    let mut x = scripted(stage.dir(), "x", &tool("echo"));
    x["disabled_tools"] = json!(["off"]);
    json!({"x": x, "y": scripted(stage.dir(), "y", &tool("other"))})
}

fn with_config<'a>(config: &'a [String; 2], more: &[&'a str]) -> Vec<&'a str> {
    config.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

#[tokio::test]
async fn servers_can_be_had_beside_the_agents_own_tools() {
    let turns = [ours("x__echo", json!({"word": "hello"})), say("echoed")];
    let stage = Stage::scripted(turns).await;
    let config = stage.config(&servers(&stage));
    let proxy = json!({"enable": true, "intercept_builtins": false, "mcp_servers": ["x"]});
    let (ran, words) = stage.run_json(&stage.flow(&proxy), &with_config(&config, &[])).await;
    assert_eq!(
        (&ran["status"], &ran["steps"][0]["calls"]),
        (&json!("success"), &json!(1)),
        "{words}"
    );
    assert_eq!(ran["steps"][0]["isolation"], "none", "{words}");
    let advertised = stage.model.advertised();
    assert!(advertised.contains("Bash") && advertised.contains("Read"), "{advertised:?}");
    let ours: Vec<&String> = advertised.iter().filter(|name| name.contains("awf-proxy")).collect();
    assert_eq!(ours, ["mcp__awf-proxy__x__echo"], "{advertised:?}");
    assert!(stage.model.results()[0].contains("hello"), "{:?}", stage.model.results());
    let records = records_when(&stage.home(), |records| records.len() == 1).await;
    let record = &records[0];
    assert_eq!((&record["server"], &record["tool"]), (&json!("x"), &json!("echo")), "{record}");
    assert_eq!(record["token"], "flow/task/claude", "{record}");
    assert!(record["receipt_id"].is_string(), "{record}");
    stage.assert_nothing_left().await;
}

/// Without `mcp_proxy` an agent is as the user configured it, and nothing goes through the gate.
#[tokio::test]
async fn a_step_without_a_proxy_has_the_agents_own_tools_alone() {
    let stage = Stage::scripted([say("as ever")]).await;
    let mut step = stage.step(&json!({"enable": false}));
    step.as_object_mut().unwrap().remove("mcp_proxy");
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let (ran, words) = stage.run_json(&flow, &[]).await;
    assert_eq!(ran["steps"][0]["output"], "as ever", "{words}");
    assert_eq!(ran["steps"][0]["isolation"], "none", "{words}");
    let advertised = stage.model.advertised();
    assert!(advertised.contains("Bash"), "{advertised:?}");
    assert!(!advertised.iter().any(|name| name.contains("awf")), "{advertised:?}");
    stage.assert_nothing_left().await;
}

/// Returns our tools among those offered to a model, without the prefix that the program adds to
/// their names.
fn offered(stage: &Stage) -> BTreeSet<String> {
    let plain = |name: &String| name.rsplit_once("awf-proxy__").map(|(_, name)| name.to_owned());
    let advertised = stage.model.advertised();
    let all: BTreeSet<String> = advertised.iter().filter_map(plain).collect();
    all
}

fn built_in_and(more: &[&str]) -> BTreeSet<String> {
    BUILT_IN.iter().chain(more).map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn concurrent_agents_each_have_their_own_tools_and_folder() {
    let read = || ours("Read", json!({"path": "own.txt"}));
    let reach = || ours("Read", json!({"path": "../two/own.txt"}));
    let turns = [read(), reach(), ours("x__echo", json!({"path": "from one"})), say("one")];
    let one = Stage::scripted(turns).await;
    let turns = [read(), ours("y__other", json!({"path": "from two"})), say("two")];
    let two = Stage::scripted(turns).await;
    let config = one.config(&servers(&one));
    let mut steps = Vec::new();
    for (stage, name, servers) in [(&one, "one", json!(["x"])), (&two, "two", json!(["y"]))] {
        let dir = one.workspace().join(name);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("own.txt"), format!("the file of {name}\n")).unwrap();
        let mut step = stage.step(&json!({"enable": true, "mcp_servers": servers}));
        step["dir"] = json!(name);
        steps.push(step);
    }
    let both = json!({"type": "parallel", "parallel": ["one", "two"], "on_success": "done"});
    let states = json!({"initial": "both", "both": both, "one": steps[0], "two": steps[1]});
    let (ran, words) = one.run_json(&one.flow_of(states), &with_config(&config, &[])).await;
    assert_eq!(ran["status"], "success", "{words}");
    assert_eq!(offered(&one), built_in_and(&["x__echo"]), "{:?}", one.model.advertised());
    assert_eq!(
        offered(&two),
        built_in_and(&["y__off", "y__other"]),
        "{:?}",
        two.model.advertised()
    );
    let (heard, other) = (one.model.results(), two.model.results());
    assert!(heard[0].contains("the file of one") && other[0].contains("the file of two"));
    assert!(heard[1].contains("is outside the workspace root"), "{heard:?}");
    let records = records_when(&one.home(), |records| records.len() == 5).await;
    for record in &records {
        let of_one = record["token"] == "flow/one/claude";
        assert!(of_one || record["token"] == "flow/two/claude", "{record}");
        if record["tool"] == "Read" && record["status"] == "success" {
            let folder = one.workspace().join(if of_one { "one" } else { "two" });
            let path = folder.join("own.txt").display().to_string();
            assert_eq!(record["resource"], json!(path), "{record}");
        }
    }
    let count = |name: &str| records.iter().filter(|it| it["token"] == name).count();
    assert_eq!((count("flow/one/claude"), count("flow/two/claude")), (3, 2));
    one.assert_nothing_left().await;
}
