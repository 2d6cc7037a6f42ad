//! `countersign mcp-serve` with a file that names no gate: it is one itself, with the tools that
//! the file describes.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::client::text;
use testkit::program::{program, run, stderr};
use testkit::upstream::scripted;
use testkit::wire::Wire;

use crate::ledger::records_when;

fn file(dir: &Path, step: &Value) -> PathBuf {
    let file = dir.join("step.json");
    std::fs::write(&file, step.to_string()).unwrap();
    file
}

/// Makes a folder to work in, with the gate's home inside it.
fn folder(dir: &Path) -> PathBuf {
    let folder = dir.canonicalize().unwrap().join("project");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), "one line\n").unwrap();
    folder
}

fn open(dir: &Path, step: &Value) -> Wire {
    let mut command = program(dir);
    let home = dir.canonicalize().unwrap().join("project/home");
    command.arg("mcp-serve").arg(format!("--config={}", file(dir, step).display()));
    command.env("COUNTERSIGN_HOME", home).env("COUNTERSIGN_LOG", "warn");
    Wire::open(command)
}

/// Returns the error mark and the text of a response.
fn outcome(answer: &Value) -> (bool, &str) {
    (answer["result"]["isError"] == true, text(&answer["result"]))
}

#[tokio::test]
async fn smoke_mcp_serve_offers_the_six_built_in_tools_on_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let mut wire = open(dir.path(), &json!({"root_dir": folder, "agent": "me"}));
    // Claude sends this before it initializes, and waits for seconds if it gets no response.
    let answer = wire.ask(1, "server/discover", json!({})).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    wire.greet().await;
    let list = wire.ask(2, "tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["Bash", "Edit", "Glob", "Grep", "Read", "Write"]);
    for tool in tools {
        assert!(tool["description"].is_string(), "{tool}");
        for (_, parameter) in tool["inputSchema"]["properties"].as_object().unwrap() {
            assert!(parameter["description"].is_string(), "{tool}");
        }
    }
    let read = wire.call(3, "Read", json!({"path": "a.txt"})).await;
    assert_eq!(outcome(&read), (false, "one line\n"));
    let env = wire.call(4, "Bash", json!({"command": "env; pwd"})).await;
    let (_, env) = outcome(&env);
    assert!(env.contains(folder.to_str().unwrap()) && !env.contains("COUNTERSIGN_"), "{env}");
    // The home is closed to the tools, even if it lies inside their folder.
    assert!(folder.join("home/ledger.db").exists());
    std::fs::write(folder.join("home/api-key"), "secret").unwrap();
    for path in ["home/api-key".into(), folder.join("home/api-key")] {
        let refused = wire.call(5, "Read", json!({"path": path})).await;
        let (is_error, text) = outcome(&refused);
        assert!(is_error && !text.contains("secret"), "{path:?}: {text}");
    }
    let found = wire.call(6, "Grep", json!({"pattern": "secret|one", "path": "."})).await;
    assert_eq!(outcome(&found).1.trim(), "a.txt:1:one line");
    let write = json!({"path": "home/api-key", "content": "mine"});
    assert!(outcome(&wire.call(7, "Write", write).await).0);
    let answer = wire.ask(8, "shutdown", json!({})).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    assert_eq!(wire.hear().await, "");
    assert_eq!(wire.ended().await.code(), Some(0));
    let records = records_when(&folder.join("home"), |records| records.len() >= 6).await;
    assert!(records.iter().all(|record| record["token"] == "me"), "{records:?}");
}

#[tokio::test]
async fn mcp_serve_ends_when_stdin_closes_or_on_a_signal() {
    for signal in [None, Some(Signal::TERM), Some(Signal::INT), Some(Signal::HUP)] {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        let mut wire = open(dir.path(), &json!({"root_dir": folder}));
        wire.greet().await;
        match signal {
            None => wire.close(),
            Some(signal) => kill_process(Pid::from_raw(wire.pid()).unwrap(), signal).unwrap(),
        }
        assert_eq!(wire.ended().await.code(), Some(0), "{signal:?}");
    }
}

#[tokio::test]
async fn it_serves_servers_of_the_config_without_the_built_in_tools() {
    let dir = tempfile::tempdir().unwrap();
    let folder = folder(dir.path());
    let config = dir.path().join("xdg-config/countersign");
    std::fs::create_dir_all(&config).unwrap();
    let servers = json!({"x": scripted(dir.path(), "x", &json!([{"name": "echo"}])),
                         "y": scripted(dir.path(), "y", &json!([{"name": "other"}]))});
    std::fs::write(config.join("config.json"), json!({"mcpServers": servers}).to_string()).unwrap();
    let step = json!({"root_dir": folder, "intercept_builtins": false, "mcp_servers": ["x"]});
    let mut wire = open(dir.path(), &step);
    wire.greet().await;
    let list = wire.ask(1, "tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["x__echo"], "{list}");
    let echo = wire.call(2, "x__echo", json!({"word": "hello"})).await;
    let (is_error, text) = outcome(&echo);
    assert!(!is_error && text.contains("hello"), "{text}");
    wire.close();
    assert_eq!(wire.ended().await.code(), Some(0));
}

#[tokio::test]
async fn an_unusable_step_file_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("step.json");
    let path = path.to_str().unwrap();
    for (text, words) in [
        (Some("{"), "line 1, column 1: it ends inside an object"),
        (Some(r#"{"gates": "x"}"#), "unknown member 'gates'"),
        (Some(r#"{"root_dir": "/nowhere"}"#), "/nowhere"),
        (Some(r#"{"root_dir": "/"}"#), "too broad to open by default"),
        (None, "No such file"),
    ] {
        match text {
            Some(text) => std::fs::write(path, text).unwrap(),
            None => std::fs::remove_file(path).unwrap(),
        }
        let output = run(dir.path(), ["mcp-serve", &format!("--config={path}")]).await;
        assert_eq!(output.status.code(), Some(2), "{text:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{text:?}: {}", stderr(&output));
    }
    std::fs::write(path, json!({"gate": dir.path().join("nowhere.sock")}).to_string()).unwrap();
    let output = run(dir.path(), ["mcp-serve", &format!("--config={path}")]).await;
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot reach the step's gate"), "{}", stderr(&output));
    let output = run(dir.path(), ["mcp-serve"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("--config="), "{}", stderr(&output));
}
