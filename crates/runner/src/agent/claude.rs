//! Claude Code: `claude -p`, with its events as JSON lines.

use serde_json::{Value, json};

use crate::agent::error::AgentError;
use crate::agent::launch::{ARGUMENT_BYTES_MAX, Launch, LaunchInput, LaunchMode, path_text, words};
use crate::agent::program::{Provider, SERVER_NAME};
use crate::agent::report::{AgentEvent, ReportBuilder, TokenUsage, count, text};

/// A tool of the program that only shapes its answer (`--json-schema`).
const INERT: &str = "StructuredOutput";

pub(super) const NEEDED: &[&str] = &["--output-format", "stream-json", "--verbose"];
pub(super) const ISOLATING: &[&str] =
    &["--mcp-config", "--strict-mcp-config", "--tools", "--allowedTools", "--setting-sources"];

/// Flags that older versions may lack: text in pieces, and a limit on what is spent.
const PIECES: &str = "--include-partial-messages";
const BUDGET: &str = "--max-budget-usd";
pub(super) const OPTIONAL: &[&str] = &[PIECES, BUDGET];

/// Files that a prompt mentions with an `@`, and notes from earlier sessions.
const DISABLED: [&str; 3] = [
    "CLAUDE_CODE_DISABLE_ATTACHMENTS",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS",
];

pub(super) fn launch(input: &LaunchInput) -> Result<Launch, AgentError> {
    let request = input.request;
    let mut args = words(["-p", "--output-format", "stream-json", "--verbose"]);
    if input.installed.has(PIECES) {
        args.extend(words([PIECES]));
    }
    if let Some(dollars) = request.max_cost_usd.filter(|_| input.installed.has(BUDGET)) {
        args.extend(words([BUDGET, &dollars.to_string()]));
    }
    let mut files = Vec::new();
    let mut env = Vec::new();
    if input.mode != LaunchMode::Plain {
        let config = input.private("mcp.json");
        args.extend(["--mcp-config".to_owned(), path_text(&config)?]);
        args.extend(words(["--allowedTools", &format!("mcp__{SERVER_NAME}")]));
        files.push((config, server(input)?.to_string().into_bytes()));
        let timeout = request.call_timeout.as_millis().to_string();
        env.push(("MCP_TOOL_TIMEOUT".to_owned(), timeout));
    }
    if input.mode == LaunchMode::Isolated {
        // Without setting sources, none of the person's hooks runs, which would be outside the
        // gate.
        args.extend(words(["--strict-mcp-config", "--tools", "", "--setting-sources="]));
        args.extend(words(["--no-session-persistence"]));
        for name in DISABLED {
            env.push((name.to_owned(), "1".to_owned()));
        }
        env.push(("ENABLE_CLAUDEAI_MCP_SERVERS".to_owned(), "false".to_owned()));
        // Otherwise its logs of each step are left in the person's cache.
        env.push(("XDG_CACHE_HOME".to_owned(), path_text(&input.private("cache"))?));
    }
    if let Some(model) = &request.model {
        args.extend(words(["--model", model]));
    }
    match &input.system_prompt {
        Some(text) if text.len() > ARGUMENT_BYTES_MAX => {
            let path = input.private("system.md");
            args.extend(["--append-system-prompt-file".to_owned(), path_text(&path)?]);
            files.push((path, text.clone().into_bytes()));
        }
        Some(text) => args.extend(words(["--append-system-prompt", text])),
        None => {}
    }
    args.extend(request.args.iter().cloned());
    // The program refuses to start inside another of its sessions.
    let env_remove = words(["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"]);
    Ok(Launch { args, env, env_remove, files, ..Launch::of(input) })
}

fn server(input: &LaunchInput) -> Result<Value, AgentError> {
    let server = &input.request.server;
    let mut entry = json!({"command": path_text(&server.program)?, "args": server.args});
    if input.mode == LaunchMode::Beside {
        // Otherwise the tools hide behind the program's own search.
        entry["alwaysLoad"] = json!(true);
    }
    Ok(json!({"mcpServers": {SERVER_NAME: entry}}))
}

/// Reads one event of `--output-format stream-json`.
pub(super) fn line(event: &Value, report: &mut ReportBuilder) -> Vec<AgentEvent> {
    match text(&event["type"]) {
        "system" if event["subtype"] == "init" => report.model(text(&event["model"])),
        "assistant" => {
            let mut events = counted(event, report);
            events.extend(blocks(event).flat_map(|block| said(block, report)));
            events
        }
        // Of an agent within the agent, only the whole texts are read.
        "stream_event" if event["parent_tool_use_id"].is_null() => piece(&event["event"], report),
        "user" => blocks(event).flat_map(|block| answered(block, report)).collect(),
        "result" => result(event, report),
        _ => Vec::new(),
    }
}

/// Reads an event of the model's API, which comes before the block that it is a piece of.
fn piece(event: &Value, report: &mut ReportBuilder) -> Vec<AgentEvent> {
    match text(&event["type"]) {
        "content_block_start" if event["content_block"]["type"] == "text" => {
            report.text_begins();
            Vec::new()
        }
        "content_block_delta" if event["delta"]["type"] == "text_delta" => {
            report.piece(text(&event["delta"]["text"]))
        }
        // The blocks come with the tokens of the message's start.
        "message_delta" => report.message_grows(count(&event["usage"]["output_tokens"])),
        _ => Vec::new(),
    }
}

fn blocks(event: &Value) -> impl Iterator<Item = &Value> {
    event["message"]["content"].as_array().into_iter().flatten()
}

fn said(block: &Value, report: &mut ReportBuilder) -> Vec<AgentEvent> {
    match text(&block["type"]) {
        "text" => report.whole_text(text(&block["text"])),
        "tool_use" | "server_tool_use" if block["name"] != INERT => {
            report.call(Provider::Claude, text(&block["id"]), text(&block["name"]))
        }
        _ => Vec::new(),
    }
}

/// The first words of the result of a call that was not made: the tool does not exist, or its use
/// was not permitted. The output of a tool that ran begins otherwise.
const DENIALS: [&str; 3] =
    ["No such tool available", "Claude requested permissions to use", "Permission to use"];

fn answered(block: &Value, report: &mut ReportBuilder) -> Vec<AgentEvent> {
    let content = &block["content"];
    let words = content.as_str().unwrap_or_else(|| text(&content[0]["text"]));
    let words = words.trim_start_matches("<tool_use_error>").trim_start_matches("Error: ");
    let is_refusal = block["type"] == "tool_result"
        && block["is_error"] == true
        && DENIALS.iter().any(|denial| words.starts_with(denial));
    if is_refusal { report.refused(text(&block["tool_use_id"])) } else { Vec::new() }
}

/// Counts a message of the model; the program prints each of its blocks as an event.
fn counted(event: &Value, report: &mut ReportBuilder) -> Vec<AgentEvent> {
    if blocks(event).next().is_none() {
        return Vec::new();
    }
    report.message(text(&event["message"]["id"]), tokens(&event["message"]["usage"]))
}

fn tokens(usage: &Value) -> TokenUsage {
    let cached =
        count(&usage["cache_read_input_tokens"]) + count(&usage["cache_creation_input_tokens"]);
    TokenUsage::of(count(&usage["input_tokens"]) + cached, count(&usage["output_tokens"]))
}

fn result(event: &Value, report: &mut ReportBuilder) -> Vec<AgentEvent> {
    report.tokens(tokens(&event["usage"]));
    report.cost(event["total_cost_usd"].as_f64());
    let mut events = report.usage();
    if event["is_error"] == true || event["subtype"] != "success" {
        let words = [text(&event["result"]), text(&event["errors"][0]), text(&event["subtype"])];
        let words = words.into_iter().find(|words| !words.is_empty()).unwrap_or("no reason given");
        events.extend(report.failed(words));
        return events;
    }
    report.final_text(text(&event["result"]));
    report.finished();
    events
}
