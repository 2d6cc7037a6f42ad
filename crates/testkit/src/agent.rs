//! A program in the place of Claude Code, for tests in which any agent will do. It knows the flags that
//! a step passes, talks to the scripted model and to the MCP servers of its config, and prints the same
//! events. It starts in milliseconds, where the real one takes seconds. Its own tools do nothing.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::client::Client;
use crate::gate::http_client;
use crate::program::client_of;

/// The version that the product's table of files has.
const VERSION: &str = "2.1.325 (Claude Code)";

/// The flags that a step needs.
const HELP: &str = "--output-format stream-json --verbose --mcp-config --strict-mcp-config --tools \
    --allowedTools --setting-sources";

/// The tools that `--tools ""` removes.
const OWN_TOOLS: [&str; 2] = ["Bash", "Read"];

/// Answers a query, or runs one conversation; returns whether it succeeded.
pub async fn run(args: &[String]) -> bool {
    match args.first().map(String::as_str) {
        Some("--version") => print(VERSION),
        Some("--help") => print(HELP),
        _ => return Agent::start(args).await.converse().await,
    }
    true
}

struct Agent {
    servers: BTreeMap<String, Client>,
    tools: Vec<Value>,
    system: String,
    messages: Vec<Value>,
    turns: u64,
}

impl Agent {
    async fn start(args: &[String]) -> Agent {
        let value = |flag: &str| {
            let at = args.iter().position(|arg| arg == flag)?;
            args.get(at + 1).map(String::as_str)
        };
        let prompt = std::io::read_to_string(std::io::stdin()).expect("the prompt is text");
        let own = if value("--tools") == Some("") { &[][..] } else { &OWN_TOOLS };
        let mut agent = Agent {
            servers: BTreeMap::new(),
            tools: own.iter().map(|name| tool(name, &json!({}))).collect(),
            system: value("--append-system-prompt").unwrap_or_default().to_owned(),
            messages: vec![json!({"role": "user", "content": prompt})],
            turns: 0,
        };
        if let Some(file) = value("--mcp-config") {
            agent.connect(file).await;
        }
        agent
    }

    /// Starts the servers of a config, and takes in their tools.
    async fn connect(&mut self, file: &str) {
        let text = std::fs::read_to_string(file).expect("the config can be read");
        let config: Value = serde_json::from_str(&text).expect("the config is JSON");
        for (name, entry) in config["mcpServers"].as_object().expect("the config has servers") {
            let args = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let mut command = Command::new(entry["command"].as_str().expect("a local server"));
            command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
            let client = client_of(command.spawn().unwrap(), json!({}), Vec::new()).await;
            let listed = client.request("tools/list", json!({})).await.expect("a list of tools");
            for listed in listed["tools"].as_array().expect("a list of tools") {
                let plain = listed["name"].as_str().expect("a tool has a name");
                self.tools.push(tool(&format!("mcp__{name}__{plain}"), listed));
            }
            self.servers.insert(name.clone(), client);
        }
    }

    /// Asks the model until it calls no more tools.
    async fn converse(mut self) -> bool {
        let names: Vec<&Value> = self.tools.iter().map(|tool| &tool["name"]).collect();
        event(&json!({"type": "system", "subtype": "init", "model": "scripted", "tools": names}));
        loop {
            let answer = match self.ask().await {
                Ok(answer) => answer,
                Err(words) => return self.end(&words, false),
            };
            self.turns += 1;
            event(&json!({"type": "assistant", "message": answer}));
            let blocks = answer["content"].as_array().expect("a message has blocks");
            let is_call = |block: &&Value| block["type"] == "tool_use";
            let calls: Vec<&Value> = blocks.iter().filter(is_call).collect();
            if calls.is_empty() {
                return self.end(blocks[0]["text"].as_str().unwrap_or_default(), true);
            }
            let mut results = Vec::new();
            for call in calls {
                results.push(self.call(call).await);
            }
            let heard = json!({"role": "user", "content": results});
            event(&json!({"type": "user", "message": heard}));
            self.messages.push(json!({"role": "assistant", "content": answer["content"]}));
            self.messages.push(heard);
        }
    }

    /// Returns the model's next message, or the words of its failure.
    async fn ask(&self) -> Result<Value, String> {
        let body = json!({"model": "scripted", "max_tokens": 1000, "system": self.system,
            "messages": self.messages, "tools": self.tools});
        let url = std::env::var("ANTHROPIC_BASE_URL").expect("the model has an address");
        let request = http_client().post(format!("{url}/v1/messages")).body(body.to_string());
        let key = std::env::var("ANTHROPIC_API_KEY").unwrap_or_default();
        let response = request.header("x-api-key", key).send().await;
        let response = response.map_err(|error| error.to_string())?;
        let status = response.status();
        let text = response.text().await.map_err(|error| error.to_string())?;
        if !status.is_success() {
            return Err(format!("API Error: {status} {text}"));
        }
        serde_json::from_str(&text).map_err(|error| format!("API Error: {error}"))
    }

    /// Makes a call of a server's tool; there is no other that could be called.
    async fn call(&self, call: &Value) -> Value {
        let name = call["name"].as_str().expect("a call names its tool");
        let parts = name.strip_prefix("mcp__").and_then(|name| name.split_once("__"));
        let found = parts.and_then(|(server, tool)| Some((self.servers.get(server)?, tool)));
        let (content, is_error) = match found {
            Some((client, tool)) => {
                let result = client.call(tool, call["input"].clone()).await;
                (result["content"].clone(), result["isError"] == true)
            }
            None => (json!(format!("Error: No such tool available: {name}")), true),
        };
        let id = &call["id"];
        json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error})
    }

    fn end(&self, words: &str, is_well: bool) -> bool {
        let usage = json!({"input_tokens": 10 * self.turns, "output_tokens": 5 * self.turns});
        event(&json!({"type": "result", "subtype": "success", "is_error": !is_well,
            "result": words, "usage": usage, "total_cost_usd": 0.01}));
        is_well
    }
}

/// Defines a tool for the model.
fn tool(name: &str, listed: &Value) -> Value {
    let schema = listed.get("inputSchema").cloned().unwrap_or(json!({"type": "object"}));
    json!({"name": name, "description": listed["description"], "input_schema": schema})
}

fn event(event: &Value) {
    print(&event.to_string());
}

fn print(line: &str) {
    // A step that has ended reads no more.
    let _ = writeln!(std::io::stdout(), "{line}");
}
