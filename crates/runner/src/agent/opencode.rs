//! OpenCode: `opencode run --format json`, with its config in a variable. No file of the workspace
//! is touched.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use text::json;

use crate::agent::error::AgentError;
use crate::agent::launch::{Launch, LaunchInput, LaunchMode, path_text, words};
use crate::agent::program::{Provider, SERVER_NAME};
use crate::agent::report::{AgentEvent, ReportBuilder, TokenUsage, count, text};
use crate::agent::{ground, person};

pub(super) const NEEDED: &[&str] = &["--format", "--model"];
pub(super) const ISOLATING: &[&str] = &["--pure", "--agent"];

const CONFIG: &str = "OPENCODE_CONFIG_CONTENT";

/// Downloads and project files that an isolated step does without.
const DISABLED: [&str; 7] = [
    "OPENCODE_DISABLE_PROJECT_CONFIG",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_CLAUDE_CODE",
    "OPENCODE_DISABLE_EXTERNAL_SKILLS",
];

/// The folders of the person's that it keeps, by variable and place in the home: its login, and
/// what it has downloaded.
const KEPT: [(&str, &str); 3] = [
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// The variable with the content of its login file.
const LOGIN: &str = "OPENCODE_AUTH_CONTENT";

pub(super) fn launch(input: &LaunchInput) -> Result<Launch, AgentError> {
    let request = input.request;
    let mut launch = Launch { args: words(["run", "--format", "json"]), ..Launch::of(input) };
    let mut config = config(input)?;
    if let Some(system) = &input.system_prompt {
        let path = input.private("system.md");
        let instructions = config.entry("instructions").or_insert_with(|| json!([]));
        if let Some(list) = instructions.as_array_mut() {
            list.push(json!(path_text(&path)?));
        }
        launch.files.push((path, system.clone().into_bytes()));
    }
    if input.mode == LaunchMode::Isolated {
        isolate(input, &mut launch)?;
    }
    if !config.is_empty() {
        launch.env.push((CONFIG.to_owned(), Value::Object(config).to_string()));
    }
    if let Some(model) = &request.model {
        launch.args.extend(words(["--model", model]));
    }
    launch.args.extend(request.args.iter().cloned());
    Ok(launch)
}

/// Isolates the program. The config home alone is not enough: a `.opencode` in the home is read as
/// well, so the step gets an empty home, and its own agent, whose permissions nothing else can have
/// loosened.
fn isolate(input: &LaunchInput, launch: &mut Launch) -> Result<(), AgentError> {
    launch.args.extend(words(["--pure", "--agent", SERVER_NAME]));
    for (name, folder) in
        [("XDG_CONFIG_HOME", "opencode-config"), ("OPENCODE_TEST_HOME", "opencode-home")]
    {
        let folder = input.private(folder);
        launch.env.push((name.to_owned(), path_text(&folder)?));
        launch.folders.push(folder);
    }
    // Programs started at the same moment would conflict in the person's own database.
    let database = path_text(&input.private("opencode.db"))?;
    launch.env.push(("OPENCODE_DB".to_owned(), database));
    launch.env.extend(DISABLED.map(|name| (name.to_owned(), "1".to_owned())));
    ground::rehome(input, input.private("opencode-home"), launch)?;
    let mut data = None;
    for (name, place) in KEPT {
        let set = input.var(name).map(PathBuf::from);
        let kept = set.or_else(|| Some(Path::new(input.var("HOME")?).join(place)));
        if let Some(kept) = kept {
            launch.env.push((name.to_owned(), path_text(&kept)?));
            data = if name == "XDG_DATA_HOME" { Some(kept) } else { data };
        }
    }
    if let Some(login) = login(input, data)? {
        launch.env.push((LOGIN.to_owned(), login));
    }
    Ok(())
}

/// Returns the person's login without entries of the type `wellknown`, if it has any: with such an
/// entry OpenCode takes a config from a remote server, which can start programs. An OAuth login
/// next to it cannot be passed on in a variable, since OpenCode must rewrite it.
fn login(input: &LaunchInput, data: Option<PathBuf>) -> Result<Option<String>, AgentError> {
    let given = input.var(LOGIN).and_then(|text| serde_json::from_str(text).ok());
    let file = data.map(|data| data.join("opencode/auth.json"));
    let entries = match (given, &file) {
        (Some(Value::Object(entries)), _) => entries,
        (_, Some(file)) => person::json_object(file)?,
        (_, None) => Map::new(),
    };
    let is_remote = |entry: &Value| entry["type"] == "wellknown";
    let Some((remote, _)) = entries.iter().find(|(_, entry)| is_remote(entry)) else {
        return Ok(None);
    };
    if entries.values().any(|entry| entry["type"] == "oauth") {
        return Err(AgentError::CannotIsolate {
            provider: Provider::OpenCode,
            reason: format!(
                "its login at {remote} takes a config from that server, and the OAuth login beside \
                 it cannot be used without it; remove one of them with 'opencode auth logout'"
            ),
        });
    }
    let kept: Map<String, Value> =
        entries.into_iter().filter(|(_, entry)| !is_remote(entry)).collect();
    Ok(Some(Value::Object(kept).to_string()))
}

/// Merges our config over the step's; if the person's own config stays, over that too.
fn config(input: &LaunchInput) -> Result<Map<String, Value>, AgentError> {
    let mut config = Value::Object(Map::new());
    if input.mode != LaunchMode::Isolated
        && let Some(text) = input.var(CONFIG)
    {
        let person = serde_json::from_str(text).map_err(|error| {
            AgentError::BadOption(format!(
                "{CONFIG} is not valid JSON: {}",
                json::explain_in_file(&error)
            ))
        })?;
        lay_over(&mut config, person);
    }
    if let Some(asked) = &input.request.config {
        lay_over(&mut config, asked.clone());
    }
    if input.mode != LaunchMode::Plain {
        lay_over(&mut config, ours(input)?);
    }
    Ok(config.as_object().cloned().unwrap_or_default())
}

fn ours(input: &LaunchInput) -> Result<Value, AgentError> {
    let server = &input.request.server;
    let mut command = vec![path_text(&server.program)?];
    command.extend(server.args.iter().cloned());
    let timeout_ms = input.request.call_timeout.as_millis() as u64;
    let mut ours = json!({"mcp": {SERVER_NAME: {
        "type": "local", "command": command, "enabled": true, "timeout": timeout_ms,
    }}});
    if input.mode == LaunchMode::Isolated {
        let permission = json!({"*": "deny", format!("{SERVER_NAME}_*"): "allow"});
        ours["permission"] = permission.clone();
        // Its copies of the start folder would be kept in the person's home.
        ours["snapshot"] = json!(false);
        ours["agent"] = json!({SERVER_NAME: {"mode": "primary", "permission": permission}});
    }
    Ok(ours)
}

/// Merges objects member by member; any other value is replaced.
fn lay_over(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (name, value) in over {
                lay_over(under.entry(name).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over,
    }
}

/// Reads one event of `--format json`.
pub(super) fn line(event: &Value, report: &mut ReportBuilder) -> Vec<AgentEvent> {
    let part = &event["part"];
    match text(&event["type"]) {
        "step_start" => {
            report.text_begins();
            report.turn_ends();
            report.in_turn()
        }
        "text" => report.text(text(&part["text"])),
        "tool_use" => tool_use(part, report),
        "step_finish" => step_finish(part, report),
        "error" => {
            let error = &event["error"];
            let words =
                [text(&error["data"]["message"]), text(&error["message"]), text(&error["name"])];
            let words =
                words.into_iter().find(|words| !words.is_empty()).unwrap_or("no reason given");
            report.failed(words)
        }
        _ => Vec::new(),
    }
}

/// The first words of the error of a call that was not made.
const DENIALS: [&str; 3] = [
    "Model tried to call unavailable tool",
    "The user has specified a rule which prevents",
    "The user rejected permission",
];

fn tool_use(part: &Value, report: &mut ReportBuilder) -> Vec<AgentEvent> {
    let id = text(&part["callID"]);
    let mut events = report.call(Provider::OpenCode, id, text(&part["tool"]));
    let error = text(&part["state"]["error"]);
    if DENIALS.iter().any(|denial| error.starts_with(denial)) {
        events.extend(report.refused(id));
    }
    events
}

fn step_finish(part: &Value, report: &mut ReportBuilder) -> Vec<AgentEvent> {
    let tokens = &part["tokens"];
    let cached = count(&tokens["cache"]["read"]) + count(&tokens["cache"]["write"]);
    let input = count(&tokens["input"]) + cached;
    let output = count(&tokens["output"]) + count(&tokens["reasoning"]);
    report.add_tokens(TokenUsage::of(input, output));
    report.add_cost(part["cost"].as_f64());
    if part["reason"] != "tool-calls" {
        report.finished();
    }
    report.usage()
}
