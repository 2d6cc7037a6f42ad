//! Real agents that a person connected by plain `countersign mcp`, with their own tools left on:
//! the first request to the model holds the gate's seven tools, and the model gets from a search
//! to the result of a call. The walk of a new user has the same with Claude Code in every test run.

use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::model;
use testkit::program::{countersign, stderr, stdout};
use testkit::run::is_long_or_skipped;
use tokio::process::Command;

use super::stage::{Stage, ended};
use super::{ours, say};
use crate::ledger::record;

const TOOLS: [&str; 7] = [
    "retrieve_tools",
    "describe_tool",
    "call_tool_read",
    "call_tool_write",
    "call_tool_destructive",
    "read_cache",
    "upstream_servers",
];

const PROMPT: &str = "what does a.txt say?";

/// Connects the agent as its own `mcp add` or settings do, and returns the command for one prompt.
type Connect = fn(&Stage) -> Command;

/// Search, description, call, final answer: each result reaches the model, and the call is recorded.
async fn walks(provider: &str, connect: Connect) {
    if !is_long_or_skipped() {
        return;
    }
    let read = json!({
        "name": "workspace:Read", "args": {"path": "a.txt"}, "intent": {"operation_type": "read"},
    });
    let turns = [
        ours("retrieve_tools", json!({"query": "read a file"})),
        ours("describe_tool", json!({"tool_ids": ["workspace:Read"]})),
        ours("call_tool_read", read),
        say("it says one thing"),
    ];
    let stage = Stage::new(provider, turns).await;
    let mut command = connect(&stage);
    // Codex passes no such variable on, so that the gate's home is the default one for all.
    command.env_remove("COUNTERSIGN_HOME").env_remove("XDG_DATA_HOME");
    let output = ended(command).await;
    let said = format!("{}\n{}", stdout(&output), stderr(&output));
    let requests = stage.model.turns();
    assert_eq!(requests.len(), 4, "{said}");
    assert_all_seven_in_full(&requests[0].body);
    let results = stage.model.results();
    assert!(results[0].contains("workspace:Read"), "{results:?}");
    assert!(results[1].contains("inputSchema"), "{results:?}");
    assert!(results[2].contains("one line"), "{results:?}");
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(stdout(&output).contains("it says one thing"), "{said}");
    let record = record(&stage.dir().join(".local/share/countersign"), "Read").await;
    assert_eq!((&record["server"], &record["status"]), (&json!("workspace"), &json!("success")));
}

/// Asserts that a request defines each of the tools once, with description and schema, and leaves
/// none of them for later.
pub(super) fn assert_all_seven_in_full(body: &Value) {
    let mut defined = Vec::new();
    collect_definitions(body, &mut defined);
    for name in TOOLS {
        let is_it = |tool: &&&Value| tool["name"].as_str().is_some_and(|it| it.ends_with(name));
        let found: Vec<&&Value> = defined.iter().filter(is_it).collect();
        let names: Vec<&Value> = defined.iter().map(|tool| &tool["name"]).collect();
        assert_eq!(found.len(), 1, "{name} in {names:?}");
        assert_ne!(found[0]["defer_loading"], true, "{}", found[0]);
        assert!(found[0]["description"].as_str().is_some_and(|it| it.len() > 20), "{}", found[0]);
        let properties = schema(found[0]).and_then(|schema| schema["properties"].as_object());
        assert!(properties.is_some_and(|it| !it.is_empty()), "{}", found[0]);
    }
}

/// Finds the definitions of tools wherever an API has them: in lists, namespaces or input items.
fn collect_definitions<'a>(value: &'a Value, defined: &mut Vec<&'a Value>) {
    if value["name"].is_string() && schema(value).is_some() {
        defined.push(value);
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_definitions(item, defined)),
        Value::Object(members) => {
            members.values().for_each(|member| collect_definitions(member, defined));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns a tool's input schema, under the name that each API has for it.
fn schema(tool: &Value) -> Option<&Value> {
    ["input_schema", "parameters", "parametersJsonSchema"].iter().find_map(|name| tool.get(name))
}

fn write(stage: &Stage, path: &str, text: &str) -> PathBuf {
    let file = stage.dir().join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    file
}

fn claude(stage: &Stage) -> Command {
    let server = json!({"command": countersign(), "args": ["mcp"]});
    let config = json!({"mcpServers": {"countersign": server}}).to_string();
    let config = write(stage, "mcp.json", &config);
    let mut command = stage.agent();
    command
        .args(["-p", PROMPT, "--allowedTools", "mcp__countersign", "--mcp-config"])
        .arg(config)
        .env("ANTHROPIC_BASE_URL", stage.model.url())
        .env("ANTHROPIC_API_KEY", "test");
    command
}

fn codex(stage: &Stage) -> Command {
    let config = model::codex_config(&stage.model.url());
    let provider = &config["model_providers"]["fake"];
    let text = format!(
        "model = \"gpt-6-sol\"\nmodel_provider = \"fake\"\nanalytics.enabled = false\n\
         [model_providers.fake]\n{}\n\
         [mcp_servers.countersign]\ncommand = {:?}\nargs = [\"mcp\"]\n\
         omit_tools_from = [\"deferred\", \"code_mode\"]\n",
        toml(provider),
        countersign(),
    );
    write(stage, ".codex/config.toml", &text);
    let mut command = stage.agent();
    command.args(["exec", "--skip-git-repo-check", PROMPT]).env("FAKE_KEY", "test");
    command
}

/// Writes an object's members as lines of TOML: their values are spelled alike.
fn toml(members: &Value) -> String {
    let line = |(name, value): (&String, &Value)| format!("{name} = {value}");
    members.as_object().unwrap().iter().map(line).collect::<Vec<_>>().join("\n")
}

fn gemini(stage: &Stage) -> Command {
    let server = json!({"command": countersign(), "args": ["mcp"], "trust": true});
    let settings = json!({
        "mcpServers": {"countersign": server},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
    });
    write(stage, ".gemini/settings.json", &settings.to_string());
    let mut command = stage.agent();
    command
        .args(["-p", PROMPT, "--skip-trust", "-m", "gemini-2.5-flash"])
        .env("GEMINI_CLI_NO_RELAUNCH", "true")
        .env("GOOGLE_GEMINI_BASE_URL", stage.model.url())
        .env("GEMINI_API_KEY", "test");
    command
}

fn opencode(stage: &Stage) -> Command {
    let mut config = model::opencode_config(&stage.model.url());
    config["mcp"]["countersign"] = json!({"type": "local", "command": [countersign(), "mcp"]});
    write(stage, "xdg-config/opencode/opencode.json", &config.to_string());
    let mut command = stage.agent();
    command.args(["run", PROMPT]);
    command
}

#[tokio::test]
async fn long_claude_finds_and_uses_a_tool() {
    walks("claude", claude).await;
}

#[tokio::test]
async fn long_codex_finds_and_uses_a_tool() {
    walks("codex", codex).await;
}

#[tokio::test]
async fn long_gemini_finds_and_uses_a_tool() {
    walks("gemini", gemini).await;
}

#[tokio::test]
async fn long_opencode_finds_and_uses_a_tool() {
    walks("opencode", opencode).await;
}
