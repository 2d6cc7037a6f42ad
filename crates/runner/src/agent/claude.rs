//! Claude Code: `claude -p` with its events as JSON lines.

use serde_json::{Value, json};

use super::launch::{ARGUMENT_BYTES_MAX, Launch, Mode, Wanted, path_text, words};
use super::stream::{Collected, Event, Tokens, count, text};
use super::{AgentError, Provider, SERVER_NAME};

/// A tool of the program that only shapes its answer (`--json-schema`).
const INERT: &str = "StructuredOutput";

pub(super) const NEEDED: &[&str] = &["--output-format", "stream-json", "--verbose"];
pub(super) const ISOLATING: &[&str] =
    &["--mcp-config", "--strict-mcp-config", "--tools", "--allowedTools", "--setting-sources"];

pub(super) fn launch(wanted: &Wanted) -> Result<Launch, AgentError> {
    let request = wanted.request;
    let mut args = words(["-p", "--output-format", "stream-json", "--verbose"]);
    let mut files = Vec::new();
    let mut env = Vec::new();
    if wanted.mode != Mode::Plain {
        let config = wanted.private("mcp.json");
        args.extend(["--mcp-config".to_owned(), path_text(&config)?]);
        args.extend(words(["--allowedTools", &format!("mcp__{SERVER_NAME}")]));
        files.push((config, server(wanted)?.to_string().into_bytes()));
        let timeout = request.call_timeout.as_millis().to_string();
        env.push(("MCP_TOOL_TIMEOUT".to_owned(), timeout));
    }
    if wanted.mode == Mode::Isolated {
        // Without setting sources no hook of the person's runs, which would be outside the gate.
        args.extend(words(["--strict-mcp-config", "--tools", "", "--setting-sources="]));
        args.extend(words(["--no-session-persistence"]));
        // Else a file that the prompt mentions with an `@` is read, and attached to it.
        for name in ["CLAUDE_CODE_DISABLE_ATTACHMENTS", "CLAUDE_CODE_DISABLE_FILE_MENTIONS"] {
            env.push((name.to_owned(), "1".to_owned()));
        }
    }
    if let Some(model) = &request.model {
        args.extend(words(["--model", model]));
    }
    match &wanted.system_prompt {
        Some(text) if text.len() > ARGUMENT_BYTES_MAX => {
            let path = wanted.private("system.md");
            args.extend(["--append-system-prompt-file".to_owned(), path_text(&path)?]);
            files.push((path, text.clone().into_bytes()));
        }
        Some(text) => args.extend(words(["--append-system-prompt", text])),
        None => {}
    }
    args.extend(request.args.iter().cloned());
    // A program that finds itself inside another session of its own refuses to start.
    let env_remove = words(["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"]);
    Ok(Launch { args, env, env_remove, files, ..Launch::of(wanted) })
}

fn server(wanted: &Wanted) -> Result<Value, AgentError> {
    let server = &wanted.request.server;
    let mut entry = json!({"command": path_text(&server.program)?, "args": server.args});
    if wanted.mode == Mode::Beside {
        // Else the tools hide behind a search of the program's.
        entry["alwaysLoad"] = json!(true);
    }
    Ok(json!({"mcpServers": {SERVER_NAME: entry}}))
}

/// One event of `--output-format stream-json`.
pub(super) fn line(event: &Value, seen: &mut Collected) -> Vec<Event> {
    match text(&event["type"]) {
        "system" if event["subtype"] == "init" => seen.model(text(&event["model"])),
        "assistant" => blocks(event).flat_map(|block| said(block, seen)).collect(),
        "user" => blocks(event).flat_map(|block| answered(block, seen)).collect(),
        "result" => result(event, seen),
        _ => Vec::new(),
    }
}

fn blocks(event: &Value) -> impl Iterator<Item = &Value> {
    event["message"]["content"].as_array().into_iter().flatten()
}

fn said(block: &Value, seen: &mut Collected) -> Vec<Event> {
    match text(&block["type"]) {
        "text" => seen.text_of_its_own(text(&block["text"])),
        "tool_use" | "server_tool_use" if block["name"] != INERT => {
            seen.call(Provider::Claude, text(&block["id"]), text(&block["name"]))
        }
        _ => Vec::new(),
    }
}

fn answered(block: &Value, seen: &mut Collected) -> Vec<Event> {
    let words = block["content"].to_string();
    let is_refusal = block["type"] == "tool_result"
        && block["is_error"] == true
        && words.contains("No such tool available");
    if is_refusal { seen.refused(text(&block["tool_use_id"])) } else { Vec::new() }
}

fn result(event: &Value, seen: &mut Collected) -> Vec<Event> {
    let usage = &event["usage"];
    let cached =
        count(&usage["cache_read_input_tokens"]) + count(&usage["cache_creation_input_tokens"]);
    let input = count(&usage["input_tokens"]) + cached;
    seen.tokens(Tokens::of(input, count(&usage["output_tokens"])));
    seen.cost(event["total_cost_usd"].as_f64());
    if event["is_error"] == true || event["subtype"] != "success" {
        let words = [text(&event["result"]), text(&event["errors"][0]), text(&event["subtype"])];
        let words = words.into_iter().find(|words| !words.is_empty()).unwrap_or("it failed");
        return seen.failed(words);
    }
    seen.final_text(text(&event["result"]));
    seen.finished();
    Vec::new()
}
