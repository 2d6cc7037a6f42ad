//! One short conversation by each kind of client, with a server made with FastMCP behind the gate:
//! they list, call, are refused, read a resource and use a prompt, and all get the same.

use std::path::Path;

use serde_json::{Value, json};
use testkit::client::{PATIENCE, able, answers, text};
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::{command, countersign, stderr, stdout};
use tokio::process::Command;

use super::servers;
use crate::conformance::{node, peer};
use crate::ledger::records_when;

const TOOLS: [&str; 5] = ["add", "progress", "roots", "sample", "elicit"];

async fn gate() -> Gate {
    let features = json!({"command": foreign::program("python-fastmcp/bin/python"),
        "args": ["-W", "ignore", peer("features.py")], "disabled_tools": ["locked"]});
    servers::gate(|_| json!({"s": features})).await
}

/// Runs a client to its end, and returns the JSON that it prints.
async fn said(mut client: Command) -> Value {
    let output = tokio::time::timeout(PATIENCE, client.output()).await.expect("it ends").unwrap();
    let (words, errors) = (stdout(&output), stderr(&output));
    serde_json::from_str(&words).unwrap_or_else(|_| panic!("{client:?}\n{words}\n{errors}"))
}

fn assert_conversation(which: &str, said: &Value) {
    assert_eq!(said["tools"], json!(TOOLS), "{which}");
    assert_eq!(said["called"], "42", "{which}");
    assert_eq!(said["refused"][0], true, "{which}");
    let reason = said["refused"][1].as_str().unwrap();
    assert!(reason.contains("disabled_by_config"), "{which}: {reason}");
    assert_eq!(said["read"], "the first memo", "{which}");
    assert_eq!(said["got"], "Greet Ada.", "{which}");
}

fn python(which: &str, interpreter: &str, gate: &Gate, url: &str) -> Command {
    let mut client = command(&foreign::program(interpreter), gate.dir.path());
    client.args(["-W", "ignore"]).arg(peer("conversation.py"));
    client.args([which, url, &gate.secret("agent-token")]);
    client
}

fn typescript(generation: &str, folder: &str, gate: &Gate, url: &str) -> Command {
    let mut client = node(gate.dir.path());
    client.arg(peer("conversation.mjs")).arg(generation).arg(foreign::folder().join(folder));
    client.args([url, &gate.secret("agent-token")]);
    client
}

#[tokio::test]
async fn every_sdk_has_the_same_conversation() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = gate().await;
    let url = format!("http://{}/mcp/s/s", gate.address);
    let clients = [
        ("mcp1", python("mcp1", "python-mcp1/bin/python", &gate, &url)),
        ("mcp2", python("mcp2", "python-mcp2/bin/python", &gate, &url)),
        ("fastmcp", python("fastmcp", "python-fastmcp/bin/python", &gate, &url)),
        ("typescript 1", typescript("1", "conformance", &gate, &url)),
        ("typescript 2", typescript("2", "clients", &gate, &url)),
    ];
    let count = clients.len();
    for (which, client) in clients {
        assert_conversation(which, &said(client).await);
    }
    let is_of = |tool: &'static str| move |record: &&Value| record["tool"] == tool;
    let records = records_when(&gate.home(), |records| {
        records.iter().filter(is_of("prompts/get")).count() == count
    })
    .await;
    for tool in ["add", "locked", "resources/read"] {
        assert_eq!(records.iter().filter(is_of(tool)).count(), count, "{tool}");
    }
    assert_eq!(gate.stop().await, Some(0));
}

/// Returns the results of the inspector's five requests, each by a separate process.
async fn inspected(dir: &Path, target: &[String]) -> Value {
    let ask = async |more: &[&str]| {
        let launcher = "clients/node_modules/@modelcontextprotocol/inspector/clients/launcher";
        let mut client = node(dir);
        client.arg(foreign::program(&format!("{launcher}/build/index.js"))).arg("--cli");
        client.args(target).arg("--method").args(more);
        said(client).await
    };
    let list = ask(&["tools/list"]).await;
    let names = list["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]);
    let called = ask(&["tools/call", "--tool-name", "add", "--tool-arg", "a=2", "b=40"]).await;
    let read = ask(&["resources/read", "--uri", "memo://one"]).await;
    let got = ask(&["prompts/get", "--prompt-name", "greet", "--prompt-args", "name=Ada"]).await;
    json!({"tools": names.collect::<Vec<_>>(), "called": text(&called),
        "read": read["contents"][0]["text"], "got": got["messages"][0]["content"]["text"]})
}

#[tokio::test]
async fn the_inspector_has_it_over_http_and_over_stdio() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = gate().await;
    let dir = gate.dir.path();
    let url = format!("http://{}/mcp/s/s", gate.address);
    let token = format!("Authorization: Bearer {}", gate.secret("agent-token"));
    let http = [&url, "--transport", "http", "--header", &token].map(str::to_owned);
    // On the command line, the inspector would take --server for its own.
    let entry = json!({"command": countersign(), "args": ["mcp", "--server", "s"],
        "env": {"COUNTERSIGN_HOME": gate.home()}});
    let file = dir.join("inspector.json");
    std::fs::write(&file, json!({"mcpServers": {"gate": entry}}).to_string()).unwrap();
    let stdio = ["--config", &file.display().to_string(), "--server", "gate"].map(str::to_owned);
    let expected = json!({"tools": TOOLS, "called": "42", "read": "the first memo",
        "got": "Greet Ada."});
    assert_eq!(inspected(dir, &http).await, expected, "http");
    assert_eq!(inspected(dir, &stdio).await, expected, "stdio");
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn every_feature_of_a_fastmcp_server_passes() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = gate().await;
    let mut answers = answers("me");
    // FastMCP asks for one value by this name.
    answers.retain(|(method, _)| *method != "elicitation/create");
    answers.push(("elicitation/create", json!({"action": "accept", "content": {"value": "me"}})));
    let client = gate.http_at_with("/mcp/s/s", able(), answers).await;
    assert_eq!(client.welcome["instructions"], "Has one of everything.");
    for (tool, expected) in
        [("progress", "done"), ("roots", "file:///me"), ("sample", "hi"), ("elicit", "accept me")]
    {
        let called = client.call(tool, json!({})).await;
        assert_eq!(text(&called), expected, "{tool}: {called}");
    }
    let told = client.notices.lock().unwrap().clone();
    assert!(told.iter().any(|(method, _)| method == "notifications/message"), "{told:?}");
    let named = client.request("resources/read", json!({"uri": "memo://two/text"})).await.unwrap();
    assert_eq!(named["contents"][0]["text"], "the memo two");
    let templates = client.request("resources/templates/list", json!({})).await.unwrap();
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "memo://{name}/text");
    let resources = client.request("resources/list", json!({})).await.unwrap();
    assert_eq!(resources["resources"][0]["uri"], "memo://one");
    let prompts = client.request("prompts/list", json!({})).await.unwrap();
    assert_eq!(prompts["prompts"][0]["name"], "greet");
    let discovery = gate.http().await;
    let link = "countersign://server/s/memo://one";
    let read = discovery.two_key_call("read", link, json!({})).await;
    assert_eq!(text(&read), "the first memo", "as a model reads it");
    let greet = json!({"name": "s__greet", "arguments": {"name": "Ada"}});
    let got = discovery.request("prompts/get", greet).await.unwrap();
    assert_eq!(got["messages"][0]["content"]["text"], "Greet Ada.");
    assert_eq!(gate.stop().await, Some(0));
}

/// Claude Code takes a missing token for a reason to sign in by OAuth, and shows what that answers.
#[tokio::test]
async fn claude_code_without_a_token_is_told_what_is_missing() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = Gate::scripted(json!([])).await;
    let url = format!("http://{}/mcp", gate.address);
    let claude = async |args: &[&str]| {
        let mut claude = command(&foreign::program("agents/bin/claude"), gate.dir.path());
        let output = tokio::time::timeout(PATIENCE, claude.args(args).output()).await;
        stdout(&output.expect("it ends").unwrap())
    };
    claude(&["mcp", "add", "--transport", "http", "gate", &url]).await;
    let listed = claude(&["mcp", "list"]).await;
    assert!(listed.contains("Failed to connect"), "{listed}");
    for words in ["Authorization: Bearer", "<home>/agent-token", "countersign mcp"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    let header = format!("Authorization: Bearer {}", gate.secret("agent-token"));
    let add = ["mcp", "add", "--transport", "http", "good", &url, "--header", &header];
    claude(&add).await;
    let listed = claude(&["mcp", "list"]).await;
    let good = listed.lines().find(|line| line.starts_with("good:")).unwrap_or_default();
    assert!(good.contains("Connected"), "{listed}");
}
